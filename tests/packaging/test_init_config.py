"""`bioclin init-config`, and that the wheel and the source package carry the configs."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from spacy import util
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from tests.markdown import ROOT

CONFIGS = sorted(path.stem for path in (ROOT / "configs").glob("*.cfg"))
KEPT = ("spacy_bioclin/", "configs/")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["init-config", *arguments])
    return result.exit_code, result.output


def test_it_lists_what_each_config_is_for() -> None:
    code, shown = run()
    assert code == 0
    for name in CONFIGS:
        assert f" {name} " in shown
    assert "De-identification" in shown and "Train it with" not in shown


def test_it_writes_a_config(tmp_path: Path) -> None:
    for name in CONFIGS:
        path = tmp_path / f"my-{name}.cfg"
        assert run(name, "-o", str(path))[0] == 0
        written = util.load_config(path, interpolate=False)
        assert written == util.load_config(ROOT / "configs" / f"{name}.cfg", interpolate=False)
        head = path.read_text("utf-8").partition("[paths]")[0]
        assert f"train {path} " in head and f"train configs/{name}.cfg" not in head
    code, shown = run(name, "-o", str(path))
    assert code == 1 and "--overwrite" in shown
    assert run(name, "-o", str(path), "--overwrite")[0] == 0


def test_an_unknown_config_or_no_output_is_an_error(tmp_path: Path) -> None:
    code, shown = run("nre", "-o", str(tmp_path / "x.cfg"))
    assert code == 1 and "want one of deid, demo" in shown
    code, shown = run("ner")
    assert code == 1 and "-o ner.cfg" in shown
    assert "[paths]" in run("ner", "-o", "-")[1]


@pytest.mark.slow
def test_wheel_and_source_package_carry_the_configs(tmp_path: Path) -> None:
    """The wheel is built from the source package, as an index does."""
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if files.returncode:
        pytest.skip("not in a git checkout")
    source = tmp_path / "source"
    kept = [n for n in files.stdout.splitlines() if n.startswith(KEPT) or "/" not in n]
    for name in filter(lambda name: (ROOT / name).is_file(), kept):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--no-isolation",
            "-o",
            str(tmp_path / "dist"),
            str(source),
        ],
        check=True,
        capture_output=True,
    )
    [wheel] = (tmp_path / "dist").glob("*.whl")
    [archive] = (tmp_path / "dist").glob("*.tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(archive) as tar:
        packed = {name.partition("/")[2] for name in tar.getnames()}
    for name in CONFIGS:
        assert f"spacy_bioclin/configs/{name}.cfg" in names and f"configs/{name}.cfg" in packed
    data = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "spacy_bioclin").rglob("*")
        if path.suffix in (".yml", ".txt", ".json", ".html", ".jinja", ".typed")
    }
    assert data - names == set() and data - packed == set()
