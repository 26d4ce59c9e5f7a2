"""The choice of a number format, and copies of a network in it."""

import pytest
import torch
from torch import nn

from spacy_bioclin.encoders import precision
from spacy_bioclin.encoders.precision import choose_precision, convert_linear_layers
from spacy_bioclin.errors import BioclinError

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def test_auto_follows_the_hardware(monkeypatch):
    for device, bf16, capability, expected in (
        (CPU, True, None, torch.bfloat16),
        (CPU, False, None, torch.float32),
        (GPU, True, (9, 0), torch.bfloat16),
        (GPU, False, (7, 0), torch.float16),
        (GPU, False, (6, 1), torch.float32),
    ):
        monkeypatch.setattr(precision, "has_fast_bf16", lambda _, bf16=bf16: bf16)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, found=capability: found)
        chosen = choose_precision("auto", device)
        assert chosen.dtype == expected
        assert chosen.reason


def test_avx512_bf16_counts_only_where_it_is_faster(monkeypatch):
    # Without the memory of what was timed, which other tests may need.
    timed = precision._times_bf16_as_faster.__wrapped__
    monkeypatch.setattr(precision, "_times_bf16_as_faster", timed)
    for amx, avx512_bf16, bf16_is_faster, expected in (
        (True, True, False, True),
        (False, True, True, True),
        (False, True, False, False),
        (False, False, True, False),
    ):
        seconds = {torch.bfloat16: 1.0 if bf16_is_faster else 3.0, torch.float32: 2.0}
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda amx=amx: amx)
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has=avx512_bf16: has)
        monkeypatch.setattr(precision, "_time_product", seconds.get)
        assert precision.has_fast_bf16(CPU) is expected, (amx, avx512_bf16, bf16_is_faster)


def test_formats_that_a_device_lacks_are_errors():
    for name, device in (("fp16", CPU), ("int8", GPU), ("fp8", CPU)):
        with pytest.raises(BioclinError, match=name):
            choose_precision(name, device)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(50, 16)
        self.block = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, ids):
        return self.block(self.embeddings(ids))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.qint8])
def test_converted_copy_is_close_and_leaves_the_original(dtype):
    torch.manual_seed(0)
    network = Network().eval()
    ids = torch.arange(50)
    expected = network(ids)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    twin = convert_linear_layers(network, dtype, lambda twin: twin(ids))
    with torch.no_grad(), torch.autocast("cpu", enabled=dtype == torch.bfloat16):
        got = twin(ids).float()
    assert twin.embeddings.weight is network.embeddings.weight
    assert 0 < (got - expected).abs().max() < 0.05 * expected.abs().max()
    assert type(network.block[0]) is nn.Linear
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name])
