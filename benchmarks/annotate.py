"""Words per second of annotation: our pipeline in bf16 and fp32 beside vanilla spaCy's.

    python benchmarks/annotate.py      # after benchmarks/ner.py compact … --systems bioclin spacy

Loads the compact pipelines that benchmarks/ner.py trained (the same encoder in each), and has
them annotate the same test documents in alternating rounds. Also counts how many entities bf16 and
fp32 have in common.
"""

import json
import statistics
import time
from typing import Any

import spacy
import torch
from machine import write_result
from ner import LANG, WORK, prepare
from spacy.language import Language
from spacy.tokens import Doc

from spacy_bioclin.corpora.docbin import read_docs

N_DOCS = 30
ROUNDS = 5


def load(task: str) -> dict[str, Language]:
    trials = WORK / "trials"
    ours = trials / f"compact-{task}-bioclin-0" / "training" / "model-last"
    fp32 = {"components": {"transformer": {"model": {"precision": "fp32"}}}}
    return {
        "bioclin auto": spacy.load(ours),
        "bioclin fp32": spacy.load(ours, config=fp32),
        "spacy fp32": spacy.load(trials / f"compact-{task}-spacy-0" / "training" / "model-last"),
    }


def entities(docs: list[Doc]) -> set[tuple[int, int, int, str]]:
    return {(i, e.start_char, e.end_char, e.label_) for i, doc in enumerate(docs) for e in doc.ents}


def measure(task: str) -> dict[str, Any]:
    pipelines = load(task)
    corpus = prepare(task) / "test.spacy"
    texts = [doc.text for doc in read_docs(corpus, spacy.blank(LANG[task]).vocab)][:N_DOCS]
    words = sum(len(text.split()) for text in texts)
    speeds: dict[str, list[float]] = {name: [] for name in pipelines}
    found = {}
    for _ in range(ROUNDS):
        for name, nlp in pipelines.items():
            started = time.perf_counter()
            docs = list(nlp.pipe(texts))
            speeds[name].append(words / (time.perf_counter() - started))
            found[name] = entities(docs)
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    auto, fp32 = found["bioclin auto"], found["bioclin fp32"]
    return {
        "documents": len(texts),
        "words": words,
        "words_per_second": {name: [round(v) for v in values] for name, values in speeds.items()},
        "median": {name: round(value) for name, value in medians.items()},
        "times_spacy": {
            name: round(value / medians["spacy fp32"], 2) for name, value in medians.items()
        },
        "entities_fp32": len(fp32),
        "entities_in_common": len(auto & fp32),
        "share_in_common": round(len(auto & fp32) / max(1, len(auto | fp32)), 4),
    }


def main() -> None:
    tasks = {task: measure(task) for task in LANG}
    print(json.dumps(tasks, indent=2))
    print(write_result("annotate", {"threads": torch.get_num_threads(), "tasks": tasks}))


if __name__ == "__main__":
    main()
