"""Windows and strides on dev: strict F1 and seconds of the compact pipelines.

    python -m benchmarks.accuracy.windows  # trains what accuracy/ner.py random has not trained yet

Says what an overlap of windows is worth, and what a window that is longer or shorter than the parts
that the encoder was trained on costs. Settings are chosen from this: no test split is opened.
"""

import json
import time
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.training import Example

from benchmarks.accuracy.ner import LANG, MAX_TOKENS, WORK, prepare, train_and_score
from benchmarks.harness import write_result
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.evaluation.spans import span_score

# Window and stride, in pieces.
SETTINGS = ((256, 192), (256, 224), (256, 240), (256, 256), (192, 192), (160, 160), (128, 128))


def measure(pipeline: Path, corpus: Path, window: int, stride: int) -> dict[str, Any]:
    settings = {"window": window, "stride": stride, "max_batch_pieces": None, "precision": "fp32"}
    nlp = spacy.load(pipeline, config={"components": {"transformer": {"model": settings}}})
    references = list(read_docs(corpus, nlp.vocab))
    started = time.perf_counter()
    docs = list(nlp.pipe([doc.text for doc in references]))
    seconds = time.perf_counter() - started
    scores = span_score(
        [Example(p, r) for p, r in zip(docs, references, strict=True)], spans_key=None
    )
    figures = {f"dev_{key}": round(scores[f"ents_{key}"], 4) for key in "prf"}
    return {"window": window, "stride": stride, **figures, "seconds": round(seconds, 1)}


def main() -> None:
    tasks = {}
    for task in LANG:
        train_and_score("random", task, "bioclin", 0)
        trained = WORK / "trials" / f"random-{task}-bioclin-0" / "training" / "model-last"
        corpus = prepare(task) / "dev.spacy"
        rows = [measure(trained, corpus, *setting) for setting in SETTINGS]
        tasks[task] = {
            "max_tokens_of_training_parts": MAX_TOKENS.get(("random", LANG[task]), 192),
            "settings": rows,
        }
    print(json.dumps(tasks, indent=2))
    print(write_result("windows", {"threads": torch.get_num_threads(), "tasks": tasks}))


if __name__ == "__main__":
    main()
