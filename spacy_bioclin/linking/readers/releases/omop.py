"""Vocabularies of OMOP (OHDSI), as Athena exports them or as a database does.

Tables: https://ohdsi.github.io/CommonDataModel/cdm54.html (CONCEPT, CONCEPT_SYNONYM,
CONCEPT_RELATIONSHIP)
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from ....errors import BioclinError
from ...kb.concepts import Alias, Concept, SkipReport, wrong_id
from ..lines import OPENERS
from ..table import read_quoted_rows

# File -> columns that are read.
TABLES = {
    "CONCEPT": (
        *("concept_id", "concept_name", "domain_id", "vocabulary_id", "concept_class_id"),
        *("concept_code", "invalid_reason"),
    ),
    "CONCEPT_SYNONYM": ("concept_id", "concept_synonym_name", "language_concept_id"),
    "CONCEPT_RELATIONSHIP": ("concept_id_1", "concept_id_2", "relationship_id", "invalid_reason"),
}
# Concepts of languages; names in others are kept as "und", undetermined, which no --lang wants.
LANGUAGES = {"4180186": "en", "4182511": "es", "0": "", "": ""}
IS_A, REPLACED_BY = "Is a", "Concept replaced by"


def read_omop(
    folder: Path, report: SkipReport, *, vocabularies: Collection[str] = ()
) -> Iterator[Concept]:
    """Read CONCEPT.csv, and CONCEPT_SYNONYM.csv and CONCEPT_RELATIONSHIP.csv if they are there.

    The id is the concept_id, "VOCABULARY:concept_code" a cross reference; types are the domain and
    the concept class. Of the relationships, "Is a" gives parents and "Concept replaced by" retired
    ids; mappings between vocabularies are not read.

    folder (Path): The folder of the files, compressed or not.
    report (SkipReport): Counts concepts and relationships with an invalid_reason, those of other
        vocabularies, wrong rows, and files that are missing.
    vocabularies (Collection[str]): Read these (vocabulary_id) only; empty reads all.
    YIELDS (Concept): Partial records, one a row.
    RAISES (BioclinError): No CONCEPT.csv, a column is missing, or a vocabulary does not occur.
    """
    kept: set[str] = set()
    found: set[str] = set()
    for place, row in _rows(folder, "CONCEPT", report):
        id, name, domain, vocabulary, kind, code, invalid = row
        found.add(vocabulary)
        if vocabularies and vocabulary not in vocabularies:
            report.skip("concept of another vocabulary", place)
        elif _is_set(invalid):
            report.skip(f"retired: invalid_reason {invalid[:1]}", place)
        elif why := wrong_id(id) or ("" if name else "no name"):
            report.skip(why, place)
        else:
            kept.add(id)
            xrefs = (f"{vocabulary}:{code}",) if code else ()
            yield Concept(id, name, "en", types=tuple(filter(None, (domain, kind))), xrefs=xrefs)
    if missing := sorted(set(vocabularies) - found):
        raise BioclinError(
            f"{find_files(folder)['CONCEPT']}: no concept of the vocabulary {', '.join(missing)}; "
            f"there are {', '.join(sorted(found))}"
        )
    for place, (id, name, lang) in _rows(folder, "CONCEPT_SYNONYM", report):
        if id not in kept:
            report.skip("synonym of a concept that was not kept", place)
        elif name:
            yield Concept(id, aliases=(Alias(name, LANGUAGES.get(lang, "und")),))
    for place, (first, second, relation, invalid) in _rows(folder, "CONCEPT_RELATIONSHIP", report):
        if relation not in (IS_A, REPLACED_BY):
            continue
        if _is_set(invalid):
            report.skip("relationship with an invalid_reason", place)
        elif relation == IS_A and first in kept and second in kept:
            yield Concept(first, parents=(second,))
        elif relation == REPLACED_BY and second in kept and first not in kept:
            yield Concept(second, alternative_ids=(first,))


def find_files(folder: Path) -> dict[str, Path]:
    """Find the files by their names, in capitals or small letters.

    RETURNS (dict[str, Path]): Name of the table -> file.
    RAISES (BioclinError): There is no CONCEPT.csv.
    """
    there = {path.name.upper(): path for path in sorted(folder.iterdir())}
    ends = ("", *(end.upper() for end in OPENERS))
    files = {
        table: there[name]
        for table in TABLES
        for end in ends
        if (name := f"{table}.CSV{end}") in there
    }
    if "CONCEPT" not in files:
        raise BioclinError(f"{folder}: no CONCEPT.csv; give the folder of an export of Athena")
    return files


def _rows(folder: Path, table: str, report: SkipReport) -> Iterator[tuple[str, Sequence[str]]]:
    """Read the wanted columns of a table; none if it is missing, which is reported.

    YIELDS (tuple[str, Sequence[str]]): Place, and values in the order of `TABLES`.
    """
    path = find_files(folder).get(table)
    if path is None:
        report.skip(f"file missing: {table}.csv", str(folder))
        return
    # Athena separates cells by tabs and quotes none; other exports are CSV.
    rows = read_quoted_rows(path, report, quoted_tabs=False)
    number, header = next(rows, (1, []))
    columns = [cell.lower() for cell in header]
    wanted = TABLES[table]
    if missing := [name for name in wanted if name not in columns]:
        raise BioclinError(f"{path}, line {number}: no column {', '.join(missing)}")
    picks = [columns.index(name) for name in wanted]
    for number, cells in rows:
        if len(cells) == len(columns):
            yield f"{path}, line {number}", [cells[i] for i in picks]
        else:
            report.skip(f"row without {len(columns)} columns", f"{path}, line {number}")


def _is_set(invalid: str) -> bool:
    return invalid not in ("", "NULL", "\\N", "V")
