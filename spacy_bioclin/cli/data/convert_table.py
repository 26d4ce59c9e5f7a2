"""`bioclin convert-table`: texts or pairs of texts with labels or scores into Docs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError
from ..language import shorten_language

if TYPE_CHECKING:
    from ...corpora.texts import Columns, TableSummary


def main(
    table: Annotated[
        Path, typer.Argument(metavar="IN", help="A .csv or .tsv file with a header, or .jsonl")
    ],
    out: Annotated[Path, typer.Argument(help="NAME.spacy for the Docs")],
    lang: Annotated[
        str, typer.Option(callback=shorten_language, help="Language of the texts: es, en, fr")
    ],
    text: Annotated[str, typer.Option(help="Column of the text, or of the first text of a pair")],
    second: Annotated[
        str | None, typer.Option(help="Column of the second text; makes pairs of texts")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of the label or labels")] = None,
    separator: Annotated[
        str | None,
        typer.Option(help='Between the labels of a row ("|"), which may have none or several'),
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="Column of a graded score, such as a similarity")
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="Column of ids; default: name of IN, and number of the row")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="All labels, A,B,C, alike for all splits; others are errors"),
    ] = None,
    task: Annotated[str, typer.Option(help="Name of the task")] = "",
    plain_quotes: Annotated[
        bool,
        typer.Option("--plain-quotes", help="Quotation marks are characters like others"),
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip and count rows that cannot be used")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT")] = False,
) -> None:
    """Convert a table of texts, or of pairs of texts, with labels or scores into Docs.

    Labels become doc.cats, with every label of the table; a score becomes doc.cats["score"].
    """
    from rich.console import Console

    from ...corpora.docbin import make_docs_output
    from ...corpora.texts import Columns, convert_table
    from ...parallel import show_progress

    columns = Columns(text, second, label, score, id)
    _check_options(columns, separator, labels)
    output = make_docs_output(out, inputs=[table], overwrite=overwrite)
    console = Console(stderr=True, highlight=False)
    with show_progress(console, "texts" if second is None else "pairs") as on_progress:
        summary = convert_table(
            table,
            output,
            columns,
            lang=lang,
            separator=separator,
            labels=_split_labels(labels),
            task=task,
            skip_bad=skip_bad,
            plain_quotes=plain_quotes,
            on_skip=lambda error: console.print(f"skipped: {error}", markup=False),
            on_progress=on_progress,
        )
    _print_summary(summary, columns, out)


def _check_options(columns: "Columns", separator: str | None, labels: str | None) -> None:
    """Check that the options fit together.

    RAISES (BioclinError): They do not.
    """
    if (columns.label is None) == (columns.score is None):
        raise BioclinError("give either --label or --score, the column of what is to be learned")
    names: dict[str, str] = {}
    for option, name in columns._asdict().items():
        if name is not None and names.setdefault(name, option) != option:
            raise BioclinError(f"--{option} and --{names[name]} are the same column {name!r}")
    for option, value in (("separator", separator), ("labels", labels)):
        if value is not None and columns.score is not None:
            raise BioclinError(f"--{option} is for --label; leave it out with --score")
    if separator is not None and not separator.strip(" "):
        raise BioclinError('--separator wants what is between labels, such as "|"')


def _split_labels(labels: str | None) -> list[str] | None:
    """Read "A, B" as ["A", "B"].

    RAISES (BioclinError): One is empty, or is there twice.
    """
    if labels is None:
        return None
    names = [name.strip() for name in labels.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise BioclinError("--labels wants different names of labels (A,B,C)")
    return names


def _print_summary(summary: "TableSummary", columns: "Columns", out: Path) -> None:
    from rich.console import Console

    from ..tables import print_table

    console = Console(stderr=True, highlight=False)
    what = "texts" if columns.second is None else "pairs"
    skipped = f", {summary.n_skipped:,} rows skipped" if summary.n_skipped else ""
    console.print(f"{summary.n_docs:,} {what} written to {out}{skipped}", markup=False)
    if summary.scores is not None:
        low, high = summary.scores
        console.print(f"scores from {low:g} to {high:g}", markup=False)
        return
    rows = [[label, f"{n:,}"] for label, n in summary.labels.items()]
    if summary.n_unlabeled:
        rows.append(["(without label)", f"{summary.n_unlabeled:,}"])
    print_table(rows, ("Label", "Rows"), right=("Rows",), console=console)
    for label, n in summary.labels.items():
        if not n:
            typer.secho(
                f"bioclin: warning: no row has the label {label!r} of --labels",
                fg=typer.colors.YELLOW,
                err=True,
            )
