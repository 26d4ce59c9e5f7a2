"""Let the tags of a word agree within a note."""

from collections.abc import Sequence

import numpy as np
import torch
from spacy.attrs import IS_STOP, LENGTH, LOWER
from spacy.tokens import Doc

from ..types import IntArray
from .model import AnyScores, TagScores

# Shorter words, such as units and initials, mean different things in the same note.
MIN_LENGTH = 3


def smooth_words(scores: AnyScores, words: IntArray, amount: float) -> AnyScores:
    """Move the scores of each token towards the mean of all tokens of the same word.

    A name is often clear in one sentence of a note and unclear in another. The mean is that of
    pooled contextualized embeddings (Akbik et al. 2019), of scores instead of vectors, so that
    nothing has to be trained for it.

    scores (TagScores | list[TagScores]): Of one model, or of each member of an ensemble.
    words (IntArray): Number of the word of each token, from 0, see `number_words`, (n_tokens,).
    amount (float): 0 leaves the scores as they are, 1 replaces them by the mean.
    RETURNS (TagScores | list[TagScores]): Others, with new emissions, on the CPU.
    """
    if isinstance(scores, list):
        return [_smooth(member, words, amount) for member in scores]
    return _smooth(scores, words, amount)


def _smooth(scores: TagScores, words: IntArray, amount: float) -> TagScores:
    # In double precision, so that a word that occurs once keeps its scores to the last digit.
    emissions, index = scores.emissions.detach().cpu().double(), torch.from_numpy(words)
    counts = torch.bincount(index)
    sums = emissions.new_zeros(len(counts), *emissions.shape[1:]).index_add_(0, index, emissions)
    means = sums / counts[:, None, None]
    smoothed = emissions + amount * (means[index] - emissions)
    return scores._replace(emissions=smoothed.to(scores.emissions.dtype))


def number_words(docs: Sequence[Doc]) -> IntArray:
    """Number the words of notes: tokens of one Doc have the same number if they are the same word,
    whatever its case and a final "s".

    Stop words, words of less than three characters and those without a letter have a number for
    each token.

    RETURNS (IntArray): From 0, without gaps, int64, (n_tokens,).
    """
    numbers, start = [], 0
    for doc in docs:
        forms, stop, lengths = doc.to_array([LOWER, IS_STOP, LENGTH]).T
        different, places = np.unique(forms, return_inverse=True)
        known: dict[str, int] = {}
        strings = doc.vocab.strings
        word = np.array([_number(strings[form], known) for form in different.tolist()])
        found = word[places] if len(doc) else np.empty(0, dtype=np.int64)
        alone = np.flatnonzero((found < 0) | (stop > 0) | (lengths < MIN_LENGTH))
        found[alone] = len(known) + alone
        _, found = np.unique(found, return_inverse=True)
        numbers.append(found + start)
        start += int(found.max(initial=-1)) + 1
    return np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64)


def _number(form: str, known: dict[str, int]) -> int:
    """Number a form in lower case by what is known, or return -1 if it has no letter."""
    if not any(map(str.isalpha, form)):
        return -1
    if len(form) > MIN_LENGTH + 1 and form.endswith("s") and not form.endswith("ss"):
        form = form[:-1]
    return known.setdefault(form, len(known))
