"""One AdamW step for all weights of a module, driven by the settings of thinc's optimizer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from thinc.api import Optimizer
from torch import nn

# Weights that weight decay leaves alone: biases and layer norms (Devlin et al. 2019, appendix A).
MAX_DIMS_WITHOUT_DECAY = 1
# Gradients of fp16 activations would vanish without a factor (Micikevicius et al. 2018).
INITIAL_SCALE = 2.0**12


@dataclass(frozen=True)
class WeightGroup:
    """Weights with the same learning rate and weight decay.

    weights (list[nn.Parameter]): At least one.
    decays (bool): Whether weight decay pulls them to zero.
    """

    weights: list[nn.Parameter]
    decays: bool


class UpdateRule:
    """Let all weights learn at the same rate; subclasses decide otherwise.

    groups (Sequence[WeightGroup]): The weights that learn, sooner or later.
    """

    def __init__(self, groups: Sequence[WeightGroup]) -> None:
        self.groups = groups

    def prepare_step(
        self, adamw: torch.optim.AdamW, optimizer: Optimizer, learn_rate: float
    ) -> None:
        """Set the rates of the next step; `adamw.param_groups` has the order of `groups`."""
        for group in adamw.param_groups:
            group["lr"] = learn_rate


def group_weights(module: nn.Module) -> list[WeightGroup]:
    """Group all weights of a module: biases and other vectors have no weight decay."""
    groups = {True: WeightGroup([], decays=True), False: WeightGroup([], decays=False)}
    for weight in module.parameters():
        groups[weight.ndim > MAX_DIMS_WITHOUT_DECAY].weights.append(weight)
    return [group for group in groups.values() if group.weights]


class AdamWStep:
    """Update weights with AdamW, in one fused call for all of them.

    rule (UpdateRule): Which weights learn, and how fast.
    device (torch.device): Where the weights are.
    scaled (bool): Scale gradients, as fp16 activations need it.
    state (Mapping): From `get_state`, of the run that this one resumes; values may be None.
    """

    def __init__(
        self, rule: UpdateRule, device: torch.device, *, scaled: bool, state: Mapping[str, Any]
    ) -> None:
        self._rule = rule
        self._adamw: torch.optim.AdamW | None = None
        self._restored = state["optimizer"]
        self.scaler = torch.amp.GradScaler(device.type, init_scale=INITIAL_SCALE, enabled=scaled)
        if state["scaler"]:
            self.scaler.load_state_dict(state["scaler"])

    def take(self, weights: list[nn.Parameter], optimizer: Optimizer, *, lr_scale: float) -> None:
        """Update the weights and clear their gradients.

        weights (list[nn.Parameter]): Those that have a gradient.
        optimizer (Optimizer): Its learning rate, betas, eps, weight decay and clipping of the
            global norm are used, so that the schedules of a config drive this step too.
        lr_scale (float): Factor on the learning rate.
        """
        if self._adamw is None:
            self._adamw = make_adamw(self._rule.groups, optimizer)
            if self._restored:
                self._adamw.load_state_dict(self._restored)
                self._restored = None
        self.scaler.unscale_(self._adamw)
        if optimizer.grad_clip:
            nn.utils.clip_grad_norm_(weights, float(optimizer.grad_clip), foreach=True)
        self._rule.prepare_step(self._adamw, optimizer, float(optimizer.learn_rate) * lr_scale)
        self.scaler.step(self._adamw)  # does nothing if fp16 gradients overflowed
        self.scaler.update()
        self._adamw.zero_grad(set_to_none=True)

    def get_state(self) -> dict[str, Any]:
        """Collect the moments of AdamW and the scale of fp16 gradients."""
        return {
            "optimizer": self._adamw.state_dict() if self._adamw else self._restored,
            "scaler": self.scaler.state_dict(),
        }


def make_adamw(groups: Sequence[WeightGroup], optimizer: Optimizer) -> torch.optim.AdamW:
    """Make torch's AdamW with the settings of thinc's optimizer."""
    return torch.optim.AdamW(
        [
            {"params": group.weights, "weight_decay": float(optimizer.L2) * group.decays}
            for group in groups
        ],
        betas=(float(optimizer.b1), float(optimizer.b2)),
        eps=float(optimizer.eps),
        fused=True,
    )
