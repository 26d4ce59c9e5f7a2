"""Nothing that was found stays in the note, whatever is around it; the leak check sees the rest."""

import re
from datetime import date
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language

from spacy_bioclin.deid import make_pipeline, operators
from spacy_bioclin.deid.detect.repeats import find_repeats
from spacy_bioclin.deid.labels import scheme_labels
from spacy_bioclin.deid.operators import NoteContext, Target, generalize
from spacy_bioclin.deid.policy import OPERATORS
from spacy_bioclin.deid.result import DeidResult
from spacy_bioclin.deid.spans import PhiSpan
from spacy_bioclin.text import find_leaks
from tests.deid.test_component import KEY, make_nlp

HIDING = tuple(operator for operator in OPERATORS if operator != "keep")
NAME, ID, DATE, AGE = (
    "NOMBRE_SUJETO_ASISTENCIA",
    "ID_SUJETO_ASISTENCIA",
    "FECHAS",
    "EDAD_SUJETO_ASISTENCIA",
)
# {v} is a value, {l} its label, {h} 16 hexadecimal digits, {t} what looks like a token, {o} and {x}
# what this key and another one wrote.
SHAPES = (
    "[{v}]",
    "[[{v}]]",
    "[{l} {v}]",
    "[{v} {h}]",
    "[{l} {v} {h}]",
    "[{v} {t}]",
    "[{l}] {v} [{l}]",
    "{v} [{l}]",
    "[{l}]{v}[{l}]",
    "[{l} 12] {v}",
    "[[{l}] {v}]",
    "[{v} [{l} {h}]]",
    "\uff3b{l} {v}\uff3d",
    "{o} {v}",
    "[{v} {o}]",
    "{x} {v}",
    "{v}",
)


@cache
def hash_with(key: bytes) -> str:
    nlp = make_nlp(default="hash")
    nlp.get_pipe("bioclin_deid").key = key
    doc = nlp.make_doc("Otra Persona")
    doc.spans["phi"] = [doc.char_span(0, 12, label=NAME)]
    return nlp(doc)._.deid.text


WORDS = st.text("bcdfgklmnprtv", min_size=5, max_size=9).map(str.title)
VALUES = st.one_of(
    st.tuples(st.just(NAME), st.lists(WORDS, min_size=2, max_size=3).map(" ".join)),
    st.tuples(st.just(ID), st.integers(10**6, 10**16).map(str)),
    st.tuples(st.just(DATE), st.dates().map("{:%d/%m/%Y}".format)),
    st.tuples(st.just(AGE), st.integers(0, 120).map("{} años".format)),
)


class Planted(NamedTuple):
    """A note and its PHI: spans of the detectors (start, end, label, confidence), and values."""

    text: str
    spans: list[tuple[int, int, str, float]]
    values: list[tuple[str, str]]


@st.composite
def planted_notes(draw: st.DrawFn) -> Planted:
    text, spans, values = "Nota", [], []
    for label, value in draw(st.lists(VALUES, min_size=1, max_size=5)):
        marks = {
            "l": label,
            "h": draw(st.text("0123456789abcdef", min_size=16, max_size=24)),
            "t": draw(st.text("AZaz09_-", min_size=39, max_size=60)),
            "o": hash_with(KEY),
            "x": hash_with(KEY[::-1]),
        }
        shape = draw(st.sampled_from(SHAPES))
        before, _, after = shape.partition("{v}")
        start = len(text) + 1 + len(before.format(**marks))
        text = f"{text} {before.format(**marks)}{value}{after.format(**marks)}"
        wide = draw(st.tuples(st.integers(0, 30), st.integers(0, 30)))
        left, right = max(0, start - wide[0]), min(len(text), start + len(value) + wide[1])
        spans.append((left, right, label, draw(st.sampled_from([0.2, 0.7, 1.0]))))
        if draw(st.booleans()):  # another detector takes it for something that the policy keeps
            spans.append((left, right, "SEXO_SUJETO_ASISTENCIA", 1.0))
        values.append((label, value))
    return Planted(text + " fin", spans, values)


def run(nlp: Language, note: Planted) -> DeidResult:
    doc = nlp.make_doc(note.text)
    doc.spans["phi"] = [
        doc.char_span(start, end, label=label, alignment_mode="expand")
        for start, end, label, _ in note.spans
    ]
    doc.spans["phi"].attrs["scores"] = [confidence for *_, confidence in note.spans]
    return nlp(doc)._.deid


@cache
def pipeline(operator: str) -> Language:
    return make_nlp(default=operator, operators={"SEXO_SUJETO_ASISTENCIA": "keep"})


@pytest.mark.parametrize("operator", HIDING)
@settings(max_examples=30)
@given(planted_notes())
def test_nothing_planted_in_brackets_survives(operator: str, note: Planted) -> None:
    result = run(pipeline(operator), note)
    assert find_leaks(note.values, result.checked_text) == []
    names = [(label, value) for label, value in note.values if label in (NAME, ID)]
    assert find_leaks(names, result.text) == []
    assert find_leaks(result.phi_values, result.checked_text) == []


def test_notes_that_look_masked() -> None:
    wrong = []
    for lang, text, values in (
        (
            "es",
            "Derivado a [Marta García Gil, NHC 1234567, tarjeta 4539578763621486].",
            ("1234567", "4539578763621486"),
        ),
        ("en", "[MRN 123456] [ZIP 02139] [AGE 93]", ("123456", "02139", "93")),
        ("es", "Sra. Marta García [FECHAS]", ("Marta", "García")),
        ("es", "Sra. [FECHAS] Marta García", ()),
    ):
        safe = make_pipeline(lang, rules_only=True)(text)._.deid.text
        wrong += [value for value in values if value in safe]
    assert not wrong, wrong


def test_known_values_win_in_brackets_too() -> None:
    nlp = make_pipeline("es", rules_only=True)
    text = "Derivado a [Marta García Gil, NHC 1234567, 4539578763621486]. [NHC 99-1-2] [GARCÍA]"
    doc = nlp.make_doc(text)
    doc._.patient = {"names": ["Marta García Gil"], "identifiers": ["99-1-2"]}
    nlp.get_pipe("bioclin_deid").thresholds = dict.fromkeys(scheme_labels("meddocan"), 1.1)
    safe = nlp(doc)._.deid.text
    for value in ("Marta", "García", "GARCÍA", "Gil", "99-1-2"):
        assert value not in safe


@pytest.mark.parametrize(
    ("lang", "operator"),
    [("es", "mask"), ("en", "mask_number"), ("es", "hash"), ("en", "encrypt")],
)
def test_another_run_changes_nothing(lang: str, operator: str) -> None:
    nlp = make_pipeline(lang, rules_only=True, policy={"default": operator}, key=KEY)
    scheme = nlp.get_pipe("bioclin_deid").policy.scheme
    text = "".join(f"{label}: Zq{i}zq\n" for i, label in enumerate(scheme_labels(scheme)))
    doc = nlp.make_doc(text)
    places = [found.span() for found in re.finditer(r"Zq\d+zq", text)]
    doc.spans["phi"] = [
        doc.char_span(*place, label=label)
        for place, label in zip(places, scheme_labels(scheme), strict=True)
    ]
    safe = nlp(doc)._.deid.text
    assert "Zq" not in safe
    assert nlp(safe)._.deid.text == safe


GROUPS = "La paciente, de {a}, convive con su hija de {b}; su padre murió a los 92 años."


@cache
def generalizing(label: str) -> Language:
    return make_nlp(operators={label: "generalize"})


def test_a_group_of_ages_is_no_leak() -> None:
    for a, b in (("29 años", "20 años"), ("29 años", "29 años"), ("9", "19 años")):
        text = GROUPS.format(a=a, b=b)
        places = {value: text.index(value) for value in (a, b, "92 años")}
        spans = [(at, at + len(value), AGE, 1.0) for value, at in places.items()]
        result = run(generalizing(AGE), Planted(text, spans, []))
        assert find_leaks(result.phi_values, result.checked_text) == []
        assert "90+ años" in result.text and "92" not in result.text


def test_a_generalized_age_is_an_age_alone() -> None:
    values = ["63 años, Marta García", "63 a los 65 años", "63,5 años", "6311", "3/12"]
    for value in (*values, "tres meses"):
        text = f"Paciente de {value} ."
        note = Planted(text, [(12, 12 + len(value), AGE, 1.0)], [])
        result = run(generalizing(AGE), note)
        assert result.text == f"Paciente de [{AGE}] ."
        assert result.audit["operators"] == {"mask instead of generalize": 1}


class Day(date):
    @classmethod
    def today(cls) -> "Day":
        return cls(2024, 6, 1)


def test_safe_harbor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "date", Day)
    note = NoteContext("en", None, {})
    cases = [
        ("02115", "postcode", "021**"),
        ("02115-1234", "postcode", "021**"),
        ("82101", "postcode", "000**"),  # Sundance, Wyoming: fewer than 20,000 people
        ("12/03/2019", "date", "2019"),
        ("DOB 12/03/1920", "date", None),  # over 89
        ("1 May 1935", "date", "1935"),
        ("1 May 1934", "date", None),
    ]
    for value, phi_type, expected in cases:
        assert generalize(Target(value, "", "X", phi_type), note) == expected, value


def test_a_province_that_is_a_town_too_is_no_leak() -> None:
    text = "Vive en Madrid, 28013 Madrid."
    spans = [(8, 14, "TERRITORIO", 1.0), (16, 28, "TERRITORIO", 1.0)]
    result = run(generalizing("TERRITORIO"), Planted(text, spans, []))
    assert result.text == "Vive en [TERRITORIO], Madrid."
    assert find_leaks(result.phi_values, result.checked_text) == []


def test_a_leak_beside_what_was_written_is_found() -> None:
    """The check searches all of the note's own text, up to the very edge of a mask."""
    text = "De 29 años."
    result = run(generalizing(AGE), Planted(text, [(3, 10, AGE, 1.0)], []))
    raw = result._raw
    for leak in ("29 años 20-29 años", "20-29 años 29 años", "20-29 años; 2-9-años y 29\naños"):
        start = leak.index("20-29 años")
        raw["text"] = f"De {leak}."
        raw["written"] = [[3 + start, 3 + start + len("20-29 años")]]
        is_leak = leak.replace("20-29 años", "").replace("2-9-años", "")
        assert (find_leaks(result.phi_values, result.checked_text) == [AGE]) == ("29" in is_leak)


def test_a_word_that_a_mask_makes_whole_is_hidden() -> None:
    text = "Marta García acude. GarcíaLugo"
    spans = [PhiSpan(0, 12, NAME, 1.0, "ner"), PhiSpan(26, 30, "TERRITORIO", 1.0, "ner")]
    found = find_repeats(spans, text, keeps=lambda span: False)
    assert found == [spans[0], PhiSpan(20, 26, NAME, 1.0, "repeat"), spans[1]]
    assert find_repeats(spans[:1], text, keeps=lambda span: False) == spans[:1]


def test_surnames_of_a_note_in_small_letters_are_no_ordinary_words() -> None:
    text = "ana lugo acude. lugo refiere dolor"
    found = find_repeats([PhiSpan(0, 8, NAME, 1.0, "ner")], text, keeps=lambda span: False)
    assert [text[span.start : span.end] for span in found] == ["ana lugo", "lugo"]


def test_a_name_that_is_a_word_of_a_label_is_hidden_everywhere() -> None:
    text = "Ana Calle acude. Calle refiere dolor. [CALLE] [PAIS]"
    result = run(make_nlp(), Planted(text, [(0, 9, NAME, 1.0)], []))
    assert result.text == f"[{NAME}] acude. [{NAME}] refiere dolor. [CALLE] [PAIS]"
    assert find_leaks(result.phi_values, result.checked_text) == []


def test_two_types_of_one_label_follow_their_own_operator() -> None:
    """MEDDOCAN has one label for towns and postcodes; the value decides."""
    text = "Vive en Lugo, 27001, y antes en 27001 o Lugo."
    spans = [(8, 12, "TERRITORIO", 1.0), (14, 19, "TERRITORIO", 1.0)]
    for kept, hidden in (("city", "postcode"), ("postcode", "city")):
        result = run(make_nlp(operators={kept: "keep", hidden: "mask"}), Planted(text, spans, []))
        assert find_leaks(result.phi_values, result.checked_text) == []
        values = {"city": "Lugo", "postcode": "27001"}
        assert values[hidden] not in result.text and result.text.count(values[kept]) == 2


def test_a_span_without_a_number_for_confidence_counts_as_certain() -> None:
    note = Planted("Acude Ana Ruiz hoy", [(6, 14, NAME, float("nan"))], [])
    assert run(make_nlp(), note).text == f"Acude [{NAME}] hoy"


def test_a_shifted_date_may_be_another_date_of_the_note_but_not_of_the_record() -> None:
    nlp = make_nlp(default="surrogate")
    shifted = run(nlp, Planted("Cita 12/03/2018", [(5, 15, DATE, 1.0)], [])).text[5:]
    text = f"Cita 12/03/2018 y {shifted}"
    result = run(nlp, Planted(text, [(5, 15, DATE, 1.0), (18, 28, DATE, 1.0)], []))
    assert find_leaks(result.phi_values, result.checked_text) == []
    assert (DATE, "12/03/2018") in result.phi_values and (DATE, shifted) in result.phi_values
