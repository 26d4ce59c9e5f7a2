"""Heads for relations, pairs and whole texts on real corpora, beside published figures.

    python -m benchmarks.heads.accuracy chemprot --input spans markers --seeds 0
    python -m benchmarks.heads.accuracy gad --folds published 0
    python -m benchmarks.heads.accuracy rqe --learn-rate 2e-4 --dev-only

Every trial trains a pipeline on train (configs/relations.cfg, relations-markers.cfg, pairs.cfg or
textcat.cfg) and is scored once on the whole test split, with the metric of the published figures.
The entities of relations are given, and those of bc5cdr-cid with their concept ids, except where
`published` says otherwise. A relation that the settings cannot find, such as one across sentences,
counts as missed. Corpora and splits are those of benchmarks/heads/data.py; hoc and gad have spaCy's
own text classifier.

Numbers of updates (TASKS) and the learning rate are chosen on dev, with --dev-only, which does not
read test. A trial takes 10 to 25 minutes on one core. The number of threads is OMP_NUM_THREADS. A
finished trial is kept in .work/benchmarks and not run again, an interrupted one is resumed. After
each trial, benchmarks/results/heads.json is written anew: its other trials stay.
"""

import json
import shutil
import statistics
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.harness import (
    RESULTS,
    ROOT,
    WORK,
    describe_machine,
    keep,
    make_parser,
    read_json,
    run_python,
    to_options,
    write_result,
)
from benchmarks.heads.data import NAMES, RELATIONS, find_lang, list_folds, prepare
from benchmarks.heads.scoring import list_published, score
from spacy_bioclin.training.state import STATE

# A general encoder of base size; the aim is its published figure minus three points.
GENERAL = "RoBERTa-base"
CONFIGS = {
    "spans": "configs/relations.cfg",
    "markers": "configs/relations-markers.cfg",
    "pairs": "configs/pairs.cfg",
    "texts": "configs/textcat.cfg",
}
EXCLUSIVE = {
    "components.textcat.factory": "textcat",
    "components.textcat.model.exclusive_classes": "true",
    "components.textcat.threshold": "0.0",
    "components.textcat.scorer.@scorers": "spacy.textcat_scorer.v2",
}
RATE = "training.optimizer.learn_rate.initial_rate"
# Below the 5e-4 that the catalogue has from NER; chosen on dev of ChemProt, see `dev_trials` of the
# result.
LEARN_RATE = "2e-4"


class Task(NamedTuple):
    """How a task is trained and scored.

    metric (str): Which of the scores is published.
    updates (dict[str, int]): Input -> number of updates.
    settings (Mapping[str, Any]): Settings that differ from the config.
    """

    metric: str
    updates: Mapping[str, int]
    settings: Mapping[str, Any] = {}


TASKS = {
    "chemprot": Task("micro_f", {"spans": 2400, "markers": 1400}),
    "ddi2013": Task(
        "micro_f",
        {"spans": 1600, "markers": 1000},
        {"components.relations.symmetric": '["mechanism","effect","advise","int"]'},
    ),
    "bc5cdr-cid": Task(
        "micro_f",
        {"spans": 300},
        {
            "components.relations.level": "concept",
            "components.relations.scope": "document",
            "corpora.train.max_tokens": 0,
        },
    ),
    "ehealthkd-2021": Task(
        "micro_f", {"spans": 1000, "markers": 600}, {"training.batcher.size": 512}
    ),
    "maccrobat2020-relations": Task("micro_f", {"spans": 1000, "markers": 600}),
    "rqe": Task("accuracy", {"pairs": 1200}),
    "biosses": Task(
        "pearson",
        {"pairs": 200},
        {"components.pairs.objective": "regression", "training.batcher.size": 512},
    ),
    "hoc": Task("example_f", {"texts": 1500}),
    "hoc-nodes": Task("example_f", {"texts": 1500}),
    "gad": Task("f", {"texts": 1000}, {"training.batcher.size": 512, **EXCLUSIVE}),
}


class TrialName(NamedTuple):
    """What a trial trains.

    encoder (str): Name of the encoder in the results.
    input (str): One of CONFIGS.
    fold (str): See `list_folds`.
    updates (int | None), learn_rate (str | None): None for TASKS and LEARN_RATE.
    dev_only (bool): Do not read test.
    """

    encoder: str
    task: str
    input: str
    fold: str = ""
    seed: int = 0
    updates: int | None = None
    learn_rate: str | None = None
    dev_only: bool = False

    @property
    def steps(self) -> int:
        """Number of updates."""
        return self.updates or TASKS[self.task].updates[self.input]

    @property
    def rate(self) -> str:
        """Peak learning rate."""
        return self.learn_rate or LEARN_RATE

    @property
    def folder(self) -> Path:
        """Folder of the trial."""
        parts = (self.encoder, self.task, self.fold, self.input, self.seed, self.steps, self.rate)
        name = "-".join(str(part) for part in parts if part != "")
        return WORK / "trials" / ("heads-dev" if self.dev_only else "heads") / name


def run_trial(trial: TrialName, encoder: Path) -> dict[str, Any]:
    """Train, and measure scores, time and memory."""
    trial.folder.mkdir(parents=True, exist_ok=True)
    corpora = prepare(trial.task, trial.fold)
    output = trial.folder / "training"
    resumed = (output / STATE).exists()
    settings = {
        "paths.train": corpora / "train.spacy",
        "paths.dev": corpora / "dev.spacy",
        "paths.encoder": encoder,
        "nlp.lang": find_lang(trial.task),
        "system.seed": trial.seed,
        "training.max_steps": trial.steps,
        "training.eval_frequency": max(1, trial.steps // 4),
        "training.logger.progress_bar": "null",
        **TASKS[trial.task].settings,
        RATE: trial.rate,
    }
    usage = run_python(
        *("-m", "spacy_bioclin", "train", CONFIGS[trial.input], "-o", output),
        "--resume" if resumed else "--overwrite",
        *(("--gpu-id", 0) if torch.cuda.is_available() else ()),
        *to_options(settings),
        log=trial.folder / "training.log",
    )
    shutil.rmtree(output / STATE, ignore_errors=True)
    splits = ("dev",) if trial.dev_only else ("dev", "test")
    return {
        "encoder": trial.encoder,
        "task": trial.task,
        "input": trial.input,
        "fold": trial.fold,
        "seed": trial.seed,
        "updates": trial.steps,
        "learn_rate": trial.rate,
        "settings": {key: str(value) for key, value in TASKS[trial.task].settings.items()},
        "metric": TASKS[trial.task].metric,
        **score(output / "model-last", trial.task, corpora, splits),
        "threads": torch.get_num_threads(),
        "train_resumed": resumed,  # then time and memory are those of the last part
        "train_seconds": round(usage.seconds, 1),
        "train_cpu_seconds": round(usage.cpu_seconds, 1),
        "train_peak_memory_mb": round(usage.peak_memory_mb),
        "machine": describe_machine(),
    }


def find_key(trial: Mapping[str, Any]) -> tuple[str, ...]:
    """Find what distinguishes a trial from the others."""
    keys = ("task", "input", "encoder", "fold", "seed", "updates", "learn_rate", "settings")
    return (*(str(trial[key]) for key in keys), "test" if "test" in trial else "dev")


def all_trials() -> list[dict[str, Any]]:
    """List the trials of the committed result, replaced by those of this checkout."""
    committed = RESULTS / "heads.json"
    known = read_json(committed) if committed.exists() else {}
    trials = known.get("trials", []) + known.get("dev_trials", [])
    trials += [read_json(path) for path in (WORK / "trials").glob("heads*/*/result.json")]
    latest = {find_key(trial): trial for trial in trials}
    return [latest[key] for key in sorted(latest)]


def summarize(
    trials: list[dict[str, Any]], published: list[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Compute mean and standard deviation over seeds and folds.

    trials (list[dict]): Those with test; of several settings, the best on dev count.
    published (list[dict]): See `list_published`.
    RETURNS (dict): "ENCODER TASK INPUT" -> scores, in percent, and the aim, if there is one.
    """
    groups: dict[str, dict[tuple[str, ...], list[dict[str, Any]]]] = {}
    for trial in trials:
        name = " ".join(trial[key] for key in ("encoder", "task", "input"))
        setting = tuple(str(trial[key]) for key in ("updates", "learn_rate", "settings"))
        groups.setdefault(name, {}).setdefault(setting, []).append(trial)
    general = (row for row in published if row["system"] == GENERAL)
    aims = {(row["task"], row["metric"]): row["value"] - 3 for row in general}

    def mean(group: list[dict[str, Any]], split: str, metric: str) -> float:
        return 100 * statistics.mean(trial[split][metric] or 0 for trial in group)

    summary = {}
    for name, settings in groups.items():
        metric = next(iter(settings.values()))[0]["metric"]
        group = max(settings.values(), key=lambda one: (len(one), mean(one, "dev", metric)))
        first = group[0]
        values = [100 * (trial["test"][metric] or 0) for trial in group]
        compared = {key: aim for (task, key), aim in aims.items() if task == first["task"]}
        summary[name] = {
            "trials": len(group),
            **{key: first[key] for key in ("updates", "learn_rate", "metric")},
            "gold_entities_given": first["task"] in RELATIONS,
            "dev_mean": round(mean(group, "dev", metric), 2),
            "test_mean": round(statistics.mean(values), 2),
            "test_sd": round(statistics.stdev(values), 2) if len(values) > 1 else None,
            "aim": {
                key: {"aim": round(aim, 1), "test_mean": round(mean(group, "test", key), 2)}
                for key, aim in compared.items()
            },
            "train_cpu_seconds_median": statistics.median(
                one["train_cpu_seconds"] for one in group
            ),
        }
    return summary


def write_results() -> Path:
    """Write benchmarks/results/heads.json."""
    trials, published = all_trials(), list_published(TASKS)
    tested = [trial for trial in trials if "test" in trial]
    result = {
        "summary": summarize(tested, published),
        "published": published,
        "trials": tested,
        "dev_trials": [trial for trial in trials if "test" not in trial],
    }
    return write_result("heads", result)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("task", choices=sorted(NAMES))
    parser.add_argument("--input", nargs="+", metavar="INPUT", help=f"of {', '.join(CONFIGS)}")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--folds", nargs="+", help="default: all of the task")
    parser.add_argument("--updates", type=int, help="instead of those of TASKS")
    parser.add_argument("--learn-rate", help=f"instead of {LEARN_RATE}; auto: see the config")
    parser.add_argument("--dev-only", action="store_true", help="do not read test")
    parser.add_argument("--encoder", type=Path, default=ROOT / "assets/encoders/bioclin-sm")
    parser.add_argument("--encoder-name", help="name in the result, by default that of the folder")
    arguments = parser.parse_args()
    task, possible = arguments.task, TASKS[arguments.task].updates
    inputs = arguments.input or [next(iter(possible))]
    if unknown := set(inputs) - possible.keys():
        parser.error(f"{task} has no input {sorted(unknown)[0]}; there are {', '.join(possible)}")
    encoder = arguments.encoder.resolve()
    name = arguments.encoder_name or encoder.name
    settings = (arguments.updates, arguments.learn_rate, arguments.dev_only)
    for seed in arguments.seeds:
        for fold in arguments.folds or list_folds(task):
            for input in inputs:
                trial = TrialName(name, task, input, fold, seed, *settings)
                measure = partial(run_trial, trial, encoder)
                found = keep(trial.folder / "result.json", measure)
                shown = {key: found[key] for key in found if key not in ("machine", "settings")}
                print(json.dumps(shown), flush=True)
                print(write_results(), flush=True)


if __name__ == "__main__":
    main()
