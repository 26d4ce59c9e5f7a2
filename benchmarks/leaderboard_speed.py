"""Words/s of a pipeline, what each of its parts costs, time of loading and memory.

    python -m benchmarks.leaderboard_speed PIPELINE TEXTS --parts ner phi

benchmarks/leaderboard.py calls it. Each number of threads has a fresh process. Words are those
between blanks. Loading is timed after all libraries are imported; the better of the two processes
counts. What a part costs is the processor time on one thread that is saved without it,
median of some rounds in turns. A part also does what later parts need: without entities, nothing is
linked. The words/s of "encoder" are those of the tokenizer, the sentences and the encoder alone.
"""

import json
import statistics
import time
from collections.abc import Sequence
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.vocab import Vocab

from benchmarks.harness import ask_module, make_parser, read_json, status_mb, thread_environment
from benchmarks.speed import load

ENTITIES, ENCODER = "ner", "encoder"
# Part -> factories. A tagger of PHI is "phi", whatever its factory.
PARTS = {
    ENTITIES: (
        "bioclin_ner",
        "bioclin_hf_ner",
        "bioclin_ents",
        "ner",
        "spancat",
        "entity_ruler",
        "span_ruler",
    ),
    "phi": (),
    "rules": ("bioclin_phi_rules",),
    "context, measurements, sections": (
        *("bioclin_context", "bioclin_measurements", "bioclin_sections"),
    ),
    "linker": ("bioclin_linker", "entity_linker"),
    "deid": ("bioclin_deid",),
}
NOT_PHI_TAGGERS = ("bioclin_phi_rules", "bioclin_deid")
# What the encoder alone needs.
KEPT = ("bioclin_sentences", "sentencizer", "transformer", "bioclin_cleaner")
N_WORDS = 12_000
ROUNDS = 9


def find_parts(nlp: Language) -> dict[str, list[str]]:
    """Find the components of each part that the pipeline has."""
    parts: dict[str, list[str]] = {}
    for name, factory in nlp.pipe_factories.items():
        component: Any = nlp.get_pipe(name)
        key = getattr(component, "spans_key", getattr(component, "key", None))
        of_phi = key == "phi"
        if key == "assertions" and factory == "bioclin_ner":  # which `bioclin_context` reads
            factory = "bioclin_context"
        for part, factories in PARTS.items():
            if of_phi and factory not in NOT_PHI_TAGGERS:
                is_of = part == "phi"
            else:
                is_of = factory in factories
            if is_of:
                parts.setdefault(part, []).append(name)
    return parts


def choose_texts(corpora: Sequence[Path], vocab: Vocab) -> list[str]:
    """Take texts of the corpora in turns, up to `N_WORDS` words; each text once."""
    from spacy_bioclin.corpora.docbin import read_docs

    texts: dict[str, None] = {}
    n_words = 0
    streams = [(doc.text for doc in read_docs(path, vocab)) for path in corpora]
    for row in zip_longest(*streams, fillvalue=""):
        for text in row:
            if text not in texts and n_words < N_WORDS:
                texts[text] = None
                n_words += len(text.split())
        if n_words >= N_WORDS:
            break
    return [text for text in texts if text.strip()]


def run(pipeline: str, texts: list[str], parts: Sequence[str]) -> dict[str, Any]:
    """Measure the seconds of all parts, without each and of the encoder alone, in turns."""
    for library in load.LIBRARIES:
        import_module(library)
    import torch

    from spacy_bioclin.cli.loading import load_pipeline

    imported, began = status_mb("VmRSS"), time.perf_counter()
    nlp = load_pipeline(pipeline)
    loading = {
        "load_seconds": round(time.perf_counter() - began, 2),
        "loaded_mb": round(status_mb("VmRSS") - imported),
        "process_mb": round(status_mb("VmRSS")),
    }
    factories, components = nlp.pipe_factories, find_parts(nlp)
    disabled: dict[str, list[str]] = {"all": [], **{part: components[part] for part in parts}}
    if parts and "transformer" in factories.values():
        disabled[ENCODER] = [name for name in factories if factories[name] not in KEPT]
    for name in components.get("deid", ()):
        nlp.get_pipe(name).allow_missing = True  # type: ignore[attr-defined]
    seconds: dict[str, dict[str, list[float]]] = {
        name: {"wall": [], "cpu": []} for name in disabled
    }
    for n in range(1 + ROUNDS):
        for name, without in disabled.items():
            with nlp.select_pipes(disable=without):
                started = time.perf_counter(), time.process_time()
                for _ in nlp.pipe(texts if n else texts[:4]):  # the first round warms up
                    pass
                if n:
                    seconds[name]["wall"].append(round(time.perf_counter() - started[0], 3))
                    seconds[name]["cpu"].append(round(time.process_time() - started[1], 3))
    return {
        "threads": torch.get_num_threads(),
        "seconds": seconds,
        "load": loading,
        "peak_memory_mb": round(status_mb("VmHWM")),
    }


def measure(pipeline: str, texts: Path, parts: Sequence[str]) -> dict[str, Any]:
    """Measure a pipeline in fresh processes.

    pipeline (str): Folder or package.
    texts (Path): JSON list of the texts to annotate.
    parts (Sequence[str]): Parts of the pipeline, see `PARTS`.
    RETURNS (dict): Words/s on one and two threads, microseconds per word that each part costs, and
        seconds and memory of loading.
    """
    n_words = sum(len(text.split()) for text in read_json(texts))
    found = {}
    for threads, measured in ((2, ()), (1, parts)):
        module, env = "benchmarks.leaderboard_speed", thread_environment(threads)
        found[threads] = ask_module(module, pipeline, texts, "--parts", *measured, env=env)
    return {"words": n_words, **summarize(found, n_words)}


def summarize(found: dict[int, dict[str, Any]], n_words: int) -> dict[str, Any]:
    """Turn seconds into words/s and into microseconds of each part."""
    cpu = {
        name: statistics.median(each["cpu"]) / n_words * 1e6
        for name, each in found[1]["seconds"].items()
    }
    wall = {
        threads: {
            name: round(n_words / statistics.median(each["wall"]))
            for name, each in run["seconds"].items()
        }
        for threads, run in found.items()
    }
    return {
        "words_per_second": {str(threads): wall[threads]["all"] for threads in wall},
        "peak_memory_mb": {str(threads): each["peak_memory_mb"] for threads, each in found.items()},
        "load": min((each["load"] for each in found.values()), key=lambda one: one["load_seconds"]),
        "words_per_second_without": {
            name: speed for name, speed in wall[1].items() if name not in ("all", ENCODER)
        },
        "encoder_words_per_second": wall[1].get(ENCODER),
        "microseconds_per_word": {
            "all": round(cpu["all"], 1),
            **({ENCODER: round(cpu[ENCODER], 1)} if ENCODER in cpu else {}),
            **{
                part: round(cpu["all"] - cpu[part], 1)
                for part in cpu
                if part not in ("all", ENCODER)
            },
        },
        "seconds": {str(threads): each["seconds"] for threads, each in found.items()},
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("pipeline", help="folder or package")
    parser.add_argument("texts", type=Path, help="JSON list of texts")
    parser.add_argument("--parts", nargs="*", default=[], choices=PARTS, help="parts to leave out")
    arguments = parser.parse_args()
    print(json.dumps(run(arguments.pipeline, read_json(arguments.texts), arguments.parts)))


if __name__ == "__main__":
    main()
