"""What nearly all tests of de-identification need, made once."""

import pytest

from spacy_bioclin.deid.detect.rule_data import LANGS
from spacy_bioclin.deid.detect.rules import load_rules


@pytest.fixture(scope="session", autouse=True)
def rules() -> None:
    """Load the rules of both languages, which takes a second, before any test is timed."""
    for lang in LANGS:
        load_rules(lang)
