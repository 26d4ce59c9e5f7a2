"""Find codes that are composed of a stem and a qualifier, such as the morphologies of ICD-O:
"8140/32" is an adenocarcinoma (8140), malignant and of grade 2 (32).

Such a terminology has many more codes than names, and training notes use few of them. So stems and
qualifiers are learned apart, from the words of the mentions, and every code of the terminology that
is composed of likely ones is a candidate.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ..errors import BioclinError
from ..types import FloatArray, IntArray
from .kb.knowledge_base import KnowledgeBase
from .names.normalize import normalize

CODES, NAMES, PARTS = "codes.safetensors", "names", "parts"
CODE = re.compile(r"([^/\s]+)/([A-Za-z0-9]+(?:/[A-Za-z0-9]+)*)")
N_LETTERS = 4
# Codes proposed for a text: stems of its best candidates and of its words, qualifiers for each.
N_OF_CANDIDATES, N_OF_WORDS, N_QUALIFIERS = 8, 4, 4
# Log-probabilities of stems and qualifiers that no training mention has, and of unlikely ones.
NO_STEM, NO_QUALIFIER = -12.0, -8.0
AXES = {
    "words": ("parts", "width"),
    "stems": ("stems", "width"),
    "stem_bias": ("stems",),
    "qualifiers": ("qualifiers", "width"),
    "qualifier_bias": ("qualifiers",),
    "usual": ("stems", "qualifiers"),
}


def split_code(id: str) -> tuple[str, str]:
    """Split an id into its stem and its qualifier, "" for an id that is not a code of both."""
    match = CODE.fullmatch(id)
    return (match[1], match[2]) if match else (id, "")


def are_codes(kb: KnowledgeBase) -> bool:
    """Check whether a terminology composes codes: its stems share their qualifiers."""
    codes = [split_code(str(id)) for id in kb.ids]
    qualifiers = {qualifier for _, qualifier in codes if qualifier}
    return 0 < len(qualifiers) < len({stem for stem, qualifier in codes if qualifier})


@lru_cache(maxsize=50_000)
def hash_parts(text: str) -> tuple[int, ...]:
    """Hash the words of a mention, its pairs of words, and their runs of `N_LETTERS` letters."""
    words = normalize(text).split()
    whole = dict.fromkeys([*words, *map(" ".join, pairwise(words))])
    framed = [f"<{word}>" for word in words]
    runs = [f"#{w[i : i + N_LETTERS]}" for w in framed for i in range(len(w) - N_LETTERS + 1)]
    return tuple(crc32(part.encode()) for part in [*whole, *runs])


class Reading(NamedTuple):
    """What a classifier reads in a text.

    stems (FloatArray): (n_stems,) log-probabilities of the stems.
    qualifiers (FloatArray): (n_qualifiers,) scores of the qualifiers, before the stem adds its own.
    classifier (CodeClassifier): Who has read it.
    is_known (bool): The classifier knows a part of the text; otherwise all texts read the same.
    """

    stems: FloatArray
    qualifiers: FloatArray
    classifier: "CodeClassifier"
    is_known: bool


class CodeClassifier:
    """Estimate stem and qualifier of a code from the words of a mention.

    It is linear in the sum of vectors of words and runs of letters (fastText, Joulin et al. 2017,
    arXiv:1607.01759); the qualifier depends on the stem, too.

    stems (Sequence[str]), qualifiers (Sequence[str]): Those of the training mentions.
    parts (NDArray[np.uint32]): (n_parts,) hashes of the parts of these mentions, sorted.
    weights (Mapping[str, NDArray]): Arrays with the axes of `AXES`, in half precision.
    """

    def __init__(
        self,
        stems: Sequence[str],
        qualifiers: Sequence[str],
        parts: NDArray[Any],
        weights: Mapping[str, NDArray[Any]],
    ) -> None:
        self.stems, self.qualifiers = list(stems), list(qualifiers)
        self.parts = np.asarray(parts, np.uint32)
        self._row = {part: row for row, part in enumerate(self.parts.tolist())}
        self.weights = {name: np.asarray(weights[name], np.float16) for name in AXES}
        self._weights = {name: values.astype(np.float32) for name, values in self.weights.items()}

    def __call__(self, text: str) -> Reading:
        """Read a text."""
        w = self._weights
        rows = [self._row[part] for part in hash_parts(text) if part in self._row]
        vector = w["words"][rows].sum(0)
        stems = _log_softmax(w["stems"] @ vector + w["stem_bias"])
        qualifiers = w["qualifiers"] @ vector + w["qualifier_bias"]
        return Reading(stems, qualifiers, self, bool(rows))

    def usual(self, stems: IntArray) -> FloatArray:
        """Get what stems add to the scores of qualifiers, nothing if they are -1.

        RETURNS (FloatArray): (n, n_qualifiers).
        """
        return np.where((stems >= 0)[:, None], self._weights["usual"][stems], np.float32(0))

    def to_bytes(self) -> bytes:
        """Write it in the safetensors format."""
        # One key only: safetensors writes several in any order.
        tensors: dict[str, NDArray[Any]] = {PARTS: self.parts, **self.weights}
        return save(tensors, {NAMES: json.dumps([self.stems, self.qualifiers])})

    @classmethod
    def from_bytes(cls, data: bytes) -> "CodeClassifier":
        """Make it from the bytes of `to_bytes`.

        RAISES (BioclinError): They are damaged.
        """
        try:
            weights = load(data)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            stems, qualifiers = json.loads(header["__metadata__"][NAMES])
            for name in (*stems, *qualifiers):
                str.encode(name)
            if not stems or not qualifiers:
                raise ValueError(NAMES)
            sizes = {"stems": len(stems), "qualifiers": len(qualifiers)}
            parts = weights.pop(PARTS)
            if parts.dtype != np.uint32 or parts.ndim != 1 or (parts[1:] <= parts[:-1]).any():
                raise ValueError(PARTS)
            sizes |= {"parts": len(parts), "width": weights["words"].shape[1]}
            for name, axes in AXES.items():
                values = weights[name]
                if values.dtype != np.float16 or values.shape != tuple(sizes[a] for a in axes):
                    raise ValueError(name)
                if not np.isfinite(values).all():
                    raise ValueError(name)
        except (SafetensorError, ValueError, TypeError, KeyError, LookupError) as error:
            raise BioclinError(
                f"{CODES} is damaged ({type(error).__name__}): copy the folder again, or train it "
                "again with `bioclin train-linker`"
            ) from None
        return cls(stems, qualifiers, parts, weights)


class CodeFinder:
    """Propose codes of a knowledge base for texts, and describe how well codes fit.

    kb (KnowledgeBase): Contains the codes.
    classifiers (Mapping[int | None, CodeClassifier]): Fold of the training notes that a classifier
        has not seen -> it; None for the one that has seen all.
    """

    def __init__(self, kb: KnowledgeBase, classifiers: Mapping[int | None, CodeClassifier]) -> None:
        self.classifiers = classifiers
        first = next(iter(classifiers.values()))
        codes = [split_code(str(id)) for id in kb.ids]
        # Stems that the classifiers know come first, so that theirs are the first numbers.
        numbers = {stem: i for i, stem in enumerate(first.stems)}
        self._n_known = len(numbers)
        self._stem = np.array([numbers.setdefault(stem, len(numbers)) for stem, _ in codes])
        known = {qualifier: i for i, qualifier in enumerate(first.qualifiers)}
        self._qualifier = np.array([known.get(qualifier, -1) for _, qualifier in codes])
        pairs = zip(self._stem.tolist(), self._qualifier.tolist(), strict=True)
        self._row = {pair: row for row, pair in enumerate(pairs) if pair[1] >= 0}

    def read(self, texts: Sequence[str], folds: Iterable[int | None]) -> list[Reading]:
        """Read texts, each with the classifier that has not seen its fold."""
        return [self.classifiers[fold](text) for text, fold in zip(texts, folds, strict=True)]

    def propose(
        self, readings: Sequence[Reading], rows: IntArray, concepts: IntArray, scores: FloatArray
    ) -> tuple[IntArray, IntArray]:
        """Propose codes of likely stems and qualifiers.

        If the classifier knows no part of a text, it only gets stems of its candidates.

        readings (Sequence[Reading]): Of the texts.
        rows (IntArray), concepts (IntArray), scores (FloatArray): (n,) candidates found otherwise,
            sorted by text: row of the text, row of the knowledge base, how similar it is.
        RETURNS (tuple[IntArray, IntArray]): Rows of the texts and of the knowledge base.
        """
        found: list[tuple[int, int]] = []
        ends = np.searchsorted(rows, np.arange(len(readings) + 1))
        for i, reading in enumerate(readings):
            own = slice(ends[i], ends[i + 1])
            order = np.argsort(-scores[own], kind="stable")
            near = list(dict.fromkeys(self._stem[concepts[own][order]].tolist()))
            read = np.argsort(-reading.stems, kind="stable")[:N_OF_WORDS].tolist()
            if not reading.is_known:
                read = []
            stems = list(dict.fromkeys([*near[:N_OF_CANDIDATES], *read]))
            likely = self._qualifiers_of(reading, np.array(stems, np.int64))
            for stem, values in zip(stems, likely, strict=True):
                for qualifier in np.argsort(-values, kind="stable")[:N_QUALIFIERS].tolist():
                    if (row := self._row.get((stem, qualifier))) is not None:
                        found.append((i, row))
        texts, codes = np.array(found, np.int64).reshape(-1, 2).T
        return texts, codes

    def describe(
        self, readings: Sequence[Reading], rows: IntArray, concepts: IntArray, of_stem: FloatArray
    ) -> FloatArray:
        """Describe how well the codes of candidates fit their texts.

        readings (Sequence[Reading]): Of the texts.
        rows (IntArray), concepts (IntArray): (n,) as in `propose`.
        of_stem (FloatArray): (n, n_features) features whose highest value is that of the stem.
        RETURNS (FloatArray): (n, 4 + n_features): log-probability of the stem, and how far it is
            below the likeliest one; the same for the qualifier if the stem is right; and the
            highest values of the candidates of the text with the same stem.
        """
        out = np.zeros((len(rows), 4 + of_stem.shape[1]), np.float32)
        ends = np.searchsorted(rows, np.arange(len(readings) + 1))
        for i, reading in enumerate(readings):
            own = slice(ends[i], ends[i + 1])
            if own.start == own.stop:
                continue
            stems, inverse = np.unique(self._stem[concepts[own]], return_inverse=True)
            known = stems < self._n_known
            stem = np.where(known, reading.stems[np.where(known, stems, 0)], NO_STEM)
            stem = np.maximum(stem, NO_STEM)[inverse]
            likely = np.maximum(self._qualifiers_of(reading, stems), NO_QUALIFIER)
            column = self._qualifier[concepts[own]]
            qualifier = np.where(column >= 0, likely[inverse, column], NO_QUALIFIER)
            highest = np.zeros((len(stems), of_stem.shape[1]), np.float32)
            np.maximum.at(highest, inverse, of_stem[own])
            out[own, 0], out[own, 1] = stem, reading.stems.max() - stem
            out[own, 2], out[own, 3] = qualifier, likely.max(1)[inverse] - qualifier
            out[own, 4:] = highest[inverse]
        return out

    def _qualifiers_of(self, reading: Reading, stems: IntArray) -> FloatArray:
        """Compute the log-probabilities of the qualifiers of each stem."""
        usual = reading.classifier.usual(np.where(stems < self._n_known, stems, -1))
        return _log_softmax(reading.qualifiers + usual)


def _log_softmax(scores: FloatArray) -> FloatArray:
    shifted = scores - scores.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)), np.float32)
