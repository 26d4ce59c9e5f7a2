"""What all trainings share that run on the Trainer of the transformers library."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import SequentialSampler
from transformers import (
    AutoTokenizer,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint
from transformers.utils import is_accelerate_available

from ..encoders.layers import use_fast_layers
from ..encoders.precision import choose_precision
from ..errors import BioclinError, first_line
from .settings import TrainerSettings


class SequentialTrainer(Trainer):
    """Trainer that takes the training data in order, since the data set is already shuffled."""

    def __init__(self, *args: Any, max_seconds: float = 0, **kwargs: Any) -> None:
        """Make the trainer.

        max_seconds (float): Stop with a checkpoint after this time; 0 for no limit.
        """
        super().__init__(*args, **kwargs)
        if max_seconds:
            self.add_callback(_StopInTime(max_seconds))

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return SequentialSampler(train_dataset or self.train_dataset)


class _StopInTime(TrainerCallback):
    def __init__(self, max_seconds: float) -> None:
        self.end = time.monotonic() + max_seconds

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if time.monotonic() > self.end:
            control.should_save = control.should_training_stop = True


def find_checkpoint(out: Path, *, resume: bool) -> str | None:
    """Find the last checkpoint in a folder.

    RETURNS (str | None): The checkpoint to resume from; None if there is none.
    RAISES (BioclinError): There is a checkpoint, but `resume` is False.
    """
    last = get_last_checkpoint(str(out)) if out.is_dir() else None
    if last and not resume:
        raise BioclinError(f"{out} has checkpoints: resume with --resume, or use a new folder")
    return last


def open_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """Open the tokenizer of an encoder, or one from `bioclin learn-vocabulary`.

    RAISES (BioclinError): It cannot be opened.
    """
    try:
        return AutoTokenizer.from_pretrained(name, use_fast=True)
    except (OSError, ValueError) as error:
        raise BioclinError(
            f"The tokenizer of {name} cannot be opened: give a folder of the transformers library "
            f"({first_line(error)})"
        ) from error


def set_up_layers(model: Any, dropout: float) -> Any:
    """Set the dropout of the layers, and switch to fast layers.

    Attention dropout is turned off, since it rules out torch's fast kernels. The config keeps its
    dropout, for fine-tuning.

    RETURNS (transformers.PreTrainedModel): The same model.
    """
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0
    use_fast_layers(model)
    return model


def make_training_arguments(
    out: Path, settings: TrainerSettings, *, every: int, **more: Any
) -> TrainingArguments:
    """Convert settings to arguments of the Trainer.

    every (int): Updates between two checkpoints.
    more (Any): Further arguments of the Trainer.
    RAISES (BioclinError): The library accelerate is not installed.
    """
    if not is_accelerate_available():
        raise BioclinError("The Trainer needs accelerate: pip install 'spacy-bioclin[pretrain]'")
    use_cpu = not torch.cuda.is_available()
    dtype = choose_precision(settings.precision, torch.device("cpu" if use_cpu else "cuda")).dtype
    return TrainingArguments(
        output_dir=str(out),
        max_steps=settings.steps,
        learning_rate=settings.learn_rate,
        lr_scheduler_type="linear",
        warmup_ratio=0.06,
        optim="adamw_torch_fused",
        weight_decay=0.01,
        logging_steps=max(1, every // 10),
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        remove_unused_columns=False,
        bf16=dtype == torch.bfloat16,
        fp16=dtype == torch.float16,
        use_cpu=use_cpu,
        seed=settings.seed,
        report_to="none",
        **more,
    )


def train(trainer: Trainer, settings: TrainerSettings, last: str | None) -> dict[str, Any]:
    """Train until the last step, or until the time is over.

    last (str | None): Checkpoint to resume from.
    RETURNS (dict): `finished`, `settings`, and `loss` as pairs of step and loss.
    """
    trainer.train(resume_from_checkpoint=last)
    log = trainer.state.log_history
    return {
        "finished": trainer.state.global_step >= settings.steps,
        "settings": asdict(settings),
        "loss": [[entry["step"], round(entry["loss"], 4)] for entry in log if "loss" in entry],
    }


def save_encoder(model: Any, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write encoder, head and tokenizer in the format of the transformers library."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
