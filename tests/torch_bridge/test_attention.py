"""Attention in bf16 with a gradient, beside that of the transformers library."""

import pytest
import torch

from spacy_bioclin.encoders import packing
from spacy_bioclin.encoders.layers import use_fast_layers
from spacy_bioclin.encoders.packing import ARCHITECTURES
from spacy_bioclin.encoders.precision import autocast
from spacy_bioclin.torch_bridge.attention import attend
from tests.encoders.test_packing import make_transformer

LENGTHS = torch.tensor([9, 6, 1])
CPU = torch.device("cpu")


def reference(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return torch.softmax(scores + (0 if mask is None else mask), -1) @ value


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_equal_those_of_autograd(masked):
    torch.manual_seed(0)
    inputs = [torch.randn(3, 2, 9, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    mask = None
    if masked:
        mask = torch.zeros(3, 1, 1, 9, dtype=torch.float64)
        mask.masked_fill_((torch.arange(9) >= LENGTHS[:, None])[:, None, None], -1e300)
    weight = torch.randn(3, 2, 9, 4, dtype=torch.float64)
    expected = torch.autograd.grad((reference(*inputs, mask) * weight).sum(), inputs)
    got = torch.autograd.grad((attend(*inputs, mask) * weight).sum(), inputs)
    torch.testing.assert_close(attend(*inputs, mask), reference(*inputs, mask))
    torch.testing.assert_close(got, expected)


def test_gradients_equal_finite_differences():
    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, 5, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(lambda q, k, v: attend(q, k, v, None), inputs)


def run(transformer, *, dtype):
    transformer.zero_grad()
    ids = torch.arange(5, 32).reshape(3, 9)
    mask = torch.arange(9) < LENGTHS[:, None]
    with autocast(CPU, dtype):
        hidden = transformer(input_ids=ids, attention_mask=mask.long())[0][mask]
    hidden.float().square().sum().backward()
    return hidden.detach().float(), [
        weight.grad.clone() for weight in transformer.parameters() if weight.grad is not None
    ]


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_an_encoder_in_bf16_is_as_near_to_fp32_as_the_librarys(kind, monkeypatch):
    transformer = make_transformer(kind, attention_probs_dropout_prob=0.0)
    exact, exact_gradients = run(transformer, dtype=torch.float32)
    library, library_gradients = run(transformer, dtype=torch.bfloat16)
    use_fast_layers(transformer)
    calls = []
    monkeypatch.setattr(packing, "attend", lambda *inputs: calls.append(inputs) or attend(*inputs))
    ours, our_gradients = run(transformer, dtype=torch.bfloat16)
    assert len(calls) == 2
    assert error(ours, exact) < 1.5 * error(library, exact) + 1e-3
    pairs = zip(our_gradients, library_gradients, exact_gradients, strict=True)
    for got, of_library, expected in pairs:
        assert error(got, expected) < 2 * error(of_library, expected) + 0.01


def error(got, expected):
    return float((got - expected).norm() / (expected.norm() + 1e-6))


def test_not_with_dropout_nor_without_gradient_nor_in_fp32(monkeypatch):
    monkeypatch.setattr(packing, "attend", None)
    dropping = make_transformer("bert", attention_probs_dropout_prob=0.5).train()
    plain = make_transformer("bert", attention_probs_dropout_prob=0.0)
    for transformer in (dropping, plain):
        use_fast_layers(transformer)
    run(dropping, dtype=torch.bfloat16)
    run(plain, dtype=torch.float32)
    with torch.no_grad(), autocast(CPU, torch.bfloat16):
        plain(input_ids=torch.arange(5, 14)[None])
