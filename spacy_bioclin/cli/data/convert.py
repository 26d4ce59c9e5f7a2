"""`bioclin convert`: a corpus into Docs for training, or into files of another format."""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ...errors import BioclinError
from ..language import shorten_language

if TYPE_CHECKING:
    from ...catalog.tasks import Task
    from ...corpora.relations.gold import RelationLabels
    from ...outputs import Output


FORMAT_HELP = (
    "Format of IN: brat, columns, pubtator, i2b2, bioc, chemprot, ddi, or spacy (Docs); "
    "label-studio, doccano, prodigy or inception, the exports of annotation tools; i2b2-2010, "
    "i2b2-2012 or share-clef, which are not tested on real files"
)
RELATIONS_HELP = "Labels of the relations that Docs get, LABEL[,LABEL], or all; default: none"


def main(
    format: Annotated[str, typer.Argument(help=FORMAT_HELP)],
    paths: Annotated[list[Path], typer.Argument(metavar="IN...", help="Files or folders")],
    out: Annotated[
        Path,
        typer.Argument(
            help="NAME.spacy for Docs; a folder for brat, i2b2, label-studio and inception; else a "
            "file"
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(help="Format of OUT; default: spacy if OUT ends in .spacy, else brat"),
    ] = None,
    lang: Annotated[
        str, typer.Option(callback=shorten_language, help="Language of the notes: es, en, fr")
    ] = "",
    task: Annotated[
        str, typer.Option(help="Name of the task; one of the catalogue sets language and layers")
    ] = "",
    split: Annotated[
        str, typer.Option(help="Split of the task: train, dev or test, if IN holds several")
    ] = "",
    layer: Annotated[
        list[str] | None,
        typer.Option(help="Layer of all labels (phi), or of one (DATE=phi, DATE=null for none)"),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="New name of a label of the files (ENFERMEDAD=DISEASE)")
    ] = None,
    common: Annotated[
        bool, typer.Option("--common", help="Labels that tasks share, in the layer clinical")
    ] = False,
    annotated: Annotated[
        list[str] | None,
        typer.Option(help="Labels that were annotated, LABEL[,LABEL]; default: every label"),
    ] = None,
    relations: Annotated[str, typer.Option(help=RELATIONS_HELP)] = "",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip and count documents that cannot be read")
    ] = False,
    allow_loss: Annotated[
        bool,
        typer.Option("--allow-loss", help="Accept more than 0.1 % lost spans or relations"),
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Loss report as JSON; default: NAME.report.json beside OUT")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT and REPORT")] = False,
) -> None:
    """Convert a corpus into Docs, and report what became of every annotation; or to other files."""
    from ...catalog.tasks import load_tasks

    _refuse_tables(format)
    output, to, losses = _make_outputs(format, paths, out, to, report=report, overwrite=overwrite)
    known = load_tasks().get(task)
    chosen = _choose_labels(known, common, layer=layer, label=label, annotated=annotated)
    keep = _choose_documents(known, split, paths)
    if to != "spacy":
        docs_only = {"report": report, "common": common, "annotated": annotated}
        _refuse(to, {**docs_only, "relations": relations})
        rules = {"skip_bad": skip_bad, "allow_loss": allow_loss}
        _write_files(format, paths, chosen, keep, output, to, **rules)
        return
    _write_docs(
        format,
        paths,
        output,
        **chosen._asdict(),
        relations=_choose_relations(known, relations),
        keep=keep,
        lang=lang or (known.lang if known else ""),
        task=task,
        skip_bad=skip_bad,
        allow_loss=allow_loss,
        report=losses,
    )


def _refuse_tables(format: str) -> None:
    """Refuse a format of texts or pairs of texts.

    RAISES (BioclinError): It is one.
    """
    from ...catalog.tasks import load_tasks
    from ...corpora.tables.formats import TABLE_FORMATS

    if format in TABLE_FORMATS:
        names = [name for name, task in load_tasks().items() if task.format == format]
        raise BioclinError(
            f"format {format!r} has texts with classes or scores, which `bioclin prepare TASK OUT` "
            f"converts; TASK is {' or '.join(names)}"
        )


def _make_outputs(
    format: str,
    paths: list[Path],
    out: Path,
    to: str | None,
    *,
    report: Path | None,
    overwrite: bool,
) -> tuple["Output", str, "Output | None"]:
    """Make the output in the format TO, find out what that is, and make that of a loss report."""
    from ...corpora.docbin import SUFFIX
    from ...corpora.export import make_corpus_output
    from ...corpora.formats import list_inputs
    from ...corpora.report import make_report_output

    to = to or ("spacy" if out.suffix == SUFFIX else "brat")
    inputs = list_inputs(format, paths)
    output = make_corpus_output(out, to, inputs=inputs, overwrite=overwrite)
    losses = None
    if to == "spacy" or report is not None:
        losses = make_report_output(report, out, inputs=inputs, overwrite=overwrite)
    return output, to, losses


class _Labels(NamedTuple):
    """How labels are renamed, their layers, and which were annotated; see `convert_to_docs`."""

    labels: Mapping[str, str]
    layers: Mapping[str, str | None]
    annotated_labels: list[str] | None
    targets: Mapping[str, str] = MappingProxyType({})


def _choose_labels(
    task: "Task | None",
    common: bool,
    *,
    layer: list[str] | None,
    label: list[str] | None,
    annotated: list[str] | None,
) -> _Labels:
    """Read the options about labels; a task of the catalogue sets those that are not given.

    RAISES (BioclinError): An option is not of its form, or two contradict each other.
    """
    from ...catalog.tasks import check_new_labels

    if common:
        return _choose_common(task, {"layer": layer, "label": label, "annotated": annotated})
    labels = _parse_pairs("--label", label or []) if label else task.labels if task else {}
    if label:
        try:
            check_new_labels(labels)
        except ValueError as error:
            raise BioclinError(f"--label: {error}") from None
    layers: Mapping[str, str | None] = task.layers if task else {"*": "ents"}
    if layer:
        pairs = _parse_pairs("--layer", layer)
        layers = {name: None if place == "null" else place for name, place in pairs.items()}
    names = [name.strip() for option in annotated or [] for name in option.split(",")]
    if "" in names:
        raise BioclinError("--annotated wants names of labels (DISEASE,DRUG)")
    targets = task.targets if task else {}
    return _Labels(labels, layers, sorted(set(names)) if annotated else None, targets)


def _choose_relations(task: "Task | None", option: str) -> "RelationLabels | None":
    """Read --relations; a task of the catalogue sets what is not given.

    RAISES (BioclinError): A label is empty.
    """
    from ...corpora.relations.gold import ALL

    if not option:
        return task.relations if task else None
    labels = [label.strip() for label in option.split(",")]
    if "" in labels:
        raise BioclinError("--relations wants labels of relations (MODIFY,CAUSE), or all")
    return ALL if labels == [ALL] else sorted(set(labels))


def _choose_common(task: "Task | None", options: Mapping[str, list[str] | None]) -> _Labels:
    """Choose the common labels of a task.

    RAISES (BioclinError): It has none, or an option sets what the task does.
    """
    from ...catalog.tasks import load_tasks

    if task is None or not task.common:
        names = ", ".join(name for name, known in load_tasks().items() if known.common)
        raise BioclinError(f"--common needs --task with one of {names}; see docs/labels.md")
    for option in filter(options.get, options):
        raise BioclinError(f"--{option} cannot be given with --common, which sets it")
    labels = {label: new or label for label, new in task.common.items() if new or label != "*"}
    return _Labels(labels, task.common_layers, task.common_labels)


def _choose_documents(task: "Task | None", split: str, paths: list[Path]) -> Callable[[str], bool]:
    """Make what tells which documents to keep, by their id.

    RAISES (BioclinError): There is no such split, or IN holds several and none is chosen.
    """
    from ...catalog.tasks import SPLITS
    from ...corpora.convert import keep_all

    if split:
        if task is None:
            raise BioclinError(f"--split {split} needs --task with a name of the catalogue")
        if split not in SPLITS:
            raise BioclinError(f"--split is {split!r}, want one of {', '.join(SPLITS)}")
        return partial(task.has_document, split)
    shared = {Path(os.path.realpath(path)) for path in paths}
    splits = task.splits if task and (task.documents or task.division) else {}
    held = [
        split
        for split, folders in splits.items()
        if any(folder.as_posix().endswith(f"/{path}") for folder in shared for path in folders)
    ]
    if len(held) > 1:
        raise BioclinError(
            f"{paths[0]} holds the documents of {' and '.join(held)}: choose one with --split"
        )
    return keep_all


def _refuse(to: str, options: Mapping[str, Any]) -> None:
    """Refuse options that only Docs have.

    RAISES (BioclinError): One is given.
    """
    for option in filter(options.get, options):
        raise BioclinError(f"--{option}: only Docs have this; leave it out for {to}")


def _write_docs(format: str, paths: list[Path], out: "Output", **settings: Any) -> None:
    """Convert into Docs, see `convert_to_docs`."""
    from rich.console import Console

    from ...corpora.convert import convert_to_docs
    from ...parallel import show_progress

    console = Console(stderr=True, highlight=False)
    with show_progress(console, "documents") as on_progress:
        convert_to_docs(
            format,
            paths,
            out,
            on_progress=on_progress,
            on_skip=lambda error: console.print(f"skipped: {error}", markup=False),
            on_report=lambda losses: console.print(losses.to_table()),
            **settings,
        )


def _write_files(
    format: str,
    paths: list[Path],
    chosen: _Labels,
    keep: Callable[[str], bool],
    out: "Output",
    to: str,
    *,
    skip_bad: bool,
    allow_loss: bool,
) -> None:
    """Convert into files of another format, see `write_corpus`."""
    from rich.console import Console

    from ...corpora.convert import make_on_error, read_corpus
    from ...corpora.export import write_corpus
    from ...parallel import show_progress

    console = Console(stderr=True, highlight=False)

    def on_skip(error: BioclinError) -> None:
        console.print(f"skipped: {error}", markup=False)

    on_error = make_on_error(on_skip if skip_bad else None)
    with show_progress(console, "documents") as show:
        documents = read_corpus(
            format,
            paths,
            labels=chosen.labels,
            targets=chosen.targets,
            keep=keep,
            on_error=on_error,
            on_progress=show,
        )
        n_docs, lost = write_corpus(documents, out, to, allow_loss=allow_loss)
    console.print(f"{n_docs:,} documents written to {out.path}", markup=False)
    for kind, n in sorted(lost.items()):
        console.print(f"left out, for {to} cannot hold them: {n:,} {kind}", markup=False)


def _parse_pairs(option: str, values: Iterable[str]) -> dict[str, str]:
    """Read "phi" as {"*": "phi"} and "DATE=phi" as {"DATE": "phi"}.

    RAISES (BioclinError): A name is missing, or a label is given twice with different names.
    """
    pairs: dict[str, str] = {}
    for value in values:
        label, _, name = (part.strip() for part in value.rpartition("="))
        if not name:
            what = "the name of a layer (phi)" if option == "--layer" else "a new name (DISEASE)"
            raise BioclinError(f"{option} wants {what}, or such a name for one label (DATE=phi)")
        if pairs.setdefault(label or "*", name) != name:
            what = repr(label) if label else "all labels"
            raise BioclinError(
                f"{option} is given twice for {what}: {pairs[label or '*']!r} and {name!r}; choose "
                "one of them"
            )
    return pairs
