"""What `bioclin_linker` adds to a whole pipeline: words/s with and without it, one thread.

    python -m benchmarks.linking.cost PIPELINE KB [--docs 200] [--rounds 5]

PIPELINE is one that tags diseases and chemicals (accuracy/ner.py leaves one for bc5cdr), KB a
knowledge base of MeSH (bioclin kb build). Both pipelines read the abstracts of BC5CDR's dev split
in turns. Processor time counts where the machine has other work; wall time stands beside it.

Each round begins without what the linker remembers of the texts, and with what a process remembers
of words (stems) from other abstracts: those of the train split. "again" is a second reading, as of
notes that repeat themselves.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import spacy
import torch
from rich.progress import Progress
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.harness import write_result
from benchmarks.linking.data import load_split
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.names.normalize import stem

LINKER = "bioclin_linker"
# Largest share of the pipeline's time that the linker may add.
AIM = 0.15


class Clock:
    """Processor and wall seconds of each call of each system."""

    def __init__(self) -> None:
        self.cpu: dict[str, list[float]] = {}
        self.wall: dict[str, list[float]] = {}

    def time(self, system: str, run: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = run()
        self.cpu.setdefault(system, []).append(time.process_time() - cpu)
        self.wall.setdefault(system, []).append(time.perf_counter() - wall)
        return result


def measure(nlp: Language, texts: list[str], warm_up: list[str], n_rounds: int) -> dict[str, Any]:
    """RETURNS (dict): Seconds of each system in each round, and how many mentions were linked."""
    component = nlp.get_pipe(LINKER)
    linker, clock = component.linker, Clock()
    component.overwrite = True  # also in what it has read before
    docs: list[Doc] = []

    def link() -> None:
        for _ in component.pipe(docs, batch_size=nlp.batch_size):
            pass

    def annotate(*, link: bool) -> list[Doc]:
        with nlp.select_pipes(disable=[] if link else [LINKER]):
            return list(nlp.pipe(texts))

    def forget() -> None:
        linker.forget()
        stem.cache_clear()
        list(component.pipe(list(others)))

    others = [doc.copy() for doc in nlp.pipe(warm_up)]
    annotate(link=True)
    with Progress(transient=True) as progress:
        for _ in progress.track(range(n_rounds), description="rounds"):
            docs[:] = clock.time("without", lambda: annotate(link=False))
            forget()
            clock.time("with", lambda: annotate(link=True))
            forget()
            clock.time("linker alone", link)
            clock.time("linker alone, again", link)
    mentions = [ent for doc in docs for ent in doc.ents]
    return {
        "mentions": len(mentions),
        "different": len({ent.text for ent in mentions}),
        "linked": sum(bool(ent.kb_id_) for ent in mentions),
        "cpu_seconds": clock.cpu,
        "wall_seconds": clock.wall,
    }


def summarize(measured: dict[str, Any], n_words: int) -> dict[str, Any]:
    """RETURNS (dict): Words/s, and what the linker adds: by the difference of two noisy medians,
    and by its own time."""
    summary: dict[str, Any] = {}
    for kind in ("cpu", "wall"):
        median = {s: statistics.median(v) for s, v in measured[f"{kind}_seconds"].items()}
        summary[kind] = {
            "words_per_second": {s: round(n_words / median[s]) for s in ("without", "with")},
            "cost_of_pipelines": round(median["with"] / median["without"] - 1, 4),
            "cost_of_linker": round(median["linker alone"] / median["without"], 4),
            "cost_again": round(median["linker alone, again"] / median["without"], 4),
            "ms_per_mention": round(1000 * median["linker alone"] / measured["mentions"], 3),
        }
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument("kb", type=Path)
    parser.add_argument("--docs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    kb = KnowledgeBase.open(args.kb)
    texts, others = (
        list(load_split("bc5cdr-disease", split).texts.values())[: args.docs]
        for split in ("dev", "train")
    )
    nlp = spacy.load(args.pipeline)
    nlp.add_pipe(LINKER, after="ner", config={"kb": str(args.kb)})
    n_words = sum(len(text.split()) for text in texts)
    measured = measure(nlp, texts, others, args.rounds)
    summary = summarize(measured, n_words)
    result = {
        "pipeline": nlp.pipe_names,
        "kb": {key: kb.meta[key] for key in ("name", "n_concepts", "n_names")},
        "docs": len(texts),
        "words": n_words,
        "threads": torch.get_num_threads(),
        "load_average": os.getloadavg()[0],
        "aim": AIM,
        **summary,
        **measured,
    }
    print(write_result("linking_cost", result))
    print(summary)


if __name__ == "__main__":
    main()
