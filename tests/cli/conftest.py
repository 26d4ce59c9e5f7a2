"""Fixtures of the tests of commands."""

from pathlib import Path
from typing import Any

import pytest
from spacy.language import Language

from spacy_bioclin.cli import loading
from spacy_bioclin.cli.deid.setup import Setup
from spacy_bioclin.cli.run import run

_KEPT: dict[object, Language] = {}


@pytest.fixture
def kept_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands of this process load each pipeline once, which is most of their time.

    Not for commands that change a pipeline, or that work in other processes.
    """
    real, real_of_deid = loading.load_pipeline, Setup.load

    def load(name: str, **options: Any) -> Language:
        try:
            files = [path for path in Path(name).rglob("*") if path.is_file()]
            state = tuple((str(path), path.stat().st_mtime_ns) for path in sorted(files))
        except OSError:
            state = ()
        if not state or options.get("for_deid"):
            return real(name, **options)
        key = (name, state, repr(options))
        if key not in _KEPT:
            _KEPT[key] = real(name, **options)
        return _KEPT[key]

    def load_rules(setup: Setup) -> Language:
        if setup.pipeline is not None:
            return real_of_deid(setup)
        key = (setup.lang, repr(setup.policy), setup.key.reveal())
        if key not in _KEPT:
            _KEPT[key] = real_of_deid(setup)
        return _KEPT[key]

    load_rules.__name__ = "load"  # by which other processes find it
    monkeypatch.setattr(loading, "load_pipeline", load)
    monkeypatch.setattr(run, "load_pipeline", load)
    monkeypatch.setattr(Setup, "load", load_rules)
