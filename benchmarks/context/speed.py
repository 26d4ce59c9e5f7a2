"""Words/s of sections, context and measurements beside medspaCy and negspacy; growth of context.

    python -m benchmarks.context.speed --peers PYTHON     # corpora: $BIOCLIN_DATA or ../shared/data

PYTHON is that of benchmarks/context/assertions.py. Each system is a process of its own with one
thread. They take turns over the same notes, with the same mentions: every tenth word of at least
five letters. "context" includes reading the attributes of all mentions. Words are those between
blanks, seconds those of the processor.

Growth: `bioclin_context` with the rules of both languages on texts of 1 KB to 1 MB that are made to
be slow, and reading the attributes of 1,000 spans of them.
"""

import contextlib
import statistics
import sys
from typing import Any

from spacy.tokens import Doc

from benchmarks.context.systems import ATTRIBUTES, MAKERS, start_worker
from benchmarks.context.texts import find_targets, read_english
from benchmarks.corpora import make_blank, read_notes
from benchmarks.harness import (
    WORK,
    make_parser,
    median_cpu_seconds,
    report,
    take_turns,
    write_json,
)

ROUNDS = 5
N_NOTES = 50
SIZES = (1_000, 10_000, 100_000, 1_000_000)
N_SPANS = 1_000
ADVERSARIAL = {
    "one letter": "a ",
    "cues of negation": "no ",
    "cue and mention": "no fiebre ",
    "cues in both directions": "sin fiebre descartado ",
    "long cue": "no se puede descartar ",
    "beginning of a long cue": "no se puede ",
    "commas": "no fever, ",
    "terminators": "pero ",
    "family": "madre con asma ",
    "question marks": "? ",
    "sentences": "No fever. ",
    "lines": "no\n",
    "sections": "AP: no HTA.\n",
}


def read_texts() -> dict[str, list[str]]:
    """Read the notes of both languages."""
    nubes = read_notes("nubes/NUBes/SAMPLE-001", N_NOTES // 2)
    return {
        "es": [*read_notes("meddocan/train/brat", N_NOTES), *nubes],
        "en": read_english()[: 3 * N_NOTES],
    }


def measure_words(lang: str, texts: list[str], peers: str) -> dict[str, Any]:
    """Measure the words/s of every part of every system, in turns."""
    file = WORK / "context" / f"speed-{lang}.json"
    notes = [{"text": text, "mentions": find_targets(text)} for text in texts]
    write_json(file, notes)
    n_words = sum(len(text.split()) for text in texts)
    with contextlib.ExitStack() as stack:
        workers = {
            name: stack.enter_context(start_worker("speed", name, lang, peers, file))
            for name in MAKERS[lang]
        }
        versions = {name: worker.read() for name, worker in workers.items()}
        asks = {name: worker.ask for name, worker in workers.items()}
        answers = take_turns(asks, ROUNDS, warm_ups=1, title=lang)
    systems = {}
    for name, rounds in answers.items():
        seconds = {part: [each[part] for each in rounds] for part in rounds[0]}
        systems[name] = {
            "versions": versions[name],
            "words_per_second": {
                part: round(n_words / statistics.median(values)) for part, values in seconds.items()
            },
            "seconds": {
                part: [round(value, 3) for value in values] for part, values in seconds.items()
            },
        }
    n_mentions = sum(len(find_targets(text)) for text in texts)
    return {"texts": len(texts), "words": n_words, "mentions": n_mentions, "systems": systems}


def read_attributes(doc: Doc) -> int:
    """Count the attributes of spans that are spread over a Doc."""
    step = max(len(doc) // N_SPANS, 1)
    spans = [doc[i : i + 1] for i in range(0, len(doc), step)]
    return sum(bool(span._.get(name)) for span in spans for name in ATTRIBUTES)


def measure_growth(sizes: tuple[int, ...]) -> dict[str, dict[str, dict[str, float]]]:
    """Measure the median seconds of the component and of its attributes by text and length."""
    nlp = make_blank("es", "bioclin_sentences", "bioclin_sections")
    nlp.max_length = 2 * max(SIZES)
    context = nlp.create_pipe("bioclin_context", config={"langs": ["es", "en"]})
    found: dict[str, dict[str, dict[str, float]]] = {"context": {}, "attributes": {}}
    for name, piece in ADVERSARIAL.items():
        for of_kind in found.values():
            of_kind[name] = {}
        for size in sizes:
            doc = nlp((piece * (size // len(piece) + 1))[:size])
            rounds = 3 if size < max(SIZES) else 1
            for kind, run in (("context", context), ("attributes", read_attributes)):
                spent = median_cpu_seconds(lambda run=run, doc=doc: run(doc), rounds)
                found[kind][name][str(size)] = round(spent, 5)
        print(name, {kind: list(of[name].values()) for kind, of in found.items()}, flush=True)
    return found


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--peers", default=sys.executable, help="Python of the other systems")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="of adversarial texts")
    args = parser.parse_args()
    texts = read_texts()
    sizes = tuple(args.sizes)
    result = {
        "about": f"processor seconds, one thread; medians of {ROUNDS} rounds in turns",
        "words": {lang: measure_words(lang, each, args.peers) for lang, each in texts.items()},
        "growth_seconds": measure_growth(sizes),
    }
    report("context_speed", result)


if __name__ == "__main__":
    main()
