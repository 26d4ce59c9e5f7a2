"""Resident memory of `nlp.pipe` over many notes: does it grow?

    pip install -c constraints.txt -e . -r benchmarks/peers.txt
    python -m benchmarks.speed.memory

Annotates 10,000 notes on the CPU with the compact pipeline that throughput.py makes, and
throws each Doc away as it comes. The notes are the beginnings of those of MEDDOCAN (train, dev and
test), over and over, each with a running number, so that no two are the same. Every 250 notes it
reads the process's resident memory, and the size of spaCy's string store, which keeps each word
that it has ever seen. What counts is the median of the last 1,000 notes over that of the second
1,000. The curve is drawn in benchmarks/results/memory.svg.
"""

import itertools
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

import spacy
import torch
from rich.progress import track
from spacy.language import Language

from benchmarks.corpora import SPLITS, read_notes
from benchmarks.harness import RESULTS, WORK, make_parser, status_mb, write_result
from benchmarks.speed.pipelines import make_systems
from spacy_bioclin.pages import draw_curves

WARM_UP = SPAN = 1_000  # notes
EVERY = 250  # notes
AIM_PERCENT = 5


def notes(n_notes: int, n_words: int) -> Iterator[str]:
    """Yield beginnings of notes. (Docs would leave memory free that hides growth.)"""
    texts = [text for paths in SPLITS["meddocan"].values() for text in read_notes(paths[0])]
    starts = [" ".join(text.split(" ")[:n_words]) for text in texts]
    for i, start in zip(range(n_notes), itertools.cycle(starts), strict=False):
        yield f"{i} {start}"


def measure(nlp: Language, texts: list[str]) -> tuple[list[dict[str, Any]], float]:
    """Annotate, and return a point for every 250 notes and the seconds it took."""
    curve = []
    started = time.perf_counter()
    docs = track(nlp.pipe(texts), description="annotate", total=len(texts))
    for n, _ in enumerate(docs, start=1):
        if n % EVERY == 0:
            point = {"notes": n, "rss_mb": round(status_mb("VmRSS"), 1)}
            curve.append({**point, "strings": len(nlp.vocab.strings), "lexemes": len(nlp.vocab)})
    return curve, time.perf_counter() - started


def summarize(curve: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare memory and vocabulary at both ends."""
    last = curve[-1]["notes"] - SPAN
    begin = [p["rss_mb"] for p in curve if WARM_UP < p["notes"] <= WARM_UP + SPAN]
    end = [p["rss_mb"] for p in curve if p["notes"] > last]
    before, after = (round(statistics.median(part), 1) for part in (begin, end))
    return {
        "rss_mb_second_thousand": before,
        "rss_mb_last_thousand": after,
        "change_percent": round(100 * (after / before - 1), 2),
        "aim_percent": AIM_PERCENT,
        "change_mb": round(after - before, 1),
        "vocabulary": {k: [curve[0][k], curve[-1][k]] for k in ("strings", "lexemes")},
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--words", type=int, default=120, help="longest beginning of a note")
    arguments = parser.parse_args()
    if arguments.notes < WARM_UP + 2 * SPAN:
        parser.error(f"--notes {arguments.notes}: give {WARM_UP + 2 * SPAN} or more")
    folder = WORK / "speed" / "random"
    make_systems("random", folder, [])
    texts = list(notes(arguments.notes, arguments.words))
    nlp = spacy.load(folder / "bioclin")
    loaded = {"rss_mb_loaded": round(status_mb("VmRSS"), 1)}
    curve, seconds = measure(nlp, texts)
    words = sum(len(text.split()) for text in texts)
    sizes = {"notes": len(texts), "words": words, "words_per_second": round(words / seconds)}
    result = {"threads": torch.get_num_threads(), **sizes, **loaded, **summarize(curve)}
    print(json.dumps(result, indent=2))
    print(write_result("memory", {**result, "curve": curve}))
    picture = draw_curves(
        {"MB": [(point["notes"], point["rss_mb"]) for point in curve]},
        title="Resident memory of nlp.pipe, MB",
        x_label="notes annotated",
    )
    (RESULTS / "memory.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
