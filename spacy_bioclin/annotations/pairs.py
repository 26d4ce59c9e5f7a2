"""Pairs of texts as Docs: the first text, a line break as a token of its own, the second text.

Where the second text begins is in `doc.user_data[PAIR_KEY]`, so that the encoder can read the pair
as its pretraining did: `[CLS] first [SEP] second [SEP]`, with a segment embedding for each, if it
has them. The token of the line break stands for the pair: its vector is that of [CLS].
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import BioclinError

# Key in `doc.user_data`: index of the token that divides the texts.
PAIR_KEY = "bioclin_pair"
# Key in `doc.user_data`: what a component has found, [label, score, {label: probability}].
FOUND_KEY = "bioclin_pair_found"
# Key in `doc.cats` of a graded score. No class has this name.
SCORE = "score"


class Pair(NamedTuple):
    """What a component has found about a pair of texts.

    first, second (Span): The texts.
    label (str | None): The most probable class; None if a score was predicted.
    score (float | None): The predicted score; None if a class was predicted.
    probabilities (dict[str, float]): Class -> probability; empty if a score was predicted.
    """

    first: Span
    second: Span
    label: str | None
    score: float | None
    probabilities: dict[str, float]


def make_pair(nlp: Language, first: str, second: str) -> Doc:
    """Make the Doc of two texts, for `nlp` and `nlp.pipe`, which take Docs as well as texts.

    nlp (Language): Its tokenizer makes the tokens of both texts.
    first, second (str): The texts, neither of them blank.
    RETURNS (Doc): Its text is both texts with a line break between them.
    RAISES (BioclinError): A text is blank.
    """
    for which, text in (("first", first), ("second", second)):
        if not text.strip():
            raise BioclinError(f"the {which} text of a pair is empty")
    docs = nlp.make_doc(first), nlp.make_doc(second)
    words = [*(token.text for token in docs[0]), "\n", *(token.text for token in docs[1])]
    spaces = [
        *(bool(token.whitespace_) for token in docs[0]),
        False,
        *(bool(token.whitespace_) for token in docs[1]),
    ]
    doc = Doc(nlp.vocab, words=words, spaces=spaces)
    user_data: dict[Any, Any] = doc.user_data
    user_data[PAIR_KEY] = len(docs[0])
    return doc


def get_boundary(doc: Doc) -> int | None:
    """Find the token that divides the texts of a pair; None if the Doc is none.

    RAISES (BioclinError): That token is no line break, since tokens were merged or divided, or the
        Doc is a part of the pair.
    """
    boundary = doc.user_data.get(PAIR_KEY)
    if boundary is None:
        return None
    if not (isinstance(boundary, int) and 0 <= boundary < len(doc)) or doc[boundary].text != "\n":
        raise BioclinError(
            f"the Doc is a pair of texts, but its token {boundary} is no line break: tokens were "
            "merged or divided; make it anew with make_pair"
        )
    return boundary


def split_pair(doc: Doc) -> tuple[Span, Span]:
    """Get both texts of a pair.

    RAISES (BioclinError): The Doc is none.
    """
    boundary = get_boundary(doc)
    if boundary is None:
        raise BioclinError("the Doc is no pair of texts: make it with make_pair")
    return doc[:boundary], doc[boundary + 1 :]


def install_extensions() -> None:
    """Register `doc._.pair`, what a component has found about a pair; None for other Docs."""
    if not Doc.has_extension("pair"):
        Doc.set_extension("pair", getter=get_pair)


def get_pair(doc: Doc) -> Pair | None:
    """Read what a component has found about a pair of texts.

    RETURNS (Pair | None): None if the Doc is no pair, or no component has run.
    """
    found = doc.user_data.get(FOUND_KEY)
    if found is None or get_boundary(doc) is None:
        return None
    label, score, probabilities = found
    return Pair(*split_pair(doc), label, score, dict(probabilities))


def set_pair(
    doc: Doc, *, label: str | None, score: float | None, probabilities: Mapping[str, float]
) -> None:
    """Store what a component has found about a pair, see `Pair`. `doc.cats` gets it, too."""
    install_extensions()  # lost when a worker process starts
    user_data: dict[Any, Any] = doc.user_data
    user_data[FOUND_KEY] = [label, score, dict(probabilities)]
    found = dict(probabilities) if score is None else {SCORE: score}
    doc.cats = {**doc.cats, **found}
