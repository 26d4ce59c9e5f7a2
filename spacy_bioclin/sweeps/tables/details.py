"""Tables of what papers do not show: the spread of runs, rates, searches, failures, comparisons."""

from collections.abc import Sequence

from .table import (
    MISSING,
    Statistics,
    Table,
    describe_scores,
    format_rate,
    format_score,
    format_spread,
    name_score,
)


def make_spread_table(summary: Statistics) -> Table:
    """Make a table of all statistics of the test score over all configurations and seeds."""
    rows = []
    for group in summary["groups"]:
        scores = group["test"]["value"]
        shown = [format_score(scores[key]) for key in ("mean", "sd", "median", "min", "max")]
        failed = f"{len(group['failed'])} of {group['trials']}"
        rows.append([group["task"], group["model"], str(scores["n"]), *shown, failed])
    head = ["Task", "Model", "Runs", "Mean", "Sd", "Median", "Min", "Max", "Failed"]
    note = (
        f"Test {name_score(summary)} of all rates and seeds. Failed: stopped, diverged, or less on "
        f"dev than {summary['failed_below']:g} (these count in the mean)."
    )
    return Table("Spread of all runs", head, rows, note + describe_scores(summary))


def make_rate_table(summary: Statistics) -> Table:
    """Make a table of the test score at each learning rate, mean ± sd of the seeds."""
    configurations = [one for group in summary["groups"] for one in group["configurations"]]
    rates = sorted({one["learn_rate"] for one in configurations})
    rows = []
    for group in summary["groups"]:
        scores = {one["learn_rate"]: one["test"]["value"] for one in group["configurations"]}
        shown = [format_spread(scores[rate]) if rate in scores else "" for rate in rates]
        rows.append([group["task"], group["model"], *shown])
    head = ["Task", "Model", *map(format_rate, rates)]
    note = f"Test {name_score(summary)}, mean ± sd of the seeds." + describe_scores(summary)
    return Table("By learning rate", head, rows, note)


def make_search_table(summary: Statistics) -> Table:
    """Make a table of the configurations of a search, the best on dev first."""
    known = {"sample", "learn_rate", "learn_rate_used", "trials", "failed", "dev", "test", "run"}
    rows = []
    for group in summary["groups"]:
        scored = [one for one in group["configurations"] if one["run"] is not None]
        for one in sorted(scored, key=lambda one: -one["dev"]["value"]["mean"]):
            settings = [
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in one.items()
                if key not in known
            ]
            scores = [format_spread(one[split]["value"]) for split in ("dev", "test")]
            shown = [str(one["sample"]), ", ".join(settings), format_rate(one["learn_rate_used"])]
            rows.append([group["task"], group["model"], *shown, *scores])
    score = name_score(summary).replace("score", "Score")
    head = ["Task", "Model", "Sample", "Settings", "LR", f"{score} on dev", f"{score} on test"]
    note = "Mean ± sd of the seeds. The search maximises the mean on dev and never sees test."
    return Table("Search", head, rows, note)


def make_failure_table(summary: Statistics) -> Table | None:
    """Make a table of the failed runs with their errors; None if no run has failed."""
    rows = []
    for group in summary["groups"]:
        for run in group["failed"]:
            seed = str(run["seed"]) + (f", fold {run['fold']}" if run.get("fold") else "")
            trial = [group["task"], group["model"], format_rate(run["learn_rate"]), seed]
            rows.append([*trial, run["status"], format_score(run["dev_f"]), run["error"] or ""])
    score = name_score(summary).replace("score", "Score")
    head = ["Task", "Model", "LR", "Seed", "Status", f"{score} on dev", "Error"]
    return Table("Failed runs", head, rows, "") if rows else None


def make_comparison_table(comparisons: Sequence[Statistics]) -> Table | None:
    """Make a table of paired comparisons; None if nothing was compared.

    comparisons (Sequence[Statistics]): See `compare_models`.
    """
    rows = []
    for one in comparisons:
        row = [one["task"], one["model"], one["baseline"], f"{100 * one['difference']:+.2f}"]
        for found in (one["documents"], one["documents_and_seeds"] or one["seeds"]):
            if found is None:
                row += [MISSING, MISSING]
                continue
            row.append(f"{100 * found['low']:+.2f} to {100 * found['high']:+.2f}")
            row.append(f"{found['p']:.4f}")
        rows.append(row)
    head = ["Task", "Model", "Against", "Difference", "95 % interval", "p"]
    head += ["95 %, seeds too", "p, seeds too"]
    note = (
        "Points of the test score, means of the seeds at the rate whose mean is best on dev. "
        "Paired bootstrap: over the documents of these runs, and over documents and seeds. Only "
        "strict F1 of entities has counts of each document: other scores have no interval over "
        "documents, and the last two columns resample their seeds alone."
    )
    return Table("Paired comparison", head, rows, note) if rows else None
