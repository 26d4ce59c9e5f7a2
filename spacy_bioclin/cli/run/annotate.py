"""`bioclin annotate`: find the entities, relations and categories of text files."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import BioclinError
from .note_tables import print_record

if TYPE_CHECKING:
    from rich.console import Console
    from spacy.language import Language
    from spacy.tokens import Doc, Span

    from ...annotations.relations import Relation
    from ...context.measurements.measurement import Measurement

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
    encoding: Annotated[
        str, typer.Option(help="Encoding of the files, such as cp1252; OUTPUT is in UTF-8")
    ] = "utf-8",
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
    precision: Annotated[
        str | None, typer.Option("--precision", help="auto, fp32, bf16, fp16 (GPU) or int8 (CPU)")
    ] = None,
) -> None:
    """Find the entities, relations and categories of notes, one file a note."""
    from rich.console import Console

    from ...corpora.files import check_encoding
    from ...outputs import Output
    from ..loading import list_pipeline, load_pipeline

    encoding = check_encoding(encoding)
    bad: list[BioclinError] = []
    files = find_texts(paths, bad.append if skip_bad else None)
    n_files = len(files) + len(bad)
    inputs = [*list_pipeline(pipeline), *files.values()]
    out = output and Output(output, inputs=inputs, overwrite=overwrite, private=True)
    nlp = load_pipeline(pipeline, gpu_id=gpu_id, precision=precision)
    console = Console(stderr=True, highlight=False)
    texts = _read(files, encoding, bad if skip_bad else None)
    records = _annotate(nlp, texts, len(files), console)
    if out:
        with out.open() as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        console.print(f"{n_files - len(bad):,} documents written to {output}", markup=False)
    else:
        stdout = Console(highlight=False)
        for record in records:
            print_record(record, stdout)
    for error in bad:
        console.print(f"skipped: {error}", markup=False)
    if bad:
        console.print(f"{len(bad):,} of {n_files:,} files skipped")


def find_texts(
    paths: Iterable[Path], on_bad: Callable[[BioclinError], None] | None = None
) -> dict[str, Path]:
    """Find text files.

    paths (Iterable[Path]): Files, folders that are searched at any depth for .txt, or "-".
    on_bad (Callable | None): Called with the error of what cannot be read in a folder; None raises.
    RETURNS (dict[str, Path]): Document id -> file. The id is the name without suffix, with the path
        below the folder that was given.
    RAISES (BioclinError): A path does not exist, a folder has no .txt, or two files give one id.
    """
    from ...files import find_files

    found: dict[str, Path] = {}
    for path in paths:
        named = [("stdin", STDIN)] if path == STDIN else find_files([path], [".txt"], on_bad=on_bad)
        for name, file in named:
            doc_id = Path(name).with_suffix("").as_posix()
            if found.setdefault(doc_id, file) != file:
                raise BioclinError(
                    f"{file} and {found[doc_id]} would both be document {doc_id!r}: give the "
                    "folder above them, or annotate them apart"
                )
    return found


def _annotate(
    nlp: "Language", texts: Iterable[tuple[str, str]], n_files: int, console: "Console"
) -> Iterator[dict[str, Any]]:
    """Annotate each file in order, while a bar shows how far it is."""
    from ...parallel import show_progress
    from ...runner.memory import map_docs

    with show_progress(console, "notes") as progress:
        for number, record in enumerate(map_docs(nlp, texts, to_record), start=1):
            yield record
            progress(number / n_files, number)


def _read(
    files: dict[str, Path], encoding: str, bad: list[BioclinError] | None
) -> Iterator[tuple[str, str]]:
    """Read texts with their ids; unreadable files go to `bad`, or are errors if it is None."""
    from ...corpora.files import read_text

    for doc_id, path in files.items():
        try:
            text = _read_stdin(encoding) if path == STDIN else read_text(path, encoding)
        except BioclinError as error:
            if bad is None:
                raise BioclinError(f"{error} (--skip-bad leaves such files out)") from None
            bad.append(error)
            continue
        yield text, doc_id


def _read_stdin(encoding: str) -> str:
    from ...corpora.files import decode

    return decode(sys.stdin.buffer.read(), encoding, "stdin")


def to_record(doc: "Doc", doc_id: str) -> dict[str, Any]:
    """Describe the entities and span groups of a Doc, ready for JSON.

    RETURNS (dict): Offsets are code points of the untouched text; `probability` is null where the
        component gives none; what a linker found is in `kb_id` and `candidates`. "measurements" and
        the `medication` of drugs are there if the pipeline has `bioclin_measurements`, "relations"
        if it finds relations, and "categories" if it classifies texts. Where `bioclin_context` ran,
        `negated` and the other attributes are true or false, and `context` has the cues that make
        them true.
    """
    from ...annotations.relations import RELATIONS_KEY, get_relations
    from ...context.measurements.store import get_measurements, has_measurements
    from ...context.medication.record import is_drug, read_medication
    from ...runner.notes.describe import describe_results
    from ...spans import get_layers

    layers: dict[str | None, list[dict[str, Any]]] = {}
    for key, spans, probabilities in get_layers(doc):
        records = [_to_dict(span, p) for span, p in zip(spans, probabilities, strict=True)]
        if "context" in doc.spans and key not in ("context", "sections", "section_titles"):
            for span, each in zip(spans, records, strict=True):
                each.update(_describe_context(span))
        for span, each in zip(spans, records, strict=True):
            if is_drug(span) and doc.has_annotation("SENT_START"):
                each["medication"] = read_medication(span).to_dict()
        layers[key] = records
    record: dict[str, Any] = {"id": doc_id, "entities": layers.pop(None), "spans": layers}
    if has_measurements(doc):
        found = get_measurements(doc)
        record["measurements"] = [_measurement_to_dict(one, doc.text) for one in found]
        record["results"] = describe_results(doc)
    if RELATIONS_KEY in doc.user_data:
        record["relations"] = [_relation_to_dict(one) for one in get_relations(doc)]
    if doc.cats:
        record["categories"] = {label: round(float(p), 4) for label, p in doc.cats.items()}
    return record


def _relation_to_dict(relation: "Relation") -> dict[str, Any]:
    head, child = (
        {
            "start": span.start_char,
            "end": span.end_char,
            "label": span.label_,
            "text": span.text,
            **({"kb_id": kb_id} if kb_id else {}),
        }
        for span, kb_id in zip(
            (relation.head, relation.child), relation.concepts or (None, None), strict=True
        )
    )
    p = relation.probability
    return {
        "label": relation.label,
        "head": head,
        "child": child,
        "probability": None if p is None else round(float(p), 4),
    }


def _measurement_to_dict(one: "Measurement", text: str) -> dict[str, Any]:
    kind, value, high, comparator, unit, start, end = one
    return {
        "start": start,
        "end": end,
        "kind": kind,
        "text": text[start:end],
        "value": value,
        "high": high,
        "comparator": comparator,
        "unit": unit,
    }


def _to_dict(span: "Span", probability: float | None) -> dict[str, Any]:
    from ...runner.notes.describe import describe_codes

    record: dict[str, Any] = {
        "start": span.start_char,
        "end": span.end_char,
        "label": span.label_,
        "text": span.text,
        "probability": None if probability is None else round(float(probability), 4),
    }
    if span.kb_id_:
        record["kb_id"] = span.kb_id_
    if codes := describe_codes(span):
        record["codes"] = codes
    if span.has_extension("candidates") and (candidates := span._.candidates):
        record["candidates"] = [
            {"kb_id": c.kb_id, "name": c.name, "score": round(c.score, 4), "part": c.part}
            for c in candidates
        ]
    return record


def _describe_context(span: "Span") -> dict[str, Any]:
    from ...context.rules.attributes import get_modifiers
    from ...context.rules.rule_data import KINDS

    modifiers = get_modifiers(span)
    found = {modifier.kind for modifier in modifiers}
    cues = [
        {
            "kind": m.kind,
            "rule": m.rule,
            "source": m.source,
            "start": m.cue.start_char,
            "end": m.cue.end_char,
        }
        for m in modifiers
    ]
    return {**{kind: kind in found for kind in KINDS}, "context": cues}
