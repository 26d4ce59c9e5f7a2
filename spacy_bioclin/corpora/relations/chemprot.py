"""The files of ChemProt (BioCreative VI): abstracts, entities and relations in tables.

NAME_abstracts.tsv has document, title and abstract; NAME_entities.tsv document, entity, label,
start, end and text; NAME_relations.tsv document, group ("CPR:3"), whether the group is evaluated
("Y" or "N"), type ("ACTIVATOR"), and both arguments ("Arg1:T5"). NAME_gold_standard.tsv has only
document, group and arguments of the evaluated relations; it is read if there are no others. The
files of the test set end in _gs.tsv. Offsets count the title, one separator and the abstract.

Krallinger et al. (2017), Overview of the BioCreative VI chemical-protein interaction Track.
"""

from collections.abc import Iterator
from pathlib import Path

from ...errors import BioclinError
from ...types import AnnotatedText, Annotation, NoteAnnotation, RelationAnnotation, SpanAnnotation
from ..files import (
    BOM,
    OnError,
    check_offsets,
    is_offset,
    raise_error,
    read_text,
    skip_errors,
)

# Ends of the names of the files with the texts.
ABSTRACTS = ("_abstracts.tsv", "_abstracts_gs.tsv")
# Kind of the notes that carry the type of a relation within its group.
TYPE = "type"
Row = tuple[str, list[str]]  # file and line, for error messages; columns


def parse_chemprot(
    abstracts: str,
    entities: str,
    relations: str,
    *,
    sources: tuple[str, str, str],
    on_error: OnError = raise_error,
) -> list[AnnotatedText]:
    """Read the contents of the three files.

    abstracts, entities, relations (str): The contents; see above for the columns.
    sources (tuple[str, str, str]): Names of the files, for error messages.
    on_error (OnError): Called for each malformed document.
    RETURNS (list[AnnotatedText]): The documents; title and abstract are joined by a newline. The
        label of a relation is its group, and a note has its type.
    RAISES (BioclinError): A line is malformed, or is about a document that is not there; it names
        file and line.
    """
    rows: dict[str, tuple[list[Row], list[Row]]] = {}
    texts: dict[str, Row] = {}
    for where, fields in _split(abstracts, sources[0]):
        if fields[0] in texts:
            on_error(sources[0], BioclinError(f"{where}: the document is there twice"))
            continue
        texts[fields[0]] = where, fields
        rows[fields[0]] = [], []
    for position, content in enumerate((entities, relations)):
        for where, fields in _split(content, sources[position + 1]):
            if fields[0] in rows:
                rows[fields[0]][position].append((where, fields))
            else:
                error = BioclinError(f"{where}: its document is not in {Path(sources[0]).name}")
                on_error(sources[position + 1], error)
    documents = []
    for id, (where, fields) in texts.items():
        try:
            if len(fields) != 3 or not id.strip():
                raise BioclinError(
                    f"{where}: expected document, title and abstract, separated by tabs; found "
                    f"{len(fields)} columns"
                )
            text = f"{fields[1]}\n{fields[2]}"
            spans = _parse_entities(rows[id][0], len(text))
            annotations = (*spans, *_parse_relations(rows[id][1]))
            documents.append(AnnotatedText(id, text, annotations, sources[0]))
        except BioclinError as error:
            on_error(sources[0], error)
    return documents


@skip_errors
def read_chemprot(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read the documents of NAME_abstracts.tsv, and the other files beside it."""
    [end] = [end for end in ABSTRACTS if path.name.endswith(end)] or [""]
    if not end:
        raise BioclinError(f"{path}: the files of ChemProt with texts end in {ABSTRACTS[0]}")
    name = path.name.removesuffix(end)
    ending = end.removeprefix("_abstracts")
    entities = path.with_name(f"{name}_entities{ending}")
    names = [f"{name}_relations{ending}", f"{name}_gold_standard{ending}"]
    names.append(f"{name}_gold_standard.tsv")
    relations = next((path.with_name(n) for n in names if path.with_name(n).is_file()), None)
    if relations is None:
        raise BioclinError(f"{path}: {' and '.join(names[:2])} are missing beside it")
    files = (path, entities, relations)
    contents = [read_text(file) for file in files]
    sources = (str(path), str(entities), str(relations))
    return parse_chemprot(*contents, sources=sources, on_error=on_error)


def _split(content: str, source: str) -> Iterator[Row]:
    """List the lines that are not empty, with their columns."""
    for number, line in enumerate(content.removeprefix(BOM).split("\n"), start=1):
        if line.strip():
            yield f"{source}, line {number}", line.removesuffix("\r").split("\t")


def _parse_entities(rows: list[Row], text_length: int) -> list[SpanAnnotation]:
    spans: dict[str, SpanAnnotation] = {}
    for where, fields in rows:
        if len(fields) != 6 or not all(map(is_offset, fields[3:5])):
            raise BioclinError(
                f"{where}: expected document, entity, label, start, end and text, separated by "
                f"tabs; found {len(fields)} columns"
            )
        id, label = fields[1:3]
        if not id.strip() or not label.strip():
            raise BioclinError(f"{where}: the entity has no id or no label")
        if id in spans:
            raise BioclinError(f"{where}: the document has this entity id twice")
        fragment = check_offsets(fields[3], fields[4], text_length, where)
        spans[id] = SpanAnnotation(id, label, (fragment,), fields[5])
    return list(spans.values())


def _parse_relations(rows: list[Row]) -> Iterator[Annotation]:
    for number, (where, fields) in enumerate(rows, start=1):
        is_complete = len(fields) == 6
        if len(fields) not in (4, 6) or (is_complete and fields[2].strip() not in ("Y", "N")):
            raise BioclinError(
                f"{where}: expected document, group, Y or N, type and two arguments, or document, "
                f"group and two arguments, separated by tabs; found {len(fields)} columns"
            )
        label = fields[1].strip()
        args = [field.strip().partition(":") for field in fields[-2:]]
        if not label or not all(role and id for role, _, id in args):
            raise BioclinError(f"{where}: the relation needs a group and arguments like Arg1:T5")
        id = f"R{number}"
        yield RelationAnnotation(id, label, tuple((role, target) for role, _, target in args))
        if is_complete and fields[3].strip():
            yield NoteAnnotation("", TYPE, id, fields[3].strip())
