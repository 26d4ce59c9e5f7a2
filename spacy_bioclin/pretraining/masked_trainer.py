"""The Trainer of masked language models: an exact mean over large batches, and a log of rates."""

import math
import statistics
import time
from typing import Any

from torch import Tensor

from ..errors import BioclinError
from .blocks import MaskedBlocks
from .large.lamb import Lamb
from .trainer import SequentialTrainer

MAX_LOSS = 700.0  # nats; the exponential of more is no number


class MaskedTrainer(SequentialTrainer):
    """Trainer of a `MaskedLM`. It logs rates, and means over the parts of the corpus.

    The loss of an update is the mean over all its predicted pieces, whatever the number of passes
    and processes, which do not have equally many.
    """

    flop_per_piece: float = 0.0
    matrix_flops: float = 0.0
    optimizer: Any
    _predicted_per_block: float = 1.0
    _since: tuple[float, int] | None = None

    def __init__(self, *args: Any, lamb: bool = False, **kwargs: Any) -> None:
        """Make the trainer.

        lamb (bool): Use LAMB instead of the optimizer of the arguments.
        """
        super().__init__(*args, **kwargs)
        self._lamb = lamb
        # Let the library count the predicted pieces of an update, over all passes and processes.
        self.model_accepts_loss_kwargs = True

    def create_optimizer(self) -> Any:
        """Make the optimizer. Biases and layer norms have no weight decay."""
        if self.optimizer is None and self._lamb:
            decayed = set(self.get_decay_parameter_names(self.model))
            groups: dict[bool, list[Any]] = {True: [], False: []}
            for name, weights in self.model.named_parameters():
                if weights.requires_grad:
                    groups[name in decayed].append(weights)
            self.optimizer = Lamb(
                [
                    {"params": groups[True], "weight_decay": self.args.weight_decay},
                    {"params": groups[False], "weight_decay": 0.0},
                ],
                lr=self.args.learning_rate,
                betas=(self.args.adam_beta1, self.args.adam_beta2),
                eps=self.args.adam_epsilon,
            )
        return super().create_optimizer()

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Compute the loss of one pass.

        num_items_in_batch (Tensor | None): Predicted pieces of the whole update; None in
            evaluation.
        RETURNS (Tensor | tuple): In training, what the pass adds to the mean of the update; in
            evaluation, the mean over its blocks of what each adds to the mean of all.
        RAISES (BioclinError): The transformers library is too old to count the pieces.
        """
        outputs = model(**inputs)
        loss, n_predicted = outputs["loss"], outputs["n_predicted"]
        if not model.training:
            n_blocks = len(inputs["labels"])
            loss = (loss * n_predicted).sum() / (n_blocks * self._predicted_per_block)
        else:
            counts_all = getattr(self.args, "average_tokens_across_devices", False)
            if num_items_in_batch is not None and (counts_all or self.args.world_size == 1):
                share = n_predicted / num_items_in_batch.sum()
                # The gradients of the processes are averaged.
                loss = (loss * share).sum() * self.accelerator.num_processes
            elif self.args.gradient_accumulation_steps * self.args.world_size > 1:
                raise BioclinError(
                    "Accumulated batches and several processes need a newer library: pip install "
                    "'transformers>=4.47'"
                )
        return (loss, outputs) if return_outputs else loss

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Evaluate, and log the mean over the parts of the corpus and its perplexity.

        The loss of a part is the mean over its predicted pieces, whatever the size of its batches.
        """
        parts: Any = self.eval_dataset
        blocks = parts[eval_dataset] if isinstance(eval_dataset, str) else eval_dataset
        if isinstance(blocks, MaskedBlocks):
            self._predicted_per_block = blocks.count_predicted() / len(blocks)
        metrics = super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)
        if metric_key_prefix == "eval":
            losses = {k: v for k, v in metrics.items() if k.endswith("_loss")}
            mean = {"eval_loss": statistics.mean(losses.values())}
            self.log({**mean, "eval_perplexity": math.exp(min(mean["eval_loss"], MAX_LOSS))})
            metrics |= mean
        self._since = None  # do not count the evaluation as training time
        return metrics

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log, with pieces per second and their share of what the device can do."""
        if "loss" in logs:
            now = (time.perf_counter(), self.state.global_step)
            if self._since is not None and now[1] > self._since[1]:
                n_pieces = (now[1] - self._since[1]) * self.pieces_per_update
                rate = n_pieces / (now[0] - self._since[0])
                logs["pieces_per_second"] = round(rate, 1)
                logs["matrix_share"] = round(rate * self.flop_per_piece / self.matrix_flops, 3)
            self._since = now
        super().log(logs, start_time)

    @property
    def pieces_per_update(self) -> int:
        """Number of pieces per update, over all devices."""
        dataset: Any = self.train_dataset
        length = dataset.blocks[0].shape[1]
        passes = self.args.gradient_accumulation_steps
        return self.args.train_batch_size * self.args.world_size * passes * length
