"""Adversarial training: the second pass of a batch, where it is made, and where it is refused."""

import io
from functools import partial

import pytest
import spacy
import srsly
import torch
from spacy.tokens import Span
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as spacy_train
from spacy.util import load_config
from thinc.api import fix_random_seed

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.repeats import RepeatedUpdates, find_move
from tests.training.several import SIGNS, make_config, make_ner, run, write_two
from tests.training.test_resume import ROOT, settings  # noqa: F401

RADIUS = 2.0
KEY = "components.transformer.model.strategy.adversarial"
NOTES = ["Paciente con neumonía.", "Sufre tos y fiebre."]
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def test_a_move_has_the_length_of_the_radius():
    for scale in (1.0, 4096.0):
        move = find_move(scale * torch.tensor([[3.0, 0.0], [0.0, 4.0]]), 0.5)
        torch.testing.assert_close(move, torch.tensor([[0.3, 0.0], [0.0, 0.4]]))
    assert find_move(None, 1.0) is None
    for value in (0.0, float("nan"), float("inf")):
        assert find_move(torch.tensor([0.0, value]), 1.0) is None


def make_nlp(encoder, radius):
    """A pipeline without dropout, the same for every radius."""
    nlp = spacy.blank("es")
    model = {
        "@architectures": "spacy-bioclin.Encoder.v1",
        "name": str(encoder),
        "precision": "fp32",
        "window": 32,
        "transformer_config": NO_DROPOUT,
        "strategy": {"adversarial": radius},
    }
    nlp.add_pipe("transformer", config={"model": model})
    nlp.add_pipe("bioclin_ner", config={"model": {"dropout": 0.0}})
    fix_random_seed(0)
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def make_examples(nlp):
    examples = []
    for note in NOTES:
        gold = nlp.make_doc(note)
        gold.set_ents([Span(gold, t.i, t.i + 1, "SIGN") for t in gold if t.text in SIGNS])
        examples.append(Example(nlp.make_doc(note), gold))
    return examples


def modules(nlp):
    shims = [s for _, pipe in nlp.components for node in pipe.model.walk() for s in node.shims]
    return [shim.module for shim in shims]


def gradients(nlp):
    return [p.grad for module in modules(nlp) for p in module.parameters() if p.grad is not None]


def embeddings(nlp):
    return nlp.get_pipe("transformer").model.transformer.get_input_embeddings().weight


def test_gradients_are_those_of_both_passes(tiny_encoder):
    plain, both = make_nlp(tiny_encoder, 0.0), make_nlp(tiny_encoder, RADIUS)
    losses, expected = {}, {}
    before = embeddings(both).detach().clone()
    update = partial(RepeatedUpdates(both, both, []).update, sgd=False)
    update(make_examples(both), losses=losses)
    assert torch.equal(embeddings(both), before)
    plain.update(make_examples(plain), sgd=False, losses=expected)
    assert losses == expected  # of the first pass
    table = embeddings(plain)
    with torch.no_grad():
        table += RADIUS * table.grad / table.grad.norm()
    plain.update(make_examples(plain), sgd=False)
    for found, wanted in zip(gradients(both), gradients(plain), strict=True):
        torch.testing.assert_close(found, wanted)


def test_a_part_of_a_batch_moves_along_its_own_gradient(tiny_encoder):
    """With [training] accumulate_gradient, a batch is updated in parts."""
    nlp = make_nlp(tiny_encoder, RADIUS)
    updates, parts = RepeatedUpdates(nlp, nlp, []), []
    for examples in [[eg] for eg in make_examples(nlp)]:
        updates.update(examples, losses={}, sgd=False)
        parts.append([gradient.clone() for gradient in gradients(nlp)])
        for module in modules(nlp):
            module.zero_grad()
    for examples in [[eg] for eg in make_examples(nlp)]:
        updates.update(examples, losses={}, sgd=False)
    for found, *wanted in zip(gradients(nlp), *parts, strict=True):
        torch.testing.assert_close(found, sum(wanted))


def test_without_the_setting_there_is_one_pass(tiny_encoder):
    plain, same = make_nlp(tiny_encoder, 0.0), make_nlp(tiny_encoder, 0.0)
    RepeatedUpdates(same, same, []).update(make_examples(same), losses={}, sgd=False)
    plain.update(make_examples(plain), sgd=False)
    for found, wanted in zip(gradients(same), gradients(plain), strict=True):
        assert torch.equal(found, wanted)


def test_other_loops_are_refused(tmp_path, settings, tiny_encoder):  # noqa: F811
    nlp = make_nlp(tiny_encoder, RADIUS)
    with pytest.raises(BioclinError, match=r"adversarial = 2\.0: runs every batch .*bioclin train"):
        nlp.update(make_examples(nlp))
    config = load_config(ROOT / "configs" / "ner.cfg", {**settings, KEY: 1.0}, interpolate=True)
    out = io.StringIO()
    with pytest.raises(BioclinError, match="bioclin train"):
        spacy_train(init_nlp(config), tmp_path, stdout=out, stderr=out)


def test_a_frozen_encoder_needs_no_second_pass(tiny_encoder):
    nlp = make_nlp(tiny_encoder, RADIUS)
    before = embeddings(nlp).grad
    updates = RepeatedUpdates(nlp, nlp, ["transformer"])
    with pytest.raises(BioclinError, match="bioclin train"):  # as it is not frozen in this call
        updates.update(make_examples(nlp), losses={}, sgd=False)
    assert embeddings(nlp).grad is before is None


@pytest.mark.slow
def test_several_tasks(tmp_path, tiny_encoder):
    """The second pass moves the weights, and is no second batch in the losses of the tasks."""
    paths = write_two(tmp_path)
    heads = {"signs": make_ner("signs"), "drugs": make_ner("drugs")}
    tasks = {name: {"path": paths[name], "heads": [name], "weight": 1.0} for name in heads}
    evaluations, weights = [], []
    for radius in (0.0, RADIUS):
        short = {"training.max_steps": 1, "training.eval_frequency": 1}
        config = make_config(tiny_encoder, heads, tasks, {KEY: radius, **short})
        nlp, _ = run(config, tmp_path / str(radius))
        evaluations.append(srsly.read_json(tmp_path / str(radius) / "tasks.json"))
        weights.append(embeddings(nlp).detach().clone())
    assert not torch.equal(*weights)
    plain, both = ([row["tasks"] for row in report["evaluations"]] for report in evaluations)
    # After one update, whose first pass is the same.
    loss, again = plain[0]["drugs"]["loss"], both[0]["drugs"]["loss"]
    assert loss and loss == again and plain[1] != both[1]
