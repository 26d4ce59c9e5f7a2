"""What all trainings share that run on the Trainer of the transformers library."""

import json
import logging
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import SequentialSampler
from transformers import (
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from transformers.utils import is_accelerate_available

from ..encoders import files
from ..encoders.layers import use_fast_layers
from ..encoders.precision import choose_precision
from ..errors import BioclinError, first_line
from ..files import hash_file, hash_files
from ..outputs import open_folder, remove, write_atomic
from ..runs import is_first_process, open_run
from .settings import PretrainSettings, TrainerSettings

LOGGER = logging.getLogger(__name__)
CHECKPOINT = re.compile(rf"{PREFIX_CHECKPOINT_DIR}-(\d+)")
OPTIMIZERS = ("adamw", "lamb")
# File in each checkpoint, written last: the hashes of the others.
WHOLE = "whole.json"


class SequentialTrainer(Trainer):
    """Trainer that takes the training data in order, since the data set is already shuffled."""

    def __init__(self, *args: Any, max_seconds: float = 0, **kwargs: Any) -> None:
        """Make the trainer.

        max_seconds (float): Stop with a checkpoint after this time; 0 for no limit.
        """
        super().__init__(*args, **kwargs)
        self.add_callback(_MarkWhole())
        self.add_callback(_StayHere())
        if max_seconds:
            self.add_callback(_StopInTime(max_seconds))

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log, and stop a training that has diverged.

        RAISES (BioclinError): A loss is no longer a finite number.
        """
        for name, value in logs.items():
            if name.endswith("loss") and not math.isfinite(value):
                raise BioclinError(
                    f"training diverged: {name} is {value} after update {self.state.global_step}; "
                    "start again in a new folder with a lower --learn-rate"
                )
        super().log(logs, start_time)

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return SequentialSampler(train_dataset or self.train_dataset)


class _StopInTime(TrainerCallback):
    def __init__(self, max_seconds: float) -> None:
        self.end = time.monotonic() + max_seconds

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if time.monotonic() > self.end:
            control.should_save = control.should_training_stop = True


class _MarkWhole(TrainerCallback):
    """Record the hashes of each checkpoint once all processes have written their part."""

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if args.world_size > 1:
            torch.distributed.barrier()
            # The library may look for the folder before the first process has made it. A process
            # that knows no best checkpoint would then keep the others waiting at the end.
            best_step = getattr(state, "best_global_step", None)
            best = Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{best_step}")
            if best.is_dir():
                state.best_model_checkpoint = str(best)
        if state.is_world_process_zero:
            folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
            hashes = {file.name: hash_file(file) for file in folder.iterdir() if file.is_file()}
            write_atomic(folder / WHOLE, json.dumps(hashes, indent=2) + "\n")


class _StayHere(TrainerCallback):
    """Let a resumed run find its best checkpoint although the folder was moved."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.best_model_checkpoint:
            state.best_model_checkpoint = str(
                Path(args.output_dir) / Path(state.best_model_checkpoint).name
            )


@contextmanager
def open_training(
    out: Path,
    settings: TrainerSettings,
    read: Mapping[str, Any],
    more: Mapping[str, Any],
    *,
    resume: bool,
) -> Iterator[str | None]:
    """Work in the folder of a training, see `open_run`; in one of the processes of `torchrun`.

    read (Mapping[str, Any]): What is read, by its role: folders, or names on the hub.
    more (Mapping[str, Any]): What else the result depends on, as JSON.
    YIELDS (str | None): The checkpoint to resume from; None if there is none.
    RAISES (BioclinError): The folder holds something else, or a run that is not to be resumed.
    """
    if not is_first_process():
        yield find_checkpoint(out)
        _end_together()
        return
    fixed = {key: value for key, value in asdict(settings).items() if key != "max_seconds"}
    folders = {role: Path(name) for role, name in read.items() if name and Path(name).exists()}
    made_from = {
        **{role: str(name) if name else None for role, name in read.items()},
        **{role: hash_files(folder) for role, folder in folders.items()},
        **more,
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        **fixed,
    }
    with open_run(out, made_from, inputs=folders.values(), resume=resume):
        yield find_checkpoint(out)
    _end_together()


def _end_together() -> None:
    """Let the processes of `torchrun` wait for each other, and close their connections.

    A process that ends while another one is still connected to it can abort at its exit."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def find_checkpoint(out: Path) -> str | None:
    """Find the last checkpoint in a folder that is whole. What a kill has cut short is removed.

    RETURNS (str | None): The checkpoint to resume from; None if there is none.
    """
    found = {
        int(match[1]): path
        for path in (out.iterdir() if out.is_dir() else ())
        if (match := CHECKPOINT.fullmatch(path.name)) and path.is_dir()
    }
    for step in sorted(found, reverse=True):
        if _is_whole(found[step]):
            return str(found[step])
        if is_first_process():
            LOGGER.warning(f"{found[step]}: is damaged or was cut short, so it is removed")
            remove(found[step])
    return None


def _is_whole(folder: Path) -> bool:
    try:
        hashes = json.loads((folder / WHOLE).read_text("utf-8"))
        return bool(hashes) and all(
            hash_file(folder / Path(name).name) == known for name, known in hashes.items()
        )
    except (OSError, ValueError, AttributeError):
        return False


def open_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """Open the tokenizer of an encoder, or one from `bioclin learn-vocabulary`.

    RAISES (BioclinError): It cannot be opened.
    """
    try:
        return files.open_tokenizer(name)
    except (OSError, ValueError) as error:
        raise BioclinError(
            f"The tokenizer of {name} cannot be opened: give a folder of the transformers library "
            f"({first_line(error)})"
        ) from error


# Settings of an attention layer in the transformers library, by architecture.
ATTENTION = ("query", "query_proj", "q_lin", "Wqkv")
ATTENTION_DROPOUT = ("dropout_prob", "attention_dropout")


def set_up_layers(model: Any, dropout: float, attention_dropout: float = 0.0) -> Any:
    """Set the dropout of the layers, and switch to fast layers.

    Dropout of the attention weights rules out some of torch's fast kernels. The config keeps its
    dropout, for fine-tuning.

    RETURNS (transformers.PreTrainedModel): The same model.
    """
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
    for module in model.modules():
        if any(hasattr(module, name) for name in ATTENTION):
            for name in ATTENTION_DROPOUT:
                if isinstance(getattr(module, name, None), float):
                    setattr(module, name, attention_dropout)
            if isinstance(getattr(module, "dropout", None), nn.Dropout):
                module.dropout.p = attention_dropout
    use_fast_layers(model)
    return model


def split_warmup(warmup: float, steps: int) -> dict[str, Any]:
    """Convert a warm-up in steps, or as a share of them, to arguments of the Trainer.

    steps (int): All steps.
    RAISES (BioclinError): It is negative, a number of steps with a fraction, or does not end.
    """
    if warmup < 0 or (warmup >= 1 and warmup != int(warmup)):
        raise BioclinError(
            f"warmup = {warmup}: want a share of the steps, from 0 up to below 1, or a whole "
            "number of steps"
        )
    if warmup >= max(steps, 1):
        raise BioclinError(
            f"warmup = {warmup:g} and steps = {steps}: want fewer steps of warm-up than steps, or "
            "a share below 1"
        )
    return {"warmup_ratio": warmup} if warmup < 1 else {"warmup_steps": int(warmup)}


def schedule_arguments(decay_power: float) -> dict[str, Any]:
    """Convert the power of the decay of the learning rate to arguments of the Trainer."""
    if decay_power == 1:
        return {"lr_scheduler_type": "linear"}
    return {
        "lr_scheduler_type": "polynomial",
        "lr_scheduler_kwargs": {"power": decay_power, "lr_end": 0.0},
    }


def check_optimizer(settings: PretrainSettings) -> None:
    """Check the settings of the optimizer.

    RAISES (BioclinError): One is out of its range.
    """
    if settings.optimizer not in OPTIMIZERS:
        raise BioclinError(
            f"optimizer = {settings.optimizer!r}: it must be one of {', '.join(OPTIMIZERS)}"
        )
    for name in ("beta1", "beta2", "dropout", "attention_dropout"):
        if not 0 <= getattr(settings, name) < 1:
            raise BioclinError(f"{name} = {getattr(settings, name)}: want 0 up to below 1")
    for name in ("epsilon", "weight_decay", "clip", "batch_sequences"):
        if getattr(settings, name) < 0:
            raise BioclinError(f"{name} = {getattr(settings, name)}: want 0 or more")
    if settings.decay_power <= 0:
        raise BioclinError(f"decay_power = {settings.decay_power}: want a number above 0")


def make_training_arguments(
    out: Path, settings: TrainerSettings, *, every: int, **more: Any
) -> TrainingArguments:
    """Convert settings to arguments of the Trainer.

    every (int): Updates between two checkpoints.
    more (Any): Further arguments of the Trainer, which win over these.
    RAISES (BioclinError): The library accelerate is not installed, or a setting is invalid.
    """
    warmup = split_warmup(settings.warmup, settings.steps)
    if not is_accelerate_available():
        raise BioclinError("The Trainer needs accelerate: pip install 'spacy-bioclin[pretrain]'")
    use_cpu = not torch.cuda.is_available()
    dtype = choose_precision(settings.precision, torch.device("cpu" if use_cpu else "cuda")).dtype
    arguments: dict[str, Any] = {
        "output_dir": str(out),
        "max_steps": settings.steps,
        "learning_rate": settings.learn_rate,
        "lr_scheduler_type": "linear",
        **warmup,
        "optim": "adamw_torch_fused",
        "weight_decay": 0.01,
        "logging_steps": max(1, every // 10),
        "save_strategy": "steps",
        "save_steps": every,
        "save_total_limit": 2,
        "remove_unused_columns": False,
        "bf16": dtype == torch.bfloat16,
        "fp16": dtype == torch.float16,
        "use_cpu": use_cpu,
        "seed": settings.seed,
        "logging_nan_inf_filter": False,  # it would hide that a training has diverged
        "report_to": "none",
    }
    # The library would read the number format of an earlier training of this process from here.
    os.environ.pop("ACCELERATE_MIXED_PRECISION", None)
    return TrainingArguments(**{**arguments, **more})


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
    with open_folder(folder) as made:
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
