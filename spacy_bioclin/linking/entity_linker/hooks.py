"""The functions by which a config of spaCy's `entity_linker` uses our knowledge base."""

from collections.abc import Callable, Iterable
from functools import partial

import spacy.kb
from spacy.kb import Candidate
from spacy.tokens import Span
from spacy.vocab import Vocab

from ...errors import BioclinError
from ..bundle import Parts
from .knowledge_base import SpacyKnowledgeBase, Types


def make_knowledge_base(
    kb: str | None = None,
    *,
    kb_hash: str | None = None,
    carry: bool = True,
    model: str | None = None,
    n_candidates: int = 16,
    meanings: str | None = None,
    encoder: str | None = None,
    width: int = 64,
) -> Callable[..., SpacyKnowledgeBase]:
    """Make what opens a knowledge base for spaCy. Registered as `spacy-bioclin.KnowledgeBase.v1`.

    spaCy needs it twice: `kb_loader` of [initialize.components.entity_linker] opens the knowledge
    base to train with, and `generate_empty_kb` of [components.entity_linker], without settings,
    makes an empty one, into which the trained one is read.

    kb (str | None): Folder of `bioclin kb build`; None for an empty one.
    kb_hash (str | None): Hash that it must have (`bioclin kb info`).
    carry (bool): A saved pipeline contains copies of the knowledge base, vectors and encoder; else
        their paths, and the hash. spaCy saves after every better evaluation.
    model (str | None): Folder of `bioclin train-linker`, for better priors; None for fixed weights.
    n_candidates (int): Concepts retrieved by each search method.
    meanings (str | None): Folder of `bioclin embed-kb`: vectors of what names mean. None for the
        vectors of `trigram_vector`.
    encoder (str | None): Folder or hub name of the encoder that `meanings` was made with.
    width (int): Width of trigram vectors.
    RETURNS (Callable): Takes the vocab, and for an empty knowledge base the width.
    """
    parts = Parts(kb, kb_hash, carry, model, meanings, encoder)
    return partial(_make, parts, n_candidates, width)


def _make(
    parts: Parts,
    n_candidates: int,
    width: int,
    vocab: Vocab,
    entity_vector_length: int | None = None,
) -> SpacyKnowledgeBase:
    if parts.kb is None and entity_vector_length is not None:
        width = entity_vector_length
    return SpacyKnowledgeBase(vocab, parts, n_candidates=n_candidates, width=width)


def make_get_candidates(
    types: dict[str, list[str]] | None = None, min_prior: float = 0.02
) -> Callable[[spacy.kb.KnowledgeBase, Span], list[Candidate]]:
    """Make what finds candidates for spaCy. Registered as `spacy-bioclin.get_candidates.v1`.

    types (dict[str, list[str]] | None): Label -> semantic types of the concepts that it may mean,
        "C04*" for all that begin with C04; other labels may mean any concept.
    min_prior (float): Lowest probability of a candidate, 0 to 1. A mention without candidates is
        NIL; spaCy accepts a single one whatever its prior.
    RETURNS (Callable): Takes a `SpacyKnowledgeBase` and a mention.
    RAISES (BioclinError): min_prior is not a probability.
    """
    return partial(_get_first, make_get_candidates_batch(types, min_prior))


def make_get_candidates_batch(
    types: dict[str, list[str]] | None = None, min_prior: float = 0.02
) -> Callable[[spacy.kb.KnowledgeBase, Iterable[Span]], list[list[Candidate]]]:
    """Make what finds candidates in batches. Registered as
    `spacy-bioclin.get_candidates_batch.v1`.

    spaCy uses it if candidates_batch_size is above 1, and otherwise, and in training, uses
    `get_candidates`: give both the same settings, see `make_get_candidates`.

    RETURNS (Callable): Takes a `SpacyKnowledgeBase` and mentions.
    RAISES (BioclinError): min_prior is not a probability.
    """
    if not 0 <= min_prior <= 1:
        raise BioclinError(f"get_candidates: min_prior = {min_prior}: want a number from 0 to 1")
    return partial(_get_candidates, types=types or {}, min_prior=min_prior)


def _get_first(
    batch: Callable[[spacy.kb.KnowledgeBase, Iterable[Span]], list[list[Candidate]]],
    kb: spacy.kb.KnowledgeBase,
    mention: Span,
) -> list[Candidate]:
    return batch(kb, [mention])[0]


def _get_candidates(
    kb: spacy.kb.KnowledgeBase, mentions: Iterable[Span], *, types: Types, min_prior: float
) -> list[list[Candidate]]:
    if not isinstance(kb, SpacyKnowledgeBase):
        raise BioclinError(
            f"get_candidates: the knowledge base is a {type(kb).__name__}: give @misc = "
            '"spacy-bioclin.KnowledgeBase.v1" as kb_loader and as generate_empty_kb'
        )
    return kb.get_candidates_batch(mentions, types=types, min_prior=min_prior)
