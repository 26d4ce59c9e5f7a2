"""The tasks of `tasks.yml`: corpora with their files, layers and licences."""

import functools
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from ..errors import BioclinError
from ..outputs import write_atomic
from ..settings import Settings, read_settings, read_yaml

TASKS = Path(__file__).with_name("tasks.yml")
DOCUMENTS = Path(__file__).with_name("splits.yml")
DEMO = "demo"  # the task that ships with this repository
SPLITS = ("train", "dev", "test")
# Layer of the common labels: doc.spans["clinical"].
COMMON_LAYER = "clinical"
# `spacy project assets` downloads into this folder of the project.
DOWNLOADS = Path("assets") / "downloads"


class Task(Settings):
    """A corpus and how it becomes Docs.

    lang (str): Language of the notes.
    format (str): FORMAT of `bioclin convert`.
    splits (dict[str, list[str]]): Files or folders of each split, relative to the data folder.
    layers (dict[str, str | None]): Label -> layer, None to leave it out; "*" means every label that
        is not named.
    metric (str): Score that chooses the best pipeline in training.
    licence (str): Licence of the corpus.
    source (str): Repository that the files come from.
    commit (str): Commit of that repository.
    cite (str): What to cite.
    labels (dict[str, str]): Label in the file -> label in the Doc; "*" as in `layers`.
    targets (dict[str, str]): Label in the file -> new label in the Doc of what the relations of
        such spans lead to.
    common (dict[str, str | None]): Label in the file -> common label, None to leave it out; "*" as
        in `layers`. Empty if the task has no common labels.
    archive (dict[str, str]): Folder in the downloaded archive -> folder to unpack it to.
    documents (str): List in splits.yml that says which documents of a folder belong to which split;
        "" if every split has its own files.
    relations (list[str] | str): Labels of the relations that Docs get, or "all"; empty for none.
    nested (bool): Spans of different labels overlap so often that each label is tagged separately.
    obtain (str): How to get the corpus, if `spacy project assets` does not download it.
    """

    lang: str
    format: str
    splits: dict[str, list[str]]
    layers: dict[str, str | None]
    metric: str
    licence: str
    source: str
    commit: str
    cite: str
    labels: dict[str, str] = Field(default_factory=dict)
    targets: dict[str, str] = Field(default_factory=dict)
    common: dict[str, str | None] = Field(default_factory=dict)
    archive: dict[str, str] = Field(default_factory=dict)
    documents: str = ""
    relations: list[str] | Literal["all"] = Field(default_factory=list)
    nested: bool = False
    obtain: str = ""

    @property
    def folder(self) -> str:
        """Folder of the corpus in the data folder. Several tasks can have the same."""
        return Path(self.splits["train"][0]).parts[0]

    @property
    def layer_names(self) -> list[str]:
        """The layers that the task annotates, sorted."""
        return sorted({layer for layer in self.layers.values() if layer})

    @field_validator("common")
    @classmethod
    def _check_common(cls, common: dict[str, str | None]) -> dict[str, str | None]:
        check_new_labels(common)
        return common

    @property
    def common_labels(self) -> list[str]:
        """The common labels that the task annotates, sorted."""
        return sorted({label for label in self.common.values() if label})

    @property
    def common_layers(self) -> dict[str, str | None]:
        """The layers of the common labels, as `layers`."""
        left_out = {label: None for label, new in self.common.items() if new is None}
        return {**left_out, **dict.fromkeys(self.common_labels, COMMON_LAYER)}

    def has_document(self, split: str, id: str) -> bool:
        """Tell whether a document in the files of a split belongs to the split."""
        lists = load_documents()[self.documents] if self.documents else {}
        if split in lists:
            return id in lists[split]
        return not any(id in listed for listed in lists.values())


def check_new_labels(labels: Mapping[str, str | None]) -> None:
    """Check that renamed labels do not collide.

    labels (Mapping[str, str | None]): Old label -> new label; None leaves a label out.
    RAISES (ValueError): A new label is empty, is one that is left out, or differs from another only
        in case or in blanks.
    """
    spellings: dict[str, str] = {}
    for old, new in labels.items():
        if new is None:
            continue
        if not new.strip():
            raise ValueError(f"the new label of {old!r} is empty; name one, or leave {old!r} out")
        if new in labels and labels[new] is None:
            raise ValueError(
                f"{old!r} becomes {new!r}, which is also a label that is left out; choose another"
            )
        other = spellings.setdefault("".join(new.casefold().split()), new)
        if other != new:
            raise ValueError(
                f"{other!r} and {new!r} differ only in case or in blanks: use one of them for both"
            )


@functools.cache
def load_documents() -> dict[str, dict[str, frozenset[str]]]:
    """Read splits.yml: list -> split -> ids of its documents."""
    return {
        name: {split: frozenset(ids.split()) for split, ids in splits.items()}
        for name, splits in read_yaml(DOCUMENTS).items()
    }


def load_tasks() -> dict[str, Task]:
    """Read the tasks of the catalogue by name."""
    return {
        name: read_settings(Task, fields, where=f"{TASKS.name}, {name}")
        for name, fields in read_yaml(TASKS).items()
    }


def find_task(name: str, lang: str | None = None) -> Task:
    """Look up a task.

    lang (str | None): Language of the notes; None for that of the task. The demo has two.
    RAISES (BioclinError): There is no such task, or not in this language.
    """
    tasks = load_tasks()
    if name not in tasks:
        raise BioclinError(f"task {name!r} is unknown, want one of {', '.join(tasks)}")
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
