"""Windows without padding beside padded batches of the transformers library."""

import copy
import pickle

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel

from spacy_bioclin.encoders.layers import use_fast_layers
from spacy_bioclin.encoders.packing import ARCHITECTURES, can_pack, run_packed
from spacy_bioclin.encoders.precision import convert_linear_layers

PAD = 1
LENGTHS = [9, 9, 9, 5, 4, 4, 1]


def make_transformer(kind, **settings):
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        kind,
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        pad_token_id=PAD,
        max_position_embeddings=20,
        **settings,
    )
    return AutoModel.from_config(config).eval()


def make_pieces():
    pieces = np.random.default_rng(0).integers(5, 50, sum(LENGTHS))
    pieces[3] = PAD  # a text can have the words "<pad>"
    return torch.from_numpy(pieces)


def run_padded(transformer, pieces):
    rows, start = [], 0
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    for length in LENGTHS:
        row = torch.full((max(LENGTHS),), PAD)
        row[:length] = pieces[start : start + length]
        rows.append(row)
        start += length
    hidden = transformer(input_ids=torch.stack(rows), attention_mask=mask.long())
    return hidden.last_hidden_state[mask]


def test_packed_equals_padded():
    for kind in ARCHITECTURES:
        plain, packed = make_transformer(kind), make_transformer(kind)
        use_fast_layers(packed)
        assert can_pack(packed) and not can_pack(plain)
        pieces = make_pieces()
        with torch.no_grad():
            expected = run_padded(plain, pieces)
            got = run_packed(packed, pieces, LENGTHS)
            again = run_padded(packed, pieces)
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(again, expected, atol=1e-5, rtol=1e-4)


def test_a_copy_has_weights_of_its_own():
    for duplicate in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        packed = make_transformer("bert")
        use_fast_layers(packed)
        use_fast_layers(packed)
        pieces = make_pieces()
        with torch.no_grad():
            expected = run_packed(packed, pieces, LENGTHS)
            twin = duplicate(packed)
            for weight in packed.parameters():
                weight.zero_()
            assert can_pack(twin)
            assert torch.equal(run_packed(twin, pieces, LENGTHS), expected)


def test_converted_weights_are_used():
    packed = make_transformer("bert")
    use_fast_layers(packed)
    twin = convert_linear_layers(packed, torch.bfloat16)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        expected = run_packed(twin, make_pieces(), LENGTHS)
        for layer in packed.encoder.layer:
            layer.attention.self.query.weight.zero_()
        assert torch.equal(run_packed(twin, make_pieces(), LENGTHS), expected)


def test_other_encoders_are_padded():
    for kind, settings in (
        ("bert", {"position_embedding_type": "relative_key"}),
        ("deberta-v2", {}),
    ):
        transformer = make_transformer(kind, **settings)
        use_fast_layers(transformer)
        assert not can_pack(transformer)


def test_an_error_leaves_the_thread_as_it_was():
    packed = make_transformer("bert")
    use_fast_layers(packed)
    with torch.no_grad():
        expected = run_padded(packed, make_pieces())
        with pytest.raises(IndexError):
            run_packed(packed, make_pieces() + 50, LENGTHS)
        assert torch.equal(run_padded(packed, make_pieces()), expected)


def test_in_bf16_few_numbers_of_rows_are_multiplied():
    for kind in ARCHITECTURES:
        packed = make_transformer(kind, type_vocab_size=2)
        use_fast_layers(packed)
        twin = convert_linear_layers(packed, torch.bfloat16)
        pieces = make_pieces()
        segments = torch.arange(len(pieces)) % 2
        with torch.no_grad():
            expected = run_packed(packed, pieces, LENGTHS, segments)
        rows = set()
        for layer in twin.modules():
            if isinstance(layer, torch.nn.Linear):
                layer.register_forward_hook(
                    lambda _, given, made, rows=rows: rows.add(made.shape[-2])
                )
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            for n in range(1, len(LENGTHS) + 1):
                size = sum(LENGTHS[:n])
                got = run_packed(twin, pieces[:size], LENGTHS[:n], segments[:size])
                torch.testing.assert_close(got.float(), expected[:size], atol=0.1, rtol=0.1)
        rows.discard(1)  # of the pooler
        assert rows == {32, 64}
