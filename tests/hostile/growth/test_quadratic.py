"""The linear code gives exactly what the quadratic one gave: ties, overlaps, nested and equal."""

import random

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
DETECTORS = ["ner", "title", "x", KNOWN_PATIENT]


def make_spans(rng: random.Random) -> tuple[str, list[PhiSpan]]:
    text = "".join(rng.choices("aab1 ,.\n", k=rng.randint(1, 30)))
    spans = []
    for _ in range(rng.randint(0, 9)):
        start, end = sorted(rng.randint(0, len(text)) for _ in range(2))
        label, confidence = rng.choice(LABELS), rng.choice([0.2, 0.5, 0.9])
        spans.append(PhiSpan(start, end, label, confidence, rng.choice(DETECTORS)))
    return text, [span for span in spans if span.start < span.end]


def test_spans_are_merged_as_before() -> None:
    rng = random.Random(0)
    for number in range(500):
        text, spans = make_spans(rng)
        kept = ["A", ""][number % 2]
        options = {
            "overlaps": rng.choice(["confident", "longest"]),
            "keeps": lambda span, kept=kept: span.label == kept,
        }
        merged = merge_spans(spans, text, **options)  # type: ignore[arg-type]
        assert merged == quadratic.merge_spans(spans, text, **options)  # type: ignore[arg-type]
        for span in spans:
            assert Places(merged[::-1]).cut(span) == quadratic.subtract(span, merged)
            touched = any(one.start < span.end and span.start < one.end for one in merged)
            assert Places(merged).touch(span.start, span.end) == touched


def test_labels_are_chosen_as_before() -> None:
    rng = random.Random(1)
    for _ in range(500):
        meant = [frozenset(rng.sample(LABELS, rng.randint(0, 3))) for _ in range(9)]
        pairs = list(zip(make_spans(rng)[1], meant, strict=False))
        assert choose_labels(pairs) == quadratic.choose_labels(pairs)


def test_no_detector_is_named_twice() -> None:
    spans = [PhiSpan(0, 3, "A", 0.9, "x+y"), PhiSpan(0, 3, "A", 0.8, "x+y")]
    spans.append(PhiSpan(0, 3, "A", 0.7, "y+z"))
    merged = merge_spans(spans, "aaa", overlaps="confident", keeps=lambda span: False)
    assert merged == [PhiSpan(0, 3, "A", 0.9, "x+y+z")]


PARTS = st.one_of(st.text("aab1Bñ .-\n½ᴴΣ", max_size=4), st.sampled_from(ODD))


@pytest.mark.parametrize("longest", [256, 4])
@settings(max_examples=100)
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


def test_spans_are_matched_as_before() -> None:
    rng = random.Random(2)
    for _ in range(1000):
        sides = [
            {
                (start, start + rng.randint(0, 6), "A")
                for start in rng.choices(range(13), k=rng.randint(0, 8))
            }
            for _ in range(2)
        ]
        assert relaxed_match(*sides) == quadratic.relaxed_match(*sides)
