"""Words per second of annotation and training: ours, our peers', and the encoder alone (the limit).

    pip install -c constraints.txt -e . -r benchmarks/peers.txt
    python -m benchmarks.speed.throughput annotate --encoder compact --notes meddocan triage
    python -m benchmarks.speed.throughput annotate --encoder base --notes meddocan triage --docs 10
    python -m benchmarks.speed.throughput train --encoder compact
    python -m benchmarks.speed.throughput train --encoder base --parts 24

All systems have the same encoder weights and the same notes. Each runs in a process of its own;
they take turns, round by round, so that whatever else the machine does hits all of them, and what
counts is the ratio of medians within the run. The encoder is "compact" (the one that ships),
"random" (4 layers, width 256; both in the pipeline that accuracy/ner.py trains, with its head) or
"base" (12 layers, width 768, 124 M random weights). Notes are those of MEDDOCAN test, or the same
cut into parts of about 40 words ("triage").
"""

from argparse import Namespace
from collections.abc import Iterable

import torch
from transformers import AutoTokenizer

from benchmarks.corpora import prepare
from benchmarks.harness import WORK, Result, compare_workers, make_parser, report, write_json
from benchmarks.speed.pipelines import ENCODERS, make_systems, texts_of
from benchmarks.speed.systems import SYSTEMS
from benchmarks.speed.training_systems import write_parts
from spacy_bioclin.encoders.precision import has_fast_bf16

TRAINING_SYSTEMS = ("bioclin fp32", "bioclin bf16", "huggingface fp32", "huggingface bf16", "spacy")


def ratios(systems: Result) -> dict[str, dict[str, float]]:
    """Divide our speed by that of each other system, per precision of ours."""
    found: dict[str, dict[str, float]] = {}
    for ours in (name for name in systems if name.startswith("bioclin")):
        found[ours] = {
            other: round(systems[other]["median_seconds"] / systems[ours]["median_seconds"], 2)
            for other in systems
            if not other.startswith("bioclin")
        }
    return found


def compare(mode: str, encoder: str, sizes: dict[str, int], arguments: Namespace) -> Result:
    """Let the systems annotate or train in turns.

    mode (str): "annotate" or "train".
    sizes (dict[str, int]): What a round works through: words, pieces.
    """
    known = SYSTEMS if mode == "annotate" else TRAINING_SYSTEMS
    folder = WORK / "speed" / encoder
    commands = {
        system: ["-m", "benchmarks.speed.systems", mode, system, folder]
        for system in arguments.systems or runnable(known)
    }
    measured = compare_workers(commands, folder / f"{mode}-logs", sizes, arguments.rounds)
    return {**sizes, "systems": measured, "ours_over": ratios(measured)}


def time_annotation(encoder: str, notes: str, arguments: Namespace) -> Result:
    """Measure words/s of annotation of one kind of notes."""
    folder, texts = WORK / "speed" / encoder, texts_of(notes, arguments.docs)
    make_systems(encoder, folder, texts)
    write_json(folder / "texts.json", texts)
    tokenizer = AutoTokenizer.from_pretrained(folder / "encoder", trust_remote_code=False)
    pieces = tokenizer(texts, add_special_tokens=False)["input_ids"]
    sizes = {"words": sum(len(t.split()) for t in texts), "pieces": sum(map(len, pieces))}
    return {"notes": len(texts), **compare("annotate", encoder, sizes, arguments)}


def time_training(encoder: str, arguments: Namespace) -> Result:
    """Measure words/s of training."""
    folder = WORK / "speed" / encoder
    make_systems(encoder, folder, texts_of("meddocan", arguments.docs))
    source = prepare("meddocan") / "train-joined.spacy"
    sizes = write_parts(source, folder, n_parts=arguments.parts, max_tokens=128)
    return {"parts": arguments.parts, **compare("train", encoder, sizes, arguments)}


def runnable(systems: Iterable[str]) -> list[str]:
    """List the systems whose number format this machine's hardware computes."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    missing = set() if has_fast_bf16(device) else {"bf16", "autocast"}
    missing |= {"int8", "compiled", "onnxruntime"} if device.type == "cuda" else set()
    return [name for name in systems if not missing & set(name.split())]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=["annotate", "train"])
    parser.add_argument("--encoder", choices=ENCODERS, required=True)
    parser.add_argument("--notes", nargs="+", choices=["meddocan", "triage"], default=["meddocan"])
    parser.add_argument("--docs", type=int, default=64, help="notes to annotate")
    parser.add_argument("--parts", type=int, default=128, help="parts of notes to train on")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--systems", nargs="+", choices=sorted({*SYSTEMS, *TRAINING_SYSTEMS}))
    arguments = parser.parse_args()
    result: Result = {"encoder": arguments.encoder, "threads": torch.get_num_threads()}
    if arguments.what == "train":
        result |= time_training(arguments.encoder, arguments)
    else:
        result["notes"] = {
            notes: time_annotation(arguments.encoder, notes, arguments) for notes in arguments.notes
        }
    where = "_gpu" if torch.cuda.is_available() else ""
    report(f"speed_{arguments.what}_{arguments.encoder}{where}", result)


if __name__ == "__main__":
    main()
