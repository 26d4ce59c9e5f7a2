"""Self-alignment of an encoder on the synonyms of a terminology (SapBERT, Liu et al. 2021): names
of one concept come close, names of others go away, so that the nearest name is the right one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, SequentialSampler
from transformers import AutoModel, PreTrainedTokenizerFast, Trainer, TrainingArguments
from transformers.utils import is_accelerate_available

from ..encoders.loading import quiet
from ..encoders.names import MAX_PIECES, fold_case, mean_vectors
from ..encoders.precision import choose_precision
from ..errors import BioclinError
from .masked_lm import StopInTime, find_checkpoint, open_tokenizer, set_up_layers
from .record import write_json
from .settings import AlignSettings

# Of the loss and of the mining, as in the authors' code (cambridgeltl/sapbert, train.py).
MARGIN, ALPHA, BETA, BASE = 0.2, 1.0, 60.0, 0.5
DROPOUT = 0.1
# Batches are encoded in so many parts.
N_PARTS = 8
# Concepts drawn beside each one of a batch from those with the most similar names.
N_NEIGHBOURS = 3


def alignment_loss(vectors: Tensor, concepts: Tensor) -> Tensor:
    """Multi-similarity loss (Wang et al. 2019) over the pairs that break the margin of a triplet
    (Liu et al. 2021, equations 1 and 2).

    vectors (Tensor): (n_names, width), of length 1.
    concepts (Tensor): (n_names,), the concept of each.
    RETURNS (Tensor): Mean over the names; 0 where no triplet breaks the margin.
    """
    with torch.autocast(vectors.device.type, enabled=False):  # exp(60 x) needs all digits
        cosines = vectors @ vectors.T
    same = concepts[:, None] == concepts[None, :]
    itself = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    positive, negative = same & ~itself, ~same
    # A pair is in a hard triplet if the margin is broken beside the worst pair of the other kind.
    infinity = torch.finfo(cosines.dtype).max
    nearest_other = cosines.masked_fill(~negative, -infinity).amax(1, keepdim=True)
    farthest_same = cosines.masked_fill(~positive, infinity).amin(1, keepdim=True)
    positive &= cosines < nearest_other + MARGIN
    negative &= cosines > farthest_same - MARGIN
    pull = (torch.exp(-ALPHA * (cosines - BASE)) * positive).sum(1)
    push = (torch.exp(BETA * (cosines - BASE)) * negative).sum(1)
    return (torch.log1p(pull) / ALPHA + torch.log1p(push) / BETA).mean()


class AlignedEncoder(nn.Module):
    """An encoder whose vector of a name is the mean of its pieces."""

    def __init__(self, pretrained: Any) -> None:
        super().__init__()
        self.pretrained = pretrained

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        """
        input_ids, attention_mask (Tensor): (n_names, n_pieces).
        labels (Tensor): (n_names,) concepts.
        RETURNS (dict[str, Tensor]): "loss".
        """
        # Most names are short: parts of like length cost less than half of one padded batch.
        order = attention_mask.sum(1).argsort()
        vectors = torch.cat(
            [self._encode(input_ids, attention_mask, i) for i in order.chunk(N_PARTS)]
        )
        return {"loss": alignment_loss(vectors, labels[order])}

    def _encode(self, input_ids: Tensor, attention_mask: Tensor, rows: Tensor) -> Tensor:
        mask = attention_mask[rows]
        mask = mask[:, : int(mask.sum(1).max())]
        hidden = self.pretrained(input_ids=input_ids[rows, : mask.shape[1]], attention_mask=mask)[0]
        return mean_vectors(hidden.float(), mask)


class NamePairs(Dataset[tuple[np.ndarray, np.ndarray]]):
    """Batch i of a run: two names of each of its concepts; the same whenever it is asked for.

    names_of (Sequence[np.ndarray]): The names of each concept, at least two.
    neighbours (np.ndarray): (n_concepts, k), concepts with similar names, -1 for none.
    """

    def __init__(
        self, names_of: Sequence[np.ndarray], neighbours: np.ndarray, settings: AlignSettings
    ) -> None:
        self.names_of, self.neighbours, self.settings = names_of, neighbours, settings

    def __len__(self) -> int:
        return self.settings.steps

    def __getitem__(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """RETURNS (tuple[np.ndarray, np.ndarray]): Names and their concepts, (2 * n_pairs,)."""
        n_pairs = min(self.settings.batch_pairs, len(self.names_of))
        n_seeds = -(-n_pairs // (1 + N_NEIGHBOURS))
        epoch, first = divmod(step * n_seeds, len(self.names_of))
        order = np.random.default_rng((self.settings.seed, epoch)).permutation(len(self.names_of))
        rng = np.random.default_rng((self.settings.seed, epoch, step))
        seeds = np.take(order, range(first, first + n_seeds), mode="wrap")
        beside = self.neighbours[seeds]
        beside = rng.permuted(beside, axis=1)[:, :N_NEIGHBOURS].ravel()
        concepts = np.unique(np.concatenate([seeds, beside[beside >= 0]]))
        pairs = [rng.choice(self.names_of[c], 2, replace=False) for c in concepts]
        return np.concatenate(pairs), np.repeat(concepts, 2)


def align(
    names: Sequence[str],
    concepts: np.ndarray,
    neighbours: np.ndarray,
    encoder: str,
    out: Path,
    *,
    settings: AlignSettings,
    resume: bool,
) -> dict[str, Any]:
    """Train an encoder on synonyms, and write it.

    names (Sequence[str]): All names.
    concepts (np.ndarray): (n_names,) number of the concept of each, from 0.
    neighbours (np.ndarray): (n_concepts, k) concepts with similar names, -1 for none.
    encoder (str): Folder or hub name of an encoder.
    out (Path): Gets checkpoints, `encoder`, and alignment.json.
    resume (bool): Go on from the last checkpoint, as a run that never stopped.
    RETURNS (dict): What alignment.json says.
    RAISES (BioclinError): If no concept has two names, or accelerate is missing.
    """
    if not is_accelerate_available():
        raise BioclinError("The Trainer needs accelerate: pip install 'spacy-bioclin[pretrain]'")
    names_of, kept = _concepts_with_synonyms(concepts)
    if len(kept) < 2:
        raise BioclinError(
            f"{len(kept)} concepts have two names: there are no synonyms to learn from"
        )
    number = np.full(neighbours.shape[0] + 1, -1)
    number[kept] = np.arange(len(kept))
    last = find_checkpoint(out, resume=resume)
    tokenizer = open_tokenizer(encoder)
    torch.manual_seed(settings.seed)
    with quiet():
        pretrained = AutoModel.from_pretrained(encoder, torch_dtype=torch.float32)
    set_up_layers(pretrained, DROPOUT)
    trainer = _make_trainer(
        AlignedEncoder(pretrained),
        tokenizer,
        names,
        NamePairs(names_of, number[neighbours[kept]], settings),
        out,
    )
    trainer.train(resume_from_checkpoint=last)
    log = trainer.state.log_history
    record = {
        "encoder": Path(encoder).name,
        "concepts": len(kept),
        "names": int(sum(map(len, names_of))),
        "finished": trainer.state.global_step >= settings.steps,
        "settings": settings._asdict(),
        "loss": [[entry["step"], round(entry["loss"], 4)] for entry in log if "loss" in entry],
    }
    if trainer.is_world_process_zero():
        write_json(record, out / "alignment.json")
        pretrained.save_pretrained(out / "encoder")
        tokenizer.save_pretrained(out / "encoder")
    return record


def _concepts_with_synonyms(concepts: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """RETURNS (tuple): Names of each concept that has two or more, and those concepts."""
    order = np.argsort(concepts, kind="stable")
    kept, first, counts = np.unique(concepts[order], return_index=True, return_counts=True)
    chosen = counts > 1
    return [order[i : i + n] for i, n in zip(first[chosen], counts[chosen], strict=True)], kept[
        chosen
    ]


def _make_trainer(
    model: AlignedEncoder,
    tokenizer: PreTrainedTokenizerFast,
    names: Sequence[str],
    pairs: NamePairs,
    out: Path,
) -> Trainer:
    settings = pairs.settings

    def collate(batches: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, Tensor]:
        ((chosen, concepts),) = batches
        texts = [fold_case(names[i]) for i in chosen]
        encoded = tokenizer(
            texts, padding=True, truncation=True, max_length=MAX_PIECES, return_tensors="pt"
        )
        return {
            "input_ids": encoded["input_ids"],
            "attention_mask": encoded["attention_mask"],
            "labels": torch.from_numpy(concepts),
        }

    use_cpu = not torch.cuda.is_available()
    dtype = choose_precision(settings.precision, torch.device("cpu" if use_cpu else "cuda")).dtype
    every = max(1, settings.steps // 10)
    args = TrainingArguments(
        output_dir=str(out),
        max_steps=settings.steps,
        per_device_train_batch_size=1,  # an item is a batch
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
    )
    stop = [StopInTime(settings.max_seconds)] if settings.max_seconds else None
    return _InOrder(
        model=model, args=args, train_dataset=pairs, data_collator=collate, callbacks=stop
    )


class _InOrder(Trainer):
    """Takes the batches as they come: their order is in them."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return SequentialSampler(train_dataset or self.train_dataset)
