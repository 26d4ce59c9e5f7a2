"""Scores of tags and spans against seqeval and nervaluate."""

import random

import pytest
from nervaluate import Evaluator
from seqeval.metrics import classification_report
from seqeval.metrics.sequence_labeling import get_entities

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.conll import chunks, conlleval
from spacy_bioclin.evaluation.spans import Counts, relaxed_match, score_spans

CHUNKS = [
    ("O B-A I-A O", [(1, 3, "A")]),
    ("I-A I-A O I-A", [(0, 2, "A"), (3, 4, "A")]),  # I after O starts a chunk
    ("B-A I-B I-B", [(0, 1, "A"), (1, 3, "B")]),  # so does another type
    ("B-A B-A I-A", [(0, 1, "A"), (1, 3, "A")]),
    ("B-A I-A", [(0, 2, "A")]),  # open at the end
    ("S-A B-A E-A E-A", [(0, 1, "A"), (1, 3, "A"), (3, 4, "A")]),
    ("U-A B-A I-A L-A", [(0, 1, "A"), (1, 4, "A")]),
    ("B-A-B I-A-B", [(0, 2, "A-B")]),  # a hyphen in the type
    ("O O", []),
    ("", []),
]


def test_chunks_by_hand():
    found = {tags: chunks(tags.split()) for tags, _ in CHUNKS}
    assert found == dict(CHUNKS)


def test_counts_by_hand():
    scores = conlleval(
        [
            (["B-A", "I-A", "O", "B-B"], ["B-A", "I-A", "O", "I-B"]),  # both right
            (["B-A", "I-A", "I-A", "O"], ["B-A", "I-A", "O", "B-A"]),  # too short; spurious
            (["O", "O"], ["O", "O"]),
        ]
    )
    assert scores.of_docs() == [Counts(2, 0, 0), Counts(0, 2, 1), Counts(0, 0, 0)]
    assert scores.per_label == {"A": Counts(1, 2, 1), "B": Counts(1, 0, 0)}


def test_other_tags_are_an_error():
    for tag in ("Disease", "X-Disease", "B", "", "BI-A"):
        with pytest.raises(BioclinError, match="tag"):
            chunks(["O", tag])
    with pytest.raises(BioclinError, match=r"Sentence 1 .* 2 reference tags and 1 predicted"):
        conlleval([(["O"], ["O"]), (["O", "O"], ["O"])])


def test_equals_seqeval():
    rng = random.Random(0)
    alphabet = ["O", *(f"{prefix}-{type_}" for prefix in "BIES" for type_ in ("A", "B", "C"))]
    reference, predicted = (
        [[rng.choice(alphabet) for _ in range(1 + i % 12)] for i in range(600)] for _ in range(2)
    )
    for tags in reference:
        entities = [(start, end + 1, type_) for type_, start, end in get_entities(tags)]
        assert chunks(tags) == entities
    scores = conlleval(zip(reference, predicted, strict=True))
    report = classification_report(reference, predicted, output_dict=True, zero_division=0)
    for label, counts in scores.per_label.items():
        theirs = report[label]
        assert counts.prf() == pytest.approx(
            {"p": theirs["precision"], "r": theirs["recall"], "f": theirs["f1-score"]}
        )
    assert scores.micro.f1 == pytest.approx(report["micro avg"]["f1-score"])
    assert scores.macro["f"] == pytest.approx(report["macro avg"]["f1-score"])


@pytest.mark.corpora
@pytest.mark.parametrize(
    "split, counts",
    [
        pytest.param("train", {"Chemical": 5203, "Disease": 4182}, marks=pytest.mark.slow),
        pytest.param("devel", {"Chemical": 5347, "Disease": 4246}, marks=pytest.mark.slow),
        ("test", {"Chemical": 5385, "Disease": 4424}),
    ],
)
def test_mentions_of_bc5cdr(data_dir, split, counts):
    """The counts that the corpus is known to have; each tagging scores 1 against itself."""
    text = (data_dir / f"bc5cdr/iob/{split}.tsv").read_text(encoding="utf-8")
    sentences = [
        [line.split("\t")[1] for line in block.split("\n")] for block in text.strip().split("\n\n")
    ]
    scores = conlleval((tags, tags) for tags in sentences)
    assert {label: count.tp for label, count in scores.per_label.items()} == counts
    assert scores.micro.f1 == 1.0


# -- spans against nervaluate ----------------------------------------------------------------------


def draw_flat(rng):
    """Spans that do not overlap each other."""
    edges = sorted(rng.sample(range(60), 2 * rng.randrange(7)))
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [(start, end, rng.choice("AB")) for start, end in pairs]


def nervaluate(docs, strategy):
    """Their offsets include the last character."""
    sides = (
        [[{"label": label, "start": s, "end": e - 1} for s, e, label in doc[side]] for doc in docs]
        for side in (0, 1)
    )
    return Evaluator(*sides, tags=["A", "B"]).evaluate()["overall"][strategy]


def test_strict_equals_nervaluate():
    rng = random.Random(0)
    docs = []
    for _ in range(300):
        reference = draw_flat(rng)
        kept = [span for span in reference if rng.random() < 0.6]
        inserted = [s for s in draw_flat(rng) if all(s[1] <= k[0] or k[1] <= s[0] for k in kept)]
        docs.append((reference, sorted(kept + inserted)))
    ours, theirs = score_spans(docs).micro, nervaluate(docs, "strict")
    assert ours.tp == theirs.correct > 100
    assert ours.tp + ours.fp == theirs.actual
    assert ours.tp + ours.fn == theirs.possible
    assert ours.prf() == pytest.approx({"p": theirs.precision, "r": theirs.recall, "f": theirs.f1})


def test_relaxed_equals_nervaluate_where_no_span_has_two_partners():
    """Where one has, theirs takes the first that comes and ours the largest matching."""

    def partners(span, others):
        return sum(span[0] < other[1] and other[0] < span[1] for other in others)

    rng = random.Random(0)
    drawn = [(draw_flat(rng), draw_flat(rng)) for _ in range(600)]
    docs = [
        (a, b)
        for a, b in drawn
        if all(partners(x, b) < 2 for x in a) and all(partners(x, a) < 2 for x in b)
    ]
    ours, theirs = score_spans(docs, relaxed_match).micro, nervaluate(docs, "ent_type")
    assert ours.tp == theirs.correct > 50
    assert score_spans(drawn, relaxed_match).micro.tp >= nervaluate(drawn, "ent_type").correct
