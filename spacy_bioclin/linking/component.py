"""`bioclin_linker` links entities to the concepts that they mean, with ranked candidates."""

import copy
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Config

from ..evaluation.components import ConceptIds
from ..spans import get_spans
from ..tokenization.defined_abbreviations import Abbreviation, find_abbreviations
from .bundle import LinkerBundle, Parts
from .docs import (
    install_extensions,
    mention_texts,
    set_abbreviations,
    set_candidates,
    set_codes,
    set_kb_ids,
)
from .kb.knowledge_base import KnowledgeBase
from .linker import Link, Linker, Mention, check_types

# Settings that count whenever they are changed, and that are saved.
CHANGEABLE = ("types", "n_candidates", "n_shown", "threshold")
DEFAULT_CONFIG = Config().from_str(
    """
[component]
kb = null
kb_hash = null
carry = true
model = null
spans_key = null
labels = null
n_candidates = 48
n_shown = 10
threshold = 0.0
expand_abbreviations = true
meanings = null
encoder = null
overwrite = false

[component.types]

[component.scorer]
@scorers = "spacy-bioclin.linking_scorer.v1"
"""
)


class DocLinks(NamedTuple):
    """What was found in a Doc.

    abbreviations (list[Abbreviation]): The abbreviations that it defines.
    links (dict[int, Link]): Index of a span of the layer -> what it means.
    """

    abbreviations: list[Abbreviation]
    links: dict[int, Link]


class ConceptLinker(Pipe):
    """Write `kb_id_` of entities or of the spans of a key, `span._.candidates`, `span._.codes` and
    `doc._.abbreviations`. Ids of the parts of a composite mention are joined by "|".

    Add it after the component that finds the entities.

    kb (str | None): Folder of `bioclin kb build`, opened at first use. None: see `set_kb`.
    kb_hash (str | None): Hash that it must have (`bioclin kb info`).
    carry (bool): `to_disk` copies the knowledge base, vectors and encoder into the pipeline; else
        it writes path and hash.
    model (str | None): Folder of `bioclin train-linker`; None for fixed weights.
    spans_key (str | None): Link `doc.spans[spans_key]`, or `doc.ents` if None.
    labels (list[str] | None): Link spans of these labels; None for all.
    types (dict[str, list[str]]): Label -> semantic types of the concepts that it may mean, "C04*"
        for all that begin with C04; other labels may mean any concept.
    n_candidates (int): Concepts retrieved by each search method.
    n_shown (int): Candidates that are stored for each mention.
    threshold (float): Lowest probability of a link, 0 to 1; a mention is also NIL if that is more
        probable.
    expand_abbreviations (bool): Replace abbreviations by their definition in the note before they
        are looked up.
    meanings (str | None): Folder of `bioclin embed-kb`; None compares only how names are written.
    encoder (str | None): Folder or hub name of the encoder that `meanings` was made with.
    overwrite (bool): Also link spans that have a kb_id.
    scorer (Callable | None): See `spacy-bioclin.linking_scorer.v1`.
    RAISES (BioclinError): A setting is out of range, or only one of meanings and encoder is given.
    """

    def __init__(
        self,
        nlp: Language,
        name: str,
        kb: str | None,
        kb_hash: str | None,
        carry: bool,
        model: str | None,
        spans_key: str | None,
        labels: list[str] | None,
        types: dict[str, list[str]],
        n_candidates: int,
        n_shown: int,
        threshold: float,
        expand_abbreviations: bool,
        meanings: str | None,
        encoder: str | None,
        overwrite: bool,
        scorer: Callable[..., dict[str, Any]] | None,
    ) -> None:
        self.name = name
        self.bundle = LinkerBundle(
            f"[components.{name}]", Parts(kb, kb_hash, carry, model, meanings, encoder)
        )
        self.lang = nlp.lang or ""
        self.linked_labels = None if labels is None else frozenset(labels)
        self.types, self.n_candidates, self.n_shown = types, n_candidates, n_shown
        self.threshold, self.overwrite = threshold, overwrite
        self.expand_abbreviations = expand_abbreviations
        self.scorer = scorer
        self.cfg = {"spans_key": spans_key}  # spaCy passes it to the scorer
        self._linker: Linker | None = None
        self._configured = self._made_with = self._settings()
        if not 0 <= threshold <= 1:
            raise self.bundle.error(f"threshold = {threshold}: want a probability from 0 to 1")
        if n_candidates < 1 or n_shown < 1:
            raise self.bundle.error(
                f"n_candidates = {n_candidates}, n_shown = {n_shown}: want 1 or more of each"
            )
        install_extensions()

    @property
    def spans_key(self) -> str | None:
        """The key of the spans that are linked; None for `doc.ents`."""
        return self.cfg["spans_key"]

    @property
    def kb(self) -> KnowledgeBase:
        """The knowledge base.

        RAISES (BioclinError): There is none.
        """
        return self.bundle.kb

    def _settings(self) -> dict[str, Any]:
        """Copy the settings that may be changed after the component was made."""
        return {name: copy.deepcopy(getattr(self, name)) for name in CHANGEABLE}

    def set_kb(self, kb: KnowledgeBase | Path | str) -> None:
        """Link to another knowledge base. See `LinkerBundle.set_kb`."""
        self.bundle.set_kb(kb)
        self._linker = None

    @property
    def linker(self) -> Linker:
        """The linker that does the work, made at first use and after a setting was changed.

        RAISES (BioclinError): There is not a knowledge base, or the parts do not belong together.
        """
        settings = self._settings()
        if self._linker is None or self._made_with != settings:
            self._made_with = settings
            check_types(self.types, self.kb, self.bundle.error)
            self._linker = Linker(
                *self.bundle.make_generator(n_candidates=self.n_candidates, lang=self.lang),
                lang=self.lang,
                types=self.types,
                n_shown=self.n_shown,
                threshold=self.threshold,
            )
        return self._linker

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
        kb: str | None = None,
    ) -> None:
        """Open the knowledge base, so that mistakes are found before training.

        kb (str | None): Folder of a knowledge base to use instead of the configured one.
        RAISES (BioclinError): There is none, or the settings do not fit it.
        """
        if kb is not None:
            self.set_kb(kb)
        self._linker = None
        _ = self.linker

    def __call__(self, doc: Doc) -> Doc:
        next(self.pipe([doc], batch_size=1), None)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Link a stream of Docs; all mentions of a batch are looked up at once.

        YIELDS (Doc): In order.
        """
        install_extensions()  # lost when a worker process starts
        handle_error = self.get_error_handler()
        for docs in minibatch(stream, batch_size):
            try:
                self.set_annotations(docs, self.predict(docs))
            except Exception as error:
                handle_error(self.name, self, docs, error)
            else:
                yield from docs

    def predict(self, docs: Iterable[Doc]) -> list[DocLinks]:
        """Find what the mentions of each Doc mean."""
        linker = self.linker
        found: list[tuple[list[Abbreviation], list[int]]] = []
        mentions: list[Mention] = []
        for note, doc in enumerate(docs):
            abbreviations = find_abbreviations(doc.text) if self.expand_abbreviations else []
            spans = get_spans(doc, self.spans_key)
            chosen = [
                i
                for i, span in enumerate(spans)
                if (self.linked_labels is None or span.label_ in self.linked_labels)
                and (self.overwrite or not span.kb_id)
            ]
            wanted = [spans[i] for i in chosen]
            texts = mention_texts(doc, wanted, abbreviations)
            mentions += (Mention(t, s.label_, note) for t, s in zip(texts, wanted, strict=True))
            found.append((abbreviations, chosen))
        links = iter(linker(mentions))
        return [DocLinks(abbrs, {i: next(links) for i in chosen}) for abbrs, chosen in found]

    def set_annotations(self, docs: Iterable[Doc], scores: Iterable[DocLinks]) -> None:
        """Write what `predict` found to the Docs."""
        for doc, found in zip(docs, scores, strict=True):
            if self.expand_abbreviations:
                set_abbreviations(doc, found.abbreviations)
            spans = get_spans(doc, self.spans_key)
            for i, link in found.links.items():
                set_candidates(spans[i], link.candidates)
                set_codes(spans[i], link.codes)
            set_kb_ids(doc, self.spans_key, {i: link.kb_id for i, link in found.links.items()})

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Score the links with the scorer; any id of a concept is right.

        RETURNS (dict[str, Any]): Empty without a scorer.
        """
        if self.scorer is None:
            return {}
        return self.scorer(examples, **self.cfg, concept_ids=ConceptIds([self.kb]), **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens what it needs.
        return _restore, (type(self), {**self.__dict__, "_linker": None}, self.name)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Write everything to bytes. See `LinkerBundle.to_bytes`."""
        return self.bundle.to_bytes(exclude=exclude, settings=self._changed())

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "ConceptLinker":
        """Take over what `to_bytes` wrote."""
        self._take_over(self.bundle.from_bytes(data))
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write a folder. See `LinkerBundle.to_disk`."""
        self.bundle.to_disk(path, exclude=exclude, settings=self._changed())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ConceptLinker":
        """Take over what `to_disk` wrote."""
        self._take_over(self.bundle.from_disk(path))
        return self

    def _changed(self) -> dict[str, Any]:
        """List the settings that differ from the config: name -> value in the config, and now."""
        pairs = {name: [self._configured[name], now] for name, now in self._settings().items()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def _take_over(self, changed: dict[str, Any]) -> None:
        """Take over what `_changed` listed, except for what the config has changed since."""
        self._linker = None
        for name, (old, new) in changed.items():
            if name in CHANGEABLE and getattr(self, name) == old:
                setattr(self, name, new)


def _restore(kind: type[ConceptLinker], state: dict[str, Any], name: str) -> ConceptLinker:
    made = kind.__new__(kind)
    made.__dict__.update(state)
    made.name = name
    return made


make_linker = Language.factory(
    "bioclin_linker",
    assigns=[
        "token.ent_kb_id",
        "doc.ents",
        "doc.spans",
        "span._.candidates",
        "span._.codes",
        "doc._.abbreviations",
        "doc._.abbreviation_offsets",
        "span._.long_form",
    ],
    requires=["doc.ents"],
    default_config=DEFAULT_CONFIG["component"],
    default_score_weights={"link_f": 1.0, "link_p": 0.0, "link_r": 0.0, "link_acc": None},
)(ConceptLinker)
