"""Run a pipeline over notes and take out how sure it is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..encoders.cleaner import clean_doc
from ..errors import BioclinError
from ..ner.component import ClinicalNer
from ..ner.tags import OUTSIDE
from ..spans import get_probabilities, get_spans
from ..types import CharSpan, FloatArray
from .selection import span_entropy, token_entropy

ENTS = "ents"  # name of the layer of doc.ents
CLEANER = "bioclin_cleaner"  # factory of the component that removes the vectors of pieces


class LayerPrediction(NamedTuple):
    """What a component says of a note.

    spans (Mapping[CharSpan, float | None]): Spans with their probabilities; None for those of
        rules.
    entropy (ndarray | None): Of the tags of each token, (n_tokens,); None if there are no tags.
    outside (ndarray | None): Probability that a token belongs to no entity, (n_tokens,).
    """

    spans: Mapping[CharSpan, float | None]
    entropy: FloatArray | None
    outside: FloatArray | None


class Prediction(NamedTuple):
    """What a pipeline says of a note.

    starts, ends (Sequence[int]): Characters at which tokens start and end.
    layers (Mapping[str, LayerPrediction]): Layer -> what is said of it.
    vector (ndarray | None): Mean of the encoder's vectors, (width,); None without an encoder.
    """

    starts: Sequence[int]
    ends: Sequence[int]
    layers: Mapping[str, LayerPrediction]
    vector: FloatArray | None

    @property
    def uncertainty(self) -> float:
        """Sum the entropy of all tokens, or of all spans where there are no tags; nats."""
        total = 0.0
        for layer in self.layers.values():
            if layer.entropy is not None:
                total += float(layer.entropy.sum())
            else:
                known = (p for p in layer.spans.values() if p is not None)
                total += span_entropy(list(known))
        return total

    def find_absence(self, layer: str, start: int, end: int) -> float:
        """Compute how probable it is that no token of some characters belongs to an entity.

        It is never more than the probability that the token which most looks like an entity is
        outside of one, and that is what is returned.

        layer (str): A layer with probabilities of tokens.
        start, end (int): Characters.
        RETURNS (float): From 0 to 1; 1.0 if there is no token.
        """
        outside = self.layers[layer].outside
        assert outside is not None
        edges = zip(self.starts, self.ends, outside.tolist(), strict=True)
        return min((p for first, last, p in edges if first < end and last > start), default=1.0)


def predict_notes(
    nlp: Language, texts: Iterable[str], layers: Sequence[str] = (), *, whole: bool = False
) -> Iterator[Prediction]:
    """Run a pipeline and take out spans, tags and vectors.

    nlp (Language): The pipeline.
    texts (Iterable[str]): The notes.
    layers (Sequence[str]): Layers to look at ("ents", or keys of `doc.spans`); none for those of
        `bioclin_ner`, or for all if the pipeline has no such component.
    whole (bool): Run all components, whose spans are then taken, and not only those up to the last
        `bioclin_ner`.
    YIELDS (Prediction): One for each note, in order.
    RAISES (BioclinError): The pipeline gives no probabilities for one of the layers, or for any.
    """
    heads = {
        head.spans_key or ENTS: head for _, head in nlp.components if isinstance(head, ClinicalNer)
    }
    if unknown := [layer for layer in layers if heads and layer not in heads]:
        raise BioclinError(
            f"--layer {unknown[0]}: no bioclin_ner of the pipeline finds spans in this layer; want "
            f"{' or '.join(heads)}"
        )
    if layers:
        heads = {layer: head for layer, head in heads.items() if layer in layers}
    unneeded = _find_unneeded(nlp, [] if whole else list(heads.values()))
    with nlp.select_pipes(disable=unneeded):
        for batch in minibatch(texts, nlp.batch_size):
            docs = list(nlp.pipe(batch))
            marginals = {
                layer: head.get_marginals(docs, temperature=1.0) for layer, head in heads.items()
            }
            for i, doc in enumerate(docs):
                found = {
                    layer: _read_layer(doc, layer, each[i]) for layer, each in marginals.items()
                }
                if not heads:
                    found = _read_probabilities(doc, layers)
                yield Prediction(
                    [token.idx for token in doc],
                    [token.idx + len(token) for token in doc],
                    found,
                    _read_vector(doc),
                )
                clean_doc(doc)


def _find_unneeded(nlp: Language, heads: Sequence[Any]) -> list[str]:
    """Find the components after the last one of `heads`; without any, the cleaner alone."""
    if not heads:
        return [name for name in nlp.pipe_names if nlp.get_pipe_meta(name).factory == CLEANER]
    last = max(i for i, (_, each) in enumerate(nlp.pipeline) if each in heads)
    return nlp.pipe_names[last + 1 :]


def _read_layer(doc: Doc, layer: str, marginals: Any) -> LayerPrediction:
    outside = marginals[:, :, OUTSIDE].astype(np.float32).prod(axis=1)
    return LayerPrediction(_read_spans(doc, layer), token_entropy(marginals), outside)


def _read_probabilities(doc: Doc, layers: Sequence[str]) -> dict[str, LayerPrediction]:
    """Read the layers whose spans have probabilities."""
    names = layers or [ENTS, *doc.spans]
    return {layer: LayerPrediction(_read_spans(doc, layer), None, None) for layer in names}


def _read_spans(doc: Doc, layer: str) -> dict[CharSpan, float | None]:
    key = None if layer == ENTS and ENTS not in doc.spans else layer
    pairs = zip(get_spans(doc, key), get_probabilities(doc, key), strict=True)
    return {(span.start_char, span.end_char, span.label_): p for span, p in pairs}


def _read_vector(doc: Doc) -> FloatArray | None:
    """Compute the mean of the vectors of pieces."""
    data = doc._.trf_data if doc.has_extension("trf_data") else None
    if data is None or not len(doc):
        return None
    state = getattr(data.model_output, "last_hidden_state", None)
    if state is None:
        return None
    pieces = np.asarray(state.get() if hasattr(state, "get") else state, dtype=np.float32)
    return pieces.reshape(-1, pieces.shape[-1]).mean(axis=0)
