"""Print what `bioclin pretrain` would do, beside what the paper of a recipe prints."""

from pathlib import Path
from typing import Any

import typer

from ...pretraining.settings import PretrainSettings
from ..tables import print_table


def print_plan(
    corpus: Path,
    settings: PretrainSettings,
    *,
    recipe: str | None,
    phase: int,
    start_from: str | None,
    pieces_per_second: float | None,
) -> None:
    """Print the schedule of a training. Nothing is written.

    corpus (Path): Folder made by `bioclin clean-text`; it need not exist yet.
    recipe (str | None), phase (int): Recipe that the settings come from.
    start_from (str | None): Encoder.
    pieces_per_second (float | None): Speed for the hours; None to measure it.
    RAISES (BioclinError): A setting is invalid, or the corpus is not one.
    """
    from ...catalog.pretraining import find_pretraining
    from ...encoders.files import open_config
    from ...pretraining.large.plan import compare, make_plan

    known = find_pretraining(recipe, phase) if recipe else None
    text = describe_corpus(corpus, settings)
    plan = make_plan(
        settings, known, phase=phase, start_from=start_from, pieces_per_second=pieces_per_second
    )
    actual: dict[str, Any] = {}
    if start_from:
        config = open_config(start_from)
        names = {
            "encoder.kind": "model_type",
            "encoder.layers": "num_hidden_layers",
            "encoder.width": "hidden_size",
            "encoder.heads": "num_attention_heads",
            "encoder.inner": "intermediate_size",
            "vocabulary.size": "vocab_size",
        }
        actual = {name: getattr(config, key, "?") for name, key in names.items()}
    if known:
        title = f"{recipe}, phase {phase} of {len(known.phases)}: {known.paper}"
        rows = compare(known, settings, plan, phase=phase, actual=actual)
        print_table(rows, ("setting", "here", "paper", "source"), title=title)
    division = plan.division
    at_once = f"{division.at_once:,} sequences of {settings.length}"
    speed = "unknown: give --pieces-per-second"
    hours = "unknown"
    if plan.pieces_per_second and plan.hours:
        speed = f"{plan.pieces_per_second:,.0f} ({plan.speed})"
        least = "at least " if "at most" in plan.speed else ""
        hours = f"{least}{plan.hours:,.1f}" + (f"; the paper: {known.hardware}" if known else "")
    schedule = [
        ("corpus", text),
        ("steps", f"{plan.steps:,}"),
        ("sequences per step", f"{plan.sequences:,} of {settings.length} pieces"),
        ("pieces per step", f"{plan.pieces:,}"),
        ("pieces in total", f"{plan.tokens:,}" + ", earlier phases included" * (phase > 1)),
        ("peak learning rate", f"{settings.learn_rate:g}"),
        ("warm-up", f"{plan.warmup_steps:,} steps"),
        *((f"learning rate after step {step:,}", f"{rate:.3g}") for step, rate in plan.rates),
        (
            "accumulation on this machine",
            f"{plan.processes} processes x {division.passes:,} passes x {at_once}",
        ),
        ("weights", f"{plan.weights:,}" if plan.weights else "unknown: give --start-from"),
        ("pieces per second", speed),
        ("hours", hours),
    ]
    print_table(schedule, title="Schedule")
    typer.echo("Dry run: nothing was written.")


def describe_corpus(corpus: Path, settings: PretrainSettings) -> str:
    """List the parts of a corpus with their shares of the text, here by bytes.

    RAISES (BioclinError): It has no text, or the shares do not fit.
    """
    from ...pretraining.text.corpus import find_files, resolve_shares

    if not corpus.exists():
        return f"{corpus} (not made yet)"
    sizes = {part: path.stat().st_size for part, path in find_files(corpus, "train").items()}
    shares = resolve_shares(settings.shares, sizes, balance=settings.balance)
    total = sum(shares.values()) or 1
    return ", ".join(f"{part} {share / total:.1%}" for part, share in shares.items())
