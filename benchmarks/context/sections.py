"""Words/s of the section finder on one core, and seconds for texts that are made to be slow.

The finder is measured alone, and as the component `bioclin_sections` without its tokenizer.

    python -m benchmarks.context.sections      # corpora: $BIOCLIN_DATA or ../shared/data
"""

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.context.texts import read_english
from benchmarks.corpora import make_blank, read_notes
from benchmarks.harness import (
    make_parser,
    median_cpu_seconds,
    take_turns,
    time_call,
    write_result,
)
from spacy_bioclin.context.sections.finder import find_sections
from spacy_bioclin.context.sections.rules import make_rules

ROUNDS = 5
SIZES = (1_000, 10_000, 100_000, 1_000_000)
ADVERSARIAL = {
    "line ends": "\n",
    "colons": ":",
    "capitals": "A",
    "words in capitals": "ABCD ",
    "lines in capitals": "ABCD EFGH\n",
    "digits": "1",
    "numbers": "1. ",
    "blanks": " ",
    "tabs": "\t",
    "abbreviations": "AP ",
    "dotted abbreviations": "A.P.",
    "titles": "antecedentes personales y familiares ",
    "titles with colons": "Tratamiento: ",
    "titles with further words": "Tratamiento aaa bbb ccc ddd ",
    "single letters": "S:\n",
    "unknown headings": "ABCDE:\n",
    "combining accents": "e\u0301",
}


def measure_words(lang: str, texts: list[str]) -> dict[str, Any]:
    """Measure words/s in alternating rounds over the same texts."""
    nlp = make_blank(lang, "bioclin_sections")
    component: Any = nlp.get_pipe("bioclin_sections")
    docs = [nlp.make_doc(text) for text in texts]
    n_words = sum(len(text.split()) for text in texts)
    rules = component.rules
    systems: dict[str, Callable[[], Any]] = {
        "finder": lambda: [find_sections(text, rules) for text in texts],
        "component": lambda: [component(doc) for doc in docs],
    }
    rounds = {name: lambda run=run: n_words / time_call(run).cpu for name, run in systems.items()}
    speeds = take_turns(rounds, ROUNDS, warm_ups=1)
    return {
        "texts": len(texts),
        "words": n_words,
        "sections": sum(len(doc.spans["sections"]) for doc in docs),
        "words_per_second": {name: round(statistics.median(speeds[name])) for name in speeds},
    }


def measure_growth() -> dict[str, dict[str, float]]:
    """Measure the median seconds by kind and length of text."""
    rules = make_rules(("es", "en"), {})
    found: dict[str, dict[str, float]] = {}
    for name, piece in ADVERSARIAL.items():
        found[name] = {}
        for size in SIZES:
            text = (piece * (size // len(piece) + 1))[:size]
            spent = median_cpu_seconds(lambda t=text: find_sections(t, rules), 3)
            found[name][str(size)] = round(spent, 5)
    return found


def main() -> None:
    make_parser(__doc__).parse_args()
    nubes = [f"nubes/NUBes/SAMPLE-00{n}" for n in range(1, 10)]
    corpora = {
        "MEDDOCAN train": ("es", read_notes("meddocan/train/brat")),
        "NUBes 001-009": ("es", [text for folder in nubes for text in read_notes(folder)]),
        "notes of MTS-Dialog, aci-bench, PriMock57": ("en", read_english()),
    }
    words = {name: measure_words(lang, texts) for name, (lang, texts) in corpora.items()}
    growth = measure_growth()
    result = {
        "about": "processor time of one core; median of 5 alternating rounds, or of 3 calls",
        "words": words,
        "adversarial_seconds": growth,
    }
    print(result)
    print(write_result("context_sections", result))


if __name__ == "__main__":
    main()
