"""Which components are left out, and what Docs with gold spans have."""

from itertools import pairwise

import pytest
import spacy
from spacy.tokens import Doc

from spacy_bioclin.annotations.relations import Relation, set_relations
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.components import find_category_components, find_relation_components
from spacy_bioclin.evaluation.given import give_spans, run_with_given
from spacy_bioclin.types import GIVEN_KEY, GOLD_KEY


@spacy.Language.factory(
    "pair_up",
    default_config={"relations_key": "r", "spans_key": None, "symmetric": [], "level": None},
)
def make_pair_up(nlp, name, relations_key, spans_key, symmetric, level):
    """Relate each span to the next."""

    def relate(doc):
        spans = list(doc.ents) if spans_key is None else list(doc.spans.get(spans_key, ()))
        set_relations(doc, relations_key, [Relation(a, b, "NEXT") for a, b in pairwise(spans)])
        return doc

    return relate


@spacy.Language.component("undeclared_ents")
def undeclared_ents(doc):
    doc.set_ents([], default="outside")
    return doc


def make_pipeline(**config):
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("entity_ruler")
    nlp.add_pipe("span_ruler", config={"spans_key": "phi"})
    nlp.add_pipe("bioclin_linker")
    nlp.add_pipe("textcat")
    nlp.add_pipe("pair_up", config=config)
    nlp.add_pipe("entity_ruler", name="later")
    return nlp


def make_gold(nlp, text="Cefalea\nposnolotil y agua"):
    doc = nlp.make_doc(text)
    ents = [[0, 8, "S", "C1"], [11, 18, "F", ""], [21, 25, "F", ""], [8, 18, "X", ""]]
    relations = [["NEXT", ents[0][:3], ents[3][:3]], ["NEXT", ents[1][:3], ents[2][:3]]]
    doc.user_data[GOLD_KEY] = {"layers": {"ents": ents, "phi": []}, "relations": relations}
    return doc


def test_components_that_write_the_spans_that_the_relations_are_between():
    [finder] = find_relation_components(make_pipeline(symmetric=["NEXT"]))
    assert finder.name == "pair_up" and finder.relations_key == "r"
    assert finder.writers == ("entity_ruler", "bioclin_linker") and finder.finds_entities
    assert (finder.spans_key, finder.symmetric, finder.level) == (None, ("NEXT",), None)
    [finder] = find_relation_components(make_pipeline(spans_key="phi", level="concept"))
    assert finder.writers == ("span_ruler",) and finder.level == "concept"
    assert find_category_components(make_pipeline()) == ["textcat"]
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_linker")
    nlp.add_pipe("pair_up")
    [finder] = find_relation_components(nlp)
    assert finder.writers == ("bioclin_linker",) and not finder.finds_entities
    nlp = spacy.blank("es")
    nlp.add_pipe("span_ruler", config={"spans_key": "x", "annotate_ents": True})
    nlp.add_pipe("pair_up")
    assert find_relation_components(nlp)[0].finds_entities


def test_given_spans():
    nlp = spacy.blank("es")
    doc = give_spans(nlp, make_gold(nlp))
    assert doc.user_data[GIVEN_KEY] is True and GOLD_KEY not in doc.user_data
    spans = [(span.text, span.label_, span.kb_id_) for span in doc.spans["ents"]]
    assert spans == [
        ("Cefalea", "S", "C1"),
        ("posnolotil", "F", ""),
        ("agua", "F", ""),
        ("posnolotil", "X", ""),
    ]
    assert doc.ents[0].kb_id_ == "C1"
    assert len(doc.ents) == 3 and list(doc.spans["phi"]) == []
    # Docs without offsets of a file have those of their spans.
    plain = Doc(nlp.vocab, words=["Con", "cefalea"], ents=["O", "B-S"])
    assert [ent.text for ent in give_spans(nlp, plain).ents] == ["cefalea"]
    assert not give_spans(nlp, nlp.make_doc("Nada")).has_annotation("ENT_IOB")
    empty = nlp.make_doc("")
    empty.user_data[GOLD_KEY] = {"layers": {"ents": []}}
    assert len(give_spans(nlp, empty)) == 0


def test_run_with_given_spans():
    nlp = spacy.blank("es")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "Z", "pattern": "y"}])
    nlp.add_pipe("pair_up")
    reference, done = make_gold(nlp), []
    before = reference.to_bytes()
    [finder] = find_relation_components(nlp)
    [compared] = run_with_given(nlp, [reference], finder, done.append)
    assert reference.to_bytes() == before and nlp.disabled == []
    gold, found = compared.mentions
    assert len(gold) == 2 and len(gold & found) == 1  # doc.ents cannot have the spans that overlap
    assert [doc.text for doc in done] == [reference.text]


def test_components_that_change_the_given_spans_are_an_error():
    nlp = spacy.blank("es")
    nlp.add_pipe("undeclared_ents")
    nlp.add_pipe("pair_up")
    [finder] = find_relation_components(nlp)
    with pytest.raises(
        BioclinError, match=r"'pair_up' with the gold entities: .*changes doc\.ents"
    ):
        run_with_given(nlp, [make_gold(nlp)], finder, lambda doc: None)
