"""Words/s of the PHI rules on one core, and seconds for texts that are made to be slow.

The rules are measured alone, and in a blank pipeline with its tokenizer.

    python -m benchmarks.deid.rules_speed      # corpora: $BIOCLIN_DATA or ../shared/data
"""

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.corpora import make_blank, read_notes
from benchmarks.harness import (
    make_parser,
    median_cpu_seconds,
    take_turns,
    time_call,
    write_result,
)
from spacy_bioclin.deid.detect.rules import load_rules

ROUNDS = 7
N_CHARACTERS = 100_000
ADVERSARIAL = {
    "digits": "1",
    "pairs of digits": "12 ",
    "dashes": "1-",
    "blanks": " ",
    "at signs": "a@",
    "letters": "ñ ",
    "phones": "961 622 403 ",
    "accounts": "ES12 1234 ",
    "label, no value": "NHC: ",
    "label, bracket": "NHC (a ",
    "title, name": "Dr. Aa ",
    "streets": "Calle de la ",
    "hospitals": "Hospital de la ",
    "dates": "5/12 ",
    "hex": "a::",
}


def measure_words(texts: list[str]) -> dict[str, Any]:
    """Measure words/s in alternating rounds over the same texts."""
    rules, tokenizer = load_rules("es"), make_blank("es")
    nlp = make_blank("es", "bioclin_phi_rules")
    systems: dict[str, Callable[[str], Any]] = {
        "rules": rules.find,
        "tokenizer": tokenizer,
        "pipeline": nlp,
    }
    n_words = sum(len(text.split()) for text in texts)
    rounds = {
        name: lambda run=run: n_words / time_call(lambda: [run(text) for text in texts]).cpu
        for name, run in systems.items()
    }
    speeds = take_turns(rounds, ROUNDS)
    return {
        "words": n_words,
        "words_per_second": {name: [round(speed) for speed in speeds[name]] for name in speeds},
        "median": {name: round(statistics.median(speeds[name])) for name in speeds},
    }


def measure_adversarial() -> dict[str, dict[str, float]]:
    """Measure the median seconds by language and kind of text."""
    found: dict[str, dict[str, float]] = {}
    for lang in ("es", "en"):
        rules, found[lang] = load_rules(lang), {}
        for name, piece in ADVERSARIAL.items():
            text = (piece * (N_CHARACTERS // len(piece) + 1))[:N_CHARACTERS]
            spent = median_cpu_seconds(lambda r=rules, t=text: r.find(t), ROUNDS)
            found[lang][name] = round(spent, 3)
    return found


def main() -> None:
    make_parser(__doc__).parse_args()
    words = measure_words(read_notes("meddocan/train/brat"))
    print(words["median"])
    adversarial = measure_adversarial()
    print(adversarial)
    result = {
        "texts": "MEDDOCAN train, processor time of one core, median of 7 alternating rounds",
        **words,
        "adversarial": {"characters": N_CHARACTERS, "seconds": adversarial},
    }
    print(write_result("phi_rules_speed", result))


if __name__ == "__main__":
    main()
