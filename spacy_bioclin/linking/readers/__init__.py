"""Terminology readers: any source, by the name of its format or by what it looks like."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from ...errors import BioclinError
from ..kb.concepts import Alias, Concept, SkipReport
from .babelon import layout_of, read_babelon
from .jsonl import read_jsonl
from .lines import read_lines, suffix
from .mesh import RECORDS, TABLES, read_mesh_tsv, read_mesh_xml
from .names import read_names
from .obo import read_obo
from .rf2 import read_rf2
from .rrf import find_release, read_rrf
from .skos import SYNTAXES, read_skos
from .table import Columns, read_quoted_rows, read_table, recognise_columns

# Name -> reader of a file or, for releases, of a folder.
FORMATS: dict[str, Callable[[Path, SkipReport], Iterator[Concept]]] = {
    "obo": read_obo,
    "babelon": read_babelon,
    "skos": read_skos,
    "jsonl": read_jsonl,
    "names": read_names,
    "table": read_table,
    "rrf": read_rrf,
    "rf2": read_rf2,
    "mesh-xml": read_mesh_xml,
    "mesh-tsv": read_mesh_tsv,
}
# Here each concept stands once, so that an id that comes again is worth a word.
ONE_RECORD = ("obo", "jsonl", "names")
SUFFIXES = {".obo": "obo", ".jsonl": "jsonl"}
SUFFIXES |= dict.fromkeys((suffix for suffix in SYNTAXES if suffix != ".xml"), "skos")
N_LINES = 20  # so many tell the format


def read_concepts(
    source: Path,
    report: SkipReport,
    *,
    format: str | None = None,
    lang: str = "",
    columns: Columns | None = None,
) -> Iterator[Concept]:
    """Read the concepts of a terminology, whatever its format.

    source (Path): A file, compressed (.gz, .bz2, .xz) or not, or the folder of a release.
    report (SkipReport): Counts what is left out, and ids that come again (those records are
        yielded, for the knowledge base joins them).
    format (str | None): One of `FORMATS`; None finds out, see `detect_format`.
    lang (str): Language of the names for which the source states none.
    columns (Columns | None): Which column of a table holds what, see `read_table`.
    YIELDS (Concept): Concepts and parts of concepts, in the order of the source.
    RAISES (BioclinError): The format is unknown or not that of the source, the source cannot be
        read, or no concept is in it.
    """
    name = format or ("table" if columns else detect_format(source))
    if name not in FORMATS:
        raise BioclinError(f"format {name!r}: unknown; there are {', '.join(FORMATS)}")
    if columns and name != "table":
        raise BioclinError(f"columns are for format table, but {source} is read as {name}")
    is_table = name == "table"
    concepts = (
        read_table(source, report, columns=columns) if is_table else FORMATS[name](source, report)
    )
    seen: set[str] = set()
    found = False
    for concept in concepts:
        found = True
        if name in ONE_RECORD and concept.name:
            if concept.id in seen:
                report.skip("id that came before: records joined", f"{source}, {concept.id}")
            seen.add(concept.id)
        yield _with_lang(concept, lang) if lang else concept
    if not found:
        why = ", ".join(f"{reason}: {n}" for reason, n in report.counts.most_common())
        raise BioclinError(
            f"{source}: no concept in it, read as {name} ({why or 'nothing skipped'}); is that its "
            f"format, and is the delimiter right? There are {', '.join(FORMATS)}"
        )


def detect_format(source: Path) -> str:
    """Find out the format of a source by its suffix, its first lines or the files in its folder.

    source (Path): A file or folder.
    RETURNS (str): One of `FORMATS`.
    RAISES (BioclinError): There is no such file or folder, or it looks like none of them.
    """
    if not source.exists():
        raise BioclinError(f"{source}: no such file or folder")
    if source.is_dir():
        found = _of_folder(source)
    else:
        found = SUFFIXES.get(suffix(source)) or _of_content(source)
    if found:
        return found
    raise BioclinError(
        f"{source}: not recognised as a terminology; name its format ({', '.join(FORMATS)}), for a "
        "table, which a tab, a semicolon, a comma or | separates, say which columns hold the id "
        "and the name, or by number in a table without a header line; of UMLS, RxNorm and SNOMED "
        "CT give the folder of the release"
    )


def _of_folder(folder: Path) -> str | None:
    if next(folder.rglob("sct2_Concept_*Snapshot*"), None):
        return "rf2"
    try:
        find_release(folder)
    except BioclinError:
        return None
    return "rrf"


def _of_content(path: Path) -> str | None:
    lines = [line for _, line in islice(read_lines(path, SkipReport()), N_LINES) if line.strip()]
    if not lines:
        return None
    if lines[0].startswith(("format-version:", "[Term]")):
        return "obo"
    if lines[0].startswith("{"):
        return "jsonl"
    if lines[0].startswith("<"):
        marks = dict.fromkeys((f"<{root}" for root in RECORDS), "mesh-xml") | {"<rdf:RDF": "skos"}
        return next((name for mark, name in marks.items() if mark in " ".join(lines)), None)
    # The rows of RRF hold "||" too, but end in "|".
    if all("||" in line and not line.endswith("|") for line in lines):
        return "names"
    return _of_header(path)


def _of_header(path: Path) -> str | None:
    try:
        _, header = next(read_quoted_rows(path, SkipReport()), (1, []))
        if any(set(columns) <= set(header) for columns in TABLES):
            return "mesh-tsv"
        if layout_of(header):
            return "babelon"
        return "table" if recognise_columns(header, str(path)) else None
    except BioclinError:
        return None


def _with_lang(concept: Concept, lang: str) -> Concept:
    aliases = tuple(alias if alias.lang else Alias(alias.text, lang) for alias in concept.aliases)
    own = concept.lang or (lang if concept.name else "")
    return concept._replace(lang=own, aliases=aliases)
