"""`bioclin_hf_ner`: the entities of a token-classification checkpoint of the `transformers`
library, as its own pipeline finds them. `bioclin import-hf` makes such components."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from spacy_transformers.data_classes import TransformerData
from spacy_transformers.layers import TransformerListener
from thinc.api import Config, Model, chain, xp2torch
from torch import Tensor, nn
from transformers import MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING, AutoConfig
from transformers.modeling_outputs import BaseModelOutput
from transformers.modeling_utils import no_init_weights

from ...encoders.loading import unpack_tokenizer
from ...errors import BioclinError
from ...torch_bridge.shim import TorchShim
from ..component import install_extensions, write_entities
from ..inference import Entity
from .aggregation import AGGREGATIONS, OUTSIDE, Aggregator, CharEntity, cover_tokens

DEFAULT_CONFIG = Config().from_str(
    """
[component]
spans_key = null
aggregation = "simple"

[component.scorer]
@scorers = "spacy-bioclin.span_scorer.v1"

[component.model]
@architectures = "spacy-bioclin.PieceTagger.v1"
upstream = "*"
"""
)

PieceScores = NDArray[np.float32]


class _GivenVectors(nn.Module):
    """Stands where a checkpoint has its encoder, and says what it is given."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=inputs_embeds)


class PieceHead(nn.Module):
    """The layers that `transformers` puts after an encoder to classify its pieces, whatever they
    are: the library's own module with its encoder taken out.

    model (Any): Of `AutoModelForTokenClassification`. Its encoder is replaced in place.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        setattr(model, model.base_model_prefix, _GivenVectors())
        self.model = model

    def forward(self, vectors: Tensor) -> Tensor:
        """vectors (Tensor): (n_pieces, width). RETURNS (Tensor): Logits, (n_pieces, n_labels)."""
        return self.model(inputs_embeds=vectors[None], return_dict=True).logits[0]


def build_piece_tagger(upstream: str) -> Model[list[Doc], list[PieceScores]]:
    """The head of a Hugging Face checkpoint over the encoder's pieces. It holds its tokenizer, too,
    since how it puts pieces together depends on more than their vectors.

    upstream (str): Name of the `transformer` component; "*" for any.
    """
    shim = TorchShim(_build_head, lr_scale=1.0)
    head: Model[list[TransformerData], list[PieceScores]] = Model(
        "piece_head", _forward, shims=[shim]
    )
    model = chain(TransformerListener(upstream_name=upstream), head)
    model.name = "piece_tagger"
    model.set_ref("head", head)
    return model


def _build_head(cfg: dict[str, Any]) -> PieceHead:
    config = AutoConfig.for_model(**cfg["config"])
    # The encoder is taken out again: it shall cost no memory.
    with no_init_weights(), torch.device("meta"):
        return PieceHead(MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING[type(config)]._from_config(config))


def _forward(
    model: Model, X: list[TransformerData], is_train: bool
) -> tuple[list[PieceScores], Callable[[Any], Any]]:
    """RETURNS (tuple): Per Doc the probability of each label for each piece, (n_pieces, n_labels),
    and a callback that says that this head does not learn."""
    shim: TorchShim = model.shims[0]
    vectors = [
        data.model_output.last_hidden_state[0]
        for data in X
        if "last_hidden_state" in data.model_output
    ]
    flat = xp2torch(model.ops.xp.concatenate(vectors), device=shim.device)
    scores = shim.predict((flat,)).softmax(dim=-1).cpu().numpy()
    ends = np.cumsum([0] + [len(vector) for vector in vectors]).tolist()
    parts = iter(scores[start:end] for start, end in itertools.pairwise(ends))
    nothing = scores[:0]
    return [next(parts) if "last_hidden_state" in x.model_output else nothing for x in X], _refuse


def _refuse(_: Any) -> None:
    raise BioclinError("spacy-bioclin.PieceTagger.v1 does not learn: see docs/import_hf.md")


@Language.factory(
    "bioclin_hf_ner",
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type", "span._.probability"],
    default_config=DEFAULT_CONFIG.interpolate()["component"],
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_hf_ner(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[PieceScores]],
    spans_key: str | None,
    aggregation: str,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "HuggingFaceNer":
    """Make the component. Its weights come with the pipeline.

    model (Model): `spacy-bioclin.PieceTagger.v1`.
    spans_key (str | None): Where entities are written to: `doc.spans[spans_key]`, or `doc.ents` if
        None.
    aggregation (str): "simple", "first", "average" or "max": `aggregation_strategy` of the
        `transformers` library.
    scorer (Callable | None): See `spacy-bioclin.span_scorer.v1`.
    """
    return HuggingFaceNer(
        nlp.vocab,
        model,
        name=name,
        spans_key=spans_key,
        aggregation=aggregation,
        scorer=scorer,
    )


class HuggingFaceNer(TrainablePipe):
    """Classifies the encoder's pieces and aggregates them as `transformers` does.

    Writes `doc.ents` and `span._.probability`, or `doc.spans[spans_key]` with the probabilities in
    `doc.spans[spans_key].attrs["scores"]`. Entities that end inside a token are widened to it.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[PieceScores]],
        *,
        name: str,
        spans_key: str | None,
        aggregation: str,
        scorer: Callable[..., dict[str, Any]] | None,
    ) -> None:
        if aggregation not in AGGREGATIONS:
            raise BioclinError(
                f"[components.{name}] aggregation = {aggregation!r}: want one of "
                f"{', '.join(AGGREGATIONS)}"
            )
        self.vocab = vocab
        self.model = model
        self.name = name
        self.spans_key = spans_key
        self.aggregation = aggregation
        self.scorer = scorer
        self.cfg: dict[str, Any] = {}
        self._aggregator: Aggregator | None = None
        install_extensions()

    @property
    def _shim(self) -> TorchShim:
        return self.model.get_ref("head").shims[0]

    def set_head(self, head: PieceHead, tokenizer: dict[str, str], labels: list[str]) -> None:
        """Take over a checkpoint's head.

        tokenizer (dict): See `pack_tokenizer`.
        labels (list[str]): Of each of its outputs: "O", "B-X", "I-X".
        """
        config = head.model.config.to_dict()
        self._shim.set_module(head, {"config": config, "tokenizer": tokenizer, "labels": labels})
        self._aggregator = None

    @property
    def labels(self) -> tuple[str, ...]:
        """RETURNS (tuple[str, ...]): Entity types, sorted."""
        names = (self._shim.cfg or {}).get("labels", ())
        return tuple(sorted({name[2:] for name in names if name != OUTSIDE}))

    @property
    def aggregator(self) -> Aggregator:
        """RAISES (BioclinError): The component has no weights."""
        if self._aggregator is None:
            cfg = self._shim.cfg
            if not cfg:
                raise BioclinError(
                    f"[components.{self.name}] has no weights: they come with a pipeline that "
                    "`bioclin import-hf` made from a checkpoint"
                )
            tokenizer = unpack_tokenizer(cfg["tokenizer"])
            self._aggregator = Aggregator(tokenizer, cfg["labels"], self.aggregation)
        return self._aggregator

    def predict(self, docs: Iterable[Doc]) -> list[list[Entity]]:
        """RETURNS (list[list[Entity]]): Per Doc, by start."""
        docs = list(docs)
        return [
            cover_tokens(doc, entities, overlap=self.spans_key is not None)
            for doc, entities in zip(docs, self.find(docs), strict=True)
        ]

    def find(self, docs: list[Doc]) -> list[list[CharEntity]]:
        """RETURNS (list[list[CharEntity]]): Per Doc what `transformers` finds, which need not end
        with tokens."""
        aggregator = self.aggregator
        if not any(len(doc) for doc in docs):
            return [[] for _ in docs]
        backend = aggregator.tokenizer.backend_tokenizer
        backend.no_truncation()
        backend.no_padding()
        encodings = backend.encode_batch([doc.text for doc in docs], add_special_tokens=False)
        found: list[list[CharEntity]] = []
        for doc, encoding, scores in zip(docs, encodings, self.model.predict(docs), strict=True):
            if not len(encoding):  # empty, or blanks: the encoder gives a placeholder
                found.append([])
                continue
            if len(encoding) != len(scores):
                raise BioclinError(
                    f"[components.{self.name}] was trained with another encoder: its tokenizer "
                    f"makes {len(encoding)} pieces where the encoder has {len(scores)}; put it "
                    "behind the encoder that it was imported with"
                )
            found.append(aggregator.find(doc.text, encoding, scores))
        return found

    def set_annotations(self, docs: Iterable[Doc], scores: list[list[Entity]]) -> None:
        """Write entities to the Docs."""
        write_entities(docs, scores, self.spans_key)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
    ) -> None:
        """Keep the weights. RAISES (BioclinError): There are none."""
        _ = self.aggregator

    def update(self, examples: Iterable[Example], **_: Any) -> dict[str, float]:
        """RAISES (BioclinError): Always; it would unlearn how to label pieces inside a word."""
        raise BioclinError(
            f"[components.{self.name}] bioclin_hf_ner does not learn: put {self.name!r} into "
            "[training] frozen_components, or train bioclin_ner on the checkpoint's encoder (see "
            "docs/import_hf.md)"
        )
