"""Linking scores of Docs: the scorer, the metrics of `bioclin evaluate` and its page."""

import json
import pickle
from typing import NamedTuple

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.vocab import Vocab
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.linking import LinkedMention
from spacy_bioclin.evaluation.linking_docs import compare_links, make_linking_scorer
from spacy_bioclin.evaluation.spans import Counts
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
from spacy_bioclin.types import GOLD_KEY
from tests.util import replaced_extension

VOCAB = Vocab()
WORDS = ["Fiebre", "y", "dolor", "lumbar", "."]  # 0-6, 7-8, 9-14, 15-21, 22-23


class Candidate(NamedTuple):
    kb_id: str
    score: float


@pytest.fixture(autouse=True)
def extension():
    with replaced_extension(Span, "candidates", default=None):
        yield


def make_doc(spans, key=None, gold=None):
    """spans: (start, end, label, kb_id[, candidates])"""
    doc = Doc(VOCAB, words=WORDS)
    made = [Span(doc, s, e, label=label, kb_id=kb_id) for s, e, label, kb_id, *_ in spans]
    if key is None:
        doc.set_ents(made)
    else:
        doc.spans[key] = made
    for span, (*_, last) in zip(made, spans, strict=True):
        if isinstance(last, list):
            span._.candidates = [Candidate(id, 1.0) for id in last]
    if gold is not None:
        doc.user_data[GOLD_KEY] = {"id": "d", "task": "t", "layers": gold}
    return doc


def compare(reference, predicted, spans_key=None):
    return compare_links(Example(predicted, reference), spans_key, "d")


GOLD = [(0, 1, "S", "MESH:A"), (2, 4, "S", "B|C"), (4, 5, "S", "-1")]
SYSTEM = [(0, 1, "S", "A", ["D", "A"]), (2, 4, "T", "", ["OMIM:B"]), (4, 5, "S", "NIL")]


def test_mentions_by_hand():
    linked = compare(make_doc(GOLD), make_doc(SYSTEM))
    assert linked.mentions == [
        LinkedMention("d", "Fiebre", ("A",), (("A", "D", "A"),)),  # the chosen id comes first
        LinkedMention("d", "dolor lumbar", ("B", "C"), (("B",),), nil=True),  # another label
        LinkedMention("d", ".", (), (), nil=True),
    ]
    assert (linked.n_gold, linked.links) == (3, True)
    assert linked.reference == {(0, 6, "A"), (9, 21, "B"), (9, 21, "C")}
    assert linked.predicted == {(0, 6, "A")}


def test_a_composite_prediction_has_a_ranking_for_each_part():
    linked = compare(make_doc([(2, 4, "S", "B|C")]), make_doc([(2, 4, "S", "C|B", ["C", "D"])]))
    assert linked.mentions[0].rankings == (("C", "C", "D"), ("B", "C", "D"))


def test_missed_and_spurious_mentions_count_end_to_end_only():
    linked = compare(make_doc(GOLD[:1]), make_doc([(0, 2, "S", "A"), (2, 4, "S", "B")]))
    assert linked.mentions == []
    assert linked.predicted == {(0, 8, "A"), (9, 21, "B")}


def test_labels_that_were_not_annotated_do_not_count():
    system = make_doc([(0, 1, "S", "A"), (2, 4, "T", "B")])
    for gold in ({}, {"ents": [[0, 6, "S", "A"], [8, 21, "T", "C"]]}):
        reference = make_doc([(0, 1, "S", "A"), (2, 4, "T", "C")], gold=gold)
        reference.user_data[GOLD_KEY]["annotated"] = {"ents": ["S"]}
        linked = compare(reference, system)
        assert linked.n_gold == len(linked.mentions) == 1
        assert linked.reference == linked.predicted == {(0, 6, "A")}


def test_ids_and_offsets_of_the_corpus_file_count():
    gold = {"ents": [[0, 6, "S", "A"], [8, 21, "S", "B"], [0, 6, "S", "A"]]}  # the last twice
    linked = compare(make_doc([(0, 1, "S", "Z")], gold=gold), make_doc([(0, 1, "S", "A")]))
    assert linked.n_gold == 2
    assert [mention.gold for mention in linked.mentions] == [("A",)]
    assert linked.reference == {(0, 6, "A"), (8, 21, "B")}


def test_of_two_labels_the_equal_one_counts():
    reference = make_doc([(0, 1, "S", "A"), (0, 1, "T", "B")], key="x")
    predicted = make_doc([(0, 1, "T", "B"), (0, 1, "S", "A")], key="x")
    linked = compare(reference, predicted, "x")
    assert [m.rankings for m in linked.mentions] == [(("A",),), (("B",),)]


def test_nested_layer_takes_the_ids_of_doc_ents():
    predicted = make_doc([(0, 1, "S", "A")])
    predicted.spans["ents"] = [Span(predicted, 0, 1, label="S"), Span(predicted, 0, 2, label="S")]
    linked = compare(make_doc([(0, 1, "S", "A")], key="ents"), predicted, "ents")
    assert linked.predicted == {(0, 6, "A")}


def test_a_layer_that_is_linked_in_doc_ents_has_its_ids():
    predicted = make_doc([(0, 1, "S", "A", ["A"]), (2, 4, "S", "B", ["B"])])
    spans = [Span(predicted, 0, 1, label="S"), Span(predicted, 2, 4, label="S", kb_id="C")]
    predicted.spans["clinical"] = [*spans, Span(predicted, 3, 4, label="S")]
    gold = [(0, 1, "S", "A"), (2, 4, "S", "B"), (3, 4, "S", "B")]
    linked = compare(make_doc(gold, key="clinical"), predicted, "clinical")
    assert linked.predicted == {(0, 6, "A"), (9, 21, "C")}
    assert [mention.nil for mention in linked.mentions] == [False, False, True]


def test_unannotated_layer():
    assert compare(make_doc([]), make_doc([]), "absent") is None


# -- the scorer ------------------------------------------------------------------------------------


def test_scorer_by_hand():
    scorer = spacy.registry.resolve({"s": {"@scorers": "spacy-bioclin.linking_scorer.v1"}})["s"]
    eg = Example(make_doc(SYSTEM), make_doc(GOLD))
    scores = pickle.loads(pickle.dumps(scorer))([eg])
    assert scores["link_acc"] == 2 / 3  # the first, and NIL
    assert scores["link_acc_linkable"] == 1 / 2
    assert (scores["link_r1"], scores["link_mrr"], scores["link_n"]) == (1.0, 1.0, 3)
    assert (scores["link_nil_p"], scores["link_nil_r"]) == (1 / 2, 1.0)
    assert (scores["link_p"], scores["link_r"], scores["link_f"]) == (1.0, 1 / 3, 1 / 2)
    assert scores["link_docs_r"] == 1 / 3
    strict = make_linking_scorer(rule="strict")([eg])
    assert (strict["link_acc"], strict["link_r64"]) == (2 / 3, 1 / 2)


def test_scorer_names_the_key_and_is_none_without_gold_ids():
    scorer = make_linking_scorer(spans_key="x")
    no_ids, predicted = make_doc([(0, 1, "S", "")], key="x"), make_doc([(0, 1, "S", "A")], key="x")
    scores = scorer([Example(predicted, no_ids)])
    assert set(scores.values()) == {None}
    assert {"spans_x_link_acc", "spans_x_link_r5", "spans_x_link_f"} < set(scores)
    gold = make_doc([(0, 1, "S", "A")], key="x")
    assert scorer([Example(predicted, no_ids), Example(predicted, gold)])["spans_x_link_n"] == 2
    # a linker that links nothing scores nothing, which is not the same as no score
    assert scorer([Example(no_ids, gold)])["spans_x_link_acc"] == 0.0


def test_unknown_rule():
    with pytest.raises(BioclinError, match=r"'loose': choose from biosyn, strict"):
        make_linking_scorer(rule="loose")


def test_nothing_is_changed():
    reference, predicted = make_doc(GOLD), make_doc(SYSTEM)
    before = reference.to_bytes(), predicted.to_bytes()
    make_linking_scorer()([Example(predicted, reference)])
    assert (reference.to_bytes(), predicted.to_bytes()) == before


# -- bioclin evaluate ------------------------------------------------------------------------------


@Language.component("link_by_text")
def link_by_text(doc):
    ids = {"fiebre": "A", "dolor lumbar": "Z"}
    for ent in doc.ents:
        for token in ent:
            token.ent_kb_id_ = ids[ent.text]
    return doc


def evaluate(folder, *, links, gold_id, concepts=()):
    nlp = spacy.blank("es")
    patterns = [{"label": "S", "pattern": text} for text in ("fiebre", "dolor lumbar")]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    if links:
        nlp.add_pipe("link_by_text")
    if concepts:
        kb = build_kb([Concept(*each) for each in concepts], folder / "kb", meta={})
        nlp.add_pipe("bioclin_linker", config={"kb": str(kb.path)})
    nlp.to_disk(folder / "pipeline")
    doc = nlp.make_doc("fiebre y dolor lumbar")
    layer = [[0, 6, "S", gold_id], [9, 21, "S", ""]]
    doc.user_data[GOLD_KEY] = {"id": "d", "task": "t", "layers": {"ents": layer}}
    DocBin(docs=[doc], store_user_data=True).to_disk(folder / "dev.spacy")
    arguments = ["pipeline", "dev.spacy", "-o", "metrics.json", "--html", "page.html"]
    paths = [a if a.startswith("-") else str(folder / a) for a in arguments]
    result = CliRunner().invoke(app, ["evaluate", *paths])
    assert result.exit_code == 0, result.output
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return metrics, result.output, (folder / "page.html").read_text(encoding="utf-8")


def test_command_reports_linking(tmp_path):
    metrics, output, page = evaluate(tmp_path, links=True, gold_id="A")
    linking = metrics["layers"]["ents"]["linking"]
    assert linking["n_gold"] == 2
    assert linking["biosyn"]["acc"] == linking["strict"]["acc"] == 1 / 2
    whole = linking["end_to_end"]["mentions"]
    assert (whole["tp"], whole["fp"], whole["fn"]) == Counts(1, 1, 0)
    assert metrics["scores"]["link_acc"] == 1 / 2
    assert metrics["scores"]["link_f"] == 2 / 3
    assert "linking of the 2 mentions found (of 2): accuracy 50.00" in " ".join(output.split())
    assert "Linking" in page and "66.67" in page


def test_no_linking_no_figures(tmp_path):
    for links, gold_id in ((False, "A"), (True, "")):
        folder = tmp_path / str(links)
        folder.mkdir()
        metrics, output, page = evaluate(folder, links=links, gold_id=gold_id)
        assert metrics["layers"]["ents"]["linking"] is None
        assert not any("link" in key for key in metrics["scores"])
        assert "linking of the" not in output and "Linking" not in page


def test_links_to_another_terminology_are_not_scored(tmp_path):
    concepts = [("X", "fiebre", "es"), ("Y", "tos", "es")]
    metrics, output, page = evaluate(tmp_path, links=False, gold_id="A", concepts=concepts)
    assert metrics["layers"]["ents"]["linking"] is None
    assert metrics["layers_with_other_ids"] == ["ents"]
    assert not any("link" in key for key in metrics["scores"]) and "Linking" not in page
    said = " ".join(output.split())
    assert (
        "links the layer 'ents', but no concept id of the corpus is in its knowledge base" in said
    )


@pytest.mark.slow
def test_right_links_of_a_component_without_knowledge_base_are_scored(tmp_path):
    metrics, _, _ = evaluate(tmp_path, links=True, gold_id="A", concepts=[("Y", "tos", "es")])
    assert metrics["layers_with_other_ids"] == []
    assert metrics["scores"]["link_acc_linkable"] == 1


def test_a_wrong_link_to_a_known_terminology_is_scored(tmp_path):
    concepts = [("X", "fiebre", "es"), ("MESH:A", "tos", "es")]
    metrics, _, _ = evaluate(tmp_path, links=False, gold_id="A", concepts=concepts)
    assert metrics["layers_with_other_ids"] == []
    assert metrics["scores"]["link_acc_linkable"] == 0
