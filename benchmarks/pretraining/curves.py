"""Pretraining: curves of the included encoders, and a training that is killed and resumed.

    bash scripts/build_encoder.sh && python -m benchmarks.pretraining.curves

Copies settings, perplexities and rates of the encoders in assets/encoders into
benchmarks/results/pretraining.json, beside other trainings if their folders are named, and draws
them in pretraining.svg. Perplexities are compared only where vocabulary and held-out text are the
same; pretraining/sources.py compares others. Then it trains a tiny encoder on the held-out text
three times: once without a stop, once killed with SIGKILL in the middle, and once more to the end
with --resume. The losses of the two must be equal.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.corpora import SHIPPED
from benchmarks.harness import RESULTS, ROOT, make_parser, read_json, write_result
from benchmarks.pretraining import REBUILT
from spacy_bioclin.pretraining.compact import build_compact_encoder
from spacy_bioclin.pretraining.record import draw_perplexity

WORK = harness.WORK / "pretraining"
STEPS, EVERY = 60, 10


def make_small_corpus(cleaned: Path, folder: Path) -> Path:
    """Write the held-out text of a cleaned corpus, a tenth of it held out again."""
    folder.mkdir(parents=True)
    for path in cleaned.glob("*.held-out.txt"):
        documents = path.read_text("utf-8").split("\n\n")
        cut = len(documents) // 10
        lang = path.name.partition(".")[0]
        (folder / f"{lang}.held-out.txt").write_text("\n\n".join(documents[:cut]) + "\n\n")
        (folder / f"{lang}.train.txt").write_text("\n\n".join(documents[cut:]))
    return folder


def command(corpus: Path, start: Path, out: Path) -> list[str]:
    options = {"--start-from": start, "--steps": STEPS, "--every": EVERY}
    options |= {"--batch-pieces": 1024, "--length": 128, "-o": out}
    flat = [str(part) for pair in options.items() for part in pair]
    return [sys.executable, "-W", "ignore", "-m", "spacy_bioclin", "pretrain", str(corpus), *flat]


def kill_and_resume(cleaned: Path) -> dict[str, Any]:
    """Compare the losses of a killed and resumed training with those of an uninterrupted one."""
    shutil.rmtree(WORK, ignore_errors=True)
    corpus = make_small_corpus(cleaned, WORK / "corpus")
    texts = (corpus / "es.train.txt").read_text("utf-8").splitlines()
    build_compact_encoder(texts, WORK / "start", vocab_size=2000, layers=2, width=64, seed=0)
    run = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    whole, parts = WORK / "whole", WORK / "parts"
    subprocess.run(command(corpus, WORK / "start", whole), check=True, **run)
    child = subprocess.Popen(command(corpus, WORK / "start", parts), **run)
    while not (parts / f"checkpoint-{STEPS // 2}" / "trainer_state.json").exists():
        if child.poll() is not None:
            sys.exit("the training ended before it could be killed")
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    subprocess.run([*command(corpus, WORK / "start", parts), "--resume"], check=True, **run)
    first, second = (read_json(folder / "pretraining.json") for folder in (whole, parts))
    pairs = zip(first["loss"], second["loss"], strict=True)
    return {
        "steps": STEPS,
        "killed_after_checkpoint": STEPS // 2,
        "losses_compared": len(first["loss"]),
        "largest_difference": max(abs(a[1] - b[1]) for a, b in pairs),
        "perplexities_equal": first["perplexity"] == second["perplexity"],
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("clean", type=Path, nargs="?", default=REBUILT / "clean")
    parser.add_argument("--others", type=Path, nargs="*", default=[], help="other trainings")
    arguments = parser.parse_args()
    trainings = {}
    for folder in [*sorted(SHIPPED.parent.iterdir()), *arguments.others]:
        record = read_json(folder / "pretraining.json")
        parts = [*record.pop("earlier", []), record]
        for i, part in enumerate(parts, 1):
            trainings[folder.name if len(parts) == 1 else f"{folder.name}, part {i}"] = part
    (RESULTS / "pretraining.svg").write_text(draw_perplexity(trainings), encoding="utf-8")
    resumed = kill_and_resume(arguments.clean)
    print(json.dumps(resumed))
    print(write_result("pretraining", {"trainings": trainings, "kill_and_resume": resumed}))


if __name__ == "__main__":
    main()
