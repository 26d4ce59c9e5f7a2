"""Align an encoder on the synonyms of a terminology (SapBERT, Liu et al. 2021).

Training moves names of the same concept together and names of other concepts apart, so that the
nearest name is the right one.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import AutoModel

from ..encoders.loading import open_model
from ..encoders.names import MAX_PIECES, fold_case, mean_vectors
from ..errors import BioclinError
from .record import write_json
from .settings import AlignSettings
from .trainer import (
    SequentialTrainer,
    make_training_arguments,
    open_tokenizer,
    open_training,
    save_encoder,
    set_up_layers,
    train,
)

# Constants of the loss and of the mining, as in the authors' code (cambridgeltl/sapbert, train.py).
MARGIN, ALPHA, BETA, BASE = 0.2, 1.0, 60.0, 0.5
DROPOUT = 0.1
# Parts in which a batch is encoded.
N_PARTS = 8
# For each random concept of a batch, concepts with similar names to add.
N_NEIGHBOURS = 3


def alignment_loss(vectors: Tensor, concepts: Tensor) -> Tensor:
    """Compute the multi-similarity loss (Wang et al. 2019) over the pairs of hard triplets (Liu et
    al. 2021, equations 1 and 2).

    vectors (Tensor): (n_names, width), of length 1.
    concepts (Tensor): (n_names,), the concept of each name.
    RETURNS (Tensor): Mean over the names; 0 if no triplet violates the margin.
    """
    with torch.autocast(vectors.device.type, enabled=False):  # exp(60 x) needs full precision
        cosines = vectors @ vectors.T
    same = concepts[:, None] == concepts[None, :]
    itself = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    positive, negative = same & ~itself, ~same
    # A pair is in a hard triplet if it violates the margin with the worst pair of the other kind.
    infinity = torch.finfo(cosines.dtype).max
    nearest_other = cosines.masked_fill(~negative, -infinity).amax(1, keepdim=True)
    farthest_same = cosines.masked_fill(~positive, infinity).amin(1, keepdim=True)
    positive &= cosines < nearest_other + MARGIN
    negative &= cosines > farthest_same - MARGIN
    pull = (torch.exp(-ALPHA * (cosines - BASE)) * positive).sum(1)
    push = (torch.exp(BETA * (cosines - BASE)) * negative).sum(1)
    return (torch.log1p(pull) / ALPHA + torch.log1p(push) / BETA).mean()


class AlignedEncoder(nn.Module):
    """An encoder that represents a name by the mean vector of its pieces."""

    def __init__(self, pretrained: Any) -> None:
        super().__init__()
        self.pretrained = pretrained

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        """Compute the loss of a batch.

        input_ids, attention_mask (Tensor): (n_names, n_pieces).
        labels (Tensor): (n_names,) concepts.
        RETURNS (dict[str, Tensor]): "loss".
        """
        # Most names are short: parts of similar length cost less than half of one padded batch.
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
    """The batches of a training: batch i has two names of each of its concepts.

    A batch depends on nothing but its number and the random seed.

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
        """Make one batch.

        RETURNS (tuple[np.ndarray, np.ndarray]): Names and their concepts, (2 * n_pairs,).
        """
        n_pairs = min(self.settings.batch_pairs, len(self.names_of))
        n_seeds = -(-n_pairs // (1 + N_NEIGHBOURS))
        epoch, first = divmod(step * n_seeds, len(self.names_of))
        order = np.random.default_rng((self.settings.seed, epoch)).permutation(len(self.names_of))
        rng = np.random.default_rng((self.settings.seed, epoch, step))
        seeds = np.take(order, range(first, first + n_seeds), mode="wrap")
        similar = rng.permuted(self.neighbours[seeds], axis=1)[:, :N_NEIGHBOURS].ravel()
        concepts = np.unique(np.concatenate([seeds, similar[similar >= 0]]))
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
    concepts (np.ndarray): (n_names,) number of the concept of each name, from 0.
    neighbours (np.ndarray): (n_concepts, k) concepts with similar names, -1 for none.
    encoder (str): Folder or hub name of an encoder.
    out (Path): Folder for checkpoints, `encoder`, and alignment.json.
    resume (bool): Resume from the last checkpoint, with the same result as without interruption.
    RETURNS (dict): The content of alignment.json.
    RAISES (BioclinError): No concept has two names, or the library accelerate is not installed.
    """
    names_of, kept = _concepts_with_synonyms(concepts)
    if len(kept) < 2:
        raise BioclinError(
            f"{len(kept)} concepts have two names: there are no synonyms to learn from"
        )
    number = np.full(neighbours.shape[0] + 1, -1)
    number[kept] = np.arange(len(kept))
    digest = hashlib.sha256("\n".join(names).encode())
    digest.update(concepts.tobytes() + neighbours.tobytes())
    more = {"names": digest.hexdigest()}
    with open_training(out, settings, {"encoder": encoder}, more, resume=resume) as last:
        tokenizer = open_tokenizer(encoder)
        torch.manual_seed(settings.seed)
        pretrained, _ = open_model(AutoModel, encoder)
        set_up_layers(pretrained, DROPOUT)

        def collate(batches: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, Tensor]:
            ((rows, labels),) = batches
            texts = [fold_case(names[row]) for row in rows]
            encoded = tokenizer(
                texts, padding=True, truncation=True, max_length=MAX_PIECES, return_tensors="pt"
            )
            return {
                "input_ids": encoded["input_ids"],
                "attention_mask": encoded["attention_mask"],
                "labels": torch.from_numpy(labels),
            }

        # An item of the data set is a batch.
        args = make_training_arguments(
            out, settings, every=max(1, settings.steps // 10), per_device_train_batch_size=1
        )
        trainer = SequentialTrainer(
            model=AlignedEncoder(pretrained),
            args=args,
            train_dataset=NamePairs(names_of, number[neighbours[kept]], settings),
            data_collator=collate,
            max_seconds=settings.max_seconds,
        )
        record = {
            "encoder": Path(encoder).name,
            "concepts": len(kept),
            "names": sum(map(len, names_of)),
            **train(trainer, settings, last),
        }
        if trainer.is_world_process_zero():
            write_json(record, out / "alignment.json")
            if record["finished"]:
                save_encoder(pretrained, tokenizer, out / "encoder")
        return record


def _concepts_with_synonyms(concepts: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Find the concepts with two or more names: the names of each, and the concepts."""
    order = np.argsort(concepts, kind="stable")
    kept, first, counts = np.unique(concepts[order], return_index=True, return_counts=True)
    return [names for names in np.split(order, first[1:]) if len(names) > 1], kept[counts > 1]
