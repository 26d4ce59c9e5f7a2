"""Our knowledge base for spaCy's own trainable `entity_linker`: candidates with a prior from our
ranker, and a vector for each concept, which spaCy's model learns to predict from the sentence."""

import warnings
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import spacy.kb
import srsly
from spacy.kb import Candidate
from spacy.tokens import Span
from spacy.vocab import Vocab

from ...errors import BioclinError
from ...tokenization.abbreviations import find_abbreviations
from ..candidates import CandidateGenerator
from ..docs import mention_texts
from ..kb.build import is_type
from ..kb.knowledge_base import KnowledgeBase
from ..learned import LearnedNames
from ..linker import AND
from ..parts import TrainedModel, check_types, copy_files, open_kb, open_meanings
from ..ranking import Ranker
from .vectors import concept_vector, of_length_1

# Of a saved one: settings, and folders of what it carries.
STATE, KB, MEANINGS, ENCODER = "settings.json", "kb", "meanings", "encoder"
NIL = "NIL"  # spaCy's id for "none of them"
# Mentions whose candidates, concepts whose vectors and notes whose abbreviations are remembered.
MAX_REMEMBERED, MAX_VECTORS, MAX_NOTES = 50_000, 20_000, 64

Types = Mapping[str, Collection[str]]
# Row of a concept and its prior, for each candidate of a mention, best first.
Found = tuple[tuple[int, float], ...]

_abbreviations = lru_cache(MAX_NOTES)(find_abbreviations)


class Settings(NamedTuple):
    """What a `SpacyKnowledgeBase` is made of.

    kb (str | None): Folder of `bioclin kb build`; None: it is empty.
    kb_hash (str | None): What its hash has to be.
    carry (bool): `to_disk` copies the knowledge base, vectors and encoder; else it writes paths.
    model (str | None): Folder of `bioclin train-linker`; None for fixed weights.
    n_candidates (int): Concepts for each way of looking.
    meanings (str | None): Folder of `bioclin embed-kb`; None for trigram vectors.
    encoder (str | None): Folder or hub name of the encoder that `meanings` was made with.
    width (int): Width of trigram vectors, and what spaCy is told while it is empty.
    """

    kb: str | None
    kb_hash: str | None
    carry: bool
    model: str | None
    n_candidates: int
    meanings: str | None
    encoder: str | None
    width: int


class SpacyKnowledgeBase(spacy.kb.KnowledgeBase):
    """What spaCy's `entity_linker` asks for.

    vocab (Vocab): The pipeline's; its language is that of the notes.
    settings (Settings): What to open.
    RAISES (BioclinError): Something cannot be opened, or does not fit together.
    """

    def __init__(self, vocab: Vocab, settings: Settings) -> None:
        super().__init__(vocab, settings.width)
        self._open(settings)

    def _open(self, settings: Settings) -> None:
        if (settings.meanings is None) != (settings.encoder is None):
            raise BioclinError(
                f"SpacyKnowledgeBase: meanings = {settings.meanings!r} and encoder = "
                f"{settings.encoder!r}: set both, the folder of `bioclin embed-kb` and the encoder "
                "that it was made with, or none"
            )
        if settings.n_candidates < 1 or settings.width < 1:
            raise BioclinError(
                f"SpacyKnowledgeBase: n_candidates = {settings.n_candidates}, width = "
                f"{settings.width}: want 1 or more of each"
            )
        self.settings = settings
        self.kb: KnowledgeBase | None = None
        self._has_warned = False
        self._checked: Types | None = None
        self._found: OrderedDict[tuple[Any, ...], Found] = OrderedDict()
        self._model = TrainedModel.untrained()
        if settings.model is not None:
            self._model = TrainedModel.read(Path(settings.model))
        if settings.kb is None:
            return
        kb, meanings = open_kb(settings.kb, settings.kb_hash), None
        if settings.meanings is not None and settings.encoder is not None:
            meanings = open_meanings(Path(settings.meanings), settings.encoder, kb)
        learned = self._model.learned
        self._ranker = Ranker.from_dict(self._model.ranker)
        self._generator = CandidateGenerator(
            kb,
            n_candidates=settings.n_candidates,
            lang=self.vocab.lang,
            meanings=meanings,
            learned=LearnedNames.from_list(kb, learned) if learned else None,
        )
        width = settings.width if meanings is None else int(meanings.meta["width"])
        super().__init__(self.vocab, width)  # the same vocab; spaCy lets nobody set the width
        self._vector = lru_cache(MAX_VECTORS)(partial(concept_vector, kb, meanings, width))
        self.settings = settings._replace(kb_hash=kb.hash)
        self.kb = kb

    def __len__(self) -> int:
        return 0 if self.kb is None else len(self.kb)

    def is_empty(self) -> bool:
        """RETURNS (bool): Whether nothing was opened yet; spaCy asks before it trains."""
        return not len(self)

    def contains_entity(self, entity: str) -> bool:
        """RETURNS (bool): Whether there is such a concept, or one with this alternative id."""
        return self.kb is not None and entity in self.kb

    # -- candidates ------------------------------------------------------------------------------

    def get_candidates(
        self, mention: Span, *, types: Types | None = None, min_prior: float = 0.0
    ) -> list[Candidate]:
        """RETURNS (list[Candidate]): See `get_candidates_batch`."""
        return self.get_candidates_batch([mention], types=types, min_prior=min_prior)[0]

    def get_candidates_batch(
        self, mentions: Iterable[Span], *, types: Types | None = None, min_prior: float = 0.0
    ) -> list[list[Candidate]]:
        """Find candidates. Abbreviations that a note defines are written out before; a composite
        mention is looked up as it is, because spaCy gives a mention one concept.

        mentions (Iterable[Span]): Of any number of notes.
        types (Types | None): Label -> semantic types of the concepts that it may mean, "C04*" for
            all that begin so; other labels may mean any concept.
        min_prior (float): Less probable candidates are left out, 0 to 1.
        RETURNS (list[list[Candidate]]): Those of each mention, most probable first.
        RAISES (BioclinError): It is empty, or no concept has a type that is asked for.
        """
        if types and types is not self._checked:
            check_types(types, self._opened())
            self._checked = types
        spans = list(mentions)
        texts = [mention_texts(s.doc, [s], _abbreviations(s.doc.text))[0] for s in spans]
        wanted = [tuple((types or {}).get(span.label_, ())) for span in spans]
        return self._candidates(texts, wanted, min_prior)

    def get_alias_candidates(self, alias: str) -> list[Candidate]:
        """RETURNS (list[Candidate]): Those of a text, as if it were a mention."""
        return self._candidates([alias], [()], 0.0)[0]

    def _candidates(
        self, texts: Sequence[str], wanted: Sequence[tuple[str, ...]], min_prior: float
    ) -> list[list[Candidate]]:
        self._find(dict.fromkeys((t, w, min_prior) for t, w in zip(texts, wanted, strict=True)))
        found = []
        for key in zip(texts, wanted, [min_prior] * len(texts), strict=True):
            self._found.move_to_end(key)
            found.append([self._candidate(key[0], *row) for row in self._found[key]])
        while len(self._found) > MAX_REMEMBERED:
            self._found.popitem(last=False)
        return found

    def _find(self, keys: Iterable[tuple[str, tuple[str, ...], float]]) -> None:
        """Remember what is found for each text, wanted types and least prior."""
        kb = self._opened()
        new = [key for key in keys if key not in self._found]
        pools = self._generator([text for text, _, _ in new])
        for (text, wanted, min_prior), pool in zip(new, pools, strict=True):
            concepts, features = pool.concepts, pool.features
            if wanted:
                types = [kb.types_of(int(concept)) for concept in concepts]
                kept = np.array([any(is_type(t, wanted) for t in own) for own in types], bool)
                concepts, features = concepts[kept], features[kept]
            priors = self._ranker.probabilities(features)
            order = np.lexsort((concepts, -priors))
            ranked = ((int(concepts[i]), float(priors[i])) for i in order)
            self._found[text, wanted, min_prior] = tuple(r for r in ranked if r[1] >= min_prior)

    def _candidate(self, text: str, concept: int, prior: float) -> Candidate:
        strings = self.vocab.strings
        return Candidate(
            kb=self,
            entity_hash=strings.add(self._opened().ids[concept]),
            entity_freq=0.0,  # spaCy keeps it and never asks
            entity_vector=self._vector(concept).tolist(),
            alias_hash=strings.add(text),
            prior_prob=prior,
        )

    # -- vectors ---------------------------------------------------------------------------------

    def get_vector(self, entity: str) -> list[float]:
        """RETURNS (list[float]): Of length 1; for several ids with "|" between them, the middle of
        theirs; for an id that is not there zeros, as spaCy has it, with one warning for all."""
        kb = self._opened()
        rows = [row for id in entity.split(AND) if (row := kb.number(id)) is not None]
        if rows:
            return of_length_1(np.sum([self._vector(row) for row in rows], axis=0)).tolist()
        if entity != NIL and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"entity_linker: {entity!r} is not in the knowledge base {kb.path}, and maybe other"
                " ids are not (one warning for all): mentions of them teach nothing of use; build "
                "the knowledge base with them, or take their ids out of the corpus",
                stacklevel=2,
            )
        return [0.0] * self.entity_vector_length

    def get_vectors(self, entities: Iterable[str]) -> list[list[float]]:
        """RETURNS (list[list[float]]): That of each, see `get_vector`."""
        return [self.get_vector(entity) for entity in entities]

    def _opened(self) -> KnowledgeBase:
        if self.kb is None:
            raise BioclinError(
                "SpacyKnowledgeBase: it is empty: name the folder of a knowledge base in "
                "[initialize.components.entity_linker.kb_loader]"
            )
        return self.kb

    # -- writing and reading ---------------------------------------------------------------------

    def to_disk(self, path: Path | str, exclude: Iterable[str] = ()) -> None:
        """Write the settings and the trained model, and copy the rest or write its paths.

        path (Path | str): Folder.
        exclude (Iterable[str]): spaCy's classes have it; here nothing can be left out.
        """
        path, settings = Path(path), self.settings
        self._model.write(path)
        folders = {KB: settings.kb, MEANINGS: settings.meanings, ENCODER: settings.encoder}
        for name, folder in folders.items():
            if folder is None or not Path(folder).is_dir():  # none, or the hub name of an encoder
                continue
            if settings.carry and name == KB:  # whole or not at all: others may have it open
                self._opened().write(path / name)
            elif settings.carry:
                copy_files(Path(folder), path / name)
            folders[name] = name if settings.carry else str(Path(folder).resolve())
        srsly.write_json(path / STATE, {**settings._asdict(), **folders, "model": "."})

    def from_disk(self, path: Path | str, exclude: Iterable[str] = ()) -> "SpacyKnowledgeBase":
        """Open what `to_disk` wrote.

        RETURNS (SpacyKnowledgeBase): Itself.
        RAISES (BioclinError): It is something else, or the settings name a folder that is not
            there, or that holds something else than when they were written.
        """
        path = Path(path)
        try:
            settings = Settings(**srsly.read_json(path / STATE))
        except (OSError, ValueError, TypeError):
            raise BioclinError(
                f"{path / STATE} cannot be read: the folder holds no SpacyKnowledgeBase"
            ) from None
        named = {name: getattr(settings, name) for name in ("model", KB, MEANINGS, ENCODER)}
        for name, folder in named.items():
            if folder is not None and (path / folder).is_dir():
                named[name] = str(path / folder)
            elif folder is not None and name != ENCODER:
                raise BioclinError(
                    f"{path / STATE}: {name} = {folder!r} is not there: put the folder there, or "
                    "write its new path in this file"
                )
        self._open(Settings(**{**settings._asdict(), **named}))
        return self

    def to_bytes(self, **kwargs: Any) -> bytes:
        """RETURNS (bytes): The files that `to_disk` writes."""
        with TemporaryDirectory() as folder:
            self.to_disk(folder)
            files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
            return srsly.msgpack_dumps(
                {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
            )

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "SpacyKnowledgeBase":
        """Open what `to_bytes` made, from a temporary folder that lives as long as this.

        RETURNS (SpacyKnowledgeBase): Itself.
        RAISES (BioclinError): They hold something else.
        """
        self._folder = TemporaryDirectory()
        root = Path(self._folder.name).resolve()
        for name, content in srsly.msgpack_loads(bytes_data).items():
            file = (root / name).resolve()
            if not file.is_relative_to(root):
                raise BioclinError(f"SpacyKnowledgeBase: the bytes hold a file elsewhere: {name!r}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return self.from_disk(self._folder.name)
