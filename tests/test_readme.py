"""README.md and docs/results.md show the committed results, and the README's commands run."""

from pathlib import Path

import pytest
from spacy.cli.train import train

from benchmarks import readme
from tests.markdown import ROOT, code_blocks, run_block, shell_commands
from tests.util import use_packages

README = (ROOT / "README.md").read_text("utf-8")
FEW_UPDATES = {"training.max_steps": 4, "training.eval_frequency": 4}


@pytest.mark.parametrize("name", sorted(readme.PAGES))
def test_results_are_those_of_the_benchmarks(name: str) -> None:
    page = (ROOT / name).read_text("utf-8")
    updated = readme.replace_section(page, readme.PAGES[name]())
    assert updated == page, "run: python -m benchmarks.readme"


def test_missing_result_file_is_an_error() -> None:
    with pytest.raises(SystemExit, match=r"nothing\.json does not exist"):
        readme.load("nothing")


def test_readme_is_short_and_shows_eight_results() -> None:
    assert len(README.splitlines()) < 200
    assert len(readme.summary_table().splitlines()) == 2 + 8


def train_briefly(config: str, output: str, **overrides: str | int) -> None:
    """Train for a few updates, quietly."""
    quiet = {"training.logger.progress_bar": None}
    train(config, output, overrides={**FEW_UPDATES, **overrides, **quiet})


@pytest.mark.slow
def test_code_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shipped: Path) -> None:
    """Run all Python blocks, and all `bioclin` and `spacy train` commands of the README from top to
    bottom, in a folder that has only what a clone leaves. Training takes few updates. A text block
    is what the block before it prints."""
    for name in ("assets", "configs"):
        (tmp_path / name).symlink_to(ROOT / name, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    use_packages(monkeypatch, shipped)

    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in code_blocks(README):
        if block.language == "text":
            assert printed == block.content
            continue
        before, trains, after = block.content.partition("spacy train ")
        if not trains:
            printed = run_block(block, "README.md", namespace)
            continue
        run_block(block._replace(content=before), "README.md", namespace)
        [args] = shell_commands(trains + after, "spacy train")
        config, *options = args
        values = dict(zip(options[::2], options[1::2], strict=True))
        train_briefly(
            config, values.pop("-o"), **{name[2:]: value for name, value in values.items()}
        )
        rest = after.replace("\\\n", " ").partition("\n")[2]
        run_block(block._replace(content=rest), "README.md", namespace)
    assert Path("found.jsonl").stat().st_size and list(Path("packages").glob("*.whl"))
