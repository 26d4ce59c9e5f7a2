"""What the components that find entities share: where they write them, and how they are scored."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab
from thinc.api import Model

from ..spans import install_extensions, set_spans
from .inference import Entity

ASSIGNS = ["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type", "span._.probability"]
SCORE_WEIGHTS = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}
# `span.id_` of an entity that is not in the most probable tags.
DOUBTFUL = "doubtful"

Scorer = Callable[..., dict[str, Any]]


class EntityPipe(TrainablePipe):
    """Write entities to `doc.ents` and their probabilities to `span._.probability`, or to
    `doc.spans[spans_key]` and `doc.spans[spans_key].attrs["scores"]`.

    cfg (dict): Settings that are stored with the pipeline.
    scorer (Callable | None): See `spacy-bioclin.span_scorer.v1`.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], Any],
        *,
        name: str,
        cfg: dict[str, Any],
        scorer: Scorer | None,
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.cfg = cfg
        self.scorer = scorer
        install_extensions()

    @property
    def spans_key(self) -> str | None:
        """Key of `doc.spans` where entities are, or None for `doc.ents`."""
        raise NotImplementedError

    def set_annotations(self, docs: Iterable[Doc], scores: list[list[Entity]]) -> None:
        """Write entities to the Docs."""
        for doc, entities in zip(docs, scores, strict=True):
            spans = [
                Span(doc, e.start, e.end, label=e.label, span_id=DOUBTFUL if e.doubtful else 0)
                for e in entities
            ]
            set_spans(doc, self.spans_key, spans, [entity.probability for entity in entities])
