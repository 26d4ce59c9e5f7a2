"""Divide a large batch into what a device can hold at once."""

from typing import NamedTuple

from ...errors import BioclinError


class Division(NamedTuple):
    """How an update is divided.

    at_once (int): Blocks of one forward and backward pass of a process.
    passes (int): Passes of each process before the update, whose gradients are accumulated.
    """

    at_once: int
    passes: int


def divide_batch(
    batch_pieces: int, length: int, *, device_pieces: int, n_processes: int, n_gpus: int = 1
) -> Division:
    """Divide the blocks of an update evenly among processes, and in each into equal passes.

    batch_pieces (int): Pieces of an update, over all devices.
    length (int): Pieces of a block.
    device_pieces (int): Pieces that fit on a device at once; 0 for the whole share of the device.
    n_gpus (int): GPUs of a process.
    RETURNS (Division): The fewest passes that fit.
    RAISES (BioclinError): The blocks cannot be divided evenly, or not one block fits.
    """
    blocks, rest = divmod(batch_pieces, length * n_processes)
    if blocks < 1 or rest:
        raise BioclinError(
            f"batch_pieces = {batch_pieces}: want a multiple of length x processes = "
            f"{length} x {n_processes}"
        )
    if device_pieces < 0 or 0 < device_pieces < length:
        raise BioclinError(
            f"device_pieces = {device_pieces}: want at least one block of length = {length}, or 0 "
            "for the whole batch"
        )
    most = blocks if not device_pieces else device_pieces // length * n_gpus
    at_once = next(n for n in range(min(blocks, most), 0, -1) if not blocks % n)
    return Division(at_once, blocks // at_once)
