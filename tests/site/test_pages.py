"""The pages of the site that are made from code and repository, and its table of contents."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from scripts.docs import api, commands, text
from scripts.docs.links import OUTSIDE, find_outside, find_source, find_uri, rewrite_links
from spacy_bioclin.cli import app
from tests.markdown import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))


@pytest.fixture(scope="module")
def nav() -> list[str]:
    """The pages that the table of contents of the site names."""
    content = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    return re.findall(r"([\w/.-]+\.md)$", content, re.MULTILINE)


def test_every_page_is_in_the_table_of_contents(nav: list[str]) -> None:
    """A page that is in no menu is found by nobody."""
    assert [page for page in PAGES if page not in nav] == []
    notebooks = {f"notebooks/{path.stem}.md" for path in DOCS.glob("notebooks/*.ipynb")}
    assert {page for page in nav if page.startswith("notebooks/")} == notebooks
    assert len(nav) == len(set(nav))


def test_every_page_is_in_the_list_of_the_docs() -> None:
    listed = re.findall(r"\]\(([\w.]+\.md)\)", (DOCS / "README.md").read_text("utf-8"))
    assert sorted(listed) == [page for page in PAGES if page != "README.md"]


@pytest.mark.parametrize("uri", ["README.md", f"{OUTSIDE}/README.md", f"{OUTSIDE}/SECURITY.md"])
def test_links_lead_to_pages_of_the_site(uri: str) -> None:
    source = find_source(uri)
    assert source is not None
    made = rewrite_links(source.read_text("utf-8"), uri)
    copied = [*DOCS.rglob("*.md"), *DOCS.glob("images/*.png")]
    pages = {find_uri(path) for path in [*find_outside(), *copied]}
    for target in re.findall(r"\]\(([^)#\s]+)", made):
        if not target.startswith("http") and "docs/" not in target:
            there = (Path("/") / Path(uri).parent / target).resolve().relative_to("/")
            assert there.as_posix() in pages, target


LINKS = (
    ("README.md", "[a](../README.md#b)", f"[a]({OUTSIDE}/README.md#b)"),
    (f"{OUTSIDE}/README.md", "[a](docs/run.md#b)", "[a](../run.md#b)"),
    (f"{OUTSIDE}/README.md", "[a](docs/README.md)", "[a](../README.md)"),
    ("run.md", "[a](context.md)", "[a](context.md)"),
    ("notebooks.md", "[a](notebooks/link.ipynb)", "[a](notebooks/link.md)"),
    ("run.md", "[a](https://x.org/y) [b](#c)", "[a](https://x.org/y) [b](#c)"),
    # A folder is no page: its name stays.
    (f"{OUTSIDE}/README.md", "[`x`](spacy_bioclin/catalog/tasks)", "`x`"),
    ("run.md", "```text\n[a](../README.md)\n```", "```text\n[a](../README.md)\n```"),
    ("reference/commands.md", "[a](../repository/x.md)", "[a](../repository/x.md)"),
)


def test_links_are_rewritten() -> None:
    wrong = [(row, got) for row in LINKS if (got := rewrite_links(row[1], row[0])) != row[2]]
    assert not wrong


def test_commands_page_has_every_command_and_option() -> None:
    page = commands.write_page()

    def walk(command: Any, name: str) -> None:
        for part, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{name} {part}")
        if hasattr(command, "commands"):
            return
        _, found, section = page.partition(f"\n### {name}\n")
        section = section.partition("\n### ")[0]
        assert found, name
        for param in command.params:
            options = param.opts if param.param_type_name == "option" else [param.name.upper()]
            is_there = any(f"`{option}" in section for option in [*options, str(param.metavar)])
            assert is_there or param.hidden, f"{name} {options}"

    walk(typer.main.get_command(app), "bioclin")


def test_python_page_has_the_names_of_the_docs() -> None:
    page = api.write_names()
    names = api.find_names()
    assert "make_pipeline" in names["spacy_bioclin.deid"]
    for module, several in names.items():
        assert f"\n## {module}\n" in page
        for name in several:
            assert f"\n### {name}\n" in page


def test_registered_page_has_every_entry_point() -> None:
    page = api.write_registered()
    config = (ROOT / "setup.cfg").read_text("utf-8").partition("[options.entry_points]")[2]
    for name in re.findall(r"^    ([\w.-]+) = spacy_bioclin", config, re.MULTILINE):
        assert f"\n### {name}\n" in page or name == "bioclin"


def say(first: int, *, second: str = "a | b") -> None:
    """Say something.

    A second paragraph, with
    a second line.

    first (int): A number,
        with more about it.
    second (str): A text.
    RAISES (ValueError): Never.
    """


def test_docstrings_are_read() -> None:
    said = text.read_docstring(say)
    assert said.paragraphs == ["Say something.", "A second paragraph, with\na second line."]
    assert said.entries == [
        ("first", "int", "A number, with more about it."),
        ("second", "str", "A text."),
        ("RAISES", "ValueError", "Never."),
    ]
    assert api.write_signature("say", say) == "say(first, *, second='a | b')"
    assert text.write_table(["a"], [["b | c"]]) == "| a |\n| --- |\n| b \\| c |\n"
