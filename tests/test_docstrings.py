"""Every public name is documented, and every docstring opens with a sentence."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from spacy_bioclin.cli import app

PACKAGE = Path(__file__).parents[1] / "spacy_bioclin"
Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | Function
SECTION = r"(?:RETURNS|YIELDS|RAISES)\b|[\w*]+(?:, [\w*]+)* \([^)]*\):"
NOT_A_SENTENCE = re.compile(SECTION)
NEXT_SECTION = re.compile(rf"\n(?=\s*(?:{SECTION}))")
SENTENCE_END = (".", ":", "?", "!", ".)", '."')


def documented(tree: ast.Module) -> Iterator[tuple[str, Documented, bool]]:
    """Walk a module.

    YIELDS (tuple): Dotted name, node, and whether it is public: no part of its name begins with an
        underscore, and it is not inside a function.
    """
    yield "module", tree, bool(tree.body)

    def walk(node: ast.AST, name: str, is_public: bool) -> Iterator[tuple[str, Documented, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | Function):
                own = f"{name}.{child.name}".lstrip(".")
                public = is_public and not child.name.startswith("_")
                yield own, child, public
                yield from walk(child, own, public and isinstance(child, ast.ClassDef))
            elif isinstance(child, ast.stmt):
                yield from walk(child, name, is_public)

    yield from walk(tree, "", True)


def mistakes(source: str) -> list[str]:
    """List what is wrong with the docstrings of a module."""
    found = []
    for name, node, is_public in documented(ast.parse(source)):
        docstring = ast.get_docstring(node)
        if docstring is None:
            if is_public:
                found.append(f"{name}: no docstring")
            continue
        opening = NEXT_SECTION.split(docstring.partition("\n\n")[0])[0].strip()
        if NOT_A_SENTENCE.match(opening):
            found.append(f"{name}: begins with {opening.split()[0]}")
        elif not opening.endswith(SENTENCE_END):
            found.append(f"{name}: the first paragraph has no full stop")
    return found


def test_docstrings_open_with_a_sentence() -> None:
    found = {
        str(path.relative_to(PACKAGE)): wrong
        for path in PACKAGE.rglob("*.py")
        if (wrong := mistakes(path.read_text("utf-8")))
    }
    assert found == {}


def help_texts(command: Any, name: str) -> Iterator[tuple[str, str | None]]:
    """Yield name and help of a command, of its options and of the commands in it."""
    yield name, command.help
    for param in command.params:
        if param.param_type_name == "option" or getattr(param, "help", None):
            yield f"{name} {param.name}", param.help
    for part, inner in getattr(command, "commands", {}).items():
        yield from help_texts(inner, f"{name} {part}")


def test_help_texts_begin_with_a_noun_or_a_verb() -> None:
    found = [
        f"{name}: {text}"
        for name, text in help_texts(typer.main.get_command(app), "bioclin")
        if not text or text.split()[0] in ("Of", "Nor", "As", "Which")
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""A module."""\ndef f():\n    """Do it."""', []),
        ('"""A module."""\ndef f():\n    pass', ["f: no docstring"]),
        ('"""A module."""\ndef _f():\n    pass', []),
        ('"""A module."""\nclass A:\n    """Be."""\n    def f(self): pass', ["A.f: no docstring"]),
        ('"""A module."""\nclass A:\n    """Be."""\n    def __call__(self): pass', []),
        ('"""M."""\ndef f():\n    """Do it."""\n    def g():\n        pass', []),
        ('"""M."""\ndef f():\n    """RETURNS (int): One."""', ["f: begins with RETURNS"]),
        ('"""M."""\ndef _f():\n    """YIELDS (int): One."""', ["_f: begins with YIELDS"]),
        ('"""M."""\ndef f(x):\n    """x (int): One."""', ["f: begins with x"]),
        (
            '"""M."""\ndef f(x):\n    """Do it\n\n    x (int): One."""',
            ["f: the first paragraph has no full stop"],
        ),
        ('"""M."""\ndef f(x):\n    """Do it.\n    x (int): One\n    """', []),
        ("def f(): pass", ["module: no docstring", "f: no docstring"]),
    ],
)
def test_mistakes_are_found(source: str, found: list[str]) -> None:
    assert mistakes(source) == found
