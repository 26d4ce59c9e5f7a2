"""Translations of an ontology's labels and synonyms: Babelon's TSV, and the Disease Ontology's.

Format: https://github.com/monarch-initiative/babelon
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import BioclinError
from ..kb.concepts import Alias, Concept, SkipReport
from .rows import SkipError, parse_rows
from .table import read_quoted_rows
from .values import clean, compact_id, language_code

BABELON = (
    "subject_id",
    "predicate_id",
    "source_value",
    "source_language",
    "translation_value",
    "translation_language",
    "translation_status",
)
DISEASE_ONTOLOGY = (
    "source_id",
    "predicate",
    "source_text",
    "source_lang",
    "translation_text",
    "translation_lang",
    "status",
)
DEFINITIONS = ("iao:0000115", "definition")
NOT_TRANSLATED = "NOT_TRANSLATED"


def read_babelon(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read translations: each row adds names in both languages, or a definition in the second.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts rows without an id or a translation, of obsolete terms, of broad
        synonyms, of other predicates, and with too few cells.
    YIELDS (Concept): A partial record for each row, of a label two: its source and its translation
        are the preferred names in their languages.
    RAISES (BioclinError): The file cannot be read, or lacks a column.
    """
    rows = read_quoted_rows(path, report)
    number, header = next(rows, (1, []))
    layout = layout_of(header)
    if not layout:
        raise BioclinError(
            f"{path}, line {number}: not a table of translations; its columns must include "
            f"{', '.join(BABELON)} or {', '.join(DISEASE_ONTOLOGY)}"
        )
    indices = [header.index(column) for column in layout]

    def to_concept(cells: list[str]) -> Concept:
        if len(cells) <= max(indices):
            raise SkipError("fewer cells than columns")
        return _to_concept([clean(cells[i]) for i in indices])

    for record in parse_rows(rows, to_concept, path, report):
        if not record.name:
            yield record
            continue
        yield record._replace(aliases=())
        yield from (Concept(record.id, *translation) for translation in record.aliases)


def layout_of(header: Sequence[str]) -> tuple[str, ...]:
    """Find the layout of which a header has all columns.

    RETURNS (tuple[str, ...]): `BABELON`, `DISEASE_ONTOLOGY` or ().
    """
    return next((x for x in (BABELON, DISEASE_ONTOLOGY) if set(x) <= set(header)), ())


def _to_concept(values: Sequence[str]) -> Concept:
    id, predicate, source, source_lang, translation, lang, status = values
    kind = predicate.lower()
    if not id:
        raise SkipError("no id")
    if not translation or status == NOT_TRANSLATED:
        raise SkipError("no translation")
    if source.lower().startswith("obsolete "):
        raise SkipError("obsolete")
    if "broad" in kind:
        raise SkipError("broad synonym")
    record = Concept(compact_id(id))
    alias = Alias(translation, language_code(lang))
    source_code = language_code(source_lang) if source else ""
    if kind.endswith("label") and not source:
        return record._replace(name=alias.text, lang=alias.lang)
    if kind.endswith("label"):
        return record._replace(name=source, lang=source_code, aliases=(alias,))
    if kind.endswith("synonym"):
        original = (Alias(source, source_code),) if source else ()
        return record._replace(aliases=(*original, alias))
    if kind.endswith(DEFINITIONS):
        return record._replace(definition=translation)
    raise SkipError(f"predicate {predicate}")
