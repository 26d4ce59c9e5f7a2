"""Time of a training step with the strategies: all weights, half frozen, frozen, LoRA.

    OMP_NUM_THREADS=1 python -m benchmarks.training.strategy_speed

Pipelines of configs/ner.cfg with the encoder that ships, alike but for the strategy, on the same
parts of MEDDOCAN train, in batches of about 1,000 tokens. They take turns, round by round, each
round one pass over the parts; what counts is the ratio of medians within the run. "seconds" are
processor time of the one thread, which other programs on the machine change less than the clock;
"wall" is the clock. A frozen encoder's first epoch computes vectors, later ones remember them.
"""

import statistics
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import minibatch
from thinc.api import Adam

from benchmarks.corpora import SHIPPED, prepare
from benchmarks.harness import ROOT, WORK, make_parser, report, take_turns, time_call
from benchmarks.speed.training_systems import write_parts
from spacy_bioclin.corpora.readers import make_corpus
from spacy_bioclin.encoders.precision import has_fast_bf16

FIRST, LATER = "frozen, first epoch", "frozen, later epochs"
STRATEGIES: dict[str, dict[str, Any]] = {
    "all weights": {},
    "all weights, all settings": {
        "layer_decay": 0.9,
        "bias_correction": False,
        "no_decay": ["bias"],
    },
    "pretrained_decay": {"pretrained_decay": 0.01},
    "mixout": {"mixout": 0.5},
    "half frozen": {"freeze_layers": 2},
    FIRST: {"freeze_layers": 4},
    LATER: {"freeze_layers": 4},
    "LoRA": {"lora_rank": 8},
}
MAX_TOKENS = 128
PARTS_PER_BATCH = 8


def make_pipeline(folder: Path, strategy: dict[str, Any], precision: str) -> Language:
    paths = {f"paths.{split}": str(folder / f"{split}.spacy") for split in ("train", "dev")}
    overrides = {
        **paths,
        "paths.encoder": str(SHIPPED),
        "components.transformer.model.precision": precision,
        "components.transformer.model.strategy": strategy,
    }
    config = spacy.util.load_config(ROOT / "configs" / "ner.cfg", overrides, interpolate=True)
    return init_nlp(config)


class System:
    """A pipeline in training. name (str): Which of STRATEGIES."""

    def __init__(self, name: str, folder: Path, precision: str) -> None:
        self.name = name
        self.nlp = make_pipeline(folder, STRATEGIES[name], precision)
        self.examples = list(make_corpus(path=folder / "train.spacy", max_tokens=0)(self.nlp))
        self.optimizer = Adam(1e-4, L2=0.01, grad_clip=1.0)
        self.shim = self.nlp.get_pipe("transformer").model.shim

    def round(self) -> dict[str, float]:
        """Train on every part once, and return the seconds per step."""
        if self.name == FIRST:
            self.shim.set_training_state({})  # forgets the vectors
        batches = list(minibatch(self.examples, PARTS_PER_BATCH))

        def train() -> None:
            for batch in batches:
                fresh = [Example(self.nlp.make_doc(e.reference.text), e.reference) for e in batch]
                self.nlp.update(fresh, sgd=self.optimizer, drop=0.1, annotates=["sentences"])

        spent = time_call(train)
        return {"seconds": spent.cpu / len(batches), "wall": spent.wall / len(batches)}


def compare(folder: Path, precision: str, rounds: int) -> dict[str, Any]:
    rounds_of = {name: System(name, folder, precision).round for name in STRATEGIES}
    times = take_turns(rounds_of, rounds, warm_ups=1, title=precision)
    found: dict[str, Any] = {}
    for name, values in times.items():
        medians = {k: statistics.median(v[k] for v in values) for k in ("seconds", "wall")}
        full = found["all weights"] if found else medians
        found[name] = {
            "strategy": STRATEGIES[name],
            **{f"{kind}_per_step": round(value, 4) for kind, value in medians.items()},
            "times_as_fast": round(full["seconds_per_step"] / medians["seconds"], 2)
            if found
            else 1.0,
            "rounds": [round(value["seconds"], 4) for value in values],
        }
    return found


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--parts", type=int, default=32, help="parts of notes in a round")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    folder = WORK / "strategy_speed"
    folder.mkdir(parents=True, exist_ok=True)
    source = prepare("meddocan") / "train.spacy"
    sizes = write_parts(source, folder, n_parts=arguments.parts, max_tokens=MAX_TOKENS)
    result: dict[str, Any] = {
        "encoder": SHIPPED.name,
        "threads": torch.get_num_threads(),
        "steps_per_round": -(-arguments.parts // PARTS_PER_BATCH),
        **sizes,
    }
    formats = ["fp32", "bf16"] if has_fast_bf16(torch.device("cpu")) else ["fp32"]
    result["precision"] = {name: compare(folder, name, arguments.rounds) for name in formats}
    report("strategy_speed", result)


if __name__ == "__main__":
    main()
