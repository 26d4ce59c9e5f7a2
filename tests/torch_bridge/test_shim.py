"""The optimizer step, and the bytes that weights are stored in."""

import zlib

import numpy as np
import pytest
import torch
from thinc.api import Adam, Maxout, Model

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.torch_bridge.shim import TorchShim, store_in_half
from spacy_bioclin.torch_bridge.weights_io import ALIGNMENT, MAGIC


def make_shim(lr_scale=1.0):
    torch.manual_seed(0)
    shim = TorchShim(torch.nn.Linear, lr_scale=lr_scale)
    cfg = {"in_features": 3, "out_features": 2}
    shim.set_module(torch.nn.Linear(**cfg), cfg)
    return shim


def step(shim, optimizer, x):
    outputs, backprop = shim((x,), True)
    backprop(torch.ones_like(outputs))
    shim.finish_update(optimizer)


def test_step_is_adamw_with_clipping_decay_and_scaled_rate():
    """Beside torch's own AdamW, given clipped gradients and no decay on the bias."""
    shim = make_shim(lr_scale=0.5)
    reference = torch.nn.Linear(3, 2)
    reference.load_state_dict(shim.module.state_dict())
    optimizer = Adam(0.1, L2=0.2, grad_clip=0.7)
    adamw = torch.optim.AdamW(
        [
            {"params": [reference.weight], "weight_decay": 0.2},
            {"params": [reference.bias], "weight_decay": 0.0},
        ],
        lr=0.05,
        betas=(0.9, 0.999),
        eps=1e-8,
    )
    for seed in range(3):
        x = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
        step(shim, optimizer, x)
        reference(x).sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.7)
        assert norm > 0.7  # the clipping is at work
        adamw.step()
        adamw.zero_grad()
    for ours, theirs in zip(shim.module.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_schedule_drives_the_rate():
    shim = make_shim()
    optimizer = Adam(iter([0.0, 0.1, 0.1, 0.1]), L2=0.0)
    before = shim.module.weight.detach().clone()
    step(shim, optimizer, torch.ones(1, 3))
    assert torch.equal(before, shim.module.weight)  # rate 0
    optimizer.step_schedules()
    step(shim, optimizer, torch.ones(1, 3))
    assert not torch.equal(before, shim.module.weight)


def test_step_that_comes_before_the_backward_pass_waits_for_it():
    early, late = make_shim(), make_shim()
    x = torch.ones(1, 3)
    outputs, backprop = early((x,), True)
    early.finish_update(Adam(0.1))  # as Language.update calls it
    backprop(torch.ones_like(outputs))
    step(late, Adam(0.1), x)
    torch.testing.assert_close(early.module.weight, late.module.weight)


def test_gradients_add_up_until_the_step():
    one, two = make_shim(), make_shim()
    x = torch.ones(1, 3)
    for _ in range(2):
        outputs, backprop = one((x,), True)
        backprop(torch.ones_like(outputs))
    outputs, backprop = two((x,), True)
    backprop(2 * torch.ones_like(outputs))
    torch.testing.assert_close(one.module.weight.grad, two.module.weight.grad)


def test_bytes_round_trip_and_bad_bytes():
    shim = make_shim()
    again = make_shim()
    again.module.weight.data.zero_()
    again.from_bytes(shim.to_bytes())
    torch.testing.assert_close(again.module.weight, shim.module.weight)
    assert again.to_bytes() == shim.to_bytes()
    with pytest.raises(ValueError, match="not the weights"):
        again.from_bytes(b"PK\x03\x04 something else")
    with pytest.raises(ValueError, match=r"\(2, 3\), but the settings say \(2, 5\)"):
        wrong = TorchShim(lambda **cfg: torch.nn.Linear(5, 2), lr_scale=1.0)
        wrong.from_bytes(shim.to_bytes())
    empty = TorchShim(lambda **cfg: torch.nn.Linear(5, 2), lr_scale=1.0)
    assert empty.to_bytes() == MAGIC


def test_weights_stored_in_half_precision_take_half_of_the_bytes():
    shim = make_shim()
    n_bytes = len(shim.to_bytes())
    n_weights = sum(weight.numel() for weight in shim.module.parameters())
    model = Model("bridge", lambda model, x, is_train: (x, None), shims=[shim])
    store_in_half(model)
    again = make_shim()
    again.from_bytes(shim.to_bytes())
    assert n_bytes - len(shim.to_bytes()) >= 2 * n_weights - ALIGNMENT
    assert again.module.weight.dtype == torch.float32
    assert torch.equal(again.module.weight, shim.module.weight.half().float())
    shim.module.weight.data.fill_(1e6)
    with pytest.raises(BioclinError, match="not finite"):
        again.from_bytes(shim.to_bytes())


def test_weights_of_thinc_layers_are_rounded_and_compress_better():
    model = Maxout(64, 64).initialize()
    model.set_param("W", np.random.default_rng(0).normal(size=(64, 3, 64)).astype("f4"))
    before, n_bytes = model.get_param("W").copy(), len(zlib.compress(model.to_bytes()))
    store_in_half(model)
    after = model.get_param("W")
    assert after.dtype == np.float32 and np.array_equal(after, before.astype("f2").astype("f4"))
    assert len(zlib.compress(model.to_bytes())) < 0.7 * n_bytes


def test_training_does_not_touch_the_bytes_it_was_loaded_from():
    data = make_shim().to_bytes()
    kept = bytes(bytearray(data))
    shim = make_shim()
    shim.from_bytes(data)
    step(shim, Adam(0.1), torch.ones(1, 3))
    assert data == kept
