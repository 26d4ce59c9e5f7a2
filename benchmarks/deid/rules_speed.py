"""Words/s of the PHI rules on one core: the rules alone, and a blank pipeline with its tokenizer;
seconds for 100,000 characters of text that is made to be slow.

python -m benchmarks.deid.rules_speed      # corpora: $BIOCLIN_DATA or ../shared/data
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import spacy

from benchmarks.harness import data_dir, write_result
from spacy_bioclin.deid.detect.rules import load_rules

ROUNDS = 7
N_CHARACTERS = 100_000
OURS = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
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


def seconds(function: Callable[[], Any]) -> float:
    """Processor time: the machine may have other work."""
    began = time.process_time()
    function()
    return time.process_time() - began


def measure_words(texts: list[str]) -> dict[str, Any]:
    """Alternating rounds over the same texts."""
    rules, nlp = load_rules("es"), spacy.blank("es", config=OURS)
    tokenizer_alone = spacy.blank("es", config=OURS)
    nlp.add_pipe("bioclin_phi_rules")
    systems: dict[str, Callable[[], Any]] = {
        "rules": lambda: [rules.find(text) for text in texts],
        "tokenizer": lambda: [tokenizer_alone(text) for text in texts],
        "pipeline": lambda: [nlp(text) for text in texts],
    }
    n_words = sum(len(text.split()) for text in texts)
    speeds: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(ROUNDS):
        for name, run in systems.items():
            speeds[name].append(n_words / seconds(run))
    return {
        "words": n_words,
        "words_per_second": {name: [round(speed) for speed in speeds[name]] for name in speeds},
        "median": {name: round(statistics.median(speeds[name])) for name in speeds},
    }


def measure_adversarial() -> dict[str, dict[str, float]]:
    """Median seconds by language and kind of text."""
    found: dict[str, dict[str, float]] = {}
    for lang in ("es", "en"):
        rules, found[lang] = load_rules(lang), {}
        for name, piece in ADVERSARIAL.items():
            text = (piece * (N_CHARACTERS // len(piece) + 1))[:N_CHARACTERS]
            times = [seconds(lambda r=rules, t=text: r.find(t)) for _ in range(ROUNDS)]
            found[lang][name] = round(statistics.median(times), 3)
    return found


def main() -> None:
    paths = sorted((data_dir() / "meddocan" / "train" / "brat").glob("*.txt"))
    words = measure_words([path.read_bytes().decode("utf-8") for path in paths])
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
