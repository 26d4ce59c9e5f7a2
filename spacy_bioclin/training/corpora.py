"""Convert the corpora of the catalogue's tasks into Docs for training."""

from functools import partial
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..catalog.tasks import SPLITS, Task, check_fold, find_data
from ..corpora.convert import convert_to_docs, make_nlp
from ..corpora.tables.division import divide_shares, divide_tenths, leave_out_unlabeled
from ..corpora.tables.formats import read_texts
from ..corpora.texts import LabeledText, TableSummary, write_texts
from ..errors import BioclinError
from ..parallel import show_progress


def convert_task(name: str, task: Task, out: Path, fold: str = "") -> None:
    """Convert the splits of a task into train.spacy, dev.spacy and test.spacy.

    name (str): Name of the task.
    task (Task): See `find_task`.
    out (Path): Folder for the three files.
    fold (str): Fold of a cross-validation, see `Task.fold_names`; "" for the split of the task.
    RAISES (BioclinError): The corpus is not on this machine, or has no such split or fold.
    """
    check_fold(name, task, fold)
    for split in SPLITS:
        if split not in task.splits:
            raise BioclinError(f"task {name} has no {split} split: see `bioclin convert`")
    data = find_data(name)
    if task.is_table:
        _convert_texts(name, task, data, out, fold)
    else:
        _convert_notes(name, task, data, out)


def _convert_notes(name: str, task: Task, data: Path, out: Path) -> None:
    """Convert notes with entities or relations, and print the loss report of each split."""
    console = Console(stderr=True, highlight=False)
    for split in SPLITS:
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


def _convert_texts(name: str, task: Task, data: Path, out: Path, fold: str) -> None:
    """Convert texts or pairs of texts, and print how many of each label every split has."""
    console = Console(stderr=True, highlight=False)
    nlp = make_nlp(task.lang)
    splits, n_left_out = divide_texts(name, task, data, fold)
    summaries = {}
    for split, rows in splits.items():
        console.print(f"{name}, {split}", markup=False)
        with show_progress(console, "documents") as on_progress:
            summaries[split] = write_texts(
                nlp,
                rows,
                out / f"{split}.spacy",
                labels=task.classes or None,
                task=name,
                on_progress=on_progress,
            )
    console.print(_make_table(summaries))
    if n_left_out:
        console.print(f"left out: {n_left_out:,} without text or label", markup=False)


def divide_texts(
    name: str, task: Task, data: Path, fold: str = ""
) -> tuple[dict[str, list[LabeledText]], int]:
    """Read the texts or pairs of a task and divide them into splits.

    name, task, fold: See `convert_task`.
    data (Path): Folder of the corpora, see `find_data`.
    RETURNS (tuple[dict[str, list[LabeledText]], int]): Split -> rows, and the number of rows that
        were left out: one text of them is empty, or the task leaves out texts without labels.
    RAISES (BioclinError): A file cannot be read, or a split has no rows.
    """
    division = task.division
    files: dict[tuple[str, ...], list[LabeledText]] = {}
    n_left_out = 0
    for paths in task.splits.values():
        if tuple(paths) not in files:
            rows, n_empty = read_texts(task.format, [data / path for path in paths])
            n_left_out += n_empty
            if division and division.labeled_only:
                labeled = leave_out_unlabeled(rows, by=division.by)
                n_left_out += len(rows) - len(labeled)
                rows = labeled
            files[tuple(paths)] = rows
    own = {split: files[tuple(task.splits[split])] for split in SPLITS}
    if division is None:
        splits = own
    elif division.dev_tenth is None:
        splits = divide_shares(own["train"], by=division.by, shares=division.shares, fold=fold)
    else:
        test = own["test"] if task.has_own_test else []
        splits = divide_tenths(
            own["train"], test, by=division.by, dev_tenth=division.dev_tenth, fold=fold
        )
    for split, rows in splits.items():
        if not rows:
            raise BioclinError(f"task {name} has no texts for {split}: is the corpus complete?")
        if task.classes and task.exclusive and any(len(row.labels) != 1 for row in rows):
            raise BioclinError(f"task {name}, {split}: a text has not exactly one label")
    return splits, n_left_out


def _make_table(summaries: dict[str, TableSummary]) -> Table:
    """Make a table of the texts and labels of each split, for the terminal."""
    table = Table("", *summaries, title="Texts", box=SIMPLE_HEAD)
    first = next(iter(summaries.values()))
    table.add_row("all", *(f"{one.n_docs:,}" for one in summaries.values()))
    if first.scores is not None:
        ranges = [one.scores or (0.0, 0.0) for one in summaries.values()]
        table.add_row("scores", *(f"{low:g} to {high:g}" for low, high in ranges))
        return table
    for label in first.labels:
        table.add_row(label, *(f"{one.labels[label]:,}" for one in summaries.values()))
    if any(one.n_unlabeled for one in summaries.values()):
        table.add_row("without label", *(f"{one.n_unlabeled:,}" for one in summaries.values()))
    return table
