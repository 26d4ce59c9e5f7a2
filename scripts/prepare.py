"""What the project trains on: the splits of a corpus as Docs, and the config for them.

    python scripts/prepare.py TASK LANG OUT [--config FILE]

TASK is one of spacy_bioclin/catalog/tasks.yml. Its files are looked for in $BIOCLIN_DATA if that is
set, else in assets/downloads, where `spacy project assets` puts them.
"""

import os
import shutil
import zipfile
from pathlib import Path
from typing import Annotated

import typer
from spacy.util import load_config
from thinc.api import Config

from spacy_bioclin.catalog.tasks import Task, load_tasks
from spacy_bioclin.cli import convert, without_traceback
from spacy_bioclin.errors import BioclinError

ROOT = Path(__file__).resolve().parents[1]
DOWNLOADS = ROOT / "assets" / "downloads"
SPLITS = ("train", "dev", "test")
# Downloads that are archives: folder in the archive -> folder in assets/downloads.
ARCHIVES = {
    "meddocan.zip": {f"meddocan/{split}/brat": f"meddocan/{split}/brat" for split in SPLITS},
    "pharmaconer.zip": {
        f"pharmaconer/{split}-set_1.1/{split}/subtrack1": f"pharmaconer/{split}/brat"
        for split in SPLITS
    },
    "cantemist.zip": {
        "train-set/cantemist-norm": "cantemist/train/norm",
        "dev-set1/cantemist-norm": "cantemist/dev1/norm",
        "dev-set2/cantemist-norm": "cantemist/dev2/norm",
        "test-set/cantemist-norm": "cantemist/test/norm",
    },
}


def main(
    task: Annotated[str, typer.Argument(help="A task of the catalogue")],
    lang: Annotated[str, typer.Argument(help="Language of the notes")],
    out: Annotated[Path, typer.Argument(help="Folder for the .spacy files and config.cfg")],
    config: Annotated[str, typer.Option(help="Config; else the one that suits the task")] = "",
) -> None:
    corpus = find_task(task, lang)
    data = ROOT if task == "demo" else find_data(task)
    for split in SPLITS:
        if split not in corpus.splits:
            raise BioclinError(f"task {task} has no {split} split: see `bioclin convert`")
        typer.echo(f"{task}, {split}", err=True)
        convert.main(
            corpus.format,
            [data / path for path in corpus.splits[split]],
            out / f"{split}.spacy",
            lang=lang,
            task=task,
            layer=[f"{label}={layer}" for label, layer in corpus.layers.items()],
        )
    make_config(corpus, lang, config).to_disk(out / "config.cfg")


def find_task(name: str, lang: str) -> Task:
    """RETURNS (Task): The task, in this language."""
    tasks = load_tasks()
    if name not in tasks:
        raise BioclinError(f"--vars.task is {name!r}, want one of {', '.join(tasks)}")
    task = tasks[name]
    if name == "demo" and lang in ("es", "en"):
        splits = {split: [f"assets/demo/{lang}/{split}"] for split in SPLITS}
        return task._replace(lang=lang, splits=splits)
    if task.lang != lang:
        raise BioclinError(f"task {name} needs --vars.lang {task.lang}, not {lang}")
    return task


def make_config(task: Task, lang: str, config: str) -> Config:
    """RETURNS (Config): The given config; else demo.cfg for two layers, deid.cfg for PHI alone, or
    ner.cfg with its head set to the one layer that the task has."""
    if config:
        return load_config(config, {"nlp.lang": lang})
    layers = sorted(set(task.layers.values()))
    if layers == ["ents", "phi"]:
        return load_config(ROOT / "configs" / "demo.cfg", {"nlp.lang": lang})
    if layers == ["phi"]:
        return load_config(ROOT / "configs" / "deid.cfg", {"nlp.lang": lang})
    [layer] = layers
    made = load_config(ROOT / "configs" / "ner.cfg", {"nlp.lang": lang})
    made["components"]["ner"]["spans_key"] = None if layer == "ents" else layer
    made["training"]["score_weights"] = {task.metric: 1.0}
    return made


def find_data(task: str) -> Path:
    """RETURNS (Path): Folder that the paths of the catalogue start from."""
    if os.environ.get("BIOCLIN_DATA"):
        data = Path(os.environ["BIOCLIN_DATA"])
    else:
        data = DOWNLOADS
        if (DOWNLOADS / f"{task}.zip").is_file():
            unpack(DOWNLOADS / f"{task}.zip")
    if not (data / task).is_dir():
        raise BioclinError(
            f"{data / task} does not exist: run `python -m spacy project assets`, or set "
            "BIOCLIN_DATA to a folder that holds the corpora"
        )
    return data


def unpack(archive: Path) -> None:
    """Unpack those folders of a downloaded archive that the catalogue names."""
    with zipfile.ZipFile(archive) as file:
        for source, target in ARCHIVES[archive.name].items():
            names = [name for name in file.namelist() if Path(name).parent == Path(source)]
            if not names:
                raise BioclinError(f"{archive}: has no folder {source}; download it again")
            folder = archive.parent / target
            folder.mkdir(parents=True, exist_ok=True)
            for name in names:
                if not name.endswith("/"):
                    with file.open(name) as data, (folder / Path(name).name).open("wb") as copy:
                        shutil.copyfileobj(data, copy)


if __name__ == "__main__":
    typer.run(without_traceback(main))
