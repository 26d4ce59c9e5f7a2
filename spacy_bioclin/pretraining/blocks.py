"""Pack cleaned text into blocks of pieces on disk, and read them masked for training.

A block is one input of the encoder. It is filled with whole sentences, across documents, so that it
has hardly any padding (FULL-SENTENCES of Liu et al. 2019, with document boundaries marked).
"""

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerFast

from ..files import hash_file
from ..outputs import open_atomic, write_atomic
from .large.order import draw_order
from .masking import NO_LOSS, Masking, Vocabulary, mask_pieces
from .text.corpus import find_all_files, read_documents

# Sentences to tokenize together.
CHUNK = 4096
# Cleaned text has no line ends. This share of the sentences gets one before it, so that the encoder
# learns what a line end is.
LINE_END_RATE = 0.3


def prepare_blocks(
    corpus: Path, tokenizer: PreTrainedTokenizerFast, folder: Path, *, length: int
) -> dict[tuple[str, str], np.ndarray]:
    """Pack the cleaned text into blocks, or open the blocks if they are up to date.

    corpus (Path): Folder with PART.train.txt and PART.held-out.txt, see `text.corpus`.
    folder (Path): Folder for PART.SPLIT.bin, and for blocks.json with the hashes of them and of
        their sources. Blocks that are damaged or have other sources are made again.
    length (int): Pieces per block, including special pieces.
    RETURNS (dict): (part, split) -> (n_blocks, length) piece ids, memory-mapped.
    """
    files = find_all_files(corpus)
    made_from = {
        "length": length,
        "tokenizer": hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest(),
        **{path.stem: hash_file(path) for path in files.values()},
    }
    record = folder / "blocks.json"
    bins = {path.stem: folder / f"{path.stem}.bin" for path in files.values()}
    if not _is_made_from(record, made_from, bins):
        record.unlink(missing_ok=True)
        for path in files.values():
            with open_atomic(bins[path.stem], "wb", private=True) as file:
                for block in make_blocks(read_documents(path), tokenizer, length=length):
                    file.write(block.tobytes())
        hashes = {name: hash_file(path) for name, path in bins.items()}
        write_atomic(record, json.dumps({**made_from, "blocks": hashes}, indent=2))
    dtype = _id_type(tokenizer)
    return {
        key: np.memmap(folder / f"{path.stem}.bin", dtype, "r").reshape(-1, length)
        for key, path in files.items()
    }


def _is_made_from(record: Path, made_from: Mapping[str, object], bins: Mapping[str, Path]) -> bool:
    """Check whether blocks have these sources, and are what was written."""
    try:
        known = json.loads(record.read_text("utf-8"))
        hashes = known.pop("blocks")
        return bool(
            known == made_from and hashes == {name: hash_file(path) for name, path in bins.items()}
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False  # there are none, of an earlier version, or damaged


def make_blocks(
    documents: Iterator[list[str]], tokenizer: PreTrainedTokenizerFast, *, length: int
) -> Iterator[np.ndarray]:
    """Pack sentences into blocks.

    A sentence that does not fit starts the next block. Only a sentence that is longer than a block
    is split. No piece is dropped.

    documents (Iterator[list[str]]): The sentences of each document.
    length (int): Pieces per block, including special pieces.
    YIELDS (np.ndarray): (length,) ids: <s> sentence sentence </s> <s> sentence … </s> <pad> …
    """
    begin, end, pad = tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id
    dtype = _id_type(tokenizer)
    room = length - 1  # the last is </s>
    block: list[int] = []

    def flush() -> np.ndarray:
        filled = np.full(length, pad, dtype)
        filled[: len(block) + 1] = [*block, end]
        block.clear()
        return filled

    for is_first, pieces in _tokenize(documents, tokenizer):
        boundary = [end, begin] if block and is_first else []
        if block and len(block) + len(boundary) + len(pieces) > room:
            yield flush()
        block += boundary if block else [begin]
        while len(block) + len(pieces) > room:
            n_left = room - len(block)
            block += pieces[:n_left]
            pieces = pieces[n_left:]
            yield flush()
            block.append(begin)
        block += pieces
    if block:
        yield flush()


def _tokenize(
    documents: Iterator[list[str]], tokenizer: PreTrainedTokenizerFast
) -> Iterator[tuple[bool, list[int]]]:
    """Tokenize sentences, each with whether it is the first one of its document."""
    chance = random.Random(0)
    sentences = (
        (i == 0, ("\n" if chance.random() < LINE_END_RATE else " ") * (i > 0) + sentence)
        for document in documents
        for i, sentence in enumerate(document)
    )
    while chunk := list(itertools.islice(sentences, CHUNK)):
        texts = [text for _, text in chunk]
        encoded = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        yield from zip((is_first for is_first, _ in chunk), encoded, strict=True)


class MaskedBlocks(Dataset):
    """Blocks in the order of training, with a new mask each time a block is repeated.

    blocks (Mapping[str, np.ndarray]): Part of the corpus -> (n_blocks, length) piece ids.
    shares (Mapping[str, float]): Part -> share of the blocks to use. Blocks of a part with too few
        are repeated, in a new random order.
    n_blocks (int): Number of blocks to use.
    """

    def __init__(
        self,
        blocks: Mapping[str, np.ndarray],
        shares: Mapping[str, float],
        n_blocks: int,
        vocabulary: Vocabulary,
        masking: Masking,
    ) -> None:
        self.blocks = list(blocks.values())
        self.vocabulary = vocabulary
        self.masking = masking
        self.order = draw_order(
            [len(ids) for ids in self.blocks],
            [shares[part] for part in blocks],
            n_blocks,
            masking.seed,
        )

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        """Mask one block.

        RETURNS (dict[str, Tensor]): input_ids, attention_mask and labels, each (length,) int64.
            Labels are `NO_LOSS` where nothing is predicted.
        """
        i_part, i_block = self.order[index]
        ids = self.blocks[i_part][i_block].astype(np.int64)
        rng = np.random.default_rng((self.masking.seed, index))
        masked, labels = mask_pieces(ids, self.vocabulary, self.masking, rng)
        return {
            "input_ids": torch.from_numpy(masked),
            "attention_mask": torch.from_numpy((ids != self.vocabulary.pad_id).astype(np.int64)),
            "labels": torch.from_numpy(labels),
        }

    def count_predicted(self) -> int:
        """Count the pieces to predict of all blocks."""
        return sum(int((self[i]["labels"] != NO_LOSS).sum()) for i in range(len(self)))


def _id_type(tokenizer: PreTrainedTokenizerFast) -> type[np.unsignedinteger]:
    return np.uint16 if len(tokenizer) <= 2**16 else np.uint32
