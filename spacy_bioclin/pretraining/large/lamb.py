"""LAMB, the optimizer for very large batches (You et al. 2020)."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim import Optimizer


class Lamb(Optimizer):
    """Adam whose step is scaled, for each tensor, to the length of its weights.

    As in apex's `FusedLAMB`, tensors without weight decay take the step of Adam. Gradients are not
    clipped here.

    params (Iterable): Tensors, or groups of them.
    lr (float): Learning rate.
    betas (tuple[float, float]): Decay rates of the two moments.
    eps (float): Term added to the root of the second moment.
    weight_decay (float): Weight decay.
    """

    def __init__(
        self,
        params: Iterable[Any],
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one step (You et al. 2020, algorithm 2).

        closure (Callable | None): Computes the loss anew.
        RETURNS (Any): What the closure returns.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weights in group["params"]:
                if weights.grad is not None:
                    self._step(weights, group)
        return loss

    def _step(self, weights: torch.Tensor, group: dict[str, Any]) -> None:
        state, (beta1, beta2) = self.state[weights], group["betas"]
        if not state:
            state["step"] = 0
            state["first"] = torch.zeros_like(weights)
            state["second"] = torch.zeros_like(weights)
        state["step"] += 1
        gradient = weights.grad
        assert gradient is not None
        state["first"].mul_(beta1).add_(gradient, alpha=1 - beta1)
        state["second"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        first = state["first"] / (1 - beta1 ** state["step"])
        second = state["second"] / (1 - beta2 ** state["step"])
        update = first / (second.sqrt() + group["eps"])
        ratio = 1.0
        if group["weight_decay"]:
            update += group["weight_decay"] * weights
            lengths = float(weights.norm()), float(update.norm())
            ratio = lengths[0] / lengths[1] if all(lengths) else 1.0
        weights.add_(update, alpha=-group["lr"] * ratio)
