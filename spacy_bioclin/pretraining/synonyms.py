"""Prepare a knowledge base for alignment: find similar concepts, and hold out names to test on."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..encoders.names import NameEncoder
from ..linking.kb.knowledge_base import KnowledgeBase
from ..linking.names.normalize import name_key
from ..types import Progress
from .alignment import align
from .record import write_json
from .settings import AlignSettings

# Similar concepts to find for each concept, and similar names to search for them.
N_SIMILAR, N_KEYS = 8, 32
# Concepts to search for together.
BLOCK = 4096
# Number of concepts with a held-out name, and the least number of names of such a concept.
N_HELD_OUT, MIN_NAMES = 500, 3
# Largest number of names to compare held-out names with.
MAX_COMPARED = 20_000

IntArray = NDArray[np.int32]


class HeldOut(NamedTuple):
    """Names to test an aligned encoder on.

    names (IntArray): Rows of names that are not used for training, each of another concept.
    others (IntArray): Rows of the names among which to search for the nearest.
    """

    names: IntArray
    others: IntArray


def align_on(
    kb: KnowledgeBase,
    neighbours: IntArray,
    encoder: str,
    out: Path,
    *,
    settings: AlignSettings,
    resume: bool,
    is_first: bool,
) -> dict[str, Any]:
    """Align an encoder on the synonyms of a knowledge base. See `alignment.align`.

    neighbours (IntArray): From `similar_concepts`.
    is_first (bool): Whether this process measures and writes, of those that train together.
    RETURNS (dict): The content of alignment.json. Its `held_out` has the accuracy on held-out names
        before and after the training.
    """
    held_out = hold_out(kb, settings.seed)
    concepts = np.array(kb.name_concept)
    # A held-out name becomes a concept of its own, which has no pairs.
    concepts[held_out.names] = len(kb) + np.arange(len(held_out.names))
    measured: dict[str, Any] = {
        "names": len(held_out.names),
        "compared_with": len(held_out.others),
    }
    if is_first:
        measured["before"] = accuracy(kb, held_out, encoder, settings.precision)
    record = align(kb.names, concepts, neighbours, encoder, out, settings=settings, resume=resume)
    if is_first:
        if record["finished"]:
            measured["after"] = accuracy(kb, held_out, str(out / "encoder"), settings.precision)
        record["held_out"] = measured
        write_json(record, out / "alignment.json")
    return record


def hold_out(kb: KnowledgeBase, seed: int) -> HeldOut:
    """Choose names to hold out.

    None is a preferred name, or has the same words as another name, which would make it easy.
    """
    alone = np.flatnonzero(np.diff(kb.arrays["key_names_start"]) == 1)
    names = np.sort(kb.arrays["key_names"][kb.arrays["key_names_start"][alone]])
    concept = np.asarray(kb.name_concept)[names]
    n_names = np.diff(kb.first_name)[concept]
    names = names[(n_names >= MIN_NAMES) & (names != kb.first_name[concept])]
    rng = np.random.default_rng(seed)
    names = rng.permutation(names)
    _, first = np.unique(kb.name_concept[names], return_index=True)
    names = names[np.sort(first)[:N_HELD_OUT]]
    others = np.setdiff1d(np.arange(len(kb.names), dtype=np.int32), names)
    if len(others) > MAX_COMPARED:
        own = np.isin(kb.name_concept[others], kb.name_concept[names])
        n_more = max(0, MAX_COMPARED - int(own.sum()))
        others = np.concatenate([others[own], rng.choice(others[~own], n_more, replace=False)])
    return HeldOut(names, others)


def accuracy(kb: KnowledgeBase, held_out: HeldOut, encoder: str, precision: str) -> float | None:
    """Measure how often the nearest other name of a held-out name belongs to the same concept.

    RETURNS (float | None): From 0 to 1; None if no name is held out.
    """
    if not len(held_out.names):
        return None
    opened = NameEncoder(encoder, precision=precision)
    wanted, others = (
        opened.encode([kb.names[row] for row in rows]) for rows in (held_out.names, held_out.others)
    )
    nearest = held_out.others[(wanted @ others.T).argmax(1)]
    right = kb.name_concept[nearest] == kb.name_concept[held_out.names]
    return round(float(right.mean()), 4)


def similar_concepts(kb: KnowledgeBase, progress: Progress | None = None) -> IntArray:
    """Find the concepts with names that are similar to the preferred name of each concept.

    progress (Progress | None): Called with the share of the concepts that are done, and their
        number.
    RETURNS (IntArray): (n_concepts, N_SIMILAR) rows of other concepts, -1 where there are no more.
    """
    found = np.full((len(kb), N_SIMILAR), -1, np.int32)
    for i in range(0, len(kb), BLOCK):
        concepts = range(i, min(i + BLOCK, len(kb)))
        texts = [name_key(kb.name_of(concept)) for concept in concepts]
        for concept, keys in zip(concepts, kb.similar.search(texts, N_KEYS)[0], strict=True):
            names = [kb.names_of_key(int(key)) for key in keys if key >= 0]
            others = dict.fromkeys(kb.name_concept[np.concatenate(names)].tolist()) if names else {}
            others.pop(concept, None)
            near = list(others)[:N_SIMILAR]
            found[concept, : len(near)] = near
        if progress is not None:
            progress(concepts.stop / len(kb), concepts.stop)
    return found
