"""What a linker is made of, opened at first use and stored with a pipeline: a knowledge base, what
was learned from linked mentions, and vectors of names with their encoder."""

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import srsly
from thinc.util import get_torch_default_device

from ..encoders.files import ENCODER_FILE
from ..encoders.names import NameEncoder
from ..errors import BioclinError
from ..files import check_regular
from ..outputs import open_folder
from .candidates import CandidateGenerator
from .codes import CODES, CodeClassifier, CodeFinder
from .dense.index import FILES, DenseIndex
from .kb.knowledge_base import KnowledgeBase
from .learned import LearnedNames
from .ranking import Ranker

SETTINGS = "settings"
RANKER, LEARNED = "ranker.json", "learned.json"
# In the folder of a saved linker: its description, and the folders that it contains.
STATE, KB, MEANINGS, ENCODER, MODEL = "linker.json", "kb", "meanings", "encoder", "model"


class TrainedModel(NamedTuple):
    """What `bioclin train-linker` writes.

    ranker (dict): See `Ranker.to_dict`.
    learned (list): See `LearnedNames.to_list`; it holds mentions of the training notes.
    codes (bytes): See `CodeClassifier.to_bytes`; empty if ids are not composed codes.
    """

    ranker: dict[str, Any]
    learned: list[list[Any]]
    codes: bytes = b""

    @classmethod
    def untrained(cls) -> "TrainedModel":
        """Make a model with fixed weights that has learned nothing."""
        return cls(Ranker.untrained().to_dict(), [])

    @classmethod
    def read(cls, folder: Path) -> "TrainedModel":
        """Read the model in a folder.

        RAISES (BioclinError): The folder does not contain one.
        """
        try:
            for file in (RANKER, LEARNED, CODES):
                if (folder / file).exists():
                    check_regular(folder / file)
            ranker, learned = (
                json.loads((folder / file).read_text("utf-8")) for file in (RANKER, LEARNED)
            )
            if not isinstance(ranker, dict) or not isinstance(learned, list):
                raise ValueError("type")
            codes = folder / CODES
            return cls(ranker, learned, codes.read_bytes() if codes.exists() else b"")
        except (OSError, ValueError, RecursionError) as error:
            raise BioclinError(
                f"{folder} holds no trained linker ({type(error).__name__}): give the folder that "
                "`bioclin train-linker` wrote, or null"
            ) from None

    def write(self, folder: Path) -> None:
        """Write the model to a folder, which is created if necessary."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in ((RANKER, self.ranker), (LEARNED, self.learned)):
            (folder / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")
        if self.codes:
            (folder / CODES).write_bytes(self.codes)
        else:
            (folder / CODES).unlink(missing_ok=True)


class Parts(NamedTuple):
    """Where the parts of a linker are.

    kb (str | None): Folder of `bioclin kb build`.
    kb_hash (str | None): Hash that the knowledge base must have.
    carry (bool): Save copies of the knowledge base, vectors and encoder; else their paths.
    model (str | None): Folder of `bioclin train-linker`; None for fixed weights.
    meanings (str | None): Folder of `bioclin embed-kb`.
    encoder (str | None): Folder or hub name of the encoder that `meanings` was made with.
    """

    kb: str | None
    kb_hash: str | None
    carry: bool
    model: str | None
    meanings: str | None
    encoder: str | None


class LinkerBundle:
    """Opens the parts of a linker at first use, and stores them with a pipeline.

    owner (str): Who uses it, for errors: "[components.NAME]".
    parts (Parts): Where the parts are.
    RAISES (BioclinError): Only one of meanings and encoder is given.
    """

    def __init__(self, owner: str, parts: Parts) -> None:
        self.owner = owner
        self.kb_path, self.kb_hash, self.carry, self.model_path = parts[:4]
        self.meanings, self.encoder = parts[4:]
        self._kb: KnowledgeBase | None = None
        self._model: TrainedModel | None = None
        if (self.meanings is None) != (self.encoder is None):
            raise self.error(
                f"meanings = {self.meanings!r} and encoder = {self.encoder!r}: set both, the folder"
                " of `bioclin embed-kb` and the encoder that it was made with, or none"
            )

    def error(self, message: object) -> BioclinError:
        """Make an error that names the owner."""
        return BioclinError(f"{self.owner} {message}")

    @property
    def kb(self) -> KnowledgeBase:
        """The knowledge base.

        RAISES (BioclinError): There is none, or it cannot be opened.
        """
        if self._kb is None:
            if self.kb_path is None:
                raise self.error(
                    "has no knowledge base: build one with `bioclin kb build SOURCE -o FOLDER` and "
                    'set kb = "FOLDER", or call set_kb("FOLDER") of nlp.get_pipe(…)'
                )
            self._kb = self._open_kb(self.kb_path, self.kb_hash)
        return self._kb

    def set_kb(self, kb: KnowledgeBase | Path | str) -> None:
        """Replace the knowledge base.

        kb (KnowledgeBase | Path | str): It, or its folder.
        RAISES (BioclinError): It cannot be opened, or `kb_hash` is the hash of another one.
        """
        self._kb = self._open_kb(kb, self.kb_hash)

    def _open_kb(self, kb: KnowledgeBase | Path | str, hash: str | None) -> KnowledgeBase:
        try:
            opened = kb if isinstance(kb, KnowledgeBase) else KnowledgeBase.open(kb)
            opened.check_hash(hash)
            opened.arrays.check()
        except BioclinError as error:
            raise self.error(error) from None
        return opened

    @property
    def model(self) -> TrainedModel | None:
        """What was learned; None for fixed weights."""
        if self._model is None and self.model_path is not None:
            self._model = TrainedModel.read(Path(self.model_path))
        return self._model

    def make_generator(self, *, n_candidates: int, lang: str) -> tuple[CandidateGenerator, Ranker]:
        """Open all parts, and make of them what finds and what ranks candidates.

        RAISES (BioclinError): There is not a knowledge base, or the parts do not belong together.
        """
        kb = self.kb
        try:
            model = self.model or TrainedModel.untrained()
            meanings = None
            if self.meanings is not None and self.encoder is not None:
                meanings = open_meanings(Path(self.meanings), self.encoder, kb)
            learned = LearnedNames.from_list(kb, model.learned) if model.learned else None
            codes = None
            if model.codes:
                codes = CodeFinder(kb, {None: CodeClassifier.from_bytes(model.codes)})
            generator = CandidateGenerator(
                kb,
                n_candidates=n_candidates,
                lang=lang,
                meanings=meanings,
                learned=learned,
                codes=codes,
            )
            return generator, Ranker.from_dict(model.ranker)
        except BioclinError as error:
            raise self.error(error) from None

    # -- writing and reading ---------------------------------------------------------------------

    def _describe(self, exclude: Iterable[str]) -> tuple[dict[str, Any], set[str]]:
        """Describe the parts, and choose those that are saved with a pipeline."""
        kb = self.kb if self._kb is not None or self.kb_path is not None else None
        parts = {
            KB: self.carry and kb is not None,
            MODEL: self.model is not None,
            MEANINGS: self.carry and self.meanings is not None,
            ENCODER: self.carry and self.encoder is not None and Path(self.encoder).is_dir(),
        }
        carried = {part for part, has in parts.items() if has} - set(exclude)
        if kb is not None and kb.path is None and KB not in carried:
            raise self.error(
                "has a knowledge base that is in memory only, and carry = false: set carry = true, "
                "or call kb.write(FOLDER) and set_kb(FOLDER)"
            )
        state = {
            "kb_setting": self.kb_path,
            KB: str(kb.path) if kb is not None and kb.path is not None else None,
            "kb_meta": None if kb is None else describe_kb(kb),
            MEANINGS: self.meanings,
            ENCODER: self.encoder,
        }
        return state, carried

    def _restore(self, state: dict[str, Any], carried: KnowledgeBase | Path | None) -> None:
        """Take over a description.

        carried (KnowledgeBase | Path | None): What was saved with the pipeline. A folder that the
            user gave when loading, and that is not in the saved settings, takes precedence.
        """
        self._kb = None
        self.meanings, self.encoder = state[MEANINGS], state[ENCODER]
        if state["kb_meta"] is None:
            return
        given = self.kb_path if self.kb_path != state["kb_setting"] else None
        source = given or carried or state[KB]
        try:
            kb = self._open_kb(source, state["kb_meta"]["hash"])
        except BioclinError as error:
            name = self.owner.removeprefix("[components.").removesuffix("]")
            config = f'{{"components": {{"{name}": {{"kb": "FOLDER"}}}}}}'
            moved = "" if source is carried else f". Was it moved? spacy.load(…, config={config})"
            raise BioclinError(f"{error}{moved}") from None
        self.set_kb(kb)

    def to_bytes(self, *, exclude: Iterable[str], settings: dict[str, Any]) -> bytes:
        """Write everything to bytes; of vectors and encoder only the paths.

        settings (dict[str, Any]): Of the owner, ready for JSON.
        """
        state, carried = self._describe(exclude)
        kb = self.kb.to_bytes() if KB in carried else None
        model = self.model if MODEL in carried else None
        state[SETTINGS] = settings
        return srsly.msgpack_dumps({"state": state, KB: kb, MODEL: model and list(model)})

    def from_bytes(self, data: bytes) -> dict[str, Any]:
        """Take over what `to_bytes` wrote.

        RETURNS (dict[str, Any]): The settings of the owner; empty if an older version wrote it.
        """
        try:
            loaded = srsly.msgpack_loads(data)
            kb, model, state = loaded[KB], loaded[MODEL], check_state(loaded["state"])
            trained = TrainedModel(*model) if model else None
        except (ValueError, TypeError, KeyError):
            raise self.error("the bytes are damaged: write them again") from None
        self._model = trained
        self._restore(state, KnowledgeBase.from_bytes(kb) if kb else None)
        return state.get(SETTINGS, {})

    def to_disk(
        self, path: str | Path, *, exclude: Iterable[str], settings: dict[str, Any]
    ) -> None:
        """Write a description to a folder, and copies of the parts that are saved.

        settings (dict[str, Any]): Of the owner, ready for JSON.
        """
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        state, carried = self._describe(exclude)
        if MODEL in carried and self.model:
            self.model.write(path / MODEL)
        for part in carried - {MODEL}:
            self.copy_part(part, path / part)
        # Paths of what is copied are of no use on another machine.
        named = {part: None if part in carried else state[part] for part in (KB, MEANINGS, ENCODER)}
        state |= {**named, "carried": sorted(carried), SETTINGS: settings}
        srsly.write_json(path / STATE, state)

    def copy_part(self, part: str, target: Path) -> None:
        """Copy the knowledge base, the vectors or the encoder to a folder, which may be its own."""
        if part == KB:  # whole or not at all, because other processes may have it open
            self.kb.write(target)
            return
        source = Path({MEANINGS: self.meanings, ENCODER: self.encoder}[part] or "")
        # A package of others may name any folder of this machine: nothing else is taken from it.
        names = {MEANINGS: re.compile(FILES), ENCODER: ENCODER_FILE}[part]
        if source.resolve() != target.resolve():
            with open_folder(target.resolve()) as folder:  # others may have the old files mapped
                for file in filter(Path.is_file, source.iterdir()):
                    if names.fullmatch(file.name):
                        shutil.copyfile(file, folder / file.name)

    def from_disk(self, path: str | Path) -> dict[str, Any]:
        """Take over what `to_disk` wrote.

        RETURNS (dict[str, Any]): The settings of the owner; empty if an older version wrote it.
        """
        path = Path(path)
        try:
            check_regular(path / STATE)
            state = check_state(json.loads((path / STATE).read_text("utf-8")))
            carried = set(state["carried"])
        except (OSError, ValueError, RecursionError, TypeError, KeyError):
            raise self.error(f"{path / STATE} is damaged: copy the pipeline again") from None
        self._model = TrainedModel.read(path / MODEL) if MODEL in carried else None
        for part in carried & {MEANINGS, ENCODER}:
            state[part] = str(path / part)
        self._restore(state, path / KB if KB in carried else None)
        return state.get(SETTINGS, {})


def check_state(state: Any) -> dict[str, Any]:
    """Check the description of a saved linker.

    RETURNS (dict): The same.
    RAISES (ValueError): It is damaged.
    """
    if not isinstance(state, dict):
        raise ValueError("type")
    texts = [state[key] for key in ("kb_setting", KB, MEANINGS, ENCODER)]
    if not all(text is None or (isinstance(text, str) and "\0" not in text) for text in texts):
        raise ValueError("type")
    settings = state.get(SETTINGS, {})
    if not isinstance(settings, dict) or any(
        not isinstance(pair, list) or len(pair) != 2 for pair in settings.values()
    ):
        raise ValueError("type")
    meta = state["kb_meta"]
    if meta is not None and not (isinstance(meta, dict) and isinstance(meta.get("hash"), str)):
        raise ValueError("type")
    return state


def open_meanings(meanings: Path, encoder: str, kb: KnowledgeBase) -> DenseIndex:
    """Open vectors of names and the encoder that made them.

    meanings (Path): Folder of `bioclin embed-kb`.
    encoder (str): Folder or hub name of the encoder.
    RAISES (BioclinError): They do not belong together or to this knowledge base.
    """
    device = get_torch_default_device()
    pooling = DenseIndex.open(meanings, kb, device=device).meta["pooling"]
    names = NameEncoder(encoder, pooling=pooling, device=device)
    return DenseIndex.open(meanings, kb, names, device=device)


def describe_kb(kb: KnowledgeBase) -> dict[str, Any]:
    """Describe a knowledge base for a model card, with the licences of its sources."""
    keys = ("name", "version", "langs", "n_concepts", "n_names")
    sources = [
        {key: source.get(key, "") for key in ("file", "format", "licence")}
        for source in kb.meta["sources"]
    ]
    return {**{key: kb.meta[key] for key in keys}, "hash": kb.hash, "sources": sources}
