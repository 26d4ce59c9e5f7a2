"""What the components that find entities share: where they write them, and how they are scored."""

from collections.abc import Iterable
from typing import Any

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab
from thinc.api import Model

from ..spans import install_extensions, set_spans
from ..torch_bridge.components import GIVEN, Scorer, StoredSettings, check_encoded
from .inference import Entity

__all__ = ["ASSIGNS", "DOUBTFUL", "GIVEN", "SCORE_WEIGHTS", "EntityPipe", "Scorer"]

ASSIGNS = ["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type", "span._.probability"]
SCORE_WEIGHTS = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}
# `span.id_` of an entity that is not in the most probable tags.
DOUBTFUL = "doubtful"


class EntityPipe(StoredSettings):
    """Write entities to `doc.ents` and their probabilities to `span._.probability`, or to
    `doc.spans[spans_key]` and `doc.spans[spans_key].attrs["scores"]`.

    cfg (dict), scorer (Callable | None): See `StoredSettings` and `spacy-bioclin.span_scorer.v1`.
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
        super().__init__(vocab, model, name=name, cfg=cfg, scorer=scorer)
        install_extensions()

    @property
    def spans_key(self) -> str | None:
        """Key of `doc.spans` where entities are, or None for `doc.ents`."""
        raise NotImplementedError

    def check_encoded(self, docs: list[Doc]) -> None:
        """Check that the encoder to which the model listens has run.

        RAISES (BioclinError): A Doc has tokens, but no vectors.
        """
        check_encoded(self.model, docs, self.name, "find entities")

    def set_annotations(self, docs: Iterable[Doc], scores: list[list[Entity]]) -> None:
        """Write entities to the Docs."""
        for doc, entities in zip(docs, scores, strict=True):
            spans = [
                Span(doc, e.start, e.end, label=e.label, span_id=DOUBTFUL if e.doubtful else 0)
                for e in entities
            ]
            set_spans(doc, self.spans_key, spans, [entity.probability for entity in entities])
