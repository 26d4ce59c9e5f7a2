"""A label removed from half of the training notes: masked there, taken for "O", or not removed.

    python -m benchmarks.accuracy.masking --tasks bc5cdr
    python -m benchmarks.accuracy.masking --tasks maccrobat2020 --heads nested --updates 600

A corpus is converted with its common labels. From half of its training notes, chosen by the hash of
their ids, all spans of DISEASE are removed. Three trainings follow for each head (flat and nested)
with the same number of updates of 1,024 tokens, the same order of notes and the settings of
`ner.py compact`:

    full      every note as it is
    missing   the spans are removed, and the notes count as annotated: what they have is "O"
    masked    the spans are removed, and the notes say that they were not annotated for DISEASE

The last weights are scored once on the whole test split. A finished trial is kept in
.work/benchmarks and not run again, an interrupted one is resumed. After each trial,
benchmarks/results/masking.json is written anew.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Config

from benchmarks.corpora import N_DEV, SHIPPED
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
from spacy_bioclin.catalog.tasks import COMMON_LAYER, SPLITS, find_task
from spacy_bioclin.corpora.docbin import read_docs, write_docs
from spacy_bioclin.evaluation.bootstrap import paired_f1_difference
from spacy_bioclin.evaluation.spans import Counts, compare, score_spans
from spacy_bioclin.types import GOLD_KEY

LABEL = "DISEASE"
KINDS = ("full", "missing", "masked")
HEADS = ("flat", "nested")
LEARN_RATE = 5e-4
BATCH_WORDS = 1024


def prepare(task: str) -> Path:
    """Convert a corpus with its common labels, and remove the label from half of train.

    RETURNS (Path): Folder with full, missing, masked, dev-sample and test.
    """
    folder = WORK / "corpora" / f"masking-{task}"
    known = find_task(task)
    for split in SPLITS:
        out = folder / f"{split}.spacy"
        if not out.exists():
            run_python(
                *("-m", "spacy_bioclin", "convert", known.format),
                *(data_dir() / path for path in known.splits[split]),
                *(out, "--task", task, "--split", split, "--common"),
            )
    vocab = spacy.blank(known.lang).vocab
    sample = folder / "dev-sample.spacy"
    if not sample.exists():
        write_docs(list(read_docs(folder / "dev.spacy", vocab))[:N_DEV], sample)
    for kind in KINDS:
        if not (folder / f"{kind}.spacy").exists():
            docs = change(read_docs(folder / "train.spacy", vocab), kind)
            write_docs(docs, folder / f"{kind}.spacy")
    return folder


def change(docs: Iterator[Doc], kind: str) -> Iterator[Doc]:
    """Remove the label from half of the Docs, unless the kind is "full"."""
    for doc in docs:
        gold = doc.user_data[GOLD_KEY]
        if kind != "full" and hashlib.sha256(gold["id"].encode()).digest()[0] % 2:
            spans = [span for span in doc.spans[COMMON_LAYER] if span.label_ != LABEL]
            doc.spans[COMMON_LAYER] = spans
            items = [item for item in gold["layers"][COMMON_LAYER] if item[2] != LABEL]
            annotated = gold["annotated"][COMMON_LAYER]
            if kind == "masked":
                annotated = [label for label in annotated if label != LABEL]
            doc.user_data[GOLD_KEY] = {
                **gold,
                "layers": {COMMON_LAYER: items},
                "annotated": {COMMON_LAYER: annotated},
            }
        yield doc


def make_config(task: str, head: str, kind: str, corpora: Path, updates: int) -> Config:
    """Make the config of a trial from configs/ner.cfg."""
    config = Config().from_disk(ROOT / "configs" / "ner.cfg", interpolate=False)
    config["paths"] |= {
        "train": str(corpora / f"{kind}.spacy"),
        "dev": str(corpora / "dev-sample.spacy"),
        "encoder": str(SHIPPED),
    }
    config["nlp"]["lang"] = find_task(task).lang
    config["components"]["ner"] |= {"spans_key": COMMON_LAYER, "nested": head == "nested"}
    config["components"]["ner"]["scorer"]["spans_key"] = COMMON_LAYER
    config["training"] |= {
        "max_steps": updates,
        "eval_frequency": max(1, updates // 2),
        "score_weights": {f"spans_{COMMON_LAYER}_f": 1.0},
    }
    config["training"]["batcher"]["size"] = BATCH_WORDS
    config["training"]["optimizer"]["learn_rate"]["initial_rate"] = LEARN_RATE
    config["training"]["logger"]["progress_bar"] = None
    return config


def find_trial(task: str, head: str, kind: str, updates: int) -> Path:
    """Find the folder of a trial."""
    return WORK / "trials" / f"masking-{updates}" / f"{task}-{head}-{kind}"


def run_trial(task: str, head: str, kind: str, updates: int) -> dict[str, Any]:
    """Train and score, or read what was measured before."""
    trial = find_trial(task, head, kind, updates)

    def measure() -> dict[str, Any]:
        corpora = prepare(task)
        trial.mkdir(parents=True, exist_ok=True)
        make_config(task, head, kind, corpora, updates).to_disk(trial / "config.cfg")
        resumed = (trial / "training" / "state").exists()
        usage = run_python(
            *("-m", "spacy_bioclin", "train", trial / "config.cfg", "-o", trial / "training"),
            "--resume" if resumed else "--overwrite",
            *(("--gpu-id", 0) if torch.cuda.is_available() else ()),
            log=trial / "training.log",
        )
        result = {
            "task": task,
            "head": head,
            "kind": kind,
            "updates": updates,
            "threads": torch.get_num_threads(),
            "train_cpu_seconds": round(usage.cpu_seconds, 1),
            "train_resumed": resumed,  # then the time is that of the last part only
            **score(trial / "training" / "model-last", corpora),
            "machine": describe_machine(),
        }
        shutil.rmtree(trial / "training")
        return result

    return keep(trial / "result.json", measure)


def score(pipeline: Path, corpora: Path) -> dict[str, Any]:
    """Score a pipeline on the test split, strictly."""
    spacy.prefer_gpu()
    nlp = spacy.load(pipeline)
    references = list(read_docs(corpora / "test.spacy", nlp.vocab))
    predicted = nlp.pipe([doc.text for doc in references])
    examples = [Example(p, r) for p, r in zip(predicted, references, strict=True)]
    pairs = (compare(eg, COMMON_LAYER) for eg in examples)
    scores = score_spans(pair for pair in pairs if pair is not None)
    return {
        "micro": rounded(scores.micro),
        "labels": {label: rounded(counts) for label, counts in scores.per_label.items()},
        "counts": scores.of_docs(LABEL),
    }


def rounded(counts: Counts) -> dict[str, float]:
    """Round precision, recall and F1 for the result file."""
    return {key: round(value, 4) for key, value in counts.prf().items()}


def summarize(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the three trials of each corpus and head on the label, on the documents of test."""
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for trial in trials:
        groups.setdefault(f"{trial['task']} {trial['head']}", {})[trial["kind"]] = trial
    summary = {}
    for name, group in groups.items():
        row: dict[str, Any] = {
            kind: group[kind]["labels"].get(LABEL) for kind in KINDS if kind in group
        }
        for other in ("full", "missing"):
            if other in group and "masked" in group:
                pair = ([group[kind]["counts"]] for kind in ("masked", other))
                found = paired_f1_difference(*pair)
                row[f"masked_minus_{other}_points"] = round(100 * found.difference, 2)
                row[f"masked_minus_{other}_interval"] = [
                    round(100 * value, 2) for value in (found.low, found.high)
                ]
        summary[name] = row
    return summary


def write_results(updates: int) -> Path:
    """Write the result of all finished trials with so many updates."""
    folder = find_trial("", "", "", updates).parent
    trials = [read_json(path) for path in sorted(folder.glob("*/result.json"))]
    summary = summarize(trials)
    for trial in trials:
        del trial["counts"]
    settings = {"label": LABEL, "updates": updates, "words_per_update": BATCH_WORDS}
    return write_result("masking", {**settings, "summary": summary, "trials": trials})


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--tasks", nargs="+", default=["bc5cdr"])
    parser.add_argument("--heads", nargs="+", default=list(HEADS), choices=HEADS)
    parser.add_argument("--updates", type=int, default=600)
    arguments = parser.parse_args()
    for task in arguments.tasks:
        for head in arguments.heads:
            for kind in KINDS:
                trial = run_trial(task, head, kind, arguments.updates)
                print(json.dumps({key: trial[key] for key in ("task", "head", "kind", "labels")}))
                print(write_results(arguments.updates), flush=True)


if __name__ == "__main__":
    main()
