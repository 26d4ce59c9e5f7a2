"""The reference of Python names and of registered names, made from the docstrings."""

import importlib
import inspect
import re
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import spacy

from .text import write_code, write_docstring, write_table

ROOT = Path(__file__).parents[2]
IMPORT = re.compile(
    r"^\s*from (spacy_bioclin[\w.]*) import (?:\(([\w,\s]+)\)|([\w, ]+))$", re.MULTILINE
)
NAMES_HEAD = """# Python names

The functions and classes that the README and the pages import. They change only with a deprecation
warning, and the [changelog](../repository/CHANGELOG.md) says so. Other names of the package may
change in any release.
"""
REGISTERED_HEAD = """# Registered names

The names that configs use. Installing the package registers them with spaCy: nothing has to be
imported.
"""
GROUPS = {
    "spacy_factories": "Components",
    "spacy_tokenizers": "Tokenizers",
    "spacy_architectures": "Architectures",
    "spacy_readers": "Corpus readers",
    "spacy_augmenters": "Augmenters",
    "spacy_batchers": "Batchers",
    "spacy_scorers": "Scorers",
    "thinc_schedules": "Schedules",
    "thinc_layers": "Layers",
    "spacy_misc": "Others",
}


def write_names() -> str:
    """Write the page of the names that README and docs import, by module."""
    parts = [NAMES_HEAD]
    for module, names in sorted(find_names().items()):
        parts.append(f"## {module}\n")
        for name in sorted(names, key=str.lower):
            thing = getattr(importlib.import_module(module), name)
            parts.append(f"### {name}\n")
            parts.append(write_thing(name, thing))
    return "\n".join(parts)


def find_names() -> dict[str, set[str]]:
    """Find the names that README and docs import: module -> names."""
    found: dict[str, set[str]] = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for module, several, one in IMPORT.findall(page.read_text("utf-8")):
            names = {name.strip() for name in (several or one).split(",")} - {""}
            found.setdefault(module, set()).update(names)
    return found


def write_thing(name: str, thing: Any) -> str:
    """Write a function, a class with its methods, or a constant."""
    if inspect.ismodule(thing):
        return f"{inspect.cleandoc(thing.__doc__ or '')}\n"
    if not callable(thing):
        return f"```python\n{name} = {thing!r}\n```\n"
    parts = [f"```python\n{write_signature(name, thing)}\n```\n", write_docstring(thing)]
    if inspect.isclass(thing):
        for method, function in list_methods(thing):
            parts.append(f"#### {name}.{method}\n")
            if not isinstance(function, property):
                parts.append(f"```python\n{write_signature(method, function)}\n```\n")
            parts.append(write_docstring(function))
    return "\n".join(parts) + "\n"


def list_methods(thing: type) -> Iterator[tuple[str, Any]]:
    """List the public methods and properties that a class itself defines, if documented."""
    for name, value in vars(thing).items():
        function = getattr(value, "__func__", value)
        is_ours = inspect.isfunction(function) or isinstance(function, property)
        if not name.startswith("_") and is_ours and function.__doc__:
            yield name, function


def write_signature(name: str, thing: Any) -> str:
    """Write how something is called, an argument per line if it is long."""
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return f"{name}(...)"
    arguments = [
        str(argument).partition(":")[0].partition("=")[0].strip()
        + ("" if argument.default is argument.empty else f"={write_value(argument.default)}")
        for argument in signature.parameters.values()
        if argument.name != "self"
    ]
    kinds = list(signature.parameters.values())
    keyword = next((i for i, one in enumerate(kinds) if one.kind is one.KEYWORD_ONLY), None)
    if keyword is not None and not any(one.kind is one.VAR_POSITIONAL for one in kinds):
        arguments.insert(keyword - sum(one.name == "self" for one in kinds), "*")
    line = f"{name}({', '.join(arguments)})"
    if len(line) <= 88:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), ")"])


def write_value(value: Any) -> str:
    """Write a default; a function by its name."""
    return getattr(value, "__name__", None) or repr(value)


def write_registered() -> str:
    """Write the page of registered names with their settings."""
    config = ConfigParser()
    config.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    parts = [REGISTERED_HEAD]
    for group, title in GROUPS.items():
        parts.append(f"## {title}\n")
        for line in filter(None, config["options.entry_points"].get(group, "").splitlines()):
            name, _, path = (part.strip() for part in line.partition("="))
            parts.append(f"### {name}\n")
            parts.append(write_one(group, name, path))
    return "\n".join(parts)


def write_one(group: str, name: str, path: str) -> str:
    """Write a registered name: what it makes, and its arguments or settings."""
    module, _, function = path.partition(":")
    thing = getattr(importlib.import_module(module), function)
    if group != "spacy_factories":
        return f"```python\n{write_signature(function, thing)}\n```\n\n{write_docstring(thing)}\n"
    settings = spacy.blank("es").get_factory_meta(name).default_config
    rows = [(write_code(key), write_code(shorten(value))) for key, value in settings.items()]
    table = write_table(("setting", "default"), rows) if rows else ""
    return f"{write_docstring(thing, skip=('nlp', 'name', 'RETURNS'))}\n\n{table}\n"


def shorten(value: Any) -> str:
    """Write the default of a setting; a registered function by its name alone."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key.startswith("@"):
                return f"{key} = {inner!r}"
    return repr(value)
