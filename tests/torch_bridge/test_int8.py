"""Linear layers in int8: which inputs stay in fp32, how near the results are, what is kept."""

import pytest
import torch
from torch import nn

from spacy_bioclin.torch_bridge import int8
from spacy_bioclin.torch_bridge.int8 import Int8Linear, find_far, quantize_linear_layers

NONE = torch.tensor([], dtype=torch.long)


def make_layer(n_inputs: int = 64, n_outputs: int = 32, *, bias: bool = True) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(n_inputs, n_outputs, bias=bias)


def make_inputs(*shape: int, far: dict[int, float] | None = None) -> torch.Tensor:
    """Draw inputs between -1 and 1, and make some of them larger."""
    inputs = torch.rand(*shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    for number, times in (far or {}).items():
        inputs[..., number] *= times
    return inputs


def find_error(layer: nn.Linear, twin: nn.Module, inputs: torch.Tensor) -> float:
    """Find the mean error as a share of the mean result."""
    before = inputs.clone()
    with torch.no_grad():
        expected, got = layer(inputs), twin(inputs)
    assert torch.equal(inputs, before)
    assert got.shape == expected.shape and got.dtype == torch.float32
    return float((got - expected).abs().mean() / expected.abs().mean())


FAR: list[tuple[list[float], list[int]]] = [
    ([1.0] * 64, []),
    ([1.0] * 62 + [3.9, 4.1], [63]),
    ([9.0] + [1.0] * 62 + [5.0], [0, 63]),
    ([9.0, 8.0, 7.0] + [1.0] * 61, [0, 1]),  # at most one of 32
    ([9.0] + [1.0] * 30, []),  # less than 32
    ([0.0] * 64, []),  # never computed
]


def test_far_inputs_by_hand() -> None:
    assert [(own, far) for own, far in FAR if find_far(torch.tensor(own)).tolist() != far] == []


@pytest.mark.parametrize("has_vnni", [True, False])
@pytest.mark.parametrize("shape", [(200, 64), (3, 70, 64)])
def test_it_is_near(
    shape: tuple[int, ...], has_vnni: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_vnni and not int8._has_vnni():
        pytest.skip("this processor has no VNNI")
    monkeypatch.setattr(int8, "_has_vnni", lambda: has_vnni)
    layer = make_layer()
    inputs = make_inputs(*shape, far={5: 100.0})
    far = find_error(layer, Int8Linear(layer, torch.tensor([5])), inputs)
    near = find_error(layer, Int8Linear(layer, NONE), inputs)
    assert far < (0.002 if has_vnni else 0.004)  # most of the result is of input 5
    assert near > 4 * far
    assert find_error(layer, Int8Linear(layer, NONE), make_inputs(*shape)) < 0.03


def test_outputs_of_any_size_are_as_near() -> None:
    """With one scale for all weights, the small ones would have few steps."""
    layer = make_layer()
    with torch.no_grad():
        layer.weight[0] *= 100
        small = Int8Linear(layer, NONE)(make_inputs(50, 64))[:, 1:]
        expected = layer(make_inputs(50, 64))[:, 1:]
    assert float((small - expected).abs().mean() / expected.abs().mean()) < 0.03


def test_without_bias_rows_or_weights() -> None:
    layer = make_layer(bias=False)
    for far in (NONE, torch.tensor([1, 7])):
        twin = Int8Linear(layer, far)
        assert find_error(layer, twin, make_inputs(9, 64)) < 0.03
        assert twin(torch.zeros(0, 64)).shape == (0, 32)
        assert not twin(torch.zeros(2, 64)).any()
    with torch.no_grad():
        layer.weight.zero_()
    assert not Int8Linear(layer, NONE)(make_inputs(9, 64)).any()


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.unused = make_layer(), make_layer()
        self.rest = nn.Sequential(nn.ReLU(), make_layer(32, 8))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.rest(self.inner(inputs))


def test_a_sample_shows_the_far_inputs() -> None:
    block, sample = Block(), make_inputs(50, 64, far={3: 50.0, 40: 20.0})
    layers = [block.inner, block.rest[1]]
    before = [layer.weight.clone() for layer in layers]
    quantize_linear_layers(block, lambda block: block(sample))
    assert [type(layer) for layer in (block.inner, block.unused, block.rest[1])] == [Int8Linear] * 3
    assert block.inner.far.tolist() == [3, 40] and block.unused.far.tolist() == []
    assert all(torch.equal(layer.weight, old) for layer, old in zip(layers, before, strict=True))
    with torch.no_grad():
        expected = layers[1](torch.relu(layers[0](sample)))
    assert float((block(sample) - expected).abs().mean() / expected.abs().mean()) < 0.02
