"""`bioclin tasks`: the tasks of the catalogue, with their metrics and published results."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError
from ..language import shorten_language
from ..tables import AS_JSON, print_json, print_table

if TYPE_CHECKING:
    from ...catalog.tasks import Task

HEAD = ("name", "kind", "language", "metric", "access")
UNTESTED = "reader was not tested on real files"


def main(
    name: Annotated[
        str | None, typer.Argument(help="Task to show; default: list all", show_default=False)
    ] = None,
    paper: Annotated[
        str,
        typer.Option(
            help="Only tasks in its tables: carrino-2022, lewis-2020, mulyar-2020, blue, blurb"
        ),
    ] = "",
    kind: Annotated[
        str, typer.Option(help="Only tasks of this kind: entities, relations, pairs, texts")
    ] = "",
    lang: Annotated[
        str, typer.Option(callback=shorten_language, help="Only tasks in this language: es, en, fr")
    ] = "",
    as_json: AS_JSON = False,
) -> None:
    """List the tasks of the catalogue; with NAME, show one: splits, licence, how to get it, and
    published results."""
    from ...catalog.tasks import KINDS, PAPERS, find_task, load_tasks

    if name is not None:
        if paper or kind or lang:
            raise BioclinError("--paper, --kind and --lang choose from the list; leave out NAME")
        _show(name, find_task(name), as_json)
        return
    _check("--paper", paper, PAPERS)
    _check("--kind", kind, KINDS)
    known = load_tasks()
    _check("--lang", lang, sorted({task.lang for task in known.values()}))
    tasks = {
        name: task
        for name, task in known.items()
        if (not paper or paper in task.papers)
        and kind in ("", task.kind)
        and lang in ("", task.lang)
    }
    if as_json:
        print_json({name: task.model_dump() for name, task in tasks.items()})
        return
    rows = [
        (name, task.kind, task.lang, task.score, f"{task.access}{', untested' * task.untested}")
        for name, task in tasks.items()
    ]
    print_table(rows, HEAD)
    if any(task.untested for task in tasks.values()):
        typer.echo(f"untested: the {UNTESTED}.")
    typer.echo("More of one: bioclin tasks NAME. Convert one: bioclin prepare NAME OUT")


def _check(option: str, value: str, known: "tuple[str, ...] | list[str]") -> None:
    """Check the value of an option.

    RAISES (BioclinError): It is unknown.
    """
    from ...settings import check_choice

    if value:
        try:
            check_choice(value, known)
        except ValueError as error:
            raise BioclinError(f"{option} {value}: {error}") from None


def _show(name: str, task: "Task", as_json: bool) -> None:
    if as_json:
        print_json({"name": name, **task.model_dump()})
        return
    print_table(_describe(name, task))
    rows = [
        (row.system, _show_number(row.value), row.metric or task.score, row.source, row.note)
        for row in task.published
    ]
    if rows:
        head = ("system", "result", "metric", "source", "differs")
        print_table(rows, head, title="Published, in percent", right=("result",))
    typer.echo(f"Convert it: bioclin prepare {name} OUT{' --fold 0' if task.folds else ''}")


def _show_number(value: float) -> str:
    """Write a result with one decimal, or as many as it has."""
    return f"{value:.1f}" if value == round(value, 1) else f"{value:g}"


def _describe(name: str, task: "Task") -> Iterator[tuple[str, str]]:
    """Describe a task as names and values, without those that are empty."""
    folds = f"0 to {task.folds - 1}, --fold" if task.folds else ""
    if folds and task.has_own_test:
        folds += "; without it, the split of the authors"
    labels = task.relations or task.classes
    values = {
        "name": name,
        "kind": task.kind,
        "language": task.lang,
        "labels": labels if isinstance(labels, str) else ", ".join(labels),
        "layers": ", ".join(task.layer_names),
        "metric": task.score,
        "in training": task.metric,
        "tables of": ", ".join(task.papers),
        **{split: ", ".join(paths) for split, paths in task.splits.items()},
        "folds": folds,
        "format": f"{task.format}{f': the {UNTESTED}' * task.untested}",
        "access": task.access,
        "get it": task.obtain,
        "licence": task.licence,
        "source": f"{task.source} {task.commit}".strip(),
        "checksum": task.checksum,
        "cite": task.cite,
    }
    yield from ((field, value) for field, value in values.items() if value)
