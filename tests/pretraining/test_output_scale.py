"""The output of a pretrained encoder has the size that a fresh one has."""

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForMaskedLM

from spacy_bioclin.pretraining.output_scale import scale_output


def make_model(kind):
    config = AutoConfig.for_model(
        kind, vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2
    )
    torch.manual_seed(0)
    return AutoModelForMaskedLM.from_config(config).eval()


@pytest.mark.parametrize("kind", ["bert", "camembert", "roberta", "xlm-roberta"])
def test_features_grow_and_predictions_stay(kind):
    model = make_model(kind)
    norm = model.base_model.encoder.layer[-1].output.LayerNorm
    with torch.no_grad():
        norm.weight.uniform_(0.2, 0.3)
        norm.bias.uniform_(-0.1, 0.1)
    pieces = torch.arange(4, 24).view(2, 10)
    with torch.no_grad():
        before = model(pieces, output_hidden_states=True)
        factor = scale_output(model, [pieces.numpy()[:1], pieces.numpy()[1:].astype(np.uint16)])
        after = model(pieces, output_hidden_states=True)
    assert 3 < factor < 5
    torch.testing.assert_close(after.hidden_states[-1], factor * before.hidden_states[-1])
    torch.testing.assert_close(after.logits, before.logits)
    assert float(after.hidden_states[-1].norm(dim=-1).mean()) == pytest.approx(16**0.5, rel=1e-5)


def test_other_architectures_stay():
    model = make_model("roberta-prelayernorm")
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    assert scale_output(model, [np.ones((1, 4))]) == 1
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
