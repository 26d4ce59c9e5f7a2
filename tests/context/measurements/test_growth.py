"""Hostile text: work in proportion to its length, and no text breaks an invariant."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.context.measurements.measurement import COMPARATORS, KINDS
from spacy_bioclin.context.measurements.rules import around, find, reader
from spacy_bioclin.context.measurements.rules.find import find_measurements
from spacy_bioclin.context.measurements.rules.lexicon import get_lexicon
from spacy_bioclin.context.measurements.rules.scan import Scanner, fold

UNITS = ["7", "1/", "mg ", ", ", " ", "1 ", "1,", "1, ", "1-", "1 x ", "uno ", "one ", "cada "]
UNITS += ["Hb ", "Hb 1 ", "1.", "de 1 ", "1 a ", "<", "120/80 ", "twenty ", "1\n", "mayo ", "bid "]
UNITS += [
    "mg/",
    "1 mg/",
    "1 y ",
    "entre ",
    "a ",
    "x10",
    "10^",
    "½",
    "'",
    "1'",
    "más de ",
    "q1",
    "İ",
]
PIECES = [*UNITS, "años ", "5 cm", "12/03/2014", "3 x 4 cm", "a las 8 h", "/8h", "c/12h", "º", "\t"]
PIECES += [
    "de edad",
    "year-old",
    "two and a half weeks",
    "1/2",
    "%",
    "x 10^3/µL",
    "\U0001d7d9",
    "٣",
]


@pytest.mark.parametrize("lang", ["es", "en"])
@pytest.mark.parametrize("unit", UNITS)
def test_growth(unit: str, lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each search starts where the last ended, and reads a bounded number of characters."""
    calls = {"n": 0}

    def counted(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def count(*args: object) -> object:
            calls["n"] += 1
            return original(*args)

        monkeypatch.setattr(owner, name, count)

    counted(Scanner, "search")
    for name in ("number", "unit_at", "unit_of"):
        counted(reader.Reader, name)
    n_calls = []
    for n in (2_000, 4_000):
        calls["n"] = 0
        find_measurements(unit * (n // len(unit)), lang)
        n_calls.append(calls["n"])
    assert n_calls[1] <= 2 * n_calls[0] + 100
    assert n_calls[1] <= 40 * 4_000 / len(unit)


ROWS = ["7 ", "1, ", "12; ", "1.5 ", "1-", "12/", "1. ", "1\n"]
NEAR = [
    "",
    "Hb ",
    "7",
    "mm",
    " mg",
    ", 3 mm y 6 mm",
    " kg",
    "-0-1",
    "/80 mmHg",
    " x 4 cm",
    "edad 5 ",
    "\n",
]


@pytest.mark.parametrize("lang", ["es", pytest.param("en", marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", [*ROWS, "Hb 1 ", "1 y ", "(1) ", "1 / ", "1 x "])
def test_time_grows_with_the_text(unit: str, lang: str) -> None:
    """Ten times the text takes ten times the time; quadratic growth would take a hundred times."""
    seconds = []
    find_measurements(unit * 100, lang)
    for n_chars in (10_000, 100_000):
        started = time.process_time()
        find_measurements(unit * (n_chars // len(unit)), lang)
        seconds.append(time.process_time() - started)
    assert seconds[1] <= 40 * seconds[0] + 0.05


@given(
    st.sampled_from(ROWS),
    st.integers(1, 60),
    st.sampled_from(NEAR),
    st.sampled_from(NEAR),
    st.sampled_from(["es", "en"]),
)
@settings(max_examples=300, deadline=None)
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


@pytest.mark.parametrize("lang", ["es", "en"])
@pytest.mark.parametrize("blank", [" ", ""])
def test_every_comparator_is_read(lang: str, blank: str) -> None:
    """The look at the last word, which saves time, leaves out no comparator."""
    lexicon = get_lexicon(lang)
    for sign, forms in lexicon.data["comparators"].items():
        for form in forms.split():
            for article in ("", " the") if blank and form != "over" else ("",):
                text = f"({form.replace('_', blank)}{article} "
                found = around.find_comparator(text, len(text), 0, lexicon)
                assert found == (1, sign), text


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.sampled_from(["es", "en"]))
@settings(max_examples=400, deadline=None)
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
        assert one.high is None or one.kind in (
            "range",
            "blood_pressure",
            "duration",
            "age",
            "frequency",
        )


@given(st.text(max_size=60), st.sampled_from(["es", "en"]))
@settings(max_examples=300, deadline=None)
def test_any_text(text: str, lang: str) -> None:
    find_measurements(text, lang)
    assert len(fold(text)) == len(text)
