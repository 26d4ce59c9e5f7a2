"""The language of a note is a guess, and none where there is nothing to tell it by."""

import pytest

from spacy_bioclin.runner.notes.language import MIN_CHARS, guess_language

ES = "Paciente con antecedentes de asma que acude por fiebre, tos y disnea de tres días."
EN = "The patient was admitted with fever, cough and shortness of breath for three days."
CA = "Pacient amb antecedents d'asma que consulta per febre, tos i dispnea de tres dies."


def test_languages_are_told_apart() -> None:
    pytest.importorskip("py3langid", reason="py3langid is not installed")
    assert [guess_language(text) for text in (ES, EN, CA)] == ["es", "en", "ca"]
    assert guess_language(ES * 5000 + EN) == "es"  # by its beginning


def test_what_tells_nothing_has_no_language() -> None:
    assert guess_language("") is None
    assert guess_language(ES[: MIN_CHARS - 1]) is None
    assert guess_language("38.5 120/80 " * 20) is None
