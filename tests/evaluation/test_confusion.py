"""Spans are aligned and errors named as worked out by hand."""

from spacy_bioclin.evaluation.confusion import (
    ErrorExample,
    ErrorKind,
    LayerDoc,
    align,
    confusion,
    error_kind,
    worst_errors,
)


def layer_doc(reference, predicted, text="x" * 100, id="d"):
    return LayerDoc(id, text, set(reference), set(predicted))


ALIGNED = [
    ([(0, 4, "A")], [(0, 4, "A")], [((0, 4, "A"), (0, 4, "A"))]),
    ([(0, 4, "A")], [(4, 8, "A")], [((0, 4, "A"), None), (None, (4, 8, "A"))]),
    # The equal span is taken, though another one shares as much.
    (
        [(0, 4, "A"), (0, 9, "A")],
        [(0, 4, "A")],
        [((0, 4, "A"), (0, 4, "A")), ((0, 9, "A"), None)],
    ),
    # Split in two: the longer part stands for it.
    (
        [(0, 9, "A")],
        [(0, 3, "A"), (4, 9, "B")],
        [(None, (0, 3, "A")), ((0, 9, "A"), (4, 9, "B"))],
    ),
    # A tie of shared characters: equal offsets go first, then equal labels.
    (
        [(2, 4, "A")],
        [(2, 4, "B"), (2, 5, "A")],
        [((2, 4, "A"), (2, 4, "B")), (None, (2, 5, "A"))],
    ),
    (
        [(2, 4, "A")],
        [(2, 4, "B"), (2, 4, "C")],
        [((2, 4, "A"), (2, 4, "B")), (None, (2, 4, "C"))],
    ),
    # A long prediction that starts far before.
    (
        [(50, 52, "A")],
        [(0, 60, "A"), (10, 12, "A")],
        [((50, 52, "A"), (0, 60, "A")), (None, (10, 12, "A"))],
    ),
    ([], [], []),
]


def test_align_by_hand():
    for reference, predicted, expected in ALIGNED:
        by_place = sorted(expected, key=lambda pair: (pair[0] or pair[1], pair[1] or pair[0]))
        assert align(reference, predicted) == by_place
        assert align(reference[::-1], predicted[::-1]) == by_place


DOCS = [
    layer_doc([(0, 4, "A"), (5, 9, "A"), (10, 14, "B")], [(0, 4, "A"), (5, 9, "B"), (20, 22, "C")]),
    layer_doc([(0, 4, "A"), (5, 9, "B")], [(0, 3, "A"), (6, 9, "A")]),
]


def test_confusion_by_hand():
    counts = confusion(DOCS)
    assert counts == {
        ("A", "A"): 2,  # one of them with a wrong boundary
        ("A", "B"): 1,
        ("B", None): 1,
        (None, "C"): 1,
        ("B", "A"): 1,
    }
    for side, position in (("reference", 0), ("predicted", 1)):
        for label in "ABC":
            spans = sum(span[2] == label for doc in DOCS for span in getattr(doc, side))
            assert spans == sum(n for cell, n in counts.items() if cell[position] == label)


KINDS = [
    (((0, 4, "A"), None), ErrorKind("missed", "A", None)),
    ((None, (0, 4, "A")), ErrorKind("spurious", None, "A")),
    (((0, 4, "A"), (0, 4, "B")), ErrorKind("label", "A", "B")),
    (((0, 4, "A"), (0, 5, "A")), ErrorKind("boundary", "A", "A")),
    (((0, 4, "A"), (0, 5, "B")), ErrorKind("both", "A", "B")),
    (((0, 4, "A"), (0, 4, "A")), None),
]


def test_error_kind():
    assert [error_kind(pair) for pair, _ in KINDS] == [kind for _, kind in KINDS]


def test_worst_errors_are_the_frequent_ones_with_different_examples():
    missed = layer_doc([(0, 3, "A"), (4, 7, "A"), (8, 11, "A")], [], text="Ana ANA Eva")
    spurious = layer_doc([], [(0, 3, "A")], text="Luz", id="e")
    result = worst_errors([missed, spurious], n_kinds=5, n_examples=2)
    assert result == [
        (
            ErrorKind("missed", "A", None),
            3,
            [ErrorExample(missed, ((0, 3, "A"), None)), ErrorExample(missed, ((8, 11, "A"), None))],
        ),
        (ErrorKind("spurious", None, "A"), 1, [ErrorExample(spurious, (None, (0, 3, "A")))]),
    ]
    assert worst_errors([missed, spurious], n_kinds=1, n_examples=1)[0][2] == [
        ErrorExample(missed, ((0, 3, "A"), None))
    ]
    assert worst_errors([layer_doc([], [])], n_kinds=5, n_examples=2) == []
