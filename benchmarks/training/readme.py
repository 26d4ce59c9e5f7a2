"""Tables of training for docs/results.md and docs/training.md, see benchmarks/readme.py."""

from typing import Any

from benchmarks.readme_ner import HAS_READ, NAMES, is_there, load

TOGETHER_LANGS = {"es": "Spanish", "en": "English"}
TOGETHER = {"joint": "together", "merged": "together, the same notes merged"}


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


def trainer_table() -> str:
    """Tabulate test F1 of a recipe beside Hugging Face's Trainer, as used and decoded alike."""
    result = load("trainer_parity")
    lines = [
        f"| `{result['recipe']}` on bioclin-compact, {result['updates']} updates: test F1 (seeds) "
        "| spacy-bioclin | Hugging Face's `Trainer` | difference in points |",
        "|---|---|---|---|",
    ]
    for task, systems in result["summary"].items():
        for kind, name in (("test", "as used"), ("test_same", "decoded alike")):
            cells = [_trainer_cell(systems.get(s), kind) for s in ("bioclin", "huggingface")]
            points = systems.get("huggingface", {}).get(f"{kind}_points_below_ours")
            error = systems.get("huggingface", {}).get(f"{kind}_standard_error")
            difference = "–" if points is None else f"{points:+.1f}"
            difference += f" ± {error:.1f}" if error is not None else ""
            lines.append(f"| {NAMES[task]}, {name} | {' | '.join(cells)} | {difference} |")
    return "\n".join(lines)


def _trainer_cell(figures: dict[str, Any] | None, kind: str) -> str:
    if not figures:
        return "–"
    sd = figures[f"{kind}_f_sd"]
    spread = f" ± {sd:.3f}" if sd is not None else ""
    return f"{figures[f'{kind}_f_mean']:.3f}{spread} ({figures['seeds']})"


def trainer_line() -> str:
    """Compare test F1 with that of Hugging Face's Trainer, from the same initial weights."""
    result = load("trainer_parity_same_start")
    figures = "; ".join(
        f"{NAMES[task]} {rows['bioclin']['test_same_f_mean']:.4f} and "
        f"{rows['huggingface']['test_same_f_mean']:.4f}"
        for task, rows in result["summary"].items()
        if len(rows) > 1
    )
    return (
        "Both saw the same parts of notes in the same order; ± after a difference is the standard "
        "error of its mean over seeds. From the same weights, without dropout and clipping, tag "
        "scores agree to 1e-5 after 6 updates (a test checks this); F1 of ours and theirs after "
        f"{result['updates']} updates: {figures}."
    )


def sweep_table() -> str:
    """Tabulate the scaled-down protocol of Carrino et al. beside the paper's best encoder."""
    summary = load("sweep_carrino")
    facts = summary["facts"]
    paper = {row["task"]: row for row in summary["published"] if row["model"] == "bsc-bio-ehr-es"}
    lines = [
        "| five rates × three seeds, test | F1 of all runs | chosen on dev: F1, rate, epoch "
        "| bsc-bio-ehr-es in the paper: all runs, chosen on dev |",
        "|---|---|---|---|",
    ]
    for group in summary["groups"]:
        best, published = group["best"]["by_run"], paper[group["task"]]
        lines.append(
            f"| {NAMES[group['task']]}, bioclin-compact | {_spread(group['test']['f'])} "
            f"| {_spread(best['test']['f'])}, {best['learn_rate_used']:.0e}, "
            f"{best['run']['epoch']:.0f} | {published['f'][0]:.3f}, {published['best'][0]:.3f} |"
        )
    note = (
        "From `bioclin sweep configs/sweeps/carrino.yml`, which is smaller than the paper's "
        f"experiment: notes {facts['Notes']}; {facts['Epochs']} epochs instead of 20 "
        "([full report](../benchmarks/results/sweep_carrino.html))."
    )
    return "\n".join([*lines, "", note])


def stability_table() -> str:
    """Tabulate F1 of each fine-tuning strategy on few training notes, with failed runs."""
    summary = load("sweep_stability")
    tasks = list(dict.fromkeys(group["task"] for group in summary["groups"]))
    rows: dict[str, dict[str, str]] = {}
    for group in summary["groups"]:
        figures = group["test"]["f"]
        failed = f", {len(group['failed'])} failed" if group["failed"] else ""
        cell = f"{_spread(figures)} ({figures['n']}{failed})"
        rows.setdefault(group["strategy"], {})[group["task"]] = cell
    lines = [
        "| strategy, 64 training notes, 180 small updates: F1 (seeds) | "
        + " | ".join(NAMES[task] for task in tasks)
        + " |",
        "|---|" + "---|" * len(tasks),
    ]
    for strategy, cells in rows.items():
        lines.append(f"| {strategy} | {' | '.join(cells[task] for task in tasks)} |")
    return "\n".join(lines)


def _spread(figures: dict[str, Any]) -> str:
    spread = f" ± {figures['sd']:.3f}" if figures["sd"] is not None else ""
    return f"{figures['mean']:.3f}{spread}"


def strategy_speed_line() -> str:
    """State the speed-up of a training step for each way of freezing weights."""
    fp32 = load("strategy_speed")["precision"]["fp32"]
    names = ("half frozen", "frozen, first epoch", "frozen, later epochs", "LoRA")
    figures = ", ".join(f"{name} {fp32[name]['times_as_fast']:.1f}×" for name in names)
    return f"Speed-up per training step over full fine-tuning: {figures}."


def together_table() -> str:
    """Tabulate the F1 of five corpora in one pipeline and of a pipeline for each."""
    lines = [
        "| corpus, test | training documents | labels | F1 alone (seeds) | F1 together "
        "| difference in points (95 % interval) | F1 together, same notes merged | difference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for lang in TOGETHER_LANGS:
        result = load(f"together_{lang}")
        for task, corpus in result["corpora"].items():
            rows = [result["summary"].get(system, {"tasks": {}}) for system in TOGETHER]
            found = [row["tasks"].get(task) for row in rows]
            alone = next(row for row in found if row)
            cells = [f"{alone['single_f']:.3f} ({alone['seeds']})"]
            for row in found:
                low, high = row["interval_points"] if row else (0, 0)
                change = (
                    f"{row['difference_points']:+.1f} ({low:+.1f} to {high:+.1f})" if row else ""
                )
                cells += [f"{row['joint_f']:.3f}" if row else "–", change or "–"]
            lines.append(
                f"| {NAMES[task]} | {corpus['train']['documents']:,} "
                f"| {', '.join(corpus['labels'])} | {' | '.join(cells)} |"
            )
    return "\n".join(lines)


def together_line() -> str:
    """State what one pipeline for all corpora of a language costs beside a pipeline for each."""
    parts = []
    for lang, name in TOGETHER_LANGS.items():
        result = load(f"together_{lang}")
        for system, words in TOGETHER.items():
            if not (summary := result["summary"].get(system)):
                continue
            training = summary["training"]
            parts.append(
                f"{name}, {words}: {-summary['mean_loss_points']:+.2f} points on average, "
                f"{-summary['worst_loss_points']:+.2f} at worst; "
                f"{training['joint_over_single']:.2f} of the processor time of the single "
                f"trainings, {training['joint_peak_memory_mb'] / 1024:.1f} GB instead of at most "
                f"{training['single_peak_memory_mb'] / 1024:.1f} GB."
            )
    updates = load("together_es")["updates_per_task"]
    return (
        f"{updates} updates of each corpus. " + " ".join(parts) + " Together and alone, the "
        "corpora have the same training documents: for the four corpora of the SPACCC cases, the "
        "cases that are in no test set of them or of MEDDOCAN, all of which can be merged "
        "(`bioclin merge`). The difference is on the seeds that both have, and its interval is "
        "over the documents of test. " + HAS_READ
    )
