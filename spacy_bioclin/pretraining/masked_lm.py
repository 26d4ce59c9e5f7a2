"""Train an encoder to predict masked pieces, from scratch or continued (Devlin et al. 2019; Liu et
al. 2019; Lewis et al. 2020). It runs on one CPU or GPU, or on several GPUs with `torchrun`."""

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
from .large.batches import divide_batch
from .masked_trainer import MaskedTrainer
from .masking import NO_LOSS, Masking, describe_vocabulary
from .output_scale import scale_output
from .record import flop_per_piece, matrix_flops, summarize_log, write_record
from .settings import PretrainSettings
from .text.corpus import resolve_shares
from .trainer import (
    check_optimizer,
    make_training_arguments,
    open_tokenizer,
    open_training,
    save_encoder,
    schedule_arguments,
    set_up_layers,
    train,
)
from .warm_start import change_vocabulary, keep_lowest_layers

# Lets the library count the predicted pieces of all processes; versions up to 4.46 cannot.
COUNT_OVER_PROCESSES = {
    name: True
    for name in ("average_tokens_across_devices",)
    if name in TrainingArguments.__dataclass_fields__
}
# Blocks of held-out text per part of the corpus, to measure the perplexity.
N_HELD_OUT = 128
HELD_OUT_SEED = 1_000_003


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
        RETURNS (dict[str, Tensor]): "loss", mean cross-entropy in nats; "n_predicted", number of
            pieces to predict.
        """
        chosen = labels != NO_LOSS
        with end_at(self.pretrained.base_model, chosen):
            vectors = self.hidden(input_ids, attention_mask)
        if vectors.ndim > chosen.ndim:  # of all pieces
            vectors = vectors[chosen]
        logits = self.logits(vectors)
        loss = nn.functional.cross_entropy(logits.float(), labels[chosen])
        return {"loss": loss, "n_predicted": chosen.sum()}


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

    corpus (Path): Folder with PART.train.txt and PART.held-out.txt of `bioclin clean-text`.
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
        model = open_model(
            start_from,
            pieces if tokenizer else None,
            layers,
            settings.dropout,
            settings.attention_dropout,
        )
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
    attention_dropout: float = 0.0,
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
    return set_up_layers(model, dropout, attention_dropout)


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
    train_blocks = {part: ids for (part, split), ids in blocks.items() if split == "train"}
    sizes = {part: len(ids) for part, ids in train_blocks.items()}
    shares = resolve_shares(settings.shares, sizes, balance=settings.balance)
    n_blocks = settings.steps * settings.batch_pieces // settings.length
    held_out_masking = masking._replace(seed=HELD_OUT_SEED)
    held_out = {
        part: MaskedBlocks(
            {part: ids}, {part: 1.0}, min(len(ids), N_HELD_OUT), vocabulary, held_out_masking
        )
        for (part, split), ids in blocks.items()
        if split == "held-out"
    }
    if args.world_size > 1:
        # Otherwise the library fills the last batches with blocks that then count twice.
        sizes = {part: len(dataset) for part, dataset in held_out.items()}
        args.per_device_eval_batch_size = next(
            n
            for n in range(args.per_device_eval_batch_size, 0, -1)
            if n == 1 or not any(size % (n * args.world_size) for size in sizes.values())
        )
    trainer = MaskedTrainer(
        model=model,
        args=args,
        train_dataset=MaskedBlocks(train_blocks, shares, n_blocks, vocabulary, masking),
        eval_dataset=held_out,
        max_seconds=settings.max_seconds,
        lamb=settings.optimizer == "lamb",
    )
    trainer.flop_per_piece = flop_per_piece(model, settings.length, settings.mask_rate)
    width = model.pretrained.config.hidden_size
    dtype = choose_precision(settings.precision, args.device).dtype
    trainer.matrix_flops = matrix_flops(width, dtype, args.device)
    return trainer


def _make_arguments(out: Path, settings: PretrainSettings) -> TrainingArguments:
    check_optimizer(settings)
    args = make_training_arguments(
        out,
        settings,
        every=settings.every,
        adam_beta1=settings.beta1,
        adam_beta2=settings.beta2,
        adam_epsilon=settings.epsilon,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.clip,
        **schedule_arguments(settings.decay_power),
        **COUNT_OVER_PROCESSES,
        eval_strategy="steps",
        eval_steps=settings.every,
        eval_on_start=True,
        save_safetensors=False,  # the head shares the vectors of the pieces
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        prediction_loss_only=True,
    )
    per_device = max(1, args.n_gpu)  # the Trainer multiplies by the GPUs of a process
    division = divide_batch(
        settings.batch_pieces,
        settings.length,
        device_pieces=settings.device_pieces,
        n_processes=args.world_size,
        n_gpus=per_device,
    )
    at_once = max(1, division.at_once // per_device)
    args.per_device_train_batch_size = args.per_device_eval_batch_size = at_once
    args.gradient_accumulation_steps = division.passes
    return args
