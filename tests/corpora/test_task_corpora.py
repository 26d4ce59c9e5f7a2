"""The reader for corpora of several tasks."""

from pathlib import Path
from typing import Any

import pytest
import spacy

from spacy_bioclin.corpora.task_corpora import make_task_corpora
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import GIVEN_KEY, TASK_KEY
from tests.corpora.errors import error_of, is_wrong
from tests.training.several import DRUGS, NOTES, write_two


def test_examples_know_their_task(tmp_path: Path) -> None:
    paths = write_two(tmp_path)
    corpus = make_task_corpora(
        {"s": {"path": paths["signs"], "heads": ["a"]}, "d": {"path": paths["drugs"]}}
    )
    nlp = spacy.blank("es")
    read = [(eg.reference.text, eg.reference.user_data[TASK_KEY]) for eg in corpus.read(nlp)]
    assert read == [(note, "s") for note in NOTES] + [(note, "d") for note in DRUGS]
    assert all(TASK_KEY not in eg.predicted.user_data for eg in corpus.read(nlp))
    own = [eg.reference.text for eg in corpus.read(nlp, head="b")]
    assert own == DRUGS  # heads = null is every head, ["a"] is not
    assert len(list(corpus.read(nlp, head="a"))) == len(NOTES) + len(DRUGS)
    assert corpus.tasks["s"].heads == ["a"] and corpus.tasks["d"].weight == 1.0


def test_long_notes_are_cut_and_keep_their_task(tmp_path: Path) -> None:
    paths = write_two(tmp_path)
    corpus = make_task_corpora({"s": {"path": paths["signs"]}}, max_tokens=3)
    parts = list(corpus.read(spacy.blank("es")))
    assert len(parts) > len(NOTES)
    assert {eg.reference.user_data[TASK_KEY] for eg in parts} == {"s"}


def test_spacy_train_is_refused(tmp_path: Path) -> None:
    corpus = make_task_corpora({"s": {"path": write_two(tmp_path)["signs"]}})
    with pytest.raises(BioclinError, match="train this config with `bioclin train`"):
        corpus(spacy.blank("es"))


def test_bad_settings() -> None:
    rows: list[tuple[Any, Any, str]] = [
        ({}, {}, "has no tasks; add a section"),
        ({"a b": {"path": None}}, {}, "'a b' cannot be the name of a task"),
        ({"tasks": {"path": None}}, {}, "another name than"),
        ({"a": {}}, {}, "task a: path is missing"),
        ({"a": {"path": "x", "head": ["ner"]}}, {}, "unknown key 'head'; did you mean heads"),
        ({"a": {"path": "x", "heads": []}}, {}, r"task a: heads = \[\]: want names of components"),
        ({"a": {"path": "x", "heads": "ner"}}, {}, "task a: heads = 'ner'"),
        ({"a": {"path": "x", "weight": 0}}, {}, "task a: weight = 0: want greater than 0"),
        ({"a": {"path": "x", "weight": -1.0}}, {}, "weight = -1.0"),
        ({"a": {"path": "x", "weight": float("inf")}}, {}, "weight = inf"),
        ({"a": {"path": "x"}}, {"max_tokens": -1}, "TaskCorpora.v1: max_tokens is -1"),
        ({"a": {"path": "x"}}, {"balance": "dw"}, "balance = 'dw': unknown; did you mean dwa"),
    ]
    wrong = [
        (tasks, found)
        for tasks, settings, message in rows
        for found in [error_of(make_task_corpora, tasks, **settings)]
        if is_wrong(found, message)
    ]
    assert not wrong


def test_a_corpus_that_is_not_there() -> None:
    for path, message in (
        (None, "task a has no path; .*--corpora.train.tasks.a.path"),
        ("x", "x:"),
    ):
        corpus = make_task_corpora({"a": {"path": path}})
        with pytest.raises(BioclinError, match=message):
            list(corpus.read(spacy.blank("es")))


def test_each_task_says_whether_spans_are_given(tmp_path: Path) -> None:
    paths = write_two(tmp_path)
    corpus = make_task_corpora(
        {"s": {"path": paths["signs"], "use_gold_ents": True}, "d": {"path": paths["drugs"]}}
    )
    for eg in corpus.read(spacy.blank("es")):
        is_given = eg.reference.user_data[TASK_KEY] == "s"
        assert eg.predicted.user_data.get(GIVEN_KEY, False) == is_given
        for key, group in eg.reference.spans.items():
            given = [span.text for span in eg.predicted.spans.get(key, ())]
            assert given == ([span.text for span in group] if is_given else [])
        expected = [ent.text for ent in eg.reference.ents] if is_given else []
        assert [ent.text for ent in eg.predicted.ents] == expected
    given = [eg.predicted.spans for eg in corpus.read(spacy.blank("es"))]
    assert any(len(group) for groups in given for group in groups.values())
