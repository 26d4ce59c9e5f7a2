"""The corpora of the catalogue's tasks, converted for training."""

import os
import zipfile
from pathlib import Path

from rich.console import Console

from ..catalog.tasks import Task, load_tasks
from ..corpora.convert import convert_to_docs
from ..errors import BioclinError
from ..parallel import show_progress

# Where `spacy project assets` puts what it downloads, in the project's folder.
DOWNLOADS = Path("assets") / "downloads"
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


def find_task(name: str, lang: str | None = None) -> Task:
    """RETURNS (Task): The task, in this language if one is given.

    RAISES (BioclinError): There is none.
    """
    tasks = load_tasks()
    if name not in tasks:
        raise BioclinError(f"task {name!r} is unknown, want one of {', '.join(tasks)}")
    task = tasks[name]
    if name == "demo" and lang in ("es", "en"):
        splits = {split: [f"assets/demo/{lang}/{split}"] for split in SPLITS}
        return task._replace(lang=lang, splits=splits)
    if lang is not None and task.lang != lang:
        raise BioclinError(f"task {name} is in language {task.lang}, not {lang}")
    return task


def convert_task(name: str, task: Task, out: Path) -> None:
    """Write train.spacy, dev.spacy and test.spacy.

    RAISES (BioclinError): The corpus is not here, or has no such split.
    """
    data = Path() if name == "demo" else find_data(name)
    console = Console(stderr=True, highlight=False)
    for split in SPLITS:
        if split not in task.splits:
            raise BioclinError(f"task {name} has no {split} split: see `bioclin convert`")
        console.print(f"{name}, {split}", markup=False)
        with show_progress(console, "documents") as on_progress:
            convert_to_docs(
                task.format,
                [data / path for path in task.splits[split]],
                out / f"{split}.spacy",
                lang=task.lang,
                layers=task.layers,
                labels=task.labels,
                task=name,
                on_progress=on_progress,
                on_report=lambda losses: console.print(losses.to_table()),
            )


def find_data(name: str) -> Path:
    """RETURNS (Path): Folder that the paths of the catalogue start from."""
    if os.environ.get("BIOCLIN_DATA"):
        data = Path(os.environ["BIOCLIN_DATA"])
    else:
        data = DOWNLOADS
        if (DOWNLOADS / f"{name}.zip").is_file():
            unpack(DOWNLOADS / f"{name}.zip")
    if not (data / name).is_dir():
        raise BioclinError(
            f"{data / name} does not exist: run `python -m spacy project assets`, or set "
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
                    (folder / Path(name).name).write_bytes(file.read(name))
