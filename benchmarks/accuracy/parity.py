"""Do bf16, fp16 and int8 find the entities that fp32 finds?

    python -m benchmarks.accuracy.parity  # trains what accuracy/ner.py has not trained yet
    python -m benchmarks.accuracy.parity --encoder sm --tasks bc5cdr

Annotates the whole test splits of MEDDOCAN and BC5CDR in each precision with the pipelines that
accuracy/ner.py trained (those that are best on dev, if there are several), and counts the entities
(offsets and label) that each has in common with fp32. On a CPU: bf16 and int8; where there is a
GPU: bf16 and fp16 there. bf16 gives the same kind of figures on any processor, but is only fast
where the hardware multiplies it; the result says whether this machine does or emulates it.
"""

from pathlib import Path
from typing import Any

import spacy
import torch
from rich.progress import Progress
from spacy.language import Language

from benchmarks.accuracy.ner import find_pipeline, trained
from benchmarks.corpora import LANG, annotate, prepare
from benchmarks.harness import make_parser, report
from benchmarks.speed.systems import WINDOW
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.encoders.precision import has_fast_bf16

TASKS = ["bc5cdr", "meddocan"]
PRECISIONS = {"cpu": ("fp32", "bf16", "int8"), "cuda": ("fp32", "bf16", "fp16")}
AIMS = {"bf16": 0.997}  # smallest share of entities in common with fp32


def load(pipeline: Path, precision: str) -> Language:
    settings = {"stride": WINDOW, "max_batch_pieces": None, "precision": precision}
    nlp = spacy.load(pipeline, config={"components": {"transformer": {"model": settings}}})
    if "cleaner" not in nlp.pipe_names:
        nlp.add_pipe("doc_cleaner", name="cleaner", config={"silent": True})
    return nlp


def compare(
    pipeline: Path, task: str, precisions: tuple[str, ...], n_docs: int | None
) -> dict[str, Any]:
    """Count entities and those in common with fp32, and score strict F1, per precision."""
    corpus = prepare(task) / "test.spacy"
    found: dict[str, set[tuple[int, int, int, str]]] = {}
    result = {}
    with Progress() as progress:
        for precision in progress.track(precisions, description=task):
            nlp = load(pipeline, precision)
            docs, scores, _ = annotate(nlp, list(read_docs(corpus, nlp.vocab))[:n_docs])
            found[precision] = {
                (i, e.start_char, e.end_char, e.label_)
                for i, doc in enumerate(docs)
                for e in doc.ents
            }
            ours, fp32 = found[precision], found["fp32"]
            result[precision] = {
                "entities": len(ours),
                "in_common_with_fp32": len(ours & fp32),
                "share": round(len(ours & fp32) / max(1, len(ours | fp32)), 5),
                "test_f": round(scores["ents_f"], 4),
            }
    return result


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--tasks", nargs="+", choices=sorted(LANG), default=TASKS)
    parser.add_argument("--encoder", choices=("compact", "sm", "random"), default="random")
    parser.add_argument("--docs", type=int, help="only so many of each test split")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        spacy.require_gpu()
    precisions = PRECISIONS[device.type]
    encoder = arguments.encoder
    pipelines = {
        task: find_pipeline(encoder, task) or trained(encoder, task) for task in arguments.tasks
    }
    tasks = {
        task: compare(pipeline, task, precisions, arguments.docs)
        for task, pipeline in pipelines.items()
    }
    result = {
        "encoder": encoder,
        "trials": {task: pipeline.parents[1].name for task, pipeline in pipelines.items()},
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "bf16": "in hardware" if has_fast_bf16(device) else "emulated",
        "threads": torch.get_num_threads(),
        "docs_per_task": arguments.docs or "all",
        "aims": AIMS,
        "tasks": tasks,
    }
    name = "parity" if encoder == "random" else f"parity_{encoder}"
    report(name + "_gpu" * (device.type == "cuda"), result)


if __name__ == "__main__":
    main()
