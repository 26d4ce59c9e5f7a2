"""Our bridge between a torch module and thinc, in place of thinc's `PyTorchShim`.

It differs in four things: one fused AdamW step updates all weights (thinc's calls the optimizer
once per weight), autocast works on CPU too, weights are stored as safetensors (thinc's pickles),
and a backward pass that runs out of memory is done again with less.
"""

import itertools
import json
import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from safetensors.torch import save as save_safetensors
from thinc.api import Optimizer, get_torch_default_device
from thinc.shims.shim import Shim
from torch import nn

from ..torch_bridge.memory import free_memory, is_out_of_memory
from .precision import choose_precision, convert_linear_layers
from .strategy.apply import Tuning
from .strategy.linear import plain_copy
from .strategy.settings import Strategy
from .vectors import VectorMemory

# First bytes of what `TorchShim.to_bytes` writes; the number is the layout's version.
MAGIC = b"bioclin1"
ALIGNMENT = 64

# `nlp.pipe(texts, n_process=2)` forks. A forked process has torch's settings but not its threads,
# and waits for ever in the first operation that is shared among them.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


PLAIN = Strategy()


class TorchShim(Shim):
    """Holds a torch module that takes and returns tensors.

    build (Callable[[dict], nn.Module]): Makes the module from `cfg`, weights uninitialised or not.
    precision (str): See `choose_precision`.
    lr_scale (float): Factor on the optimizer's learning rate.
    strategy (Strategy): Which weights learn, and how fast; without one, all at the same rate.
    """

    def __init__(
        self,
        build: Callable[[dict[str, Any]], nn.Module],
        *,
        precision: str,
        lr_scale: float,
        strategy: Strategy = PLAIN,
    ) -> None:
        super().__init__(model=None)
        self._build = build
        self._optimizer: torch.optim.AdamW | None = None
        self._scaler: torch.amp.GradScaler | None = None
        self._restored: dict[str, Any] = {}
        self._twin: tuple[torch.dtype, nn.Module] | None = None
        self.precision = precision
        self.lr_scale = lr_scale
        self.strategy = strategy
        self._tuning: Tuning | None = None
        # Of an encoder that does not learn, from the first update on.
        self._memory: VectorMemory | None = None
        self._has_run = False
        # A forward pass whose backward pass has not run yet must still find the weights it used.
        self._awaits_backprop = False
        self._deferred_step: Optimizer | None = None
        self._borrowed = False

    @property
    def module(self) -> Any:
        """The torch module. RAISES (ValueError): Before `set_module` or `from_bytes`."""
        if self._model is None:
            raise ValueError("The model has no weights yet: call nlp.initialize() or load it first")
        return self._model

    @property
    def device(self) -> torch.device:
        return next(self.module.parameters()).device

    @property
    def tuning(self) -> Tuning:
        """The strategy, at work on the module from the first update on."""
        if self._tuning is None:
            encoder = getattr(self.module, "transformer", self.module)
            self._tuning = Tuning(encoder, self.strategy, self._restored.pop("tuning", None))
        return self._tuning

    def set_module(self, module: nn.Module, cfg: dict[str, Any]) -> None:
        """Use this module; `cfg` is what `build` needs to make its like again."""
        self.cfg = cfg
        self._model = module.to(get_torch_default_device()).eval()
        self._optimizer = self._scaler = self._twin = self._tuning = None
        self._memory = None
        self._restored = {}
        self._borrowed = False

    def __call__(self, inputs: Any, is_train: bool) -> tuple[Any, Callable[[Any], None]]:
        return self.begin_update(inputs) if is_train else (self.predict(inputs), lambda _: None)

    def predict(self, inputs: tuple[Any, ...]) -> Any:
        """RETURNS (Any): What the module returns, without a graph. Dropout is off."""
        dtype = choose_precision(self.precision, self.device).dtype
        module = self._predictor(dtype)
        with torch.no_grad(), self._autocast(dtype):
            if self._memory is None:
                return module(*inputs)
            return self._memory.recall(module, *inputs, kind=str(dtype)).to(self.device)

    def _predictor(self, dtype: torch.dtype) -> Any:
        """RETURNS (nn.Module): The module, or its copy with weights of this format and what LoRA
        learned added to them: so that is not done at every call."""
        if dtype == torch.float32 and not self.strategy.lora_rank:
            return self.module.eval() if self.module.training else self.module
        if self._twin is None or self._twin[0] != dtype:
            twin = convert_linear_layers(self.module, dtype)
            self._twin = dtype, twin.eval()
        return self._twin[1]

    def _autocast(self, dtype: torch.dtype) -> torch.autocast:
        mixed = dtype in (torch.bfloat16, torch.float16)
        return torch.autocast(self.device.type, dtype if mixed else None, enabled=mixed)

    def begin_update(self, inputs: tuple[Any, ...]) -> tuple[Any, Callable[[Any], None]]:
        """RETURNS (tuple): What the module returns, and a callback that takes the gradient of it
        (same structure: a tensor or a tuple of tensors) and adds to the weights' gradients. Where
        no weight learns, the module is run as for annotation, and the callback does nothing.
        """
        self._has_run = True
        if not self.tuning.thaw():
            return self._predict_again(inputs), lambda _: None
        self._memory = None
        self._own_weights()
        self._twin = None
        self.module.train()
        precision = "auto" if self.precision == "int8" else self.precision
        dtype = choose_precision(precision, self.device).dtype
        scaler = self._scaler
        if scaler is None:
            # Gradients of fp16 activations would vanish without a factor (Micikevicius et al. 2018)
            enabled = dtype == torch.float16
            scaler = torch.amp.GradScaler(self.device.type, init_scale=2.0**12, enabled=enabled)
            if state := self._restored.pop("scaler", None):
                scaler.load_state_dict(state)
            self._scaler = scaler

        def run() -> tuple[torch.Tensor, ...]:
            with torch.enable_grad(), self._autocast(dtype):
                return _as_tuple(self.module(*inputs))

        random_state = torch.get_rng_state()
        on_gpu = self.device.type == "cuda"
        gpu_random_state = torch.cuda.get_rng_state(self.device) if on_gpu else None
        outputs = run()
        self._awaits_backprop = True

        def backprop(gradients: Any) -> None:
            scaled = [scaler.scale(gradient) for gradient in _as_tuple(gradients)]
            for attempt in itertools.count():
                try:
                    if attempt:
                        torch.set_rng_state(random_state)
                        if gpu_random_state is not None:
                            torch.cuda.set_rng_state(gpu_random_state, self.device)
                    self._add_gradients(run() if attempt else outputs, scaled)
                    break
                except RuntimeError as error:
                    if not is_out_of_memory(error) or not self._save_memory():
                        raise
                free_memory()
            self._awaits_backprop = False
            if self._deferred_step is not None:
                optimizer, self._deferred_step = self._deferred_step, None
                self.finish_update(optimizer)

        return outputs if len(outputs) > 1 else outputs[0], backprop

    def _predict_again(self, inputs: tuple[Any, ...]) -> Any:
        """RETURNS (Any): What `predict` returns; from now on vectors are remembered."""
        if self._memory is None:
            self._memory = VectorMemory()
            if state := self._restored.pop("memory", None):
                self._memory.set_state(state)
        return self.predict(inputs)

    def _save_memory(self) -> bool:
        return getattr(self.module, "save_memory", bool)()

    def _add_gradients(self, outputs: tuple[torch.Tensor, ...], gradients: list[Any]) -> None:
        """Run the backward pass. If it fails, the weights' gradients are as they were before."""
        before = [(p, p.grad) for p in self.module.parameters() if p.grad is not None]
        for parameter, _ in before:
            parameter.grad = None
        pairs = [(y, dy) for y, dy in zip(outputs, gradients, strict=True) if y.requires_grad]
        try:
            torch.autograd.backward([y for y, _ in pairs], [dy for _, dy in pairs])
        except RuntimeError:
            self.module.zero_grad(set_to_none=True)
            raise
        finally:
            for parameter, gradient in before:
                parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient

    def finish_update(self, optimizer: Optimizer) -> None:
        """Take one AdamW step for all weights and clear their gradients.

        Learning rate, betas, eps, weight decay and the clipping of the global norm come from the
        config's thinc optimizer, so its schedules drive this step too. `Language.update` calls
        this between the forward and the backward pass; the step then waits for the backward pass.
        """
        if self._awaits_backprop:
            self._deferred_step = optimizer
            return
        self.tuning.steps += self._has_run
        self._has_run = False
        trained = [p for p in self.module.parameters() if p.grad is not None]
        if not trained:
            return
        adamw = self._adamw(optimizer)
        assert self._scaler is not None
        self._scaler.unscale_(adamw)
        if optimizer.grad_clip:
            nn.utils.clip_grad_norm_(trained, float(optimizer.grad_clip), foreach=True)
        self.tuning.prepare_step(adamw, optimizer, float(optimizer.learn_rate) * self.lr_scale)
        self._scaler.step(adamw)  # left out where fp16 gradients overflowed
        self._scaler.update()
        adamw.zero_grad(set_to_none=True)

    def get_training_state(self) -> dict[str, Any]:
        """RETURNS (dict): Moments of AdamW, the scale of fp16 and what the strategy remembers:
        beside the weights all that the next step depends on."""
        return {
            "optimizer": self._optimizer and self._optimizer.state_dict(),
            "scaler": self._scaler and self._scaler.state_dict(),
            "tuning": self._tuning and self._tuning.get_state(),
            "memory": self._memory and self._memory.get_state(),
        }

    def set_training_state(self, state: dict[str, Any]) -> None:
        """Undo `get_training_state`, in a shim with the same weights."""
        self._restored = dict(state)  # until the first update; no second copy stays
        self._optimizer = self._scaler = self._tuning = self._memory = None

    def _adamw(self, optimizer: Optimizer) -> torch.optim.AdamW:
        if self._optimizer is None:
            self._optimizer = self.tuning.make_adamw(optimizer)
            if state := self._restored.pop("optimizer", None):
                self._optimizer.load_state_dict(state)
        return self._optimizer

    def _own_weights(self) -> None:
        """Weights that were loaded are views of the bytes they came in; training needs its own."""
        if self._borrowed:
            for group in self.tuning.groups:
                for parameter in group.weights:
                    parameter.data = parameter.data.clone()
            self._borrowed = False

    def to_device(self, device_type: str, device_id: int) -> None:
        self.module.to("cpu" if device_type == "cpu" else f"cuda:{device_id}")

    def __getstate__(self) -> dict[str, Any]:
        # A copy starts with a fresh optimizer: the old one's state belongs to the old weights.
        fresh = {"_optimizer": None, "_scaler": None, "_twin": None, "_awaits_backprop": False}
        fresh["_memory"] = None
        return {**self.__dict__, **fresh}

    def to_bytes(self) -> bytes:
        """RETURNS (bytes): MAGIC, length of the header, the header (`cfg` as JSON), padding,
        weights in the safetensors format."""
        if self._model is None:
            return MAGIC
        state = plain_copy(self._model).state_dict()
        state = {key: value.contiguous() for key, value in state.items()}
        header = json.dumps(self.cfg, ensure_ascii=False).encode("utf-8")
        prefix = MAGIC + len(header).to_bytes(8, "little") + header
        padding = b" " * (-len(prefix) % ALIGNMENT)
        return prefix + padding + save_safetensors(state)

    def from_bytes(self, data: bytes) -> "TorchShim":
        """Load what `to_bytes` wrote. On CPU the weights are views of `data`, not a second copy.

        RAISES (ValueError): If the bytes are of another origin, cut short or of a later version.
        """
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError("Not the weights of a spacy-bioclin model, or of a later version")
        if len(data) == len(MAGIC):
            return self
        start = len(MAGIC) + 8
        end = start + int.from_bytes(data[len(MAGIC) : start], "little")
        cfg = json.loads(data[start:end])
        module = self._build(cfg)
        tensors = _view_safetensors(memoryview(data)[end + (-end % ALIGNMENT) :])
        module.load_state_dict(tensors, assign=True)
        self.set_module(module, cfg)
        self._borrowed = True
        return self


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def _view_safetensors(data: memoryview) -> dict[str, torch.Tensor]:
    """Read the safetensors format without copying (its own `load` copies every tensor).

    Format: 8 bytes length, JSON {name: {dtype, shape, data_offsets}}, data.
    """
    length = int.from_bytes(data[:8], "little")
    header = json.loads(bytes(data[8 : 8 + length]))
    body = data[8 + length :]
    tensors = {}
    for name, spec in header.items():
        if name == "__metadata__":
            continue
        start, end = spec["data_offsets"]
        dtype, shape = DTYPES[spec["dtype"]], spec["shape"]
        if start == end:
            tensors[name] = torch.empty(shape, dtype=dtype)
            continue
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given buffer is not writable")
            tensors[name] = torch.frombuffer(body[start:end], dtype=dtype).reshape(shape)
    return tensors
