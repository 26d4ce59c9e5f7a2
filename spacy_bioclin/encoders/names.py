"""One vector for a name, as alignment on synonyms trains them (SapBERT, Liu et al. 2021)."""

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from ..errors import BioclinError
from .loading import load_pretrained
from .network import CPU_BATCH_PIECES, GPU_BATCH_PIECES
from .precision import autocast, choose_precision, convert_linear_layers

# Names are cut after so many pieces, special ones included, as in the paper.
MAX_PIECES = 25
# Names that are sorted by length and encoded together.
GROUP = 8192
# Entries of config.json that say how it was written.
NOT_SHAPE = {"_name_or_path", "transformers_version", "architectures", "torch_dtype", "dtype"}

FloatArray = NDArray[np.float32]
Progress = Callable[[float, int], None]


def fold_case(name: str) -> str:
    """RETURNS (str): The name as encoders read it. Terminologies write it in any case, notes in
    lower case, and to a cased encoder that is a greater difference than many of meaning."""
    return name.lower()


def mean_vectors(hidden: Tensor, mask: Tensor) -> Tensor:
    """
    hidden (Tensor): (n_names, n_pieces, width), the encoder's last layer.
    mask (Tensor): (n_names, n_pieces), 0 where there is padding.
    RETURNS (Tensor): (n_names, width), the mean over the pieces, of length 1.
    """
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return normalize((hidden * weights).sum(1) / weights.sum(1), dim=-1)


def first_vectors(hidden: Tensor, mask: Tensor) -> Tensor:
    """RETURNS (Tensor): (n_names, width), the first piece's ([CLS], as SapBERT has it), of length
    1; see `mean_vectors`."""
    return normalize(hidden[:, 0], dim=-1)


POOLING = {"mean": mean_vectors, "cls": first_vectors}


class NameEncoder:
    """Gives names vectors whose dot product is their cosine.

    folder (str): Folder or hub name of an encoder.
    pooling (str): "mean" of the pieces, as `bioclin align-encoder` trains, or "cls", as SapBERT's
        own weights want it.
    precision (str): See `choose_precision`.
    device (torch.device | str | None): None for the GPU if there is one, else the CPU.
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
        return int(self._transformer.config.hidden_size)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of what the vectors depend on: shape, weights and pieces; not of the folder's
        name or the file format. Formats of numbers differ by rounding and share it."""
        config = self._transformer.config.to_dict()
        shape = {key: value for key, value in config.items() if key not in NOT_SHAPE}
        digest = hashlib.sha256(repr(sorted(shape.items())).encode())
        digest.update(self._pieces.to_str().encode())
        for name, weight in sorted(self._transformer.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.detach().float().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> FloatArray:
        """
        texts (Sequence[str]): Names.
        progress (Progress | None): Takes the share that is done and how many names that is.
        RETURNS (FloatArray): (n_texts, width), rows of length 1.
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
