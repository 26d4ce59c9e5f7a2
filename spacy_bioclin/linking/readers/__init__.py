"""Read any terminology, by the name of its format or by what its files look like."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import BioclinError
from ..kb.concepts import Alias, Concept, SkipReport
from .babelon import read_babelon
from .detect import find_format
from .documents import read_fhir, read_obographs
from .headers import Columns
from .jsonl import read_jsonl
from .lines import suffix
from .mesh import read_mesh_tsv, read_mesh_xml
from .names import read_names
from .obo import read_obo
from .releases.find import find_in_archive, find_release, unpack
from .releases.icd10cm import read_icd10cm
from .releases.meddra import read_meddra
from .releases.omop import read_omop
from .releases.rf2 import read_rf2
from .releases.rrf import read_rrf
from .skos import read_skos
from .table import read_table

# Name -> reader of a file or, for releases, of a folder.
FORMATS: dict[str, Callable[..., Iterator[Concept]]] = {
    "obo": read_obo,
    "obographs": read_obographs,
    "babelon": read_babelon,
    "skos": read_skos,
    "jsonl": read_jsonl,
    "fhir": read_fhir,
    "names": read_names,
    "table": read_table,
    "rrf": read_rrf,
    "rf2": read_rf2,
    "omop": read_omop,
    "icd10cm": read_icd10cm,
    "meddra": read_meddra,
    "mesh-xml": read_mesh_xml,
    "mesh-tsv": read_mesh_tsv,
}
# In these formats each concept has one record, so repeated ids are reported.
ONE_RECORD = ("obo", "obographs", "jsonl", "fhir", "names", "icd10cm")
# These hold several vocabularies, of which some can be chosen.
WITH_VOCABULARIES = ("rrf", "omop")


def read_concepts(
    source: Path,
    report: SkipReport,
    *,
    format: str | None = None,
    lang: str = "",
    columns: Columns | None = None,
    vocabularies: Collection[str] = (),
) -> Iterator[Concept]:
    """Read the concepts of a terminology, whatever its format.

    source (Path): A file, compressed or not, the folder of a release, or a zip archive of either.
    report (SkipReport): Counts what is left out, and repeated ids (their records are yielded,
        because the knowledge base joins them).
    format (str | None): One of `FORMATS`; None detects it, see `detect_format`.
    lang (str): Language of the names for which the source states none.
    columns (Columns | None): Which column of a table holds what, see `read_table`.
    vocabularies (Collection[str]): Read these of UMLS, RxNorm or OMOP; empty reads all.
    YIELDS (Concept): Concepts and parts of concepts, in the order of the source.
    RAISES (BioclinError): The format is unknown or not that of the source, the source cannot be
        read, or no concept is in it.
    """
    options = {"lang": lang, "columns": columns, "vocabularies": vocabularies}
    if suffix(source) == ".zip" and source.is_file():
        yield from _read_archive(source, report, format, options)
        return
    name = format or ("table" if columns else detect_format(source))
    check_format(name)
    if columns and name != "table":
        raise BioclinError(f"columns are for format table, but {source} is read as {name}")
    if vocabularies and name not in WITH_VOCABULARIES:
        raise BioclinError(
            f"vocabularies can be chosen in {' and '.join(WITH_VOCABULARIES)}, but {source} is "
            f"read as {name}"
        )
    reader = FORMATS[name]
    if columns:
        reader = partial(reader, columns=columns)
    if vocabularies:
        reader = partial(reader, vocabularies=vocabularies)
    release = find_release(source) if source.is_dir() else None
    path = release.path(source) if release and release.format == name else source
    seen: set[str] = set()
    found = False
    for concept in reader(path, report):
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


def _read_archive(
    source: Path, report: SkipReport, format: str | None, options: dict[str, Any]
) -> Iterator[Concept]:
    """Unpack an archive, and read it as what is in it; messages name the archive."""
    release = find_in_archive(source)
    if n := sum(not release.is_read(name) for name in release.names):
        report.skip("file of the archive that is not read", str(source), n)
    with unpack(source, release) as folder:
        try:
            name = format or ("table" if options["columns"] else release.format or None)
            yield from read_concepts(release.path(folder), report, format=name, **options)
        except BioclinError as error:
            raise BioclinError(str(error).replace(str(folder), str(source))) from None
        finally:
            for places in report.places.values():
                places[:] = [place.replace(str(folder), str(source)) for place in places]


def check_format(name: str) -> None:
    """Refuse an unknown format.

    RAISES (BioclinError): The message lists the formats.
    """
    if name not in FORMATS:
        raise BioclinError(f"format {name!r}: unknown; there are {', '.join(FORMATS)}")


def detect_format(source: Path) -> str:
    """Detect the format of a source by its suffix, its first lines or the files in it.

    source (Path): A file, a folder or an archive.
    RETURNS (str): One of `FORMATS`.
    RAISES (BioclinError): There is no such file or folder, its format is not recognised, or is one
        that cannot be read.
    """
    if found := find_format(source):
        return found
    raise BioclinError(
        f"{source}: not recognised as a terminology; name its format ({', '.join(FORMATS)}), for a "
        "table with a tab, a semicolon, a comma, | or $ between columns, say which columns hold "
        "the id and the name, by number in a table without a header line; for UMLS, RxNorm, SNOMED "
        "CT, OMOP and MedDRA give the folder of the release"
    )


def _with_lang(concept: Concept, lang: str) -> Concept:
    aliases = tuple(alias if alias.lang else Alias(alias.text, lang) for alias in concept.aliases)
    own = concept.lang or (lang if concept.name else "")
    return concept._replace(lang=own, aliases=aliases)
