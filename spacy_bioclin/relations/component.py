"""`bioclin_relations`: relations between entities, or between concepts, each with a probability."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Optimizer
from torch import Tensor

from ..annotations.relations import Relation, install_extensions, set_relations
from ..errors import BioclinError
from ..settings import read_settings
from ..torch_bridge.components import GIVEN, Scorer, StoredSettings, check_encoded
from ..types import IntArray
from .candidates import (
    Candidates,
    Mention,
    Types,
    allowed_labels,
    find_candidates,
    make_types,
    no_candidates,
)
from .checks import check_gold, describe_nothing, describe_sentences
from .decoding import Found, Targets, decode, relation_loss
from .gold import collect_types, get_gold_mentions, get_mentions, make_target
from .inputs import (
    MAX_TOKENS,
    MAX_TRAINING_TOKENS,
    RelationBatch,
    make_marked_batches,
    make_span_batch,
    number_sentences,
)
from .model import RelationModel
from .settings import DEFAULT_CONFIG, SCORE_WEIGHTS, RelationSettings

# How many Docs of the training corpus `initialize` looks at to infer widths.
N_SAMPLE = 10


@Language.factory(
    "bioclin_relations",
    assigns=["doc._.relations"],
    default_config=DEFAULT_CONFIG.interpolate()["component"],
    default_score_weights=SCORE_WEIGHTS,
)
def make_relations(
    nlp: Language,
    name: str,
    model: RelationModel,
    spans_key: str | None,
    relations_key: str,
    level: str,
    input: str,
    scope: str,
    window: int,
    types: dict[str, list[list[str]]],
    symmetric: list[str],
    thresholds: dict[str, float],
    scorer: Scorer | None,
) -> "RelationPipe":
    """Make the component.

    model (Model): `spacy-bioclin.RelationClassifier.v1`.
    spans_key (str | None): Where the entities are: `doc.spans[spans_key]`, or `doc.ents` if None.
    relations_key (str): Name under which the relations are stored. Give each component of a
        pipeline one of its own; `doc._.relations` shows all of them.
    level (str): "mention": relations between entities. "concept": relations between concepts of the
        Doc, which are the concept ids of the entities, as a linker or the corpus gives them.
    input (str): "spans": the vectors of the entities and of the text between them, from an encoder
        that reads each Doc once. "markers" or "masked": the text of each candidate by itself, in
        which its entities are marked or replaced by their types; this needs an encoder of its own,
        `spacy-bioclin.Tok2VecEncoder.v1`, and as many passes as there are candidates.
    scope (str): Which entities may be related: those of one "sentence", those with at most `window`
        tokens between them ("window"), or any two of the "document".
    window (int): See scope.
    types (dict): Label of a relation -> pairs of entity labels that it may lead from and to. Empty
        for those that the training corpus has.
    symmetric (list[str]): Labels of relations without direction. The entity that comes first in the
        text is then the head.
    thresholds (dict): Label of a relation -> lowest probability of one that is written. A label
        without a threshold is written where it is the most probable.
    scorer (Callable | None): See `spacy-bioclin.relation_scorer.v1`.
    """
    values = {
        "spans_key": spans_key,
        "relations_key": relations_key,
        "level": level,
        "input": input,
        "scope": scope,
        "window": window,
        "types": types,
        "symmetric": symmetric,
        "thresholds": thresholds,
    }
    settings = read_settings(RelationSettings, values, where=f"[components.{name}]")
    return RelationPipe(nlp.vocab, model, name=name, settings=settings, scorer=scorer)


class RelationPipe(StoredSettings):
    """Classify pairs of entities. See `make_relations`."""

    def __init__(
        self,
        vocab: Vocab,
        model: RelationModel,
        *,
        name: str,
        settings: RelationSettings,
        scorer: Scorer | None,
    ) -> None:
        cfg = settings.model_dump(mode="json")
        super().__init__(vocab, model, name=name, cfg=cfg, scorer=scorer)
        # What the weights are for; `types` of the config until then.
        self.cfg["trained"] = {"types": {}, "symmetric": []}
        install_extensions()

    @property
    def spans_key(self) -> str | None:
        """Key of `doc.spans` where entities are, or None for `doc.ents`."""
        return self.cfg["spans_key"]

    @property
    def relations_key(self) -> str:
        """Name under which the relations are stored."""
        return self.cfg["relations_key"]

    @property
    def by_concept(self) -> bool:
        """Whether relations are between concepts."""
        return self.cfg["level"] == "concept"

    @property
    def types(self) -> Types:
        """The labels, and the entity types that they are between."""
        trained = self.cfg["trained"]
        table = {label: [(h, c) for h, c in pairs] for label, pairs in trained["types"].items()}
        return make_types(table, trained["symmetric"])

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of relations, sorted."""
        return tuple(sorted(self.cfg["trained"]["types"]))

    @property
    def label_data(self) -> dict[str, list[list[str]]]:
        """What `spacy init labels` stores: label -> pairs of entity labels."""
        return {label: [*map(list, pairs)] for label, pairs in self.cfg["trained"]["types"].items()}

    def check_settings(self, changed: Collection[str]) -> None:
        """Check the settings after loading, see `StoredSettings.check_settings`.

        RAISES (BioclinError): The weights are for other values.
        """
        for key in ("level", "input", "types", "symmetric"):
            if key in changed:
                raise BioclinError(
                    f"[components.{self.name}] {key} = {self.cfg[key]!r}: the component was "
                    "trained with another value; leave the setting out, or train again"
                )
        read_settings(RelationSettings, self.cfg[GIVEN], where=f"[components.{self.name}]")
        self._check_thresholds()

    def check_stored(self) -> None:
        """Check that labels and weights belong together, see `StoredSettings.check_stored`."""
        super().check_stored()
        trained = self.cfg.get("trained")
        if not isinstance(trained, dict) or not isinstance(trained.get("types"), dict):
            raise BioclinError("the file 'cfg' has no types of relations")
        found = len(self.labels), len(self.types.entities)
        shape = self.model.get_ref("head").shims[0].cfg
        if shape and found != (shape.get("n_labels"), shape.get("n_types")):
            raise BioclinError(
                f"the file 'cfg' has {found[0]} labels, but the weights are for others: the "
                "pipeline was not copied completely"
            )

    def _check_thresholds(self) -> None:
        unknown = sorted(set(self.cfg["thresholds"]) - set(self.labels))
        if unknown and self.labels:
            raise BioclinError(
                f"[components.{self.name}.thresholds] {unknown[0]}: the component has no such "
                f"label; want some of {', '.join(self.labels)}"
            )

    def find_candidates(
        self, doc: Doc, mentions: Iterable[Mention], *, need_sentences: bool = True
    ) -> Candidates:
        """Find the pairs of entities of a Doc that may be related.

        need_sentences (bool): False to take a Doc without sentences for one sentence.
        RAISES (BioclinError): The Doc has no sentences, and they matter.
        """
        sentences: IntArray = np.zeros(len(doc), dtype=np.int64)
        if self.cfg["scope"] == "sentence" or self.cfg["input"] != "spans":
            if doc.has_annotation("SENT_START"):
                sentences = number_sentences(doc)
            elif len(doc) and need_sentences:
                raise BioclinError(describe_sentences(self.name, self.cfg["input"]))
        return find_candidates(
            list(mentions),
            self.types,
            by_concept=self.by_concept,
            scope=self.cfg["scope"],
            window=self.cfg["window"],
            sentence_of=sentences,
        )

    def _make_batches(
        self, docs: list[Doc], found: list[Candidates], max_tokens: int
    ) -> Iterator[RelationBatch]:
        kind = self.cfg["input"]
        if kind == "spans":
            yield make_span_batch(docs, found, self.types)
        else:
            yield from make_marked_batches(
                docs, found, self.types, kind=kind, max_tokens=max_tokens
            )

    def predict(self, docs: Iterable[Doc]) -> list[list[Found]]:
        """Find the relations of each Doc, in the order of the text."""
        docs = list(docs)
        if not self.labels:
            return [[] for _ in docs]
        found = [self.find_candidates(doc, get_mentions(doc, self.spans_key)) for doc in docs]
        # The encoder's vectors are only needed where there is something to compare.
        chosen = [i for i, candidates in enumerate(found) if len(candidates.pairs)]
        result: list[list[Found]] = [[] for _ in docs]
        if not chosen:
            return result
        own_docs, own = [docs[i] for i in chosen], [found[i] for i in chosen]
        check_encoded(self.model, own_docs, self.name, "find relations")
        batches = self._make_batches(own_docs, own, MAX_TOKENS)
        scores = torch.cat([self.model.predict(batch).cpu() for batch in batches])
        types = self.types
        parts = torch.split(scores, [len(candidates.pairs) for candidates in own])
        for i, candidates, part in zip(chosen, own, parts, strict=True):
            result[i] = decode(part, candidates, types, self.cfg["thresholds"])
        return result

    def set_annotations(self, docs: Iterable[Doc], scores: list[list[Found]]) -> None:
        """Write relations to the Docs."""
        for doc, found in zip(docs, scores, strict=True):
            set_relations(doc, self.relations_key, [self._to_relation(doc, one) for one in found])

    def _to_relation(self, doc: Doc, found: Found) -> Relation:
        head, child = (
            Span(doc, mention.start, mention.end, label=mention.label)
            for mention in (found.head, found.child)
        )
        return Relation(head, child, found.label, found.probability, found.concepts)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from annotated relations between annotated entities, see `TrainablePipe.update`."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        if not examples:
            return losses
        docs = [eg.predicted for eg in examples]
        found = self._find_gold(examples)
        targets = self._find_targets(examples, found)
        start, has_run = 0, False
        # A note can have hundreds of candidates. With a text for each, memory holds a part of them.
        for batch in self._make_batches(docs, found, MAX_TRAINING_TOKENS):
            scores, backprop = self.model.begin_update(batch)
            end = start + len(scores)
            own = (values[start:end] for values in targets)
            loss, d_scores = relation_loss(scores, *own, n_known=int(targets.known.sum()))
            backprop(d_scores)
            losses[self.name] += loss
            start, has_run = end, True
        if sgd is not None and has_run:
            self.finish_update(sgd)
        return losses

    def get_loss(self, examples: Iterable[Example], scores: Tensor) -> tuple[float, Tensor]:
        """Compute the loss per candidate (nats) and its gradient."""
        examples = list(examples)
        return relation_loss(scores, *self._find_targets(examples, self._find_gold(examples)))

    def _find_gold(self, examples: list[Example]) -> list[Candidates]:
        """Find the candidates between the annotated entities of each example."""
        return [
            self.find_candidates(eg.predicted, get_gold_mentions(eg, self.spans_key))
            for eg in examples
        ]

    def _find_targets(self, examples: list[Example], found: list[Candidates]) -> Targets:
        types, by_concept = self.types, self.by_concept
        targets = [
            make_target(eg, candidates, types, by_concept=by_concept)
            for eg, candidates in zip(examples, found, strict=True)
        ]
        return Targets(
            labels=np.concatenate([target.labels for target in targets]),
            known=np.concatenate([np.full(len(t.labels), t.known) for t in targets]),
            allowed=np.concatenate([allowed_labels(candidates, types) for candidates in found]),
        )

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Score examples, see `spacy-bioclin.relation_scorer.v1`."""
        symmetric = self.cfg["trained"]["symmetric"]
        return super().score(examples, symmetric=symmetric, **kwargs)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Mapping[str, list[list[str]]] | None = None,
    ) -> None:
        """Find the labels and their entity types, and create the weights.

        labels (Mapping | None): Label of a relation -> pairs of entity labels. None for `types` of
            the config or, if that is empty, for those of the examples.
        RAISES (BioclinError): No example was annotated for relations, or there are no labels, or a
            setting names one that there is not.
        """
        found = collect_types(get_examples(), self.spans_key, by_concept=self.by_concept)
        wanted = labels or self.cfg["types"] or self.cfg["trained"]["types"] or found
        if not wanted:
            raise BioclinError(describe_nothing(self.name, by_concept=self.by_concept))
        if unused := sorted(set(self.cfg["symmetric"]) - set(wanted)):
            raise BioclinError(
                f"[components.{self.name}] symmetric has {unused[0]!r}, which is no label of a "
                f"relation; want some of {', '.join(sorted(wanted))}"
            )
        table = {
            label: sorted(map(list, set(map(tuple, wanted[label])))) for label in sorted(wanted)
        }
        self.cfg["trained"] = {"types": table, "symmetric": sorted(self.cfg["symmetric"])}
        self._check_thresholds()
        check_gold(
            get_examples(),
            name=self.name,
            table=table,
            types=self.types,
            spans_key=self.spans_key,
            by_concept=self.by_concept,
            scope=self.cfg["scope"],
            labels_given=labels is not None,
            find=partial(self.find_candidates, need_sentences=False),
        )
        head, types = self.model.get_ref("head"), self.types
        head.attrs["n_types"], head.attrs["n_labels"] = len(types.entities), len(types.labels)
        sample = [eg.predicted for eg in islice(get_examples(), N_SAMPLE) if len(eg.predicted)]
        doc = Doc(self.vocab, words=["a"])
        batch = make_span_batch(sample or [doc], [no_candidates()] * len(sample or [doc]), types)
        self.model.initialize(X=batch)
