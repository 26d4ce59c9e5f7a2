"""Batches side by side, and what happens when memory runs out."""

import gc
import logging

import numpy as np
import pytest
import torch
from thinc.api import Adam

from spacy_bioclin.encoders import network
from spacy_bioclin.encoders.loading import load_pretrained
from spacy_bioclin.encoders.network import WindowedEncoder
from spacy_bioclin.encoders.shim import EncoderShim
from spacy_bioclin.encoders.strategy.settings import Strategy
from spacy_bioclin.encoders.windows import concat_windows, cut_windows

LENGTHS = [40, 31, 17, 9]
NO_MEMORY = "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"


def make_network(folder, **settings):
    no_dropout = {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}
    tokenizer, transformer = load_pretrained(str(folder), no_dropout)
    return WindowedEncoder(transformer, tokenizer, **{"max_batch_pieces": 64, **settings})


def make_batch():
    none = np.array([0])
    cut = [cut_windows(n, none, np.arange(n), size=40, overlap=0) for n in LENGTHS]
    ids = np.random.default_rng(0).integers(5, 60, sum(LENGTHS))
    return ids, concat_windows(cut, LENGTHS)


def make_shim(folder, **settings):
    encoder = EncoderShim(lambda **cfg: None, precision="fp32", strategy=Strategy())
    encoder.set_module(make_network(folder, **settings), {})
    return encoder


@pytest.fixture
def small_memory(monkeypatch):
    """Batches of more than 48 pieces do not fit."""
    replace_runs(monkeypatch, 48, RuntimeError(NO_MEMORY))
    monkeypatch.setattr(network, "MIN_BATCH_PIECES", 8)


@pytest.fixture(autouse=True)
def collected(monkeypatch):
    """Garbage collections are counted, since each takes a third of a second in this process."""
    calls = []
    monkeypatch.setattr(gc, "collect", lambda: calls.append(1))
    return calls


def replace_runs(monkeypatch, limit, error):
    """Let batches of more than so many pieces fail, with and without padding."""

    def limited(run):
        def run_or_fail(owner, input_ids, shape, segments=None):
            if input_ids.numel() > limit:
                raise error
            return run(owner, input_ids, shape, segments)

        return run_or_fail

    padded = limited(WindowedEncoder._last_hidden_state)
    monkeypatch.setattr(WindowedEncoder, "_last_hidden_state", padded)
    monkeypatch.setattr(network, "run_packed", limited(network.run_packed))


def test_batches_side_by_side_change_nothing(tiny_encoder, monkeypatch):
    encoder = make_network(tiny_encoder).eval()
    ids, windows = make_batch()
    with torch.no_grad():
        one = encoder(ids, windows)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
        three = encoder(ids, windows)
    torch.testing.assert_close(one, three)


def test_annotation_halves_batches_and_warns_once(tiny_encoder, caplog, request, collected):
    ids, windows = make_batch()
    with torch.no_grad():
        expected = make_network(tiny_encoder).eval()(ids, windows)
        request.getfixturevalue("small_memory")
        encoder = make_network(tiny_encoder, max_batch_pieces=512).eval()
        with caplog.at_level(logging.WARNING):
            got = encoder(ids, windows)
            encoder(ids, windows)
    torch.testing.assert_close(got, expected)
    assert encoder.max_batch_pieces == 32 and collected
    assert [record.message[:13] for record in caplog.records] == ["Out of memory"]


def test_memory_that_never_suffices_is_an_error(tiny_encoder, monkeypatch):
    replace_runs(monkeypatch, 0, RuntimeError(NO_MEMORY))
    with torch.no_grad(), pytest.raises(RuntimeError, match="DefaultCPUAllocator"):
        make_network(tiny_encoder).eval()(*make_batch())


def test_other_errors_are_not_swallowed(tiny_encoder, monkeypatch):
    replace_runs(monkeypatch, 0, RuntimeError("size mismatch"))
    with pytest.raises(RuntimeError, match="size mismatch"):
        make_network(tiny_encoder).eval()(*make_batch())


def gradients(encoder):
    outputs, backprop = encoder(make_batch(), True)
    backprop(torch.ones_like(outputs) * torch.linspace(0, 0.1, len(outputs))[:, None])
    return [p.grad.clone() for p in encoder.module.parameters() if p.grad is not None]


@pytest.mark.slow
def test_training_out_of_memory_gives_the_same_gradients(tiny_encoder, caplog, request):
    expected = gradients(make_shim(tiny_encoder))
    request.getfixturevalue("small_memory")
    encoder = make_shim(tiny_encoder, max_batch_pieces=512)
    with caplog.at_level(logging.WARNING):
        got = gradients(encoder)
    assert encoder.module.recompute
    assert len(caplog.records) == 2  # activations again; smaller batches
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_backward_pass_out_of_memory_is_done_again(tiny_encoder, monkeypatch):
    """Also where gradients of an update before are there already, and half of ours."""
    plain, failing = make_shim(tiny_encoder), make_shim(tiny_encoder)
    gradients(plain)
    gradients(failing)
    expected = gradients(plain)
    real, calls = torch.autograd.backward, []

    def backward(tensors, grads):
        calls.append(len(tensors))
        real(tensors, grads, retain_graph=True)
        if len(calls) == 1:
            raise RuntimeError(NO_MEMORY)

    monkeypatch.setattr(torch.autograd, "backward", backward)
    got = gradients(failing)
    assert len(calls) == 2
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_fp16_gradients_that_overflow_take_no_step(tiny_encoder):
    encoder = make_shim(tiny_encoder)
    gradients(encoder)
    encoder.step.scaler = torch.amp.GradScaler("cpu", init_scale=4.0, enabled=True)
    before = [p.detach().clone() for p in encoder.module.parameters()]
    outputs, backprop = encoder(make_batch(), True)
    backprop(torch.full_like(outputs, torch.inf))
    encoder.finish_update(Adam(0.1))
    for weight, kept in zip(encoder.module.parameters(), before, strict=True):
        assert torch.equal(weight, kept)
    assert encoder.step.scaler.get_scale() == 2.0


def test_fp16_scale_leaves_the_step_as_it_is(tiny_encoder):
    plain, scaled = make_shim(tiny_encoder), make_shim(tiny_encoder)
    scaled.step.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=True)
    for encoder in (plain, scaled):
        gradients(encoder)
        encoder.finish_update(Adam(0.1, L2=0.1, eps=1e-2, grad_clip=1.0))
    weights = (plain.module.parameters(), scaled.module.parameters())
    for one, other in zip(*weights, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
