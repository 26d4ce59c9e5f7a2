"""Wheels: those that ship, a small one, and a quick way to make others."""

import shutil
import zipfile
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

SHIPPED = Path(__file__).parents[2] / "assets" / "pipelines"


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for sys.path with the pipelines that ship, as pip unpacks them."""
    folder = tmp_path_factory.mktemp("shipped")
    for wheel in SHIPPED.glob("*.whl"):
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder)
    return folder


@pytest.fixture(scope="session")
def demo_wheel(pipeline: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the shared pipeline, es_bioclin_demo 0.1, with the metrics of test_build.py."""
    from spacy_bioclin.packaging.build import build_wheel

    from .test_build import METRICS, PROVENANCE

    out = tmp_path_factory.mktemp("packages")
    made = build_wheel(
        pipeline, out, name="demo", version="0.1", provenance=PROVENANCE, metrics=[METRICS]
    )
    assert list(out.iterdir()) == [made]  # nothing is left over
    return made


@pytest.fixture
def _without_setuptools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let wheels be archives of what is laid out, without requirements: setuptools, and looking
    for what a pipeline requires, take most of the time."""

    def make_builder(source: Path, runner: object) -> SimpleNamespace:
        def build(kind: str, folder: Path) -> str:
            made = folder / "made.whl"
            [data] = source.glob("*/*/meta.json")
            shutil.copy(source / "meta.json", data)  # as its setup.py does
            with zipfile.ZipFile(made, "w") as file:
                for path in source.glob("*_*/**/*"):
                    file.write(path, path.relative_to(source))
            return str(made)

        return SimpleNamespace(build=build)

    monkeypatch.setattr("spacy_bioclin.packaging.build.ProjectBuilder", make_builder)
    module = import_module("spacy.cli.package")  # spacy.cli has a function of this name
    monkeypatch.setattr(module, "get_third_party_dependencies", lambda *args, **kw: [])
