"""Surrogates are the same as in golden.json, to the letter."""

import json
from importlib.metadata import version

import pytest

from .make_golden import GOLDEN, make_golden, make_shown

OLD = json.loads(GOLDEN.read_text("utf-8"))
pytestmark = pytest.mark.skipif(
    OLD["faker"] != version("Faker"), reason="surrogates depend on Faker's lists"
)


def test_shown_surrogates() -> None:
    assert make_shown() == OLD["shown"]


def test_all_surrogates() -> None:
    assert make_golden() == OLD["types"]
