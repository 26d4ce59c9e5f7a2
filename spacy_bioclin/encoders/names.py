"""Vectors of names, from encoders aligned on synonyms (SapBERT, Liu et al. 2021)."""

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from ..errors import BioclinError
from ..types import FloatArray, Progress
from .loading import load_pretrained
from .network import CPU_BATCH_PIECES, GPU_BATCH_PIECES
from .precision import autocast, choose_precision, convert_linear_layers

# Longest name in pieces, special ones included, as in the paper; the rest is cut off.
MAX_PIECES = 25
# Number of names that are sorted by length and encoded together.
GROUP = 8192
# Entries of config.json about how it was written.
NOT_SHAPE = {"_name_or_path", "transformers_version", "architectures", "torch_dtype", "dtype"}


def fold_case(name: str) -> str:
    """Write a name in lower case for an encoder.

    Terminologies write names in any case, notes in lower case; to a cased encoder that is a larger
    difference than many differences of meaning.
    """
    return name.lower()


def mean_vectors(hidden: Tensor, mask: Tensor) -> Tensor:
    """Average the vectors of a name's pieces.

    hidden (Tensor): The encoder's last layer, (n_names, n_pieces, width).
    mask (Tensor): 0 for padding, (n_names, n_pieces).
    RETURNS (Tensor): Rows of length 1, (n_names, width).
    """
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return normalize((hidden * weights).sum(1) / weights.sum(1), dim=-1)


def first_vectors(hidden: Tensor, mask: Tensor) -> Tensor:
    """Take the vector of a name's first piece, [CLS], as SapBERT does. See `mean_vectors`."""
    return normalize(hidden[:, 0], dim=-1)


POOLING = {"mean": mean_vectors, "cls": first_vectors}


class NameEncoder:
    """Encode names as vectors whose dot product is their cosine.

    folder (str): Folder or hub name of an encoder.
    pooling (str): "mean" of the pieces, for encoders from `bioclin align-encoder`, or "cls", for
        the weights of SapBERT.
    precision (str): See `choose_precision`.
    device (torch.device | str | None): None for the GPU if there is one, otherwise the CPU.
    RAISES (BioclinError): The encoder cannot be opened, or a setting is unknown.
    """

    def __init__(
        self,
        folder: str,
        *,
        pooling: str = "mean",
        precision: str = "auto",
        device: torch.device | str | None = None,
    ) -> None:
        if pooling not in POOLING:
            raise BioclinError(f"pooling = {pooling!r} is unknown: use one of {sorted(POOLING)}")
        self.folder, self.pooling = folder, pooling
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.dtype = choose_precision(precision, self.device).dtype
        tokenizer, self._transformer = load_pretrained(folder, {})
        self._transformer.to(self.device).eval()
        self._network = (
            self._transformer
            if self.dtype == torch.float32
            else convert_linear_layers(self._transformer, self.dtype).eval()
        )
        self._pad = tokenizer.pad_token_id or 0
        self._pieces = tokenizer.backend_tokenizer
        self._pieces.no_padding()
        self._pieces.enable_truncation(MAX_PIECES)

    @property
    def width(self) -> int:
        """Size of a vector."""
        return int(self._transformer.config.hidden_size)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of what the vectors depend on: config, weights and tokenizer, but not the name of
        the folder, the file format or the precision."""
        config = self._transformer.config.to_dict()
        shape = {key: value for key, value in config.items() if key not in NOT_SHAPE}
        digest = hashlib.sha256(repr(sorted(shape.items())).encode())
        digest.update(self._pieces.to_str().encode())
        for name, weight in sorted(self._transformer.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.detach().float().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> FloatArray:
        """Encode names.

        progress (Progress | None): Called with the share done, from 0 to 1, and the number done.
        RETURNS (FloatArray): Rows of length 1, (n_texts, width).
        """
        vectors = np.empty((len(texts), self.width), np.float32)
        for i in range(0, len(texts), GROUP):
            self._encode(texts[i : i + GROUP], vectors[i : i + GROUP])
            if progress is not None:
                done = min(i + GROUP, len(texts))
                progress(done / len(texts), done)
        return vectors

    def _encode(self, texts: Sequence[str], vectors: FloatArray) -> None:
        ids = [
            encoding.ids
            for encoding in self._pieces.encode_batch([fold_case(text) for text in texts])
        ]
        lengths = np.array([len(row) for row in ids])
        order = np.argsort(-lengths, kind="stable")
        budget = CPU_BATCH_PIECES if self.device.type == "cpu" else GPU_BATCH_PIECES
        i = 0
        with torch.inference_mode(), autocast(self.device, self.dtype):
            while i < len(order):
                longest = int(lengths[order[i]])
                batch = order[i : i + max(1, budget // longest)]
                mask = np.arange(longest) < lengths[batch, None]
                padded = np.full(mask.shape, self._pad, np.int64)
                padded[mask] = np.concatenate([ids[j] for j in batch])
                vectors[batch] = self._run(padded, mask)
                i += len(batch)

    def _run(self, padded: NDArray[np.int64], mask: NDArray[np.bool_]) -> FloatArray:
        input_ids = torch.from_numpy(padded).to(self.device)
        attention = torch.from_numpy(mask.astype(np.int64)).to(self.device)
        hidden = self._network(input_ids=input_ids, attention_mask=attention)[0].float()
        return POOLING[self.pooling](hidden, attention).cpu().numpy()
