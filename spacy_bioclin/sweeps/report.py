"""What `bioclin sweep` writes about its trials: summary.json, tables.md and report.html."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import BioclinError
from ..evaluation.bootstrap import paired_f1_difference
from ..pages import draw_scores
from .page import render_page
from .summary import Result, runs_of, summarize
from .sweep import Plan
from .tables import (
    Table,
    as_markdown,
    blue_table,
    carrino_table,
    comparison_table,
    failure_table,
    lewis_table,
    model_names,
    rate_table,
    search_table,
    show_rate,
    spread_table,
)

PAPERS = {"carrino": carrino_table, "lewis": lewis_table, "blue": blue_table}


def write_report(
    title: str, folder: Path, plan: Plan, results: Sequence[Result], *, against: str | None
) -> dict[str, Table]:
    """Write the three files.

    plan (Plan): What was to be run.
    results (Sequence[Result]): Of the trials that have ended.
    against (str | None): Model that the others are compared with; None for the first of each task.
    RETURNS (dict[str, Table]): "carrino", "lewis", "blue", "spread", "rates" or "search", and, if
        there is anything to say, "comparison" and "failures".
    RAISES (BioclinError): If no trial has ended, or `against` is no model.
    """
    summary = summarize(results, plan.failed_below)
    comparisons = compare_models(results, summary, against)
    made = {
        **{name: make(summary, plan.published) for name, make in PAPERS.items()},
        "search": search_table(summary) if plan.search else None,
        "comparison": comparison_table(comparisons),
        # A search has as many rates as samples.
        "rates": None if plan.search else rate_table(summary),
        "spread": spread_table(summary),
        "failures": failure_table(summary),
    }
    tables = {name: table for name, table in made.items() if table is not None}
    facts = _facts(plan, results)
    written = {
        "facts": dict(facts),
        **summary,
        "comparisons": comparisons,
        "published": plan.published,
    }
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "summary.json", json.dumps(written, indent=2, allow_nan=False) + "\n")
    _write(folder / "tables.md", "\n".join(as_markdown(table) for table in tables.values()))
    pictures = draw_tasks(results, summary)
    page = render_page(title, facts, pictures, list(tables.values()))
    _write(folder / "report.html", page)
    return tables


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def compare_models(
    results: Sequence[Result], summary: Mapping[str, Any], against: str | None
) -> list[dict[str, Any]]:
    """Paired bootstrap of the test scores, each model at its rate whose mean is best on dev.

    summary (Mapping[str, Any]): Of these results.
    RETURNS (list[dict]): Of each task and each model but the one compared with: `task`, `model`,
        `baseline`, and `documents`, `documents_and_seeds`: difference (model less baseline), low,
        high, p; the latter None if a model has one run. Models without a score are left out.
    """
    name = model_names(summary)
    names = list(dict.fromkeys(map(name, summary["groups"])))
    if against is not None and against not in names:
        raise BioclinError(f"model {against!r} is unknown, the sweep has: {'; '.join(names)}")
    found: list[dict[str, Any]] = []
    for task in dict.fromkeys(group["task"] for group in summary["groups"]):
        groups = {name(group): group for group in summary["groups"] if group["task"] == task}
        runs = {model: runs_of(results, group) for model, group in groups.items()}
        counts = {
            model: [run["test"]["per_doc"] for run in of_model]
            for model, of_model in runs.items()
            if of_model
        }
        baseline = against or next(iter(counts), None)
        for model in counts:
            if model == baseline or baseline not in counts:
                continue
            both = counts[model], counts[baseline]
            one: dict[str, Any] = {"task": task, "model": model, "baseline": baseline}
            one["documents"] = paired_f1_difference(*both)._asdict()
            one["documents_and_seeds"] = None
            if min(map(len, both)) > 1:
                wider = paired_f1_difference(*both, resample_runs=True)
                one["documents_and_seeds"] = wider._asdict()
            found.append(one)
    return found


def draw_tasks(results: Sequence[Result], summary: Mapping[str, Any]) -> list[str]:
    """RETURNS (list[str]): Of each task that has scores: SVG of test F1 against the learning rate,
    a line for each model."""
    name = model_names(summary)
    pictures = []
    for task in dict.fromkeys(group["task"] for group in summary["groups"]):
        lines: dict[str, dict[float, list[float]]] = {}
        for group in (group for group in summary["groups"] if group["task"] == task):
            for result in results:
                trial = result["trial"]
                of_group = all(trial[key] == group[key] for key in ("task", "encoder", "strategy"))
                if of_group and result["test"] is not None:
                    line = lines.setdefault(name(group), {})
                    line.setdefault(trial["learn_rate"], []).append(result["test"]["f"])
        if lines:
            rates = {rate: show_rate(rate) for line in lines.values() for rate in line}
            ordered = {model: sorted(line.items()) for model, line in lines.items()}
            label = "learning rate of the grid"
            title = f"{task}: test F1 of every run"
            pictures.append(draw_scores(ordered, title=title, x_label=label, x_names=rates))
    return pictures


def _facts(plan: Plan, results: Sequence[Result]) -> list[tuple[str, str]]:
    """RETURNS (list): What a reader of the tables should know: name and value."""
    hours = sum(result.get("seconds", 0) for result in results) / 3600
    notes = {"train": plan.train_notes, "dev": plan.dev_notes, "test": plan.test_notes}
    fewer = [
        f"{split}: {', '.join(f'{task} {n}' for task, n in said.items())}"
        if isinstance(said, dict)
        else f"{split}: {said}"
        for split, said in notes.items()
        if said
    ]
    machines = [result["machine"]["cpu"]["name"] for result in results if "machine" in result]
    n_trials = len(plan.trials())
    if plan.search:
        n_samples = plan.search["n_trials"] * len(plan.tasks) * len(plan.encoders)
        n_trials = n_samples * len(plan.seeds)
    facts = {
        "Trials": f"{len(results)} of {n_trials}",
        "Recipe": plan.recipe or "none",
        "Epochs": str(plan.epochs or "as the recipe or the config has them"),
        "Notes": "; ".join(fewer) or "all",
        "Time": f"{hours:.1f} hours, trials added up",
        "Machine": ", ".join(sorted(set(machines))),
        "Commit": ", ".join(sorted({r["commit"] for r in results if r.get("commit")})),
    }
    return [(name, value) for name, value in facts.items() if value]
