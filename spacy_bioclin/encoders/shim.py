"""The shim of an encoder: precision, fine-tuning strategy, and what to do when memory runs out."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..errors import BioclinError
from ..torch_bridge.memory import free_memory, is_out_of_memory
from ..torch_bridge.shim import Backprop, TorchShim
from .loading import build_empty
from .precision import autocast, choose_precision, convert_linear_layers
from .strategy.apply import Tuning
from .strategy.linear import copy_merged
from .strategy.settings import SECTION, Strategy
from .vectors import VectorMemory


class EncoderShim(TorchShim):
    """Hold a `WindowedEncoder`.

    build (Callable[..., nn.Module]): See `TorchShim`.
    precision (str): See `choose_precision`.
    strategy (Strategy): Which weights learn, and how fast.
    """

    def __init__(
        self,
        build: Callable[..., nn.Module],
        *,
        precision: str,
        strategy: Strategy,
    ) -> None:
        super().__init__(build, lr_scale=1.0)
        self.precision = precision
        self.strategy = strategy
        # A copy for annotation, in the format that it was made for.
        self._converted: tuple[torch.dtype, nn.Module] | None = None
        # Of an encoder that does not learn, from the first update on.
        self._memory: VectorMemory | None = None
        self._has_run = False

    @property
    def scales_gradients(self) -> bool:
        """Whether activations are in fp16 during training."""
        return self._training_dtype == torch.float16

    @property
    def _training_dtype(self) -> torch.dtype:
        precision = "auto" if self.precision == "int8" else self.precision
        return choose_precision(precision, self.device).dtype

    @property
    def adversary(self) -> tuple[nn.Parameter, float] | None:
        """The table of piece embeddings, and how far adversarial training moves it."""
        radius = self.strategy.adversarial
        return (self.module.transformer.get_input_embeddings().weight, radius) if radius else None

    def make_rule(self) -> Tuning:
        """Apply the strategy to the encoder."""
        state = self._restored.pop("tuning", None)
        return Tuning(self.module.transformer, self.strategy, state)

    def run(self, inputs: tuple[Any, ...]) -> Any:
        """Run the encoder in training, in its precision."""
        with autocast(self.device, self._training_dtype):
            return super().run(inputs)

    def get_weights(self) -> dict[str, torch.Tensor]:
        """Collect the weights to store; what LoRA learned is added to them."""
        return copy_merged(self.module).state_dict()

    def predict(self, inputs: tuple[Any, ...]) -> Any:
        """Encode windows without dropout and without recording a graph."""
        dtype = choose_precision(self.precision, self.device).dtype
        module = self._get_converted(dtype)
        with torch.no_grad(), autocast(self.device, dtype):
            if self._memory is None:
                return module(*inputs)
            return self._memory.recall(module, *inputs, kind=str(dtype)).to(self.device)

    def _get_converted(self, dtype: torch.dtype) -> nn.Module:
        """Convert weights, and add what LoRA learned, once instead of at every call."""
        if dtype == torch.float32 and not self.strategy.lora_rank:
            module: nn.Module = self.module
            return module.eval() if module.training else module
        if self._converted is None or self._converted[0] != dtype:
            self._converted = dtype, convert_linear_layers(self.module, dtype).eval()
        return self._converted[1]

    def begin_update(self, inputs: tuple[Any, ...]) -> tuple[Any, Backprop]:
        """Encode windows and record the graph, see `TorchShim.begin_update`.

        If no weight learns, the encoder is run as for annotation and the callback does nothing. If
        the backward pass runs out of memory, both passes are repeated with less.

        RAISES (BioclinError): The strategy is adversarial, and the training loop is spaCy's own.
        """
        if self.adversary is not None and not self.is_repeated:
            raise BioclinError(
                f"{SECTION} {self.strategy.show('adversarial')}: runs every batch twice, which "
                "only `bioclin train` does, not `spacy train` or nlp.update(): train with it, or "
                "set adversarial to 0"
            )
        self._has_run = True
        if not self.rule.thaw():
            return self._predict_and_remember(inputs), lambda _: None
        self.forget()
        random_state = torch.get_rng_state()
        on_gpu = self.device.type == "cuda"
        gpu_random_state = torch.cuda.get_rng_state(self.device) if on_gpu else None
        begin = super().begin_update
        outputs, backprop = begin(inputs)

        def backprop_or_repeat(gradients: Any) -> None:
            nonlocal backprop
            while True:
                try:
                    return backprop(gradients)
                except RuntimeError as error:
                    if not is_out_of_memory(error) or not self.module.save_memory():
                        raise
                free_memory()
                torch.set_rng_state(random_state)
                if gpu_random_state is not None:
                    torch.cuda.set_rng_state(gpu_random_state, self.device)
                _, backprop = begin(inputs)

        return outputs, backprop_or_repeat

    def _predict_and_remember(self, inputs: tuple[Any, ...]) -> Any:
        if self._memory is None:
            self._memory = VectorMemory()
            if state := self._restored.pop("memory", None):
                self._memory.set_state(state)
        return self.predict(inputs)

    def finish_update(self, optimizer: Any) -> None:
        """Take one step, see `TorchShim.finish_update`, and count it."""
        if self._has_run and not self._awaits_backprop:
            self.rule.steps += 1
            self._has_run = False
        super().finish_update(optimizer)

    def forget(self) -> None:
        """Drop converted weights and vectors, since the weights change."""
        self._memory = self._converted = None

    def get_training_state(self) -> dict[str, Any]:
        """Collect what the next step depends on besides the weights."""
        return {
            **super().get_training_state(),
            "tuning": self._rule and self.rule.get_state(),
            "memory": self._memory and self._memory.get_state(),
        }

    def set_training_state(self, state: dict[str, Any]) -> None:
        """Undo `get_training_state`, in a shim with the same weights."""
        super().set_training_state(state)
        self._memory = None

    def outline(self, cfg: dict[str, Any]) -> nn.Module:
        """Build the encoder alone, see `TorchShim.outline`: the tokenizer has no weights."""
        return nn.ModuleDict({"transformer": build_empty(cfg["config"])})

    def set_module(self, module: nn.Module, cfg: dict[str, Any]) -> None:
        """Use this encoder from now on, see `TorchShim.set_module`."""
        super().set_module(module, cfg)
        self._converted = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_converted": None, "_memory": None}
