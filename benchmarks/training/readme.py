"""Table of the choices of training for docs/training.md, see benchmarks/readme.py."""

from typing import Any

from benchmarks.readme_ner import NAMES, is_there, load


def choices_section() -> str:
    """Tabulate what each choice was worth on the yardstick, for docs/training.md."""
    if not is_there("yardstick"):
        return "No choice has been measured yet."
    result = load("yardstick")
    tasks = ("pharmaconer", "bc5cdr")
    parts = []
    for kind, title in (("choices", "choice"), ("encoders", "encoder")):
        rows = [row for row in result["summary"][kind] if row["updates"] == result["updates"]]
        rows = [row for row in rows if row["tasks"]]
        if not rows:
            continue
        beside = "the same encoder without it" if kind == "choices" else "`bioclin-compact`"
        lines = [
            f"| {title}, points of dev F1 beside {beside} (seeds) | "
            + " | ".join(NAMES[task] for task in tasks)
            + " | processor time | verdict |",
            "|---|" + "---|" * (len(tasks) + 2),
        ]
        for row in rows:
            cells = [_points(row["tasks"].get(task)) for task in tasks]
            ratios = [compared["cpu_ratio"] for compared in row["tasks"].values()]
            lines.append(
                f"| {_describe(row, result)} | {' | '.join(cells)} "
                f"| {sum(ratios) / len(ratios):.2f} × | {row['verdict']} |"
            )
        parts.append("\n".join(lines))
    parts.append(
        f"Each figure is the mean over seeds of the difference on dev after {result['updates']} "
        "updates of 640 words with a learning rate of 2e-4, from "
        "`benchmarks/training/yardstick.py`. A gain is better in at least two seeds, in each of "
        "them on both corpora. What was not better once is no gain, and the rest is open. "
        "`pretrained-…` are encoders after a pretraining of 614,400 pieces, to be compared with "
        "each other."
    )
    return "\n\n".join(parts)


def _points(compared: dict[str, Any] | None) -> str:
    return f"{compared['points_mean']:+.1f} ({compared['seeds']})" if compared else "–"


def _describe(row: dict[str, Any], result: dict[str, Any]) -> str:
    """Describe a row: the settings of a choice by the last two parts of their names."""
    if row["choice"] == "base":
        return f"`{row['encoder']}`"
    rows = (one for one in result["rows"] if one["choice"] == row["choice"])
    settings = next(rows)["settings"]
    named = (
        f"{value} × the updates"
        if path == "updates"
        else f"`{'.'.join(path.split('.')[-2:])} = {value}`"
        for path, value in settings.items()
    )
    return f"{row['encoder']}: {', '.join(named)}"
