"""Write what a sweep has found: summary.json, tables.md and report.html."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..outputs import write_atomic
from ..pages import draw_scores, render_template
from .plan import Plan
from .results import get_value
from .summary.comparison import compare_models
from .summary.selection import Result, select_group, summarize
from .tables import (
    OURS,
    Table,
    format_rate,
    make_blue_table,
    make_carrino_table,
    make_comparison_table,
    make_failure_table,
    make_lewis_table,
    make_means_table,
    make_mulyar_table,
    make_rate_table,
    make_search_table,
    make_spread_table,
    to_markdown,
)
from .tables.table import name_score

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
        not empty, "means", "mulyar", "comparison" and "failures".
    RAISES (BioclinError): No trial has ended, or `against` is not a model of the sweep.
    """
    summary = summarize(results, plan.failed_below)
    comparisons = compare_models(results, summary, against)
    made = {
        "carrino": make_carrino_table(summary, plan.published),
        "lewis": make_lewis_table(summary, plan.published, plan.groups),
        "means": make_means_table(summary, plan.published_means, plan.groups),
        "blue": make_blue_table(summary, plan.published),
        "mulyar": make_mulyar_table(summary, plan.published) if _has_joint(plan) else None,
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


def _has_joint(plan: Plan) -> bool:
    """Check whether a plan has something for the table of joint and single training."""
    is_joint = any(corpus.joint for corpus in plan.tasks.values())
    return is_joint or any(row.joint is not None for row in plan.published)


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


def draw_tasks(results: Sequence[Result], summary: Mapping[str, Any]) -> list[str]:
    """Draw a picture for each task that has scores: test score against the learning rate, a line
    for each model.

    RETURNS (list[str]): SVG.
    """
    tasks: dict[str, dict[str, list[tuple[float, list[float]]]]] = {}
    names: dict[str, str] = {}
    for group in summary["groups"]:
        names[group["task"]] = name_score({"groups": [group]})
        scores: dict[float, list[float]] = {}
        for result in select_group(results, group):
            if result["test"] is not None:
                rate = result["trial"]["learn_rate"]
                scores.setdefault(rate, []).append(get_value(result["test"]))
        if scores:
            tasks.setdefault(group["task"], {})[group["model"]] = sorted(scores.items())
    return [
        draw_scores(
            lines,
            title=f"{task}: test {names[task]} of every run",
            x_label="learning rate of the grid",
            x_names={rate: format_rate(rate) for line in lines.values() for rate, _ in line},
        )
        for task, lines in tasks.items()
    ]


def _show(values: Any) -> str:
    """Write a value of the plan, or its value for each task or kind; "" if there is none."""
    if isinstance(values, Mapping):
        return ", ".join(f"{name} {value}" for name, value in values.items())
    return "" if values is None else str(values)


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
        n_runs = sum(len(plan.list_folds(task)) for task in plan.tasks) * len(plan.seeds)
        n_trials = plan.search.n_trials * len(plan.encoders) * n_runs
    facts = {
        "Trials": f"{len(results)} of {n_trials}",
        "Recipe": _show(plan.recipe) or "none",
        "Epochs": _show(plan.epochs) or "those of the recipe or the config",
        "Folds": _show(plan.folds),
        "Notes": "; ".join(notes) or "all",
        "Time": f"{hours:.1f} hours, trials added up",
        "Machine": ", ".join(sorted(machines)),
        "Commit": ", ".join(sorted({one["commit"] for one in results if one.get("commit")})),
    }
    return {name: value for name, value in facts.items() if value}
