"""Published scores of texts and pairs, against counts worked by hand and the authors' scripts."""

import math

import pytest
import spacy
from spacy.training import Example

from spacy_bioclin.annotations.pairs import SCORE, make_pair
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.published import METRICS, TaskScoring
from spacy_bioclin.types import GOLD_KEY

NLP = spacy.blank("es")


def make_example(gold, found, *, id=None, pair=False):
    """gold, found: doc.cats."""
    docs = [make_pair(NLP, "Tos.", "Fiebre.") if pair else NLP.make_doc("Tos.") for _ in range(2)]
    docs[0].cats, docs[1].cats = found, gold
    if id is not None:
        docs[1].user_data[GOLD_KEY] = {"id": id, "task": "t", "layers": {}}
    return Example(*docs)


def score(name, egs, **task):
    return METRICS[name].score(egs, TaskScoring(**task))


# -- Hallmarks of Cancer ---------------------------------------------------------------------------

# Sentences of three abstracts: id, gold labels, probabilities of A, B and C. The figures below are
# those of hoc_get_p_r_f_arrary (facebookresearch/bio-lm, biolm/utils_classification.py, which was
# adapted from BLUE) and of scikit-learn's f1_score over the same labels of abstracts.
ABSTRACTS = [
    ("7", "A", (0.9, 0.1, 0.2)),
    ("7", "AB", (0.6, 0.4, 0.7)),
    ("8", "B", (0.1, 0.8, 0.1)),
    ("9", "C", (0.1, 0.2, 0.3)),
    ("9", "A", (0.4, 0.3, 0.2)),
]
AUTHORS = {"p": 0.5, "r": 0.5, "example": 0.5, "macro": 0.4444444444444444, "micro": 0.5}


def make_abstracts(form):
    return [
        make_example(
            {label: float(label in gold) for label in "ABC"},
            dict(zip("ABC", probabilities, strict=True)),
            id=form.format(abstract, number),
        )
        for number, (abstract, gold, probabilities) in enumerate(ABSTRACTS)
    ]


@pytest.mark.parametrize("form", ["{}-{}", "{}_s{}"])
def test_abstracts_are_scored_as_by_the_authors_script(form):
    egs = make_abstracts(form)
    example, macro = score("hoc_example_f", egs), score("hoc_macro_f", egs)
    assert example["value"] == pytest.approx(AUTHORS["example"])
    assert (example["p"], example["r"]) == pytest.approx((AUTHORS["p"], AUTHORS["r"]))
    assert macro["value"] == macro["macro_f"] == pytest.approx(AUTHORS["macro"])
    assert macro["micro_f"] == pytest.approx(AUTHORS["micro"])
    assert example["docs"] == 3
    # by hand: precision 1/2, 1 and 0 (nothing is found in the third), recall 1/2, 1 and 0
    assert example["p"] == pytest.approx((1 / 2 + 1 + 0) / 3)


def test_precision_and_recall_of_abstracts_differ():
    egs = [
        make_example({"A": 1.0, "B": 0.0}, {"A": 0.9, "B": 0.5}, id="1-0"),  # 0.5 is predicted
        make_example({"A": 1.0, "B": 1.0}, {"A": 0.9, "B": 0.1}, id="2-0"),
        make_example({"A": 1.0, "B": 0.0}, {"A": 0.9, "B": 0.1}, id="3-0"),
    ]
    found = score("hoc_example_f", egs)
    assert (found["p"], found["r"]) == pytest.approx((2.5 / 3, 2.5 / 3))
    found = score("hoc_example_f", egs[:1])
    # NCBI's eval_hoc.py would print the first as recall and the second as precision
    assert (found["p"], found["r"], found["value"]) == pytest.approx((0.5, 1.0, 2 / 3))


def test_abstracts_need_ids():
    with pytest.raises(BioclinError, match="a gold Doc has no id"):
        score("hoc_example_f", [make_example({"A": 1.0}, {"A": 1.0})])


# -- one of two classes, accuracy ------------------------------------------------------------------

# scikit-learn's f1_score, precision_score and recall_score of labels 1, 1, 1, 0, 0, 1, 0 and
# predictions 1, 0, 1, 1, 0, 1, 0 (acc_p_r_and_f1 of bio-lm) are all 0.75.
GOLD, FOUND = (1, 1, 1, 0, 0, 1, 0), (1, 0, 1, 1, 0, 1, 0)


def make_binary(*, pair=False):
    return [
        make_example(
            {"no": float(not gold), "yes": float(gold)},
            {"no": 0.7 - 0.4 * found, "yes": 0.3 + 0.4 * found},
            pair=pair,
        )
        for gold, found in zip(GOLD, FOUND, strict=True)
    ]


def test_positive_class_as_in_the_authors_script():
    found = score("texts_positive_f", make_binary())
    assert (found["value"], found["p"], found["r"]) == pytest.approx((0.75, 0.75, 0.75))
    assert found["accuracy"] == pytest.approx(5 / 7)  # two of seven are wrong
    assert score("texts_positive_f", make_binary(), positive="no")["value"] == pytest.approx(2 / 3)
    assert score("texts_positive_f", make_binary(), positive="other")["value"] == 0.0


def test_a_tie_is_the_first_class():
    egs = [make_example({"no": 1.0, "yes": 0.0}, {"no": 0.5, "yes": 0.5})]
    assert score("texts_accuracy", egs)["value"] == 1.0
    egs = [make_example({"no": 1.0, "yes": 0.0}, {"yes": 0.5, "no": 0.5})]
    assert score("texts_accuracy", egs)["value"] == 0.0


def test_which_class_is_positive():
    egs = [make_example({"A": 1.0, "B": 0.0}, {"A": 1.0, "B": 0.0})]
    with pytest.raises(BioclinError, match="which of the classes A is the positive one"):
        score("texts_positive_f", egs)
    with pytest.raises(BioclinError, match="which of the classes A, B is"):
        score("texts_positive_f", egs, classes=("B", "A"))
    egs = [make_example({"True": 1.0, "False": 0.0}, {"True": 1.0, "False": 0.0})]
    assert score("texts_positive_f", egs)["value"] == 1.0


def test_accuracy_counts_classes_of_the_task_and_annotated_texts():
    egs = [
        make_example({"A": 1.0, "B": 0.0}, {"A": 0.3, "B": 0.2, "OTHER": 0.9}),
        make_example({"A": 0.0, "B": 1.0}, {"A": 0.6, "B": 0.4}),
        make_example({}, {"A": 1.0, "B": 0.0}),  # not annotated
    ]
    found = score("texts_accuracy", egs)
    assert (found["value"], found["docs"]) == (0.5, 2)
    assert found["macro_f"] == pytest.approx((2 / 3 + 0) / 2)
    several = [make_example({"A": 1.0, "B": 1.0}, {"A": 0.9, "B": 0.4})]
    assert score("texts_accuracy", several, exclusive=False)["value"] == 0.0
    assert score("texts_accuracy", several, exclusive=False, classes=("A",))["value"] == 1.0


def test_pairs_are_kept_apart_from_texts():
    egs = [*make_binary(pair=True), make_example({"no": 1.0, "yes": 0.0}, {"no": 0.0, "yes": 1.0})]
    assert score("pairs_accuracy", egs)["value"] == pytest.approx(5 / 7)
    assert score("texts_accuracy", egs)["value"] == pytest.approx(5 / 8)
    assert score("pairs_accuracy", egs[-1:])["value"] is None


# -- graded pairs ----------------------------------------------------------------------------------


def make_graded(gold, found):
    return [
        make_example({SCORE: a}, {} if b is None else {SCORE: b}, pair=True)
        for a, b in zip(gold, found, strict=True)
    ]


def test_pearson_by_hand():
    # deviations -1, 0, 1 and -3, 1, 2: 5 / sqrt(2 * 14)
    egs = make_graded([1.0, 2.0, 3.0], [0.0, 4.0, 5.0])
    found = score("pairs_pearson", egs)
    assert found["value"] == pytest.approx(5 / math.sqrt(28))
    assert (found["spearman"], found["docs"]) == (pytest.approx(1.0), 3)
    egs = [*egs, make_example({"A": 1.0}, {"A": 1.0}, pair=True), make_example({SCORE: 1.0}, {})]
    assert score("pairs_pearson", egs) == found  # one without a score, and one that is no pair


def test_pearson_is_not_defined():
    assert score("pairs_pearson", [])["value"] is None
    assert score("pairs_pearson", make_graded([1.0, 1.0], [1.0, 2.0]))["value"] is None
    assert score("pairs_pearson", make_graded([1.0, 2.0], [1.0, None]))["value"] is None


def test_nothing_annotated_has_no_score():
    egs = [make_example({}, {"A": 1.0}, id="1-0", pair=True)]
    texts = ("hoc_example_f", "hoc_macro_f", "texts_positive_f", "texts_accuracy", "pairs_accuracy")
    for name in texts:
        assert set(score(name, egs).values()) == set(score(name, []).values()) == {None}
