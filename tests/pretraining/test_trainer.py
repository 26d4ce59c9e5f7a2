"""Settings become arguments of the Trainer."""

import os
from pathlib import Path

from spacy_bioclin.pretraining.settings import TrainerSettings
from spacy_bioclin.pretraining.trainer import make_training_arguments


def test_a_training_does_not_take_the_number_format_of_an_earlier_one(tmp_path: Path) -> None:
    for precision in ("bf16", "fp32"):
        settings = TrainerSettings(precision=precision)
        arguments = make_training_arguments(tmp_path, settings, every=1)
        assert arguments.bf16 == (precision == "bf16")
    assert os.environ["ACCELERATE_MIXED_PRECISION"] == "no"
