"""The documentation agrees with the code.

Every code block of docs/*.md runs, in the order of its page, in a temporary folder. ```python
blocks share one namespace per page; a ```text block after one is exactly what it prints. Of ```bash
blocks, the `bioclin` commands run in this process; those that name $BIOCLIN_DATA run only where the
real corpora are. ```console blocks are not run, but every command and option that they name must
exist. So must every file and Python name.
"""

import importlib
import json
import os
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from spacy_bioclin.cli import app
from tests.markdown import ROOT, Block, code_blocks, run_block, shell_commands
from tests.util import use_packages

PAGES = sorted((ROOT / "docs").glob("*.md"))
# Pages whose blocks take less than half a second.
QUICK = frozenset(["encoders", "serve", "speed"])
# Pages that state what a model has learned, and pages that count what is in the demo.
REAL_ENCODER = frozenset(["linking_spacy"])
WHOLE_DEMO = frozenset(["corpora", "distillation", "pretraining"])
NAMING_FILES = [
    *PAGES,
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
    *sorted(ROOT.glob("configs/**/*.cfg")),
    *sorted(ROOT.glob("configs/**/*.yml")),
    ROOT / "projects" / "entity_linker" / "README.md",
]
FOLDERS = ("spacy_bioclin", "benchmarks", "configs", "docs", "scripts", "tests", "projects")
FILE = re.compile(rf"(?<![\w/.$-])(?:{'|'.join(FOLDERS)})/[\w./{{}},*-]*[\w}}/]")
MODULE = re.compile(r"\bspacy_bioclin(?:\.[a-z_]\w*)+")
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="session")
def small_assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a tenth of the demo's notes, and with the encoders, but a narrow one of random
    weights in the place of bioclin-sm. `.ci/run` trains on the real one."""
    from transformers import AutoConfig, AutoModel

    source, folder = ROOT / "assets", tmp_path_factory.mktemp("docs") / "assets"
    encoder = folder / "encoders" / "bioclin-sm"
    weights = shutil.ignore_patterns("*.safetensors")
    shutil.copytree(source / "encoders" / "bioclin-sm", encoder, ignore=weights)
    narrow = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.from_pretrained(encoder, **narrow)).save_pretrained(encoder)
    for split in source.glob("demo/e?/*"):
        notes = sorted(split.glob("*.txt"))
        (folder / split.relative_to(source)).mkdir(parents=True)
        for note in notes[: max(10, len(notes) // 10)]:
            for path in (note, note.with_suffix(".ann")):
                shutil.copyfile(path, folder / path.relative_to(source))
    for path in (*source.glob("encoders/*"), *source.glob("demo/*")):
        link = folder / path.relative_to(source)
        if not link.exists():
            link.symlink_to(path, target_is_directory=path.is_dir())
    return folder


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shipped: Path) -> Path:
    """An empty folder with the repository's configs, current while the test runs; the pipelines
    that ship are installed."""
    use_packages(monkeypatch, shipped)
    (tmp_path / "configs").symlink_to(ROOT / "configs", target_is_directory=True)
    data = Path(os.environ.get("BIOCLIN_DATA", ROOT.parent / "shared" / "data"))
    monkeypatch.setenv("BIOCLIN_DATA", str(data.resolve()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] * (page.stem not in QUICK))
        for page in PAGES
        if code_blocks(page.read_text("utf-8"))
    ],
)
def test_code_blocks_run(page: Path, workplace: Path, small_assets: Path) -> None:
    small = {"encoders": page.stem not in REAL_ENCODER, "demo": page.stem not in WHOLE_DEMO}
    (workplace / "assets").mkdir()
    for path in (ROOT / "assets").iterdir():
        source = small_assets if small.get(path.name) else path.parent
        (workplace / "assets" / path.name).symlink_to(source / path.name)
    namespace: dict[str, object] = {"__name__": "__main__"}
    has_data = Path(os.environ["BIOCLIN_DATA"]).is_dir()
    printed = ""
    for block in code_blocks(page.read_text("utf-8")):
        if block.language == "text":
            assert printed == block.content, f"{page.name}, line {block.line}"
        elif has_data or "$BIOCLIN_DATA" not in block.content:
            printed = run_block(block, page.name, namespace)
        else:  # later blocks may read what this one makes
            pytest.skip(f"line {block.line} and the blocks after it need BIOCLIN_DATA")


def expand_braces(path: str) -> list[str]:
    """Expand the first `{a,b}` of a path, as a shell does."""
    before, brace, rest = path.partition("{")
    if not brace:
        return [path]
    choices, _, after = rest.partition("}")
    return [f"{before}{choice}{after}" for choice in choices.split(",")]


def test_files_and_python_names_exist() -> None:
    wrong = []
    for page in NAMING_FILES:
        text = page.read_text("utf-8")
        for match in FILE.finditer(text):
            for path in expand_braces(match[0]):
                placeholder = re.search(r"\b[A-Z]{3,}\b", path.replace("README", ""))
                base = page.parent if (page.parent / path).exists() else ROOT
                if not (placeholder or any(base.glob(path))):
                    wrong.append((page.name, path))
        wrong += [(page.name, name) for name in MODULE.findall(text) if not resolves(name)]
    assert wrong == []


def test_benchmarks_page_lists_every_script() -> None:
    folder = ROOT / "benchmarks"
    named = set(re.findall(r"`([\w/]+\.(?:py|sh))`", (folder / "README.md").read_text("utf-8")))
    assert {
        name for name in named if not (folder / name).exists() | (ROOT / name).exists()
    } == set()
    runnable = [path for path in folder.rglob("*.py") if "def main(" in path.read_text("utf-8")]
    scripts = {str(path.relative_to(folder)) for path in [*runnable, *folder.glob("*.sh")]}
    assert scripts - named == set()


def test_contributing_lists_every_room() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rooms = {path.parent.name for path in (ROOT / "spacy_bioclin").glob("*/__init__.py")}
    assert {room for room in rooms if f"`spacy_bioclin/{room}/`" not in table} == set()


def resolves(name: str) -> bool:
    """Tell whether a dotted name is a module, or an attribute of one."""
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
        return True
    except ModuleNotFoundError:
        return "." in name and hasattr(importlib.import_module(module), attribute)


def test_links_lead_somewhere() -> None:
    pages = [page for page in NAMING_FILES if page.suffix == ".md"]
    links = [(page, target) for page in pages for target in LINK.findall(page.read_text("utf-8"))]
    wrong = []
    for page, target in links:
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        if not target.startswith(("http:", "https:")) and not (
            linked.exists() and (not anchor or anchor in find_anchors(linked))
        ):
            wrong.append((page.name, target))
    assert wrong == []


@cache
def find_anchors(page: Path) -> set[str]:
    """Find what links into a page may name: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}


def test_commands_and_options_exist() -> None:
    command = typer.main.get_command(app)
    for page in (*PAGES, ROOT / "README.md"):
        text = page.read_text("utf-8")
        blocks = [one.content for one in code_blocks(text) if one.language in ("bash", "console")]
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for content in (*blocks, *re.findall(r"(?<!`)`(bioclin [^`]+)`(?!`)", prose)):
            for args in shell_commands(content, "bioclin"):
                check_command(command, args, page.name)


def check_command(command: Any, args: list[str], where: str) -> None:
    """Assert that a `bioclin` command exists and has the options that it is given."""
    rest = list(args)
    while rest and hasattr(command, "commands"):
        name = rest.pop(0)
        assert name in command.commands, f"{where}: no command {name} in {args}"
        command = command.commands[name]
    known = {option for param in command.params for option in param.opts}
    for word in rest:
        option = word.partition("=")[0]
        if option.startswith("-") and "." not in option and not re.match(r"-\d", option):
            assert option in known, f"{where}: no option {option} in {args}"


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
    for name, cell in (
        ("spacy-bioclin tokenizer + bioclin_sentences", "**{}**"),
        ("pySBD (es, char_span)", "{}"),
        ("spaCy tokenizer + sentencizer", "{}"),
    ):
        p, r, f = (
            f"{100 * figure:.2f}" for figure in sentences["splitters"][name]["boundaries"].values()
        )
        assert f"| {p} | {r} | {cell.format(f)} |" in page, name


def test_blocks_are_found() -> None:
    bash = "ls  # all\nbioclin convert a \\\n  b --lang es  # note\n"
    page = f"text\n```bash\n{bash}```\n```python\n1\n```\n"
    assert code_blocks(page) == [Block("bash", bash, 3), Block("python", "1\n", 8)]
    assert list(shell_commands(bash, "bioclin")) == [["convert", "a", "b", "--lang", "es"]]
    assert list(shell_commands("$ spacy train x", "spacy train")) == [["x"]]
