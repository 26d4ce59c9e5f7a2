"""`bioclin_hf_ner`: the entities that the `transformers` library finds with a token-classification
checkpoint. `bioclin import-hf` makes such components."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.language import Language
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

from ...encoders.files import check_config
from ...encoders.loading import unpack_tokenizer
from ...encoders.pieces import whole_text_tokenizer
from ...errors import BioclinError
from ...settings import Settings, read_settings
from ...torch_bridge.shim import TorchShim
from ..inference import Entity
from ..pipe import ASSIGNS, SCORE_WEIGHTS, EntityPipe, Scorer
from .aggregation import OUTSIDE, Aggregation, Aggregator, CharEntity, cover_tokens

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
    """Take the place of a checkpoint's encoder, and return the vectors it is given."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=inputs_embeds)


class PieceHead(nn.Module):
    """Hold the layers that `transformers` puts after an encoder to classify its pieces.

    These are the library's own module without its encoder.

    model (Any): From `AutoModelForTokenClassification`. Its encoder is removed in place.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        setattr(model, model.base_model_prefix, _GivenVectors())
        self.model = model

    def forward(self, vectors: Tensor) -> Tensor:
        """Classify pieces.

        vectors (Tensor): (n_pieces, width).
        RETURNS (Tensor): Logits, (n_pieces, n_labels).
        """
        return self.model(inputs_embeds=vectors[None], return_dict=True).logits[0]


def build_piece_tagger(upstream: str) -> Model[list[Doc], list[PieceScores]]:
    """Build the head of a Hugging Face checkpoint over the encoder's pieces.

    It is stored with its tokenizer, since aggregation depends on more than the pieces' vectors.

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


def _build_head(config: dict[str, Any], labels: list[str], **_: Any) -> PieceHead:
    shape = AutoConfig.for_model(**check_config(config, "the stored config.json"))
    if len(labels) != shape.num_labels or OUTSIDE not in labels:
        raise BioclinError(f"{len(labels)} labels are stored for {shape.num_labels} outputs")
    # On "meta" the encoder, which is removed, takes no memory.
    with no_init_weights(), torch.device("meta"):
        return PieceHead(MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING[type(shape)]._from_config(shape))


def _forward(
    model: Model, X: list[TransformerData], is_train: bool
) -> tuple[list[PieceScores], Callable[[Any], Any]]:
    """Compute for each Doc the probability of each label for each piece, (n_pieces, n_labels). The
    callback raises an error: this head does not learn."""
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


class HuggingFaceNerSettings(Settings):
    """Settings of the component, see `make_hf_ner`."""

    spans_key: str | None
    aggregation: Aggregation


@Language.factory(
    "bioclin_hf_ner",
    assigns=ASSIGNS,
    requires=["doc._.trf_data"],
    default_config=DEFAULT_CONFIG.interpolate()["component"],
    default_score_weights=SCORE_WEIGHTS,
)
def make_hf_ner(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[PieceScores]],
    spans_key: str | None,
    aggregation: str,
    scorer: Scorer | None,
) -> "HuggingFaceNer":
    """Make the component. Its weights come with the pipeline.

    model (Model): `spacy-bioclin.PieceTagger.v1`.
    spans_key (str | None): Where entities are written to: `doc.spans[spans_key]`, or `doc.ents` if
        None.
    aggregation (str): "simple", "first", "average" or "max": `aggregation_strategy` of the
        `transformers` library.
    scorer (Callable | None): See `spacy-bioclin.span_scorer.v1`.
    """
    values = {"spans_key": spans_key, "aggregation": aggregation}
    settings = read_settings(HuggingFaceNerSettings, values, where=f"[components.{name}]")
    return HuggingFaceNer(nlp.vocab, model, name=name, settings=settings, scorer=scorer)


class HuggingFaceNer(EntityPipe):
    """Classify the encoder's pieces and aggregate them as `transformers` does.

    Entities that end inside a token are widened to it. See `make_hf_ner`.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[PieceScores]],
        *,
        name: str,
        settings: HuggingFaceNerSettings,
        scorer: Scorer | None,
    ) -> None:
        super().__init__(vocab, model, name=name, cfg={}, scorer=scorer)
        self.settings = settings
        self._aggregator: Aggregator | None = None

    @property
    def spans_key(self) -> str | None:
        """Key of `doc.spans` where entities are, or None for `doc.ents`."""
        return self.settings.spans_key

    @property
    def _shim(self) -> TorchShim:
        return self.model.get_ref("head").shims[0]

    def set_head(self, head: PieceHead, tokenizer: dict[str, str], labels: list[str]) -> None:
        """Use a checkpoint's head.

        tokenizer (dict): See `pack_tokenizer`.
        labels (list[str]): Label of each output: "O", "B-X", "I-X".
        """
        config = head.model.config.to_dict()
        self._shim.set_module(head, {"config": config, "tokenizer": tokenizer, "labels": labels})
        self._aggregator = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Entity types, sorted."""
        names = (self._shim.cfg or {}).get("labels", ())
        return tuple(sorted({name[2:] for name in names if name != OUTSIDE}))

    @property
    def aggregator(self) -> Aggregator:
        """What puts pieces together. RAISES (BioclinError): The component has no weights."""
        if self._aggregator is None:
            cfg = self._shim.cfg
            if not cfg:
                raise BioclinError(
                    f"[components.{self.name}] has no weights: they come with a pipeline that "
                    "`bioclin import-hf` made from a checkpoint"
                )
            tokenizer = unpack_tokenizer(cfg["tokenizer"])
            self._aggregator = Aggregator(tokenizer, cfg["labels"], self.settings.aggregation)
        return self._aggregator

    def predict(self, docs: Iterable[Doc]) -> list[list[Entity]]:
        """Find the entities of each Doc, ordered by start."""
        docs = list(docs)
        return [
            cover_tokens(doc, entities, overlap=self.spans_key is not None)
            for doc, entities in zip(docs, self.find(docs), strict=True)
        ]

    def find(self, docs: list[Doc]) -> list[list[CharEntity]]:
        """Find what `transformers` finds in each Doc; offsets may be inside tokens."""
        aggregator = self.aggregator
        if not any(len(doc) for doc in docs):
            return [[] for _ in docs]
        self.check_encoded(docs)
        backend = whole_text_tokenizer(aggregator.tokenizer)
        encodings = backend.encode_batch([doc.text for doc in docs], add_special_tokens=False)
        found: list[list[CharEntity]] = []
        for doc, encoding, scores in zip(docs, encodings, self.model.predict(docs), strict=True):
            if not len(encoding):  # empty or spaces: the encoder returns a placeholder
                found.append([])
                continue
            if len(encoding) != len(scores):
                raise BioclinError(
                    f"[components.{self.name}] was trained with another encoder: its tokenizer "
                    f"makes {len(encoding)} pieces where the encoder has {len(scores)}; use it "
                    "with the encoder that it was imported with"
                )
            found.append(aggregator.find(doc.text, encoding, scores))
        return found

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
    ) -> None:
        """Keep the weights. RAISES (BioclinError): There are none."""
        _ = self.aggregator

    def update(self, examples: Iterable[Example], **_: Any) -> dict[str, float]:
        """Refuse to learn: the head would unlearn how to label pieces inside a word.

        RAISES (BioclinError): Always.
        """
        raise BioclinError(
            f"[components.{self.name}] bioclin_hf_ner does not learn: put {self.name!r} into "
            "[training] frozen_components, or train bioclin_ner on the checkpoint's encoder (see "
            "docs/import_hf.md)"
        )
