"""Relations, categories and pairs: in the model card, in meta.json and in the checks of a wheel."""

import json

import pytest
import spacy

from spacy_bioclin.annotations.pairs import get_boundary, split_pair
from spacy_bioclin.annotations.relations import Relation, set_relations
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.packaging.build import build_wheel
from spacy_bioclin.packaging.metrics import read_metrics
from spacy_bioclin.packaging.probe import (
    COPIES,
    EXACT,
    ROUNDING,
    Category,
    Found,
    FoundRelation,
    Mismatch,
    compare,
    describe,
    find,
)
from spacy_bioclin.packaging.probe_inputs import NOTES, make_inputs
from spacy_bioclin.types import GIVEN_KEY

from .test_build import FIGURES, METRICS, PROVENANCE, read

DRUG, SYMPTOM = Found("ents", 0, 7, "DRUG", ""), Found("ents", 12, 19, "SYMPTOM", "")
ADE = FoundRelation("ADE", (0, 7, "DRUG"), (12, 19, "SYMPTOM"), None)
SCORES = {
    "level": "mention",
    "docs": 3,
    "micro": FIGURES,
    "macro": {"p": 0.5, "r": 0.5, "f": 0.5},
    "per_type": {"ADE": FIGURES},
}


@spacy.Language.factory(
    "probe_relations",
    default_config={
        "relations_key": "relations",
        "spans_key": None,
        "symmetric": ["SAME"],
        "types": {"ADE": [["DRUG", "SYMPTOM"], ["DRUG", "DISEASE"]], "SAME": [["DRUG", "DRUG"]]},
    },
)
class ProbeRelations:
    """Relate each entity to the next, if the types allow it."""

    def __init__(self, nlp, name, relations_key, spans_key, symmetric, types):
        self.label_data = types
        self.labels = tuple(types)

    def __call__(self, doc):
        found = [
            Relation(head, child, label, 0.75)
            for head, child in zip(doc.ents, doc.ents[1:], strict=False)
            for label, pairs in self.label_data.items()
            if [head.label_, child.label_] in pairs
        ]
        set_relations(doc, "relations", found)
        return doc


@spacy.Language.component("probe_pairs", assigns=["doc.cats", "doc._.pair"])
def probe_pairs(doc):
    first, second = split_pair(doc)
    doc.cats = {"SAME": float(len(first) == len(second))}
    return doc


# -- checks ----------------------------------------------------------------------------------------


def test_relations_and_categories_are_found():
    nlp = spacy.blank("en")
    patterns = [{"label": "DRUG", "pattern": "nolotil"}, {"label": "SYMPTOM", "pattern": "fever"}]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    nlp.add_pipe("probe_relations")
    doc = nlp("nolotil and fever")
    doc.cats = {"URGENT": 0.5}
    found = find(doc)
    assert found[ADE._replace(child=(12, 17, "SYMPTOM"))] == 0.75
    assert found[Category("URGENT")] == 0.5 and len(found) == 4
    assert describe([found] * COPIES) == (
        "2 spans of 2 labels, 1 relations of 1 labels, 1 categories of 1 labels in 1 notes"
    )


def test_differences_of_relations_and_categories():
    ours = [{DRUG: 0.9, SYMPTOM: 0.9, ADE: 0.9, Category("A"): 0.9}]
    compare(ours, [{**ours[0], ADE: 0.9 + EXACT / 2}], EXACT)
    with pytest.raises(Mismatch, match="1 probabilities differ"):
        compare(ours, [{**ours[0], ADE: 0.8}], EXACT)
    with pytest.raises(Mismatch, match="1 probabilities differ"):
        compare(ours, [{**ours[0], Category("A"): 0.8}], EXACT)
    compare([{Category("score"): 300.0}], [{Category("score"): 300.2}], EXACT)
    with pytest.raises(Mismatch, match="1 probabilities differ"):
        compare([{Category("score"): 300.0}], [{Category("score"): 300.4}], EXACT)
    without = {key: p for key, p in ours[0].items() if key != ADE}
    with pytest.raises(Mismatch, match="1 relations are found by one side only"):
        compare(ours, [without], ROUNDING)
    turned = ADE._replace(head=ADE.child, child=ADE.head)
    with pytest.raises(Mismatch, match="2 relations are found"):
        compare(ours, [{**without, turned: 0.9}], ROUNDING)
    with pytest.raises(Mismatch, match="1 categories are found"):
        compare([{Category("A"): 0.1}], [{}], ROUNDING)


def test_relations_of_undecided_entities_may_go_by_rounding():
    compare([{DRUG: 0.9, ADE: 0.52}], [{DRUG: 0.9}], ROUNDING)
    compare([{DRUG: 0.9, SYMPTOM: 0.52, ADE: 0.99}], [{DRUG: 0.9}], ROUNDING)
    for tolerance in (EXACT, ROUNDING):
        with pytest.raises(Mismatch):
            compare([{DRUG: 0.9, SYMPTOM: 0.6, ADE: 0.99}], [{DRUG: 0.9}], tolerance)


def test_inputs_are_what_the_pipeline_reads():
    texts = [*NOTES["es"], *NOTES["en"]]
    nlp = spacy.blank("es")
    assert make_inputs(nlp, texts) == texts
    nlp.add_pipe("probe_relations")
    docs = make_inputs(nlp, texts)
    assert [doc.text for doc in docs] == texts and all(doc.user_data[GIVEN_KEY] for doc in docs)
    assert [ent.label_ for ent in docs[0].ents][:4] == ["DRUG", "SYMPTOM", "DRUG", "DISEASE"]
    found = [find(doc) for doc in nlp.pipe(docs)]
    assert {type(one) for findings in found for one in findings} == {Found, FoundRelation}
    nlp.add_pipe("entity_ruler", first=True)
    assert make_inputs(nlp, texts) == texts
    nlp = spacy.blank("es")
    nlp.add_pipe("probe_pairs")
    docs = make_inputs(nlp, texts)
    assert len(docs) == 8 and all(get_boundary(doc) is not None for doc in docs)
    [(category, _)] = find(nlp(docs[0])).items()
    assert category == Category("SAME")


@pytest.mark.slow
def test_docs_and_pairs_go_through_several_processes():
    for component in ("probe_relations", "probe_pairs"):
        nlp = spacy.blank("es")
        nlp.add_pipe(component)
        single = [find(nlp(each)) for each in make_inputs(nlp, NOTES["es"])]
        piped = nlp.pipe(make_inputs(nlp, NOTES["es"]), n_process=2)
        compare(single, [find(doc) for doc in piped], EXACT)


# -- card ------------------------------------------------------------------------------------------


def build(nlp, folder, metrics=()):
    nlp.to_disk(folder / "pipeline")
    options = {"name": "x", "version": "1", "provenance": PROVENANCE, "metrics": metrics}
    made = build_wheel(folder / "pipeline", folder / "out", **options)
    return read(made, "MODEL_CARD.md"), json.loads(read(made, "x-1/meta.json"))


@pytest.mark.usefixtures("_without_setuptools")
def test_card_of_relations(tmp_path):
    nlp = spacy.blank("es")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "DRUG", "pattern": "nolotil"}])
    nlp.add_pipe("probe_relations", name="related")
    metrics = {
        **METRICS,
        "scores": {"rels_f": 0.5},
        "relations": {"relations": {"predicted_entities": SCORES, "gold_entities": SCORES}},
    }
    card, meta = build(nlp, tmp_path, [metrics])
    assert "This pipeline finds relations between spans of text in clinical notes" in card
    assert "for relation in doc._.relations:\n    print(relation.head, relation.label" in card
    assert "- `entity_ruler` (`doc.ents`): DRUG\n" in card or "- `entity_ruler`: DRUG\n" in card
    assert "- `related` (`doc._.relations`), between spans of `doc.ents`:\n" in card
    assert "  - ADE: DRUG → SYMPTOM, DRUG → DISEASE\n" in card
    assert "  - SAME (without direction): DRUG – DRUG\n" in card
    assert "`related`: ADE" not in card
    assert "A relation counts as found if its label and its arguments are exactly" in card
    title = "### `test.spacy`, relations between the entities"
    assert f"{title} that the pipeline finds\n\n3 of 4 documents" in card
    assert f"{title} of the corpus\n" in card
    assert card.count("| ADE | 8 | 10 | 80.00 | 100.00 | 88.89 | 81.00–95.00 |\n") == 2
    assert card.count("| macro | | | | | 50.00 | |\n") == 2
    assert meta["description"] == (
        "Entities of clinical text in Spanish: DRUG. Relations of clinical text in Spanish: ADE, "
        "SAME."
    )
    assert meta["performance"] == {"rels_f": 0.5}
    [evaluation] = meta["bioclin"]["evaluations"]
    assert evaluation["relations"]["relations"]["gold_entities"]["docs"] == 3


@pytest.mark.usefixtures("_without_setuptools")
def test_card_of_categories(tmp_path):
    nlp = spacy.blank("es")
    nlp.add_pipe("textcat", name="urgency").add_label("URGENT")
    nlp.get_pipe("urgency").add_label("NORMAL")
    nlp.initialize()
    scores = {"cats_macro_f": 0.5, "cats_macro_auc": None, "cats_f_per_type": {"URGENT": {}}}
    metrics = {**METRICS, "layers": {}, "scores": {}, "categories": {"urgency": scores}}
    card, meta = build(nlp, tmp_path, [metrics])
    assert "This pipeline classifies texts in clinical notes in Spanish, for research" in card
    assert "doc = nlp(text)\nprint(doc.cats)\n" in card
    assert "- `urgency` (`doc.cats`): NORMAL, URGENT\n" in card or "URGENT, NORMAL\n" in card
    assert "### `test.spacy`, categories of `urgency`\n\n| | % |\n|---|---:|\n" in card
    assert "| cats_macro_f | 50.00 |\n" in card and "cats_macro_auc" not in card
    assert "A span counts" not in card
    assert meta["description"] == "Categories of clinical text in Spanish: NORMAL, URGENT."


def test_metrics_of_relations_are_checked(tmp_path):
    path = tmp_path / "metrics.json"
    of_key = {"predicted_entities": None, "gold_entities": SCORES}
    path.write_text(json.dumps({**METRICS, "relations": {"relations": of_key}}))
    assert read_metrics(path)["relations"]["relations"]["gold_entities"]["docs"] == 3
    path.write_text(json.dumps({**METRICS, "relations": {"relations": {"gold_entities": 3}}}))
    with pytest.raises(BioclinError, match="relations"):
        read_metrics(path)
