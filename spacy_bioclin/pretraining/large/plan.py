"""Plan a training before it is started: schedule, division of the batch, tokens and hours."""

import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from transformers import get_scheduler

from ...catalog.pretraining import TOKENS, PretrainingRecipe
from ...encoders.precision import choose_precision
from ..architecture import Shape, outline_model
from ..masked_lm import MaskedLM, open_model
from ..masking import NO_LOSS
from ..record import flop_per_piece, matrix_flops
from ..settings import PretrainSettings
from ..trainer import check_optimizer, schedule_arguments, split_warmup
from .batches import Division, divide_batch

SHARES = (0.25, 0.5, 0.75)  # of the steps, at which the learning rate is shown
PASSES = 3  # to measure the pieces per second, after one that is not measured
MEASURED_PIECES = 2048


class Plan(NamedTuple):
    """What a training will do.

    steps (int): Updates.
    sequences (int), pieces (int): Inputs and pieces per update.
    tokens (int): Pieces of all updates; with a recipe, of its earlier phases too.
    warmup_steps (int): Updates before the peak of the learning rate.
    rates (list[tuple[int, float]]): Step -> learning rate.
    processes (int): Processes, each with one device.
    division (Division): How an update is divided.
    weights (int | None): Number of weights of the encoder with its head.
    pieces_per_second (float | None): Speed of all processes.
    speed (str): Where the speed comes from.
    hours (float | None): Time of all updates.
    """

    steps: int
    sequences: int
    pieces: int
    tokens: int
    warmup_steps: int
    rates: list[tuple[int, float]]
    processes: int
    division: Division
    weights: int | None
    pieces_per_second: float | None
    speed: str
    hours: float | None


class Comparison(NamedTuple):
    """A setting beside what the paper prints.

    name (str): The paper's name of it, or the setting's where the paper does not state it.
    here (str): Value of this training.
    paper (str): Value that the paper prints; "" if it does not state one.
    where (str): Where the paper prints it.
    """

    name: str
    here: str
    paper: str
    where: str


def make_plan(
    settings: PretrainSettings,
    recipe: PretrainingRecipe | None = None,
    *,
    phase: int = 1,
    start_from: str | None = None,
    pieces_per_second: float | None = None,
) -> Plan:
    """Plan a training on the devices of this machine. Nothing is written.

    settings (PretrainSettings): Its settings.
    recipe (PretrainingRecipe | None): The recipe that they come from.
    phase (int): Phase of the recipe.
    start_from (str | None): Encoder, with which the speed is measured.
    pieces_per_second (float | None): Speed, if it is known.
    RETURNS (Plan): The plan.
    RAISES (BioclinError): A setting is invalid, or the batch cannot be divided.
    """
    check_optimizer(settings)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    division = divide_batch(
        settings.batch_pieces,
        settings.length,
        device_pieces=settings.device_pieces,
        n_processes=processes,
    )
    weights, (rate, speed) = None, (pieces_per_second, "given")
    if start_from is not None or recipe is not None:
        model = _open_or_outline(start_from, recipe)
        weights = model.pretrained.num_parameters()
        if rate is None:
            rate, speed = estimate_speed(model, settings, processes)
    pieces = settings.batch_pieces
    before = recipe.phases[: phase - 1] if recipe else []
    earlier = sum(one["steps"] * one["batch_sequences"] * one["length"] for one in before)
    warmup_steps = count_warmup(settings)
    at = {1, warmup_steps, settings.steps, *(round(settings.steps * s) for s in SHARES)}
    return Plan(
        steps=settings.steps,
        sequences=pieces // settings.length,
        pieces=pieces,
        tokens=settings.steps * pieces + earlier,
        warmup_steps=warmup_steps,
        rates=find_rates(settings, sorted(at - {0})),
        processes=processes,
        division=division,
        weights=weights,
        pieces_per_second=rate,
        speed=speed if rate else "",
        hours=settings.steps * pieces / rate / 3600 if rate else None,
    )


def count_warmup(settings: PretrainSettings) -> int:
    """Count the updates of the warm-up."""
    arguments = split_warmup(settings.warmup, settings.steps)
    if "warmup_steps" in arguments:
        return int(arguments["warmup_steps"])
    return math.ceil(settings.steps * float(arguments["warmup_ratio"]))


def find_rates(settings: PretrainSettings, steps: Sequence[int]) -> list[tuple[int, float]]:
    """Find the learning rate at some steps, by the schedule of the Trainer.

    steps (Sequence[int]): Numbers of updates that were made.
    RETURNS (list[tuple[int, float]]): Step, and the rate of the next update.
    """
    arguments = schedule_arguments(settings.decay_power)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=settings.learn_rate)
    schedule: Any = get_scheduler(
        arguments["lr_scheduler_type"],
        optimizer,
        num_warmup_steps=count_warmup(settings),
        num_training_steps=settings.steps,
        scheduler_specific_kwargs=arguments.get("lr_scheduler_kwargs"),
    )
    [factor] = schedule.lr_lambdas
    return [(step, settings.learn_rate * factor(step)) for step in steps]


def _open_or_outline(start_from: str | None, recipe: PretrainingRecipe | None) -> MaskedLM:
    if start_from is not None:
        return MaskedLM(open_model(start_from, None, None, 0.0))
    assert recipe is not None
    shape = Shape(**recipe.encoder.model_dump())
    return MaskedLM(outline_model(shape, recipe.vocabulary.size))


def estimate_speed(
    model: MaskedLM, settings: PretrainSettings, processes: int
) -> tuple[float, str]:
    """Estimate the pieces per second of a training with this machine's devices.

    An encoder with weights is trained for a few passes. Without weights the speed is what one
    matrix product allows, which no training reaches.

    RETURNS (tuple[float, str]): The speed, and where it comes from.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = choose_precision(settings.precision, device).dtype
    config = model.pretrained.config
    if next(model.parameters()).is_meta:
        limit = matrix_flops(config.hidden_size, dtype, device)
        cost = flop_per_piece(model, settings.length, settings.mask_rate)
        return processes * limit / cost, "at most: rate of one matrix product"
    n_blocks = max(1, MEASURED_PIECES // settings.length)
    ids = torch.randint(5, config.vocab_size, (n_blocks, settings.length), device=device)
    labels = torch.where(
        torch.rand(ids.shape, device=device) < settings.mask_rate, ids, torch.tensor(NO_LOSS)
    )
    labels[:, 1] = ids[:, 1]
    model.to(device).train()
    seconds = 0.0
    for i in range(1 + PASSES):
        started = time.perf_counter()
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            loss = model(ids, torch.ones_like(ids), labels)["loss"]
        loss.backward()
        loss.item()  # waits for the device
        seconds += (time.perf_counter() - started) * bool(i)
    return processes * ids.numel() * PASSES / seconds, f"measured in {PASSES} passes"


def compare(
    recipe: PretrainingRecipe,
    settings: PretrainSettings,
    plan: Plan,
    *,
    phase: int,
    actual: Mapping[str, Any],
) -> list[Comparison]:
    """Put the settings of a training beside what the paper prints.

    actual (Mapping[str, Any]): Values of the vocabulary and the encoder that are used, by name as
        in `Published`; the recipe's where there are none yet.
    RETURNS (list[Comparison]): What the paper prints, in its order, and then the other settings.
    """
    recipes = recipe.settings_of(phase)
    here = {name: getattr(settings, name, value) for name, value in recipes.items()}
    here |= {**actual, "batch_sequences": plan.sequences, TOKENS: f"{plan.tokens / 1e9:.1f}B"}
    rows, named = [], set()
    for row in recipe.published:
        if row.phase in (0, phase):
            named.add(row.setting)
            shown = show_value(row.setting, here[row.setting])
            rows.append(Comparison(row.name, shown, row.value, row.where))
    rows += [
        Comparison(
            name,
            show_value(name, here[name]),
            "",
            "unconfirmed" if name in recipe.unconfirmed else "see the recipe",
        )
        for name in recipes
        if name not in named
    ]
    return rows


def show_value(name: str, value: Any) -> str:
    """Show the value of a setting."""
    if name == "whole_words":
        return "words" if value else "pieces"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "decay_power":
        return "linear" if value == 1 else f"power {value:g}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
