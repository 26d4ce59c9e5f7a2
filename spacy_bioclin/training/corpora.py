"""Convert the corpora of the catalogue's tasks into Docs for training."""

from functools import partial
from pathlib import Path

from rich.console import Console

from ..catalog.tasks import SPLITS, Task, find_data
from ..corpora.convert import convert_to_docs
from ..errors import BioclinError
from ..parallel import show_progress


def convert_task(name: str, task: Task, out: Path) -> None:
    """Convert the splits of a task into train.spacy, dev.spacy and test.spacy.

    name (str): Name of the task.
    task (Task): See `find_task`.
    out (Path): Folder for the three files.
    RAISES (BioclinError): The corpus is not on this machine, or has no such split.
    """
    data = find_data(name)
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
                targets=task.targets,
                relations=task.relations or None,
                keep=partial(task.has_document, split),
                task=name,
                on_progress=on_progress,
                on_report=lambda losses: console.print(losses.to_table()),
            )
