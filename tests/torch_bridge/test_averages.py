"""Averages of torch weights: how they are computed, when they are used, and for which weights."""

import copy

import pytest
import torch
from thinc.api import Adam

from spacy_bioclin.torch_bridge.averages import (
    find_averages,
    get_averages,
    set_averages,
    update_averages,
)
from tests.encoders.strategy.test_strategy_updates import make_model, read, update
from tests.torch_bridge.test_shim import make_shim, step


def make_adam(**settings):
    return Adam(0.1, L2=0.0, use_averages=True, **settings)


def values_of(module):
    return {name: weight.detach().clone() for name, weight in module.named_parameters()}


def same(one, other):
    return all(torch.equal(weight, other[name]) for name, weight in one.items())


def test_average_follows_the_rule_of_thinc():
    """(1 + t) / (10 + t) of the old average in step t, from the weights after the first step on."""
    shim, optimizer = make_shim(), make_adam()
    expected = None
    for t in range(1, 6):
        step(shim, optimizer, torch.full((2, 3), float(t)))
        weight = shim.module.weight.detach().clone()
        keep = (1 + t) / (10 + t)
        expected = weight if expected is None else keep * expected + (1 - keep) * weight
    with shim.use_params(optimizer.averages):
        torch.testing.assert_close(shim.module.weight.detach(), expected)
        assert not torch.allclose(expected, weight)


def test_weights_are_restored_exactly():
    shim, optimizer = make_shim(), make_adam()
    for _ in range(3):
        step(shim, optimizer, torch.ones(2, 3))
    before, x = values_of(shim.module), torch.ones(1, 3)
    with shim.use_params(optimizer.averages):
        averages = values_of(shim.module)
        assert not torch.equal(shim.predict((x,)), torch.nn.functional.linear(x, *before.values()))
        stored = shim.to_bytes()
    assert same(before, values_of(shim.module)) and not same(before, averages)
    with pytest.raises(ZeroDivisionError), shim.use_params(optimizer.averages):
        raise ZeroDivisionError
    assert same(before, values_of(shim.module))
    other = make_shim()
    other.from_bytes(stored)
    assert same(averages, values_of(other.module))  # what is saved meanwhile is the averages


def test_without_use_averages_nothing_is_kept():
    shim, optimizer = make_shim(), Adam(0.1, use_averages=False)
    step(shim, optimizer, torch.ones(2, 3))
    assert optimizer.averages is None and not optimizer.nr_update
    before = values_of(shim.module)
    with shim.use_params({}):
        assert same(before, values_of(shim.module))


def test_averages_go_on_from_a_state():
    """The share of the old average follows the steps that were done before the training stopped."""
    shim, optimizer = make_shim(), make_adam()
    for n in range(4):
        step(shim, optimizer, torch.full((2, 3), float(n)))
    resumed = make_adam()
    # As a file would have it: the state shares no memory with the optimizer.
    set_averages(shim.id, resumed, copy.deepcopy(get_averages(shim.id, optimizer)))
    weights = values_of(shim.module)
    for one in (optimizer, resumed):
        update_averages(shim.id, {n: w + 1 for n, w in weights.items()}, one)
    found, wanted = (find_averages(shim.id, one.averages) for one in (resumed, optimizer))
    assert found.keys() == wanted.keys() == weights.keys()
    assert all((found[name] == wanted[name]).all() for name in wanted)


def test_a_copy_has_averages_of_its_own():
    """`nlp.replace_listeners` copies an encoder; both may learn in one pipeline."""
    shim, optimizer = make_shim(), make_adam()
    twin = copy.deepcopy(shim)
    for n, one in enumerate((shim, twin, twin, twin)):
        step(one, optimizer, torch.full((2, 3), float(n)))
    assert twin.id != shim.id and shim.copy().id not in (shim.id, twin.id)
    before = values_of(shim.module)
    with shim.use_params(optimizer.averages), twin.use_params(optimizer.averages):
        assert same(before, values_of(shim.module))  # one step: the average is the weight
        assert not same(before, values_of(twin.module))


@pytest.mark.parametrize(
    ("strategy", "precision"),
    [
        ({}, "int8"),
        ({"lora_rank": 2}, "bf16"),
        pytest.param({"freeze_layers": 1}, "fp32", marks=pytest.mark.slow),
    ],
)
def test_an_encoder_annotates_with_its_averages(tiny_encoder, strategy, precision):
    """Converted and merged copies of the weights follow the averages, and go with them."""
    model, optimizer = make_model(tiny_encoder, strategy, precision=precision), make_adam()
    frozen = {n for n, w in model.transformer.named_parameters() if not w.requires_grad}
    for seed in range(3):
        update(model, optimizer, seed)
        frozen |= {n for n, w in model.transformer.named_parameters() if not w.requires_grad}
    before = encode(model)
    with model.use_params(optimizer.averages):
        averaged = encode(model)
        stored = model.to_bytes()
    assert torch.equal(before, encode(model)) and not torch.allclose(before, averaged, atol=1e-3)
    loaded = make_model(tiny_encoder, strategy, precision=precision).from_bytes(stored)
    torch.testing.assert_close(encode(loaded), averaged)
    n_weights = len(list(model.transformer.named_parameters()))
    assert len(optimizer.averages) == n_weights - len(frozen)
    assert bool(frozen) == bool(strategy)


def test_gradual_unfreezing_keeps_frozen_weights(tiny_encoder):
    model, optimizer = make_model(tiny_encoder, {"unfreeze_steps": 2}), make_adam()
    update(model, optimizer)
    assert optimizer.averages == {}  # nothing learns yet
    for seed in range(3):
        update(model, optimizer, seed)
    frozen = {n: w.detach().clone() for n, w in weights(model) if not w.requires_grad}
    with model.use_params(optimizer.averages):
        assert frozen and same(frozen, dict(weights(model)))


def weights(model):
    return model.transformer.named_parameters()


def encode(model):
    batch = model.predict(read("Paciente con neumonía."))
    return batch.model_output.last_hidden_state.clone()
