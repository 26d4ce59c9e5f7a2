"""Scores of relations, against counts worked by hand."""

import pickle

import pytest
import spacy
from spacy.training import Example

from spacy_bioclin.annotations.relations import Relation, set_relations
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.relations import (
    KEYS,
    choose_level,
    compare_relations,
    count_relations,
    has_gold_relations,
    make_relation_scorer,
)
from spacy_bioclin.types import GIVEN_KEY, GOLD_KEY

NLP = spacy.blank("es")
TEXT = "Cefalea por nolotil y náuseas por ibuprofeno."
CEFALEA, NOLOTIL = (0, 7, "SINTOMA"), (12, 19, "FARMACO")
NAUSEAS, IBUPROFENO = (22, 29, "SINTOMA"), (34, 44, "FARMACO")


def make_example(gold, found, *, text=TEXT, concepts=None, found_concepts=(), given=False):
    """gold, found: (label, head, child), with spans of characters; concepts: with ids."""
    reference, predicted = NLP.make_doc(text), NLP.make_doc(text)
    stored = {"id": "d", "task": "t", "layers": {}}
    if gold is not None:
        stored["relations"] = [[label, list(head), list(child)] for label, head, child in gold]
    if concepts is not None:
        stored["concept_relations"] = [list(fields) for fields in concepts]
    reference.user_data[GOLD_KEY] = stored
    if given:
        predicted.user_data[GIVEN_KEY] = True
    ids = [*found_concepts, *[None] * (len(found) - len(found_concepts))]
    relations = []
    for (label, *arguments), concept_ids in zip(found, ids, strict=True):
        spans = [predicted.char_span(start, end, label=of) for start, end, of in arguments]
        relations.append(Relation(*spans, label, 0.9, concept_ids))
    set_relations(predicted, "relations", relations)
    return Example(predicted, reference)


def score(*examples, **kwargs):
    return make_relation_scorer()(examples, **kwargs)


def count(eg, symmetric=()):
    scores = count_relations([compare_relations(eg, "relations", symmetric)])
    return {label: tuple(counts) for label, counts in scores.per_label.items()}


def test_counts_by_hand():
    first = make_example(
        [("ADE", NOLOTIL, CEFALEA), ("ADE", IBUPROFENO, NAUSEAS), ("TRATA", NOLOTIL, NAUSEAS)],
        [
            ("ADE", NOLOTIL, CEFALEA),  # right
            ("ADE", IBUPROFENO, CEFALEA),  # another child
            ("TRATA", NAUSEAS, NOLOTIL),  # the other direction
            ("OTRA", NOLOTIL, NAUSEAS),  # another label
        ],
    )
    second = make_example([("ADE", NOLOTIL, CEFALEA)], [("ADE", NOLOTIL, CEFALEA)])
    third = make_example([], [])
    egs = [first, second, third]
    scores = count_relations([compare_relations(eg, "relations") for eg in egs])
    assert scores.per_label == {"ADE": (2, 1, 1), "OTRA": (0, 1, 0), "TRATA": (0, 1, 1)}
    assert scores.of_docs() == [(1, 3, 2), (1, 0, 0), (0, 0, 0)]
    result = score(*egs)
    assert result["rels_p"] == pytest.approx(2 / 5)
    assert result["rels_r"] == pytest.approx(2 / 4)
    assert result["rels_f"] == pytest.approx(4 / 9)
    assert result["rels_macro_f"] == pytest.approx((4 / 6 + 0) / 2)  # OTRA has no reference
    assert result["rels_per_type"]["ADE"] == pytest.approx({"p": 2 / 3, "r": 2 / 3, "f": 2 / 3})
    assert tuple(result) == KEYS


def test_arguments_must_be_equal():
    for head in ((12, 19, "PRUEBA"), (8, 19, "FARMACO")):  # another label, another boundary
        eg = make_example([("ADE", NOLOTIL, CEFALEA)], [("ADE", head, CEFALEA)])
        assert count(eg) == {"ADE": (0, 1, 1)}
    one = ("ADE", NOLOTIL, CEFALEA)  # what comes twice counts once
    assert count(make_example([one, one], [one, one, one])) == {"ADE": (1, 0, 0)}


def test_symmetric_labels_match_in_both_directions():
    gold = [("IGUAL", CEFALEA, NAUSEAS), ("ADE", NOLOTIL, CEFALEA)]
    turned = [("IGUAL", NAUSEAS, CEFALEA), ("ADE", CEFALEA, NOLOTIL)]
    both = [*turned, ("IGUAL", CEFALEA, NAUSEAS)]
    assert count(make_example(gold, turned)) == {"ADE": (0, 1, 1), "IGUAL": (0, 1, 1)}
    for found in (turned, both):  # both directions of one pair are one relation
        eg = make_example(gold, found)
        assert count(eg, ["IGUAL"]) == {"ADE": (0, 1, 1), "IGUAL": (1, 0, 0)}
        assert score(eg, symmetric=["IGUAL"])["rels_f"] == pytest.approx(1 / 2)
    assert make_relation_scorer(symmetric=["IGUAL"])([eg])["rels_f"] == pytest.approx(1 / 2)
    # What the component gives replaces what the config says.
    assert make_relation_scorer(symmetric=["IGUAL"])([eg], symmetric=[])["rels_p"] < 1 / 2


def test_given_spans_end_at_tokens():
    text = "Cefalea\nposnolotil 500mg"  # gold offsets within the tokens "posnolotil" and "500mg"
    gold = [("ADE", (11, 18, "FARMACO"), (0, 8, "SINTOMA")), ("DOSIS", (19, 22, "D"), (7, 8, "X"))]
    tokens = [token.text for token in NLP.make_doc(text)]
    assert tokens == ["Cefalea", "\n", "posnolotil", "500", "mg"]
    found = [("ADE", (8, 18, "FARMACO"), (0, 7, "SINTOMA"))]
    # The line break that an argument ends with does not count; one that is nothing else touches no
    # token, so that its relation is missed.
    given = make_example(gold, found, text=text, given=True)
    assert count(given) == {"ADE": (1, 0, 0), "DOSIS": (0, 0, 1)}
    # Where the spans were found, the offsets of the file count.
    assert count(make_example(gold, found, text=text)) == {"ADE": (0, 1, 1), "DOSIS": (0, 0, 1)}


def test_docs_that_are_not_annotated_are_left_out():
    blank = make_example(None, [("ADE", NOLOTIL, CEFALEA)])
    assert score(blank) == dict.fromkeys(KEYS)
    assert score() == dict.fromkeys(KEYS)
    assert not has_gold_relations(blank.reference)
    none = make_example([], [("ADE", NOLOTIL, CEFALEA)])  # annotated: there are none
    assert has_gold_relations(none.reference)
    right = make_example([("ADE", NOLOTIL, CEFALEA)], [("ADE", NOLOTIL, CEFALEA)])
    assert score(blank, right)["rels_p"] == 1.0
    assert score(none, right)["rels_p"] == 0.5


def test_concept_level():
    found = [("ADE", NOLOTIL, CEFALEA), ("ADE", IBUPROFENO, CEFALEA), ("ADE", NOLOTIL, NAUSEAS)]
    ids = [("D1", "S1"), ("D1", "S1"), ("D2", "S1")]
    gold = [("ADE", "D1", "S1"), ("ADE", "D3", "S1"), ("ADE", "D3", "S1")]
    eg = make_example(None, found, concepts=gold, found_concepts=ids)
    assert has_gold_relations(eg.reference)
    assert count(eg) == {"ADE": (1, 1, 1)}
    # Found between spans only: everything is missed.
    assert count(make_example(None, found, concepts=gold)) == {"ADE": (0, 0, 2)}
    turned = make_example(None, found[:1], concepts=[("ADE", "S1", "D1")], found_concepts=ids[:1])
    assert count(turned) == {"ADE": (0, 1, 1)}
    assert count(turned, ["ADE"]) == {"ADE": (1, 0, 0)}


def test_level_follows_what_was_found():
    both = {"gold": [("ADE", NOLOTIL, CEFALEA)], "concepts": [("ADE", "D1", "S1")]}
    mention = make_example(found=[("ADE", NOLOTIL, CEFALEA)], **both)
    concept = make_example(
        found=[("ADE", IBUPROFENO, CEFALEA)], found_concepts=[("D1", "S1")], **both
    )
    compared = [compare_relations(eg, "relations") for eg in (mention, concept)]
    assert [choose_level([each]) for each in compared] == ["mention", "concept"]
    assert score(mention)["rels_f"] == score(concept)["rels_f"] == 1.0
    assert score(concept, level="mention")["rels_f"] == 0.0
    only = make_example([("ADE", NOLOTIL, CEFALEA)], [])
    assert score(only, level="concept") == dict.fromkeys(KEYS)


def test_other_keys_and_gold_of_the_predicted_doc_are_not_read():
    eg = make_example([("ADE", NOLOTIL, CEFALEA)], [("ADE", NOLOTIL, CEFALEA)])
    assert make_relation_scorer("more")([eg])["rels_r"] == 0.0
    gold = eg.reference.copy()
    assert score(Example(gold, eg.reference))["rels_r"] == 0.0


def test_examples_are_not_changed_and_the_scorer_can_be_pickled():
    eg = make_example([("ADE", NOLOTIL, CEFALEA)], [("ADE", CEFALEA, NOLOTIL)], given=True)
    before = eg.reference.to_bytes(), eg.predicted.to_bytes()
    scorer = pickle.loads(pickle.dumps(make_relation_scorer("relations", ["ADE"])))
    assert scorer([eg])["rels_f"] == 1.0
    assert (eg.reference.to_bytes(), eg.predicted.to_bytes()) == before


def test_other_texts_are_an_error_without_note_text():
    eg = make_example([("ADE", NOLOTIL, CEFALEA)], [])
    other = Example(NLP.make_doc("Otra cosa."), eg.reference)
    with pytest.raises(BioclinError, match="document d: predicted and reference") as caught:
        score(other)
    assert "Cefalea" not in str(caught.value)
