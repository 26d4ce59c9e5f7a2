"""Five corpora in one pipeline, compared with a pipeline for each.

    python -m benchmarks.accuracy.together es --systems merged single --seeds 0
    python -m benchmarks.accuracy.together es --seeds 1 2 --tasks distemist
    python -m benchmarks.accuracy.together en --systems joint --resume

The joint trial trains one nested tagger on the common labels of all corpora of a language, a single
trial on one corpus. Both use configs/ner.cfg and differ only in their tasks: the same encoder,
documents, batches of 1,024 words, and --updates updates for each task, drawn round robin, so that
the joint trial makes as many updates as all single trials together. The merged trial reads the four
Spanish corpora of the same cases as one (`bioclin merge`): an update is one of each of them, so
that it makes 2 / 5 of the updates.

Training documents are the same in both. Spanish: PharmaCoNER, DisTEMIST, SympTEMIST and MedProcNER
annotate the same cases with different splits, so they are trained on the cases that are in no test
set of these corpora and MEDDOCAN, of which MedProcNER annotates some. Those that the catalogue
lists as dev of the TEMIST corpora are dev. CANTEMIST has its train and dev1. English: the splits of
the catalogue. Training documents that share word 12-grams with a test document of any of the
corpora are left out.

A part of dev is scored four times in training, for the log only. The last weights are scored once
on all of test, on the labels that the corpus annotates. The number of threads is OMP_NUM_THREADS.
A finished trial is kept in .work/benchmarks and not run again; --resume continues an interrupted
one. After each trial, benchmarks/results/together_LANG.json is written anew.
"""

import csv
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from spacy.training import Example
from thinc.api import Config

from benchmarks.corpora import SHIPPED
from benchmarks.harness import (
    ROOT,
    WORK,
    data_dir,
    describe_machine,
    keep,
    make_parser,
    read_json,
    run_python,
    write_json,
    write_result,
)
from scripts.flagship import choose_labels
from spacy_bioclin.catalog.tasks import COMMON_LAYER, load_tasks
from spacy_bioclin.corpora.convert import convert_to_docs, read_corpus
from spacy_bioclin.corpora.docbin import read_docs, write_docs
from spacy_bioclin.corpora.overlap.merge import merge_docs
from spacy_bioclin.corpora.overlap.ngrams import NGRAM, is_overlap, ngram_hashes, word_hashes
from spacy_bioclin.evaluation.bootstrap import paired_f1_difference
from spacy_bioclin.evaluation.spans import compare, score_spans

TASKS = {
    "es": ("distemist", "symptemist", "medprocner", "pharmaconer", "cantemist"),
    "en": ("bc5cdr", "ncbi-disease", "maccrobat2020", "bc2gm", "linnaeus"),
}
CATALOGUE = load_tasks()
CASES = "spaccc-case-splits.tsv"
SPACCC = ("distemist", "symptemist", "medprocner", "pharmaconer")  # annotate the same cases
# The common labels to learn; MACCROBAT2020 has as many again, of dates, colours, places and others.
LABELS = {
    *("ANATOMY", "DISEASE", "DOSAGE", "DRUG", "GENE", "LAB_VALUE", "PROCEDURE", "PROTEIN"),
    *("SPECIES", "SYMPTOM", "TUMOR_MORPHOLOGY"),
}
MERGED = "merged"
TOGETHER = ("joint", MERGED)
N_SAMPLE_WORDS = 3000  # of each dev split; all of them take longer than the training
EVALUATIONS = 4
BATCH_WORDS = 1024


def find_files(task: str, split: str) -> list[Path]:
    """Find the files of a split, before documents are chosen."""
    paths = CATALOGUE[task].splits[split]
    if task == "cantemist" and split == "dev":
        paths = ["cantemist/dev1/norm"]
    if task == "pharmaconer" and split != "test":
        paths = [path for name in ("train", "dev") for path in CATALOGUE[task].splits[name]]
    return [data_dir() / path for path in paths]


def choose_documents(task: str, split: str) -> Callable[[str], bool]:
    """Make what tells by its id whether a document belongs to a split."""
    if task not in SPACCC:
        return lambda id: CATALOGUE[task].has_document(split, id)
    if split == "test":
        return lambda id: True
    with (data_dir() / CASES).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    names = ("pharmaconer_split", "meddocan_split", "temist_split")
    common = {row["case_id"] for row in rows if "test" not in [row[name] for name in names]}
    return lambda id: id in common and CATALOGUE["distemist"].has_document(split, id)


def find_ngrams(task: str, split: str) -> dict[str, np.ndarray]:
    """Find the word 12-grams of each document of a split, by its id."""
    documents = read_corpus(
        CATALOGUE[task].format, find_files(task, split), keep=choose_documents(task, split)
    )
    return {document.id: ngram_hashes(word_hashes(document.text), NGRAM) for document in documents}


def prepare(lang: str) -> dict[str, Any]:
    """Convert the corpora of a language.

    RETURNS (dict[str, Any]): Task -> its labels and the sizes of its splits. The files are in
        `find_folder(task)`.
    """
    path = WORK / "together" / f"{lang}-corpora.json"
    return keep(path, lambda: _convert(lang))


def _convert(lang: str) -> dict[str, Any]:
    texts = {task: find_ngrams(task, "test") for task in TASKS[lang]}
    test = np.unique(np.concatenate([grams for task in texts.values() for grams in task.values()]))
    made = {}
    for task in TASKS[lang]:
        found = find_ngrams(task, "train")
        shared = {id for id, ngrams in found.items() if is_overlap(ngrams, test)}
        sizes = {split: _convert_split(task, split, shared) for split in ("train", "dev", "test")}
        labels = choose_labels(CATALOGUE[task], LABELS)["annotated_labels"]
        made[task] = {"labels": labels, "left_out_of_train": len(shared), **sizes}
    return made


def merge_corpora() -> None:
    """Merge the training documents of the corpora of the same cases."""
    out = find_folder(MERGED) / "train.spacy"
    if not out.exists():
        vocab = spacy.blank("es").vocab
        paths = {task: find_folder(task) / "train.spacy" for task in SPACCC}
        docs, n_merged = merge_docs({task: read_docs(path, vocab) for task, path in paths.items()})
        assert n_merged == len(docs)
        out.parent.mkdir(exist_ok=True)
        write_docs(docs, out)


def _convert_split(task: str, split: str, left_out: set[str]) -> dict[str, int]:
    """Convert a split, and make the part of dev that is scored in training."""
    known, belongs = CATALOGUE[task], choose_documents(task, split)
    out = find_folder(task) / f"{split}.spacy"
    convert_to_docs(
        known.format,
        find_files(task, split),
        out,
        lang=known.lang,
        keep=lambda id: belongs(id) and not (split == "train" and id in left_out),
        task=task,
        **choose_labels(known, LABELS),
    )
    docs = list(read_docs(out, spacy.blank(known.lang).vocab))
    n_words = sum(map(len, docs))
    if split == "dev":
        write_docs(docs[:: -(-n_words // N_SAMPLE_WORDS)], out.with_name("dev-sample.spacy"))
    n_spans = sum(len(doc.spans[COMMON_LAYER]) for doc in docs)
    return {"documents": len(docs), "words": n_words, "spans": n_spans}


def find_folder(task: str) -> Path:
    """Find the folder of the converted files of a task."""
    return WORK / "together" / "corpora" / task


def make_config(
    tasks: Iterable[str], lang: str, seed: int, updates: int, *, merged: bool
) -> Config:
    """Make the config of a trial: configs/ner.cfg with the corpora of tasks and a nested tagger.

    merged (bool): Train on the corpora of the same cases as one.
    """
    tasks = list(tasks)
    corpora = [MERGED, *(task for task in tasks if task not in SPACCC)] if merged else tasks
    config = Config().from_disk(ROOT / "configs" / "ner.cfg", interpolate=False)
    config["paths"]["encoder"] = str(SHIPPED)
    config["nlp"]["lang"] = lang
    config["system"]["seed"] = seed
    config["components"]["ner"].update(nested=True, spans_key=COMMON_LAYER)
    config["components"]["ner"]["scorer"]["spans_key"] = COMMON_LAYER
    for name, file, max_tokens, read in (
        ("train", "train", "auto", corpora),
        ("dev", "dev-sample", 0, tasks),
    ):
        config["corpora"][name] = {
            "@readers": "spacy-bioclin.TaskCorpora.v1",
            "max_tokens": max_tokens,
            "tasks": {
                task: {"path": str(find_folder(task) / f"{file}.spacy"), "heads": ["ner"]}
                for task in read
            },
        }
    training = config["training"]
    training["max_steps"] = updates * len(corpora)
    training["eval_frequency"] = max(1, updates // EVALUATIONS) * len(corpora)
    training["logger"]["progress_bar"] = None
    training["batcher"] = {
        "@batchers": "spacy-bioclin.batch_by_task.v1",
        "draw": "round_robin",
        "batcher": {**training["batcher"], "size": BATCH_WORDS},
    }
    training["score_weights"] = {"tasks_mean": 1.0}
    return config


def find_trial(lang: str, system: str, seed: int, updates: int) -> Path:
    """Find the folder of a trial.

    system (str): One of `TOGETHER`, or the task of a single trial.
    """
    return WORK / "together" / f"{lang}-{updates}" / f"{system}-{seed}"


def run_trial(lang: str, system: str, seed: int, updates: int, *, resume: bool) -> dict[str, Any]:
    """Train a pipeline and score it on test, with time and memory.

    RETURNS (dict[str, Any]): The trial; "tasks" has scores and, for each document, the counts of
        true positives, false positives and false negatives.
    """
    trial = find_trial(lang, system, seed, updates)
    trial.mkdir(parents=True, exist_ok=True)
    prepare(lang)
    if system == MERGED:
        merge_corpora()
    tasks = TASKS[lang] if system in TOGETHER else (system,)
    config = make_config(tasks, lang, seed, updates, merged=system == MERGED)
    config.to_disk(trial / "config.cfg")

    def train() -> dict[str, Any]:
        resumed = resume and (trial / "training" / "state").exists()
        usage = run_python(
            *("-m", "spacy_bioclin", "train", trial / "config.cfg", "-o", trial / "training"),
            "--resume" if resumed else "--overwrite",
            log=trial / "training.log",
        )
        return {**usage._asdict(), "resumed": resumed}

    usage = keep(trial / "usage.json", train)
    n_updates = config["training"]["max_steps"]
    return {
        "system": system,
        "seed": seed,
        "updates": n_updates,
        "threads": torch.get_num_threads(),
        "train_seconds": round(usage["seconds"], 1),
        "train_cpu_seconds": round(usage["cpu_seconds"], 1),
        "cpu_seconds_per_update": round(usage["cpu_seconds"] / n_updates, 3),
        # Then time is that of the last part only.
        "train_resumed": usage["resumed"],
        "train_peak_memory_mb": round(usage["peak_memory_mb"]),
        "tasks": score(trial / "training" / "model-last", tasks),
        "machine": describe_machine(),
    }


def score(pipeline: Path, tasks: Iterable[str]) -> dict[str, Any]:
    """Score a pipeline on the test split of each task, strictly, and measure its speed."""
    nlp = spacy.load(pipeline)
    measured = {}
    for task in tasks:
        references = list(read_docs(find_folder(task) / "test.spacy", nlp.vocab))
        texts = [doc.text for doc in references]
        list(nlp.pipe(texts[:4]))  # warm-up
        started, cpu_started = time.perf_counter(), time.process_time()
        predicted = list(nlp.pipe(texts))
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
        examples = (Example(p, r) for p, r in zip(predicted, references, strict=True))
        pairs = (compare(eg, COMMON_LAYER) for eg in examples)
        scores = score_spans(pair for pair in pairs if pair is not None)
        words = sum(len(text.split()) for text in texts)
        measured[task] = {
            **{key: round(value, 4) for key, value in scores.micro.prf().items()},
            "labels": {
                label: {key: round(value, 4) for key, value in counts.prf().items()}
                for label, counts in scores.per_label.items()
            },
            "words_per_second": round(words / seconds, 1),
            "words_per_cpu_second": round(words / cpu_seconds, 1),
            "counts": scores.of_docs(),
        }
    return measured


def summarize(lang: str, trials: list[dict[str, Any]], system: str) -> dict[str, Any]:
    """Compare the trials of a system with the single ones, on the seeds that both have.

    system (str): One of `TOGETHER`.
    """
    by_system: dict[str, dict[int, dict[str, Any]]] = {}
    for trial in trials:
        by_system.setdefault(trial["system"], {})[trial["seed"]] = trial
    joint = by_system.get(system, {})
    tasks = {}
    for task in TASKS[lang]:
        single = by_system.get(task, {})
        if seeds := sorted(joint.keys() & single.keys()):
            tasks[task] = compare_task(
                *([side[seed]["tasks"][task] for seed in seeds] for side in (joint, single))
            )
    losses = [-row["difference_points"] for row in tasks.values()]
    summary: dict[str, Any] = {"tasks": tasks}
    if losses:
        summary["mean_loss_points"] = round(statistics.mean(losses), 2)
        summary["worst_loss_points"] = round(max(losses), 2) + 0.0
    alone = [by_system.get(task, {}).get(0) for task in TASKS[lang]]
    if 0 in joint and None not in alone:
        summary["training"] = compare_training(joint[0], [trial for trial in alone if trial])
    return summary


def compare_task(joint: list[dict[str, Any]], single: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the scores of a task, with a paired bootstrap over the documents of test."""
    found = paired_f1_difference(*([run["counts"] for run in side] for side in (joint, single)))
    low, high = (round(100 * value, 2) for value in (found.low, found.high))
    return {
        "seeds": len(joint),
        "joint_f": round(statistics.mean(run["f"] for run in joint), 4),
        "single_f": round(statistics.mean(run["f"] for run in single), 4),
        "difference_points": round(100 * found.difference, 2),
        "interval_points": [low, high],
        "p": round(found.p, 4),
    }


def compare_training(joint: dict[str, Any], single: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare time and memory of the trials with seed 0."""
    seconds, alone = joint["train_cpu_seconds"], [trial["train_cpu_seconds"] for trial in single]
    return {
        "joint_cpu_seconds": seconds,
        "single_cpu_seconds": round(sum(alone), 1),
        "joint_over_single": round(seconds / sum(alone), 3),
        "any_resumed": any(trial["train_resumed"] for trial in (joint, *single)),
        "joint_peak_memory_mb": joint["train_peak_memory_mb"],
        "single_peak_memory_mb": max(trial["train_peak_memory_mb"] for trial in single),
    }


def write_results(lang: str, updates: int) -> Path:
    """Write the result of all finished trials with so many updates of a task."""
    folder = find_trial(lang, "joint", 0, updates).parent
    trials = [read_json(path) for path in sorted(folder.glob("*/result.json"))]
    done = [system for system in TOGETHER if any(trial["system"] == system for trial in trials)]
    summary = {system: summarize(lang, trials, system) for system in done}
    for trial in trials:
        for measured in trial["tasks"].values():
            del measured["counts"]
    result = {"updates_per_task": updates, "words_per_update": BATCH_WORDS}
    return write_result(
        f"together_{lang}",
        {**result, "corpora": prepare(lang), "summary": summary, "trials": trials},
    )


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("lang", choices=sorted(TASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument(
        "--systems", nargs="+", default=["joint", "single"], choices=[*TOGETHER, "single"]
    )
    parser.add_argument("--tasks", nargs="+", help="tasks of the single trials; default: all")
    parser.add_argument("--updates", type=int, default=400, help="updates of each task")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted trial")
    arguments = parser.parse_args()
    lang, updates = arguments.lang, arguments.updates
    if MERGED in arguments.systems and lang != "es":
        parser.error("--systems merged: only the Spanish corpora annotate the same cases")
    if unknown := set(arguments.tasks or ()) - set(TASKS[lang]):
        parser.error(f"--tasks {' '.join(sorted(unknown))}: want some of {' '.join(TASKS[lang])}")
    systems = [*arguments.systems]
    if "single" in systems:
        at = systems.index("single")
        systems[at : at + 1] = arguments.tasks or TASKS[lang]
    for seed in arguments.seeds:
        for system in systems:
            path = find_trial(lang, system, seed, updates) / "result.json"
            if not path.exists():
                trial = run_trial(lang, system, seed, updates, resume=arguments.resume)
                write_json(path, trial)
            scores = {task: row["f"] for task, row in read_json(path)["tasks"].items()}
            print(system, seed, scores, write_results(lang, updates), flush=True)


if __name__ == "__main__":
    main()
