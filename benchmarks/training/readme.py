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
        beside = "the same training without it" if kind == "choices" else "`bioclin-compact`"
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
        "updates of 640 words with a learning rate of 2e-4 if none is named, from "
        "`benchmarks/training/yardstick.py`. A gain is better in at least two seeds, in each of "
        "them on both corpora. What was not better once is no gain, and the rest is open. "
        "`pretrained-…` are encoders after a pretraining of 614,400 pieces, to be compared with "
        "each other."
    )
    return "\n\n".join(parts)


def _points(compared: dict[str, Any] | None) -> str:
    return f"{compared['points_mean']:+.1f} ({compared['seeds']})" if compared else "–"


def _describe(row: dict[str, Any], result: dict[str, Any]) -> str:
    """Describe a row: the last two parts of the names of its settings, those beside it last."""
    if row["choice"] == "base":
        return f"`{row['encoder']}`"
    without = _settings(row["without"], result) if row["without"] != "base" else {}
    settings = _settings(row["choice"], result)
    own = [_name(path, settings[path]) for path in settings if path not in without]
    both = [_name(path, settings[path]) for path in without]
    beside = f", beside {', '.join(both)}" if both else ""
    return f"{row['encoder']}: {', '.join(own)}{beside}"


def _settings(choice: str, result: dict[str, Any]) -> dict[str, Any]:
    found = (row["settings"] for row in result["rows"] if row["choice"] == choice)
    settings: dict[str, Any] = next(found)
    return settings


def _name(path: str, value: Any) -> str:
    if path == "updates":
        return f"{value} × the updates"
    return f"`{'.'.join(path.split('.')[-2:])} = {value}`"
