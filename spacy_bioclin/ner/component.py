"""`bioclin_ner`: named entities by tagging tokens, flat or nested, each with a probability."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import torch
from spacy.attrs import ENT_IOB
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Config, Model, Optimizer

from ..errors import BioclinError
from .distill.targets import mix_losses, read_lesson, tag_marginals
from .inference import Entity, Grammar, crf_loss, find_entities, make_grammar, token_loss
from .model import TagScores
from .tags import MISSING, TagSet, encode_spans, make_tag_sets

DEFAULT_CONFIG = Config().from_str(
    """
[component]
spans_key = null
nested = false
scheme = "BILUO"
doubtful_from = null
teacher_weight = 0.5

[component.scorer]
@scorers = "spacy-bioclin.span_scorer.v1"

[component.model]
@architectures = "spacy-bioclin.CrfTagger.v1"
dropout = 0.1
learn_rate_scale = 10.0

[component.model.tok2vec]
@architectures = "spacy-transformers.TransformerListener.v1"
grad_factor = 1.0

[component.model.tok2vec.pooling]
@layers = "reduce_mean.v1"
"""
)
# `span.id_` of what the most probable tags leave out.
DOUBTFUL = "doubtful"
# How many Docs of the training corpus `initialize` looks at to infer widths.
N_SAMPLE = 10


def install_extensions() -> None:
    """Register `span._.probability`: posterior probability of an entity of ours, else None."""
    if not Span.has_extension("probability"):
        Span.set_extension("probability", default=None)


@Language.factory(
    "bioclin_ner",
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type", "span._.probability"],
    default_config=DEFAULT_CONFIG.interpolate()["component"],
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_ner(
    nlp: Language,
    name: str,
    model: Model[list[Doc], TagScores],
    spans_key: str | None,
    nested: bool,
    scheme: str,
    doubtful_from: float | None,
    teacher_weight: float,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "ClinicalNer":
    """Make the component.

    model (Model): `spacy-bioclin.CrfTagger.v1` or `spacy-bioclin.LinearTagger.v1`.
    spans_key (str | None): Where entities are learned from and written to: `doc.spans[spans_key]`,
        or `doc.ents` if None.
    nested (bool): Tag each label on its own, so that entities of different labels may overlap.
        Needs a spans_key.
    scheme (str): "BIO" or "BILUO".
    doubtful_from (float | None): Also write what the most probable tags leave out, but which is an
        entity with this probability or more: for de-identification, which would rather hide too
        much. Its probability is that of its surest token, its `span.id_` is "doubtful". Needs a
        spans_key. null to leave it out.
    teacher_weight (float): Of the teacher's tags beside gold tags, from 0 to 1, in training on a
        corpus that `bioclin distill-ner` made. Elsewhere it changes nothing.
    scorer (Callable | None): See `spacy-bioclin.span_scorer.v1`.
    """
    return ClinicalNer(
        nlp.vocab,
        model,
        name=name,
        spans_key=spans_key,
        nested=nested,
        scheme=scheme,
        doubtful_from=doubtful_from,
        teacher_weight=teacher_weight,
        scorer=scorer,
    )


class ClinicalNer(TrainablePipe):
    """Tags tokens over any `tok2vec` and reads entities off the tags.

    Writes `doc.ents` and `span._.probability`, or `doc.spans[spans_key]` with the probabilities in
    `doc.spans[spans_key].attrs["scores"]` (spaCy's place for span groups).
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], TagScores],
        *,
        name: str,
        spans_key: str | None,
        nested: bool,
        scheme: str,
        doubtful_from: float | None,
        teacher_weight: float,
        scorer: Callable[..., dict[str, Any]] | None,
    ) -> None:
        if (nested or doubtful_from is not None) and spans_key is None:
            setting = "nested = true" if nested else f"doubtful_from = {doubtful_from}"
            raise BioclinError(
                f"[components.{name}] {setting} needs a spans_key, since doc.ents cannot hold "
                'entities that overlap: set spans_key (e.g. "ents")'
            )
        make_tag_sets((), scheme=scheme, nested=nested)  # checks the scheme
        if not 0 <= teacher_weight <= 1:
            raise BioclinError(
                f"[components.{name}] teacher_weight = {teacher_weight}: want a number from 0 to 1"
            )
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.teacher_weight = teacher_weight
        self.cfg: dict[str, Any] = {
            "spans_key": spans_key,
            "nested": nested,
            "scheme": scheme,
            "doubtful_from": doubtful_from,
            "labels": [],
        }
        self._grammars: dict[torch.device, Grammar] = {}
        install_extensions()

    @property
    def spans_key(self) -> str | None:
        return self.cfg["spans_key"]

    @property
    def labels(self) -> tuple[str, ...]:
        """RETURNS (tuple[str, ...]): Entity types, sorted."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> tuple[str, ...]:
        """RETURNS (tuple[str, ...]): What `spacy init labels` stores."""
        return self.labels

    @property
    def tag_sets(self) -> list[TagSet]:
        return make_tag_sets(self.labels, scheme=self.cfg["scheme"], nested=self.cfg["nested"])

    def add_label(self, label: str) -> int:
        """Labels come from the training data; a trained head cannot grow."""
        if label in self.labels:
            return 0
        raise BioclinError(
            f"[components.{self.name}] cannot add a label to a head that exists: put the label "
            "into the training data, or into [initialize.components.NAME.labels]"
        )

    def _grammar(self, device: torch.device) -> Grammar:
        if device not in self._grammars:
            self._grammars[device] = make_grammar(self.tag_sets, device)
        return self._grammars[device]

    def predict(self, docs: Iterable[Doc]) -> list[list[Entity]]:
        """RETURNS (list[list[Entity]]): Per Doc, by start."""
        docs = list(docs)
        return self._find(docs, self._score(docs))

    def _score(self, docs: list[Doc]) -> TagScores | None:
        """RETURNS (TagScores | None): None if there is nothing to find. On a GPU they may still be
        on their way."""
        if not any(len(doc) for doc in docs) or not self.labels:
            return None
        return self.model.predict(docs)

    def _find(self, docs: list[Doc], scores: TagScores | None) -> list[list[Entity]]:
        if scores is None:
            return [[] for _ in docs]
        grammar = self._grammar(torch.device("cpu"))
        threshold = self.cfg["doubtful_from"]
        found = find_entities(scores, self.tag_sets, grammar, doubtful_from=threshold)
        return [_trim_blanks(doc, entities) for doc, entities in zip(docs, found, strict=True)]

    def get_marginals(self, docs: list[Doc], *, temperature: float) -> list[np.ndarray]:
        """RETURNS (list[ndarray]): Per Doc, the posterior probability of each tag of each token,
        float16, (n_tokens, n_layers, n_tags)."""
        scores = self._score(docs)
        if scores is None:
            shape = len(self.tag_sets), self.tag_sets[0].n_tags
            return [np.zeros((len(doc), *shape), dtype=np.float16) for doc in docs]
        return tag_marginals(scores, self._grammar(torch.device("cpu")), temperature=temperature)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream. A batch is decoded in a thread while the components before this one
        work on the next batch, so that neither a GPU nor the encoder's cores wait for it.

        batch_size (int): Docs per batch; two batches are held at a time.
        YIELDS (Doc): In order.
        """
        handle_error = self.get_error_handler()

        def finish(docs: list[Doc], found: Future[list[list[Entity]]]) -> Iterator[Doc]:
            try:
                self.set_annotations(docs, found.result())
            except Exception as error:
                handle_error(self.name, self, docs, error)
            else:
                yield from docs

        with ThreadPoolExecutor(1) as decoder:
            waiting: tuple[list[Doc], Future[list[list[Entity]]]] | None = None
            for docs in minibatch(stream, batch_size):
                try:
                    scores = self._score(docs)
                except Exception as error:
                    handle_error(self.name, self, docs, error)
                    continue
                batch = docs, decoder.submit(self._find, docs, scores)
                if waiting is not None:
                    yield from finish(*waiting)
                waiting = batch
            if waiting is not None:
                yield from finish(*waiting)

    def set_annotations(self, docs: Iterable[Doc], scores: list[list[Entity]]) -> None:
        """Write entities to the Docs."""
        write_entities(docs, scores, self.spans_key)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch. Examples that are not annotated for this layer teach nothing."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "ClinicalNer.update")
        if not any(len(eg.predicted) for eg in examples):
            return losses
        scores, backprop = self.model.begin_update([eg.predicted for eg in examples])
        loss, d_scores = self.get_loss(examples, scores)
        backprop(d_scores)
        if sgd is not None:
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def get_loss(self, examples: Iterable[Example], scores: TagScores) -> tuple[float, TagScores]:
        """RETURNS (tuple): Loss per annotated token (nats), and its gradient."""
        examples = list(examples)
        tags = np.concatenate([self._gold_tags(eg) for eg in examples])
        lesson = read_lesson(examples, self.spans_key or "ents", self.tag_sets, self.name)
        if lesson is not None:
            tags[lesson.silver] = MISSING
        tensor = torch.from_numpy(tags).to(scores.emissions.device)
        grammar = self._grammar(tensor.device)
        if self.model.get_ref("head").attrs["crf"]:
            gold = crf_loss(scores, tensor, grammar)
        else:
            gold = token_loss(scores, tensor)
        if lesson is None:
            return gold
        weight = self.teacher_weight
        return mix_losses(gold, scores, tensor, lesson, grammar, teacher_weight=weight)

    def _gold_tags(self, eg: Example) -> np.ndarray:
        """RETURNS (ndarray): Tags of the predicted Doc's tokens, MISSING where the reference says
        nothing or its boundary runs through a token, int64, (n_tokens, n_layers)."""
        doc, tag_sets = eg.predicted, self.tag_sets
        tags = np.full((len(doc), len(tag_sets)), MISSING, dtype=np.int64)
        spans = self._reference_spans(eg.reference)
        if spans is None:
            return tags
        inside, masked = [], []
        for span in spans:
            found = doc.char_span(span.start_char, span.end_char, label=span.label)
            if found is not None:
                inside.append((found.start, found.end, span.label_))
            else:
                masked.append((span.start_char, span.end_char))
        for layer, tag_set in enumerate(tag_sets):
            tags[:, layer] = encode_spans(inside, len(doc), tag_set)
        if self.spans_key is None:
            masked += _missing_ents(eg.reference)
        for start, end in masked:
            cover = doc.char_span(start, end, alignment_mode="expand")
            if cover is not None:
                tags[cover.start : cover.end] = MISSING
        return tags

    def _reference_spans(self, doc: Doc) -> list[Span] | None:
        """RETURNS (list[Span] | None): Gold spans of this layer; None if it was not annotated."""
        if self.spans_key is not None:
            return list(doc.spans[self.spans_key]) if self.spans_key in doc.spans else None
        return list(doc.ents) if doc.has_annotation("ENT_IOB") else None

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Iterable[str] | None = None,
    ) -> None:
        """Collect labels and make the weights.

        labels (Iterable[str] | None): Entity types; None to collect them from the examples.
        """
        if labels is None:
            labels = self._collect_labels(get_examples())
        self.cfg["labels"] = sorted(set(labels))
        where = "doc.ents" if self.spans_key is None else f'doc.spans["{self.spans_key}"]'
        if not self.labels:
            raise BioclinError(
                f"[components.{self.name}] has no labels: no training example holds a span in "
                f"{where}. Convert the corpus with that layer (bioclin convert --layer), or set "
                "spans_key to a layer that it has"
            )
        self._grammars.clear()
        tag_sets = self.tag_sets
        head = self.model.get_ref("head")
        head.attrs["n_layers"], head.attrs["n_tags"] = len(tag_sets), tag_sets[0].n_tags
        sample = [eg.predicted for eg in islice(get_examples(), N_SAMPLE) if len(eg.predicted)]
        self.model.initialize(X=sample or [Doc(self.vocab, words=["a"])])

    def _collect_labels(self, examples: Iterable[Example]) -> Iterator[str]:
        for eg in examples:
            for span in self._reference_spans(eg.reference) or []:
                yield span.label_


def write_entities(docs: Iterable[Doc], found: list[list[Entity]], spans_key: str | None) -> None:
    """Write entities to `doc.ents`, or to `doc.spans[spans_key]` if there is a key.

    found (list[list[Entity]]): Per Doc.
    """
    install_extensions()  # lost when a worker process is started
    for doc, entities in zip(docs, found, strict=True):
        spans = [
            Span(doc, e.start, e.end, label=e.label, span_id=DOUBTFUL if e.doubtful else 0)
            for e in entities
        ]
        if spans_key is None:
            doc.set_ents(spans, default="outside")
            for span, entity in zip(spans, entities, strict=True):
                span._.probability = entity.probability
        else:
            doc.spans[spans_key] = spans
            doc.spans[spans_key].attrs["scores"] = np.array(
                [entity.probability for entity in entities], dtype=np.float32
            )


def _trim_blanks(doc: Doc, entities: list[Entity]) -> list[Entity]:
    """Take line breaks and blanks off the edges of entities; drop what is nothing else."""
    trimmed = []
    for entity in entities:
        start, end = entity.start, entity.end
        while start < end and doc[start].is_space:
            start += 1
        while end > start and doc[end - 1].is_space:
            end -= 1
        if start < end:
            trimmed.append(entity._replace(start=start, end=end))
    return trimmed


def _missing_ents(doc: Doc) -> Iterator[tuple[int, int]]:
    """YIELDS (tuple[int, int]): Character offsets of tokens whose entity tag is missing."""
    missing = np.flatnonzero(doc.to_array(ENT_IOB) == 0)
    for i in missing.tolist():
        yield doc[i].idx, doc[i].idx + len(doc[i])
