"""Train an encoder to predict masked pieces, from scratch or continued (Devlin et al. 2019; Liu et
al. 2019; Lewis et al. 2020). It runs on one CPU or GPU, or on several GPUs with `torchrun`."""

import math
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast, TrainingArguments

from ..encoders import loading
from ..encoders.precision import choose_precision
from ..errors import BioclinError
from .blocks import MaskedBlocks, prepare_blocks
from .masking import NO_LOSS, Masking, describe_vocabulary
from .output_scale import scale_output
from .record import flop_per_piece, matrix_flops, summarize_log, write_record
from .settings import PretrainSettings
from .text.corpus import check_shares
from .trainer import (
    SequentialTrainer,
    make_training_arguments,
    open_tokenizer,
    open_training,
    save_encoder,
    set_up_layers,
    train,
)
from .warm_start import change_vocabulary, keep_lowest_layers

# Blocks of held-out text per language, to measure the perplexity.
N_HELD_OUT = 128
HELD_OUT_SEED = 1_000_003
MAX_LOSS = 700.0  # nats; the exponential of more is no number


class MaskedLM(nn.Module):
    """Encoder and masked-language-model head.

    The head computes logits only at the pieces to predict, which is a seventh of its work.
    """

    def __init__(self, pretrained: Any) -> None:
        super().__init__()
        self.pretrained = pretrained

    def hidden(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Compute the vectors of the last layer, (n_blocks, length, width)."""
        # Attention is faster without a mask, and few batches have padding.
        mask = None if bool(attention_mask.all()) else attention_mask
        return self.pretrained.base_model(input_ids=input_ids, attention_mask=mask)[0]

    def logits(self, vectors: Tensor) -> Tensor:
        """Compute the logits of some vectors, (n_vectors, vocab_size).

        The head is all modules other than the encoder: `cls` (BERT), `lm_head` (RoBERTa), or two
        modules in sequence (ELECTRA, ModernBERT).
        """
        encoder = self.pretrained.base_model
        for module in self.pretrained.children():
            if module is not encoder:
                vectors = module(vectors)
        return vectors

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        """Compute the loss of a batch.

        input_ids, attention_mask, labels (Tensor): (n_blocks, length) int64; labels are `NO_LOSS`
            where nothing is predicted.
        RETURNS (dict[str, Tensor]): "loss", mean cross-entropy in nats.
        """
        chosen = labels != NO_LOSS
        with end_at(self.pretrained.base_model, chosen):
            vectors = self.hidden(input_ids, attention_mask)
        if vectors.ndim > chosen.ndim:  # of all pieces
            vectors = vectors[chosen]
        logits = self.logits(vectors)
        return {"loss": nn.functional.cross_entropy(logits.float(), labels[chosen])}


@contextmanager
def end_at(encoder: nn.Module, chosen: Tensor) -> Iterator[None]:
    """Run the feed-forward part of the top layer on some pieces alone: no later layer needs the
    others. The encoder then returns the vectors of these pieces, (n_chosen, width).

    An encoder without a `feed_forward_chunk` in its top layer is left as it is.

    chosen (Tensor): Pieces to predict, (n_blocks, length) bool.
    """
    layers = [module for module in encoder.modules() if hasattr(module, "feed_forward_chunk")]
    if not layers:
        yield
        return
    top: Any = layers[-1]
    whole = top.feed_forward_chunk
    top.feed_forward_chunk = lambda vectors: whole(vectors[chosen])
    try:
        yield
    finally:
        del top.feed_forward_chunk


class MaskedTrainer(SequentialTrainer):
    """Trainer that logs rates, and means over the languages."""

    flop_per_piece: float = 0.0
    matrix_flops: float = 0.0
    _since: tuple[float, int] | None = None

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Evaluate, and log the mean over the languages and its perplexity."""
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
        return self.args.train_batch_size * self.args.world_size * length


def pretrain(
    corpus: Path,
    out: Path,
    *,
    start_from: str,
    tokenizer: str | None,
    layers: int | None,
    settings: PretrainSettings,
    resume: bool,
) -> dict[str, Any]:
    """Train, and write the best encoder on held-out text.

    corpus (Path): Folder with LANG.train.txt and LANG.held-out.txt of `bioclin clean-text`.
    out (Path): Folder for checkpoints, `encoder` (in the format of the transformers library), and
        pretraining.json.
    start_from (str): Folder or hub name of an encoder, pretrained or random.
    tokenizer (str | None): Folder of another vocabulary for the encoder.
    layers (int | None): Keep only this many of the lowest layers.
    resume (bool): Resume from the last checkpoint, with the same losses as without interruption.
    RETURNS (dict): The content of pretraining.json.
    RAISES (BioclinError): See `open_training`.
    """
    read = {"corpus": corpus, "start_from": start_from, "tokenizer": tokenizer}
    with open_training(out, settings, read, {"layers": layers}, resume=resume) as last:
        pieces = open_tokenizer(tokenizer or start_from)
        torch.manual_seed(settings.seed)
        model = open_model(start_from, pieces if tokenizer else None, layers, settings.dropout)
        trainer = make_trainer(MaskedLM(model), pieces, corpus, out, settings)
        about = {"start_from": Path(start_from).name}
        return train_masked(trainer, pieces, settings, out / "pretraining.json", about, last)


def train_masked(
    trainer: MaskedTrainer,
    tokenizer: PreTrainedTokenizerFast,
    settings: PretrainSettings,
    path: Path,
    about: Mapping[str, Any],
    last: str | None,
) -> dict[str, Any]:
    """Train, and write the record, and beside it the best encoder on held-out text.

    path (Path): The record.
    about (Mapping): First entries of the record.
    last (str | None): Checkpoint to resume from.
    RETURNS (dict): The record.
    """
    trained = train(trainer, settings, last)
    model: Any = trainer.model
    record = {
        **about,
        "weights": model.pretrained.num_parameters(),
        "vocabulary": len(tokenizer),
        **trained,
        **summarize_log(trainer.state.log_history, trainer.matrix_flops),
    }
    if trainer.is_world_process_zero():
        write_record(record, path)
        if record["finished"]:
            held_out = (ids for part in trainer.eval_dataset.values() for ids in part.blocks)
            scale_output(model.pretrained, held_out)
            save_encoder(model.pretrained, tokenizer, path.parent / "encoder")
    return record


def open_model(
    start_from: str,
    tokenizer: PreTrainedTokenizerFast | None,
    layers: int | None,
    dropout: float,
) -> Any:
    """Open an encoder for training. See `pretrain`.

    RETURNS (transformers.PreTrainedModel): Encoder and head, in fp32.
    """
    if tokenizer is None:
        model, _ = loading.open_model(AutoModelForMaskedLM, start_from)
        if layers is not None:
            keep_lowest_layers(model, layers)
    else:
        model = change_vocabulary(start_from, tokenizer, layers=layers)
    return set_up_layers(model, dropout)


def make_trainer(
    model: MaskedLM,
    tokenizer: PreTrainedTokenizerFast,
    corpus: Path,
    out: Path,
    settings: PretrainSettings,
) -> MaskedTrainer:
    """Make a trainer for the blocks of a corpus."""
    longest = loading.max_window(tokenizer, model.pretrained.base_model)
    if settings.length > longest:
        raise BioclinError(
            f"length = {settings.length}: the encoder reads {longest} pieces at most"
        )
    args = _make_arguments(out, settings)
    with args.main_process_first(desc="blocks"):
        blocks = prepare_blocks(corpus, tokenizer, out / "blocks", length=settings.length)
    vocabulary = describe_vocabulary(tokenizer)
    masking = Masking(settings.mask_rate, settings.whole_words, settings.seed)
    train_blocks = {lang: ids for (lang, split), ids in blocks.items() if split == "train"}
    shares = check_shares(settings.shares, train_blocks)
    n_blocks = settings.steps * settings.batch_pieces // settings.length
    held_out_masking = masking._replace(seed=HELD_OUT_SEED)
    trainer = MaskedTrainer(
        model=model,
        args=args,
        train_dataset=MaskedBlocks(train_blocks, shares, n_blocks, vocabulary, masking),
        eval_dataset={
            lang: MaskedBlocks(
                {lang: ids}, {lang: 1.0}, min(len(ids), N_HELD_OUT), vocabulary, held_out_masking
            )
            for (lang, split), ids in blocks.items()
            if split == "held-out"
        },
        max_seconds=settings.max_seconds,
    )
    trainer.flop_per_piece = flop_per_piece(model, settings.length, settings.mask_rate)
    width = model.pretrained.config.hidden_size
    dtype = choose_precision(settings.precision, args.device).dtype
    trainer.matrix_flops = matrix_flops(width, dtype, args.device)
    return trainer


def _make_arguments(out: Path, settings: PretrainSettings) -> TrainingArguments:
    args = make_training_arguments(
        out,
        settings,
        every=settings.every,
        adam_beta2=0.98,
        adam_epsilon=1e-6,
        eval_strategy="steps",
        eval_steps=settings.every,
        eval_on_start=True,
        save_safetensors=False,  # the head shares the vectors of the pieces
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        prediction_loss_only=True,
    )
    blocks, rest = divmod(settings.batch_pieces, settings.length * args.world_size)
    if not blocks or rest:
        raise BioclinError(
            f"batch_pieces = {settings.batch_pieces}: want a multiple of length x processes = "
            f"{settings.length} x {args.world_size}"
        )
    per_device = max(1, args.n_gpu)  # the Trainer multiplies by the GPUs of a process
    args.per_device_train_batch_size = args.per_device_eval_batch_size = blocks // per_device
    return args
