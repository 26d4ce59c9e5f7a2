"""What a choice of training or encoder is worth: strict dev F1 after 400 small updates.

    python -m benchmarks.training.yardstick --choices base reinit1 averages --seeds 0
    python -m benchmarks.training.yardstick --encoder FOLDER --encoder-name bioclin-sm-6-layers

Each trial trains configs/ner.cfg on one thread: 400 updates of 640 words, learning rate 2e-4, the
same seed and order of notes. It is scored once, on the whole documents of dev, with the last
weights. A choice changes some settings, as CHOICES lists them; "reinit1+averages" is two choices
together. Sizes of updates are compared after the same number of words.

A trial takes four to six minutes on one core. A finished one is kept in .work/benchmarks (or in
$BIOCLIN_WORK/benchmarks) and not run again. After each trial, benchmarks/results/yardstick.json is
written anew: its other rows stay. Its summary compares every choice with the same training
(encoder, task, seed, number of updates) without its last setting, or without another one if that
was not measured, and every encoder's "base" with that of the first.
"""

import os
import shutil
import statistics
from pathlib import Path
from typing import Any

import spacy
import torch

from benchmarks.corpora import LANG, annotate, encoder_folder, prepare
from benchmarks.harness import (
    RESULTS,
    WORK,
    describe_machine,
    keep,
    make_parser,
    read_json,
    run_python,
    thread_environment,
    to_options,
    write_result,
)
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.files import hash_files

UPDATES = 400
TASKS = ("pharmaconer", "bc5cdr")
ENCODERS = ("compact", "minilm", "warm-start", "random")
CONFIG = "configs/ner.cfg"
BASE = {
    "training.optimizer.learn_rate.initial_rate": 2e-4,
    "training.batcher.size": 640,
    "components.ner.word_smoothing": 0.0,
}
BASE_CHOICE = "base"
HIDDEN_DROPOUT = "components.transformer.model.transformer_config"
# Choice -> the settings that differ from BASE and from the config. "config" is another file,
# "updates" multiplies the number of updates.
CHOICES: dict[str, dict[str, Any]] = {
    "base": {},
    "lexical": {"config": "configs/ner-lexical.cfg"},
    "reinit1": {"components.transformer.model.strategy.reinit_layers": 1},
    "reinit2": {"components.transformer.model.strategy.reinit_layers": 2},
    "layer_decay": {"components.transformer.model.strategy.layer_decay": 0.9},
    "averages": {"training.optimizer.use_averages": "true"},
    "rdrop": {"components.ner.rdrop": 1.0},
    "adversarial": {"components.transformer.model.strategy.adversarial": 1.0},
    "adversarial.3": {"components.transformer.model.strategy.adversarial": 0.3},
    "rate1e-4": {"training.optimizer.learn_rate.initial_rate": 1e-4},
    "rate3e-4": {"training.optimizer.learn_rate.initial_rate": 3e-4},
    "rate5e-4": {"training.optimizer.learn_rate.initial_rate": 5e-4},
    "rate8e-4": {"training.optimizer.learn_rate.initial_rate": 8e-4},
    "head_rate3": {"components.ner.model.learn_rate_scale": 3.0},
    "head_rate30": {"components.ner.model.learn_rate_scale": 30.0},
    "first_piece": {
        "components.ner.model.tok2vec.pooling.@layers": "spacy-bioclin.first_piece.v1",
    },
    "dropout0": {
        HIDDEN_DROPOUT: '{"attention_probs_dropout_prob":0.0,"hidden_dropout_prob":0.0}',
    },
    "dropout.2": {
        HIDDEN_DROPOUT: '{"attention_probs_dropout_prob":0.0,"hidden_dropout_prob":0.2}',
    },
    "bio": {"components.ner.scheme": "BIO"},
    "word_smoothing": {"components.ner.word_smoothing": 0.4},
    "parts192": {"corpora.train.max_tokens": 192},
    "updates2x": {"updates": 2},
    "words320": {"training.batcher.size": 320, "updates": 2},
    "words1280": {"training.batcher.size": 1280, "updates": 0.5},
}


def merge_choices(choice: str) -> dict[str, Any]:
    """Merge the settings of choices that are joined by "+".

    RAISES (SystemExit): There is no such choice, or two change the same setting.
    """
    merged: dict[str, Any] = {}
    for name in choice.split("+"):
        if name not in CHOICES:
            raise SystemExit(f"no such choice: {name}; there are {', '.join(CHOICES)}")
        if both := merged.keys() & CHOICES[name].keys():
            raise SystemExit(f"{choice} sets {', '.join(sorted(both))} twice")
        merged |= CHOICES[name]
    return merged


def run_trial(
    encoder: Path | str, name: str, choice: str, task: str, seed: int, updates: int
) -> dict[str, Any]:
    """Train and score, or read what was measured before.

    encoder (Path | str): Folder of the encoder, or one of ENCODERS.
    name (str): The encoder's name in the result.
    updates (int): Of BASE's size.
    RAISES (SystemExit): What was measured before is of other weights with the same name.
    """
    settings = merge_choices(choice)
    corpora = prepare(task)
    folder = encoder_folder(str(encoder), task, corpora) if encoder in ENCODERS else Path(encoder)
    weights = hash_files(next(folder.glob("model*.safetensors"), folder))[:12]
    trial = WORK / "trials" / f"yardstick-{updates}" / f"{name}-{choice}-{task}-{seed}"

    def measure() -> dict[str, Any]:
        trial.mkdir(parents=True, exist_ok=True)
        changed = dict(settings)
        config = changed.pop("config", CONFIG)
        steps = round(updates * changed.pop("updates", 1))
        usage = run_python(
            *("-m", "spacy_bioclin", "train", config, "-o", trial / "training", "--overwrite"),
            *(("--gpu-id", 0) if torch.cuda.is_available() else ()),
            *to_options(
                {
                    "paths.train": corpora / "train.spacy",
                    "paths.dev": corpora / "dev-sample.spacy",
                    "paths.encoder": folder,
                    "nlp.lang": LANG[task],
                    "system.seed": seed,
                    "training.max_steps": steps,
                    "training.eval_frequency": steps + 1,  # only before the first
                    "training.logger.progress_bar": "null",
                    **BASE,
                    **changed,
                }
            ),
            log=trial / "training.log",
        )
        result = {
            "encoder": name,
            "choice": choice,
            "task": task,
            "seed": seed,
            "updates": updates,
            "weights": weights,
            "settings": settings,
            **score(trial / "training" / "model-last", corpora),
            "train_cpu_seconds": round(usage.cpu_seconds, 1),
            "train_seconds": round(usage.seconds, 1),
            "train_peak_memory_mb": round(usage.peak_memory_mb),
            **{key: describe_machine()[key] for key in ("date", "cpu", "commit")},
        }
        shutil.rmtree(trial / "training")
        return result

    found = keep(trial / "result.json", measure)
    if found["weights"] != weights:
        raise SystemExit(
            f"{trial} was measured with other weights: give this encoder another --encoder-name"
        )
    return found


def score(pipeline: Path, corpora: Path) -> dict[str, Any]:
    """Measure strict scores on the whole documents of dev."""
    spacy.prefer_gpu()
    nlp = spacy.load(pipeline)
    _, scores, _ = annotate(nlp, list(read_docs(corpora / "dev.spacy", nlp.vocab)))
    return {f"dev_{key}": round(scores[f"ents_{key}"], 4) for key in "frp"}


Row = dict[str, Any]


def find_key(row: Row) -> tuple[Any, ...]:
    """Find what distinguishes a row from the others."""
    return tuple(row[key] for key in ("encoder", "choice", "task", "seed", "updates"))


def compare(rows: list[Row], others: list[Row], *, same: tuple[str, ...]) -> dict[str, Any]:
    """Compare rows with those that have the same task, seed, number of updates and more.

    same (tuple[str, ...]): More keys that must be the same.
    RETURNS (dict): Task -> number of seeds, mean dev F1 of both, difference in points for each
        seed and on average, and the processor time as a multiple.
    """
    keys = ("task", "seed", "updates", *same)
    known = {tuple(other[key] for key in keys): other for other in others}
    pairs: dict[str, list[tuple[Row, Row]]] = {}
    for row in rows:
        if other := known.get(tuple(row[key] for key in keys)):
            pairs.setdefault(row["task"], []).append((row, other))
    found = {}
    for task, both in sorted(pairs.items()):
        points = [round(100 * (row["dev_f"] - other["dev_f"]), 2) for row, other in both]
        seconds = [sum(pair[i]["train_cpu_seconds"] for pair in both) for i in (0, 1)]
        found[task] = {
            "seeds": len(both),
            "dev_f": round(statistics.mean(row["dev_f"] for row, _ in both), 4),
            "beside": round(statistics.mean(other["dev_f"] for _, other in both), 4),
            "points": points,
            "points_mean": round(statistics.mean(points), 2),
            "cpu_ratio": round(seconds[0] / seconds[1], 2),
        }
    return found


def judge(tasks: dict[str, Any]) -> str:
    """Judge a comparison: a gain is better in at least two seeds, in each of them on every task.

    RETURNS (str): "gain", "no gain", or "open" if there is nothing against it yet.
    """
    points = [value for task in tasks.values() for value in task["points"]]
    if any(value <= 0 for value in points):
        return "no gain"
    seeds = min((task["seeds"] for task in tasks.values()), default=0)
    return "gain" if set(tasks) == set(TASKS) and seeds > 1 else "open"


def leave_one_out(choice: str) -> list[str]:
    """List the choices that lack one setting of a choice, that without the last one first."""
    parts = choice.split("+")
    fewer = (parts[:i] + parts[i + 1 :] for i in reversed(range(len(parts))))
    return ["+".join(each) or BASE_CHOICE for each in fewer]


def summarize(rows: list[Row]) -> dict[str, list[Row]]:
    """Compare choices with one setting less of the same encoder, and the "base" of encoders with
    that of the first one of the rows whose name is that of ENCODERS."""
    base = [row for row in rows if row["choice"] == BASE_CHOICE]
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["encoder"], row["choice"], row["updates"]), []).append(row)
    choices, encoders = [], []
    for (encoder, choice, updates), group in sorted(groups.items()):
        named = {"encoder": encoder, "choice": choice, "updates": updates}
        if choice != BASE_CHOICE:
            for fewer in leave_one_out(choice):
                others = [row for row in rows if row["choice"] == fewer]
                if tasks := compare(group, others, same=("encoder",)):
                    compared = {"without": fewer, "tasks": tasks, "verdict": judge(tasks)}
                    choices.append({**named, **compared})
                    break
        elif encoder != ENCODERS[0]:
            tasks = compare(group, [row for row in base if row["encoder"] == ENCODERS[0]], same=())
            encoders.append({**named, "tasks": tasks, "verdict": judge(tasks)})
    return {"choices": choices, "encoders": encoders}


def write_results() -> Path:
    """Write the rows of the committed result and those of this checkout, with their summary."""
    name = f"yardstick{'_gpu' if torch.cuda.is_available() else ''}"
    committed = RESULTS / f"{name}.json"
    rows = read_json(committed)["rows"] if committed.exists() else []
    rows += [read_json(path) for path in (WORK / "trials").glob("yardstick-*/*/result.json")]
    latest = {find_key(row): row for row in rows}
    rows = [latest[key] for key in sorted(latest)]
    settings = {"config": CONFIG, "settings": BASE, "updates": UPDATES, "threads": 1}
    return write_result(name, {**settings, "summary": summarize(rows), "rows": rows})


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--choices", nargs="+", default=["base"], metavar="CHOICE")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--encoder", default="compact", help=f"folder, or {', '.join(ENCODERS)}")
    parser.add_argument("--encoder-name", help="name in the result, by default that of the folder")
    parser.add_argument("--updates", type=int, default=UPDATES)
    arguments = parser.parse_args()
    encoder = arguments.encoder
    name = arguments.encoder_name or (encoder if encoder in ENCODERS else Path(encoder).name)
    os.environ.update(thread_environment(1))
    torch.set_num_threads(1)
    for choice in arguments.choices:
        merge_choices(choice)
    for seed in arguments.seeds:
        for choice in arguments.choices:
            for task in arguments.tasks:
                row = run_trial(encoder, name, choice, task, seed, arguments.updates)
                print(f"{name} {choice} {task} seed {seed}: dev F1 {row['dev_f']:.4f}", flush=True)
                write_results()


if __name__ == "__main__":
    main()
