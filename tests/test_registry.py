"""Every name that setup.cfg registers is found in spaCy's registry, and none is left out."""

from configparser import ConfigParser
from pathlib import Path

import spacy
from spacy import registry

SETUP_CFG = Path(__file__).parents[1] / "setup.cfg"
NOT_SPACY = {"console_scripts"}


def entry_points() -> list[tuple[str, str, str]]:
    """(group, name, "module:attribute") of each entry point."""
    config = ConfigParser()
    config.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    config.read(SETUP_CFG, encoding="utf-8")
    found = []
    for group, lines in config["options.entry_points"].items():
        for line in filter(None, lines.splitlines()):
            name, _, target = line.partition("=")
            found.append((group, name.strip(), target.strip()))
    return found


REGISTERED = [entry for entry in entry_points() if entry[0] not in NOT_SPACY]


def test_names_resolve() -> None:
    nlp = spacy.blank("es")
    wrong = []
    for group, name, target in REGISTERED:
        kind = group.partition("_")[2]
        if kind == "factories":
            found = nlp.has_factory(name)
        else:
            function = registry.get(kind, name)
            found = f"{function.__module__}:{function.__qualname__}" == target
        if not found:
            wrong.append(name)
    assert wrong == []


def test_factories_work_bare() -> None:
    for name in (name for group, name, _ in REGISTERED if group == "spacy_factories"):
        nlp = spacy.blank("en")
        nlp.add_pipe(name)
        assert nlp.pipe_names == [name]


def test_names_are_versioned_and_registered_once() -> None:
    names = [(group, name) for group, name, _ in REGISTERED]
    assert len(set(names)) == len(names)
    for group, name in names:
        if group == "spacy_factories":
            assert name.startswith("bioclin_")
        else:
            assert name.startswith("spacy-bioclin.") and name.rpartition(".")[2][1:].isdigit()
