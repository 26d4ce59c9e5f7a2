"""The summary of trials of benchmarks/accuracy/ner.py: means over seeds."""

import json
import statistics
from typing import Any

SETTING = ("choice", "after", "updates", "learn_rate", "tokens_per_update", "max_tokens")


def mean_on_dev(trials: list[dict[str, Any]]) -> float | None:
    """Compute the mean F1 on dev, which the first trials did not measure."""
    f1 = [trial["dev_f"] for trial in trials if trial.get("dev_f") is not None]
    return round(statistics.mean(f1), 4) if f1 else None


def choose_settings(
    trials: list[dict[str, Any]], without_dev: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Choose the trials of a corpus and system whose settings have the most seeds, and of these the
    best mean on dev.

    without_dev (list[dict[str, Any]]): For trials that have learned from dev, those that have not;
        the mean on dev is that of the same choice there.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for trial in trials:
        groups.setdefault(json.dumps([trial.get(key) for key in SETTING]), []).append(trial)

    def on_dev(group: list[dict[str, Any]]) -> float:
        same = ("task", "system", "choice", "after")
        wanted = [group[0].get(key) for key in same]
        others = [one for one in without_dev if [one.get(key) for key in same] == wanted]
        return mean_on_dev(group) or mean_on_dev(others) or 0

    return max(groups.values(), key=lambda group: (len(group), on_dev(group)))


def summarize(
    trials: list[dict[str, Any]], without_dev: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Compute mean, standard deviation and number of seeds, per corpus and system; see
    `choose_settings`."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for trial in trials:
        groups.setdefault(f"{trial['task']} {trial['system']}", []).append(trial)
    summary = {}
    for name, every in groups.items():
        group = choose_settings(every, without_dev or [])
        # A resumed trial knows the time and memory of its last part only. The first trials, on one
        # thread like the others, did not take the processor's time.
        whole = [trial for trial in group if not trial.get("train_resumed")]
        seconds = [trial.get("train_cpu_seconds", trial["train_seconds"]) for trial in whole]
        memory = [trial["train_peak_memory_mb"] for trial in whole]
        f1 = [trial["test_f"] for trial in group]
        summary[name] = {
            "seeds": len(group),
            **{key: group[0].get(key, "") for key in SETTING[:4]},
            "dev_f_mean": mean_on_dev(group),
            "test_f_mean": round(statistics.mean(f1), 6),
            "test_f_sd": round(statistics.stdev(f1), 4) if len(f1) > 1 else None,
            **_mean_of_positions(group),
            "train_cpu_seconds_median": statistics.median(seconds) if seconds else None,
            "train_peak_memory_mb": max(memory, default=None),
            "annotate_words_per_second_median": statistics.median(
                trial["annotate_words_per_second"] for trial in group
            ),
        }
    return summary


def _mean_of_positions(group: list[dict[str, Any]]) -> dict[str, float]:
    """Compute the mean F1 of positions (BLUE), which only later trials measured."""
    f1 = [trial["test_positions_f"] for trial in group if trial.get("test_positions_f") is not None]
    return {"test_positions_f_mean": round(statistics.mean(f1), 4)} if f1 else {}
