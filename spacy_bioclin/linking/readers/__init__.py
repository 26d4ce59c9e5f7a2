"""Read any terminology, by the name of its format or by what its files look like."""

from collections.abc import Callable, Iterator
from functools import partial
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
# In these formats each concept has one record, so repeated ids are reported.
ONE_RECORD = ("obo", "jsonl", "names")
SUFFIXES = {".obo": "obo", ".jsonl": "jsonl"}
SUFFIXES |= dict.fromkeys((suffix for suffix in SYNTAXES if suffix != ".xml"), "skos")
N_LINES = 20  # enough to detect the format


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
    report (SkipReport): Counts what is left out, and repeated ids (their records are yielded,
        because the knowledge base joins them).
    format (str | None): One of `FORMATS`; None detects it, see `detect_format`.
    lang (str): Language of the names for which the source states none.
    columns (Columns | None): Which column of a table holds what, see `read_table`.
    YIELDS (Concept): Concepts and parts of concepts, in the order of the source.
    RAISES (BioclinError): The format is unknown or not that of the source, the source cannot be
        read, or no concept is in it.
    """
    name = format or ("table" if columns else detect_format(source))
    check_format(name)
    if columns and name != "table":
        raise BioclinError(f"columns are for format table, but {source} is read as {name}")
    reader = partial(read_table, columns=columns) if columns else FORMATS[name]
    seen: set[str] = set()
    found = False
    for concept in reader(source, report):
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


def check_format(name: str) -> None:
    """Refuse an unknown format.

    RAISES (BioclinError): The message lists the formats.
    """
    if name not in FORMATS:
        raise BioclinError(f"format {name!r}: unknown; there are {', '.join(FORMATS)}")


def detect_format(source: Path) -> str:
    """Detect the format of a source by its suffix, its first lines or the files in its folder.

    source (Path): A file or folder.
    RETURNS (str): One of `FORMATS`.
    RAISES (BioclinError): There is no such file or folder, or its format is not recognised.
    """
    if not source.exists():
        raise BioclinError(f"{source}: no such file or folder")
    if source.is_dir():
        found = _detect_folder(source)
    else:
        found = SUFFIXES.get(suffix(source)) or _detect_content(source)
    if found:
        return found
    raise BioclinError(
        f"{source}: not recognised as a terminology; name its format ({', '.join(FORMATS)}), for a "
        "table with a tab, a semicolon, a comma or | between columns, say which columns hold the "
        "id and the name, by number in a table without a header line; for UMLS, RxNorm and SNOMED "
        "CT give the folder of the release"
    )


def _detect_folder(folder: Path) -> str | None:
    if next(folder.rglob("sct2_Concept_*Snapshot*"), None):
        return "rf2"
    try:
        find_release(folder)
    except BioclinError:
        return None
    return "rrf"


def _detect_content(path: Path) -> str | None:
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
    # Rows of RRF contain "||" too, but end in "|".
    if all("||" in line and not line.endswith("|") for line in lines):
        return "names"
    return _detect_header(path)


def _detect_header(path: Path) -> str | None:
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
