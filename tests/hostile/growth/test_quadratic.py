"""The linear code gives exactly what the quadratic one gave: ties, overlaps, nested and equal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spacy_bioclin.text as text_module
from spacy_bioclin.deid.merge import Places, choose_labels, merge_spans
from spacy_bioclin.deid.spans import KNOWN_PATIENT, PhiSpan
from spacy_bioclin.evaluation.spans import relaxed_match
from spacy_bioclin.text import find_values

from ..strategies import ODD
from . import quadratic

LABELS = ["A", "B", "C"]
TEXTS = st.text("aab1 ,.\n", min_size=1, max_size=30)


@st.composite
def texts_with_spans(draw: st.DrawFn) -> tuple[str, list[PhiSpan]]:
    text = draw(TEXTS)
    offset = st.integers(0, len(text))
    made = st.builds(
        lambda a, b, *rest: PhiSpan(min(a, b), max(a, b), *rest),
        *(offset, offset, st.sampled_from(LABELS), st.sampled_from([0.2, 0.5, 0.9])),
        st.sampled_from(["ner", "title", "x", KNOWN_PATIENT]),
    )
    spans = [span for span in draw(st.lists(made, max_size=9)) if span.start < span.end]
    return text, spans


@settings(max_examples=40)
@given(texts_with_spans(), st.sampled_from(["confident", "longest"]), st.sampled_from(["A", ""]))
def test_spans_are_merged_as_before(
    made: tuple[str, list[PhiSpan]], overlaps: str, kept: str
) -> None:
    text, spans = made
    options = {"overlaps": overlaps, "keeps": lambda span: span.label == kept}
    merged = merge_spans(spans, text, **options)  # type: ignore[arg-type]
    assert merged == quadratic.merge_spans(spans, text, **options)  # type: ignore[arg-type]
    for span in spans:
        assert Places(merged[::-1]).cut(span) == quadratic.subtract(span, merged)
        touched = any(one.start < span.end and span.start < one.end for one in merged)
        assert Places(merged).touch(span.start, span.end) == touched


@settings(max_examples=40)
@given(texts_with_spans(), st.data())
def test_labels_are_chosen_as_before(made: tuple[str, list[PhiSpan]], data: st.DataObject) -> None:
    meant = st.frozensets(st.sampled_from(LABELS))
    pairs = [(span, data.draw(meant)) for span in made[1]]
    assert choose_labels(pairs) == quadratic.choose_labels(pairs)


def test_no_detector_is_named_twice() -> None:
    spans = [PhiSpan(0, 3, "A", 0.9, "x+y"), PhiSpan(0, 3, "A", 0.8, "x+y")]
    spans.append(PhiSpan(0, 3, "A", 0.7, "y+z"))
    merged = merge_spans(spans, "aaa", overlaps="confident", keeps=lambda span: False)
    assert merged == [PhiSpan(0, 3, "A", 0.9, "x+y+z")]


PARTS = st.one_of(st.text("aab1Bñ .-\n½ᴴΣ", max_size=4), st.sampled_from(ODD))


@pytest.mark.parametrize("longest", [256, 4])
@settings(max_examples=40)
@given(st.lists(PARTS, max_size=12), st.lists(st.lists(PARTS, max_size=5), max_size=4), st.data())
def test_values_are_found_as_before(
    longest: int, parts: list[str], values: list[list[str]], data: st.DataObject
) -> None:
    text = "".join(parts)
    pairs = [(f"K{i % 2}", "".join(value)) for i, value in enumerate(values)]
    for _ in range(3):
        start = data.draw(st.integers(0, len(text)))
        pairs.append(("OWN", text[start : start + data.draw(st.integers(1, 12))]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "MAX_INDEXED", longest)
        found = find_values(pairs, text)
    assert found == quadratic.find_values(pairs, text)


@settings(max_examples=40)
@given(*[st.sets(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=8)] * 2)
def test_spans_are_matched_as_before(
    gold: set[tuple[int, int]], system: set[tuple[int, int]]
) -> None:
    sides = [{(start, start + n, "A") for start, n in spans} for spans in (gold, system)]
    assert relaxed_match(*sides) == quadratic.relaxed_match(*sides)
