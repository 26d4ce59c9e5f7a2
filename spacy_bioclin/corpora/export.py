"""Write documents in another format, and count what it cannot hold."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import BioclinError
from ..outputs import Output, write_new
from ..types import (
    AnnotatedText,
    NoteAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from .brat import ATTRIBUTE, read_normalization, states_concept_ids
from .docbin import make_docs_output
from .files import LAYOUT, to_file_path
from .formats import FORMATS, Format

NAME = re.compile(r"\S{1,60}")  # an id that a message can name
MAX_NAMED = 5  # spans in an error


def make_corpus_output(
    out: Path, format: str, *, inputs: Iterable[Path] = (), overwrite: bool
) -> Output:
    """Make the output for a corpus in a format, see `Output`.

    out (Path): A file or a folder, depending on the format.
    format (str): One of `FORMATS`.
    inputs, overwrite: See `check_output`.
    RAISES (BioclinError): See `check_output`; or the format is unknown, or the suffix is wrong.
    """
    if format not in FORMATS:
        raise BioclinError(f"--to is {format!r}, want one of {', '.join(FORMATS)}")
    if format == "spacy":
        return make_docs_output(out, inputs=inputs, overwrite=overwrite)
    form = FORMATS[format]
    suffixes, only = form.suffixes, ""
    if form.format_document or form.format_others:
        others = form.format_others([]) if form.format_others else ()
        names = "|".join(map(re.escape, (*suffixes, *others)))
        only = f".*({names})|.+%"  # a long name has folders
    elif out.suffix not in suffixes:
        raise BioclinError(f"{out}: want a file for {format}, ending in {' or '.join(suffixes)}")
    return Output(out, inputs=inputs, overwrite=overwrite, only=only, private=True)


def write_corpus(
    documents: Iterable[AnnotatedText],
    out: Path | Output,
    format: str,
    *,
    allow_loss: bool = False,
) -> tuple[int, Counter[str]]:
    """Write documents, whole or not at all, and read each again to see what the format lost.

    out (Path | Output): See `make_corpus_output`. Only the user may read it. At a path, an older
        corpus is replaced.
    format (str): One of `FORMATS`, but not "spacy".
    allow_loss (bool): Leave out spans that the format cannot hold.
    RETURNS (tuple[int, Counter[str]]): Number of documents; kind of annotation -> how many of them
        the format cannot hold.
    RAISES (BioclinError): The format cannot hold a text, not all spans, or not the concept ids.
    """
    form, n_docs, lost = FORMATS[format], 0, Counter[str]()
    output = make_corpus_output(out, format, overwrite=True) if isinstance(out, Path) else out
    with output.make() as made:
        path = made
        if form.format_document or form.format_others:
            made.mkdir(mode=0o700)
            path = made / f"documents{form.suffixes[0]}"
        if form.format_others:
            documents = list(documents)
            for name, content in form.format_others(documents).items():
                write_new(made / name, content.encode("utf-8"))
        if form.format_document:
            pairs = _write_folder(documents, made, form)
        else:
            pairs = _write_file(list(documents), path, form)
        for document, again in pairs:
            n_docs += 1
            if again.text != document.text:
                raise BioclinError(f"{document.id}: {format} cannot hold this text as it is")
            before, after = Counter(_list_contents(document)), Counter(_list_contents(again))
            missing, added = before - after, after - before
            lost.update(kind for kind, *_ in missing.elements())
            if lost["spans"] and not allow_loss:
                raise BioclinError(
                    f"{document.id}: {format} cannot hold all of its spans ("
                    f"{_name_missing(document, missing)}; do they overlap, end within a word, have "
                    "several fragments or a label with blanks?); write another format, or leave "
                    "them out with --allow-loss"
                )
            _check_added(document.id, format, Counter(kind for kind, *_ in added.elements()))
    return n_docs, lost


def _name_missing(document: AnnotatedText, missing: Counter[tuple[Any, ...]]) -> str:
    """List the ids of the first spans that a format has lost."""
    spans = (a for a in document.annotations if isinstance(a, SpanAnnotation))
    numbered = enumerate(spans, start=1)
    names = [
        span.id if NAME.fullmatch(span.id) else f"number {number}"
        for number, span in numbered
        if missing["spans", span.label, span.fragments]
    ]
    return ", ".join(names[:MAX_NAMED]) + ("…" if len(names) > MAX_NAMED else "")


def _check_added(id: str, format: str, added: Counter[str]) -> None:
    """Refuse a file in which a span has a concept id that is not its own."""
    if n_added := added["concept ids"]:
        raise BioclinError(
            f"{id}: {format} cannot hold the concept ids as they are: {n_added:,} would be others, "
            "or those of other spans (do annotations have the same id, or concept ids a blank or "
            "'|'?); correct the ids, or write another format"
        )


def _write_folder(
    documents: Iterable[AnnotatedText], folder: Path, form: Format
) -> Iterator[tuple[AnnotatedText, AnnotatedText]]:
    """Write the files of each document; an id that is there already gets a number.

    Names that differ in case alone are avoided, for some disks hold only one of them.
    """
    assert form.format_document
    ids: set[str] = set()
    taken: Counter[str] = Counter()
    for document in documents:
        id, number = document.id, 1
        while id in ids:
            number += 1
            id = f"{document.id}-{number}"
        ids.add(id)
        folded = unicodedata.normalize("NFC", to_file_path(id)).casefold()
        taken[folded] += 1
        name = to_file_path(id, taken[folded])
        path = folder / name
        for suffix, content in form.format_document(document).items():
            path = folder / f"{name}{suffix}"
            write_new(path, content.encode("utf-8"))
        yield document, (form.read_again or form.read)(path, _refuse)[0]


def _write_file(
    documents: list[AnnotatedText], path: Path, form: Format
) -> Iterator[tuple[AnnotatedText, AnnotatedText]]:
    assert form.format_file
    write_new(path, form.format_file(documents, path.suffix).encode("utf-8"))
    again = (form.read_again or form.read)(path, _refuse)
    if len(again) != len(documents):
        raise BioclinError(f"{path.name}: the format cannot hold all documents (are some empty?)")
    yield from zip(documents, again, strict=True)


def _refuse(name: str, error: BioclinError) -> None:
    raise BioclinError(f"{name}: the format cannot hold this: {error}")


def _list_contents(document: AnnotatedText) -> Iterator[tuple[Any, ...]]:
    """List the kind and content of all that is annotated; ids may differ between formats."""
    places = {
        annotation.id: (annotation.label, annotation.fragments)
        for annotation in document.annotations
        if isinstance(annotation, SpanAnnotation)
    }
    for annotation in document.annotations:
        if isinstance(annotation, SpanAnnotation):
            yield "spans", annotation.label, annotation.fragments
            for concept in annotation.concept_ids:
                yield "concept ids", annotation.fragments, concept
        elif isinstance(annotation, RelationAnnotation):
            yield "relations", annotation.label, len(annotation.args)
        elif isinstance(annotation, NoteAnnotation):
            if not (states_concept_ids(annotation) and annotation.target in places):
                yield "notes", annotation.kind, annotation.text
        elif match := ATTRIBUTE.fullmatch(annotation.raw):
            yield "attributes", match[1], match[3], places.get(match[2], match[2])
        elif (normal := read_normalization(annotation)) and normal[0] in places:
            pass  # a concept id of the span
        elif annotation.id and not annotation.id.startswith(LAYOUT):
            yield "other annotations", annotation.raw
