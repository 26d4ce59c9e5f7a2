"""A bridge between a torch module and thinc, in place of thinc's `PyTorchShim`.

It differs in two things: one fused AdamW step updates all weights (thinc calls the optimizer once
per weight), and weights are stored as safetensors (thinc pickles them).
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from thinc.api import Model, Optimizer, get_torch_default_device, xp2torch
from thinc.shims.shim import Shim
from torch import nn

from ..errors import BioclinError, first_line
from .averages import find_averages, update_averages
from .outline import check_fit
from .step import AdamWStep, UpdateRule, group_weights
from .weights_io import MAGIC, pack_weights, unpack_weights

# `nlp.pipe(texts, n_process=2)` forks. A forked process has torch's settings but not its threads,
# and would wait forever in the first operation that is shared among them.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))

Backprop = Callable[[Any], None]


class TorchShim(Shim):
    """Hold a torch module that takes and returns tensors.

    Subclasses may override `run`, `make_rule`, `scales_gradients`, `adversary`, `get_weights` and
    `forget`.

    build (Callable[..., nn.Module]): Makes a module from the keys of `cfg`; its weights need not be
        initialised.
    lr_scale (float): Factor on the optimizer's learning rate.
    """

    def __init__(self, build: Callable[..., nn.Module], *, lr_scale: float) -> None:
        super().__init__(model=None)
        self.lr_scale = lr_scale
        self._build = build
        self._rule: UpdateRule | None = None
        self._step: AdamWStep | None = None
        # Of the run that this one resumes, until it is used: no second copy stays.
        self._restored: dict[str, Any] = {}
        # A forward pass whose backward pass has not run yet must still find the weights it used.
        self._awaits_backprop = False
        self._deferred_step: Optimizer | None = None
        # Whether the training loop runs every batch again with moved weights, see `adversary`.
        self.is_repeated = False
        # Loaded weights are views of the bytes they came in.
        self._is_view = False
        # Number format of stored weights, see `store_in_half`.
        self.stored_dtype = torch.float32

    @property
    def module(self) -> Any:
        """The torch module. RAISES (ValueError): Before `set_module` or `from_bytes`."""
        if self._model is None:
            raise ValueError("The model has no weights yet: call nlp.initialize() or load it first")
        return self._model

    @property
    def device(self) -> torch.device:
        """Where the module's weights are."""
        return next(self.module.parameters()).device

    @property
    def rule(self) -> Any:
        """Which weights learn and how fast; made at the first update."""
        if self._rule is None:
            self._rule = self.make_rule()
        return self._rule

    @property
    def step(self) -> AdamWStep:
        """The optimizer step; made at the first update."""
        if self._step is None:
            state = {key: self._restored.pop(key, None) for key in ("optimizer", "scaler")}
            self._step = AdamWStep(
                self.rule, self.device, scaled=self.scales_gradients, state=state
            )
        return self._step

    @property
    def scales_gradients(self) -> bool:
        """Whether activations are in fp16 during training."""
        return False

    @property
    def adversary(self) -> tuple[nn.Parameter, float] | None:
        """The weight that adversarial training moves, and how far; None without such training."""
        return None

    def make_rule(self) -> UpdateRule:
        """Decide which weights of the module learn."""
        return UpdateRule(group_weights(self.module))

    def run(self, inputs: tuple[Any, ...]) -> Any:
        """Run the module in training."""
        return self.module(*inputs)

    def get_weights(self) -> dict[str, torch.Tensor]:
        """Collect the weights to store."""
        weights: dict[str, torch.Tensor] = self.module.state_dict()
        return weights

    def set_module(self, module: nn.Module, cfg: dict[str, Any]) -> None:
        """Use this module from now on.

        cfg (dict): Arguments with which `build` makes a module of this shape.
        """
        self.cfg = cfg
        self._model = module.to(get_torch_default_device()).eval()
        self._is_view = False
        self.set_training_state({})

    def __call__(self, inputs: tuple[Any, ...], is_train: bool) -> tuple[Any, Backprop]:
        return self.begin_update(inputs) if is_train else (self.predict(inputs), lambda _: None)

    def predict(self, inputs: tuple[Any, ...]) -> Any:
        """Run the module without dropout and without recording a graph."""
        module = self.module.eval() if self.module.training else self.module
        with torch.no_grad():
            return module(*inputs)

    def begin_update(self, inputs: tuple[Any, ...]) -> tuple[Any, Backprop]:
        """Run the module and record the graph.

        RETURNS (tuple): What the module returns (a tensor or a tuple of tensors), and a callback
            that takes the gradient of it, in the same structure, and adds to the gradients of the
            weights.
        """
        if self._is_view:
            for group in self.rule.groups:
                for weight in group.weights:
                    weight.data = weight.data.clone()
            self._is_view = False
        self.module.train()
        step = self.step
        with torch.enable_grad():
            outputs = self.run(inputs)
        self._awaits_backprop = True

        def backprop(gradients: Any) -> None:
            scaled = [step.scaler.scale(gradient) for gradient in _as_tuple(gradients)]
            add_gradients(self.module, _as_tuple(outputs), scaled)
            self._awaits_backprop = False
            if self._deferred_step is not None:
                optimizer, self._deferred_step = self._deferred_step, None
                self.finish_update(optimizer)

        return outputs, backprop

    def finish_update(self, optimizer: Optimizer) -> None:
        """Take one AdamW step for all weights and clear their gradients.

        `Language.update` calls this between the forward and the backward pass of a shared encoder;
        the step then waits for the backward pass.
        """
        if self._awaits_backprop:
            self._deferred_step = optimizer
            return
        trained = [weight for weight in self.module.parameters() if weight.grad is not None]
        if trained:
            self.step.take(trained, optimizer, lr_scale=self.lr_scale)
            if optimizer.averages is not None:
                update_averages(self.id, self._learning_weights(), optimizer)

    def _learning_weights(self) -> dict[str, nn.Parameter]:
        """Find the weights that learn, sooner or later, by name."""
        learning = {id(weight) for group in self.rule.groups for weight in group.weights}
        weights = self.module.named_parameters()
        return {name: weight for name, weight in weights if id(weight) in learning}

    @contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Replace weights for a while by their averages, see `Language.use_params`.

        params (dict): `optimizer.averages`; it has no averages of weights that do not learn.
        """
        averages = find_averages(self.id, params)
        if not averages:
            yield
            return
        weights = dict(self.module.named_parameters())
        trained = {name: weights[name].data for name in averages}
        self._set_weights({name: xp2torch(average) for name, average in averages.items()})
        try:
            yield
        finally:
            self._set_weights(trained)

    def _set_weights(self, values: dict[str, torch.Tensor]) -> None:
        """Let weights be these tensors, without a copy."""
        self.forget()
        for name, weight in self.module.named_parameters():
            if name in values:
                weight.data = values[name]

    def forget(self) -> None:
        """Drop what was made from the weights, since they change."""

    def get_training_state(self) -> dict[str, Any]:
        """Collect what the next step depends on besides the weights."""
        return self._step.get_state() if self._step else {"optimizer": None, "scaler": None}

    def set_training_state(self, state: dict[str, Any]) -> None:
        """Undo `get_training_state`, in a shim with the same weights."""
        self._restored = dict(state)
        self._rule = self._step = None

    def to_device(self, device_type: str, device_id: int) -> None:
        """Move the weights."""
        self.module.to("cpu" if device_type == "cpu" else f"cuda:{device_id}")

    def __getstate__(self) -> dict[str, Any]:
        # A copy starts with a fresh optimizer: the old one's state belongs to the old weights.
        return {**self.__dict__, "_step": None, "_awaits_backprop": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Averages of weights are stored by id, so a copy needs one of its own.
        self.__dict__.update(state)
        with Shim.global_id_lock:
            Shim.global_id += 1
            self.id = Shim.global_id

    def to_bytes(self) -> bytes:
        """Write settings and weights, see `pack_weights`; without a module, `MAGIC` alone."""
        if self._model is None:
            return MAGIC
        weights = {
            key: weight.to(self.stored_dtype) if weight.is_floating_point() else weight
            for key, weight in self.get_weights().items()
        }
        return pack_weights(self.cfg, weights)

    def from_bytes(self, data: bytes) -> "TorchShim":
        """Load what `to_bytes` wrote. On CPU the weights are views of `data`, not a second copy.

        RAISES (BioclinError): The bytes have another origin or a later version, are cut short or
            damaged, or hold weights that are not finite.
        """
        if data == MAGIC:
            return self
        try:
            cfg, weights = unpack_weights(data)
            check_fit(partial(self.outline, cfg), weights)
            module = self._build(**cfg)
            module.load_state_dict(
                {key: w.float() if w.is_floating_point() else w for key, w in weights.items()},
                assign=True,
            )
            self.set_module(module, cfg)
        except BioclinError:
            raise
        except Exception as error:  # settings of other people can raise any error
            raise BioclinError(
                f"no model can be made of the stored settings ({first_line(error)}): the file is "
                "damaged or of another version"
            ) from None
        self._is_view = True
        return self

    def outline(self, cfg: dict[str, Any]) -> nn.Module:
        """Build a module that has the weights of `build`, for a look at their shapes."""
        return self._build(**cfg)


def store_in_half(model: Model) -> None:
    """Store the weights of a model in half precision (fp16) from now on: half of the bytes.

    Weights above 65,504 would become infinite, which `TorchShim.from_bytes` refuses.

    model (Model): Any thinc model. Weights of thinc layers are rounded to half precision but stay
        fp32, so that they take two thirds of the bytes in a compressed package.
    """
    for node in model.walk():
        for name in node.param_names:
            if node.has_param(name):
                weights = node.get_param(name)
                rounded = weights.astype("float16").astype(weights.dtype)
                if node.ops.xp.isfinite(rounded).all():
                    node.set_param(name, rounded)
        for shim in node.shims:
            if isinstance(shim, TorchShim):
                shim.stored_dtype = torch.float16


def add_gradients(module: nn.Module, outputs: tuple[Any, ...], gradients: list[Any]) -> None:
    """Run the backward pass. If it fails, the gradients of the weights are as they were before.

    outputs, gradients: Tensors that a forward pass gave, and the loss's gradient for each.
    """
    before = [(p, p.grad) for p in module.parameters() if p.grad is not None]
    for parameter, _ in before:
        parameter.grad = None
    pairs = [(y, dy) for y, dy in zip(outputs, gradients, strict=True) if y.requires_grad]
    try:
        torch.autograd.backward([y for y, _ in pairs], [dy for _, dy in pairs])
    except RuntimeError:
        module.zero_grad(set_to_none=True)
        raise
    finally:
        for parameter, gradient in before:
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)
