"""Published scores of relations, against counts worked by hand and the authors' script."""

import pytest

from spacy_bioclin.evaluation.published import METRICS, TaskScoring, make_scoring
from tests.evaluation.test_relations import CEFALEA, IBUPROFENO, NAUSEAS, NLP, NOLOTIL
from tests.evaluation.test_relations import make_example as make_relations

# Twelve candidates: (class, predicted class) as numbers; 5 is "false". The figures below are those
# of chemprot_eval (facebookresearch/bio-lm, biolm/utils_classification.py), which takes micro F1 of
# scikit-learn over the first five classes, and of scikit-learn's macro F1 over them.
CANDIDATES = [
    *[(0, 0), (0, 0), (0, 1), (1, 1), (1, 5), (2, 2)],
    *[(3, 5), (4, 3), (5, 5), (5, 0), (5, 5), (5, 1)],
]
AUTHORS = {"p": 0.5, "r": 0.5, "micro_f": 0.5, "macro_f": 0.4133333333333333}
LABELS = ("CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9")


def make_candidate(gold: int, found: int):
    """A text with one candidate for a relation."""
    sides = [[(LABELS[side], NOLOTIL, CEFALEA)] if side < 5 else [] for side in (gold, found)]
    return make_relations(*sides)


def score(name, egs, **task):
    return METRICS[name].score(egs, TaskScoring(**task))


def test_scores_are_those_of_the_authors_script():
    egs = [make_candidate(*candidate) for candidate in CANDIDATES]
    micro = score("relations_micro_f", egs, relations=LABELS)
    assert {key: micro[key] for key in AUTHORS} == pytest.approx(AUTHORS)
    assert (micro["value"], micro["docs"]) == (micro["micro_f"], 12)
    macro = score("relations_macro_f", egs, relations=LABELS)
    assert macro["value"] == pytest.approx(AUTHORS["macro_f"])
    # by hand: F1 of the classes is 2/3, 2/5, 1, 0 and 0
    assert macro["value"] == pytest.approx((2 / 3 + 2 / 5 + 1) / 5)


def test_only_the_labels_of_the_task_count():
    eg = make_relations(
        [("ADE", NOLOTIL, CEFALEA), ("ADE", NOLOTIL, CEFALEA), ("DOSIS", IBUPROFENO, NAUSEAS)],
        [("ADE", NOLOTIL, CEFALEA), ("OTRA", NOLOTIL, NAUSEAS)],
    )
    every = score("relations_micro_f", [eg])
    assert (every["p"], every["r"]) == pytest.approx((1 / 2, 1 / 2))
    assert every["macro_f"] == pytest.approx((1 + 0) / 2)
    only = score("relations_micro_f", [eg], relations=("ADE",))
    assert (only["p"], only["r"], only["value"]) == (1.0, 1.0, 1.0)
    assert score("relations_macro_f", [eg], relations=("ADE", "DOSIS"))["value"] == 0.5


def test_direction_counts_unless_the_label_is_symmetric():
    eg = make_relations([("IGUAL", CEFALEA, NAUSEAS)], [("IGUAL", NAUSEAS, CEFALEA)])
    assert score("relations_micro_f", [eg])["value"] == 0.0
    assert score("relations_micro_f", [eg], symmetric=("IGUAL",))["value"] == 1.0


def test_concepts_count_where_the_task_is_at_their_level():
    eg = make_relations(
        None,
        [("CID", NOLOTIL, CEFALEA)],
        concepts=[("CID", "D1", "D2")],
        found_concepts=[("D1", "D2")],
    )
    assert score("relations_micro_f", [eg], level="concept")["value"] == 1.0
    assert score("relations_micro_f", [eg], level="mention")["value"] is None


def test_nothing_annotated_has_no_score():
    eg = make_relations(None, [("ADE", NOLOTIL, CEFALEA)])
    for name in ("relations_micro_f", "relations_macro_f"):
        assert set(score(name, [eg]).values()) == {None}


def test_a_pipeline_says_where_its_relations_are():
    assert make_scoring(NLP, relations="all") == TaskScoring()
    nlp = NLP.from_config(NLP.config)
    settings = {"relations_key": "drugs", "symmetric": ["IGUAL"], "level": "concept"}
    nlp.add_pipe("transformer", config={"model": {"@architectures": ENCODER, "name": "x"}})
    nlp.add_pipe("bioclin_relations", config=settings)
    task = make_scoring(nlp, relations=["IGUAL"], exclusive=False, positive="yes")
    assert task.relations == ("IGUAL",) and task.positive == "yes" and not task.exclusive
    assert (task.relations_key, task.symmetric, task.level) == ("drugs", ("IGUAL",), "concept")


ENCODER = "spacy-bioclin.Encoder.v1"
