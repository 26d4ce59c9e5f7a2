"""Surrogates are the same as in golden.json, to the letter."""

import json
from importlib.metadata import version
from typing import Any

import pytest

from .make_golden import ALL, FORBIDDEN, GOLDEN, make_golden, make_shown


@pytest.fixture
def old() -> Any:
    content = json.loads(GOLDEN.read_text("utf-8"))
    if content["faker"] != version("Faker"):
        pytest.skip("surrogates depend on Faker's lists")
    return content


def test_surrogates(old: Any) -> None:
    assert make_shown() == old["shown"]
    made = make_golden([("es", frozenset()), ("en", FORBIDDEN)])
    assert {name: {**old["types"][name], **row} for name, row in made.items()} == old["types"]


@pytest.mark.slow
def test_all_surrogates(old: Any) -> None:
    assert make_golden(ALL) == old["types"]
