"""The tasks of `tasks.yml`: corpora with their files, layers and licences."""

from pathlib import Path
from typing import NamedTuple

import srsly

TASKS = Path(__file__).with_name("tasks.yml")


class Task(NamedTuple):
    """A corpus and what is done with it.

    lang (str): Language of the notes.
    format (str): FORMAT of `bioclin convert`.
    splits (dict[str, list[str]]): Files or folders of each split, relative to the data folder.
    layers (dict[str, str]): Label -> layer; "*" stands for every label not named.
    metric (str): Score that chooses the best pipeline in training.
    licence (str): Licence of the corpus.
    source (str): Repository that the files come from.
    commit (str): Its commit.
    cite (str): What to cite.
    labels (dict[str, str]): Label in the file -> label in the Doc; "*" as above.
    """

    lang: str
    format: str
    splits: dict[str, list[str]]
    layers: dict[str, str]
    metric: str
    licence: str
    source: str
    commit: str
    cite: str
    labels: dict[str, str]


def load_tasks() -> dict[str, Task]:
    """RETURNS (dict[str, Task]): The tasks of the catalogue by name."""
    return {
        name: Task(**{"labels": {}, **fields}) for name, fields in srsly.read_yaml(TASKS).items()
    }
