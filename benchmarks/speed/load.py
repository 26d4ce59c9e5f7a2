"""Time and memory of `spacy.load`: our pipeline beside vanilla spacy-transformers'.

    python -m benchmarks.speed.load      # after benchmarks/speed/throughput.py … --encoder base
    python -m benchmarks.speed.load --encoder sm

Run it in an environment without benchmarks/peers.txt: spaCy imports the module behind every entry
point that is installed, those of edsnlp too, and both loads take longer.

Both pipelines hold the same encoder (base: 12 layers, width 768, 124 M random weights). Each load
runs in a fresh process, in turns; a first round, which also brings the files into the page cache,
does not count. The process imports all libraries before it looks at the clock and at its resident
memory, so what is reported is the pipeline's own: of the load, and of a first note after it.
"""

import json
import statistics
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    WORK,
    ask_module,
    make_parser,
    report,
    status_mb,
    take_turns,
    time_call,
)

SYSTEMS = ("bioclin", "spacy")
LIBRARIES = ("spacy", "torch", "transformers", "spacy_transformers", "spacy_bioclin")
# Largest share of vanilla's load time and peak memory that ours may take.
AIMS = {"load_seconds": 0.4, "load_peak_mb": 0.6}


def reset_peak() -> bool:
    """Let the kernel count VmHWM from what is resident now; return whether it did."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def load_once(folder: str) -> dict[str, Any]:
    """Measure the load and the first note: seconds, and MB above what imports took."""
    for library in LIBRARIES:
        import_module(library)
    import spacy

    imported, was_reset = status_mb("VmRSS"), reset_peak()
    started = time.perf_counter()
    nlp = spacy.load(folder)
    load_seconds = time.perf_counter() - started
    load_peak, loaded = status_mb("VmHWM"), status_mb("VmRSS")
    reset_peak()
    return {
        "first_note_seconds": time_call(lambda: nlp("tos")).wall,
        "load_seconds": load_seconds,
        "load_peak_mb": load_peak - imported,
        "loaded_mb": loaded - imported,
        "first_note_peak_mb": status_mb("VmHWM") - imported,
        "after_first_note_mb": status_mb("VmRSS") - imported,
        "imported_mb": imported,
        "peak_was_reset": was_reset,
    }


def summarize(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Compute the median of each figure, beside the values of all rounds."""
    peak_was_reset = all(answer.pop("peak_was_reset") for answer in rounds)
    values = {key: [round(answer[key], 3) for answer in rounds] for key in rounds[0]}
    medians = {key: round(statistics.median(found), 3) for key, found in values.items()}
    return {"median": medians, "rounds": values, "peak_was_reset": peak_was_reset}


def compare(folder: Path, n_rounds: int) -> dict[str, Any]:
    loads = {
        name: lambda name=name: ask_module("benchmarks.speed.load", "--child", folder / name)
        for name in SYSTEMS
    }
    rounds = take_turns(loads, n_rounds, warm_ups=1, title="load")
    systems = {system: summarize(answers) for system, answers in rounds.items()}
    ours, vanilla = (systems[system]["median"] for system in SYSTEMS)
    ratios = {key: round(ours[key] / vanilla[key], 3) for key in ours if key != "imported_mb"}
    return {"systems": systems, "ours_over_vanilla": ratios, "aims": AIMS}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--encoder", default="base", help="compact, sm, random or base")
    parser.add_argument("--child", metavar="FOLDER", help="pipeline to load once")
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(load_once(arguments.child)))
        return
    import torch

    from benchmarks.speed.pipelines import ENCODERS, make_systems, texts_of

    if arguments.encoder not in ENCODERS:
        parser.error(f"--encoder is one of {', '.join(ENCODERS)}")
    folder = WORK / "speed" / arguments.encoder
    make_systems(arguments.encoder, folder, texts_of("meddocan", 4))
    about = {"threads": torch.get_num_threads(), "edsnlp_installed": bool(find_spec("edsnlp"))}
    result = {**about, **compare(folder, arguments.rounds)}
    report("load" if arguments.encoder == "base" else f"load_{arguments.encoder}", result)


if __name__ == "__main__":
    main()
