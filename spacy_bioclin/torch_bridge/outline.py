"""Compare stored weights with the module that they are for, before memory is used for it.

The settings of a module come from the same file as its weights. A file that was damaged, or made to
do harm, must not decide how much memory is taken or how long a module is built.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from ..errors import BioclinError

# Bytes of a buffer that is not stored, such as numbers of positions.
MAX_BUFFER = 2**28


def check_fit(outline: Callable[[], nn.Module], weights: Mapping[str, torch.Tensor]) -> None:
    """Check that weights are those of a module, and numbers.

    outline (Callable): Builds the module; it is called with "meta" as the device, on which weights
        take no memory.
    weights (Mapping[str, Tensor]): Stored weights by name.
    RAISES (BioclinError): A weight is missing, left over, of another shape or number format, or not
        finite.
    """
    with torch.device("meta"), at_most(len(weights)):
        module = outline()
    wanted = module.state_dict()
    if different := sorted(wanted.keys() ^ weights.keys()):
        found = "are not of" if different[0] in weights else "are missing for"
        raise BioclinError(
            f"{len(different)} weights, {different[0]} first, {found} the model that the settings "
            "describe: the file is damaged or of another version"
        )
    for name, weight in wanted.items():
        stored = weights[name]
        if stored.shape != weight.shape:
            raise BioclinError(
                f"weight {name} is {tuple(stored.shape)}, but the settings say "
                f"{tuple(weight.shape)}: the file is damaged or was changed"
            )
        if stored.is_floating_point() != weight.is_floating_point():
            raise BioclinError(f"weight {name} is {stored.dtype}: the file is damaged or changed")
    for name, buffer in module.named_buffers():
        if name not in wanted and buffer.nbytes > MAX_BUFFER:
            raise BioclinError(
                f"buffer {name} would take {buffer.nbytes:,} bytes: damaged settings"
            )
    check_finite(weights)


def check_finite(weights: Mapping[str, torch.Tensor]) -> None:
    """Check that weights hold no NaN and no infinity, with which a model finds rubbish in silence.

    RAISES (BioclinError): One does.
    """
    for name, weight in weights.items():
        # A sum is several times faster than a look at each number. If it overflows, look.
        if not weight.is_floating_point() or torch.isfinite(weight.sum(dtype=torch.float32)):
            continue
        if not torch.isfinite(weight).all():
            raise BioclinError(
                f"weight {name} holds numbers that are not finite (NaN or infinity): training "
                "diverged, or the file is damaged; use an earlier copy, or train again"
            )


@contextmanager
def at_most(n: int) -> Iterator[None]:
    """Stop building a module that has more parameters than are stored.

    A number of layers in damaged settings may be anything.

    n (int): Number of stored weights.
    RAISES (BioclinError): There are more than twice as many, since some share their weights.
    """
    left, thread = 2 * n + 100, threading.get_ident()

    def count(module: nn.Module, name: str, parameter: Any) -> None:
        nonlocal left
        left -= threading.get_ident() == thread
        if left < 0:
            raise BioclinError(
                f"the settings describe a model of more than {2 * n} weights, and {n} are stored: "
                "the file is damaged or was changed"
            )

    handle = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        handle.remove()
