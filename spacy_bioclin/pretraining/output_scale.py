"""Scale the output of a pretrained encoder, so that new heads learn at their usual rate."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

# model_type -> the first layer of the head for masked pieces, which reads the encoder's output.
# Their last operation is the layer norm of the top layer.
HEADS = {
    "bert": "cls.predictions.transform.dense",
    "camembert": "lm_head.dense",
    "roberta": "lm_head.dense",
    "xlm-roberta": "lm_head.dense",
}
N_BLOCKS = 16  # of each language, to measure the features on


@torch.no_grad()
def scale_output(model: Any, blocks: Iterable[np.ndarray]) -> float:
    """Bring the features of the top layer to the size that they have in a fresh encoder.

    Masked prediction may make the output as small as it likes, since its own head grows to match. A
    new head does not: with Adam each of its logits moves by about the learning rate times the size
    of the features. Predictions of masked pieces stay the same.

    model (PreTrainedModel): Encoder with its head for masked pieces, changed in place.
    blocks (Iterable[np.ndarray]): Text of each language, (n_blocks, n_pieces) ids.
    RETURNS (float): What the features were multiplied by; 1 for architectures that do not end in
        the layer norm of a layer.
    """
    if model.config.model_type not in HEADS:
        return 1.0
    pieces = np.concatenate([some[:N_BLOCKS] for some in blocks]).astype(np.int64)
    encoder = model.eval().base_model
    features = encoder(torch.from_numpy(pieces).to(model.device)).last_hidden_state
    # A layer norm whose weights are 1 gives every piece this length.
    factor = math.sqrt(features.shape[-1]) / float(features.norm(dim=-1).mean())
    norm = model.base_model.encoder.layer[-1].output.LayerNorm
    reads: nn.Linear = model.get_submodule(HEADS[model.config.model_type])
    norm.weight *= factor
    norm.bias *= factor
    reads.weight /= factor
    return factor
