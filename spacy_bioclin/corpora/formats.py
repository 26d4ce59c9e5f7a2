"""Find a format by its name, and the files of a corpus."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from spacy.vocab import Vocab

from .. import files
from ..types import (
    AnnotatedText,
    Annotation,
    Fragment,
    NoteAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from . import multiclin
from .agreement.i2b2_2010 import read_i2b2_2010
from .agreement.i2b2_2012 import read_i2b2_2012
from .agreement.i2b2_xml import format_i2b2, read_i2b2
from .agreement.share_clef import read_share_clef
from .bioc_format import format_bioc, read_bioc
from .brat import NO_BLANK, format_brat, read_brat
from .columns import format_columns, read_columns
from .docbin import read_docs
from .docs import doc_to_annotated
from .files import OnError, raise_error, skip_errors
from .pubtator import format_pubtator, read_pubtator
from .relations.chemprot import ABSTRACTS, read_chemprot
from .relations.ddi import read_ddi
from .relations.gold import Level
from .tools.doccano import format_doccano, read_doccano
from .tools.inception import TYPE_SYSTEM, format_inception, format_type_system, read_inception
from .tools.label_studio import (
    CONFIG,
    format_label_config,
    format_label_studio,
    read_label_studio,
    read_label_studio_predictions,
)
from .tools.prodigy import format_prodigy, read_prodigy, read_prodigy_tasks

ROLE = re.compile(r"[^\s:]+")  # of an argument in brat


class Format(NamedTuple):
    """How files of a format are read and written.

    suffixes (tuple[str, ...]): Ends of the names of the files to read in a folder.
    read (Callable): Reads one file.
    format_document (Callable | None): Makes the files of a document, suffix -> content.
    format_file (Callable | None): Makes one file of all documents, given its suffix.
    level (Level): What its relations are between, see `find_gold_relations`.
    read_again (Callable | None): Reads a file that was just written, to see what the format could
        not hold; None for `read`. It also reads what nobody has corrected yet.
    format_others (Callable | None): Makes files that belong to no document, name -> content. The
        output is then a folder, in which a file of all documents is called "documents".
    """

    suffixes: tuple[str, ...]
    read: Callable[[Path, OnError], list[AnnotatedText]]
    format_document: Callable[[AnnotatedText], dict[str, str]] | None = None
    format_file: Callable[[Sequence[AnnotatedText], str], str] | None = None
    level: Level = "mention"
    read_again: Callable[[Path, OnError], list[AnnotatedText]] | None = None
    format_others: Callable[[Sequence[AnnotatedText]], dict[str, str]] | None = None


@skip_errors
def read_spacy(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read gold or predicted Docs back into annotations, see `doc_to_annotated`."""
    docs = enumerate(read_docs(path, Vocab()), start=1)
    return [doc_to_annotated(doc, id=f"{path.stem}-{number}") for number, doc in docs]


def leave_out_unwritable(annotated: AnnotatedText) -> AnnotatedText:
    """Leave out the annotations that no line of brat can hold, such as labels with blanks.

    `write_corpus` counts them.

    RETURNS (AnnotatedText): The document; without what is about an annotation that is left out.
    """
    out = {a.id for a in annotated.annotations if not _is_writable(a)}
    if not out:
        return annotated
    kept: list[Annotation] = []
    for a in filter(_is_writable, annotated.annotations):
        targets = [a.target] if isinstance(a, NoteAnnotation) else []
        targets += [target for _, target in a.args] if isinstance(a, RelationAnnotation) else []
        if out.isdisjoint(targets):
            kept.append(a)
    return annotated._replace(annotations=tuple(kept))


def _is_writable(annotation: Annotation) -> bool:
    if isinstance(annotation, SpanAnnotation):
        return NO_BLANK.fullmatch(annotation.label) is not None
    if isinstance(annotation, RelationAnnotation):
        pairs = [ROLE.fullmatch(role) and NO_BLANK.fullmatch(id) for role, id in annotation.args]
        return NO_BLANK.fullmatch(annotation.label) is not None and bool(pairs) and all(pairs)
    if isinstance(annotation, NoteAnnotation):
        return NO_BLANK.fullmatch(annotation.kind) is not None and "\n" not in annotation.text
    return True


FORMATS = {
    "brat": Format(
        (".ann", ".txt"),
        read_brat,
        format_document=lambda document: format_brat(leave_out_unwritable(document)),
    ),
    "columns": Format(
        (".tsv", ".conll", ".iob", ".bio"),
        read_columns,
        format_file=lambda documents, suffix: format_columns(documents),
    ),
    "pubtator": Format(
        (".txt", ".pubtator"),
        read_pubtator,
        format_file=lambda documents, suffix: format_pubtator(documents),
        level="concept",
    ),
    "i2b2": Format(
        (".xml",), read_i2b2, format_document=lambda document: {".xml": format_i2b2(document)}
    ),
    "bioc": Format(
        (".xml", ".json"),
        read_bioc,
        format_file=lambda documents, suffix: format_bioc(documents, as_json=suffix == ".json"),
        level="either",
    ),
    "chemprot": Format(ABSTRACTS, read_chemprot),
    "ddi": Format((".xml",), read_ddi),
    "i2b2-2010": Format((".con",), read_i2b2_2010),
    "i2b2-2012": Format((".xml",), read_i2b2_2012),
    "share-clef": Format((".txt",), read_share_clef),
    "label-studio": Format(
        (".json",),
        read_label_studio,
        format_file=lambda documents, suffix: format_label_studio(documents),
        read_again=read_label_studio_predictions,
        format_others=lambda documents: {CONFIG: format_label_config(documents)},
    ),
    "doccano": Format(
        (".jsonl",),
        read_doccano,
        format_file=lambda documents, suffix: format_doccano(documents),
    ),
    "prodigy": Format(
        (".jsonl",),
        read_prodigy,
        format_file=lambda documents, suffix: format_prodigy(documents),
        read_again=read_prodigy_tasks,
    ),
    "inception": Format(
        (".xmi", ".zip"),
        read_inception,
        format_document=format_inception,
        format_others=lambda documents: {TYPE_SYSTEM: format_type_system()},
    ),
    "spacy": Format((".spacy",), read_spacy, level="either"),
    **{
        f"multiclin-{kind}": Format((".conll.xz",), read)
        for kind, read in multiclin.READERS.items()
    },
}


def find_files(format: str, paths: Iterable[Path]) -> list[Path]:
    """Find the files of a corpus; of a pair of brat files, one.

    format (str): One of `FORMATS`.
    paths (Iterable[Path]): Files, and folders that are searched at any depth.
    RETURNS (list[Path]): The files, in the order of the paths, sorted within a folder.
    RAISES (BioclinError): A path does not exist, or a folder holds no such file.
    """
    found: dict[Path, Path] = {}
    for _, file in files.find_files(paths, FORMATS[format].suffixes):
        found.setdefault(file.with_suffix("") if format == "brat" else file, file)
    return list(found.values())


def list_inputs(format: str, paths: Iterable[Path]) -> list[Path]:
    """List the paths of a corpus and all files in them that the format may read.

    format (str): One of `FORMATS`; of another, only the paths are listed.
    """
    ends = FORMATS[format].suffixes if format in FORMATS else ()
    suffixes = {f".{end.rpartition('.')[2]}" for end in ends}
    inside = (file for path in paths if path.is_dir() for file in path.rglob("*"))
    return [*paths, *(file for file in inside if file.suffix in suffixes)]


def relabel(annotated: AnnotatedText, labels: Mapping[str, str]) -> AnnotatedText:
    """Rename the labels of spans.

    annotated (AnnotatedText): The document.
    labels (Mapping[str, str]): Old label -> new label; "*" means every label not named.
    RETURNS (AnnotatedText): The document with new labels.
    """
    if not labels:
        return annotated
    annotations = tuple(
        a._replace(label=labels.get(a.label) or labels.get("*") or a.label)
        if isinstance(a, SpanAnnotation)
        else a
        for a in annotated.annotations
    )
    return annotated._replace(annotations=annotations)


def add_targets(annotated: AnnotatedText, targets: Mapping[str, str]) -> AnnotatedText:
    """Add a span over the target of each relation that starts at a span with one of some labels.

    In NUBes the scope of a cue is the second argument of a relation, whatever its own label is.

    annotated (AnnotatedText): The document.
    targets (Mapping[str, str]): Label of the first argument -> label of the span over the second.
    RETURNS (AnnotatedText): The document with those spans, each once, after its own annotations.
    """
    if not targets:
        return annotated
    spans = {a.id: a for a in annotated.annotations if isinstance(a, SpanAnnotation)}
    found: dict[tuple[str, tuple[Fragment, ...]], SpanAnnotation] = {}
    for relation in annotated.annotations:
        if not isinstance(relation, RelationAnnotation) or len(relation.args) != 2:
            continue
        source, target = (spans.get(id) for _, id in relation.args)
        if source and target and source.label in targets:
            new = SpanAnnotation(relation.id, targets[source.label], target.fragments)
            found.setdefault((new.label, new.fragments), new)
    return annotated._replace(annotations=(*annotated.annotations, *found.values()))
