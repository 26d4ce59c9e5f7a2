"""Masked-language-model training of an encoder, from scratch or continued (Devlin et al. 2019; Liu
et al. 2019; Lewis et al. 2020), on the Trainer of the transformers library: one CPU, one GPU, or
many with `torchrun`."""

import math
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint
from transformers.utils import is_accelerate_available

from ..encoders.layers import use_fast_layers
from ..encoders.loading import max_window, quiet
from ..encoders.precision import choose_precision
from ..errors import BioclinError
from .blocks import NO_LOSS, MaskedBlocks, Masking, describe_vocabulary, prepare_blocks
from .record import flop_per_piece, matrix_flops, measured, write_record
from .settings import Settings
from .text.corpus import check_shares
from .warm_start import change_vocabulary, keep_lowest_layers

# Blocks of held-out text per language that perplexity is measured on.
N_HELD_OUT = 128
HELD_OUT_SEED = 1_000_003


class MaskedLM(nn.Module):
    """Encoder and masked-language-model head; the head computes logits only where a piece is to be
    predicted, which is a seventh of the work."""

    def __init__(self, pretrained: Any) -> None:
        super().__init__()
        self.pretrained = pretrained

    def hidden(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """RETURNS (Tensor): (n_blocks, length, width), the last layer's vectors."""
        # Attention kernels without a mask are faster, and few batches hold padding.
        mask = None if bool(attention_mask.all()) else attention_mask
        return self.pretrained.base_model(input_ids=input_ids, attention_mask=mask)[0]

    def logits(self, vectors: Tensor) -> Tensor:
        """RETURNS (Tensor): (n_vectors, vocab_size). Whatever stands beside the encoder is the
        head: `cls` (BERT), `lm_head` (RoBERTa), two modules in a row (ELECTRA, ModernBERT)."""
        encoder = self.pretrained.base_model
        for module in self.pretrained.children():
            if module is not encoder:
                vectors = module(vectors)
        return vectors

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        """
        input_ids, attention_mask, labels (Tensor): (n_blocks, length) int64; labels are `NO_LOSS`
            where nothing is predicted.
        RETURNS (dict[str, Tensor]): "loss", mean cross-entropy in nats.
        """
        chosen = labels != NO_LOSS
        logits = self.logits(self.hidden(input_ids, attention_mask)[chosen])
        return {"loss": nn.functional.cross_entropy(logits.float(), labels[chosen])}


class MaskedTrainer(Trainer):
    """Takes the blocks in their order, and adds rates and the mean over languages to its log."""

    flop_per_piece: float = 0.0
    matrix_flops: float = 0.0
    _since: tuple[float, int] | None = None

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return torch.utils.data.SequentialSampler(train_dataset or self.train_dataset)

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        metrics = super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)
        if metric_key_prefix == "eval":
            losses = {k: v for k, v in metrics.items() if k.endswith("_loss")}
            mean = {"eval_loss": statistics.mean(losses.values())}
            self.log({**mean, "eval_perplexity": math.exp(mean["eval_loss"])})
            metrics |= mean
        self._since = None  # the time of an evaluation is not training time
        return metrics

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
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
        dataset: Any = self.train_dataset
        length = dataset.blocks[0].shape[1]
        return self.args.train_batch_size * self.args.world_size * length


class StopInTime(TrainerCallback):
    """Stops with a checkpoint when the time is over: a lent machine can be used in parts."""

    def __init__(self, max_seconds: float) -> None:
        self.end = time.monotonic() + max_seconds

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if time.monotonic() > self.end:
            control.should_save = control.should_training_stop = True


def pretrain(
    corpus: Path,
    out: Path,
    *,
    start_from: str,
    tokenizer: str | None,
    layers: int | None,
    settings: Settings,
    resume: bool,
) -> dict[str, Any]:
    """Train, and write the best encoder on held-out text.

    corpus (Path): Folder with LANG.train.txt and LANG.held-out.txt of `bioclin clean-text`.
    out (Path): Gets checkpoints, `encoder` (what the transformers library and our pipelines open),
        and pretraining.json.
    start_from (str): Folder or hub name of an encoder, pretrained or random.
    tokenizer (str | None): Folder of another vocabulary to give it.
    layers (int | None): Keep only that many of its lowest layers.
    resume (bool): Go on from the last checkpoint, with the losses of a run that never stopped.
    RETURNS (dict): What pretraining.json says.
    """
    last = find_checkpoint(out, resume=resume)
    pieces = open_tokenizer(tokenizer or start_from)
    torch.manual_seed(settings.seed)
    model = open_model(start_from, pieces if tokenizer else None, layers, settings.dropout)
    trainer = make_trainer(MaskedLM(model), pieces, corpus, out, settings)
    about = {"start_from": Path(start_from).name}
    return train(trainer, pieces, settings, out / "pretraining.json", about, last)


def find_checkpoint(out: Path, *, resume: bool) -> str | None:
    """RETURNS (str | None): The last checkpoint of the folder, to go on from.
    RAISES (BioclinError): If there is one, and nobody asked to go on."""
    last = get_last_checkpoint(str(out)) if out.is_dir() else None
    if last and not resume:
        raise BioclinError(f"{out} holds checkpoints: go on with --resume, or name a new folder")
    return last


def open_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """RETURNS (PreTrainedTokenizerFast): Of an encoder, or of `bioclin learn-vocabulary`.
    RAISES (BioclinError): If it cannot be opened."""
    try:
        return AutoTokenizer.from_pretrained(name, use_fast=True)
    except (OSError, ValueError) as error:
        raise BioclinError(
            f"The tokenizer of {name} cannot be opened: give a folder of the transformers library "
            f"({str(error).splitlines()[0]})"
        ) from error


def train(
    trainer: MaskedTrainer,
    tokenizer: PreTrainedTokenizerFast,
    settings: Settings,
    path: Path,
    about: Mapping[str, Any],
    last: str | None,
) -> dict[str, Any]:
    """Train, and write the record, and beside it the best encoder on held-out text.

    path (Path): Of the record.
    about (Mapping): What the record says first.
    last (str | None): Checkpoint to go on from.
    RETURNS (dict): The record.
    """
    trainer.train(resume_from_checkpoint=last)
    done = trainer.state.global_step >= settings.steps
    model: Any = trainer.model
    record = {
        **about,
        "weights": sum(weight.numel() for weight in model.pretrained.parameters()),
        "vocabulary": len(tokenizer),
        "finished": done,
        "settings": {**settings._asdict(), "shares": dict(settings.shares)},
        **measured(trainer.state.log_history, trainer.matrix_flops),
    }
    if trainer.is_world_process_zero():
        write_record(record, path)
        if done:
            save_encoder(model.pretrained, tokenizer, path.parent / "encoder")
    return record


def open_model(
    start_from: str,
    tokenizer: PreTrainedTokenizerFast | None,
    layers: int | None,
    dropout: float,
) -> Any:
    """RETURNS (transformers.PreTrainedModel): Encoder and head, in fp32, ready to train."""
    if tokenizer is None:
        with quiet():
            model = AutoModelForMaskedLM.from_pretrained(start_from, torch_dtype=torch.float32)
        if layers is not None:
            keep_lowest_layers(model, layers)
    else:
        model = change_vocabulary(start_from, tokenizer, layers=layers)
    return set_up_layers(model, dropout)


def set_up_layers(model: Any, dropout: float) -> Any:
    """RETURNS (transformers.PreTrainedModel): The model, without attention dropout (it keeps torch
    from its fast kernels); its config keeps the dropout for fine-tuning."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0
    use_fast_layers(model)
    return model


def make_trainer(
    model: MaskedLM,
    tokenizer: PreTrainedTokenizerFast,
    corpus: Path,
    out: Path,
    settings: Settings,
) -> MaskedTrainer:
    """RETURNS (MaskedTrainer): With the blocks of the corpus, ready to train."""
    longest = max_window(tokenizer, model.pretrained.base_model)
    if settings.length > longest:
        raise BioclinError(
            f"length = {settings.length}: the encoder reads {longest} pieces at most"
        )
    args = training_arguments(out, settings)
    with args.main_process_first(desc="blocks"):
        blocks = prepare_blocks(corpus, tokenizer, out / "blocks", length=settings.length)
    vocabulary = describe_vocabulary(tokenizer)
    masking = Masking(settings.mask_rate, settings.whole_words, settings.seed)
    train = {lang: ids for (lang, split), ids in blocks.items() if split == "train"}
    shares = check_shares(settings.shares, train)
    n_blocks = settings.steps * settings.batch_pieces // settings.length
    fixed = masking._replace(seed=HELD_OUT_SEED)
    trainer = MaskedTrainer(
        model=model,
        args=args,
        train_dataset=MaskedBlocks(train, shares, n_blocks, vocabulary, masking),
        eval_dataset={
            lang: MaskedBlocks(
                {lang: ids}, {lang: 1.0}, min(len(ids), N_HELD_OUT), vocabulary, fixed
            )
            for (lang, split), ids in blocks.items()
            if split == "held-out"
        },
        callbacks=[StopInTime(settings.max_seconds)] if settings.max_seconds else None,
    )
    trainer.flop_per_piece = flop_per_piece(model, settings.length, settings.mask_rate)
    width = model.pretrained.config.hidden_size
    dtype = choose_precision(settings.precision, args.device).dtype
    trainer.matrix_flops = matrix_flops(width, dtype, args.device)
    return trainer


def training_arguments(out: Path, settings: Settings) -> TrainingArguments:
    """RETURNS (TrainingArguments): The settings in the Trainer's words.
    RAISES (BioclinError): If accelerate is missing, or the batch is no whole number of blocks."""
    if not is_accelerate_available():
        raise BioclinError("The Trainer needs accelerate: pip install 'spacy-bioclin[pretrain]'")
    use_cpu = not torch.cuda.is_available()
    device = torch.device("cpu" if use_cpu else "cuda")
    dtype = choose_precision(settings.precision, device).dtype
    args = TrainingArguments(
        output_dir=str(out),
        max_steps=settings.steps,
        learning_rate=settings.learn_rate,
        lr_scheduler_type="linear",
        warmup_ratio=0.06,
        optim="adamw_torch_fused",
        adam_beta2=0.98,
        adam_epsilon=1e-6,
        weight_decay=0.01,
        logging_steps=max(1, settings.every // 10),
        eval_strategy="steps",
        eval_steps=settings.every,
        eval_on_start=True,
        save_strategy="steps",
        save_steps=settings.every,
        save_total_limit=2,
        save_safetensors=False,  # piece vectors are shared with the head
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        prediction_loss_only=True,
        remove_unused_columns=False,
        bf16=dtype == torch.bfloat16,
        fp16=dtype == torch.float16,
        use_cpu=use_cpu,
        seed=settings.seed,
        report_to="none",
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


def save_encoder(model: Any, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write encoder, head and tokenizer in the format of the transformers library."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
