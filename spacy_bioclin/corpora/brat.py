"""brat standoff: NAME.txt with the text, NAME.ann with one annotation a line.

Format: https://brat.nlplab.org/standoff.html
"""

import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from ..errors import BioclinError
from ..types import (
    AnnotatedText,
    Annotation,
    Fragment,
    NoteAnnotation,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from .files import BOM, LAYOUT, OnError, from_file_path, raise_error, read_text, skip_errors

LINE = re.compile(r"[^\n]*\n|[^\n]+")
NO_BLANK = re.compile(r"\S+")
# The last group of each is what is between the annotation and the newline.
PAIR = "[0-9]{1,18} [0-9]{1,18}"
SPAN = re.compile(rf"(T\S*)\t(\S+) ({PAIR}(?:;{PAIR})*)\t(.*?)(\r?)")
RELATION = re.compile(r"(R\S*)\t(\S+)((?: [^\s:]+:\S+)+)(\s*)")
NOTE = re.compile(r"(#\S*)\t(\S+) (\S+)\t(.*?)(\r?)")
# Name, id of what it is about, and perhaps a value.
ATTRIBUTE = re.compile(r"A\S*\t(\S+) (\S+)(?: (.+))?")
# An entry of a terminology: "N1<TAB>Reference T1 SNOMED:386661006<TAB>Fiebre".
NORMALIZATION = re.compile(r"N\S*\t\S+ (\S+) ([^\s:]+):(\S+)(?:\t.*)?")
# Ontologies whose ids have their name in them; for others the part after the colon is the id.
OBO = frozenset(
    """BTO CHEBI CL CLO DOID ECTO ENVO FMA GO HP MAXO MONDO MP NBO NCBITAXON NCIT OBA OBI PATO
    PR SO SYMP UBERON VO""".split()  # noqa: SIM905
)
# An annotator's note made of words that all hold a digit gives terminology ids: "54115009",
# "8000/6", "CHEBI:15377". "check" does not, nor does "<null>", PharmaCoNER's "no code".
CONCEPT_IDS = re.compile(r"\s*\S*\d\S*(?:\s+\S*\d\S*)*\s*")
# DisTEMIST, SympTEMIST and MedProcNER: ids joined by "+", then their relation to the mention, as in
# "94222008+94381002 COMPOSITE", "235651006+NO_CODE EXACT+NO_CODE" or "N+O N+O" (no code).
JOINT = re.compile(r"(?<!\dE)\+")
RELATED_IDS = re.compile(r"\s*(\S+)\s+(?:EXACT|NARROW|COMPOSITE|NO_CODE)(?:\+[A-Z_]+)*\s*")
# An id of 15 digits or more that a spreadsheet has rounded. Some notes of SympTEMIST and MedProcNER
# have one.
ROUNDED_ID = re.compile(r"\d(?:\.\d+)?E\+\d+")
SHAPES = {
    "T": "T1<TAB>Label start end<TAB>text",
    "R": "R1<TAB>Label Arg1:T1 Arg2:T2",
    "#": "#1<TAB>AnnotatorNotes T1<TAB>note",
}
EQUIVALENT = "*<TAB>Label T1 T2"


def parse_ann(ann: str, *, text_length: int, source: str) -> tuple[Annotation, ...]:
    """Read the content of an .ann file.

    What separates two annotations, if it is not a single newline (CRLF, blank lines, trailing
    blanks, a last line without newline), is kept between them as `OtherAnnotation(id="",
    raw=...)`, so that `format_ann` gives the same bytes.

    ann (str): The content.
    text_length (int): Length of the annotated text in code points.
    source (str): Name of the file, for error messages.
    RETURNS (tuple[Annotation, ...]): The annotations, in file order.
    RAISES (BioclinError): A T, R, # or * line is malformed, the id of a T line is that of another,
        or an offset is past the end of the text.
    """
    annotations: list[Annotation] = []
    spans: set[str] = set()
    gap = BOM if ann.startswith(BOM) else ""  # what separates the last annotation from here
    for number, line in enumerate(LINE.findall(ann.removeprefix(BOM)), start=1):
        content = line.rstrip("\n")
        if not content.strip():
            gap += line
            continue
        if gap != ("\n" if annotations else ""):
            annotations.append(OtherAnnotation("", gap))
        where = f"{source}, line {number}"
        annotation, tail = _parse_line(content, text_length, where)
        if isinstance(annotation, SpanAnnotation):
            if annotation.id in spans:
                raise BioclinError(
                    f"{where}: another line has the id {annotation.id} too, so that notes and "
                    "relations of the two cannot be told apart; give one of them a new id"
                )
            spans.add(annotation.id)
        annotations.append(annotation)
        gap = tail + line[len(content) :]
    if gap != ("\n" if annotations else ""):
        annotations.append(OtherAnnotation("", gap))
    return _with_concept_ids(annotations)


def format_ann(annotations: Iterable[Annotation]) -> str:
    """Write annotations as the content of an .ann file; the inverse of `parse_ann`.

    Annotations of another format get ids as brat wants them, each its own, and concept ids that no
    line of the document states get an AnnotatorNotes line.

    annotations (Iterable[Annotation]): The annotations, in the order of their lines.
    RETURNS (str): The content.
    RAISES (BioclinError): A label holds a blank.
    """
    annotations = _as_brat(annotations)
    parts: list[str] = []
    for annotation, following in zip(annotations, (*annotations[1:], None), strict=False):
        parts.append(_format_line(annotation))
        if not _is_gap(annotation) and not _is_gap(following):
            parts.append("\n")
    return "".join(parts)


def read_brat_file(txt: Path, ann: Path | None = None) -> AnnotatedText:
    """Read one document.

    txt (Path): The text.
    ann (Path | None): Its annotations; None for NAME.ann beside the text, if there is one.
    RETURNS (AnnotatedText): The document; its id is the file name without suffix.
    RAISES (BioclinError): A file is missing, not UTF-8 or malformed; it names file and line.
    """
    text = read_text(txt)
    id = from_file_path(txt)
    if ann is None:
        ann = txt.with_suffix(".ann")
        if not ann.exists():
            return AnnotatedText(id, text, (), str(txt))
    annotations = parse_ann(read_text(ann), text_length=len(text), source=str(ann))
    return AnnotatedText(id, text, annotations, str(ann))


@skip_errors
def read_brat(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read the document that an .ann or a .txt file belongs to; both files have to be there."""
    if path.suffix not in (".ann", ".txt"):
        raise BioclinError(f"{path}: brat files end in .ann and .txt")
    return [read_brat_file(path.with_suffix(".txt"), path.with_suffix(".ann"))]


def format_brat(annotated: AnnotatedText) -> dict[str, str]:
    """Write a document as two files.

    RETURNS (dict[str, str]): Suffix -> content.
    """
    return {".txt": annotated.text, ".ann": format_ann(annotated.annotations)}


def _parse_line(line: str, text_length: int, where: str) -> tuple[Annotation, str]:
    """Parse one line into its annotation and the blanks at its end."""
    if line[0] == "T" and (match := SPAN.fullmatch(line)):
        fragments = tuple(_fragment(pair, text_length, where) for pair in match[3].split(";"))
        return SpanAnnotation(match[1], match[2], fragments, match[4]), match[5]
    if line[0] == "R" and (match := RELATION.fullmatch(line)):
        args = [arg.split(":", 1) for arg in match[3].split()]
        return RelationAnnotation(match[1], match[2], tuple((r, t) for r, t in args)), match[4]
    if line[0] == "#" and (match := NOTE.fullmatch(line)):
        return NoteAnnotation(match[1], match[2], match[3], match[4]), match[5]
    letter = line.lstrip()[0]
    if letter in SHAPES:
        raise BioclinError(f"{where}: malformed {letter} line, expected {SHAPES[letter]}")
    tail = "\r" if line.endswith("\r") else ""
    raw = line.removesuffix("\r")
    if raw.split() == ["*"]:
        raise BioclinError(f"{where}: malformed * line, expected {EQUIVALENT}")
    return OtherAnnotation(raw.split()[0], raw), tail


def _fragment(pair: str, text_length: int, where: str) -> Fragment:
    start, end = map(int, pair.split())
    if end > text_length:
        raise BioclinError(
            f"{where}: offset {end} is past the end of the text ({text_length} characters); "
            "was the text changed, or its line ends, after it was annotated?"
        )
    if start > end:
        raise BioclinError(f"{where}: start {start} is after end {end}")
    return start, end


def _format_line(annotation: Annotation) -> str:
    if isinstance(annotation, SpanAnnotation):
        if not NO_BLANK.fullmatch(annotation.label):
            raise BioclinError(f"label {annotation.label!r} holds a blank, which brat cannot have")
        offsets = ";".join(f"{start} {end}" for start, end in annotation.fragments)
        surface = annotation.surface.replace("\n", " ")
        return f"{annotation.id}\t{annotation.label} {offsets}\t{surface}"
    if isinstance(annotation, RelationAnnotation):
        args = " ".join(f"{role}:{target}" for role, target in annotation.args)
        return f"{annotation.id}\t{annotation.label} {args}"
    if isinstance(annotation, NoteAnnotation):
        return f"{annotation.id}\t{annotation.kind} {annotation.target}\t{annotation.text}"
    return annotation.raw


def _is_gap(annotation: Annotation | None) -> bool:
    return isinstance(annotation, OtherAnnotation) and not annotation.id


def _written_ids(note: NoteAnnotation) -> list[str]:
    """List the terminology ids in a note as they are written."""
    if note.kind != "AnnotatorNotes":
        return []
    if match := RELATED_IDS.fullmatch(note.text):
        return [id for id in JOINT.split(match[1]) if any(map(str.isdigit, id))]
    return note.text.split() if CONCEPT_IDS.fullmatch(note.text) else []


def _concept_ids(note: NoteAnnotation) -> tuple[str, ...]:
    return tuple(id for id in _written_ids(note) if not ROUNDED_ID.fullmatch(id))


def states_concept_ids(note: NoteAnnotation) -> bool:
    """Check whether a note says nothing but the concept ids of a span."""
    return note.text.split() == list(_concept_ids(note)) != []


def read_normalization(annotation: Annotation) -> tuple[str, str] | None:
    """Read a normalization line: the id of what it is about, and a concept id as a terminology has
    it, "386661006" for SNOMED:386661006 and "HP:0001945" for HP:0001945 and HPO:HP:0001945.

    RETURNS (tuple[str, str] | None): Both ids; None for another line.
    """
    if not isinstance(annotation, OtherAnnotation):
        return None
    match = NORMALIZATION.fullmatch(annotation.raw)
    if match is None:
        return None
    whole = match[2].upper() in OBO and ":" not in match[3]
    return match[1], f"{match[2]}:{match[3]}" if whole else match[3]


def count_rounded_ids(annotations: Iterable[Annotation]) -> int:
    """Count the terminology ids that a spreadsheet has rounded ("1.59978E+16") and so destroyed."""
    notes = (a for a in annotations if isinstance(a, NoteAnnotation))
    return sum(bool(ROUNDED_ID.fullmatch(id)) for note in notes for id in _written_ids(note))


def _with_concept_ids(annotations: list[Annotation]) -> tuple[Annotation, ...]:
    """Copy the terminology ids in notes and normalization lines to the spans they are about."""
    found: dict[str, tuple[str, ...]] = {}
    for each in annotations:
        if isinstance(each, NoteAnnotation):
            found[each.target] = found.get(each.target, ()) + _concept_ids(each)
    for target, concept in filter(None, map(read_normalization, annotations)):
        if concept not in found.get(target, ()):
            found[target] = (*found.get(target, ()), concept)
    return tuple(
        annotation._replace(concept_ids=found.get(annotation.id, ()))
        if isinstance(annotation, SpanAnnotation)
        else annotation
        for annotation in annotations
    )


def _as_brat(annotations: Iterable[Annotation]) -> tuple[Annotation, ...]:
    """Adapt annotations of any format to brat.

    Ids begin with T, R and #, and spans with the same id get other ids, but for the first; each
    span with concept ids that no line states gets a note; the layout of another format is left out.
    Annotations that come from brat stay as they are.
    """
    kept = [a for a in annotations if not a.id.startswith(LAYOUT)]
    ids: dict[str, str] = {}  # of what notes and relations are about
    result: list[Annotation] = []
    spans = _new_ids([a.id for a in kept if isinstance(a, SpanAnnotation)], "T", ids)
    relations = _new_ids([a.id for a in kept if isinstance(a, RelationAnnotation)], "R", ids)
    free = _free_ids([a.id for a in kept if isinstance(a, NoteAnnotation)], "#")
    for a in kept:
        if isinstance(a, SpanAnnotation):
            a = a._replace(id=next(spans))
        elif isinstance(a, RelationAnnotation):
            args = tuple((role, ids.get(target, target)) for role, target in a.args)
            a = a._replace(id=next(relations), args=args)
        elif isinstance(a, NoteAnnotation):
            id = a.id if a.id.startswith("#") else next(free)
            a = a._replace(id=id, target=ids.get(a.target, a.target))
        result.append(a)
    noted = {a.target for a in result if isinstance(a, NoteAnnotation) and _concept_ids(a)}
    noted.update(target for target, _ in filter(None, map(read_normalization, result)))
    return (*result, *_concept_notes(result, noted, free))


def _new_ids(own: list[str], letter: str, ids: dict[str, str]) -> Iterator[str]:
    """Find the id in brat of each annotation of a kind, and add the first one of each old id."""
    free, seen, new = _free_ids(own, letter), set[str](), []
    for id in own:
        keeps = id.startswith(letter) and NO_BLANK.fullmatch(id) and id not in seen
        new.append(id if keeps else next(free))
        if id not in seen:
            ids.setdefault(id, new[-1])
        seen.add(id)
    return iter(new)


def _concept_notes(
    annotations: Iterable[Annotation], noted: set[str], free: Iterator[str]
) -> Iterator[NoteAnnotation]:
    for span in annotations:
        if isinstance(span, SpanAnnotation) and span.concept_ids and span.id not in noted:
            yield NoteAnnotation(next(free), "AnnotatorNotes", span.id, " ".join(span.concept_ids))


def _free_ids(taken: Iterable[str], letter: str) -> Iterator[str]:
    numbers = (int(id[1:]) for id in taken if id.startswith(letter) and id[1:].isdecimal())
    return (f"{letter}{number}" for number in count(max(numbers, default=0) + 1))
