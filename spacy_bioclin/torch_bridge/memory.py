"""What to do when memory runs out."""

import gc

import torch


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch could not allocate a tensor, on GPU or CPU."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)


def free_memory() -> None:
    """Give back what failed work has left behind."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
