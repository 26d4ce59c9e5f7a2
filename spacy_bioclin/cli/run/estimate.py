"""Estimate how long a run takes, and what it costs."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ...runner.notes.job import AnnotateJob
    from ...runner.records import Form

SAMPLE_SECONDS = 10.0


def show_estimate(
    form: "Form", job: "AnnotateJob", *, limit: int | None, processes: int, price: float | None
) -> None:
    """Print the columns of the output, the counts of the first note, and what all of them take.

    limit (int | None): Largest number of notes of the run.
    processes (int): Number of processes of the run.
    price (float | None): Price per hour of the machines with all these processes.
    """
    from ...runner.notes.estimate import estimate

    for line in job.target.describe():
        typer.echo(line)
    found = estimate(form, job.start, seconds=SAMPLE_SECONDS, limit=limit)
    if found.first.get("written"):
        first = found.first
        labels = [
            f"{layer} {label} {n:,}"
            for layer, counts in first.get("entities", {}).items()
            for label, n in counts.items()
        ]
        typer.echo(
            f"first note ({first['place']}): {first.get('characters', 0):,} characters, "
            f"{first.get('words', 0):,} words; {', '.join(labels) or 'no entities'}"
        )
    n, words, seconds = found.counts["written"], found.counts["words"], found.seconds
    typer.echo(
        f"sample: {n:,} notes, {words:,} words in {seconds:,.1f} s in one process: "
        f"{found.rate:,.1f} notes/s, {words / max(seconds, 1e-9):,.0f} words/s"
    )
    if found.refused:
        typer.echo(f"of the sample, {len(found.refused):,} notes fail: {found.refused[0]}")
    if found.total is None or found.hours is None:
        reason = "no note was annotated" if n == 0 else "it is not known how many notes there are"
        typer.echo(f"estimate: none, because {reason}")
        return
    about = "" if found.is_all else "about "
    hours = found.hours / processes
    shared = f", {hours:,.2f} h in {processes} processes" if processes > 1 else ""
    typer.echo(
        f"estimate: {about}{found.total:,.0f} notes; {found.hours:,.2f} h in one process{shared}"
    )
    if price is not None:
        typer.echo(f"cost: {about}{hours * price:,.2f}, at {price:,.2f} an hour")
