"""Spans to tags and back; the grammar of the schemes."""

import itertools

import numpy as np
import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.ner.tags import (
    TagSet,
    decode_tags,
    encode_spans,
    legal_transitions,
    make_tag_sets,
)


def decode(tags, tag_set):
    first, last, label = decode_tags(tags, tag_set)
    labels = [tag_set.labels[i] for i in label]
    return list(zip(first.tolist(), (last + 1).tolist(), labels, strict=True))


CASES = [
    # scheme, spans, tags of six tokens
    ("BIO", [], "O O O O O O"),
    ("BIO", [(0, 1, "A")], "B-A O O O O O"),
    ("BIO", [(0, 2, "A"), (2, 4, "A")], "B-A I-A B-A I-A O O"),
    ("BIO", [(1, 3, "A"), (3, 6, "B")], "O B-A I-A B-B I-B I-B"),
    ("BILUO", [(0, 1, "A"), (1, 3, "B"), (3, 6, "A")], "U-A B-B L-B B-A I-A L-A"),
    # of overlapping spans the longest stays, of equally long ones the first
    ("BIO", [(0, 2, "A"), (1, 5, "B")], "O B-B I-B I-B I-B O"),
    ("BILUO", [(2, 4, "B"), (1, 3, "A")], "O B-A L-A O O O"),
]


def test_encode_by_hand():
    for scheme, spans, expected in CASES:
        tag_set = TagSet(scheme, ("A", "B"))
        tags = encode_spans(spans, 6, tag_set)
        assert " ".join(tag_set.tags[i] for i in tags) == expected


def test_every_flat_segmentation_comes_back():
    for scheme in ("BIO", "BILUO"):
        tag_set = TagSet(scheme, ("A", "B"))
        n = 4
        pieces = [(i, j, label) for i in range(n) for j in range(i + 1, n + 1) for label in "AB"]
        tried = 0
        for k in range(n + 1):
            for spans in itertools.combinations(pieces, k):
                if any(a[1] > b[0] for a, b in itertools.pairwise(sorted(spans))):
                    continue
                tags = encode_spans(spans, n, tag_set)
                assert decode(tags, tag_set) == sorted(spans)
                legal = legal_transitions(tag_set)
                assert legal.start[tags[0]] and legal.end[tags[-1]]
                assert all(legal.transitions[a, b] for a, b in itertools.pairwise(tags))
                tried += 1
        assert tried == 153  # sum over compositions of 4 tokens into outside/entity stretches


def test_legal_sequences_are_exactly_the_segmentations():
    """The grammar admits each segmentation once and nothing else."""
    for scheme in ("BIO", "BILUO"):
        tag_set = TagSet(scheme, ("A", "B"))
        legal = legal_transitions(tag_set)
        sequences = [
            tags
            for tags in itertools.product(range(tag_set.n_tags), repeat=4)
            if legal.start[tags[0]]
            and legal.end[tags[-1]]
            and all(legal.transitions[a, b] for a, b in itertools.pairwise(tags))
        ]
        assert len(sequences) == 153
        for tags in sequences:
            array = np.array(tags)
            assert (encode_spans(decode(array, tag_set), 4, tag_set) == array).all()


def test_spans_of_joined_sequences_do_not_run_together():
    """A span at the end of a sequence, and one at the beginning of the next, of the same label."""
    for scheme in ("BIO", "BILUO"):
        tag_set = TagSet(scheme, ("A", "B"))
        sequences = [[(1, 3, "A")], [(0, 2, "A"), (2, 3, "B")], [], [(0, 3, "B")]]
        tags = np.concatenate([encode_spans(spans, 3, tag_set) for spans in sequences])
        assert decode(tags, tag_set) == [(1, 3, "A"), (3, 5, "A"), (5, 6, "B"), (9, 12, "B")]


def test_nested_makes_one_layer_per_label():
    assert make_tag_sets("BA", scheme="BIO", nested=True) == [
        TagSet("BIO", ("A",)),
        TagSet("BIO", ("B",)),
    ]
    assert make_tag_sets("BA", scheme="BIO", nested=False) == [TagSet("BIO", ("A", "B"))]


def test_unknown_scheme_is_named():
    with pytest.raises(BioclinError, match="'IOB7'"):
        make_tag_sets("A", scheme="IOB7", nested=False)
