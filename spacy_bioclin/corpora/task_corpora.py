"""Corpora of several tasks, for training one pipeline on all of them and for its evaluation."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator
from spacy.language import Language
from spacy.training import Example

from ..errors import BioclinError
from ..settings import Settings, check_choice, read_settings
from ..types import TASK_KEY
from .overlap.docs import DocumentChoice
from .readers import Augmenter, check_max_tokens, read_examples

NAME = "spacy-bioclin.TaskCorpora.v1"
TASK_NAME = re.compile(r"\w[\w-]*")
RESERVED = "tasks"  # begins the names of the scores over all tasks
BALANCES = ("none", "dwa")


class TaskCorpus(Settings):
    """The corpus of a task, and what learns from it.

    path (str | None): A .spacy file or a folder of them; None in a config that is not filled in.
    heads (list[str] | None): Names of the components that learn from it and are scored on it; None
        for all components that learn.
    weight (float): Factor on the gradients of its batches.
    metric (str | None): Its main score, such as "ents_f"; None for what its heads are judged by.
    use_gold_ents (bool): See `make_corpus`.
    augment (bool): Read it through the augmenter of the corpora, if they have one.
    """

    path: str | None
    heads: list[str] | None = None
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    metric: str | None = None
    use_gold_ents: bool = False
    augment: bool = True

    @field_validator("heads")
    @classmethod
    def _check_heads(cls, heads: list[str] | None) -> list[str] | None:
        if heads is not None and not heads:
            raise ValueError("want names of components that learn from it, or null for all")
        return heads


class TaskCorpora:
    """The corpora of several tasks.

    tasks (Mapping[str, TaskCorpus]): Name of the task -> corpus.
    max_tokens (int | str): See `make_corpus`.
    balance (str): How the gradients of the tasks are weighted: "none" or "dwa".
    choice (DocumentChoice): Which documents are read.
    augmenter (Callable | None): See `make_corpus`.
    """

    def __init__(
        self,
        tasks: Mapping[str, TaskCorpus],
        *,
        max_tokens: int | Literal["auto"],
        balance: str,
        choice: DocumentChoice,
        augmenter: Augmenter | None = None,
    ) -> None:
        self.tasks = dict(tasks)
        self.max_tokens = max_tokens
        self.balance = balance
        self.choice = choice
        self.augmenter = augmenter

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Refuse to be read by `spacy train`, which would let every head learn from every corpus.

        RAISES (BioclinError): Always.
        """
        raise BioclinError(
            f"{NAME}: `spacy train` lets every component learn from every corpus and knows no "
            "scores of tasks; train this config with `bioclin train`"
        )

    def read(self, nlp: Language, *, head: str | None = None) -> Iterator[Example]:
        """Read the corpora, one after the other.

        head (str | None): Only the corpora that this component learns from; None for all.
        YIELDS (Example): Its reference has the name of the task in `doc.user_data[TASK_KEY]`.
        RAISES (BioclinError): A corpus has no path, is not there or is empty; or see
            `DocumentChoice.check`.
        """
        self.choice.check(Path(task.path) for task in self.tasks.values() if task.path is not None)
        for name, task in self.tasks.items():
            if head is not None and task.heads is not None and head not in task.heads:
                continue
            if task.path is None:
                raise BioclinError(
                    f"{NAME}: task {name} has no path; write it into the config, or give "
                    f"--corpora.train.tasks.{name}.path and --corpora.dev.tasks.{name}.path"
                )
            settings: dict[str, Any] = {
                "max_tokens": self.max_tokens,
                "use_gold_ents": task.use_gold_ents,
                "augmenter": self.augmenter if task.augment else None,
            }
            path = Path(task.path)
            for eg in read_examples(nlp, path=path, choice=self.choice, **settings):
                eg.reference.user_data[TASK_KEY] = name
                yield eg


def make_task_corpora(
    tasks: dict[str, dict[str, Any]],
    *,
    max_tokens: int | Literal["auto"] = 0,
    balance: str = "none",
    leave_out: Path | None = None,
    held_out: list[Path] | None = None,
    allow_overlap: bool = False,
    augmenter: Augmenter | None = None,
) -> TaskCorpora:
    """Make a reader for the corpora of several tasks (registered as
    `spacy-bioclin.TaskCorpora.v1`).

    tasks (dict[str, dict[str, Any]]): Name of a task, which begins the names of its scores ->
        the fields of `TaskCorpus`.
    max_tokens (int | str): How notes are cut, see `make_corpus`: "auto" for training, 0 for
        evaluation.
    balance (str): For training: "dwa" gives more weight to tasks whose loss falls slowly (dynamic
        weight average, Liu et al. 2019); "none" leaves the weights as they are.
    leave_out (Path | None): List of documents that all tasks leave out, see `read_id_list`.
    held_out (list[Path] | None): For training: .spacy files of test splits, or folders of them. A
        document that shares too many word 12-grams with one of them is an error, see `is_overlap`.
    allow_overlap (bool): Do not compare with `held_out`.
    augmenter (Callable | None): For training: see `make_corpus`.
    RETURNS (TaskCorpora): The reader.
    RAISES (BioclinError): There is no task, or a setting has a wrong value.
    """
    check_max_tokens(max_tokens, NAME)
    if not tasks:
        raise BioclinError(
            f"{NAME}: has no tasks; add a section such as [corpora.train.tasks.disease] with path "
            "and heads"
        )
    for name in tasks:
        if not TASK_NAME.fullmatch(name) or name == RESERVED:
            raise BioclinError(
                f"{NAME}: {name!r} cannot be the name of a task: want letters, digits, _ and -, "
                f'and another name than "{RESERVED}"'
            )
    try:
        check_choice(balance, BALANCES)
    except ValueError as error:
        raise BioclinError(f"{NAME}: balance = {balance!r}: {error}") from None
    corpora = {
        name: read_settings(TaskCorpus, values, where=f"{NAME}, task {name}")
        for name, values in tasks.items()
    }
    choice = DocumentChoice(
        NAME, leave_out=leave_out, held_out=held_out or (), allow_overlap=allow_overlap
    )
    settings: dict[str, Any] = {"max_tokens": max_tokens, "balance": balance}
    return TaskCorpora(corpora, **settings, choice=choice, augmenter=augmenter)
