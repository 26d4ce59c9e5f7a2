"""The tasks of the .yml files in this folder: corpora with their files, metrics and licences."""

import functools
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

from ...errors import BioclinError
from ...outputs import write_atomic
from ...settings import find_nearest, read_settings, read_yaml
from .task import (
    COMMON_LAYER,
    KINDS,
    PAPERS,
    SCORES,
    SPLITS,
    Division,
    PublishedRow,
    Task,
    check_fold,
    check_new_labels,
    load_documents,
)

__all__ = [
    "COMMON_LAYER",
    "DEMO",
    "DOWNLOADS",
    "KINDS",
    "PAPERS",
    "SCORES",
    "SPLITS",
    "Division",
    "PublishedRow",
    "Task",
    "check_fold",
    "check_new_labels",
    "find_data",
    "find_task",
    "load_documents",
    "load_tasks",
    "read_tasks",
    "unpack",
]

TASKS = Path(__file__).parent
DEMO = "demo"  # the task that ships with this repository
# `spacy project assets` downloads into this folder of the project.
DOWNLOADS = Path("assets") / "downloads"


def load_tasks() -> dict[str, Task]:
    """Read the tasks of the catalogue by name."""
    return dict(read_tasks(TASKS))


@functools.cache
def read_tasks(folder: Path) -> dict[str, Task]:
    """Read the tasks of the .yml files of a folder by name, once per process.

    RAISES (BioclinError): Something is wrong with a task, or two files have one of the same name.
    """
    tasks: dict[str, Task] = {}
    for path in sorted(folder.glob("*.yml")):
        for name, fields in (read_yaml(path) or {}).items():
            if name in tasks:
                raise BioclinError(f"{path.name}, {name}: another file has a task of this name")
            tasks[name] = read_settings(Task, fields, where=f"{path.name}, {name}")
    return tasks


def find_task(name: str, lang: str | None = None) -> Task:
    """Look up a task.

    lang (str | None): Language of the notes; None for that of the task. The demo has two.
    RAISES (BioclinError): There is no such task, or not in this language.
    """
    tasks = load_tasks()
    if name not in tasks:
        raise BioclinError(
            f"task {name!r} is unknown; {find_nearest(name, list(tasks))}want one of "
            f"{', '.join(tasks)}"
        )
    task = tasks[name]
    if name == DEMO and lang in ("es", "en"):
        splits = {split: [f"assets/demo/{lang}/{split}"] for split in SPLITS}
        return task.model_copy(update={"lang": lang, "splits": splits})
    if lang is not None and task.lang != lang:
        raise BioclinError(f"task {name} is in language {task.lang}, not {lang}")
    return task


def find_data(name: str) -> Path:
    """Find the folder that the paths of a task are relative to, and unpack its download.

    RAISES (BioclinError): The corpus is not there.
    """
    if name == DEMO:
        return Path()
    task = load_tasks()[name]
    if os.environ.get("BIOCLIN_DATA"):
        data = Path(os.environ["BIOCLIN_DATA"])
    else:
        data = DOWNLOADS
        if (DOWNLOADS / f"{task.folder}.zip").is_file():
            unpack(DOWNLOADS / f"{task.folder}.zip", task.archive)
    if not (data / task.folder).is_dir():
        obtain = task.obtain or "run `python -m spacy project assets`"
        raise BioclinError(
            f"{data / task.folder} does not exist: {obtain}, or set BIOCLIN_DATA to a folder that "
            "holds the corpora"
        )
    return data


def unpack(archive: Path, folders: Mapping[str, str]) -> None:
    """Unpack some folders of a downloaded archive.

    archive (Path): The archive.
    folders (Mapping[str, str]): Folder in the archive -> folder beside the archive.
    RAISES (BioclinError): A folder is missing in the archive.
    """
    with zipfile.ZipFile(archive) as file:
        for source, target in folders.items():
            names = [name for name in file.namelist() if Path(name).parent == Path(source)]
            if not names:
                raise BioclinError(f"{archive}: has no folder {source}; download it again")
            for name in names:
                if not name.endswith("/"):
                    write_atomic(archive.parent / target / Path(name).name, file.read(name))
