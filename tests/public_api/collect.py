"""Collect the public API of the installed package as one flat table.

    python -m tests.public_api.collect > tests/public_api/VERSION.json   # at a release

The public API is what the README and the docs name: registered names with their arguments, settings
of components, `doc._` and `span._` attributes, commands with their options, keys of the configs,
and the Python names that the docs import.
"""

import importlib
import inspect
import json
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import spacy
import typer
from confection import Config
from spacy.tokens.underscore import Underscore

import spacy_bioclin
from spacy_bioclin.cli import app

ROOT = Path(__file__).parents[2]
IMPORT = re.compile(r"^\s*from (spacy_bioclin[\w.]*) import ([\w, ]+)$", re.MULTILINE)

Entry = tuple[str, str]  # what it is ("command convert --lang"), and its value


def collect_api() -> dict[str, str]:
    """Collect the whole table, sorted."""
    parts = (registered(), attributes(), commands(), config_keys(), python_names())
    return dict(sorted(entry for part in parts for entry in part))


def registered() -> Iterator[Entry]:
    """Find the registered functions with their arguments, and the settings of the factories."""
    config = ConfigParser()
    config.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    for group, lines in config["options.entry_points"].items():
        for line in filter(None, lines.splitlines()):
            name = line.partition("=")[0].strip()
            if group == "spacy_factories":
                settings = spacy.blank("es").get_factory_meta(name).default_config
                yield f"factory {name}", ""
                yield from _flatten(f"factory {name}", settings)
            elif group != "console_scripts":
                function = spacy.registry.get(group.partition("_")[2], name)
                yield f"{group} {name}", ""
                for argument in inspect.signature(function).parameters.values():
                    required = argument.default is argument.empty
                    value = "required" if required else repr(argument.default)
                    yield f"{group} {name} {argument.name}", value


def _flatten(prefix: str, values: Mapping[str, Any]) -> Iterator[Entry]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flatten(f"{prefix} {key}", value)
        else:
            yield f"{prefix} {key}", repr(value)


def attributes() -> Iterator[Entry]:
    """Find the `doc._` and `span._` attributes of the package."""
    for module in pkgutil.walk_packages(spacy_bioclin.__path__, "spacy_bioclin."):
        if not module.name.endswith("__main__"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                importlib.import_module(module.name)
    nlp = spacy.blank("es")
    for name in ("bioclin_ner", "bioclin_hf_ner", "bioclin_phi_rules", "bioclin_context"):
        nlp.add_pipe(name)
    for name in ("bioclin_deid", "bioclin_linker", "bioclin_sections", "bioclin_measurements"):
        nlp.add_pipe(name)
    for kind in ("doc", "span"):
        for name in getattr(Underscore, f"{kind}_extensions").keys() - {"trf_data"}:
            yield f"{kind}._.{name}", ""


def commands() -> Iterator[Entry]:
    """Find the commands with their arguments and options."""

    def walk(command: Any, name: str) -> Iterator[Entry]:
        if hasattr(command, "commands"):
            for part, inner in command.commands.items():
                yield from walk(inner, f"{name} {part}")
            return
        yield name, ""
        for param in command.params:
            option = "/".join([*param.opts, *param.secondary_opts])
            shown = option if param.param_type_name == "option" else param.name.upper()
            default = param.default() if callable(param.default) else param.default
            yield f"{name} {shown}", "required" if param.required else repr(default)

    yield from walk(typer.main.get_command(app), "command")


def config_keys() -> Iterator[Entry]:
    """Find the keys of the configs that ship."""
    for path in sorted((ROOT / "configs").glob("*.cfg")):
        config = Config().from_disk(path, interpolate=False)
        for key, _ in _flatten(f"config {path.name}", config):
            yield key, ""


def python_names() -> Iterator[Entry]:
    """Find the Python names that README and docs import, and those that a release had."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    found = {
        f"python {module}.{name.strip()}"
        for page in pages
        for module, names in IMPORT.findall(page.read_text("utf-8"))
        for name in names.split(",")
    }
    for released in Path(__file__).parent.glob("*.json"):
        found.update(key for key in json.loads(released.read_text("utf-8")) if key[:7] == "python ")
    for key in found:
        module, _, name = key[7:].rpartition(".")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                getattr(importlib.import_module(module), name)
            except (ImportError, AttributeError):
                continue
        yield key, ""


if __name__ == "__main__":
    json.dump(collect_api(), sys.stdout, indent=1)
    sys.stdout.write("\n")
