"""Convert the splits of a corpus into Docs, and write the config that suits them.

    python scripts/prepare.py TASK LANG OUT [--config FILE]

TASK is one of spacy_bioclin/catalog/tasks.yml. Its files are read from $BIOCLIN_DATA if that is
set, else from assets/downloads, where `spacy project assets` puts them.
"""

from pathlib import Path
from typing import Annotated

import typer
from spacy.util import load_config
from thinc.api import Config

from spacy_bioclin.catalog.tasks import Task, find_task
from spacy_bioclin.cli import without_traceback
from spacy_bioclin.training.corpora import convert_task

ROOT = Path(__file__).resolve().parents[1]


def main(
    task: Annotated[str, typer.Argument(help="Task of the catalogue")],
    lang: Annotated[str, typer.Argument(help="Language of the notes")],
    out: Annotated[Path, typer.Argument(help="Folder for the .spacy files and config.cfg")],
    config: Annotated[str, typer.Option(help="Config; default: the one that suits the task")] = "",
) -> None:
    """Write train.spacy, dev.spacy, test.spacy and config.cfg."""
    corpus = find_task(task, lang)
    convert_task(task, corpus, out)
    make_config(corpus, lang, config).to_disk(out / "config.cfg")


def make_config(task: Task, lang: str, config: str) -> Config:
    """Choose the config of a task and set its language.

    config (str): Path of a config; "" for demo.cfg for two layers, deid.cfg for PHI alone, or
        ner.cfg with its head set to the one layer of the task.
    """
    if config:
        return load_config(config, {"nlp.lang": lang})
    layers = task.layer_names
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


if __name__ == "__main__":
    typer.run(without_traceback(main))
