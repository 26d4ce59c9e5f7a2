"""Trainings with several seeds, joined in one pipeline: strict F1 of each and of all together.

    python -m benchmarks.accuracy.seeds sm --task bc5cdr --choice lexical --with-dev

The trainings are trials of accuracy/ner.py, which runs those that are not finished. They are joined
by `join_pipelines`, which averages their probabilities. Without --with-dev, the result has scores
on dev, too. benchmarks/results/seeds.json is written anew: its other rows stay.
"""

import statistics
from typing import Any

import spacy

from benchmarks.accuracy.ner import STEPS, TrialName, score, train_and_score
from benchmarks.corpora import NAMES, TEMIST, prepare
from benchmarks.harness import RESULTS, describe_machine, make_parser, read_json, write_result
from benchmarks.training.yardstick import BASE_CHOICE
from spacy_bioclin.ner.ensemble import join_pipelines

NAME = "seeds"
SETTING = ("encoder", "task", "choice", "with_dev", "seeds")


def measure(trials: list[TrialName]) -> dict[str, Any]:
    """Score trials, and the pipeline that joins them."""
    first = trials[0]
    scores = [train_and_score(trial) for trial in trials]
    folder = first.folder.with_name(f"{first.folder.name}-joined")
    nlp = join_pipelines((str(trial.pipeline), spacy.load(trial.pipeline)) for trial in trials)
    nlp.to_disk(folder)
    splits = ("test",) if first.with_dev else ("dev", "test")
    f1 = [trial["test_f"] for trial in scores]
    return {
        "encoder": first.encoder,
        "task": first.task,
        "choice": first.choice,
        "with_dev": first.with_dev,
        "seeds": [trial.seed for trial in trials],
        "updates": scores[0]["updates"],
        "single_test_f": f1,
        "single_test_f_mean": round(statistics.mean(f1), 4),
        **score(folder, prepare(first.task), splits),
        "machine": describe_machine(),
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("encoder", choices=sorted(STEPS))
    parser.add_argument("--task", choices=sorted((*NAMES, *TEMIST)), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--updates", type=int, help="instead of those of accuracy/ner.py")
    parser.add_argument("--choice", default=BASE_CHOICE, help="of benchmarks/training/yardstick.py")
    parser.add_argument("--with-dev", action="store_true", help="train on dev, too")
    options = parser.parse_args()
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
    row = measure(trials)
    committed = RESULTS / f"{NAME}.json"
    known = read_json(committed)["rows"] if committed.exists() else []
    rows = {str([one[key] for key in SETTING]): one for one in (*known, row)}
    print(write_result(NAME, {"rows": [rows[key] for key in sorted(rows)]}), flush=True)


if __name__ == "__main__":
    main()
