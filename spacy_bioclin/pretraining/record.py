"""What a training costs, how near it comes to what the device could do, and the record of it."""

import json
import math
import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..pages import draw_curves


def flop_per_piece(model: Any, length: int, mask_rate: float) -> float:
    """RETURNS (float): Floating-point operations that a piece costs in training: six per weight of
    every matrix that it meets (two forward, four back; Kaplan et al. 2020), the head's for
    predicted pieces only, and attention over the block."""
    encoder = model.pretrained.base_model
    in_encoder = sum(m.weight.numel() for m in encoder.modules() if isinstance(m, nn.Linear))
    in_all = sum(m.weight.numel() for m in model.modules() if isinstance(m, nn.Linear))
    config = model.pretrained.config
    attention = 12 * length * config.hidden_size * config.num_hidden_layers
    return 6 * in_encoder + 6 * mask_rate * (in_all - in_encoder) + attention


def matrix_flops(width: int, dtype: torch.dtype, device: torch.device) -> float:
    """RETURNS (float): Operations a second of this device in one product of the encoder's shape,
    (4096, width) x (width, 4 width): median of ten."""
    a = torch.randn(4096, width, device=device, dtype=dtype)
    b = torch.randn(width, 4 * width, device=device, dtype=dtype)
    seconds = []
    for _ in range(13):
        started = time.perf_counter()
        a @ b
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return 2 * 4096 * width * 4 * width / statistics.median(seconds[3:])


def measured(history: list[dict[str, float]], limit: float) -> dict[str, Any]:
    """
    history (list[dict]): The Trainer's log.
    limit (float): Of the device, see `matrix_flops`.
    RETURNS (dict): Curves and rates of a training.
    """
    curve: dict[float, dict[str, float]] = {}
    for entry in history:
        for key, value in entry.items():
            if key.startswith("eval_") and key.endswith("_loss") and key != "eval_loss":
                lang = key.removeprefix("eval_").removesuffix("_loss")
                curve.setdefault(entry["step"], {})[lang] = round(math.exp(value), 3)
    rates = [entry["pieces_per_second"] for entry in history if "pieces_per_second" in entry]
    shares = [entry["matrix_share"] for entry in history if "matrix_share" in entry]
    return {
        "perplexity": [{"step": step, **values} for step, values in sorted(curve.items())],
        "loss": [[entry["step"], round(entry["loss"], 4)] for entry in history if "loss" in entry],
        "pieces_per_second": statistics.median(rates) if rates else None,
        "share_of_matrix_rate": statistics.median(shares) if shares else None,
        "matrix_gflops": round(limit / 1e9, 1),
    }


def write_json(record: Mapping[str, Any], path: Path) -> None:
    """Write a record whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(record, indent=2))
    os.replace(partial, path)


def write_record(record: Mapping[str, Any], path: Path) -> None:
    """Write the record, and the curves of perplexity in it as a picture beside it."""
    write_json(record, path)
    path.with_name("perplexity.svg").write_text(draw_perplexity({"": record}))


def draw_perplexity(records: Mapping[str, Mapping[str, Any]]) -> str:
    """RETURNS (str): SVG with a curve for each record, by name, and language."""
    curves = {
        f"{name} {lang}".strip(): [
            (row["step"] * record["settings"]["batch_pieces"] / 1e6, row[lang])
            for row in record["perplexity"]
        ]
        for name, record in records.items()
        for lang in record["perplexity"][0]
        if lang != "step"
    }
    return draw_curves(
        curves,
        title="Perplexity of masked pieces, held-out text",
        x_label="million pieces read",
        logarithmic=True,
    )
