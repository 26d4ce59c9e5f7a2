"""What `bioclin_linker` adds to a whole pipeline: words/s with and without it, one thread.

    python -m benchmarks.linking.cost PIPELINE KB [--docs 200] [--rounds 5]

PIPELINE is one that tags diseases and chemicals (accuracy/ner.py leaves one for bc5cdr), KB a
knowledge base of MeSH (bioclin kb build). Both pipelines read the abstracts of BC5CDR's dev split
in turns. Processor time counts where the machine has other work; wall time stands beside it.

Each round begins without what the linker remembers of the texts, and with what a process remembers
of words (stems) from other abstracts: those of the train split. "again" is a second reading, as of
notes that repeat themselves.
"""

import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.harness import Seconds, make_parser, take_turns, time_call, write_result
from benchmarks.linking.data import load_split
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.names.normalize import stem

LINKER = "bioclin_linker"
# Largest share of the pipeline's time that the linker may add.
AIM = 0.15


def measure(nlp: Language, texts: list[str], warm_up: list[str], n_rounds: int) -> dict[str, Any]:
    """Time each system in each round, and count the linked mentions."""
    component = nlp.get_pipe(LINKER)
    linker = component.linker
    component.overwrite = True  # also in what it has read before
    docs: list[Doc] = []

    def link() -> None:
        for _ in component.pipe(docs, batch_size=nlp.batch_size):
            pass

    def annotate(*, link: bool) -> list[Doc]:
        with nlp.select_pipes(disable=[] if link else [LINKER]):
            return list(nlp.pipe(texts))

    def annotate_without() -> Seconds:
        return time_call(lambda: docs.__setitem__(slice(None), annotate(link=False)))

    def forget_and_time(function: Callable[[], Any]) -> Seconds:
        linker.forget()
        stem.cache_clear()
        list(component.pipe(list(others)))
        return time_call(function)

    others = [doc.copy() for doc in nlp.pipe(warm_up)]
    annotate(link=True)
    systems = {
        "without": annotate_without,
        "with": lambda: forget_and_time(lambda: annotate(link=True)),
        "linker alone": lambda: forget_and_time(link),
        "linker alone, again": lambda: time_call(link),
    }
    seconds = take_turns(systems, n_rounds)
    mentions = [ent for doc in docs for ent in doc.ents]
    return {
        "mentions": len(mentions),
        "different": len({ent.text for ent in mentions}),
        "linked": sum(bool(ent.kb_id_) for ent in mentions),
        "cpu_seconds": {name: [one.cpu for one in spent] for name, spent in seconds.items()},
        "wall_seconds": {name: [one.wall for one in spent] for name, spent in seconds.items()},
    }


def summarize(measured: dict[str, Any], n_words: int) -> dict[str, Any]:
    """Compute words/s, and what the linker adds.

    "cost_of_pipelines" is the difference of two noisy medians, "cost_of_linker" the linker's own
    time.
    """
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
    parser = make_parser(__doc__)
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
