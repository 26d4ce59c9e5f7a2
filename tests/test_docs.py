"""Every code block of docs/*.md runs, in the order of its page, in a temporary folder.

```python blocks share one namespace per page. Of ```bash blocks, the commands that begin with
`bioclin` run in this process; those that name $BIOCLIN_DATA only where the real corpora are.
"""

import io
import json
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """language (str), content (str), and line (int): the number of its first line in the page."""

    language: str
    content: str
    line: int


def code_blocks(page: str) -> list[Block]:
    return [
        Block(match[1], match[2], page.count("\n", 0, match.start()) + 2)
        for match in BLOCK.finditer(page)
    ]


def bioclin_commands(bash: str) -> Iterator[list[str]]:
    """YIELDS (list[str]): The arguments of each `bioclin` command."""
    for line in bash.replace("\\\n", " ").splitlines():
        words = shlex.split(os.path.expandvars(line), comments=True)
        if words[:1] == ["bioclin"]:
            yield words[1:]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the repository's assets and configs, current while the test runs."""
    for name in ("assets", "configs"):
        (tmp_path / name).symlink_to(ROOT / name, target_is_directory=True)
    data = Path(os.environ.get("BIOCLIN_DATA", ROOT.parent / "shared" / "data"))
    monkeypatch.setenv("BIOCLIN_DATA", str(data.resolve()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_code_blocks_run(page: Path, workplace: Path) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    has_data = Path(os.environ["BIOCLIN_DATA"]).is_dir()
    for block in code_blocks(page.read_text("utf-8")):
        where = f"{page.name}, line {block.line}"
        if block.language == "python":
            code = compile("\n" * (block.line - 1) + block.content, page.name, "exec")
            with redirect_stdout(io.StringIO()):
                exec(code, namespace)
        elif block.language == "bash" and (has_data or "$BIOCLIN_DATA" not in block.content):
            for args in bioclin_commands(block.content):
                result = CliRunner().invoke(app, args)
                assert result.exit_code == 0, f"{where}: {shlex.join(args)}\n{result.output}"


def test_figures_are_those_of_the_benchmarks() -> None:
    page = (ROOT / "docs" / "tokenization.md").read_text("utf-8")
    results = ROOT / "benchmarks" / "results"
    tokenizer = json.loads((results / "tokenizer.json").read_text("utf-8"))
    held_out = json.loads((results / "tokenizer_held_out.json").read_text("utf-8"))
    first = {row["corpus"]: row["misaligned"] for row in held_out["test"]}
    for row in tokenizer["misaligned_spans"]:
        if row["split"] == "test":
            spans = row["spans"]
            counts = (row["blank"], first[row["corpus"]], row["ours"])
            shown = [f"{n} ({100 * n / spans:.2f} %)" if n else "0" for n in counts]
            cells = f"| {spans:,} | {' | '.join(shown)} |"
            assert cells in page, f"{row['corpus']}: docs/tokenization.md wants {cells}"
    sentences = json.loads((results / "sentences.json").read_text("utf-8"))
    for name, shown in (
        ("spacy-bioclin tokenizer + bioclin_sentences", "**{}**"),
        ("pySBD (es, char_span)", "{}"),
        ("spaCy tokenizer + sentencizer", "{}"),
    ):
        p, r, f = (
            f"{100 * figure:.2f}" for figure in sentences["splitters"][name]["boundaries"].values()
        )
        assert f"| {p} | {r} | {shown.format(f)} |" in page, name


def test_blocks_are_found() -> None:
    bash = "ls  # all\nbioclin convert a \\\n  b --lang es  # note\n"
    page = f"text\n```bash\n{bash}```\n```python\n1\n```\n"
    assert code_blocks(page) == [Block("bash", bash, 3), Block("python", "1\n", 8)]
    assert list(bioclin_commands(bash)) == [["convert", "a", "b", "--lang", "es"]]
