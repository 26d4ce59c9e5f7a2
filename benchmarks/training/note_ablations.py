"""What the pipelines owe to our notes, to noise, to lower case and to short forms, on dev.

    python -m benchmarks.training.note_ablations CORPORA --encoder ENCODER --work FOLDER

CORPORA is a folder of `python -m scripts.flagship corpora`. Each variant is a training of its own
with one seed and the same few updates; a finished one is not made again, and a killed one goes on.
Run it once for each language. The pipelines are measured as benchmarks/accuracy/notes.py does.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import spacy
from spacy.util import load_config
from thinc.api import Config

from benchmarks.accuracy.notes import measure
from benchmarks.harness import RESULTS, describe_machine, make_parser, read_json, write_json
from scripts.flagship import ASSERTIONS, KINDS, NOTES
from scripts.notes import list_files, read_notes
from spacy_bioclin.cli import app
from spacy_bioclin.corpora.overlap.lists import format_id_list
from spacy_bioclin.tokenization import noise
from spacy_bioclin.training.state import STATE

RESULT = RESULTS / "note_ablations.json"
PARTS = ("all", "capitals", "no accents", "shorthand", "prose")
VARIANTS = ("whole", "no notes", "quarter", "half", "no noise", "no lower case", "no short forms")


def make_config(variant: str, corpora: Path, updates: int, folder: Path) -> Config:
    """Change the config of the pipeline that ships for a variant."""
    config = load_config(corpora / "config.cfg", interpolate=False)
    tasks, training = config["corpora"]["train"], config["training"]
    training["max_steps"] = training["eval_frequency"] = updates
    dev = config["corpora"]["dev"]
    dev |= {"tasks": {NOTES: dev["tasks"][NOTES]}, "leave_out": None, "held_out": []}
    if variant == "no notes":
        # Nothing else teaches the tagger of assertions but the pieces by kind.
        del tasks["tasks"][NOTES], tasks["tasks"][KINDS], training["batcher"]["turns"][NOTES]
        training["batcher"]["batchers"] = {}
        dev["tasks"][NOTES]["heads"] = ["ner", "phi"]
        config["nlp"]["pipeline"].remove(ASSERTIONS)
        del config["components"][ASSERTIONS]
    elif variant in ("quarter", "half"):
        keep = {"quarter": 4, "half": 2}[variant]
        path = Path(tasks["leave_out"])
        names = [note.name for note in read_split(config["nlp"]["lang"], "train")]
        left = [name for i, name in enumerate(names) if i % keep]
        known = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
        listed = folder / f"{variant}-leave-out.txt"
        listed.write_text(format_id_list([*known, *left], "for an ablation"), "utf-8")
        tasks["leave_out"] = str(listed)
    elif variant == "no noise":
        tasks["augmenter"] = None
    elif variant == "no lower case":
        config["components"]["transformer"]["model"]["lower_capitals"] = False
    return config


def read_split(lang: str, split: str) -> list[Any]:
    """Read our notes of a split."""
    paths = [path for _, of, path in list_files([lang]) if of == split]
    return [note for path in paths for note in read_notes(path)]


def train(variant: str, arguments: argparse.Namespace) -> None:
    """Train a variant in this process."""
    if variant == "no short forms":
        noise.GROUPS = tuple(
            group for group in noise.GROUPS if all(one is not noise.shorten for one, _ in group)
        )
    folder = arguments.work / variant.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.cfg"
    make_config(variant, arguments.corpora, arguments.updates, folder).to_disk(config)
    command = ["train", str(config), "-o", str(folder), "--paths.encoder", arguments.encoder]
    command.append("--resume" if (folder / STATE).exists() else "--overwrite")
    sys.exit(app(command, standalone_mode=False))


def score(folder: Path) -> dict[str, Any]:
    """Measure a trained variant on dev, with the components that do not learn."""
    nlp = spacy.load(folder / "model-last")
    nlp.add_pipe("bioclin_sections", "sections", after="sentences")
    nlp.add_pipe("bioclin_phi_rules", "rules", after="phi")
    nlp.add_pipe("bioclin_context", "context", after="ents")
    nlp.add_pipe("bioclin_deid", "deid", before="cleaner")
    return {
        part: row
        for part, row in measure(nlp, read_split(nlp.lang, "dev")).items()
        if part in PARTS
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--encoder", required=True, help="folder of the encoder")
    parser.add_argument("--work", type=Path, required=True, help="folder for the trainings")
    parser.add_argument("--updates", type=int, default=1200)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--train", choices=VARIANTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.train, arguments)
    lang = load_config(arguments.corpora / "config.cfg", interpolate=False)["nlp"]["lang"]
    for variant in arguments.variants:
        result = read_json(RESULT) if RESULT.exists() else {}
        if variant in result.setdefault(lang, {}):
            continue
        command = [sys.executable, "-m", "benchmarks.training.note_ablations", *sys.argv[1:]]
        subprocess.run([*command, "--train", variant], check=True)
        scores = score(arguments.work / variant.replace(" ", "-"))
        row = {"machine": describe_machine(), "updates": arguments.updates, "scores": scores}
        result[lang][variant] = row
        write_json(RESULT, result, indent=1)
        print(variant, scores["all"]["problems"], scores["all"]["drugs"], sep="  ")


if __name__ == "__main__":
    main()
