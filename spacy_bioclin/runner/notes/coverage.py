"""Count what the encoder has read of each note: pieces, windows, and characters outside of them."""

from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import IS_SPACE, LENGTH
from spacy.language import Language
from spacy.tokens import Doc

COVERAGE = "bioclin_coverage"  # in doc.user_data until the Doc is read


class Coverage(NamedTuple):
    """What the encoders of a pipeline have read of a note.

    pieces (int): Subword pieces.
    windows (int): Windows in which they were read.
    outside (int): Characters of tokens that are in no window.
    without_pieces (int): Characters of tokens, other than white space, for which the encoder's
        tokenizer has no piece: it removes control characters, for example.
    truncated (int): Characters of tokens after the last one that is in a window, among `outside`.
    """

    pieces: int = 0
    windows: int = 0
    outside: int = 0
    without_pieces: int = 0
    truncated: int = 0


def watch_coverage(nlp: Language) -> None:
    """Let each `transformer` of a pipeline count what it reads of each Doc.

    Encoders inside other components are not counted.
    """
    for _, pipe in nlp.pipeline:
        if hasattr(pipe, "set_extra_annotations"):  # spacy-transformers calls it for each batch
            pipe.set_extra_annotations = _Counter(pipe.set_extra_annotations)


def take_coverage(doc: Doc) -> Coverage | None:
    """Remove what was counted from a Doc.

    RETURNS (Coverage | None): None if the pipeline has no `transformer`.
    """
    counts = doc.user_data.pop(COVERAGE, None)
    return None if counts is None else Coverage(*counts)


class _Counter:
    """Call the annotation setter that was there, then count."""

    def __init__(self, setter: Any) -> None:
        self.setter = setter

    def __call__(self, docs: list[Doc], batch: Any) -> None:
        self.setter(docs, batch)
        spans = batch.spans or [[] for _ in docs]  # none if all Docs are empty
        for doc, inside in zip(docs, spans, strict=True):
            before = Coverage(*doc.user_data.get(COVERAGE, ()))
            now = count_coverage(doc, inside)
            doc.user_data[COVERAGE] = [a + b for a, b in zip(before, now, strict=True)]


def count_coverage(doc: Doc, windows: list[Any]) -> Coverage:
    """Count what an encoder has read of a Doc.

    doc (Doc): With `doc._.trf_data`.
    windows (list[Span]): The tokens of each window.
    """
    data = doc._.trf_data
    columns = doc.to_array([LENGTH, IS_SPACE]).astype(np.int64).reshape(-1, 2)
    length, is_space = columns[:, 0], columns[:, 1].astype(bool)
    is_inside = np.zeros(len(doc), dtype=bool)
    for span in windows:
        is_inside[span.start : span.end] = True
    end = int(is_inside.nonzero()[0][-1]) + 1 if is_inside.any() else 0
    n_pieces = np.zeros(len(doc), dtype=np.int64)
    found = np.asarray(data.align.lengths).reshape(-1)[: len(doc)]
    n_pieces[: len(found)] = found
    is_lost = is_inside & (n_pieces == 0) & ~is_space
    return Coverage(
        pieces=int(sum(data.wordpieces.lengths)),
        windows=len(windows),
        outside=int(length[~is_inside].sum()),
        without_pieces=int(length[is_lost].sum()),
        truncated=int(length[end:].sum()),
    )
