"""Which gold spans look wrong, worked out by hand."""

import pytest

from spacy_bioclin.evaluation.confusion import LayerDoc
from spacy_bioclin.suggestions.gold import Doubt, JudgedDoc, find_doubts
from spacy_bioclin.types import CharSpan


def judge(
    gold: set[CharSpan], predicted: dict[CharSpan, float], absence: float | None = None
) -> list[Doubt]:
    doc = LayerDoc("n", "x" * 100, gold, set(predicted))
    known = None if absence is None else lambda start, end: absence
    return find_doubts("ents", [JudgedDoc(doc, predicted, known)])


def test_each_kind_of_disagreement() -> None:
    gold = {(0, 5, "A"), (10, 15, "A"), (20, 25, "A"), (30, 35, "A"), (40, 45, "A")}
    predicted = {
        (0, 5, "A"): 0.99,  # agrees
        (10, 15, "B"): 0.9,  # label
        (20, 28, "A"): 0.8,  # boundary
        (30, 38, "B"): 0.7,  # both
        (50, 55, "A"): 0.6,  # gold has nothing
    }
    doubts = judge(gold, predicted, absence=0.95)
    assert [(each.kind, each.confidence) for each in doubts] == [
        ("extra", 0.95),
        ("label", 0.9),
        ("boundary", 0.8),
        ("both", 0.7),
        ("missed", 0.6),
    ]
    extra = doubts[0].example
    assert extra.pair == ((40, 45, "A"), None)


def test_a_gold_span_alone_is_not_judged_without_probabilities_of_tokens() -> None:
    assert judge({(0, 5, "A")}, {}) == []


@pytest.mark.parametrize("gold", [set(), {(0, 5, "A")}])
def test_agreement_is_no_doubt(gold: set[CharSpan]) -> None:
    assert judge(gold, dict.fromkeys(gold, 0.1)) == []
