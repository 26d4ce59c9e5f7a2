"""Hostile text: work in proportion to its length, and no text breaks an invariant."""

from functools import partial
from itertools import cycle, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.context.measurements.measurement import COMPARATORS, KINDS
from spacy_bioclin.context.measurements.rules import around, find, reader
from spacy_bioclin.context.measurements.rules.find import find_measurements
from spacy_bioclin.context.measurements.rules.lexicon import get_lexicon
from spacy_bioclin.context.measurements.rules.scan import Scanner, fold
from tests.hostile.growth.measure import is_linear

UNITS = ["7", "1/", "mg ", ", ", " ", "1 ", "1,", "1, ", "1-", "1 x ", "uno ", "one ", "cada "]
UNITS += ["Hb ", "Hb 1 ", "1.", "de 1 ", "1 a ", "<", "120/80 ", "twenty ", "1\n", "mayo ", "bid "]
UNITS += ["mg/", "1 mg/", "1 y ", "entre ", "a ", "x10", "10^", "½", "'", "1'", "más de ", "q1"]
UNITS += ["İ"]
PIECES = [*UNITS, "años ", "5 cm", "12/03/2014", "3 x 4 cm", "a las 8 h", "/8h", "c/12h", "º", "\t"]
PIECES += ["de edad", "year-old", "two and a half weeks", "1/2", "%", "x 10^3/µL", "\U0001d7d9"]
PIECES += ["٣"]
ROWS = ["7 ", "1, ", "12; ", "1.5 ", "1-", "12/", "1. ", "1\n"]
NEAR = ["", "Hb ", "7", "mm", " mg", ", 3 mm y 6 mm", " kg", "-0-1", "/80 mmHg", " x 4 cm"]
NEAR += ["edad 5 ", "\n"]
WITH_HIGH = ("range", "blood_pressure", "duration", "age", "frequency")


def test_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each search starts where the last ended, and reads a bounded number of characters."""
    calls = {"n": 0}

    def counted(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def count(*args: object) -> object:
            calls["n"] += 1
            return original(*args)

        monkeypatch.setattr(owner, name, count)

    def count_calls(text: str, lang: str) -> int:
        calls["n"] = 0
        find_measurements(text, lang)
        return calls["n"]

    counted(Scanner, "search")
    for name in ("number", "unit_at", "unit_of"):
        counted(reader.Reader, name)
    wrong = []
    for unit, lang in product(UNITS, ("es", "en")):
        few, many = (count_calls(unit * (n // len(unit)), lang) for n in (500, 1_000))
        if many > min(2 * few + 20, 40 * 1_000 / len(unit)):
            wrong.append((unit, lang, few, many))
    assert not wrong, wrong


def test_time_grows_with_the_text() -> None:
    """What no call tells of: no pattern looks through the text again for each number."""
    units = [*ROWS, "Hb 1 ", "1 y ", "(1) ", "1 / ", "1 x "]
    wrong = [
        (unit, lang)
        for unit, lang in zip(units, cycle(("es", "en")), strict=False)
        if not is_linear(partial(find_measurements, lang=lang), unit, 12_000)
    ]
    assert not wrong, wrong


@given(
    st.sampled_from(ROWS),
    st.integers(1, 60),
    st.sampled_from(NEAR),
    st.sampled_from(NEAR),
    st.sampled_from(["es", "en"]),
)
@settings(max_examples=25)
def test_rows_of_numbers_may_be_skipped(
    unit: str, n: int, before: str, after: str, lang: str
) -> None:
    """What is skipped in a row of numbers is nothing that would have been found."""
    text = before + unit * n + after
    fast = find_measurements(text, lang)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(find, "_LAST_OF_ROW", len(text))
        assert find_measurements(text, lang) == fast


def test_a_row_of_numbers_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = []
    original = reader.Reader.number
    monkeypatch.setattr(
        reader.Reader, "number", lambda *args: numbers.append(args[2]) or original(*args)
    )
    find_measurements("7 " * 10_000, "es")
    assert len(numbers) < 1_000


def test_no_more_than_a_window_is_read() -> None:
    text = "Hb " + "x " * 100_000 + "5"
    assert len(around.words_before(text, len(text))) <= around._WINDOW


def test_every_comparator_is_read() -> None:
    """The look at the last word, which saves time, leaves out no comparator."""
    for lang, blank in product(("es", "en"), (" ", "")):
        lexicon = get_lexicon(lang)
        for sign, forms in lexicon.data["comparators"].items():
            for form in forms.split():
                for article in ("", " the") if blank and form != "over" else ("",):
                    text = f"({form.replace('_', blank)}{article} "
                    found = around.find_comparator(text, len(text), 0, lexicon)
                    assert found == (1, sign), text


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.sampled_from(["es", "en"]))
@settings(max_examples=80)
def test_invariants(text: str, lang: str) -> None:
    place = 0
    for one in find_measurements(text, lang):
        assert place <= one.start_char < one.end_char <= len(text)
        place = one.end_char
        assert one.kind in KINDS and one.comparator in (None, *COMPARATORS)
        assert not text[one.start_char].isspace() and not text[one.end_char - 1].isspace()
        if one.kind == "date":
            assert isinstance(one.value, str) and one.unit is None
        elif one.kind == "size":
            assert isinstance(one.value, tuple) and len(one.value) > 1
        else:
            assert isinstance(one.value, float)
        assert one.high is None or one.kind in WITH_HIGH


@given(st.text(max_size=60), st.sampled_from(["es", "en"]))
@settings(max_examples=60)
def test_any_text(text: str, lang: str) -> None:
    find_measurements(text, lang)
    assert len(fold(text)) == len(text)
