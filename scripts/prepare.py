"""Convert the splits of a corpus into Docs, and write the config that suits them.

    python scripts/prepare.py TASK LANG OUT [--config FILE] [--fold FOLD]

TASK is one that `bioclin tasks` lists. Its files are read from $BIOCLIN_DATA if that is
set, else from assets/downloads, where `spacy project assets` puts them.
"""

import difflib
import os
from pathlib import Path
from typing import Annotated

import srsly
import typer
from spacy.util import load_config
from thinc.api import Config

from spacy_bioclin.catalog.tasks import Task, find_task
from spacy_bioclin.cli.faults import report_faults
from spacy_bioclin.corpora.formats import FORMATS
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.corpora import convert_task

ROOT = Path(__file__).resolve().parents[1]


def main(
    task: Annotated[str, typer.Argument(help="Task of the catalogue")],
    lang: Annotated[str, typer.Argument(help="Language of the notes")],
    out: Annotated[Path, typer.Argument(help="Folder for the .spacy files and config.cfg")],
    config: Annotated[str, typer.Option(help="Config; default: the one that suits the task")] = "",
    fold: Annotated[str, typer.Option(help="Fold of a cross-validation")] = "",
) -> None:
    """Write train.spacy, dev.spacy, test.spacy and config.cfg."""
    check_variables(read_command(os.getppid()))
    corpus = find_task(task, lang)
    convert_task(task, corpus, out, fold)
    make_config(corpus, lang, config).to_disk(out / "config.cfg")


def read_command(process: int) -> list[str]:
    """Read the command line of a process; empty where the system does not show it."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text("utf-8").split("\0")
    except OSError:
        return []


def check_variables(command: list[str]) -> None:
    """Check the variables that `spacy project run` was given: it ignores unknown ones itself.

    command (list[str]): Its command line.
    RAISES (BioclinError): project.yml has no such variable.
    """
    known = srsly.read_yaml(ROOT / "project.yml")["vars"]
    for word in command:
        name = word.partition("=")[0].removeprefix("--vars.")
        if word.startswith("--vars.") and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean --vars.{near[0]}? " if near else ""
            raise BioclinError(
                f"--vars.{name}: project.yml has no such variable; {hint}It has {', '.join(known)}"
            )


def make_config(task: Task, lang: str, config: str) -> Config:
    """Choose the config of a task and set its language.

    config (str): Path of a config; "" for pairs.cfg for pairs of texts, textcat.cfg for texts,
        relations.cfg for relations, demo.cfg for two layers, deid.cfg for PHI alone, or ner.cfg
        with its head set to the one layer of the task.
    """
    if config:
        return load_config(config, {"nlp.lang": lang})
    if task.is_table:
        return make_table_config(task, lang)
    layers = task.layer_names
    if task.relations:
        [layer] = layers
        made = load_config(ROOT / "configs" / "relations.cfg", {"nlp.lang": lang})
        made["components"]["relations"]["spans_key"] = layer
        if FORMATS[task.format].level == "concept":  # anywhere in a document
            made["components"]["relations"].update({"level": "concept", "scope": "document"})
            made["corpora"]["train"]["max_tokens"] = 0
        return made
    if layers == ["ents", "phi"]:
        return load_config(ROOT / "configs" / "demo.cfg", {"nlp.lang": lang})
    if layers == ["phi"]:
        return load_config(ROOT / "configs" / "deid.cfg", {"nlp.lang": lang})
    [layer] = layers
    made = load_config(ROOT / "configs" / "ner.cfg", {"nlp.lang": lang})
    made["components"]["ner"]["spans_key"] = None if layer == "ents" else layer
    made["components"]["ner"]["nested"] = task.nested
    made["training"]["score_weights"] = {task.metric: 1.0}
    return made


def make_table_config(task: Task, lang: str) -> Config:
    """Choose the config of a task of texts or of pairs."""
    if task.kind == "pairs":
        made = load_config(ROOT / "configs" / "pairs.cfg", {"nlp.lang": lang})
        if task.graded:
            made["components"]["pairs"]["objective"] = "regression"
            made["training"]["score_weights"].update({"pairs_acc": 0.0, task.metric: 1.0})
        return made
    made = load_config(ROOT / "configs" / "textcat.cfg", {"nlp.lang": lang})
    if task.exclusive:
        head = made["components"]["textcat"]
        head.update({"factory": "textcat", "threshold": 0.0})
        head["scorer"] = {"@scorers": "spacy.textcat_scorer.v2"}
        head["model"]["exclusive_classes"] = True
    return made


if __name__ == "__main__":
    typer.run(report_faults(main))
