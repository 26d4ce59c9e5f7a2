"""Pairs of texts as Docs: the first text, a line break as a token of its own, the second text.

Where the second text begins is in `doc.user_data[PAIR_KEY]`, so that the encoder can read the pair
as its pretraining did: `[CLS] first [SEP] second [SEP]`, with a segment embedding for each, if it
has them. The token of the line break stands for the pair: its vector is that of [CLS].
"""

from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span

from .errors import BioclinError

# Key in `doc.user_data`: index of the token that divides the texts.
PAIR_KEY = "bioclin_pair"


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
    """Find the token that divides the texts of a pair; None if the Doc is none."""
    return doc.user_data.get(PAIR_KEY)


def split_pair(doc: Doc) -> tuple[Span, Span]:
    """Get both texts of a pair.

    RAISES (BioclinError): The Doc is none.
    """
    boundary = get_boundary(doc)
    if boundary is None:
        raise BioclinError("the Doc is no pair of texts: make it with make_pair")
    return doc[:boundary], doc[boundary + 1 :]
