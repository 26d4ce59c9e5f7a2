"""Windows and strides on dev: strict F1 and seconds of the compact pipelines.

    python -m benchmarks.accuracy.windows  # trains what accuracy/ner.py random has not trained yet

Says what an overlap of windows is worth, and what a window that is longer or shorter than the parts
that the encoder was trained on costs. Settings are chosen from this: no test split is opened.
"""

from pathlib import Path
from typing import Any

import spacy
import torch

from benchmarks.accuracy.ner import MAX_TOKENS, trained
from benchmarks.corpora import LANG, annotate, prepare
from benchmarks.harness import make_parser, report
from spacy_bioclin.corpora.docbin import read_docs

# Window and stride, in pieces.
SETTINGS = ((256, 192), (256, 224), (256, 240), (256, 256), (192, 192), (160, 160), (128, 128))


def measure(pipeline: Path, corpus: Path, window: int, stride: int) -> dict[str, Any]:
    settings = {"window": window, "stride": stride, "max_batch_pieces": None, "precision": "fp32"}
    nlp = spacy.load(pipeline, config={"components": {"transformer": {"model": settings}}})
    _, scores, seconds = annotate(nlp, list(read_docs(corpus, nlp.vocab)))
    figures = {f"dev_{key}": round(scores[f"ents_{key}"], 4) for key in "prf"}
    return {"window": window, "stride": stride, **figures, "seconds": round(seconds, 1)}


def main() -> None:
    make_parser(__doc__).parse_args()
    tasks = {}
    for task in LANG:
        pipeline, corpus = trained("random", task), prepare(task) / "dev.spacy"
        rows = [measure(pipeline, corpus, *setting) for setting in SETTINGS]
        tasks[task] = {
            "max_tokens_of_training_parts": MAX_TOKENS.get(("random", LANG[task]), 192),
            "settings": rows,
        }
    report("windows", {"threads": torch.get_num_threads(), "tasks": tasks})


if __name__ == "__main__":
    main()
