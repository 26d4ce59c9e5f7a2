"""MeSH: descriptors and supplementary records in XML, and tables made from them.

Elements: MeSH XML Data Elements (NLM); names of the supplementary classes: MeSH RDF.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import IO

from lxml import etree

from ...errors import BioclinError
from ..kb.concepts import Alias, Concept, SkipReport, wrong_id
from .lines import open_bytes, read_lines
from .rows import read_rows
from .values import language_code

# Root element -> element of a record.
RECORDS = {
    "DescriptorRecordSet": "DescriptorRecord",
    "SupplementalRecordSet": "SupplementalRecord",
}
CLASSES = {
    "1": "SCR_Chemical",
    "2": "SCR_Protocol",
    "3": "SCR_Disease",
    "4": "SCR_Organism",
    "5": "SCR_Population",
    "6": "SCR_Anatomy",
}
# Registry numbers: CAS, enzyme (EC) and UNII.
REGISTRIES = {
    "CAS": re.compile(r"(\d+-\d\d-\d)"),
    "EC": re.compile(r"EC ([\d.\-]+)"),
    "UNII": re.compile(r"([0-9A-Z]{10})"),
}
# Columns of a table, of which the first two are id and name -> fields that the others fill.
TABLES = {
    ("DescriptorUI", "DescriptorName", "TermName"): ("aliases",),
    ("DescriptorUI", "DescriptorName", "tree_location"): ("types",),
    ("MESH_ID", "MESH_NAME", "PARENT_MESH_ID", "ROOT_MESH_CATEGORY"): ("parents", "types"),
    ("MESH_SCR_ID", "MESH_SCR_NAME", "MESH_ID"): ("parents",),
}
# No entity is ever expanded and nothing is fetched: a terminology is data from elsewhere.
SAFE = {"resolve_entities": False, "no_network": True, "load_dtd": False}


def read_mesh_xml(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read descriptors (desc2024.xml) or supplementary records (supp2024.xml), record by record.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts records without id or name.
    YIELDS (Concept): A record with all its terms; its types are its tree numbers or its class
        ("SCR_Disease"), its cross references registry numbers, its parents the headings that it is
        mapped to. At the end the parents of the descriptors.
    RAISES (BioclinError): Broken XML, declared entities, or another kind of file.
    """
    root, lang = _read_root(path)
    trees: dict[str, str] = {}
    with open_xml(path) as file:
        for _, element in etree.iterparse(file, tag=RECORDS[root], **SAFE):
            concept = _record(element, RECORDS[root].removesuffix("Record"), lang)
            place = f"{path}, line {element.sourceline}"
            if why := wrong_id(concept.id) if concept.id else "":
                report.skip(why, place)
            elif concept.id and concept.name:
                trees.update((t, concept.id) for t in concept.types if root[0] == "D")
                yield concept
            else:
                report.skip("record without id or name", place)
            # What was read stays in memory unless it is removed from the tree.
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
    yield from _parents(trees)


@contextmanager
def open_xml(path: Path) -> Iterator[IO[bytes]]:
    """Open an XML file to be parsed within the block.

    RAISES (BioclinError): It cannot be read, or is broken XML.
    """
    try:
        with open_bytes(path) as file:
            yield file
    except etree.XMLSyntaxError as error:
        raise BioclinError(f"{path}, line {error.lineno}: broken XML ({error.msg})") from None


def _read_root(path: Path) -> tuple[str, str]:
    """Read the name of the root element and the language of its records.

    RAISES (BioclinError): It is not MeSH, or declares entities.
    """
    with open_xml(path) as file:
        _, root = next(iter(etree.iterparse(file, events=("start",), **SAFE)))
    if root.tag not in RECORDS:
        raise BioclinError(
            f"{path}: the root element is {str(root.tag)[:50]!r}; the MeSH files that can be read "
            f"have {' or '.join(RECORDS)}"
        )
    check_entities(root, path)
    return root.tag, language_code(root.get("LanguageCode", "eng"))


def check_entities(root: etree._Element, path: Path) -> None:
    """Refuse a document that declares entities.

    RAISES (BioclinError): It does.
    """
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise BioclinError(f"{path}: declares entities, which no release does; it is not read")


def _record(record: etree._Element, kind: str, lang: str) -> Concept:
    """Make a concept of a record of the kind "Descriptor" or "Supplemental"."""
    prefix = kind if kind == "Descriptor" else "SupplementalRecord"
    name = (record.findtext(f"{prefix}Name/String") or "").strip()
    aliases: dict[Alias, None] = {}
    xrefs: dict[str, None] = {}
    definition = ""
    for concept in record.iterfind("ConceptList/Concept"):
        if concept.get("PreferredConceptYN") == "Y":
            note = concept.findtext("TranslatorsScopeNote") or concept.findtext("ScopeNote")
            definition = (note or "").strip()
        for number in concept.iter("RegistryNumber"):
            xrefs.update(dict.fromkeys(_registry(number.text or "")))
        for term in concept.iterfind("TermList/Term"):
            text = (term.findtext("String") or "").strip()
            if text and term.get("RecordPreferredTermYN") == "Y":
                name = text  # a translation's record name has the English one in brackets
            elif text:
                aliases[Alias(text, lang)] = None
    mapped = record.iterfind("HeadingMappedToList/HeadingMappedTo/DescriptorReferredTo")
    parents = dict.fromkeys((m.findtext("DescriptorUI") or "").strip().lstrip("*") for m in mapped)
    types = tuple(t.text for t in record.iterfind("TreeNumberList/TreeNumber") if t.text)
    if kind == "Supplemental":
        types = (CLASSES.get(record.get("SCRClass", "1"), "SCR"),)
    return Concept(
        (record.findtext(f"{prefix}UI") or "").strip(),
        name,
        lang,
        tuple(alias for alias in aliases if alias.text != name),
        types,
        definition,
        tuple(parent for parent in parents if parent),
        tuple(xrefs),
    )


def _registry(number: str) -> list[str]:
    """Write a registry number as "CAS:50-78-2", "EC:1.1.1.1" or "UNII:R16CO5Y76E", if it is one."""
    found = ((name, regex.fullmatch(number.strip())) for name, regex in REGISTRIES.items())
    return [f"{name}:{match[1]}" for name, match in found if match]


def _parents(trees: dict[str, str]) -> Iterator[Concept]:
    """Yield the parent of each tree position: C04.588.180 is below C04.588.

    trees (dict[str, str]): Tree number -> descriptor.
    """
    for number, child in trees.items():
        parent = trees.get(number.rpartition(".")[0])
        if parent is not None and parent != child:
            yield Concept(child, parents=(parent,))


def read_mesh_tsv(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read a table of MeSH, recognised by its header: descriptors with their terms, tree numbers,
    descriptors with their parents, or supplementary records with the headings they map to.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts wrong rows, and rows without id or name.
    YIELDS (Concept): One for consecutive rows of one id, with names in English.
    RAISES (BioclinError): The header is none of the four.
    """
    _, header = next(read_lines(path, SkipReport()), (1, ""))
    wanted = next((w for w in TABLES if set(w) <= set(header.split("\t"))), None)
    if wanted is None:
        layouts = "; ".join(" ".join(columns) for columns in TABLES)
        raise BioclinError(
            f"{path}, line 1: {header[:200]!r} is not the header of a table of MeSH that can be "
            f"read; these have the columns {layouts}, separated by tabs"
        )
    is_supplementary = wanted[0] == "MESH_SCR_ID"
    trees: dict[str, str] = {}
    for (id, name), rows in groupby(_filled_rows(path, report, wanted), key=lambda row: row[:2]):
        own = {"aliases": name, "parents": id}
        _, _, *columns = zip(*rows, strict=True)
        fields: dict[str, tuple[str, ...]] = {
            field: tuple(x for x in dict.fromkeys(values) if x not in ("", own.get(field)))
            for field, values in zip(TABLES[wanted], columns, strict=True)
        }
        if wanted[2] == "tree_location":
            trees.update((number, id) for number in fields["types"])
        yield Concept(
            id,
            name,
            "en",
            aliases=tuple(Alias(term, "en") for term in fields.get("aliases", ())),
            types=("SCR_Disease",) if is_supplementary else fields.get("types", ()),
            parents=fields.get("parents", ()),
        )
    yield from _parents(trees)


def _filled_rows(
    path: Path, report: SkipReport, wanted: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    for number, row in read_rows(path, report, wanted):
        if why := wrong_id(row[0]) if row[0] else "":
            report.skip(why, f"{path}, line {number}")
        elif row[0] and row[1]:
            yield tuple(row)
        else:
            report.skip("no id or no name", f"{path}, line {number}")
