"""One encoder for six tasks of different kinds, compared with an encoder for each, as in Mulyar
and McInnes (2020), table 2.

    python -m benchmarks.heads.together --updates 150
    python -m benchmarks.heads.together --tasks rqe --seeds 1

Of the paper's eight clinical tasks, the data of two may be used without an agreement: question
entailment (rqe) and Quaero, French. Others of the same kinds take the places of the rest: PHI
(meddocan) for i2b2 2014, BC5CDR for the entities, BIOSSES for n2c2's similarity of sentences, and
ChemProt for n2c2's relations. MEDDOCAN is Spanish, Quaero French, the others are English; the
pipeline has the English tokenizer.

The joint trial has a head for each task on one encoder, and updates of each task in turn; a single
trial has an encoder and one head. Both have the same settings, texts and batches, and --updates
updates of each task. Entities of relations are given. The last weights are scored once on the first
documents of dev, a fixed number for each task, by the main metric of the task. The number of
threads is OMP_NUM_THREADS.

A finished trial is kept in .work/benchmarks and not run again, an interrupted one is resumed. After
each, benchmarks/results/heads_together.json is written anew.
"""

import json
import shutil
import statistics
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import spacy
import torch
from spacy.language import Language
from spacy.training import Example
from thinc.api import Config

from benchmarks.harness import (
    ROOT,
    WORK,
    data_dir,
    describe_machine,
    keep,
    make_parser,
    read_json,
    run_python,
    write_result,
)
from benchmarks.heads import data
from spacy_bioclin.catalog.tasks import find_task
from spacy_bioclin.corpora.docbin import read_docs, write_docs
from spacy_bioclin.corpora.readers import make_corpus
from spacy_bioclin.corpora.texts import SCORE
from spacy_bioclin.evaluation.categories import correlate
from spacy_bioclin.evaluation.relations import relation_score
from spacy_bioclin.evaluation.spans import span_score
from spacy_bioclin.training.state import STATE

ENCODER = ROOT / "assets" / "encoders" / "bioclin-sm"
FOLDER = WORK / "heads-together"
LANG = "en"
BATCH_WORDS = 512
JOINT = "joint"


class Task(NamedTuple):
    """A task, and its head.

    config (str): Config with the head's settings.
    component (str): The head there.
    n_dev (int): Documents of dev that are scored.
    metric (str): What is published.
    """

    config: str
    component: str
    n_dev: int
    metric: str


TASKS = {
    "rqe": Task("pairs.cfg", "pairs", 300, "accuracy"),
    "biosses": Task("pairs.cfg", "pairs", 16, "pearson"),
    "meddocan": Task("ner.cfg", "ner", 20, "f"),
    "bc5cdr": Task("ner.cfg", "ner", 40, "f"),
    "chemprot": Task("relations.cfg", "relations", 60, "f"),
    "quaero-emea": Task("ner.cfg", "ner", 200, "f"),
}


def prepare(task: str) -> Path:
    """Convert a corpus, with entities to learn in a layer of their own, and take the sample of dev.

    RETURNS (Path): Folder with train.spacy and dev.spacy.
    """
    folder = FOLDER / "corpora" / task
    folder.mkdir(parents=True, exist_ok=True)
    if task in data.NAMES:
        source = data.prepare(task, data.list_folds(task)[0])
        paths = {split: source / f"{split}.spacy" for split in ("train", "dev")}
    else:
        known = find_task(task)
        paths = {split: folder / f"all-{split}.spacy" for split in ("train", "dev")}
        for split, path in paths.items():
            if not path.exists():
                run_python(
                    *("-m", "spacy_bioclin", "convert", known.format),
                    *(data_dir() / part for part in known.splits[split]),
                    *(path, "--lang", LANG, "--layer", f"*={task}"),
                    log=folder / f"{split}.log",
                )
    for split, path in paths.items():
        out = folder / f"{split}.spacy"
        if not out.exists():
            docs = read_docs(path, spacy.blank(LANG).vocab)
            chosen = docs if split == "train" else islice(docs, TASKS[task].n_dev)
            write_docs(list(chosen), out)
    return folder


def head_config(task: str) -> dict[str, Any]:
    """Make the section of a task's head."""
    config = Config().from_disk(ROOT / "configs" / TASKS[task].config, interpolate=False)
    head: dict[str, Any] = config["components"][TASKS[task].component]
    if TASKS[task].component == "pairs":
        head["require_pairs"] = False
        head["objective"] = "regression" if task == "biosses" else "classification"
        return head
    if task == "chemprot":
        head["scorer"]["relations_key"] = head["relations_key"]
    else:
        head["scorer"]["spans_key"] = head["spans_key"] = task
        head["nested"] = find_task(task).nested
    return head


def make_config(tasks: Iterable[str], seed: int, updates: int) -> Config:
    """Make the config of a trial."""
    tasks = list(tasks)
    config = Config().from_disk(ROOT / "configs" / "ner.cfg", interpolate=False)
    config["paths"]["encoder"] = str(ENCODER)
    config["nlp"]["lang"] = LANG
    config["system"]["seed"] = seed
    del config["components"]["ner"]
    at = config["nlp"]["pipeline"].index("ner")
    config["nlp"]["pipeline"][at : at + 1] = tasks
    config["components"].update({task: head_config(task) for task in tasks})
    for split, max_tokens in (("train", "auto"), ("dev", 0)):
        config["corpora"][split] = {
            "@readers": "spacy-bioclin.TaskCorpora.v1",
            "max_tokens": max_tokens,
            "tasks": {
                task: {
                    "path": str(prepare(task) / f"{split}.spacy"),
                    "heads": [task],
                    "use_gold_ents": task == "chemprot",
                    **({"metric": "pairs_pearson"} if task == "biosses" else {}),
                }
                for task in tasks
            },
        }
    training = config["training"]
    training["max_steps"] = training["eval_frequency"] = updates * len(tasks)
    training["logger"]["progress_bar"] = None
    training["batcher"] = {
        "@batchers": "spacy-bioclin.batch_by_task.v1",
        "draw": "round_robin",
        "batcher": {**training["batcher"], "size": BATCH_WORDS},
    }
    training["score_weights"] = {"tasks_mean": 1.0}
    return config


def score(nlp: Language, task: str) -> float:
    """Score the sample of dev of a task, in percent."""
    read = make_corpus(prepare(task) / "dev.spacy", use_gold_ents=task == "chemprot")
    given = list(read(nlp))
    docs = nlp.pipe([eg.predicted for eg in given])
    egs = [Example(doc, eg.reference) for doc, eg in zip(docs, given, strict=True)]
    if task == "chemprot":
        found = relation_score(egs, relations_key="relations")["rels_f"]
    elif task == "biosses":
        gold, predicted = ([side(eg).cats[SCORE] for eg in egs] for side in (_gold, _predicted))
        found = correlate(gold, predicted)["pearson"]
    elif task == "rqe":
        classes = [sorted(eg.reference.cats) for eg in egs]
        chosen = [
            [max(labels, key=side(eg).cats.__getitem__) for side in (_gold, _predicted)]
            for eg, labels in zip(egs, classes, strict=True)
        ]
        found = statistics.mean(one == other for one, other in chosen)
    else:
        found = span_score(egs, spans_key=task)[f"spans_{task}_f"]
    return round(100 * (found or 0.0), 2)


def _gold(eg: Example) -> spacy.tokens.Doc:
    return eg.reference


def _predicted(eg: Example) -> spacy.tokens.Doc:
    return eg.predicted


def run_trial(folder: Path, system: str, seed: int, updates: int) -> dict[str, Any]:
    """Train a pipeline and score it, with time and memory."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = list(TASKS) if system == JOINT else [system]
    config = make_config(tasks, seed, updates)
    config.to_disk(folder / "config.cfg")
    output = folder / "training"
    resumed = (output / STATE).exists()
    usage = run_python(
        *("-m", "spacy_bioclin", "train", folder / "config.cfg", "-o", output),
        "--resume" if resumed else "--overwrite",
        log=folder / "training.log",
    )
    shutil.rmtree(output / STATE, ignore_errors=True)
    nlp = spacy.load(output / "model-last")
    return {
        "system": system,
        "seed": seed,
        "updates": updates * len(tasks),
        "threads": torch.get_num_threads(),
        "dev": {task: score(nlp, task) for task in tasks},
        "train_resumed": resumed,  # then time and memory are those of the last part
        "train_seconds": round(usage.seconds, 1),
        "train_cpu_seconds": round(usage.cpu_seconds, 1),
        "train_peak_memory_mb": round(usage.peak_memory_mb),
        "machine": describe_machine(),
    }


def summarize(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the joint trials with the single ones, over the seeds that both have."""
    found = {(trial["system"], trial["seed"]): trial for trial in trials}
    joint = [trial for trial in trials if trial["system"] == JOINT]
    rows: dict[str, Any] = {}
    for task, known in TASKS.items():
        both = [
            (one["dev"][task], found[task, one["seed"]]["dev"][task])
            for one in joint
            if (task, one["seed"]) in found
        ]
        if both:
            together, alone = (round(statistics.mean(side), 2) for side in zip(*both, strict=True))
            rows[task] = {"metric": known.metric, "seeds": len(both)}
            rows[task] |= {"joint": together, "single": alone}
            rows[task]["joint_minus_single"] = round(together - alone, 2)
    summary: dict[str, Any] = {"tasks": rows}
    if rows:
        values = [row["joint_minus_single"] for row in rows.values()]
        summary["mean_joint_minus_single"] = round(statistics.mean(values), 2)
    complete = [one for one in joint if all((task, one["seed"]) in found for task in TASKS)]
    if complete:
        summary["cost"] = cost(complete[0], found)
    return summary


def cost(joint: dict[str, Any], found: Mapping[tuple[str, int], dict[str, Any]]) -> dict[str, Any]:
    """Compare time and memory of a joint trial with those of the single trials of its seed."""
    single = [found[task, joint["seed"]] for task in TASKS]
    seconds = sum(trial["train_cpu_seconds"] for trial in single)
    memory = max(trial["train_peak_memory_mb"] for trial in single)
    return {
        "joint_cpu_seconds": joint["train_cpu_seconds"],
        "single_cpu_seconds": round(seconds, 1),
        "cpu_joint_over_single": round(joint["train_cpu_seconds"] / seconds, 2),
        "joint_peak_memory_mb": joint["train_peak_memory_mb"],
        "single_peak_memory_mb": memory,
        "memory_joint_over_single": round(joint["train_peak_memory_mb"] / memory, 2),
        "any_resumed": any(trial["train_resumed"] for trial in (joint, *single)),
    }


def write_results(updates: int) -> Path:
    """Write benchmarks/results/heads_together.json from the trials with so many updates."""
    trials = [read_json(path) for path in sorted((FOLDER / str(updates)).glob("*/result.json"))]
    result = {
        "encoder": ENCODER.name,
        "updates_per_task": updates,
        "words_per_update": BATCH_WORDS,
        "dev_documents": {task: known.n_dev for task, known in TASKS.items()},
        "summary": summarize(trials),
        "trials": trials,
    }
    return write_result("heads_together", result)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--updates", type=int, default=150, help="updates of each task")
    parser.add_argument("--tasks", nargs="+", choices=(JOINT, *TASKS), default=[JOINT, *TASKS])
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        for system in arguments.tasks:
            folder = FOLDER / str(arguments.updates) / f"{system}-{seed}"
            measure = partial(run_trial, folder, system, seed, arguments.updates)
            found = keep(folder / "result.json", measure)
            shown = {key: value for key, value in found.items() if key != "machine"}
            print(json.dumps(shown), write_results(arguments.updates), flush=True)


if __name__ == "__main__":
    main()
