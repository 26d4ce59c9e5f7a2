"""`bioclin annotate`: the entities of text files."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from rich.console import Console
    from spacy.language import Language
    from spacy.tokens import Doc, Span

STDIN = Path("-")


def main(
    pipeline: Annotated[str, typer.Argument(help="Folder or package name of the pipeline")],
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="IN...", help=".txt files, folders of them, or - (stdin)"),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON lines; without it, a table")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip and count files that cannot be read")
    ] = False,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="-1 for the CPU")] = -1,
    precision: Annotated[
        str | None, typer.Option("--precision", help="auto, fp32, bf16, fp16 (GPU) or int8 (CPU)")
    ] = None,
) -> None:
    """Find the entities of notes, one UTF-8 file a note."""
    from rich.console import Console

    from ..loading import load_pipeline

    if output and output.exists() and not overwrite:
        raise BioclinError(f"{output}: exists already; give another name, or --overwrite")
    files = find_texts(paths)
    nlp = load_pipeline(pipeline, gpu_id=gpu_id, precision=precision)
    console = Console(stderr=True, highlight=False)
    bad: list[BioclinError] = []
    records = _annotate(nlp, files, console, bad if skip_bad else None)
    if output:
        n_docs = _write_jsonl(records, output)
        console.print(f"{n_docs:,} documents written to {output}", markup=False)
    else:
        out = Console(highlight=False)
        for record in records:
            _print_record(record, out)
    for error in bad:
        console.print(f"skipped: {error}", markup=False)
    if bad:
        console.print(f"{len(bad):,} of {len(files):,} files skipped")


def find_texts(paths: Iterable[Path]) -> dict[str, Path]:
    """Find text files.

    paths (Iterable[Path]): Files, folders that are searched at any depth for .txt, or "-".
    RETURNS (dict[str, Path]): Document id -> file. The id is the name without suffix, with the path
        below the folder that was given.
    RAISES (BioclinError): A path does not exist, a folder has no .txt, or two files give one id.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if path == STDIN:
            named = {"stdin": path}
        elif path.is_dir():
            files = sorted(file for file in path.rglob("*.txt") if file.is_file())
            named = {file.relative_to(path).with_suffix("").as_posix(): file for file in files}
            if not named:
                raise BioclinError(f"{path}: no .txt file in this folder")
        elif path.exists():
            named = {path.stem: path}
        else:
            raise BioclinError(f"{path}: no such file or folder")
        for doc_id, file in named.items():
            if found.setdefault(doc_id, file) != file:
                raise BioclinError(
                    f"{file} and {found[doc_id]} would both be document {doc_id!r}: give the "
                    "folder above them, or annotate them apart"
                )
    return found


def _annotate(
    nlp: "Language",
    files: dict[str, Path],
    console: "Console",
    bad: list[BioclinError] | None,
) -> Iterator[dict[str, Any]]:
    """YIELDS (dict): `to_record` of each file in order, while a bar shows rate and time left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("annotating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} notes/s, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=len(files), rate="?")
        for doc, doc_id in nlp.pipe(_read(files, bad), as_tuples=True):
            yield to_record(doc, doc_id)
            speed = progress.tasks[bar].speed
            progress.update(bar, advance=1, rate=f"{speed:,.1f}" if speed else "?")


def _read(files: dict[str, Path], bad: list[BioclinError] | None) -> Iterator[tuple[str, str]]:
    """YIELDS (tuple): Text and id. Unreadable files go to `bad`, or are errors if it is None."""
    from ...corpora.files import read_text

    for doc_id, path in files.items():
        try:
            text = _read_stdin() if path == STDIN else read_text(path)
        except BioclinError as error:
            if bad is None:
                raise BioclinError(f"{error} (--skip-bad leaves such files out)") from None
            bad.append(error)
            continue
        yield text, doc_id


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BioclinError(f"stdin: not UTF-8 (byte {error.start})") from None


def to_record(doc: "Doc", doc_id: str) -> dict[str, Any]:
    """RETURNS (dict): Entities and span groups of a Doc, ready for JSON. Offsets are code points of
    the untouched text; `probability` is null where the component gives none; what a linker says
    stands in `kb_id` and `candidates`."""
    spans = {}
    for key, group in doc.spans.items():
        scores = group.attrs.get("scores", [None] * len(group))
        spans[key] = [_to_dict(span, p) for span, p in zip(group, scores, strict=True)]
    entities = [
        _to_dict(ent, ent._.probability if ent.has_extension("probability") else None)
        for ent in doc.ents
    ]
    return {"id": doc_id, "entities": entities, "spans": spans}


def _to_dict(span: "Span", probability: float | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "start": span.start_char,
        "end": span.end_char,
        "label": span.label_,
        "text": span.text,
        "probability": None if probability is None else round(float(probability), 4),
    }
    if span.kb_id_:
        record["kb_id"] = span.kb_id_
    if span.has_extension("candidates") and (candidates := span._.candidates):
        record["candidates"] = [
            {"kb_id": c.kb_id, "name": c.name, "score": round(c.score, 4)} for c in candidates
        ]
    return record


def _write_jsonl(records: Iterable[dict[str, Any]], path: Path) -> int:
    """Write all or nothing. RETURNS (int): The number of documents."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    n_docs = 0
    try:
        with partial.open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                n_docs += 1
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return n_docs


def _print_record(record: dict[str, Any], console: "Console") -> None:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    layers = {"ents": record["entities"], **record["spans"]}
    found = [(span["start"], layer, span) for layer, spans in layers.items() for span in spans]
    table = Table(box=SIMPLE, pad_edge=False, title=Text(record["id"]), title_justify="left")
    for head in ("Start", "End", "Label", "Text", "Probability", "Layer"):
        table.add_column(head, justify="right" if head in ("Start", "End") else "left")
    for start, layer, span in sorted(found, key=lambda row: row[:2]):
        p = "" if span["probability"] is None else f"{span['probability']:.2f}"
        text = Text(" ".join(span["text"].split()))
        table.add_row(str(start), str(span["end"]), Text(span["label"]), text, p, layer)
    console.print(table if found else Text(f"{record['id']}: nothing found"))
