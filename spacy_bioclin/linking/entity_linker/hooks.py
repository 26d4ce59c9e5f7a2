"""What a config of spaCy's `entity_linker` names to use our knowledge base and our candidates."""

from collections.abc import Callable, Iterable
from functools import partial

import spacy.kb
from spacy.kb import Candidate
from spacy.tokens import Span
from spacy.vocab import Vocab

from ...errors import BioclinError
from .knowledge_base import Settings, SpacyKnowledgeBase, Types


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
    """Registered as `spacy-bioclin.KnowledgeBase.v1`, for both places where spaCy asks for one:
    `kb_loader` of [initialize.components.entity_linker], which opens what to train with, and
    `generate_empty_kb` of [components.entity_linker], into which the trained one is read: without
    settings.

    kb (str | None): Folder of `bioclin kb build`; None for an empty one.
    kb_hash (str | None): What its hash has to be (`bioclin kb info`).
    carry (bool): A saved pipeline holds copies of the knowledge base, vectors and encoder; else
        their paths, and the hash. spaCy saves after every better evaluation.
    model (str | None): Folder of `bioclin train-linker`, for better priors; None for fixed weights.
    n_candidates (int): Concepts for each way of looking.
    meanings (str | None): Folder of `bioclin embed-kb`: vectors that know what names mean. None:
        those of `trigram_vector`.
    encoder (str | None): Folder or hub name of the encoder that `meanings` was made with.
    width (int): Width of trigram vectors.
    RETURNS (Callable): Takes the vocab, and of an empty one the width.
    """
    settings = Settings(kb, kb_hash, carry, model, n_candidates, meanings, encoder, width)
    return partial(_make, settings)


def _make(
    settings: Settings, vocab: Vocab, entity_vector_length: int | None = None
) -> SpacyKnowledgeBase:
    if settings.kb is None and entity_vector_length is not None:
        settings = settings._replace(width=entity_vector_length)
    return SpacyKnowledgeBase(vocab, settings)


def make_get_candidates(
    types: dict[str, list[str]] | None = None, min_prior: float = 0.02
) -> Callable[[spacy.kb.KnowledgeBase, Span], list[Candidate]]:
    """Registered as `spacy-bioclin.get_candidates.v1`.

    types (dict[str, list[str]] | None): Label -> semantic types of the concepts that it may mean,
        "C04*" for all that begin so; other labels may mean any concept.
    min_prior (float): Less probable candidates are left out, 0 to 1. A mention that has none left
        is NIL; spaCy takes a single one whatever its prior.
    RETURNS (Callable): Takes a `SpacyKnowledgeBase` and a mention.
    RAISES (BioclinError): min_prior is no probability.
    """
    batch = make_get_candidates_batch(types, min_prior)
    return partial(_get_first, batch)


def make_get_candidates_batch(
    types: dict[str, list[str]] | None = None, min_prior: float = 0.02
) -> Callable[[spacy.kb.KnowledgeBase, Iterable[Span]], list[list[Candidate]]]:
    """Registered as `spacy-bioclin.get_candidates_batch.v1`, which spaCy asks where
    candidates_batch_size is above 1; else, and in training, it asks `get_candidates`: give both
    the same settings, see `make_get_candidates`.

    RETURNS (Callable): Takes a `SpacyKnowledgeBase` and mentions.
    RAISES (BioclinError): min_prior is no probability.
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
