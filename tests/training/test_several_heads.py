"""Entities, relations, pairs of texts and classes of texts, trained together on one encoder."""

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_bioclin.annotations.pairs import make_pair
from spacy_bioclin.annotations.relations import get_relations
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.errors import BioclinError
from tests.training.several import (
    LISTENER,
    NOTES,
    SIGNS,
    add_cats,
    blank,
    make_config,
    make_docs,
    make_ner,
    run,
)
from tests.training.test_several import TEXTCAT

RELATIONS: dict[str, Any] = {
    "factory": "bioclin_relations",
    "spans_key": "arguments",
    "model": {
        "@architectures": "spacy-bioclin.RelationClassifier.v1",
        "context": True,
        "feature_width": 4,
        "hidden_width": 8,
        "dropout": 0.0,
        "learn_rate_scale": 10.0,
        "tok2vec": LISTENER,
    },
}
PAIRS: dict[str, Any] = {
    "factory": "bioclin_pairs",
    "require_pairs": False,
    "model": {
        "@architectures": "spacy-bioclin.PairClassifier.v1",
        "dropout": 0.0,
        "learn_rate_scale": 10.0,
        "hidden": False,
        "tok2vec": LISTENER,
    },
}
GRADES = {**PAIRS, "objective": "regression"}


def make_relation_docs() -> list[Doc]:
    docs = []
    for text, label in (
        ("aspirina alivia dolor", "ALIVIA"),
        ("heparina causa sangrado", "CAUSA"),
        ("metformina causa diarrea", "CAUSA"),
        ("amoxicilina alivia fiebre", "ALIVIA"),
    ):
        doc = blank()(text)
        head, child = Span(doc, 0, 1, label="DRUG"), Span(doc, 2, 3, label="SIGN")
        doc.spans["arguments"] = [head, child]
        arguments = [[span.start_char, span.end_char, span.label_] for span in (head, child)]
        doc.user_data["bioclin_gold"] = {
            "id": text,
            "task": "",
            "layers": {"arguments": [[*own, ""] for own in arguments]},
            "relations": [[label, *arguments]],
        }
        docs.append(doc)
    return docs


def make_pair_docs(*, graded: bool) -> list[Doc]:
    docs = []
    for first, second, same in (
        ("Tiene tos.", "Sufre tos.", True),
        ("Tiene tos.", "No fuma.", False),
        ("Sin fiebre.", "No hay fiebre.", True),
        ("Sin fiebre.", "Es diabético.", False),
    ):
        doc = make_pair(blank(), first, second)
        doc.cats = {"score": 4.0 if same else 1.0}
        if not graded:
            doc.cats = {"YES": float(same), "NO": float(not same)}
        docs.append(doc)
    return docs


@pytest.fixture
def tasks(tmp_path: Path) -> dict[str, dict[str, Any]]:
    docs = {
        "signs": make_docs(NOTES, SIGNS, "SIGN", "signs"),
        "harm": make_relation_docs(),
        "same": make_pair_docs(graded=False),
        "grades": make_pair_docs(graded=True),
        "length": add_cats(make_docs(NOTES, SIGNS, "SIGN", None)),
    }
    for name, own in docs.items():
        write_docs(own, tmp_path / f"{name}.spacy")
    found = {name: {"path": str(tmp_path / f"{name}.spacy"), "heads": [name]} for name in docs}
    found["harm"]["use_gold_ents"] = True
    return found


HEADS = {
    "signs": make_ner("signs"),
    "harm": RELATIONS,
    "same": PAIRS,
    "grades": GRADES,
    "length": TEXTCAT,
}


def test_five_kinds_of_heads_are_trained_on_one_encoder(
    tmp_path: Path, tiny_encoder: Path, tasks: dict[str, dict[str, Any]]
) -> None:
    settings = {"training.max_steps": 5, "training.eval_frequency": 5}
    config = make_config(tiny_encoder, HEADS, tasks, settings, draw="round_robin")
    _, printed = run(config, tmp_path / "out")
    assert all(name in printed for name in tasks)
    nlp: Any = spacy.load(tmp_path / "out" / "model-last")
    performance = nlp.meta["performance"]
    assert {"signs_spans_signs_f", "harm_rels_f", "same_pairs_acc"} <= set(performance)
    # Each head learns the labels of its own task alone.
    assert nlp.get_pipe("harm").labels == ("ALIVIA", "CAUSA")
    assert nlp.get_pipe("signs").labels == ("SIGN",)
    # A note has no pair, and a pair has classes, grade and length.
    note = nlp("Sufre tos.")
    assert set(note.cats) == {"LONG", "SHORT"}
    pair = nlp(make_pair(nlp, "Tiene tos.", "Sufre tos."))
    assert set(pair.cats) == {"LONG", "SHORT", "YES", "NO", "score"}
    [gold, *_] = make_relation_docs()
    doc = nlp.make_doc(gold.text)
    doc.spans["arguments"] = [Span(doc, 0, 1, label="DRUG"), Span(doc, 2, 3, label="SIGN")]
    found = get_relations(nlp(doc), "relations")
    assert all((one.head.text, one.child.text) == ("aspirina", "dolor") for one in found)


def test_tasks_that_do_not_fit(
    tmp_path: Path, tiny_encoder: Path, tasks: dict[str, dict[str, Any]]
) -> None:
    harm, same = tasks["harm"], tasks["same"]
    for heads, own, message in (
        (
            {"harm": RELATIONS, "again": RELATIONS},
            {"harm": harm, "again": {**harm, "heads": ["again"]}},
            'both write relations "relations"',
        ),
        (
            {"same": PAIRS, "again": PAIRS},
            {"same": same, "again": {**same, "heads": ["again"]}},
            r'both write doc.cats\["NO"\]',
        ),
        (
            {"harm": RELATIONS},
            {"harm": harm, "none": {**tasks["signs"], "heads": ["harm"]}},
            r"task none: no document of .* has relations.*--relat",
        ),
    ):
        with pytest.raises(BioclinError, match=message):
            run(make_config(tiny_encoder, heads, own), tmp_path / "out")
