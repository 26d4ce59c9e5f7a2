"""Thresholds of labels, chosen on a dev corpus."""

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.relations.thresholds import choose_thresholds, find_best
from tests.relations.test_component import NOTES, make_examples, make_nlp, make_reference, train

SCORED: list[tuple[list[tuple[float, bool]], int, tuple[float, float]]] = [
    # 1 of 1 found, 1 of 2 gold: .67; then 2 of 3, 2 of 2: .8.
    ([(0.9, True), (0.6, False), (0.4, True)], 2, (0.2, 0.8)),
    # The third is wrong: 2 of 2 is best.
    ([(0.9, True), (0.6, True), (0.4, False)], 2, (0.5, 1.0)),
    # Equal probabilities cannot be divided.
    ([(0.9, True), (0.9, False), (0.4, False)], 1, (0.65, 2 / 3)),
    # One that no candidate is counts as missed.
    ([(0.8, True)], 3, (0.4, 0.5)),
    ([(0.8, False)], 1, (0.5, 0.0)),
    ([], 1, (0.5, 0.0)),
]


def test_find_best():
    for scored, n_gold, expected in SCORED:
        assert find_best(scored, n_gold=n_gold) == pytest.approx(expected), scored


@pytest.fixture
def trained(tiny_encoder):
    """A pipeline that has not learned everything, so that thresholds matter."""
    nlp = make_nlp(tiny_encoder)
    return train(nlp, make_examples(nlp), steps=4)


def test_chosen_thresholds_are_not_worse_on_the_corpus_they_were_chosen_on(trained):
    references = [make_reference(trained, *note) for note in NOTES]
    choices = choose_thresholds(trained, "relations", references)
    assert set(choices) == {"CAUSES", "TREATS"}
    for choice in choices.values():
        assert choice.n_gold == 2
        assert choice.f >= choice.f_before
    thresholds = {label: choice.threshold for label, choice in choices.items()}
    assert trained.get_pipe("relations").cfg["thresholds"] == thresholds
    scores = trained.evaluate(make_examples(trained))["rels_per_type"]
    assert {label: scores[label]["f"] for label in scores} == pytest.approx(
        {label: choice.f for label, choice in choices.items()}
    )


def test_a_corpus_without_relations_is_refused_and_changes_nothing(trained):
    before = dict(trained.get_pipe("relations").cfg["thresholds"])
    references = [make_reference(trained, *note, annotated=False) for note in NOTES]
    with pytest.raises(BioclinError, match="the corpus has no relation of its labels"):
        choose_thresholds(trained, "relations", references)
    assert trained.get_pipe("relations").cfg["thresholds"] == before


def test_labels_that_a_config_cannot_have_as_keys(tiny_encoder, tmp_path):
    text, entities, relations = NOTES[0]
    renamed = [(f"CPR:{i}", head, child) for i, (_, head, child) in enumerate(relations)]
    notes = [(text, entities, renamed)]
    nlp = make_nlp(tiny_encoder)
    train(nlp, make_examples(nlp, notes), steps=2)
    choose_thresholds(nlp, "relations", [make_reference(nlp, *notes[0])])
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    assert set(loaded.get_pipe("relations").cfg["thresholds"]) == {"CPR:0", "CPR:1"}


def test_command(trained, tmp_path):
    trained.to_disk(tmp_path / "pipeline")
    write_docs([make_reference(trained, *note) for note in NOTES], tmp_path / "dev.spacy")
    arguments = ["calibrate", str(tmp_path / "pipeline"), str(tmp_path / "dev.spacy")]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "TREATS" in done.output
    assert (tmp_path / "out" / "relations_thresholds.json").is_file()
