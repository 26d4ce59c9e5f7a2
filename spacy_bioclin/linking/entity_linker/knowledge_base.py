"""A knowledge base for spaCy's own trainable `entity_linker`: candidates with a prior from our
ranker, and a vector for each concept, which spaCy's model learns to predict from the sentence."""

import os
import warnings
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import spacy.kb
import srsly
from spacy.kb import Candidate
from spacy.tokens import Span
from spacy.vocab import Vocab

from ...errors import BioclinError, BioclinWarning
from ...files import check_regular
from ...tokenization.defined_abbreviations import find_abbreviations
from ..bundle import ENCODER, KB, MEANINGS, MODEL, LinkerBundle, Parts, TrainedModel
from ..docs import mention_texts
from ..kb.concepts import AND
from ..kb.knowledge_base import KnowledgeBase
from ..linker import check_types, rank_pool
from .vectors import concept_vector, of_length_1

# In the folder of a saved one, beside the trained model and the folders that it contains.
STATE = "settings.json"
NIL = "NIL"  # spaCy's id for "none of them"
# Sizes of caches: candidates of mentions, vectors of concepts, abbreviations of notes.
MAX_REMEMBERED, MAX_VECTORS, MAX_NOTES = 50_000, 20_000, 64
MAX_SIZE = 100_000  # of candidates, and of a vector: more is a mistake, and would fill the memory

Types = Mapping[str, Collection[str]]
# Row of a concept and its prior, for each candidate of a mention, best first.
Found = tuple[tuple[int, float], ...]

_abbreviations = lru_cache(MAX_NOTES)(find_abbreviations)


class SpacyKnowledgeBase(spacy.kb.KnowledgeBase):
    """Give spaCy's `entity_linker` the candidates and vectors that it asks for.

    vocab (Vocab): The pipeline's; its language is that of the notes.
    parts (Parts): What to open; it is empty without a knowledge base.
    n_candidates (int): Concepts retrieved by each search method.
    width (int): Width of trigram vectors, and of an empty one.
    RAISES (BioclinError): Something cannot be opened, or the parts do not belong together.
    """

    def __init__(self, vocab: Vocab, parts: Parts, *, n_candidates: int, width: int) -> None:
        super().__init__(vocab, width)
        self._open(parts, n_candidates, width)

    def _open(self, parts: Parts, n_candidates: int, width: int) -> None:
        bundle = LinkerBundle("SpacyKnowledgeBase:", parts)
        if not (1 <= n_candidates <= MAX_SIZE and 1 <= width <= MAX_SIZE):
            raise bundle.error(
                f"n_candidates = {n_candidates}, width = {width}: want 1 to {MAX_SIZE:,} for each"
            )
        self.bundle, self.n_candidates, self.width = bundle, n_candidates, width
        self._has_warned = False
        self._checked: Types | None = None
        self._found: OrderedDict[tuple[Any, ...], Found] = OrderedDict()
        if self.kb is None:
            return
        self._generator, self._ranker = bundle.make_generator(
            n_candidates=n_candidates, lang=self.vocab.lang
        )
        meanings = self._generator.meanings
        length = width if meanings is None else meanings.width
        super().__init__(self.vocab, length)  # the same vocab; the width cannot be set otherwise
        self._vector = lru_cache(MAX_VECTORS)(partial(concept_vector, self.kb, meanings, length))

    @property
    def kb(self) -> KnowledgeBase | None:
        """The opened knowledge base, or None if this is empty."""
        return None if self.bundle.kb_path is None else self.bundle.kb

    def __len__(self) -> int:
        return 0 if self.kb is None else len(self.kb)

    def is_empty(self) -> bool:
        """Check whether there is not a knowledge base yet, which spaCy does before training."""
        return not len(self)

    def contains_entity(self, entity: str) -> bool:
        """Check whether there is a concept with this id or alternative id."""
        return self.kb is not None and entity in self.kb

    # -- candidates ------------------------------------------------------------------------------

    def get_candidates(
        self, mention: Span, *, types: Types | None = None, min_prior: float = 0.0
    ) -> list[Candidate]:
        """Find the candidates of a mention. See `get_candidates_batch`."""
        return self.get_candidates_batch([mention], types=types, min_prior=min_prior)[0]

    def get_candidates_batch(
        self, mentions: Iterable[Span], *, types: Types | None = None, min_prior: float = 0.0
    ) -> list[list[Candidate]]:
        """Find the candidates of mentions.

        Abbreviations that a note defines are expanded. A composite mention is not split, because
        spaCy gives a mention one concept.

        mentions (Iterable[Span]): Mentions in any number of notes.
        types (Types | None): Label -> semantic types of the concepts that it may mean, "C04*" for
            all that begin with C04; other labels may mean any concept, a label without types none.
        min_prior (float): Lowest probability of a candidate, 0 to 1.
        RETURNS (list[list[Candidate]]): The candidates of each mention, most probable first.
        RAISES (BioclinError): There is not a knowledge base, or no concept has one of the types.
        """
        if types and types is not self._checked:
            check_types(types, self._open_kb())
            self._checked = types
        spans = list(mentions)
        texts = [mention_texts(s.doc, [s], _abbreviations(s.doc.text))[0] for s in spans]
        wanted = {label: tuple(of_label) for label, of_label in (types or {}).items()}
        return self._candidates(texts, [wanted.get(span.label_) for span in spans], min_prior)

    def get_alias_candidates(self, alias: str) -> list[Candidate]:
        """Find the candidates of a text, as if it were a mention."""
        return self._candidates([alias], [None], 0.0)[0]

    def _candidates(
        self, texts: Sequence[str], wanted: Sequence[tuple[str, ...] | None], min_prior: float
    ) -> list[list[Candidate]]:
        self._find(dict.fromkeys((t, w, min_prior) for t, w in zip(texts, wanted, strict=True)))
        found = []
        for key in zip(texts, wanted, [min_prior] * len(texts), strict=True):
            self._found.move_to_end(key)
            found.append([self._candidate(key[0], *row) for row in self._found[key]])
        while len(self._found) > MAX_REMEMBERED:
            self._found.popitem(last=False)
        return found

    def _find(self, keys: Iterable[tuple[str, tuple[str, ...] | None, float]]) -> None:
        """Cache what is found for each text, wanted types (None for all) and lowest prior."""
        kb = self._open_kb()
        new = [key for key in keys if key not in self._found]
        pools = self._generator([text for text, _, _ in new])
        for (text, wanted, min_prior), pool in zip(new, pools, strict=True):
            pool, order, priors = rank_pool(pool, self._ranker, kb, wanted)
            ranked = ((int(pool.concepts[i]), float(priors[i])) for i in order)
            self._found[text, wanted, min_prior] = tuple(r for r in ranked if r[1] >= min_prior)

    def _candidate(self, text: str, concept: int, prior: float) -> Candidate:
        strings = self.vocab.strings
        return Candidate(
            kb=self,
            entity_hash=strings.add(self._open_kb().ids[concept]),
            entity_freq=0.0,  # spaCy stores it without using it
            entity_vector=self._vector(concept).tolist(),
            alias_hash=strings.add(text),
            prior_prob=prior,
        )

    # -- vectors ---------------------------------------------------------------------------------

    def get_vector(self, entity: str) -> list[float]:
        """Get the vector of a concept.

        entity (str): An id, or several joined by "|", whose vectors are averaged.
        RETURNS (list[float]): Vector of length 1; zeros for an unknown id, as in spaCy, with one
            warning for all.
        """
        kb = self._open_kb()
        rows = [row for id in entity.split(AND) if (row := kb.number(id)) is not None]
        if len(rows) == 1:
            return self._vector(rows[0]).tolist()
        if rows:
            return of_length_1(np.sum([self._vector(row) for row in rows], axis=0)).tolist()
        if entity != NIL and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"entity_linker: {entity!r} is not in the knowledge base {kb.path}, and other ids "
                "may be missing too (one warning for all). Nothing useful is learned from their "
                "mentions: build the knowledge base with them, or remove their ids from the corpus",
                BioclinWarning,
                stacklevel=2,
            )
        return [0.0] * self.entity_vector_length

    def get_vectors(self, entities: Iterable[str]) -> list[list[float]]:
        """Get the vector of each concept. See `get_vector`."""
        return [self.get_vector(entity) for entity in entities]

    def _open_kb(self) -> KnowledgeBase:
        if self.kb is None:
            raise self.bundle.error(
                "it is empty: name the folder of a knowledge base in "
                "[initialize.components.entity_linker.kb_loader]"
            )
        return self.kb

    # -- writing and reading ---------------------------------------------------------------------

    def to_disk(self, path: Path | str, exclude: Iterable[str] = ()) -> None:
        """Write the settings and the trained model, and copies of the other parts or their paths.

        path (Path | str): Folder.
        exclude (Iterable[str]): Part of spaCy's interface; has no effect.
        """
        path, bundle = Path(path), self.bundle
        (bundle.model or TrainedModel.untrained()).write(path)
        settings: dict[str, Any] = {
            "kb": bundle.kb_path,
            "kb_hash": bundle.kb_hash if self.kb is None else self.kb.hash,
            "carry": bundle.carry,
            "model": ".",
            "n_candidates": self.n_candidates,
            "meanings": bundle.meanings,
            "encoder": bundle.encoder,
            "width": self.width,
        }
        for name in (KB, MEANINGS, ENCODER):
            folder = settings[name]
            if folder is None or not Path(folder).is_dir():  # none, or the hub name of an encoder
                continue
            if bundle.carry:
                bundle.copy_part(name, path / name)
            settings[name] = name if bundle.carry else str(Path(folder).resolve())
        srsly.write_json(path / STATE, settings)

    def from_disk(self, path: Path | str, exclude: Iterable[str] = ()) -> "SpacyKnowledgeBase":
        """Open what `to_disk` wrote.

        RETURNS (SpacyKnowledgeBase): Itself.
        RAISES (BioclinError): The folder holds something else, or the settings name a folder that
            is missing or has changed since.
        """
        path = Path(path)
        settings, own = read_settings(path)
        for name in (MODEL, KB, MEANINGS, ENCODER):
            folder = settings[name]
            if folder is not None and os.path.isdir(path / folder):  # it never fails
                settings[name] = str(path / folder)
            elif folder is not None and name != ENCODER:
                raise BioclinError(
                    f"{path / STATE}: {name} = {repr(folder)[:100]} is not there: put the folder "
                    "there, or write its new path in this file"
                )
        self._open(Parts(**settings), **own)
        return self

    def to_bytes(self, **kwargs: Any) -> bytes:
        """Write the files of `to_disk` to bytes."""
        with TemporaryDirectory() as folder:
            self.to_disk(folder)
            files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
            return srsly.msgpack_dumps(
                {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
            )

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "SpacyKnowledgeBase":
        """Open what `to_bytes` wrote, in a temporary folder that exists as long as this object.

        RETURNS (SpacyKnowledgeBase): Itself.
        RAISES (BioclinError): The bytes hold something else.
        """
        folder = TemporaryDirectory()
        root = Path(folder.name).resolve()
        for name, content in self._read_files(bytes_data).items():
            file = (root / name).resolve()
            if not file.is_relative_to(root):
                raise self.bundle.error(f"the bytes hold a file outside of their folder: {name!r}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        self.from_disk(folder.name)
        self._folder = folder
        return self

    def _read_files(self, data: bytes) -> dict[str, bytes]:
        try:
            files = srsly.msgpack_loads(data)
        except (ValueError, TypeError, RecursionError):
            files = None
        if not isinstance(files, dict) or not all(
            isinstance(name, str) and "\0" not in name and isinstance(content, bytes)
            for name, content in files.items()
        ):
            raise self.bundle.error("the bytes are damaged: write them again")
        return files


def read_settings(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Read the settings of a saved knowledge base.

    path (Path): Its folder.
    RETURNS (tuple): The fields of `Parts`; and n_candidates and width.
    RAISES (BioclinError): There are none, or they are damaged.
    """
    file = path / STATE
    try:
        check_regular(file)  # a pipe would wait for ever
        settings = srsly.read_json(file)
    except (OSError, ValueError, RecursionError, BioclinError):
        raise BioclinError(
            f"{file} cannot be read: the folder holds no SpacyKnowledgeBase"
        ) from None
    kinds = {"kb": str, "kb_hash": str, "carry": bool, "model": str, "meanings": str}
    kinds |= {"encoder": str, "n_candidates": int, "width": int}
    optional = ("kb", "kb_hash", "model", "meanings", "encoder")
    is_object = isinstance(settings, dict)
    wrong = next((key for key in kinds if not is_object or key not in settings), "")
    for key, value in settings.items() if is_object and not wrong else ():
        none = value is None and key in optional
        if key not in kinds or not (none or type(value) is kinds[key]) or "\0" in str(value):
            wrong = str(key)
    if wrong:
        raise BioclinError(
            f"{file} is damaged ({wrong[:40]!r} is missing, unknown or of another type): copy the "
            "pipeline again"
        )
    own = {key: settings.pop(key) for key in ("n_candidates", "width")}
    return settings, own
