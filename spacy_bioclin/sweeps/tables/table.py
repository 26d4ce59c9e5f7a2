"""A table of text, and how scores are written in it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...evaluation.published import METRICS
from ...text import show_controls
from ..entries import Published
from ..scoring import STRICT

Statistics = Mapping[str, Any]
Score = Sequence[Any]  # mean or median, and standard deviation or None
MISSING = "–"
OURS = "ours"  # source of rows and columns that are not published


class Table(NamedTuple):
    """A table of text.

    title (str): Title.
    head (list[str]): Names of the columns.
    rows (list[list[str]]): Cells.
    note (str): What a reader must know to read the table.
    """

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str


def to_markdown(table: Table) -> str:
    """Write a table with its title and note in Markdown; a cell stays on its line."""
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    body = ["| " + " | ".join(map(_escape_cell, row)) + " |" for row in lines]
    return "\n".join([f"### {table.title}", "", *body, "", table.note, ""])


def _escape_cell(cell: str) -> str:
    text = " ".join(show_controls(cell).splitlines())
    return text.replace("|", "\\|")


def list_tasks(summary: Statistics, published: Sequence[Published]) -> list[str]:
    """List our tasks, and then those that only the papers have."""
    ours = [group["task"] for group in summary["groups"]]
    return list(dict.fromkeys([*ours, *(row.task for row in published)]))


def name_score(summary: Statistics) -> str:
    """Name the score of all groups: "F1" if it is strict F1 of entities for each, else "score"."""
    scores = {group.get("score", STRICT) for group in summary["groups"]}
    return "F1" if scores <= {STRICT} else "score"


def describe_scores(summary: Statistics) -> str:
    """Say which metric each task is scored by, as a sentence; "" if it is F1 for all of them."""
    if name_score(summary) == "F1":
        return ""
    tasks: dict[str, dict[str, None]] = {}
    for group in summary["groups"]:
        if not group["joint"]:
            tasks.setdefault(group["score"], {})[group["task"]] = None
    parts = [f"{METRICS[score].title} ({', '.join(own)})" for score, own in tasks.items()]
    return f" Scores: {'; '.join(parts)}." if parts else ""


def format_score(score: float | None) -> str:
    """Write a score as "0.8913"."""
    return MISSING if score is None else f"{score:.4f}"


def format_spread(figures: Statistics) -> str:
    """Write mean and sd of a sample as "0.8913±0.010"."""
    return format_pair((figures["mean"], figures["sd"]) if figures["n"] else None, 3)


def format_pair(pair: Score | None, digits: int) -> str:
    """Write mean and sd as "0.8913±0.01", with so many digits of the sd."""
    if pair is None:
        return MISSING
    mean, sd = pair
    return format_score(mean) if sd is None else f"{mean:.4f}±{sd:.{digits}f}"


def format_percent(score: Score | None) -> str:
    """Write mean and sd as "89.1 (1.2)"."""
    if score is None:
        return MISSING
    mean, sd = score
    return f"{100 * mean:.1f}" + ("" if sd is None else f" ({100 * sd:.1f})")


def format_rate(rate: float | None) -> str:
    """Write a learning rate as papers do: 5e-5 for 0.00005."""
    if rate is None:
        return MISSING
    digits, _, power = f"{rate:.3e}".partition("e")
    return f"{float(digits):g}e{int(power)}"
