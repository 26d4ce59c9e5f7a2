"""A strategy's settings, their errors, and where an architecture's weights stand."""

import pytest
import torch
from transformers import AutoConfig, AutoModel

from spacy_bioclin.encoders.strategy.apply import Tuning, check_strategy
from spacy_bioclin.encoders.strategy.levels import find_levels, reinit
from spacy_bioclin.encoders.strategy.settings import Strategy, rate_factor, read_strategy, select
from spacy_bioclin.errors import BioclinError

N_LAYERS = 3
ARCHITECTURES = {
    "bert": "encoder.layer",
    "roberta": "encoder.layer",
    "roberta-prelayernorm": "encoder.layer",
    "xlm-roberta": "encoder.layer",
    "electra": "encoder.layer",
    "deberta": "encoder.layer",
    "deberta-v2": "encoder.layer",
    "longformer": "encoder.layer",
    "modernbert": "layers",
    "distilbert": "transformer.layer",
}
SHAPE = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": N_LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 40,
    "pad_token_id": 1,
    "attention_probs_dropout_prob": 0.0,
    "hidden_dropout_prob": 0.0,
}
MORE = {
    "electra": {"embedding_size": 8},
    "longformer": {"attention_window": 8},
    "modernbert": {"reference_compile": False},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {
        "relative_attention": True,
        "pos_att_type": ["c2p", "p2c"],
        "norm_rel_ebd": "layer_norm",
        "conv_kernel_size": 3,
    },
    "albert": {"embedding_size": 8},
}


def make_transformer(model_type):
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **{**SHAPE, **MORE.get(model_type, {})})
    return AutoModel.from_config(config)


def run(transformer):
    ids = torch.arange(2, 18).reshape(2, 8)
    return transformer(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state


def test_layers_are_found_whatever_they_are_called():
    for model_type in ARCHITECTURES:
        levels = find_levels(make_transformer(model_type))
        assert levels.prefix == ARCHITECTURES[model_type]
        assert len(levels.layers) == N_LAYERS
        assert {level for name, level in levels.of.items() if levels.prefix in name} == {1, 2, 3}
        assert all(level == 0 for name, level in levels.of.items() if "embeddings" in name)
        above = {name for name, level in levels.of.items() if level == N_LAYERS + 1}
        assert all("norm" in name.lower() or name.startswith("pooler") for name in above)


def test_the_backward_pass_ends_above_frozen_layers():
    """Not just that nothing learns there: nothing is computed."""
    for frozen, model_type in [(1, "bert"), *((2, name) for name in ARCHITECTURES)]:
        transformer = make_transformer(model_type)
        Tuning(transformer, Strategy(freeze_layers=frozen))
        seen = {}
        for i, layer in enumerate(find_levels(transformer).layers):
            layer.register_forward_hook(lambda _, __, out, i=i, seen=seen: seen.__setitem__(i, out))
        run(transformer).sum().backward()
        hidden = {i: out[0] if isinstance(out, tuple) else out for i, out in seen.items()}
        assert [hidden[i].grad_fn is not None for i in range(N_LAYERS)] == [
            i >= frozen for i in range(N_LAYERS)
        ]
        with_gradient = {n for n, p in transformer.named_parameters() if p.grad is not None}
        levels = find_levels(transformer).of
        assert {levels[name] for name in with_gradient if levels[name] <= N_LAYERS} == set(
            range(frozen + 1, N_LAYERS + 1)
        )


def test_top_layers_are_drawn_as_the_architecture_draws_them():
    for model_type in ARCHITECTURES:
        transformer = make_transformer(model_type)
        with torch.no_grad():
            for weight in transformer.parameters():
                weight.fill_(7.0)
        levels = find_levels(transformer)
        torch.manual_seed(1)
        reinit(transformer, levels.layers[-1:])
        first = {name: weight.clone() for name, weight in transformer.named_parameters()}
        for name, weight in first.items():
            if levels.of[name] != N_LAYERS:
                assert (weight == 7.0).all(), name
            elif weight.ndim > 1:
                assert weight.std() < 0.05, name  # initializer_range is 0.02
            elif name.endswith("bias"):
                assert (weight == 0.0).all(), name
            else:
                assert (weight == 1.0).all(), name  # norms
        torch.manual_seed(1)
        reinit(transformer, levels.layers[-1:])
        assert all(torch.equal(weight, first[n]) for n, weight in transformer.named_parameters())


def test_shared_layers_cannot_be_told_apart():
    transformer = make_transformer("albert")
    for settings in ({"freeze_layers": 1}, {"unfreeze_steps": 1}, {"layer_decay": 0.9}):
        with pytest.raises(BioclinError, match=rf"{next(iter(settings))}.*no separate layers"):
            check_strategy(Strategy(**settings), transformer)
    Tuning(transformer, Strategy(freeze_embeddings=True))
    learning = {name for name, p in transformer.named_parameters() if p.requires_grad}
    assert learning and not any("embed" in name for name in learning)


BAD = [
    ({"freze_layers": 1}, ["'freze_layers'", "mean freeze_layers", "no_decay"]),
    ({"quux": 1}, ["'quux'", "freeze_layers", "no_decay"]),
    ({"freeze_layers": "2"}, ["freeze_layers = '2'", "integer"]),
    ({"freeze_layers": True}, ["freeze_layers = True", "integer"]),
    ({"freeze_layers": -1}, ["freeze_layers = -1", "greater than or equal to 0"]),
    ({"freeze_embeddings": 1}, ["freeze_embeddings = 1", "boolean"]),
    ({"layer_decay": 0}, ["layer_decay = 0", "greater than 0"]),
    ({"layer_decay": 1.1}, ["layer_decay = 1.1", "less than or equal to 1"]),
    ({"no_decay": "bias"}, ["no_decay = 'bias'", "list"]),
    ({"no_decay": ["("]}, ["no_decay = ['(']", "regular expressions"]),
    ({"unfreeze_steps": 1.5}, ["unfreeze_steps = 1.5", "integer"]),
    ({"mixout": 1}, ["mixout = 1", "less than 1"]),
    ({"pretrained_decay": float("nan")}, ["pretrained_decay = nan", "finite number"]),
    ({"lora_rank": 4, "mixout": 0.5}, ["lora_rank = 4, mixout = 0.5", "leave out one"]),
    ({"lora_rank": 4, "reinit_layers": 1}, ["lora_rank = 4, reinit_layers = 1"]),
    ({"lora_targets": ["query"]}, ["lora_targets = ['query']", "set lora_rank"]),
    ({"lora_alpha": 16}, ["lora_alpha = 16", "set lora_rank"]),
]


def test_bad_settings_name_section_key_value_and_remedy():
    for settings, words in BAD:
        with pytest.raises(BioclinError) as error:
            read_strategy(settings)
        for word in ["[components.transformer.model.strategy]", *words]:
            assert word in str(error.value)


LACKING = [
    (Strategy(freeze_layers=4), ["freeze_layers = 4", "3 layers", "encoder.layer.2"]),
    (Strategy(reinit_layers=9), ["reinit_layers = 9", "3 or less"]),
    (
        Strategy(freeze_layers=2, reinit_layers=2),
        ["freeze_layers = 2, reinit_layers = 2", "freeze_layers + reinit_layers must be 3"],
    ),
    (
        Strategy(no_decay=["bias", "LayerNrom"]),
        ["'LayerNrom' matches no weight", "encoder.layer.N.output.LayerNorm.weight"],
    ),
    (
        Strategy(lora_rank=2, lora_targets=["qeury"]),
        ["'qeury' matches no linear layer", "encoder.layer.N.attention.self.query,"],
    ),
    (Strategy(lora_rank=2, freeze_layers=3), ["freeze_layers = 3, lora_rank = 2", "frozen"]),
    (Strategy(unfreeze_steps=5, freeze_layers=3), ["unfreeze_steps = 5", "leave out one"]),
]


def test_what_the_encoder_lacks_is_an_error_that_lists_what_it_has():
    for strategy, words in LACKING:
        with pytest.raises(BioclinError) as error:
            check_strategy(strategy, make_transformer("bert"))
        for word in ["[components.transformer.model.strategy]", *words]:
            assert word in str(error.value)
        assert "layer.0.output" not in str(error.value)  # folded


def test_no_settings_are_the_defaults():
    assert read_strategy(None) == read_strategy({}) == Strategy()


def test_rates_fall_from_the_top_layer_to_the_embeddings():
    assert [rate_factor(0.5, level, 3) for level in range(5)] == [0.125, 0.25, 0.5, 1.0, 1.0]


def test_selectors():
    names = ["embeddings.word.weight", "layer.0.bias", "layer.1.bias"]
    assert select("no_decay", ["bias$", "word"], names, kind="weight") == set(names)
    assert select("no_decay", [], names, kind="weight") == set()


LORA_TARGETS = {
    "bert": "encoder.layer.N.attention.self.query encoder.layer.N.attention.self.value",
    "electra": "encoder.layer.N.attention.self.query encoder.layer.N.attention.self.value",
    "longformer": "encoder.layer.N.attention.self.query encoder.layer.N.attention.self.value",
    "deberta": "encoder.layer.N.attention.self.in_proj",
    "deberta-v2": "encoder.layer.N.attention.self.query_proj "
    "encoder.layer.N.attention.self.value_proj",
    "modernbert": "layers.N.attn.Wqkv",
    "distilbert": "transformer.layer.N.attention.q_lin transformer.layer.N.attention.v_lin",
}


def test_lora_is_on_queries_and_values_whatever_they_are_called():
    for model_type in LORA_TARGETS:
        transformer = make_transformer(model_type)
        before = run(transformer.eval())
        Tuning(transformer, Strategy(lora_rank=2))
        learning = {name for name, p in transformer.named_parameters() if p.requires_grad}
        layers = {name.rpartition(".")[0] for name in learning}
        assert all(name.rpartition(".")[2] in ("lora_down", "lora_up") for name in learning)
        targets = LORA_TARGETS[model_type].split()
        assert layers == {t.replace(".N.", f".{i}.") for t in targets for i in range(N_LAYERS)}
        torch.testing.assert_close(run(transformer), before)  # no difference yet
