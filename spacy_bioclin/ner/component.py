"""`bioclin_ner`: named entities by tagging tokens, flat or nested, each with a probability."""

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Config

from ..errors import BioclinError
from ..settings import Settings, read_settings
from .distill.targets import mix_losses, read_targets, tag_marginals
from .gold import check_labels, collect_labels, make_gold_tags, make_open_tags
from .inference import Entity, Grammar, crf_loss, find_entities, make_grammar, token_loss
from .model import HEAD, AnyScores, TaggerModel, TagScores
from .pipe import ASSIGNS, GIVEN, SCORE_WEIGHTS, EntityPipe, Scorer
from .rdrop import add_divergence, pair_tokens
from .smoothing import number_words, smooth_words
from .tags import MISSING, TagSet, make_tag_sets

DEFAULT_CONFIG = Config().from_str(
    """
[component]
spans_key = null
nested = false
scheme = "BILUO"
threshold = 0.0
doubtful_from = null
word_smoothing = 0.0
teacher_weight = 0.5
rdrop = 0.0

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
# How many Docs of the training corpus `initialize` looks at to infer widths.
N_SAMPLE = 10


class NerSettings(Settings):
    """Settings of the component, see `make_ner`."""

    spans_key: str | None
    nested: bool
    scheme: Literal["BIO", "BILUO"]
    threshold: float = Field(ge=0, le=1)
    doubtful_from: float | None = Field(ge=0, le=1)
    word_smoothing: float = Field(ge=0, le=1)
    teacher_weight: float = Field(ge=0, le=1)
    rdrop: float = Field(ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check_overlap(self) -> "NerSettings":
        if (self.nested or self.doubtful_from is not None) and self.spans_key is None:
            setting = "nested = true" if self.nested else f"doubtful_from = {self.doubtful_from}"
            raise ValueError(
                f"{setting} needs a spans_key, since doc.ents cannot hold entities that overlap: "
                'set spans_key (e.g. "ents")'
            )
        if self.doubtful_from is not None and self.threshold > self.doubtful_from:
            raise ValueError(
                f"threshold = {self.threshold} is above doubtful_from = {self.doubtful_from}: no "
                "entity below the threshold is written, so set threshold to 0 or doubtful_from to "
                "null"
            )
        return self


@Language.factory(
    "bioclin_ner",
    assigns=ASSIGNS,
    default_config=DEFAULT_CONFIG.interpolate()["component"],
    default_score_weights=SCORE_WEIGHTS,
)
def make_ner(
    nlp: Language,
    name: str,
    model: TaggerModel,
    spans_key: str | None,
    nested: bool,
    scheme: str,
    threshold: float,
    doubtful_from: float | None,
    word_smoothing: float,
    teacher_weight: float,
    rdrop: float,
    scorer: Scorer | None,
) -> "ClinicalNer":
    """Make the component.

    model (Model): `spacy-bioclin.CrfTagger.v1` or `spacy-bioclin.LinearTagger.v1`; or
        `spacy-bioclin.Ensemble.v1`, which only predicts.
    spans_key (str | None): Where entities are learned from and written to: `doc.spans[spans_key]`,
        or `doc.ents` if None.
    nested (bool): Tag each label separately, so that entities of different labels may overlap.
        Needs a spans_key.
    scheme (str): "BIO" or "BILUO".
    threshold (float): Lowest probability of an entity that is written, from 0 to 1. 0 writes all
        entities of the most probable tags.
    doubtful_from (float | None): Also write entities that are not in the most probable tags but
        have this probability or more: for de-identification, which hides rather too much than too
        little. Their probability is that of their most probable token, their `span.id_` is
        "doubtful". Needs a spans_key. None to leave them out.
    word_smoothing (float): How far the scores of the tags of a token are moved towards the mean of
        the same word in the Doc, from 0 to 1, see `smooth_words`. Has no effect on training.
    teacher_weight (float): Weight of the teacher's tags next to gold tags, from 0 to 1, when
        training on a corpus that `bioclin distill-ner` made. Has no effect on other corpora.
    rdrop (float): In training, run each batch twice, and add the divergence between the tags of
        both passes, which differ by dropout, to the loss with this weight (alpha of R-drop, Liang
        et al. 2021; see `add_divergence`). Only `bioclin train` does it. 0: one pass.
    scorer (Callable | None): See `spacy-bioclin.span_scorer.v1`.
    """
    values = {
        "spans_key": spans_key,
        "nested": nested,
        "scheme": scheme,
        "threshold": threshold,
        "doubtful_from": doubtful_from,
        "word_smoothing": word_smoothing,
        "teacher_weight": teacher_weight,
        "rdrop": rdrop,
    }
    settings = read_settings(NerSettings, values, where=f"[components.{name}]")
    return ClinicalNer(nlp.vocab, model, name=name, settings=settings, scorer=scorer)


class ClinicalNer(EntityPipe):
    """Tag tokens over any `tok2vec` and read entities from the tags. See `make_ner`."""

    def __init__(
        self,
        vocab: Vocab,
        model: TaggerModel,
        *,
        name: str,
        settings: NerSettings,
        scorer: Scorer | None,
    ) -> None:
        self.teacher_weight, self.rdrop = settings.teacher_weight, settings.rdrop
        self._grammars: dict[torch.device, Grammar] = {}
        cfg = settings.model_dump(exclude={"teacher_weight", "rdrop"})
        super().__init__(vocab, model, name=name, cfg=cfg, scorer=scorer)
        self.cfg["labels"] = []

    def check_settings(self, changed: Collection[str]) -> None:
        """Check the settings after loading, see `EntityPipe.check_settings`.

        RAISES (BioclinError): They contradict each other, or the trained tags have another form.
        """
        for key in ("nested", "scheme"):
            if key in changed:
                raise BioclinError(
                    f"[components.{self.name}] {key} = {self.cfg[key]!r}: the component was "
                    "trained with another value; leave the setting out, or train again"
                )
        values = {key: self.cfg[key] for key in self.cfg[GIVEN]}
        values |= {"teacher_weight": self.teacher_weight, "rdrop": self.rdrop}
        read_settings(NerSettings, values, where=f"[components.{self.name}]")

    def check_stored(self) -> None:
        """Check that labels and weights belong together, see `EntityPipe.check_stored`."""
        super().check_stored()
        labels = self.cfg.get("labels")
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise BioclinError("the file 'cfg' has no labels")
        tag_sets = self.tag_sets
        found = (len(tag_sets), tag_sets[0].n_tags) if labels else (0, 0)
        for head in (node for node in self.model.walk() if node.name == HEAD):
            shape = head.shims[0].cfg
            # Without a shape, it was saved before it was trained.
            if shape and found != (shape.get("n_layers"), shape.get("n_tags")):
                raise BioclinError(
                    f"the file 'cfg' has {len(labels)} labels, but the weights are for others: the "
                    "pipeline was not copied completely"
                )

    @property
    def spans_key(self) -> str | None:
        """Key of `doc.spans` where entities are, or None for `doc.ents`."""
        return self.cfg["spans_key"]

    @property
    def labels(self) -> tuple[str, ...]:
        """Entity types, sorted."""
        return tuple(self.cfg["labels"])

    @property
    def is_ensemble(self) -> bool:
        """Whether the model is `spacy-bioclin.Ensemble.v1`."""
        return not self.model.has_ref("head")

    @property
    def label_data(self) -> tuple[str, ...]:
        """What `spacy init labels` stores."""
        return self.labels

    @property
    def tag_sets(self) -> list[TagSet]:
        """The tags of each layer of labels."""
        return make_tag_sets(self.labels, scheme=self.cfg["scheme"], nested=self.cfg["nested"])

    def _grammar(self, device: torch.device) -> Grammar:
        if device not in self._grammars:
            self._grammars[device] = make_grammar(self.tag_sets, device)
        return self._grammars[device]

    def predict(self, docs: Iterable[Doc]) -> list[list[Entity]]:
        """Find the entities of each Doc, ordered by start."""
        docs = list(docs)
        return self._find(docs, self._score(docs))

    def _score(self, docs: list[Doc]) -> AnyScores | None:
        """Score tags, or return None if there is nothing to find. A GPU may still be computing."""
        if not any(len(doc) for doc in docs) or not self.labels:
            return None
        self.check_encoded(docs)
        return self.model.predict(docs)

    def _smooth(self, docs: list[Doc], scores: AnyScores) -> AnyScores:
        if not (amount := self.cfg["word_smoothing"]):
            return scores
        return smooth_words(scores, number_words(docs), amount)

    def _find(self, docs: list[Doc], scores: AnyScores | None) -> list[list[Entity]]:
        if scores is None:
            return [[] for _ in docs]
        grammar = self._grammar(torch.device("cpu"))
        found = find_entities(
            self._smooth(docs, scores),
            self.tag_sets,
            grammar,
            threshold=self.cfg["threshold"],
            doubtful_from=self.cfg["doubtful_from"],
        )
        return [_trim_blanks(doc, entities) for doc, entities in zip(docs, found, strict=True)]

    def get_marginals(
        self, docs: list[Doc], *, temperature: float, annotate: bool = False
    ) -> list[np.ndarray]:
        """Find the posterior probability of each tag of each token.

        temperature (float): Divides the scores; above 1 the probabilities are more even.
        annotate (bool): Write the entities to the Docs, too, without scoring their tags twice.
        RETURNS (list[ndarray]): Per Doc, float16, (n_tokens, n_layers, n_tags).
        """
        scores = self._score(docs)
        if annotate:
            self.set_annotations(docs, self._find(docs, scores))
        if scores is None:
            shape = len(self.tag_sets), self.tag_sets[0].n_tags
            return [np.zeros((len(doc), *shape), dtype=np.float16) for doc in docs]
        scores = self._smooth(docs, scores)
        return tag_marginals(scores, self._grammar(torch.device("cpu")), temperature=temperature)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream.

        A batch is decoded in a thread while the components before this one work on the next batch,
        so that neither a GPU nor the encoder's cores wait for it.

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

    def get_loss(self, examples: Iterable[Example], scores: TagScores) -> tuple[float, TagScores]:
        """Compute the loss per annotated token (nats) and its gradient."""
        examples, tag_sets = list(examples), self.tag_sets
        tags = np.concatenate([make_gold_tags(eg, tag_sets, self.spans_key) for eg in examples])
        targets = read_targets(examples, self.spans_key or "ents", tag_sets, self.name)
        if targets is not None:
            tags[targets.silver] = MISSING
        several = make_open_tags(examples, tags, tag_sets, self.spans_key)
        tensor = torch.from_numpy(tags).to(scores.emissions.device)
        open_tags = None if several is None else torch.from_numpy(several).to(tensor.device)
        grammar = self._grammar(tensor.device)
        chain = self.model.get_ref("head").attrs["crf"]
        if chain:
            gold = crf_loss(scores, tensor, grammar, open_tags)
        else:
            gold = token_loss(scores, tensor, open_tags)
        loss, known = gold, tensor != MISSING
        if targets is not None:
            weight = self.teacher_weight
            loss = mix_losses(gold, scores, tensor, targets, grammar, teacher_weight=weight)
            known |= targets.marginals.to(tensor.device).sum(dim=-1) > 0
        if not self.rdrop:
            return loss
        pairs = pair_tokens(examples, name=self.name, alpha=self.rdrop)
        return add_divergence(loss, scores, pairs, known, grammar, alpha=self.rdrop, chain=chain)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Iterable[str] | None = None,
    ) -> None:
        """Collect the labels and create the weights.

        labels (Iterable[str] | None): Entity types; None to collect them from the examples, or to
            keep those that there are if the examples have none.
        RAISES (BioclinError): There are no labels, or no example has a span of one; or the model is
            an ensemble.
        """
        if self.is_ensemble:
            self.model.initialize()  # refuses
        if labels is None:
            labels = collect_labels(get_examples(), self.spans_key, self.name) or self.labels
        else:
            labels = list(labels)
            check_labels(labels, get_examples(), self.spans_key, self.name)
        self.cfg["labels"] = sorted(set(labels))
        where = "doc.ents" if self.spans_key is None else f'doc.spans["{self.spans_key}"]'
        if not self.labels:
            raise BioclinError(
                f"[components.{self.name}] has no labels: no training example has a span in "
                f"{where}. Convert the corpus with that layer (bioclin convert --layer), or set "
                "spans_key to a layer that it has"
            )
        self._grammars.clear()
        tag_sets = self.tag_sets
        head = self.model.get_ref("head")
        head.attrs["n_layers"], head.attrs["n_tags"] = len(tag_sets), tag_sets[0].n_tags
        sample = [eg.predicted for eg in islice(get_examples(), N_SAMPLE) if len(eg.predicted)]
        self.model.initialize(X=sample or [Doc(self.vocab, words=["a"])])


def _trim_blanks(doc: Doc, entities: list[Entity]) -> list[Entity]:
    """Remove line breaks and spaces from the edges of entities; drop entities of nothing else."""
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
