"""What `bioclin train` and `bioclin sweep` do with wrong strategies, recipes and rates: each fault
through the real command, with the encoder that ships and the demo notes.

For each: the exit status, what is said, and what is on the disk afterwards. A command runs in a
process of its own, forked from one that has imported the libraries.

    OMP_NUM_THREADS=1 python -m benchmarks.training.strategy_faults
"""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from transformers import AlbertConfig, AlbertModel, AutoTokenizer

from benchmarks.harness import ROOT, write_result
from spacy_bioclin.cli import app

ENCODER = "assets/encoders/bioclin-compact"
SECTION = "[components.transformer.model.strategy]"
STRATEGY = "--components.transformer.model.strategy"
SHORT = ("--training.max_steps", "4", "--training.eval_frequency", "2")
NO_LAYER = "encoder.layer.0 to encoder.layer.3"


class Case(NamedTuple):
    """A fault.

    arguments (tuple[str, ...]): Of `bioclin train`, or what differs in a sweep's YAML.
    says (tuple[str, ...]): What the message must hold.
    exit (int): Status that is right.
    """

    arguments: tuple[str, ...] | dict[str, Any]
    says: tuple[str, ...]
    exit: int = 1


def strategy(**settings: Any) -> tuple[str, ...]:
    """RETURNS (tuple): Options of the command line."""
    pairs = [(f"{STRATEGY}.{key}", json.dumps(value)) for key, value in settings.items()]
    return tuple(part for pair in pairs for part in pair)


TRAIN = {
    "nothing wrong": Case(strategy(freeze_layers=2), ("The pipeline is in",), 0),
    "unknown key": Case(
        strategy(freze_layers=2), (SECTION, "'freze_layers'", "mean freeze_layers", "lora_rank")
    ),
    "text for a number": Case(
        strategy(freeze_layers="two"), (SECTION, "freeze_layers = 'two'", "integer")
    ),
    "no section but a number": Case((STRATEGY, "3"), ("strategy",)),
    "rate of lower layers above 1": Case(
        strategy(layer_decay=9.5), (SECTION, "layer_decay = 9.5", "less than or equal to 1")
    ),
    "frozen layer that the encoder does not have": Case(
        strategy(freeze_layers=12), (SECTION, "freeze_layers = 12", "4 layers", NO_LAYER)
    ),
    "drawn layer that the encoder does not have": Case(
        strategy(reinit_layers=5), (SECTION, "reinit_layers = 5", "4 layers", NO_LAYER)
    ),
    "frozen and drawn anew": Case(
        strategy(freeze_layers=3, reinit_layers=2),
        (SECTION, "freeze_layers = 3, reinit_layers = 2", "must be 4 or less"),
    ),
    "layers of an encoder that shares them": Case(
        ("--paths.encoder", "albert", *strategy(freeze_layers=1)),
        (SECTION, "freeze_layers = 1", "no separate layers"),
    ),
    "selector that matches no weight": Case(
        strategy(no_decay=["LayerNrom"]),
        (SECTION, "'LayerNrom' matches no weight", "encoder.layer.N.output.LayerNorm.weight"),
    ),
    "selector that is no regular expression": Case(
        strategy(no_decay=["("]), (SECTION, "no_decay = ['(']", "regular expressions")
    ),
    "LoRA for layers that are not there": Case(
        strategy(lora_rank=4, lora_targets=["q_proj"]),
        (SECTION, "'q_proj' matches no linear layer", "encoder.layer.N.attention.self.query"),
    ),
    "LoRA with mixout": Case(
        strategy(lora_rank=4, mixout=0.5), (SECTION, "lora_rank = 4, mixout = 0.5", "leave out")
    ),
    "LoRA in a frozen encoder": Case(
        strategy(lora_rank=4, freeze_layers=4), (SECTION, "freeze_layers = 4, lora_rank = 4")
    ),
    "unknown recipe": Case(("--recipe", "carino-2022"), ("carino-2022", "carrino-2022")),
    "rate of 1e30": Case(
        ("--training.optimizer.learn_rate", "1e30"), ("training diverged", "at update", "lower")
    ),
}
SWEEP = {
    "sweep: three wrong strategies beside a right one": Case(
        {
            "strategies": {
                "misspelt": {"freze_layers": 2},
                "too high": {"freeze_layers": 12},
                "no such weight": {"no_decay": ["LayerNrom"]},
                "right": {"freeze_layers": 4},
            }
        },
        (
            *(SECTION, "freze_layers = 2", "mean freeze_layers"),
            *("freeze_layers = 12", NO_LAYER),
            *("'LayerNrom' matches no weight", "encoder.layer.N.output.LayerNorm.weight"),
            *("F1 on dev", "report.html"),
        ),
        0,
    ),
    "sweep: a trial that diverges beside one that does not": Case(
        {"learn_rates": [5e-4, 1e30], "strategies": {"frozen": {"freeze_layers": 4}}},
        ("diverged", "1e+30", "F1 on dev"),
        0,
    ),
    "sweep: unknown recipe": Case({"recipe": "carino-2022"}, ("carino-2022", "carrino-2022")),
    "sweep: unknown key": Case({"learn_rate": [1.0]}, ("unknown key 'learn_rate'", "learn_rates")),
}


class Done(NamedTuple):
    """exit (int): Status. said (str): All that was printed."""

    exit: int
    said: str


def bioclin(folder: Path, *arguments: str) -> Done:
    """Run a command in a folder."""
    log = folder.parent / f"{folder.name}.log"
    with log.open("wb") as out:
        pid = os.fork()
        if not pid:
            os.chdir(folder)
            for stream in (1, 2):
                os.dup2(out.fileno(), stream)
            os.environ["COLUMNS"] = "1000"
            status = 70  # an exception that is not the command's
            try:
                app(arguments, prog_name="bioclin")
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, waited = os.waitpid(pid, 0)
    said = log.read_text("utf-8").replace(f"{folder}/", "")
    log.unlink()
    return Done(os.waitstatus_to_exitcode(waited), said)


def make_corpora(folder: Path) -> None:
    """Convert the demo notes, and write a tiny encoder whose layers share their weights."""
    for name in ("assets", "configs"):
        (folder / name).symlink_to(ROOT / name)
    for split, source in (("train", "train"), ("dev", "dev"), ("test", "dev")):
        notes, out = f"assets/demo/en/{source}", f"corpus/{split}.spacy"
        layers = ("--layer", "PROBLEM=ents", "--layer", "*=phi")
        done = bioclin(folder, "convert", "brat", notes, out, "--lang", "en", *layers)
        assert done.exit == 0, done.said
    tokenizer = AutoTokenizer.from_pretrained(ROOT / ENCODER)
    shape = {"embedding_size": 8, "hidden_size": 16, "intermediate_size": 16}
    config = AlbertConfig(
        vocab_size=len(tokenizer), num_hidden_layers=3, num_attention_heads=2, **shape
    )
    AlbertModel(config).save_pretrained(folder / "albert")
    tokenizer.save_pretrained(folder / "albert")


def arguments_of(case: Case, folder: Path) -> list[str]:
    if isinstance(case.arguments, tuple):
        paths = {"train": "corpus/train.spacy", "dev": "corpus/dev.spacy", "encoder": ENCODER}
        options = [part for key, value in paths.items() for part in (f"--paths.{key}", value)]
        quiet = ("--training.logger.progress_bar", "null")
        return [
            "train",
            "configs/ner.cfg",
            "-o",
            "out",
            "--nlp.lang",
            "en",
            *options,
            *SHORT,
            *quiet,
            *case.arguments,
        ]
    plan = {
        "tasks": {"demo": {"path": "corpus", "lang": "en"}},
        "encoders": {"compact": ENCODER},
        "learn_rates": [5e-4],
        "seeds": [0],
        "settings": {"training.max_steps": 4, "training.eval_frequency": 2},
        **case.arguments,
    }
    (folder / "plan.yml").write_text(json.dumps(plan), "utf-8")
    return ["sweep", "plan.yml", "-o", "out"]


def run_case(case: Case, folder: Path) -> dict[str, Any]:
    shutil.rmtree(folder / "out", ignore_errors=True)
    started = time.perf_counter()
    done = bioclin(folder, *arguments_of(case, folder))
    missing = [words for words in case.says if words not in done.said]
    found = {
        "exit": done.exit,
        "message": [line.rstrip() for line in done.said.splitlines() if line.strip()],
        "traceback": "Traceback" in done.said,
        "as_wanted": done.exit == case.exit and not missing and "Traceback" not in done.said,
        "seconds": round(time.perf_counter() - started, 1),
        "new_on_disk": sorted(path.name for path in folder.glob("out/*")),
    }
    if missing:
        found["missing"] = missing
    return found


def main() -> None:
    spacy.blank("en")  # which imports all that is registered
    faults: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "work"
        folder.mkdir()
        make_corpora(folder)
        for title, case in {**TRAIN, **SWEEP}.items():
            faults[title] = run_case(case, folder)
            shown = faults[title]
            fine = "as wanted" if shown["as_wanted"] else shown
            print(f"{title:54} exit {shown['exit']}  {fine}", flush=True)
            path = write_result("strategy_faults", {"faults": faults})
    print(path)
    wrong = [title for title, found in faults.items() if not found["as_wanted"]]
    if wrong:
        sys.exit(f"not as wanted: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
