"""Ensembles over folds, and their distillation: strict F1 of one model, of five, and of a student.

    python -m benchmarks.accuracy.ensemble sm --task pharmaconer --seeds 0 1 2
    python -m benchmarks.accuracy.ensemble sm --task bc5cdr --texts abstracts.txt.xz --limit 5000

All systems have the encoder, config, settings and number of updates of benchmarks/accuracy/ner.py:

- single: trained on train; the trial of ner.py.
- ensemble: `bioclin ensemble`, a member per fold of train.
- distilled: `bioclin distill-ner` with the ensemble as teacher, on train and TEXTS.
- self-distilled: the same with "single" as teacher.

Without --texts, students learn from train alone. Texts of train, dev and test are taken out of
TEXTS first. Every trial is scored once on the whole test split. A finished one is kept in
.work/benchmarks and not run again, an interrupted one is resumed. After each trial,
benchmarks/results/ensemble.json is written anew: its other trials stay. Where time was not
measured in one go, as after an interruption, it is that of the last part.
"""

import json
import shutil
import statistics
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.accuracy.distill_ner import unseen_texts
from benchmarks.accuracy.ner import STEPS, TrialName, find_settings, score, train_and_score
from benchmarks.corpora import NAMES, TEMIST, prepare
from benchmarks.harness import (
    RESULTS,
    WORK,
    describe_machine,
    keep,
    make_parser,
    read_json,
    run_python,
    to_options,
    write_result,
)
from benchmarks.training.yardstick import BASE_CHOICE
from spacy_bioclin.ner.distill.teacher import hash_files, read_texts
from spacy_bioclin.training.state import STATE

SYSTEMS = ("single", "ensemble", "self-distilled", "distilled")
NAME = "ensemble"


class Setup(NamedTuple):
    """What all systems of a run have in common, beside the `TrialName`.

    folds (int): Members of the ensemble.
    texts (Path | None): File with texts that teachers annotate.
    teacher_weight, temperature (float): See `bioclin distill-ner`.
    """

    folds: int
    texts: Path | None
    teacher_weight: float
    temperature: float


def run_system(system: str, trial: TrialName, setup: Setup) -> dict[str, Any]:
    """Run a trial, or read what it measured before."""
    if system == "single":
        done = train_and_score(trial)
        return {**done, "system": system, "folds": None, "texts": 0, "texts_sha256": None}
    folder = find_folder(system, trial, setup)
    return keep(folder / "result.json", lambda: measure(system, trial, setup, folder))


def find_folder(system: str, trial: TrialName, setup: Setup) -> Path:
    """Find the folder of a trial of `bioclin ensemble` or `bioclin distill-ner`."""
    parts: list[object] = [trial.folder.name, system]
    if system != "self-distilled":
        parts.append(f"{setup.folds}-folds")
    if system != "ensemble":
        texts = hash_files(setup.texts)[:8] if setup.texts else "train"
        parts += [texts, setup.teacher_weight, setup.temperature]
    return WORK / NAME / "-".join(map(str, parts))


def find_teacher(system: str, trial: TrialName, setup: Setup) -> Path:
    """Find the pipeline that a student learns from, which is trained if it has not been."""
    if system == "self-distilled":
        train_and_score(trial)
        return trial.pipeline
    run_system("ensemble", trial, setup)
    return find_folder("ensemble", trial, setup) / "training" / "model"


def measure(system: str, trial: TrialName, setup: Setup, folder: Path) -> dict[str, Any]:
    """Train, and measure scores, time and memory."""
    config, settings = find_settings(trial, prepare(trial.task))
    if system == "ensemble":
        command: list[Any] = ["ensemble", config, "--folds", setup.folds]
        of_system = {"folds": setup.folds, "texts": 0, "texts_sha256": None}
        of_system |= {"teacher_weight": None, "temperature": None}
    else:
        command, of_system = find_student(find_teacher(system, trial, setup), config, setup)
        settings["components.ner.teacher_weight"] = setup.teacher_weight
        of_system["folds"] = setup.folds if system == "distilled" else None
    return {
        "encoder": trial.encoder,
        "task": trial.task,
        "system": system,
        "seed": trial.seed,
        "choice": trial.choice,
        **of_system,
        **run_command(command, settings, folder, prepare(trial.task)),
    }


def find_student(teacher: Path, config: str, setup: Setup) -> tuple[list[Any], dict[str, Any]]:
    """Find the command that trains a student, and what its result says of it."""
    texts = setup.texts
    command = ["distill-ner", teacher, config, "--temperature", setup.temperature]
    return [*command, *(("--texts", texts) if texts else ())], {
        "texts": sum(1 for _ in read_texts(texts)) if texts else 0,
        "texts_sha256": hash_files(texts) if texts else None,
        "teacher_weight": setup.teacher_weight,
        "temperature": setup.temperature,
    }


def run_command(
    command: list[Any],
    settings: dict[str, Any],
    folder: Path,
    corpora: Path,
    splits: tuple[str, ...] = ("dev", "test"),
) -> dict[str, Any]:
    """Run or resume `bioclin ensemble` or `bioclin distill-ner`, and score the pipeline."""
    folder.mkdir(parents=True, exist_ok=True)
    output, is_ensemble = folder / "training", command[0] == "ensemble"
    resumed = (output / ("run.json" if is_ensemble else STATE)).exists()
    usage = run_python(
        *("-m", "spacy_bioclin", *command, "-o", output),
        "--resume" if resumed or is_ensemble else "--overwrite",
        *(("--gpu-id", 0) if torch.cuda.is_available() else ()),
        *to_options(settings),
        log=folder / "training.log",
    )
    shutil.rmtree(output / STATE, ignore_errors=True)
    return {
        "updates": settings["training.max_steps"],
        "tokens_per_update": int(settings["training.batcher.size"]),
        "learn_rate": float(settings["training.optimizer.learn_rate.initial_rate"]),
        "threads": torch.get_num_threads(),
        "train_resumed": resumed,
        "train_seconds": round(usage.seconds, 1),
        "train_cpu_seconds": round(usage.cpu_seconds, 1),
        "train_peak_memory_mb": round(usage.peak_memory_mb),
        **score(output / ("model" if is_ensemble else "model-last"), corpora, splits),
        "machine": describe_machine(),
    }


SETTING = (
    *("encoder", "task", "system", "choice", "updates", "learn_rate", "folds", "texts"),
    *("texts_sha256", "teacher_weight", "temperature"),
)


def add_trial(trials: list[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Add a trial to those that were measured, in place of one with the same settings and seed."""
    by_setting = {
        json.dumps([trial.get(key) for key in (*SETTING, "seed")]): trial
        for trial in (*trials, new)
    }
    return [by_setting[key] for key in sorted(by_setting)]


def summarize(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compute mean and standard deviation over seeds, for all trials with the same settings."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for trial in trials:
        groups.setdefault(json.dumps([trial.get(key) for key in SETTING]), []).append(trial)
    rows = []
    for group in groups.values():
        row = {key: group[0].get(key) for key in SETTING if key != "texts_sha256"}
        row["seeds"] = sorted(trial["seed"] for trial in group)
        for key in ("dev_f", "test_f", "annotate_words_per_second"):
            values = [trial[key] for trial in group]
            row[f"{key}_mean"] = round(statistics.mean(values), 4)
            row[f"{key}_sd"] = round(statistics.stdev(values), 4) if len(values) > 1 else None
        rows.append(row)
    return rows


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("encoder", choices=sorted(STEPS))
    parser.add_argument("--task", choices=sorted((*NAMES, *TEMIST)), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--updates", type=int, help="instead of those of accuracy/ner.py")
    parser.add_argument("--choice", default=BASE_CHOICE, help="of benchmarks/training/yardstick.py")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--texts", type=Path, help="for the teachers: .txt or .xz, one a line")
    parser.add_argument("--limit", type=int, help="largest number of texts")
    parser.add_argument("--teacher-weight", type=float, default=0.5)
    parser.add_argument("--temperature", type=float, default=1.0)
    arguments = parser.parse_args()
    encoder, task = arguments.encoder, arguments.task
    if arguments.updates is None and task not in STEPS[encoder]:
        parser.error(f"no number of updates is set for {task} with {encoder}: give --updates")
    corpora, texts = prepare(task), arguments.texts
    if texts:
        texts = unseen_texts(texts, corpora, arguments.limit)
    setup = Setup(arguments.folds, texts, arguments.teacher_weight, arguments.temperature)
    committed = RESULTS / f"{NAME}.json"
    for seed in arguments.seeds:
        name = TrialName(encoder, task, "bioclin", seed, arguments.updates, arguments.choice)
        for system in arguments.systems:
            trial = run_system(system, name, setup)
            print(json.dumps({key: trial[key] for key in trial if key != "machine"}), flush=True)
            known = read_json(committed)["trials"] if committed.exists() else []
            trials = add_trial(known, trial)
            result = {"summary": summarize(trials), "trials": trials}
            print(write_result(NAME, result), flush=True)


if __name__ == "__main__":
    main()
