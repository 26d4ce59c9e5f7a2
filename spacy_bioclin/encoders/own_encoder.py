"""An encoder inside of a component, instead of a listener: what `nlp.replace_listeners` makes."""

from typing import Any

from spacy.tokens import Doc
from spacy_transformers.data_classes import FullTransformerBatch, TransformerData
from spacy_transformers.layers import split_trf_batch
from thinc.api import Model, chain

ARCHITECTURE = "spacy-bioclin.Tok2VecEncoder.v1"
# Settings that a listener has beside the encoder's.
LISTENER_SETTINGS = ("pooling", "grad_factor")


def own_encoder(
    encoder: Model[list[Doc], FullTransformerBatch],
) -> Model[list[Doc], list[TransformerData]]:
    """Make a layer that takes the place of a listener: the encoder itself."""
    return chain(encoder, split_trf_batch())


def own_encoder_cfg(encoder: dict[str, Any], tok2vec: dict[str, Any]) -> dict[str, Any]:
    """Make the config of a `tok2vec` with an encoder of its own.

    encoder (dict): [components.transformer.model].
    tok2vec (dict): The `tok2vec` section of the component, which contains a listener.
    """
    listener = find_listener(tok2vec) or {}
    settings = {key: listener[key] for key in LISTENER_SETTINGS if key in listener}
    return {**encoder, **settings, "@architectures": ARCHITECTURE}


def find_listener(section: dict[str, Any]) -> dict[str, Any] | None:
    """Find the first section of a listener in a section of a config."""
    if "TransformerListener" in str(section.get("@architectures")):
        return section
    inner = (find_listener(value) for value in section.values() if isinstance(value, dict))
    return next(filter(None, inner), None)
