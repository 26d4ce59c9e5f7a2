"""Notes below the table of NER for docs/results.md, see benchmarks/readme.py."""

import statistics
from typing import Any

from benchmarks.readme_ner import HAS_READ, NAMES, TEMIST, is_there, load, load_encoders


def ner_line() -> str:
    """Say which rows of `ner_table` are of trials with earlier settings, or of notes that the
    encoder has read."""
    encoders = load_encoders()
    compact = encoders["compact"]["trials"]
    tasks = {trial["task"] for trial in compact if trial.get("max_tokens") != "auto"}
    lines = ["± is the standard deviation over seeds."]
    if tasks:
        names = ", ".join(NAMES[task] for task in sorted(tasks))
        lines.append(
            f"{names} with `bioclin-compact`, and all rows of MiniLM and random weights, were "
            "measured before training notes were cut into the windows of the encoder; parts had "
            "192 tokens."
        )
    if "cantemist" in tasks:
        lines.append("There, CANTEMIST was also trained on dev1, which is part of dev now.")
    if any(trial["task"] in TEMIST for trial in compact):
        lines.append(HAS_READ)
    if any("word_smoothing" in trial["choice"] for trial in encoders["sm"]["trials"]):
        lines.append(
            "`lexical` is `configs/ner-lexical.cfg` with `word_smoothing = 0`, and "
            "`lexical+word_smoothing` that config as it is ([what it does]"
            "(training.md#agreement-within-a-note))."
        )
    if gains := list_gains_of_dev():
        lines.append(
            "With dev, settings are those chosen without it, and each note is read as often. Test "
            f"F1 of the same seeds and settings, without and with it: {', '.join(gains)}."
        )
    if gains := list_gains_of_start():
        lines.append(
            "[Started from a pipeline](training.md#start-from-a-trained-pipeline) that was trained "
            "for another task, instead of the pretrained encoder, F1 without and with it (seeds): "
            f"{'; '.join(gains)}."
        )
    return " ".join(lines)


def smoothing_table() -> str:
    """Tabulate F1 on dev at each amount of word smoothing."""
    if not is_there("smoothing"):
        return ""
    result = load("smoothing")
    amounts = list(next(iter(result["tasks"].values()))["amounts"])
    lines = [
        f"| dev F1 by [`word_smoothing`](training.md#agreement-within-a-note), `bioclin-"
        f"{result['encoder']}`, one seed | {' | '.join(amounts)} |",
        "|---|" + "---|" * len(amounts),
    ]
    for task, measured in result["tasks"].items():
        cells = (f"{measured['amounts'][amount]:.4f}" for amount in amounts)
        lines.append(f"| {NAMES[task]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def pipelines_table() -> str:
    """Tabulate F1 on dev at each amount of word smoothing in a head of the pipelines that ship."""
    if not is_there("smoothing_pipelines"):
        return ""
    rows = [
        (name, head, corpus, scores)
        for name, heads in load("smoothing_pipelines")["pipelines"].items()
        for head, corpora in heads.items()
        for corpus, scores in corpora.items()
    ]
    amounts = list(rows[0][-1])
    lines = [
        "| dev F1 by `word_smoothing` of a head of a [pipeline that ships](models.md) | head | "
        f"{' | '.join(amounts)} |",
        "|---|---|" + "---|" * len(amounts),
    ]
    for name, head, corpus, scores in rows:
        cells = " | ".join(f"{scores[amount]:.4f}" for amount in amounts)
        lines.append(f"| `{name}`, {NAMES.get(corpus, f'{corpus} notes')} | `{head}` | {cells} |")
    return "\n".join(lines)


def list_gains_of_dev() -> list[str]:
    """Compare trials of bioclin-sm that differ only in whether they train on dev, too."""
    if not is_there("ner_sm_with_dev"):
        return []
    setting = ("task", "system", "choice", "seed", "learn_rate", "tokens_per_update")
    without = {
        tuple(trial[key] for key in setting): trial
        for trial in sorted(load("ner_sm")["trials"], key=lambda trial: -trial["updates"])
        if not trial.get("after")
    }  # those with the fewest updates, which are those of benchmarks/accuracy/ner.py
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for trial in load("ner_sm_with_dev")["trials"]:
        if other := without.get(tuple(trial[key] for key in setting)):
            both = (other["test_f"], trial["test_f"])
            pairs.setdefault((trial["task"], trial["choice"]), []).append(both)
    gains = []
    for (task, choice), found in pairs.items():
        means = " and ".join(f"{statistics.mean(f1):.3f}" for f1 in zip(*found, strict=True))
        gains.append(f"{NAMES[task]}, `{choice}`, {means} ({len(found)})")
    return gains


def list_gains_of_start() -> list[str]:
    """Compare trials of bioclin-sm that started from the encoder of another task with those that
    differ in nothing else."""
    setting = ("task", "system", "choice", "seed", "updates", "learn_rate", "tokens_per_update")
    trials = load("ner_sm")["trials"]
    pretrained = {
        tuple(trial[key] for key in setting): trial for trial in trials if not trial.get("after")
    }
    pairs: dict[tuple[str, str, str], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for trial in trials:
        other = pretrained.get(tuple(trial[key] for key in setting))
        if other and trial.get("after"):
            key = (trial["task"], trial["after"], trial["choice"])
            pairs.setdefault(key, []).append((other, trial))
    gains = []
    for (task, after, choice), both in pairs.items():
        splits = (
            " and ".join(
                f"{statistics.mean(trial[f'{split}_f'] for trial in side):.3f}"
                for side in zip(*both, strict=True)
            )
            for split in ("dev", "test")
        )
        gains.append(
            f"{NAMES[task]} after {NAMES[after]}, `{choice}`: {' on dev, '.join(splits)} on test "
            f"({len(both)})"
        )
    return gains
