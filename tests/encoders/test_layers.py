"""Faster layers beside those that they replace."""

import pytest
import torch
from torch import nn
from transformers import RobertaPreLayerNormConfig, RobertaPreLayerNormModel

from spacy_bioclin.encoders.layers import FastDropout, FusedSelfAttention, use_fast_layers


def test_fused_attention_equals_the_library():
    torch.manual_seed(0)
    config = RobertaPreLayerNormConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    slow = RobertaPreLayerNormModel(config, add_pooling_layer=False)
    fast = RobertaPreLayerNormModel(config, add_pooling_layer=False)
    fast.load_state_dict(slow.state_dict())
    use_fast_layers(fast)
    assert any(isinstance(module, FusedSelfAttention) for module in fast.modules())
    ids = torch.randint(5, 50, (3, 9))
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    results = []
    for model in (slow, fast):
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state[mask.bool()]
        hidden.sum().backward()
        results.append((hidden, model.embeddings.word_embeddings.weight.grad))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("shape", [(7,), (3, 5, 11), (1000, 333)])
def test_dropout_keeps_mean_and_share(shape):
    torch.manual_seed(0)
    dropout = FastDropout(0.25)
    x = torch.ones(shape, requires_grad=True)
    y = dropout(x)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, y.detach())  # the same values are dropped
    values = set(y.detach().unique().tolist())
    assert all(value == 0 or value == pytest.approx(1 / 0.75) for value in values)
    if y.numel() > 1000:
        columns = (y != 0).reshape(-1, shape[-1]).float()
        assert float(columns.mean()) == pytest.approx(0.75, abs=0.003)
        # each of the four values that share a draw is dropped as often
        share = (y.detach() != 0).flatten()[: y.numel() // 4 * 4].reshape(-1, 4).float().mean(0)
        assert share.tolist() == pytest.approx([0.75] * 4, abs=0.006)


def test_dropout_is_reproducible_and_off_in_evaluation():
    network = nn.Sequential(nn.Dropout(0.5))
    use_fast_layers(network)
    x = torch.ones(100)
    torch.manual_seed(1)
    first = network(x)
    torch.manual_seed(1)
    assert torch.equal(first, network(x))
    assert torch.equal(network.eval()(x), x)
