"""Each command of `spacy` works on the shipped configs and on the pipelines that they train."""

from collections.abc import Callable
from pathlib import Path

import pytest
from spacy.util import load_config

from .fixtures import CONFIGS, NAMES, spacy_cli

Trained = Callable[[str], Path]
pytestmark = pytest.mark.parametrize("name", NAMES)


def test_debug_config(name: str, contract_options: list[object]) -> None:
    spacy_cli("debug", "config", CONFIGS / f"{name}.cfg")
    spacy_cli("debug", "config", CONFIGS / f"{name}.cfg", *contract_options)


def test_fill_config_finds_every_setting(name: str, tmp_path: Path) -> None:
    """A component passes its own `spans_key` to its scorer, so the scorer's is not listed."""
    spacy_cli("init", "fill-config", CONFIGS / f"{name}.cfg", tmp_path / "filled.cfg")
    ours = load_config(CONFIGS / f"{name}.cfg")
    filled = load_config(tmp_path / "filled.cfg")
    for component in filled["components"].values():
        if "scorer" in component:
            assert component["scorer"].pop("spans_key") is None
    assert filled == ours
    spacy_cli("debug", "config", tmp_path / "filled.cfg")


def test_debug_data(name: str, contract_options: list[object]) -> None:
    shown = spacy_cli("debug", "data", CONFIGS / f"{name}.cfg", *contract_options)
    assert "Pipeline can be initialized with data" in shown
