"""ICD-10-CM and ICD-10-PCS as CMS publishes them: the order file, or the tabular list in XML.

Layout: icd10OrderFiles.pdf in the releases of CMS; icd10cm_tabular.xsd.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from ....errors import BioclinError
from ...kb.concepts import Alias, Concept, SkipReport
from ..lines import read_head
from ..mesh import SAFE, check_entities, open_xml
from ..rows import SkipError, filled_lines, parse_rows
from ..values import clean

# Number, code without a dot, whether it can be billed, short name in 60 columns, long name.
ORDER = re.compile(r"\d{5} ([A-Z0-9]{3,7}) +([01]) (.{60}) (.*)")
HEADING, BILLABLE = "heading", "billable"


def read_icd10cm(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read icd10cm_order_2026.txt, icd10pcs_order_2026.txt or icd10cm_tabular_2026.xml.

    Codes of ICD-10-CM get their dot (E11.9). The types of the order file are "heading" and
    "billable"; parents are the codes above. In the tabular list, inclusion terms are aliases.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts lines of another layout; codes for which the tabular list says how
        to add a seventh character, which are in the order file.
    YIELDS (Concept): One for each code, with names in English.
    RAISES (BioclinError): The file cannot be read, or has another layout.
    """
    if read_head(path, 100).lstrip().startswith("<"):
        yield from _read_tabular(path, report)
        return
    seen: set[str] = set()
    is_pcs: bool | None = None

    def to_concept(line: str) -> Concept:
        nonlocal is_pcs
        match = ORDER.fullmatch(line)
        if not match:
            raise SkipError("line of another layout")
        code, billable, short, name = match.groups()
        if is_pcs is None:  # its sections begin with 0, the chapters of ICD-10-CM with A
            is_pcs = code[0].isdigit()
        seen.add(code)
        above = next((code[:n] for n in range(len(code) - 1, 2, -1) if code[:n] in seen), "")
        name, short = clean(name), clean(short)
        return Concept(
            _with_dot(code, is_pcs),
            name,
            "en",
            aliases=(Alias(short, "en"),) if short not in ("", name) else (),
            types=(BILLABLE if billable == "1" else HEADING,),
            parents=(_with_dot(above, is_pcs),) if above else (),
        )

    yield from parse_rows(filled_lines(path, report), to_concept, path, report)


def _with_dot(code: str, is_pcs: bool) -> str:
    return code if is_pcs or len(code) <= 3 else f"{code[:3]}.{code[3:]}"


def _read_tabular(path: Path, report: SkipReport) -> Iterator[Concept]:
    with open_xml(path) as file:
        root = etree.parse(file, etree.XMLParser(**SAFE)).getroot()
    check_entities(root, path)
    if root.tag != "ICD10CM.tabular":
        raise BioclinError(
            f"{path}: the root element is {str(root.tag)[:50]!r}, not ICD10CM.tabular"
        )

    def to_concept(diag: etree._Element) -> Concept:
        if diag.find("sevenChrDef") is not None:
            report.skip(
                "seventh characters, which the order file has as codes",
                f"{path}, line {diag.sourceline}",
            )
        parent = diag.getparent()
        above = parent.findtext("name") if parent is not None and parent.tag == "diag" else ""
        notes = (clean(note.text or "") for note in diag.iterfind("inclusionTerm/note"))
        return Concept(
            clean(diag.findtext("name") or ""),
            clean(diag.findtext("desc") or ""),
            "en",
            aliases=tuple(Alias(note, "en") for note in notes if note),
            parents=(clean(above),) if above else (),
        )

    rows = ((diag.sourceline or 0, diag) for diag in root.iter("diag"))
    yield from parse_rows(rows, to_concept, path, report)
