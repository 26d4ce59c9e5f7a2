"""Check a file of metrics before anything is made from it."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from ..errors import BioclinError
from ..settings import Settings, read_json, read_settings

NAMES = ("corpus", "scores", "layers", "speed", "date", "versions", "commit")


class _Part(Settings):
    """A part of the metrics, with what the model card shows; there may be more in it."""

    model_config = ConfigDict(extra="ignore")


class Figures(_Part):
    """Counts and scores of a label, or of all."""

    tp: int
    fp: int
    fn: int
    p: float
    r: float
    f: float
    f_interval: Annotated[list[float], Field(min_length=2, max_length=2)]


class Strict(_Part):
    """Strict scores of a layer."""

    micro: Figures
    per_type: dict[str, Figures]


class Layer(_Part):
    """Scores of a layer."""

    docs: int
    strict: Strict
    annotated_labels: list[str] | None = None  # not written before 0.3


class Macro(_Part):
    """Means over the labels."""

    f: float


class RelationFigures(_Part):
    """Scores of relations between the entities of one kind."""

    docs: int
    level: str
    micro: Figures
    macro: Macro
    per_type: dict[str, Figures]


class Relations(_Part):
    """Scores of relations between found entities, unless there are none, and gold entities."""

    predicted_entities: RelationFigures | None
    gold_entities: RelationFigures | None


class Corpus(_Part):
    """The corpus that was scored."""

    name: str
    docs: int
    words: int
    tasks: list[str] = Field(default_factory=list)  # not written before 0.3


class Metrics(_Part):
    """What `bioclin evaluate` writes."""

    corpus: Corpus
    scores: dict[str, Any]
    layers: dict[str, Layer]
    relations: dict[str, Relations] = Field(default_factory=dict)  # not written before 0.3
    categories: dict[str, dict[str, Any]] = Field(default_factory=dict)  # not written before 0.3
    speed: dict[str, Any]
    date: str
    versions: dict[str, Any]
    commit: str | None


def read_metrics(path: Path) -> dict[str, Any]:
    """Read the file that `bioclin evaluate -o` wrote.

    RAISES (BioclinError): It cannot be read, or is another file.
    """
    metrics = read_json(path)
    if missing := [name for name in NAMES if name not in metrics]:
        raise BioclinError(
            f"{path}: has no {', '.join(missing)}; give the file that `bioclin evaluate -o` wrote"
        )
    read_settings(Metrics, metrics, where=str(path))
    return metrics
