"""Published scores of entities, against counts worked by hand and what the authors' script says."""

import random
from itertools import pairwise

import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_bioclin.evaluation.published import METRICS, TaskScoring
from spacy_bioclin.evaluation.published.entities import count_phrases, tag_characters
from spacy_bioclin.types import GOLD_KEY

NLP = spacy.blank("es")
TEXT = "Tos y fiebre alta sin disnea."
TOS, FIEBRE, ALTA, FIEBRE_ALTA, DISNEA = (0, 3), (6, 12), (13, 17), (6, 17), (22, 28)

# Invented tags, reference and prediction, in four sentences. The figures below are those that
# eval_ner of utils/metrics/ner.py (sy-wada/blue_benchmark_with_transformers) returns for them.
SENTENCES = [
    ("B I O I O B", "B I O I O B"),  # an entity in two parts, found; one that goes on
    ("I O B I O", "O O B O O"),  # an I at the start belongs to the last B of the sentence before
    ("B B I O", "B I I O"),
    ("O B O I", "O B I O"),
]
AUTHORS = {"tp": 1, "fp": 4, "fn": 5, "p": 0.2, "r": 0.16666666666666666, "f": 0.1818181818181818}


def make_example(gold, found, *, layer="ents", annotated=True):
    """gold, found: (span of characters, label)."""
    reference, predicted = NLP.make_doc(TEXT), NLP.make_doc(TEXT)
    if annotated:
        items = [[*span, label, ""] for span, label in gold]
        reference.user_data[GOLD_KEY] = {"id": "d", "task": "t", "layers": {layer: items}}
    spans = [predicted.char_span(*span, label=label) for span, label in found]
    if layer == "ents":
        predicted.set_ents(spans, default="outside")
    else:
        predicted.spans[layer] = spans
    return Example(predicted, reference)


def score(name, egs, **task):
    return METRICS[name].score(egs, TaskScoring(**task))


def test_strict_by_hand():
    egs = [
        make_example(
            # the last one is annotated twice
            [(TOS, "S"), (FIEBRE_ALTA, "S"), (DISNEA, "S"), (DISNEA, "S")],
            [(TOS, "S"), (FIEBRE, "S"), (DISNEA, "X")],  # right, too short, wrong label
        ),
        make_example([(TOS, "S")], [(TOS, "S")], layer="phi"),
        make_example([], []),
    ]
    found = score("entities_strict_f", egs)
    # S: 2 right of 3 found and of 4 in the gold Docs; X: one too many
    assert (found["p"], found["r"]) == pytest.approx((2 / 4, 2 / 4))
    assert found["value"] == pytest.approx(2 / 4)
    assert found["macro_f"] == pytest.approx(2 * 2 / (2 * 2 + 1 + 2))  # X is in no gold Doc
    assert found["docs"] == 3
    assert score("entities_strict_f", egs, layers=("phi",))["value"] == 1.0


def test_a_layer_that_is_never_predicted_is_missed():
    eg = make_example([(TOS, "S")], [], layer="phi")
    del eg.predicted.spans["phi"]
    for name in ("entities_strict_f", "blue_entities_f"):
        assert score(name, [eg])["value"] == 0.0


def test_nothing_annotated_has_no_score():
    eg = make_example([], [(TOS, "S")], annotated=False)
    for name in ("entities_strict_f", "blue_entities_f"):
        assert set(score(name, [eg]).values()) == {None}
        assert score(name, [])["value"] is None


def test_phrases_are_counted_as_in_the_authors_script():
    pairs = [(a, b) for r, p in SENTENCES for a, b in zip(r.split(), p.split(), strict=True)]
    counts = count_phrases(pairs)
    assert {**counts._asdict(), **counts.prf()} == pytest.approx(AUTHORS)


def test_phrases_by_hand():
    assert count_phrases([]) == (0, 0, 0)
    # types do not count; adjacent phrases differ from one that is as long
    assert count_phrases([("B-X", "B-Y"), ("I-X", "I-Z"), ("O", "O")]) == (1, 0, 0)
    assert count_phrases([("B", "B"), ("B", "I")]) == (0, 1, 2)
    # an I before any B begins a phrase
    assert count_phrases([("O", "I"), ("B", "B")]) == (1, 1, 0)
    # an I after O continues the last phrase, even in the next sentence
    assert count_phrases([("B", "B"), ("O", "O"), ("I", "I")]) == (1, 0, 0)
    assert count_phrases([("B", "B"), ("O", "O"), ("I", "O")]) == (0, 1, 1)


def test_blue_ignores_labels_and_strict_does_not():
    egs = [make_example([(TOS, "S"), (FIEBRE_ALTA, "S")], [(TOS, "X"), (FIEBRE, "S"), (ALTA, "S")])]
    blue = score("blue_entities_f", egs)
    assert (blue["p"], blue["r"]) == pytest.approx((1 / 3, 1 / 2))
    assert blue["value"] == pytest.approx(2 / 5)
    assert score("entities_strict_f", egs)["value"] == 0.0


def test_the_longest_of_overlapping_spans_is_tagged():
    spans = [(0, 2, "A"), (1, 4, "B"), (1, 4, "C"), (4, 5, "D"), (5, 5, "E")]
    assert "".join(tag_characters("abcdef", spans)) == "OBIIBO"
    # two labels at the same place are one phrase
    eg = make_example([(TOS, "S"), (TOS, "X")], [(TOS, "S")])
    assert score("blue_entities_f", [eg])["value"] == 1.0


def test_characters_and_tokens_make_the_same_phrases():
    random.seed(0)
    doc = NLP.make_doc("Refiere tos y fiebre alta desde ayer, sin disnea ni dolor. " * 20)
    egs, tags = [], []
    for _ in range(20):
        sides = []
        for _ in range(2):
            bounds = sorted(random.sample(range(len(doc)), 20))
            sides.append([(a, b) for a, b in pairwise(bounds) if b - a < 12][::2])
        kept = [span for span in sides[0] if random.random() < 0.7]
        free = [b for b in sides[1] if all(b[1] <= a[0] or b[0] >= a[1] for a in kept)]
        sides[1] = sorted([*kept, *free])
        spans = [[doc[a:b] for a, b in side] for side in sides]
        egs.append(make_random(doc, *spans))
        tags += zip(*([tag_token(side, i) for i in range(len(doc))] for side in sides), strict=True)
    found, counts = score("blue_entities_f", egs), count_phrases(tags)
    assert 0 < counts.f1 < 1
    assert (found["p"], found["r"]) == (counts.precision, counts.recall)


def tag_token(spans, i):
    return next(("B" if i == a else "I" for a, b in spans if a <= i < b), "O")


def make_random(doc, gold, found):
    reference, predicted = doc.copy(), doc.copy()
    layer = [[span.start_char, span.end_char, "S", ""] for span in gold]
    reference.user_data[GOLD_KEY] = {"id": "d", "task": "t", "layers": {"ents": layer}}
    spans = [Span(predicted, span.start, span.end, "S") for span in found]
    predicted.set_ents(spans, default="outside")
    return Example(predicted, reference)
