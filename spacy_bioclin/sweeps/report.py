"""Write what a sweep has found: summary.json, tables.md and report.html."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import BioclinError
from ..evaluation.bootstrap import paired_f1_difference
from ..outputs import write_atomic
from ..pages import draw_scores, render_template
from .plan import Plan
from .selection import Result, find_best_runs, select_group, summarize
from .tables import (
    OURS,
    Table,
    format_rate,
    make_blue_table,
    make_carrino_table,
    make_comparison_table,
    make_failure_table,
    make_lewis_table,
    make_rate_table,
    make_search_table,
    make_spread_table,
    to_markdown,
)

TEMPLATE = Path(__file__).with_name("report.html.jinja")


def write_report(
    title: str, folder: Path, plan: Plan, results: Sequence[Result], *, against: str | None
) -> dict[str, Table]:
    """Write the three files.

    title (str): Title of the page.
    folder (Path): Where to write.
    plan (Plan): The plan of the sweep.
    results (Sequence[Result]): The trials that have ended.
    against (str | None): Model that the others are compared with; None for the first of each task.
    RETURNS (dict[str, Table]): "carrino", "lewis", "blue", "spread", "rates" or "search", and, if
        not empty, "comparison" and "failures".
    RAISES (BioclinError): No trial has ended, or `against` is not a model of the sweep.
    """
    summary = summarize(results, plan.failed_below)
    comparisons = compare_models(results, summary, against)
    made = {
        "carrino": make_carrino_table(summary, plan.published),
        "lewis": make_lewis_table(summary, plan.published),
        "blue": make_blue_table(summary, plan.published),
        "search": make_search_table(summary) if plan.search else None,
        "comparison": make_comparison_table(comparisons),
        # A search has as many rates as samples.
        "rates": None if plan.search else make_rate_table(summary),
        "spread": make_spread_table(summary),
        "failures": make_failure_table(summary),
    }
    tables = {name: table for name, table in made.items() if table is not None}
    facts = _collect_facts(plan, results)
    content = {
        "facts": facts,
        **summary,
        "comparisons": comparisons,
        "published": [row.model_dump(exclude_unset=True) for row in plan.published],
    }
    page = render_page(title, facts, draw_tasks(results, summary), list(tables.values()))
    write_atomic(folder / "summary.json", json.dumps(content, indent=2, allow_nan=False) + "\n")
    write_atomic(folder / "tables.md", "\n".join(to_markdown(table) for table in tables.values()))
    write_atomic(folder / "report.html", page)
    return tables


def render_page(
    title: str, facts: Mapping[str, str], pictures: Sequence[str], tables: Sequence[Table]
) -> str:
    """Render the report as one HTML page: no script, no font, nothing from outside.

    facts (Mapping[str, str]): Names and values that describe the sweep.
    pictures (Sequence[str]): SVG, which is not escaped.
    tables (Sequence[Table]): The tables, whose text is escaped.
    """
    return render_template(
        TEMPLATE, title=title, facts=facts, pictures=pictures, tables=tables, ours=OURS
    )


def compare_models(
    results: Sequence[Result], summary: Mapping[str, Any], against: str | None
) -> list[dict[str, Any]]:
    """Compare the test scores by a paired bootstrap, each model at its rate with the best mean on
    dev. Models without a score are left out.

    summary (Mapping[str, Any]): See `summarize`.
    against (str | None): See `write_report`.
    RETURNS (list[dict]): For each task and each model but the baseline: `task`, `model`,
        `baseline`, and `documents`, `documents_and_seeds`: difference (model minus baseline), low,
        high and p. The latter is None if one of the models has a single run.
    RAISES (BioclinError): `against` is not a model of the sweep.
    """
    models = list(dict.fromkeys(group["model"] for group in summary["groups"]))
    if against is not None and against not in models:
        raise BioclinError(f"model {against!r} is unknown, the sweep has: {'; '.join(models)}")
    counts: dict[str, dict[str, list[Any]]] = {}  # task -> model -> counts of each run
    for group in summary["groups"]:
        if per_run := [run["test"]["per_doc"] for run in find_best_runs(results, group)]:
            counts.setdefault(group["task"], {})[group["model"]] = per_run
    comparisons = []
    for task, by_model in counts.items():
        baseline = against or next(iter(by_model))
        for model, runs in by_model.items():
            if model == baseline or baseline not in by_model:
                continue
            others, seeds = by_model[baseline], None
            if min(len(runs), len(others)) > 1:
                seeds = paired_f1_difference(runs, others, resample_runs=True)._asdict()
            comparisons.append(
                {
                    "task": task,
                    "model": model,
                    "baseline": baseline,
                    "documents": paired_f1_difference(runs, others)._asdict(),
                    "documents_and_seeds": seeds,
                }
            )
    return comparisons


def draw_tasks(results: Sequence[Result], summary: Mapping[str, Any]) -> list[str]:
    """Draw a picture for each task that has scores: test F1 against the learning rate, a line for
    each model.

    RETURNS (list[str]): SVG.
    """
    tasks: dict[str, dict[str, list[tuple[float, list[float]]]]] = {}
    for group in summary["groups"]:
        scores: dict[float, list[float]] = {}
        for result in select_group(results, group):
            if result["test"] is not None:
                rate = result["trial"]["learn_rate"]
                scores.setdefault(rate, []).append(result["test"]["f"])
        if scores:
            tasks.setdefault(group["task"], {})[group["model"]] = sorted(scores.items())
    return [
        draw_scores(
            lines,
            title=f"{task}: test F1 of every run",
            x_label="learning rate of the grid",
            x_names={rate: format_rate(rate) for line in lines.values() for rate, _ in line},
        )
        for task, lines in tasks.items()
    ]


def _collect_facts(plan: Plan, results: Sequence[Result]) -> dict[str, str]:
    """Collect what a reader of the tables should know."""
    hours = sum(result.get("seconds", 0) for result in results) / 3600
    notes = []
    for split in ("train", "dev", "test"):
        counts = {task: plan.count_notes(task, split) for task in plan.tasks}
        if len(set(counts.values())) > 1:
            notes.append(f"{split}: {', '.join(f'{task} {n}' for task, n in counts.items() if n)}")
        elif n := next(iter(counts.values())):
            notes.append(f"{split}: {n}")
    machines = {result["machine"]["cpu"]["name"] for result in results if "machine" in result}
    n_trials = len(plan.list_trials())
    if plan.search:
        n_samples = plan.search.n_trials * len(plan.tasks) * len(plan.encoders)
        n_trials = n_samples * len(plan.seeds)
    facts = {
        "Trials": f"{len(results)} of {n_trials}",
        "Recipe": plan.recipe or "none",
        "Epochs": str(plan.epochs or "those of the recipe or the config"),
        "Notes": "; ".join(notes) or "all",
        "Time": f"{hours:.1f} hours, trials added up",
        "Machine": ", ".join(sorted(machines)),
        "Commit": ", ".join(sorted({one["commit"] for one in results if one.get("commit")})),
    }
    return {name: value for name, value in facts.items() if value}
