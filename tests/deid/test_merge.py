"""Overlapping spans become one of each letter, and the most telling label wins."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spacy_bioclin.deid.labels import possible_labels
from spacy_bioclin.deid.merge import choose_labels, merge_spans
from spacy_bioclin.deid.spans import KNOWN_PATIENT, PhiSpan

TEXT = "Dra. Ana Ruiz, 28013 Madrid. " * 4


def merge(*spans: PhiSpan, overlaps: str = "confident", keep: str = "") -> list[PhiSpan]:
    return merge_spans(spans, TEXT, overlaps=overlaps, keeps=lambda span: span.label == keep)


def test_the_most_confident_wins_and_the_rest_stays_hidden() -> None:
    long, sure = PhiSpan(0, 20, "PLACE", 0.6, "a"), PhiSpan(5, 13, "NAME", 0.9, "b")
    assert merge(long, sure) == [
        PhiSpan(0, 4, "PLACE", 0.6, "a"),
        PhiSpan(5, 13, "NAME", 0.9, "b"),
        PhiSpan(13, 20, "PLACE", 0.6, "a"),
    ]
    assert merge(long, sure, overlaps="longest") == [long]


def test_agreement_is_told() -> None:
    (span,) = merge(PhiSpan(5, 13, "NAME", 0.9, "ner"), PhiSpan(5, 13, "NAME", 0.7, "title"))
    assert span == PhiSpan(5, 13, "NAME", 0.9, "ner+title")


def test_what_is_hidden_wins_over_what_is_kept() -> None:
    kept, hidden = PhiSpan(0, 20, "SEX", 0.99, "ner"), PhiSpan(5, 13, "NAME", 0.1, "ner")
    for overlaps in ("confident", "longest"):
        spans = merge(kept, hidden, overlaps=overlaps, keep="SEX")
        assert hidden in spans
        assert [span.label for span in spans] == ["SEX", "NAME", "SEX"]


def test_what_is_known_of_the_patient_wins() -> None:
    sure = PhiSpan(5, 13, "STAFF", 1.0, "ner")
    known = PhiSpan(5, 8, "NAME", 0.7, KNOWN_PATIENT)
    assert merge(sure, known) == [known, sure._replace(start=9)]
    assert merge(sure, known, keep="NAME") == [sure]


def test_what_holds_no_letter_is_no_span() -> None:
    assert merge(PhiSpan(13, 15, "NAME", 0.9, "ner")) == []


@given(
    st.lists(
        st.tuples(
            st.integers(0, 100),
            st.integers(1, 12),
            st.sampled_from(["A", "B"]),
            st.sampled_from([0.2, 0.5, 0.9]),
        ),
        max_size=12,
    ),
    st.sampled_from(["confident", "longest"]),
)
def test_no_letter_is_lost_and_none_twice(
    found: list[tuple[int, int, str, float]], overlaps: str
) -> None:
    spans = [PhiSpan(s, min(s + n, len(TEXT)), label, c, "x") for s, n, label, c in found]
    merged = merge(*spans, overlaps=overlaps)
    assert all(a.end <= b.start for a, b in pairwise(merged))

    def letters(spans: list[PhiSpan]) -> set[int]:
        return {i for span in spans for i in range(span.start, span.end) if TEXT[i].isalnum()}

    assert letters(merged) == letters(spans)


def test_the_more_specific_label_wins() -> None:
    name = possible_labels("NAME", "meddocan")
    patient, staff = "NOMBRE_SUJETO_ASISTENCIA", "NOMBRE_PERSONAL_SANITARIO"
    assert name == {patient, staff} and possible_labels(patient, "meddocan") == {patient}
    assert possible_labels("PROBLEM", "meddocan") == frozenset()
    tagger, rule = PhiSpan(5, 13, patient, 0.99, "ner"), PhiSpan(5, 8, staff, 0.9, "es_staff_title")
    place = PhiSpan(5, 9, "CALLE", 0.95, "es_street")
    one = frozenset({"one"})
    assert choose_labels([(tagger, name), (place, one), (rule, one)]) == [
        tagger._replace(label=staff),
        place,
        rule,
    ]
    assert choose_labels([(tagger, one), (rule, one)]) == [tagger, rule]
    elsewhere = rule._replace(start=14, end=20)
    assert choose_labels([(tagger, name), (elsewhere, one)]) == [tagger, elsewhere]
