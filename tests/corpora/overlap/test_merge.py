"""Corpora that annotate the same notes for different labels, as one corpus."""

import functools
from pathlib import Path

import pytest
from spacy.language import Language
from spacy.tokens import Doc
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.convert import make_nlp
from spacy_bioclin.corpora.docbin import read_docs, write_docs
from spacy_bioclin.corpora.docs import make_gold_doc
from spacy_bioclin.corpora.overlap.merge import merge_docs
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.spans import annotated_labels
from spacy_bioclin.types import GOLD_KEY, AnnotatedText, SpanAnnotation

TEXT = "Paciente con tos y diabetes."
WORDS = {"SYMPTOM": "tos", "DISEASE": "diabetes", "ALL": "tos y diabetes"}


@functools.cache
def get_nlp() -> Language:
    return make_nlp("es")


def make_doc(label: str, text: str = TEXT, id: str = "d1", layer: str = "clinical") -> Doc:
    start = text.index(WORDS[label])
    span = SpanAnnotation("T1", label, ((start, start + len(WORDS[label])),), WORDS[label], ("C1",))
    annotated = AnnotatedText(id, text, (span,))
    return make_gold_doc(get_nlp(), annotated, layers={"*": layer}, annotated_labels=[label])


def describe(doc: Doc, layer: str = "clinical") -> list[tuple[str, str, str]]:
    return [(span.text, span.label_, span.kb_id_) for span in doc.spans[layer]]


def test_labels_of_the_same_text_come_together() -> None:
    docs = {
        "a": [make_doc("SYMPTOM", f"  \n{TEXT}"), make_doc("SYMPTOM", "Sin tos.", "d2")],
        "b": [make_doc("DISEASE", f"{TEXT}\n", "other id")],
        "c": [make_doc("ALL"), make_doc("ALL", f"Otra: {TEXT}", "d3")],
    }
    merged, n_merged = merge_docs(docs)
    assert n_merged == 1
    assert [doc.user_data[GOLD_KEY]["id"] for doc in merged] == ["d1", "d2", "d3"]
    first = merged[0]
    assert describe(first) == [
        ("tos", "SYMPTOM", "C1"),
        ("diabetes", "DISEASE", "C1"),
        ("tos y diabetes", "ALL", "C1"),
    ]
    assert annotated_labels(first, "clinical") == {"ALL", "DISEASE", "SYMPTOM"}
    gold = first.user_data[GOLD_KEY]["layers"]["clinical"]
    texts = [first.text[start:end] for start, end, *_ in gold]
    assert texts == ["tos", "diabetes", "tos y diabetes"]
    assert annotated_labels(merged[1], "clinical") == {"SYMPTOM"}


def test_doc_ents_hold_what_does_not_overlap() -> None:
    merged, _ = merge_docs(
        {
            "a": [make_doc("SYMPTOM", layer="ents")],
            "b": [make_doc("ALL", layer="ents")],
        }
    )
    assert [ent.label_ for ent in merged[0].ents] == ["ALL"]
    assert len(merged[0].spans["ents"]) == 2


def test_a_text_that_a_corpus_has_twice_stays_twice() -> None:
    merged, n_merged = merge_docs(
        {
            "a": [make_doc("SYMPTOM"), make_doc("SYMPTOM", id="again")],
            "b": [make_doc("DISEASE")],
        }
    )
    assert (len(merged), n_merged) == (2, 1)


def test_the_same_label_twice_and_unknown_labels_are_errors() -> None:
    with pytest.raises(BioclinError, match="b: document d1 was annotated for 'DISEASE' in another"):
        merge_docs({"a": [make_doc("DISEASE")], "b": [make_doc("DISEASE")]})
    doc = make_doc("SYMPTOM")
    del doc.user_data[GOLD_KEY]["annotated"]
    with pytest.raises(BioclinError, match=r"a: document d1 does not say .* --annotated"):
        merge_docs({"a": [doc], "b": [make_doc("DISEASE")]})
    with pytest.raises(BioclinError, match="b: document without id does not say"):
        merge_docs({"a": [make_doc("DISEASE")], "b": [get_nlp()(TEXT)]})


def test_the_command(tmp_path: Path) -> None:
    for name, label in (("a", "SYMPTOM"), ("b", "DISEASE")):
        write_docs([make_doc(label)], tmp_path / f"{name}.spacy")
    inputs = [str(tmp_path / f"{name}.spacy") for name in "ab"]
    out = tmp_path / "both.spacy"
    result = CliRunner().invoke(app, ["merge", *inputs, "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert "1 documents" in result.output and "1 of them" in result.output
    [doc] = read_docs(out, get_nlp().vocab)
    assert [label for _, label, _ in describe(doc)] == ["SYMPTOM", "DISEASE"]
    assert CliRunner().invoke(app, ["merge", *inputs, "-o", str(out)]).exit_code == 1
    refused = CliRunner().invoke(app, ["merge", *inputs, "-o", inputs[0], "--overwrite"])
    assert refused.exit_code == 1
    [doc] = read_docs(Path(inputs[0]), get_nlp().vocab)
    assert [label for _, label, _ in describe(doc)] == ["SYMPTOM"]
