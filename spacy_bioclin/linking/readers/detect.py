"""Detect the format of a terminology by its name, its first lines or the files in it, and say what
a file is that no reader reads."""

import json
import re
from contextlib import nullcontext
from pathlib import Path

import srsly

from ...errors import BioclinError
from ..kb.concepts import SkipReport
from .babelon import layout_of
from .headers import recognise_columns
from .lines import EncodingError, open_bytes, read_head, suffix
from .mesh import RECORDS, TABLES
from .releases.find import find_in_archive, find_release, unpack
from .sheets import SHEETS
from .skos import SYNTAXES
from .table import read_cells

SUFFIXES = {".obo": "obo", ".jsonl": "jsonl", ".asc": "meddra"}
SUFFIXES |= dict.fromkeys(SHEETS, "table")
SUFFIXES |= dict.fromkeys((s for s in SYNTAXES if s != ".xml"), "skos")
# Root element or namespace of an XML file -> format.
XML = dict.fromkeys((f"<{root}" for root in RECORDS), "mesh-xml")
XML |= {"<ICD10CM.tabular": "icd10cm", "<rdf:RDF": "skos"}
# Beginning of a JSON document -> format.
JSON = {'"resourceType"': "fhir", '"graphs"': "obographs"}
ORDER = re.compile(r"\d{5} [A-Z0-9]{3,7} +[01] ")  # of ICD-10-CM
SEEN = 1000  # characters in which a JSON document says what it is
_DATA = srsly.read_yaml(Path(__file__).with_name("unread.yml"))
UNREAD_BYTES = {key.encode("latin-1"): text for key, text in _DATA["binary"].items()}
UNREAD_TEXTS = {re.compile(key): text for key, text in _DATA["text"].items()}


def find_format(source: Path) -> str | None:
    """Detect the format of a source.

    source (Path): A file or folder.
    RETURNS (str | None): The format; None if it is not recognised.
    RAISES (BioclinError): There is no such file or folder, it cannot be read, or it is something
        that no reader reads, which the message says.
    """
    if not source.exists():
        raise BioclinError(f"{source}: no such file or folder")
    if source.is_dir():
        found = find_release(source)
        return found.format if found else None
    if suffix(source) == ".zip":
        release = find_in_archive(source)
        with unpack(source, release) if not release.format else nullcontext(source) as folder:
            return release.format or find_format(release.path(folder))
    if suffix(source) in SHEETS:
        return "table"
    head = read_head(source)
    refuse_unread(source, head)
    return SUFFIXES.get(suffix(source)) or _find_in_text(source, head)


def refuse_unread(path: Path, head: str) -> None:
    """Refuse a file that no reader reads.

    head (str): Its first characters.
    RAISES (BioclinError): The message says what the file is and what to do.
    """
    with open_bytes(path) as file:
        begin = file.read(20)
    found = [text for key, text in UNREAD_BYTES.items() if begin.startswith(key)]
    found += [text for pattern, text in UNREAD_TEXTS.items() if pattern.search(head)]
    if path.suffix.lower() == ".nlm":
        found = ["an archive of UMLS; install it with MetamorphoSys, and give the folder META"]
    if found:
        raise BioclinError(f"{path}: is {found[0]}")


def _find_in_text(path: Path, head: str) -> str | None:
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    if not lines:
        return None
    first = lines[0].lstrip()
    if first.startswith(("format-version:", "[Term]")):
        return "obo"
    if first.startswith(("{", "[")):
        return _find_in_json(path, head.lstrip())
    if first.startswith("<") and not first.startswith("<http"):
        return next((name for mark, name in XML.items() if mark in head), None)
    if ORDER.match(first):
        return "icd10cm"
    # Rows of RRF contain "||" too, but end in "|".
    if all("||" in line and not line.endswith("|") for line in lines):
        return "names"
    return _find_in_header(path)


def _find_in_json(path: Path, head: str) -> str:
    """Detect a JSON document, or objects of which each has a line, or a list of objects.

    RAISES (BioclinError): It is none of these.
    """
    for mark, name in JSON.items():
        if mark in head[:SEEN]:
            return name
    first, newline, _ = head.partition("\n")
    try:
        json.loads(first)
    except ValueError:
        if newline and not head.startswith("["):
            raise BioclinError(
                f"{path}: is JSON of an unknown layout; there are FHIR (CodeSystem, ValueSet), OBO "
                "Graphs, a list of objects, and an object a line with the keys id, name, aliases"
            ) from None
    return "jsonl"


def _find_in_header(path: Path) -> str | None:
    try:
        _, header = next(read_cells(path, SkipReport(), recognise_columns), (1, []))
        if any(set(columns) <= set(header) for columns in TABLES):
            return "mesh-tsv"
        if layout_of(header):
            return "babelon"
        return "table" if recognise_columns(header, str(path)) else None
    except EncodingError:
        raise
    except BioclinError:
        return None
