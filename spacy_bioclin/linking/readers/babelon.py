"""Translations of an ontology's labels and synonyms: Babelon's TSV, and the Disease Ontology's.

Format: https://github.com/monarch-initiative/babelon
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import BioclinError
from ..kb.concepts import Alias, Concept, SkipReport
from .table import read_quoted_rows
from .values import clean, compact_id, language_code

BABELON = (
    *("subject_id", "predicate_id", "source_value", "source_language"),
    *("translation_value", "translation_language", "translation_status"),
)
DISEASE_ONTOLOGY = (
    *("source_id", "predicate", "source_text", "source_lang"),
    *("translation_text", "translation_lang", "status"),
)
DEFINITIONS = ("iao:0000115", "definition")
NOT_TRANSLATED = "NOT_TRANSLATED"


def read_babelon(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read translations: each row adds names in both languages, or a definition in the second.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts rows without an id or a translation, of obsolete terms, of broad
        synonyms, of other predicates, and with too few cells.
    YIELDS (Concept): A partial record for each row. A label's source is the preferred name, its
        translation an alias.
    RAISES (BioclinError): The file cannot be read, or lacks a column.
    """
    rows = read_quoted_rows(path, report)
    number, header = next(rows, (1, []))
    layout = layout_of(header)
    if not layout:
        raise BioclinError(
            f"{path}, line {number}: no table of translations; its columns must be, among others, "
            f"{', '.join(BABELON)} or {', '.join(DISEASE_ONTOLOGY)}"
        )
    indices = [header.index(column) for column in layout]
    for number, cells in rows:
        place = f"{path}, line {number}"
        if len(cells) <= max(indices):
            report.skip("fewer cells than columns", place)
            continue
        concept, reason = _to_concept([clean(cells[i]) for i in indices])
        if concept:
            yield concept
        else:
            report.skip(reason, place)


def layout_of(header: Sequence[str]) -> tuple[str, ...]:
    """RETURNS (tuple[str, ...]): Those of the two layouts' columns that the header has, or ()."""
    return next((x for x in (BABELON, DISEASE_ONTOLOGY) if set(x) <= set(header)), ())


def _to_concept(values: Sequence[str]) -> tuple[Concept | None, str]:
    """RETURNS (tuple[Concept | None, str]): The record, or None and the reason."""
    id, predicate, source, source_lang, translation, lang, status = values
    kind = predicate.lower()
    if not id:
        return None, "no id"
    if not translation or status == NOT_TRANSLATED:
        return None, "no translation"
    if source.lower().startswith("obsolete "):
        return None, "obsolete"
    if "broad" in kind:
        return None, "broad synonym"
    record = Concept(compact_id(id))
    alias = Alias(translation, language_code(lang))
    if kind.endswith("label"):
        code = language_code(source_lang) if source else ""
        return record._replace(name=source, lang=code, aliases=(alias,)), ""
    if kind.endswith("synonym"):
        original = (Alias(source, language_code(source_lang)),) if source else ()
        return record._replace(aliases=(*original, alias)), ""
    if kind.endswith(DEFINITIONS):
        return record._replace(definition=translation), ""
    return None, f"predicate {predicate}"
