"""Trainings with several seeds, joined in one pipeline, and its student: strict F1.

    python -m benchmarks.accuracy.seeds sm --task bc5cdr --choice lexical --with-dev
    python -m benchmarks.accuracy.seeds sm --task cantemist --choice lexical \\
        --texts cantemist_background.txt.xz --student-updates 5600

The trainings are trials of accuracy/ner.py, which runs those that are not finished. They are joined
by `join_pipelines`, which averages their probabilities. With --texts, `bioclin distill-ner` then
trains one model of the same kind, on the same notes and on TEXTS, which the joined pipeline
annotates; texts of train, dev and test are taken out of TEXTS first. A student that was interrupted
is resumed. Without --with-dev, the result has scores on dev, too. benchmarks/results/seeds.json is
written anew: its other rows and students stay.
"""

import statistics
from pathlib import Path
from typing import Any

import spacy

from benchmarks.accuracy.distill_ner import unseen_texts
from benchmarks.accuracy.ensemble import Setup, find_student, run_command
from benchmarks.accuracy.ner import (
    STEPS,
    TrialName,
    find_settings,
    score,
    splits_of,
    train_and_score,
)
from benchmarks.corpora import NAMES, TEMIST, prepare
from benchmarks.harness import (
    RESULTS,
    WORK,
    describe_machine,
    keep,
    make_parser,
    read_json,
    write_result,
)
from benchmarks.training.yardstick import BASE_CHOICE
from spacy_bioclin.ner.distill.teacher import hash_files
from spacy_bioclin.ner.ensemble import join_pipelines

NAME = "seeds"
SETTING = ("encoder", "task", "choice", "with_dev", "seeds")
STUDENT_SETTING = (*SETTING, "seed", "updates", "texts_sha256", "teacher_weight", "temperature")


def joined_folder(first: TrialName) -> Path:
    """Find the folder of the pipeline that joins a trial with those of other seeds."""
    return first.folder.with_name(f"{first.folder.name}-joined")


def measure(trials: list[TrialName]) -> dict[str, Any]:
    """Score trials, and the pipeline that joins them."""
    first = trials[0]
    scores = [train_and_score(trial) for trial in trials]
    folder = joined_folder(first)
    nlp = join_pipelines((str(trial.pipeline), spacy.load(trial.pipeline)) for trial in trials)
    nlp.to_disk(folder)
    f1 = [trial["test_f"] for trial in scores]
    return {
        "encoder": first.encoder,
        "task": first.task,
        "choice": first.choice,
        "with_dev": first.with_dev,
        "seeds": [trial.seed for trial in trials],
        "updates": scores[0]["updates"],
        "single_test_f": f1,
        "single_test_f_mean": round(statistics.mean(f1), 6),
        **score(folder, prepare(first.task), splits_of(first)),
        "machine": describe_machine(),
    }


def measure_student(trials: list[TrialName], seed: int, updates: int, texts: Path) -> Any:
    """Train a student of the pipeline that joins trials, unless it is trained, and score it."""
    first = trials[0]
    setup = Setup(folds=0, texts=texts, teacher_weight=0.5, temperature=1.0)
    teacher, corpora = joined_folder(first), prepare(first.task)
    texts_hash = hash_files(texts)[:8]
    name = f"{teacher.parent.name}-{teacher.name}-{seed}-{updates}-{texts_hash}"
    folder = WORK / "students" / name
    config, settings = find_settings(first._replace(seed=seed), corpora)
    settings["components.ner.teacher_weight"] = setup.teacher_weight
    settings["training.max_steps"] = updates
    settings["training.eval_frequency"] = max(1, updates // 4)
    command, of_student = find_student(teacher, config, setup)

    def run() -> dict[str, Any]:
        return {
            "encoder": first.encoder,
            "task": first.task,
            "choice": first.choice,
            "with_dev": first.with_dev,
            "seeds": [trial.seed for trial in trials],
            "seed": seed,
            **of_student,
            **run_command(command, settings, folder, corpora, splits_of(first)),
        }

    return keep(folder / "result.json", run)


def write(kind: str, new: dict[str, Any], setting: tuple[str, ...]) -> None:
    """Add to the "rows" or "students" of the result, in place of what has the same setting."""
    known = read_json(path) if (path := RESULTS / f"{NAME}.json").exists() else {}
    lists = {name: known.get(name, []) for name in ("rows", "students")}
    by_setting = {str([one[key] for key in setting]): one for one in (*lists[kind], new)}
    lists[kind] = [by_setting[key] for key in sorted(by_setting)]
    print(write_result(NAME, lists), flush=True)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("encoder", choices=sorted(STEPS))
    parser.add_argument("--task", choices=sorted((*NAMES, *TEMIST)), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--updates", type=int, help="instead of those of accuracy/ner.py")
    parser.add_argument("--choice", default=BASE_CHOICE, help="of benchmarks/training/yardstick.py")
    parser.add_argument("--with-dev", action="store_true", help="train on dev, too")
    parser.add_argument("--texts", type=Path, help="for a student: .txt or .xz, one a line")
    parser.add_argument("--limit", type=int, help="largest number of texts")
    parser.add_argument("--student-updates", type=int, help="updates of the student")
    parser.add_argument("--student-seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    if (options.texts is None) != (options.student_updates is None):
        parser.error("--texts and --student-updates: give both or none")
    trials = [
        TrialName(
            options.encoder,
            options.task,
            seed=seed,
            updates=options.updates,
            choice=options.choice,
            with_dev=options.with_dev,
        )
        for seed in options.seeds
    ]
    write("rows", measure(trials), SETTING)
    if not options.texts:
        return
    texts = unseen_texts(options.texts, prepare(options.task), options.limit)
    for seed in options.student_seeds:
        student = measure_student(trials, seed, options.student_updates, texts)
        write("students", student, STUDENT_SETTING)


if __name__ == "__main__":
    main()
