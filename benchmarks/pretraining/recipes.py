"""The papers' pretraining recipes: their schedules, and a hundred real steps of each, tiny.

    OMP_NUM_THREADS=1 python -m benchmarks.pretraining.recipes

Every command is one that a user has, with the recipe named and what makes it tiny as options: the
demo's notes, 1,000 pieces of vocabulary, two layers of width 64, batches of 32 inputs of 64 pieces
(32 where the paper has 128), in four accumulated passes. Rates, warm-up (as a share), optimizer,
clipping and dropout are the recipe's. Perplexity must fall; how far says nothing about the paper's
model.

Then one batch is trained whole, in accumulated passes, and with torchrun in two processes, without
dropout, in fp32: the largest difference of any weight is given. Results are in
benchmarks/results/pretraining_recipes.json, beside the full schedule of each recipe.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from benchmarks import harness
from benchmarks.harness import (
    ROOT,
    make_parser,
    read_json,
    run_python,
    thread_environment,
    write_result,
)
from spacy_bioclin.catalog.pretraining import PretrainingRecipe, load_pretraining
from spacy_bioclin.pretraining.large.plan import make_plan
from spacy_bioclin.pretraining.settings import PretrainSettings

WORK = harness.WORK / "pretraining-recipes"
BIOCLIN = ("-m", "spacy_bioclin")
STEPS, SEQUENCES, PASSES = 100, 32, 4
LENGTHS = {512: 64, 128: 32}  # of the paper -> here
EQUAL_STEPS = 20


def clean() -> Path:
    """Clean the demo's notes, with the languages as they are, and hold a tenth out."""
    raw, out = WORK / "raw", WORK / "clean"
    raw.mkdir(parents=True)
    paths = []
    for lang in ("es", "en"):
        notes = sorted((ROOT / "assets" / "demo" / lang).rglob("*.txt"))
        lines = [" ".join(path.read_text("utf-8").split()) for path in notes]
        paths.append(raw / f"{lang}.txt")
        paths[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ("--lang", "es", "--lang", "en", "--held-out", 0.1, "--workers", 1)
    run_python(*BIOCLIN, "clean-text", *paths, "-o", out, *options, log=WORK / "clean.log")
    return out


def make_start(name: str, corpus: Path) -> Path:
    """Learn the recipe's kind of vocabulary, and make its kind of encoder, tiny."""
    vocabulary, start = WORK / name / "vocabulary", WORK / name / "start"
    vocabulary.parent.mkdir(parents=True)
    named = ("--recipe", name)
    learn = (*BIOCLIN, "learn-vocabulary", corpus, "-o", vocabulary, *named, "--size", 1000)
    run_python(*learn, log=WORK / name / "vocabulary.log")
    shape = ("--layers", 2, "--width", 64)
    make = (*BIOCLIN, "init-encoder", "-o", start, "--tokenizer", vocabulary, *named, *shape)
    run_python(*make, log=WORK / name / "start.log")
    return start


def train(name: str, phase: int, recipe: PretrainingRecipe, start: Path, corpus: Path) -> Any:
    """Train one phase for a hundred steps.

    RETURNS (dict): Losses, perplexities and cost.
    """
    settings = recipe.phases[phase - 1]
    length = LENGTHS[settings["length"]]
    warmup = settings["warmup"]
    share = warmup if warmup < 1 else warmup / settings["steps"]
    out = WORK / name / f"phase-{phase}"
    usage = run_python(
        *(*BIOCLIN, "pretrain", corpus, "-o", out, "--start-from", start),
        *("--recipe", name, "--phase", phase, "--steps", STEPS, "--every", STEPS // 2),
        *("--batch-sequences", SEQUENCES, "--length", length, "--warmup", share),
        *("--device-pieces", SEQUENCES * length // PASSES),
        log=WORK / name / f"phase-{phase}.log",
    )
    record = read_json(out / "pretraining.json")
    return {
        "phase": phase,
        "settings": record["settings"],
        "steps": record["loss"][-1][0],
        "passes_per_step": PASSES,
        "loss_first": record["loss"][0][1],
        "loss_last": record["loss"][-1][1],
        "perplexity": record["perplexity"],
        "weights": record["weights"],
        "vocabulary": record["vocabulary"],
        "pieces_per_second": record["pieces_per_second"],
        "cpu_seconds": round(usage.cpu_seconds, 1),
    }


def describe_schedule(recipe: PretrainingRecipe) -> list[dict[str, Any]]:
    """Describe each phase of a recipe at its full size."""
    phases = []
    for i, settings in enumerate(recipe.phases, 1):
        plan = make_plan(PretrainSettings(**settings), recipe, phase=i, pieces_per_second=1.0)
        phases.append(
            {
                "steps": plan.steps,
                "sequences_per_step": plan.sequences,
                "pieces_per_step": plan.pieces,
                "pieces_up_to_here": plan.tokens,
                "warmup_steps": plan.warmup_steps,
                "rates": plan.rates,
                "passes_on_one_device": plan.division.passes,
                "weights": plan.weights,
            }
        )
    return phases


def compare_divisions(corpus: Path, start: Path) -> list[dict[str, Any]]:
    """Train the same batches whole, accumulated, and in two processes.

    RETURNS (list[dict]): For each way, the largest difference of a weight, and of a logged loss,
        from the training with whole batches.
    """
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2)
    ways: dict[str, tuple[tuple[object, ...], tuple[object, ...]]] = {
        "whole": ((), ()),
        "accumulated in 4 passes": ((), ("--device-pieces", 512)),
        "accumulated in 32 passes": ((), ("--device-pieces", 64)),
        "torchrun, 2 processes": (torchrun, ()),
        "torchrun, 2 processes, 4 passes each": (torchrun, ("--device-pieces", 256)),
    }
    rows, expected, losses = [], {}, []
    for name, (launcher, options) in ways.items():
        out = WORK / "equal" / name.replace(",", "").replace(" ", "-")
        out.parent.mkdir(exist_ok=True)
        run_python(
            *(*launcher, *BIOCLIN, "pretrain", corpus, "-o", out, "--start-from", start),
            *("--steps", EQUAL_STEPS, "--every", EQUAL_STEPS, "--batch-sequences", SEQUENCES),
            *("--length", 64, "--precision", "fp32", "--whole-words", "--learn-rate", 1e-3),
            *options,
            log=out.with_suffix(".log"),
        )
        weights = load_file(out / "encoder" / "model.safetensors")
        record = read_json(out / "pretraining.json")
        if not expected:
            expected, losses = weights, record["loss"]
        row = {
            "way": name,
            "largest_difference_of_a_weight": max(
                float((weights[key] - expected[key]).abs().max()) for key in expected
            ),
            "largest_difference_of_a_loss": max(
                abs(a[1] - b[1]) for a, b in zip(record["loss"], losses, strict=True)
            ),
            "perplexity_last": record["perplexity"][-1],
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows


def main() -> None:
    make_parser(__doc__).parse_args()
    os.environ.update(thread_environment(1))
    shutil.rmtree(WORK, ignore_errors=True)
    corpus = clean()
    recipes = []
    for name, recipe in load_pretraining().items():
        start, trained = make_start(name, corpus), []
        for phase in range(1, len(recipe.phases) + 1):
            trained.append(train(name, phase, recipe, start, corpus))
            start = WORK / name / f"phase-{phase}" / "encoder"
            print(
                name, json.dumps({k: trained[-1][k] for k in ("phase", "perplexity")}), flush=True
            )
        schedule = describe_schedule(recipe)
        recipes.append({"recipe": name, "full_schedule": schedule, "tiny": trained})
    equal = compare_divisions(corpus, WORK / "carrino-2022" / "start")
    result = {"steps": STEPS, "recipes": recipes, "steps_compared": EQUAL_STEPS, "equal": equal}
    print(write_result("pretraining_recipes", result))


if __name__ == "__main__":
    main()
