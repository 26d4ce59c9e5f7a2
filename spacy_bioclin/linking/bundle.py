"""The parts of a linker: opened at first use, saved with a pipeline or named by it."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import srsly

from ..errors import BioclinError
from .candidates import CandidateGenerator
from .kb.knowledge_base import KnowledgeBase
from .learned import LearnedNames
from .parts import TrainedModel, check_types, copy_files, describe_kb, open_kb, open_meanings
from .ranking import Ranker

# Of a saved linker: what it says of its parts, and folders of those that it carries.
STATE, KB, MEANINGS, ENCODER, MODEL = "linker.json", "kb", "meanings", "encoder", "model"


class LinkerBundle:
    """Knowledge base, trained model, vectors of names and their encoder.

    component (str): Name of the component, for errors.
    kb, kb_hash, carry, model, meanings, encoder: See `component.make_linker`.
    RAISES (BioclinError): Only one of meanings and encoder is given.
    """

    def __init__(
        self,
        component: str,
        *,
        kb: str | None,
        kb_hash: str | None,
        carry: bool,
        model: str | None,
        meanings: str | None,
        encoder: str | None,
    ) -> None:
        self.component = component
        self.kb_path, self.kb_hash, self.carry = kb, kb_hash, carry
        self.model_path, self.meanings, self.encoder = model, meanings, encoder
        self._kb: KnowledgeBase | None = None
        self._model: TrainedModel | None = None
        if (meanings is None) != (encoder is None):
            raise self._error(
                f"meanings = {meanings!r} and encoder = {encoder!r}: set both, the folder of "
                "`bioclin embed-kb` and the encoder that it was made with, or none"
            )

    def _error(self, message: object) -> BioclinError:
        return BioclinError(f"[components.{self.component}] {message}")

    def set_kb(self, kb: KnowledgeBase | Path | str) -> None:
        """Take another knowledge base; see `component.ConceptLinker.set_kb`."""
        try:
            self._kb = open_kb(kb, self.kb_hash)
        except BioclinError as error:
            raise self._error(error) from None

    @property
    def kb(self) -> KnowledgeBase:
        """The knowledge base; opened when it is first asked for.

        RAISES (BioclinError): There is none.
        """
        if self._kb is None:
            if self.kb_path is None:
                raise self._error(
                    "has no knowledge base: build one with `bioclin kb build SOURCE -o FOLDER` and "
                    f'set kb = "FOLDER", or call nlp.get_pipe("{self.component}").set_kb("FOLDER")'
                )
            self.set_kb(self.kb_path)
            assert self._kb is not None
        return self._kb

    @property
    def model(self) -> TrainedModel | None:
        """What was learned, read when it is first asked for; None for fixed weights."""
        if self._model is None and self.model_path is not None:
            self._model = TrainedModel.read(Path(self.model_path))
        return self._model

    def make_generator(
        self, *, n_candidates: int, lang: str, types: Mapping[str, Collection[str]]
    ) -> tuple[CandidateGenerator, Ranker]:
        """Put the parts together.

        types (Mapping[str, Collection[str]]): Semantic types that some concepts have to have.
        RETURNS (tuple[CandidateGenerator, Ranker]): See there.
        RAISES (BioclinError): There is no knowledge base, or the parts do not belong together.
        """
        kb = self.kb
        try:
            check_types(types, kb)
            model, meanings = self.model, None
            if self.meanings is not None and self.encoder is not None:
                meanings = open_meanings(Path(self.meanings), self.encoder, kb)
            generator = CandidateGenerator(
                kb,
                n_candidates=n_candidates,
                lang=lang,
                meanings=meanings,
                learned=LearnedNames.from_list(kb, model.learned) if model else None,
            )
            return generator, Ranker.from_dict(model.ranker) if model else Ranker.untrained()
        except BioclinError as error:
            raise self._error(error) from None

    def _state(self, exclude: Iterable[str]) -> tuple[dict[str, Any], set[str]]:
        """RETURNS (tuple[dict, set[str]]): What a saved component says of its parts, and which of
        them it carries."""
        has_kb = self._kb is not None or self.kb_path is not None
        parts = {
            KB: self.carry and has_kb,
            MODEL: self.model is not None,
            MEANINGS: self.carry and self.meanings is not None,
            ENCODER: self.carry and self.encoder is not None and Path(self.encoder).is_dir(),
        }
        carried = {part for part, has in parts.items() if has} - set(exclude)
        kb = self.kb if has_kb else None
        if kb is not None and kb.path is None and KB not in carried:
            raise self._error(
                "has a knowledge base that lies in no folder, and carry = false: set carry = true, "
                "or kb.write(FOLDER) and set_kb(FOLDER)"
            )
        state = {
            "kb_setting": self.kb_path,
            KB: str(kb.path) if kb is not None and kb.path is not None else None,
            "kb_meta": None if kb is None else describe_kb(kb),
            MEANINGS: self.meanings,
            ENCODER: self.encoder,
        }
        return state, carried

    def _set_state(self, state: dict[str, Any], carried: KnowledgeBase | Path | None) -> None:
        """carried (KnowledgeBase | Path | None): What a pipeline came with. A setting that is not
        the saved one was given to load, and goes before it."""
        self._kb = None
        self.meanings, self.encoder = state[MEANINGS], state[ENCODER]
        if state["kb_meta"] is None:
            return
        asked = self.kb_path if self.kb_path != state["kb_setting"] else None
        source = asked or carried or state[KB]
        try:
            kb = open_kb(source, state["kb_meta"]["hash"])
        except BioclinError as error:
            other = f'{{"components": {{"{self.component}": {{"kb": "FOLDER"}}}}}}'
            moved = "" if source is carried else f". Elsewhere now? spacy.load(…, config={other})"
            raise self._error(f"{error}{moved}") from None
        self.set_kb(kb)

    def to_bytes(self, *, exclude: Iterable[str]) -> bytes:
        """RETURNS (bytes): With the knowledge base if it is carried; folders of vectors and encoder
        are named only."""
        state, carried = self._state(exclude)
        kb = self.kb.to_bytes() if KB in carried else None
        model = self.model if MODEL in carried else None
        return srsly.msgpack_dumps({"state": state, KB: kb, MODEL: model and list(model)})

    def from_bytes(self, data: bytes) -> "LinkerBundle":
        loaded = srsly.msgpack_loads(data)
        kb, model = loaded[KB], loaded[MODEL]
        self._model = TrainedModel(*model) if model else None
        self._set_state(loaded["state"], KnowledgeBase.from_bytes(kb) if kb else None)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str]) -> None:
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        state, carried = self._state(exclude)
        if KB in carried:
            self.kb.write(path / KB)
        if MODEL in carried and self.model:
            self.model.write(path / MODEL)
        for part in carried & {MEANINGS, ENCODER}:
            copy_files(Path(state[part]), path / part)
        # Paths of what is carried are those of the machine where it was made.
        named = {part: None if part in carried else state[part] for part in (KB, MEANINGS, ENCODER)}
        srsly.write_json(path / STATE, {**state, **named, "carried": sorted(carried)})

    def from_disk(self, path: str | Path) -> "LinkerBundle":
        path = Path(path)
        state = srsly.read_json(path / STATE)
        carried = set(state["carried"])
        self._model = TrainedModel.read(path / MODEL) if MODEL in carried else None
        for part in carried & {MEANINGS, ENCODER}:
            state[part] = str(path / part)
        self._set_state(state, path / KB if KB in carried else None)
        return self
