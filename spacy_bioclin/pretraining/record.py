"""Measure what a training costs and how well it uses the device, and write its record."""

import json
import math
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..outputs import write_atomic
from ..pages import draw_curves


def flop_per_piece(model: Any, length: int, mask_rate: float) -> float:
    """Estimate the floating-point operations per piece in training.

    These are six per weight of every matrix (two forward, four backward; Kaplan et al. 2020), for
    the matrices of the head only at predicted pieces, and those of attention over the block.
    """
    encoder = model.pretrained.base_model
    in_encoder = sum(m.weight.numel() for m in encoder.modules() if isinstance(m, nn.Linear))
    in_all = sum(m.weight.numel() for m in model.modules() if isinstance(m, nn.Linear))
    config = model.pretrained.config
    attention = 12 * length * config.hidden_size * config.num_hidden_layers
    return 6 * in_encoder + 6 * mask_rate * (in_all - in_encoder) + attention


def matrix_flops(width: int, dtype: torch.dtype, device: torch.device) -> float:
    """Measure the operations per second of a device in one matrix product of the encoder's shape.

    RETURNS (float): Median of ten products of (4096, width) and (width, 4 * width).
    """
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


def summarize_log(log: list[dict[str, float]], limit: float) -> dict[str, Any]:
    """Summarize perplexities and rates of a training.

    log (list[dict]): The log of the Trainer.
    limit (float): Operations per second of the device, see `matrix_flops`.
    RETURNS (dict): What pretraining.json has.
    """
    curve: dict[float, dict[str, float]] = {}
    for entry in log:
        for key, value in entry.items():
            if key.startswith("eval_") and key.endswith("_loss") and key != "eval_loss":
                lang = key.removeprefix("eval_").removesuffix("_loss")
                curve.setdefault(entry["step"], {})[lang] = round(math.exp(value), 3)
    rates = [entry["pieces_per_second"] for entry in log if "pieces_per_second" in entry]
    shares = [entry["matrix_share"] for entry in log if "matrix_share" in entry]
    return {
        "perplexity": [{"step": step, **values} for step, values in sorted(curve.items())],
        "pieces_per_second": statistics.median(rates) if rates else None,
        "share_of_matrix_rate": statistics.median(shares) if shares else None,
        "matrix_gflops": round(limit / 1e9, 1),
    }


def write_json(record: Mapping[str, Any], path: Path) -> None:
    """Write a record as JSON."""
    write_atomic(path, json.dumps(record, indent=2))


def write_record(record: Mapping[str, Any], path: Path) -> None:
    """Write a record, and beside it a picture of its perplexities."""
    write_json(record, path)
    write_atomic(path.with_name("perplexity.svg"), draw_perplexity({"": record}))


def draw_perplexity(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Draw the perplexity of each language in each record.

    records (Mapping): Name of the training -> its record.
    RETURNS (str): The SVG.
    """
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
