"""A run with a strategy that was killed and goes on gives the weights of one that was not."""

import pytest

from spacy_bioclin.training.loop import LAST
from tests.training.test_resume import run, settings  # noqa: F401

STRATEGIES = {
    "frozen": {"freeze_layers": 2},
    "half frozen": {
        "freeze_layers": 1,
        "layer_decay": 0.9,
        "reinit_layers": 1,
        "bias_correction": False,
    },
    "unfrozen step by step": {"unfreeze_steps": 2, "bias_correction": False},
    "near the pretrained weights": {"mixout": 0.5, "pretrained_decay": 1.0},
    "adversarial": {"adversarial": 1.0},
    "LoRA": {"lora_rank": 2},
    "LoRA step by step": {"lora_rank": 2, "unfreeze_steps": 2},
}


# Of the others, one is enough to see that the state of a strategy is stored at all.
QUICK = "unfrozen step by step"
NAMES = [
    name if name == QUICK else pytest.param(name, marks=pytest.mark.slow) for name in STRATEGIES
]


def read_weights(folder):
    return [(folder / pipe / "model").read_bytes() for pipe in ("transformer", "ner")]


@pytest.mark.parametrize("name", NAMES)
def test_resumed_run_equals_one_that_was_not_stopped(tmp_path, settings, name):  # noqa: F811
    overrides = {**settings, "training.optimizer.learn_rate.warmup_steps": 1}
    overrides |= {"training.max_steps": 5, "training.eval_frequency": 3}
    overrides["components.transformer.model.strategy"] = STRATEGIES[name]
    run(overrides, tmp_path / "whole")
    run(overrides, tmp_path / "killed", kill_at=4)
    begun = read_weights(tmp_path / "killed" / LAST)
    run(overrides, tmp_path / "killed", resume=True)
    expected = read_weights(tmp_path / "whole" / LAST)
    assert read_weights(tmp_path / "killed" / LAST) == expected != begun
