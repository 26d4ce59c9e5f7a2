"""Folds: sizes, order, documents that stay together."""

import random

import pytest

from spacy_bioclin.corpora.overlap.folds import make_folds
from spacy_bioclin.errors import BioclinError


def make_text(seed: int, n_words: int = 60) -> str:
    rng = random.Random(seed)
    return " ".join(f"w{rng.randrange(10_000)}" for _ in range(n_words))


def test_folds_are_even_and_do_not_depend_on_the_order() -> None:
    documents = [(f"d{i}", make_text(i)) for i in range(52)]
    folds = make_folds(documents, 5)
    assert sorted(folds.count(fold) for fold in range(5)) == [10, 10, 10, 11, 11]
    assert folds != sorted(folds)
    assert make_folds(documents[::-1], 5) == folds[::-1]
    assert make_folds(documents, 5) == folds


def test_documents_with_the_same_text_stay_together() -> None:
    documents = [(f"d{i}", make_text(i)) for i in range(20)]
    long = make_text(3)
    documents += [
        ("copy", long.upper()),
        ("half", " ".join(long.split()[:40])),
        ("changed", f"Nuevo ingreso . {long} Fin ."),
        ("d5", "another part of d5"),
        ("short", "sin cambios"),
        ("short too", "Sin cambios."),
        ("unlike", " ".join(long.split()[:20] + make_text(99).split())),
        ("", make_text(7)),
        ("", ""),
        ("", ""),
    ]
    folds = make_folds(documents, 4)
    names = {name: fold for (name, _), fold in zip(documents, folds, strict=True) if name}
    assert names["d3"] == names["copy"] == names["half"] == names["changed"]
    assert folds[5] == folds[20 + 3]
    assert names["short"] == names["short too"]
    assert names["d7"] == folds[20 + 7]
    apart = [make_folds([("a", long), documents[26], *documents[:3]], n) for n in (2, 3, 4, 5)]
    assert any(folds[0] != folds[1] for folds in apart)


def test_too_few_documents() -> None:
    documents = [(f"d{i}", make_text(0)) for i in range(5)] + [("e", make_text(1))]
    with pytest.raises(BioclinError, match="3 folds of 6 documents: only 2 of them differ"):
        make_folds(documents, 3)
    with pytest.raises(BioclinError, match="1 folds: want two or more"):
        make_folds(documents, 1)
    with pytest.raises(BioclinError, match="only 0 of them differ"):
        make_folds([], 2)
