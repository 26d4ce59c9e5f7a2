"""What the catalogue says of a task."""

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from ...errors import BioclinError
from ...settings import Settings, read_yaml

DOCUMENTS = Path(__file__).parents[1] / "splits.yml"
SPLITS = ("train", "dev", "test")
# Layer of the common labels: doc.spans["clinical"].
COMMON_LAYER = "clinical"

Kind = Literal["entities", "relations", "pairs", "texts"]
Paper = Literal["carrino-2022", "lewis-2020", "mulyar-2020", "blue", "blurb"]
KINDS: tuple[str, ...] = get_args(Kind)
PAPERS: tuple[str, ...] = get_args(Paper)
# Published metrics that can score each kind of task, see `spacy_bioclin.evaluation.published`.
SCORES: dict[str, tuple[str, ...]] = {
    "entities": ("entities_strict_f", "blue_entities_f"),
    "relations": ("relations_micro_f", "relations_macro_f"),
    "pairs": ("pairs_accuracy", "pairs_pearson"),
    "texts": ("hoc_example_f", "hoc_macro_f", "texts_positive_f", "texts_accuracy"),
}
GRADED = "pairs_pearson"  # the metric of numbers instead of classes
POSITIVE = "texts_positive_f"  # the metric of one class


class PublishedRow(Settings):
    """A published result on a task.

    system (str): The encoder or system.
    value (float): The result, in percent.
    source (str): Paper and table that print it.
    metric (str): Its metric; "" for the `score` of the task.
    note (str): What else differs from how we measure.
    """

    system: str = Field(min_length=1)
    value: float = Field(ge=-100, le=100)
    source: str = Field(min_length=1)
    metric: str = ""
    note: str = ""


class Division(Settings):
    """How the texts or notes of files are divided into splits, by the SHA-256 of a key of each.

    Give either a tenth or shares. Each key is a number, its SHA-256, which modulo 10 is its tenth.

    by (str): The key: "text" (the first text of a pair), "id" of the row, or "document": its id up
        to the last "-".
    dev_tenth (int | None): The tenth of the files of train that is dev. In fold F, which divides
        the files of train and test together, test is tenth F and dev is tenth F + 5.
    shares (list[float]): Shares of train and dev in all keys, sorted by their SHA-256; test is the
        rest. In fold F the key begins with "F:".
    labeled_only (bool): Texts whose key has no label at all are left out, and counted.
    """

    by: Literal["text", "id", "document"]
    dev_tenth: int | None = Field(default=None, ge=0, le=9)
    shares: list[float] = Field(default_factory=list)
    labeled_only: bool = False

    @model_validator(mode="after")
    def _check(self) -> "Division":
        if (self.dev_tenth is None) == (not self.shares):
            raise ValueError("want either dev_tenth or shares")
        if self.shares and (len(self.shares) != 2 or min(self.shares) <= 0 or sum(self.shares) > 1):
            raise ValueError(
                "want shares of train and dev, which are above 0 and together at most 1"
            )
        return self


class Task(Settings):
    """A corpus and how it becomes Docs.

    kind (str): What is annotated, one of `KINDS`.
    lang (str): Language of the notes.
    format (str): FORMAT of `bioclin convert`.
    splits (dict[str, list[str]]): Files or folders of each split, relative to the data folder.
    layers (dict[str, str | None]): Label -> layer, None to leave it out; "*" means every label that
        is not named. Empty for texts and pairs.
    metric (str): Score that chooses the best pipeline in training.
    score (str): Metric that papers report, a key of `spacy_bioclin.evaluation.published.METRICS`.
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
    classes (list[str]): Labels of texts or pairs.
    exclusive (bool): Each text or pair has exactly one of the classes.
    positive (str): The class whose F1 is the score `texts_positive_f`.
    graded (bool): Pairs have a number instead of a class.
    division (Division | None): How texts or pairs are divided, if not every split has its own file.
    folds (int): Number of folds of a cross-validation, "0" to "n - 1"; 0 for one split.
    settings (dict[str, Any]): Path in the config of its kind -> value, where the task needs another
        one than the config has.
    papers (list[str]): Tables that the task is in, of `PAPERS`.
    published (list[PublishedRow]): Published results.
    access (str): "open", "agreement" (one has to be signed) or "request" (the authors are asked).
    obtain (str): How to get the corpus, if `spacy project assets` does not download it.
    checksum (str): SHA-256 of the download; "" if it is not known.
    untested (bool): The reader was tested only on files that were invented from the documentation.
    """

    kind: Kind
    lang: str
    format: str
    splits: dict[str, list[str]]
    metric: str
    score: str
    licence: str
    source: str
    commit: str
    cite: str
    layers: dict[str, str | None] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)
    targets: dict[str, str] = Field(default_factory=dict)
    common: dict[str, str | None] = Field(default_factory=dict)
    archive: dict[str, str] = Field(default_factory=dict)
    documents: str = ""
    relations: list[str] | Literal["all"] = Field(default_factory=list)
    nested: bool = False
    classes: list[str] = Field(default_factory=list)
    exclusive: bool = True
    positive: str = ""
    graded: bool = False
    division: Division | None = None
    folds: int = Field(default=0, ge=0, le=10)
    settings: dict[str, Any] = Field(default_factory=dict)
    papers: list[Paper] = Field(default_factory=list)
    published: list[PublishedRow] = Field(default_factory=list)
    access: Literal["open", "agreement", "request"] = "open"
    obtain: str = ""
    checksum: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    untested: bool = False

    @property
    def is_table(self) -> bool:
        """Whether the corpus is texts or pairs of texts with labels or scores."""
        return self.kind in ("pairs", "texts")

    @property
    def folder(self) -> str:
        """Folder of the corpus in the data folder. Several tasks can have the same."""
        return Path(self.splits["train"][0]).parts[0]

    @property
    def layer_names(self) -> list[str]:
        """The layers that the task annotates, sorted."""
        return sorted({layer for layer in self.layers.values() if layer})

    @property
    def fold_names(self) -> list[str]:
        """The folds of a cross-validation; [""] for a task with one split."""
        return [str(fold) for fold in range(self.folds)] or [""]

    @property
    def has_own_test(self) -> bool:
        """Whether test has other files than train, so that the task needs no fold."""
        return self.splits.get("test") != self.splits.get("train")

    @field_validator("common")
    @classmethod
    def _check_common(cls, common: dict[str, str | None]) -> dict[str, str | None]:
        check_new_labels(common)
        return common

    @model_validator(mode="after")
    def _check(self) -> "Task":
        check_kind(self)
        check_published(self)
        return self

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
        if self.division and split != "test":
            tenth = int(hashlib.sha256(id.encode("utf-8")).hexdigest(), 16) % 10
            return (tenth == self.division.dev_tenth) == (split == "dev")
        lists = load_documents()[self.documents] if self.documents else {}
        if split in lists:
            return id in lists[split]
        return not any(id in listed for listed in lists.values())


def check_fold(name: str, task: Task, fold: str) -> None:
    """Check that a task has a fold.

    name (str): Name of the task.
    fold (str): The fold; "" for the one split of the task.
    RAISES (BioclinError): It does not, or has no split without folds.
    """
    if fold and fold not in task.fold_names:
        has = f"folds 0 to {task.folds - 1}" if task.folds else "one split: leave out the fold"
        raise BioclinError(f"task {name} has no fold {fold!r}; it has {has}")
    if not fold and task.folds and not task.has_own_test:
        raise BioclinError(
            f"task {name} has no split of its own; choose one of its folds, 0 to {task.folds - 1}"
        )


def check_kind(task: Task) -> None:
    """Check that the settings of a task suit its kind.

    RAISES (ValueError): One does not; the message names it.
    """
    known = SCORES[task.kind]
    if task.score not in known:
        raise ValueError(f"score is {task.score!r}, want one of {', '.join(known)} for {task.kind}")
    if task.is_table:
        if task.graded == bool(task.classes) or task.graded != (task.score == GRADED):
            raise ValueError(
                f"want classes, or graded: true with the score {GRADED}, for {task.kind}"
            )
        if len(set(task.classes)) < len(task.classes):
            raise ValueError("classes has a label twice")
        if (task.score == POSITIVE) != (task.positive in task.classes):
            raise ValueError(f"want one of the classes as positive with the score {POSITIVE}")
        wrong: tuple[str, ...] = ("layers", "relations", "documents", "nested", "targets")
    else:
        if not task.layers:
            raise ValueError(f"layers is missing, which a task of {task.kind} needs")
        if task.division and (task.division.by != "id" or task.division.dev_tenth is None):
            raise ValueError("want division by id, with a dev_tenth, for notes")
        wrong = ("classes", "positive", "graded", "folds")
    for field in wrong:
        if getattr(task, field):
            raise ValueError(f"{field} is not for a task of {task.kind}")
    if bool(task.relations) != (task.kind == "relations"):
        raise ValueError("want relations for the kind relations, and only for it")
    if task.division and task.splits.get("dev") != task.splits.get("train"):
        raise ValueError("division divides the files of train, so dev needs the same ones")
    if task.division and task.division.shares and task.has_own_test:
        raise ValueError("division by shares makes test, too, so test needs the files of train")
    if task.folds and task.division is None:
        raise ValueError("folds need division, which says how they are made")


def check_published(task: Task) -> None:
    """Check that published rows have metrics of the kind, and that none is there twice.

    RAISES (ValueError): One does not, or is.
    """
    seen = set()
    for row in task.published:
        if row.metric and row.metric not in SCORES[task.kind]:
            raise ValueError(
                f"published: metric is {row.metric!r}, want one of "
                f"{', '.join(SCORES[task.kind])} for {task.kind}"
            )
        key = row.system, row.metric or task.score, row.source, row.note
        if key in seen:
            raise ValueError(f"published: {row.system!r} of {row.source!r} is there twice")
        seen.add(key)


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
