"""A run with a strategy that was killed and goes on gives the weights of one that was not."""

import pytest
import torch

from spacy_bioclin.training.loop import LAST
from tests.training.test_resume import run, settings, weights  # noqa: F401

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


# The others take two seconds each.
QUICK = {"frozen", "unfrozen step by step"}
NAMES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in STRATEGIES
]


@pytest.mark.parametrize("name", NAMES)
def test_resumed_run_equals_one_that_was_not_stopped(tmp_path, settings, name):  # noqa: F811
    overrides = {**settings, "training.optimizer.learn_rate.warmup_steps": 1}
    overrides["components.transformer.model.strategy"] = STRATEGIES[name]
    run(overrides, tmp_path / "whole")
    run(overrides, tmp_path / "killed", kill_at=4)
    run(overrides, tmp_path / "killed", resume=True)
    expected, got = weights(tmp_path / "whole" / LAST), weights(tmp_path / "killed" / LAST)
    assert expected.keys() == got.keys()
    for key, tensor in expected.items():
        assert torch.equal(tensor, got[key]), key
