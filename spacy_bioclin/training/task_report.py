"""What a training on several tasks shows: a table at each evaluation, a file with all of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from ..outputs import write_atomic
from ..pages import draw_curves
from .state import Evaluation
from .task_scores import PARTS, TASKS

JSON, PICTURE = "tasks.json", "tasks.svg"
HEAD = ("task", "score", *PARTS, "loss", "best", "at step")
WIDTH = 100  # characters of a line where the output is not a terminal


def describe_evaluations(evaluations: Sequence[Evaluation], every: int) -> dict[str, Any]:
    """Collect what tasks.json has.

    evaluations (Sequence[Evaluation]): From `TaskScorer.evaluate`.
    every (int): Updates from one to the next.
    RETURNS (dict[str, Any]): `evaluations`, each with step, score and a row for each task; `best`,
        task -> its best score and the step of it, the earliest if there are several.
    """
    history = [
        {"step": i * every, "score": score, TASKS: scores[TASKS]}
        for i, (score, scores) in enumerate(evaluations)
    ]
    best = {}
    for task in history[-1][TASKS]:
        top = max(history, key=lambda one: one[TASKS][task]["score"])
        best[task] = {"score": top[TASKS][task]["score"], "step": top["step"]}
    return {"evaluations": history, "best": best}


def write_report(output: Path, evaluations: Sequence[Evaluation], every: int) -> None:
    """Write tasks.json and the picture of the learning curves, tasks.svg."""
    report = describe_evaluations(evaluations, every)
    write_atomic(output / JSON, json.dumps(report, indent=2) + "\n")
    curves = {
        task: [(one["step"], one[TASKS][task]["score"]) for one in report["evaluations"]]
        for task in report["best"]
    }
    picture = draw_curves(curves, title="Scores of the tasks on dev", x_label="updates")
    write_atomic(output / PICTURE, picture)


def print_scores(evaluations: Sequence[Evaluation], every: int, file: IO[str]) -> None:
    """Print a table of the last evaluation, a row for each task.

    file (IO[str]): Where to; a progress bar there goes on below the table.
    """
    report = describe_evaluations(evaluations, every)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in HEAD:
        table.add_column(name, justify="left" if name == HEAD[0] else "right", no_wrap=True)
    for task, row in report["evaluations"][-1][TASKS].items():
        best = report["best"][task]
        loss = "–" if row["loss"] is None else f"{row['loss']:.4f}"
        scores = [_percent(row[key]) for key in ("score", *PARTS)]
        table.add_row(task, *scores, loss, _percent(best["score"]), f"{best['step']:,}")
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    with tqdm.external_write_mode(file=file):
        console.print(table)


def _percent(score: float | None) -> str:
    return "–" if score is None else f"{100 * score:.2f}"
