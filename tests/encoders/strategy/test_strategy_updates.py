"""What each setting of a strategy does to which weights in real updates of a pipeline's encoder."""

import functools

import numpy as np
import pytest
import spacy
import torch
from spacy.training import Example
from spacy_transformers.data_classes import FullTransformerBatch
from thinc.api import Adam, fix_random_seed
from transformers import AutoConfig, AutoModel
from transformers.modeling_outputs import BaseModelOutput

from spacy_bioclin.encoders.strategy.levels import find_levels
from spacy_bioclin.encoders.strategy.linear import add_mixout
from spacy_bioclin.errors import BioclinError
from tests.trained import blank
from tests.util import TEXTS, make_encoder

N_LAYERS = 4
RATE = 1e-3


@pytest.fixture(scope="module")
def deep_encoder(tmp_path_factory):
    """Folder of a tiny random BERT with more layers than the others have."""
    folder = make_encoder(tmp_path_factory.mktemp("encoders") / "deep")
    config = AutoConfig.from_pretrained(folder)
    config.num_hidden_layers = N_LAYERS
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(folder)
    return folder


def make_nlp(encoder, strategy=None, **settings):
    nlp = blank("es")
    model = {
        "@architectures": "spacy-bioclin.Encoder.v1",
        "name": str(encoder),
        "window": 32,
        "precision": "fp32",
        "transformer_config": {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
        **({"strategy": strategy} if strategy else {}),
        **settings,
    }
    nlp.add_pipe("transformer", config={"model": model})
    return nlp


def make_model(encoder, strategy=None, **settings):
    nlp = make_nlp(encoder, strategy, **settings)
    fix_random_seed(0)
    nlp.initialize()
    return nlp.get_pipe("transformer").model


@functools.cache
def read(*texts):
    """Docs that no test changes; a new pipeline for them takes longer than an update."""
    return list(blank("es").pipe(texts))


def update(model, optimizer, seed=0):
    """One update with a random gradient of the vectors."""
    batch, backprop = model.begin_update(read(*TEXTS))
    vectors = batch.model_output.last_hidden_state
    gradient = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(seed))
    backprop(
        FullTransformerBatch(
            spans=batch.spans,
            wordpieces=batch.wordpieces,
            model_output=BaseModelOutput(last_hidden_state=gradient),
            align=batch.align,
        )
    )
    model.finish_update(optimizer)
    return vectors


def weights_of(model):
    return {name: weight.detach().clone() for name, weight in named(model)}


def named(model):
    return model.transformer.named_parameters()


def changed(before, model):
    """Names of the weights that are no longer what they were."""
    return {name for name, weight in named(model) if not torch.equal(weight, before[name])}


def levels_of(model):
    return find_levels(model.transformer).of


def test_frozen_weights_stay_and_all_others_learn(deep_encoder):
    for strategy, lowest in (
        ({}, 0),
        ({"freeze_embeddings": True}, 1),
        ({"freeze_layers": 1}, 2),
        ({"freeze_layers": 3}, 4),
    ):
        model = make_model(deep_encoder, strategy)
        before, levels = weights_of(model), levels_of(model)
        for seed in range(2):
            update(model, Adam(RATE), seed)
        moved = {levels[name] for name in changed(before, model)}
        assert moved == set(range(lowest, N_LAYERS + 1))
        adamw = model.shim.get_training_state()["optimizer"]
        n_learning = sum(level >= lowest for level in levels.values())
        assert len(adamw["state"]) == n_learning  # no moments for the others


def test_a_frozen_encoder_is_run_as_for_annotation(deep_encoder):
    """No graph, no dropout, no optimizer, and the bytes that it was loaded from are its weights."""
    strategy = {"freeze_layers": N_LAYERS}
    config = {"hidden_dropout_prob": 0.5}
    trained = make_model(deep_encoder, strategy, transformer_config=config)
    model = make_nlp(deep_encoder, strategy).get_pipe("transformer").model
    data = trained.to_bytes()
    model.from_bytes(data)
    vectors = update(model, Adam(RATE))
    assert not vectors.requires_grad
    docs = read(*TEXTS)
    np.testing.assert_array_equal(vectors, model.predict(docs).model_output.last_hidden_state)
    assert not model.shim.module.training
    assert model.shim.get_training_state()["optimizer"] is None
    assert model.to_bytes() == data


def test_a_head_learns_above_a_frozen_encoder(deep_encoder):
    nlp = make_nlp(deep_encoder, {"freeze_layers": N_LAYERS})
    nlp.add_pipe("bioclin_ner")
    doc = nlp.make_doc(TEXTS[0])
    example = Example.from_dict(doc, {"entities": [(0, 8, "WHO")]})
    nlp.initialize(lambda: [example])
    model = nlp.get_pipe("transformer").model
    before, losses = weights_of(model), []
    for _ in range(20):
        losses.append(nlp.update([example], sgd=Adam(0.01))["bioclin_ner"])
    assert losses[-1] < losses[0] / 2
    assert not changed(before, model)


def test_each_layer_learns_at_its_rate(deep_encoder):
    """Adam's first step is as long as the rate wherever there is a gradient."""
    model = make_model(deep_encoder, {"layer_decay": 0.5})
    before, levels = weights_of(model), levels_of(model)
    update(model, Adam(RATE, L2=0.0, grad_clip=0.0))
    steps = {}
    for name, weight in named(model):
        longest = (weight - before[name]).abs().max().item()
        steps.setdefault(levels[name], []).append(longest)
    for level, longest in steps.items():
        expected = RATE * 0.5 ** (N_LAYERS - level)
        assert max(longest) == pytest.approx(expected, rel=1e-2), level


@pytest.mark.parametrize("reinit", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_top_layers_start_anew_and_by_the_seed(deep_encoder, reinit):
    pretrained = weights_of(make_model(deep_encoder))
    model = make_model(deep_encoder, {"reinit_layers": reinit})
    levels = levels_of(model)
    anew = {levels[name] for name in changed(pretrained, model)}
    assert anew == set(range(N_LAYERS - reinit + 1, N_LAYERS + 1))
    again = make_model(deep_encoder, {"reinit_layers": reinit})
    assert not changed(weights_of(model), again)
    loaded = make_nlp(deep_encoder, {"reinit_layers": reinit}).get_pipe("transformer").model
    loaded.from_bytes(make_model(deep_encoder).to_bytes())
    assert not changed(pretrained, loaded)  # on load nothing is drawn


def test_weights_without_decay(deep_encoder):
    """With a decay that dwarfs the gradients' steps, what decays shrinks."""

    def shrunk(strategy):
        model = make_model(deep_encoder, strategy)
        before = weights_of(model)
        update(model, Adam(1e-6, L2=1e4, grad_clip=0.0))
        return {
            name
            for name, weight in named(model)
            if before[name].norm() and weight.norm() / before[name].norm() < 0.995
        }

    everything = shrunk({"no_decay": []})
    by_default = shrunk({"no_decay": None})
    assert {name for name in everything - by_default} == {n for n in everything if "Norm" in n}
    assert shrunk({"no_decay": ["Norm", r"layer\.[01]\."]}) == {
        name for name in by_default if "layer.0." not in name and "layer.1." not in name
    }


class BertAdam:
    """The optimizer of BERT's code of 2018 (optimization.py, AdamWeightDecayOptimizer)."""

    def __init__(self, weights, rates, decays, eps):
        self.weights, self.rates, self.decays, self.eps = weights, rates, decays, eps
        self.m = [torch.zeros_like(w) for w in weights]
        self.v = [torch.zeros_like(w) for w in weights]

    def step(self, gradients):
        for i, (weight, gradient) in enumerate(zip(self.weights, gradients, strict=True)):
            self.m[i] = 0.9 * self.m[i] + 0.1 * gradient
            self.v[i] = 0.999 * self.v[i] + 0.001 * gradient**2
            step = self.m[i] / (self.v[i].sqrt() + self.eps) + self.decays[i] * weight
            weight -= self.rates[i] * step


def test_without_bias_correction_the_step_is_berts(deep_encoder):
    strategy = {"bias_correction": False, "layer_decay": 0.9}
    model = make_model(deep_encoder, strategy)
    optimizer = Adam(RATE, L2=0.01, eps=1e-6, grad_clip=0.0)
    levels, weights = levels_of(model), weights_of(model)
    names = [name for name, _ in named(model)]
    rates = [RATE * 0.9 ** (N_LAYERS - levels[name]) for name in names]
    decays = [0.01 if weights[name].ndim > 1 else 0.0 for name in names]
    reference = BertAdam([weights[name] for name in names], rates, decays, eps=1e-6)
    gradients = {}
    for name, weight in named(model):
        weight.register_post_accumulate_grad_hook(
            lambda w, name=name: gradients.__setitem__(name, w.grad.clone())
        )
    for seed in range(4):
        update(model, optimizer, seed)
        reference.step([gradients[name] for name in names])
        for name, weight in named(model):
            torch.testing.assert_close(weight, weights[name], rtol=1e-5, atol=1e-7)
    corrected = make_model(deep_encoder, {"layer_decay": 0.9})
    start = weights_of(corrected)
    update(corrected, optimizer)
    first = max((w - start[name]).abs().max().item() for name, w in named(corrected))
    assert first == pytest.approx(RATE, rel=0.05)  # where BERT's first step is 3.2 times as long


def test_layers_begin_to_learn_from_the_top_one_after_the_other(deep_encoder):
    model = make_model(deep_encoder, {"unfreeze_steps": 2})
    levels, moved = levels_of(model), []
    for seed in range(14):
        before = weights_of(model)
        update(model, Adam(RATE), seed)
        moved.append(min((levels[name] for name in changed(before, model)), default=None))
    assert moved == [None, None, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0, 0, 0]


def test_thawing_ends_at_what_is_frozen(deep_encoder):
    model = make_model(deep_encoder, {"unfreeze_steps": 1, "freeze_layers": 2})
    before, levels = weights_of(model), levels_of(model)
    for seed in range(8):
        update(model, Adam(RATE), seed)
    assert {levels[name] for name in changed(before, model)} == {3, 4}


def test_steps_with_nothing_before_them_do_not_count(deep_encoder):
    """A resumed run hands on empty batches until it is where it was."""
    model = make_model(deep_encoder, {"unfreeze_steps": 1})
    for _ in range(3):
        model.finish_update(Adam(RATE))
    before = weights_of(model)
    update(model, Adam(RATE))
    assert not changed(before, model)


@pytest.mark.parametrize("reinit", [0, 1])
def test_weights_are_pulled_to_the_pretrained_ones(deep_encoder, reinit):
    strategy = {"pretrained_decay": 500.0, "reinit_layers": reinit, "layer_decay": 0.5}
    model = make_model(deep_encoder, strategy)
    before, levels = weights_of(model), levels_of(model)
    update(model, Adam(0.0))
    with torch.no_grad():
        for _, weight in named(model):
            weight += 1.0
    update(model, Adam(RATE, L2=0.0))
    for name, weight in named(model):
        share = 0.5 * 0.5 ** (N_LAYERS - levels[name])  # 500 times the rate of the layer
        share *= levels[name] <= N_LAYERS - reinit
        distance = (weight - before[name]).mean().item()
        assert distance == pytest.approx(1 - share, abs=2 * RATE), name


def test_mixout_mixes_in_training_only(deep_encoder):
    model = make_model(deep_encoder, {"mixout": 0.9})
    docs = read(TEXTS[0])
    vectors = model.predict(docs).model_output.last_hidden_state
    in_training = model.begin_update(docs)[0].model_output.last_hidden_state
    # as long as weights are the pretrained ones, there is nothing to mix
    np.testing.assert_allclose(vectors, in_training.detach(), atol=1e-5)
    update(model, Adam(0.05))
    update(model, Adam(0.05))
    after = model.predict(docs).model_output.last_hidden_state
    one, two = (model.begin_update(docs)[0].model_output.last_hidden_state for _ in range(2))
    assert not torch.allclose(one, two, atol=1e-3)
    np.testing.assert_array_equal(after, model.predict(docs).model_output.last_hidden_state)


def test_mixout_is_the_papers():
    """u = (M·pretrained + (1 - M)·w - p·pretrained) / (1 - p), with M 1 in a share p of places."""
    layer = torch.nn.Linear(400, 50)
    anchor = torch.randn(50, 400)
    add_mixout(layer, anchor=anchor, p=0.3)
    torch.manual_seed(0)
    mixed = (layer.train()(torch.eye(400)) - layer.bias).T.detach()
    kept = (layer.weight - 0.3 * anchor) / 0.7
    is_kept = torch.isclose(mixed, kept, atol=1e-4)
    is_pretrained = torch.isclose(mixed, anchor, atol=1e-4)
    assert (is_kept ^ is_pretrained).float().mean() > 0.99
    assert is_pretrained.float().mean().item() == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_lora_learns_a_difference_that_is_stored_in_the_weights(deep_encoder, precision):
    strategy = {"lora_rank": 2, "lora_alpha": 4.0, "freeze_layers": 1}
    model = make_model(deep_encoder, strategy, precision=precision)
    before, names = weights_of(model), [name for name, _ in named(model)]
    docs = read(*TEXTS)
    vectors = model.predict(docs).model_output.last_hidden_state
    for seed in range(3):
        update(model, Adam(0.1), seed)
    assert all(torch.equal(dict(named(model))[name], old) for name, old in before.items())
    factors = {name for name, _ in named(model)} - set(names)
    layers = ["attention.self.query", "attention.self.value"]
    assert factors == {
        f"encoder.layer.{i}.{layer}.lora_{way}"
        for i in range(1, N_LAYERS)
        for layer in layers
        for way in ("down", "up")
    }
    learned = model.predict(docs).model_output.last_hidden_state
    assert abs(learned - vectors).max() > 0.01
    loaded = make_nlp(deep_encoder, strategy, precision=precision).get_pipe("transformer").model
    loaded.from_bytes(model.to_bytes())
    assert [name for name, _ in named(loaded)] == names
    differ = changed(before, loaded)
    assert differ == {f"encoder.layer.{i}.{layer}.weight" for i in (1, 2, 3) for layer in layers}
    np.testing.assert_array_equal(learned, loaded.predict(docs).model_output.last_hidden_state)
    update(loaded, Adam(0.1))  # and it can be trained further
    assert not np.array_equal(loaded.predict(docs).model_output.last_hidden_state, learned)


def test_a_frozen_encoder_is_asked_once_for_each_text(deep_encoder):
    model = make_model(deep_encoder, {"freeze_layers": N_LAYERS})
    windows = []
    model.transformer.register_forward_hook(lambda _, __, out: windows.append(len(out[0])))
    first = update(model, Adam(RATE))
    n_windows = sum(windows)
    assert torch.equal(update(model, Adam(RATE)), first)
    alone = model.predict(read(TEXTS[1])).model_output.last_hidden_state[0]
    assert any(np.array_equal(first[0, i : i + len(alone)], alone) for i in range(len(first[0])))
    assert sum(windows) == n_windows
    update_other = model.predict(read("Otra nota."))
    assert sum(windows) == n_windows + 1 and update_other


def test_annotation_remembers_nothing(deep_encoder):
    model = make_model(deep_encoder, {"freeze_layers": N_LAYERS})
    windows = []
    model.transformer.register_forward_hook(lambda _, __, out: windows.append(len(out[0])))
    docs = read(TEXTS[0])
    for _ in range(2):
        model.predict(docs)
    assert len(windows) == 2


def test_errors_come_before_any_training(deep_encoder):
    with pytest.raises(BioclinError, match=r"freeze_layers = 5: .*4 layers"):
        make_model(deep_encoder, {"freeze_layers": 5})
    with pytest.raises(BioclinError, match="unknown key 'frozen'"):
        make_nlp(deep_encoder, {"frozen": 5})


def test_a_pipeline_from_before_strategies_loads(deep_encoder, tmp_path):
    nlp = make_nlp(deep_encoder)
    nlp.initialize()
    nlp.to_disk(tmp_path)
    config = spacy.util.load_config(tmp_path / "config.cfg")
    config["components"]["transformer"]["model"].pop("strategy", None)
    config.to_disk(tmp_path / "config.cfg")
    assert spacy.load(tmp_path)(TEXTS[0])._.trf_data.tensors
