"""MeSH: descriptors and supplementary records in XML, and tables made from them.

Elements: MeSH XML Data Elements (NLM); names of the supplementary classes: MeSH RDF.
"""

import lzma
import re
import zlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from lxml import etree

from ...errors import BioclinError
from ..kb.concepts import Alias, Concept, SkipReport
from .lines import open_bytes, read_lines
from .rows import read_rows

# Root element -> element of a record.
RECORDS = {
    "DescriptorRecordSet": "DescriptorRecord",
    "SupplementalRecordSet": "SupplementalRecord",
}
# LanguageCode of the root element.
LANGUAGES = {
    **{"eng": "en", "spa": "es", "fre": "fr", "ger": "de", "ita": "it", "por": "pt", "dut": "nl"},
    **{"cze": "cs", "fin": "fi", "jpn": "ja", "lav": "lv", "scr": "hr", "slv": "sl"},
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
# No entity is ever expanded and nothing is fetched: a terminology is data from elsewhere.
SAFE = {"resolve_entities": False, "no_network": True, "load_dtd": False}


def read_mesh_xml(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read descriptors (desc2024.xml) or supplementary records (supp2024.xml), record by record.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts records without id or name.
    YIELDS (Concept): A record with all its terms, tree numbers or class ("SCR_Disease") as types,
        scope note, registry numbers as cross references, headings mapped to as parents; at the
        end the parents of the descriptors.
    RAISES (BioclinError): Broken XML, declared entities, or another kind of file.
    """
    root, lang = _root(path)
    trees: dict[str, str] = {}
    try:
        with open_bytes(path) as file:
            for _, element in etree.iterparse(file, tag=RECORDS[root], **SAFE):
                concept = _record(element, RECORDS[root].removesuffix("Record"), lang)
                if concept.id and concept.name:
                    trees.update((t, concept.id) for t in concept.types if root[0] == "D")
                    yield concept
                else:
                    report.skip("record without id or name", f"{path}, line {element.sourceline}")
                # What was read stays in memory unless it is taken out of the tree.
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
    except etree.XMLSyntaxError as error:
        raise _broken(path, error) from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise BioclinError(
            f"{path}: cannot be read on ({error}); the file may be cut off"
        ) from None
    yield from _parents(trees)


def _root(path: Path) -> tuple[str, str]:
    """RETURNS (tuple[str, str]): Name of the root element, and the language of its records.
    RAISES (BioclinError): It is not MeSH, or declares entities.
    """
    try:
        with open_bytes(path) as file:
            _, root = next(iter(etree.iterparse(file, events=("start",), **SAFE)))
    except etree.XMLSyntaxError as error:
        raise _broken(path, error) from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise BioclinError(f"{path}: cannot be read ({error}); the file may be cut off") from None
    if root.tag not in RECORDS:
        raise BioclinError(
            f"{path}: the root element is {str(root.tag)[:50]!r}; the MeSH files that can be read "
            f"have {' or '.join(RECORDS)}"
        )
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise BioclinError(f"{path}: declares entities, which MeSH does not; it is not read")
    return root.tag, LANGUAGES.get(root.get("LanguageCode", "eng"), "")


def _broken(path: Path, error: etree.XMLSyntaxError) -> BioclinError:
    return BioclinError(f"{path}, line {error.lineno}: broken XML ({error.msg})")


def _record(record: etree._Element, kind: str, lang: str) -> Concept:
    """RETURNS (Concept): A record of the kind "Descriptor" or "Supplemental"."""
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
    """RETURNS (list[str]): "CAS:50-78-2", "EC:1.1.1.1", "UNII:R16CO5Y76E", or nothing."""
    found = ((name, regex.fullmatch(number.strip())) for name, regex in REGISTRIES.items())
    return [f"{name}:{match[1]}" for name, match in found if match]


def _parents(trees: dict[str, str]) -> Iterator[Concept]:
    """Yield the parent of each tree position: C04.588.180 lies under C04.588.

    trees (dict[str, str]): Tree number -> descriptor.
    """
    for number, child in trees.items():
        parent = trees.get(number.rpartition(".")[0])
        if parent is not None and parent != child:
            yield Concept(child, parents=(parent,))


def read_mesh_tsv(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read a table of MeSH, told by its header: descriptors with their terms, tree numbers,
    descriptors with their parents, or supplementary records with the headings they map to.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts wrong rows, and rows without id or name.
    YIELDS (Concept): Per id, with names in English, and types (tree numbers) or parents.
    RAISES (BioclinError): The header is none of the four.
    """
    _, header = next(read_lines(path, SkipReport()), (1, ""))
    columns = header.split("\t")
    for wanted, reader in TABLES.items():
        if set(wanted) <= set(columns):
            yield from reader(_groups(path, report, wanted))
            return
    layouts = "; ".join(" ".join(wanted) for wanted in TABLES)
    raise BioclinError(
        f"{path}, line 1: {header[:200]!r} is the header of none of the tables of MeSH that can "
        f"be read, which have the columns {layouts}, separated by tabs"
    )


def _groups(
    path: Path, report: SkipReport, wanted: tuple[str, ...]
) -> Iterator[tuple[str, str, list[list[str]]]]:
    """YIELDS (tuple[str, str, list[list[str]]]): Id, name, and the other wanted values of each of
    the consecutive rows with that id."""

    def filled() -> Iterator[list[str]]:
        for number, row in read_rows(path, report, wanted):
            if row[0] and row[1]:
                yield row
            else:
                report.skip("no id or no name", f"{path}, line {number}")

    for (own_id, name), rows in groupby(filled(), key=lambda row: (row[0], row[1])):
        yield own_id, name, [row[2:] for row in rows]


Groups = Iterator[tuple[str, str, list[list[str]]]]


def _terms(groups: Groups) -> Iterator[Concept]:
    for own_id, name, rows in groups:
        aliases = dict.fromkeys(Alias(term, "en") for (term,) in rows if term not in ("", name))
        yield Concept(own_id, name, "en", tuple(aliases))


def _tree_numbers(groups: Groups) -> Iterator[Concept]:
    trees: dict[str, str] = {}
    for own_id, name, rows in groups:
        numbers = tuple(dict.fromkeys(number for (number,) in rows if number))
        trees.update((number, own_id) for number in numbers)
        yield Concept(own_id, name, "en", types=numbers)
    yield from _parents(trees)


def _hierarchy(groups: Groups) -> Iterator[Concept]:
    for own_id, name, rows in groups:
        parents = dict.fromkeys(parent for parent, _ in rows if parent not in ("", own_id))
        types = dict.fromkeys(category for _, category in rows if category)
        yield Concept(own_id, name, "en", types=tuple(types), parents=tuple(parents))


def _supplementary_diseases(groups: Groups) -> Iterator[Concept]:
    for own_id, name, rows in groups:
        parents = tuple(dict.fromkeys(parent for (parent,) in rows if parent))
        yield Concept(own_id, name, "en", types=("SCR_Disease",), parents=parents)


TABLES = {
    ("DescriptorUI", "DescriptorName", "TermName"): _terms,
    ("DescriptorUI", "DescriptorName", "tree_location"): _tree_numbers,
    ("MESH_ID", "MESH_NAME", "PARENT_MESH_ID", "ROOT_MESH_CATEGORY"): _hierarchy,
    ("MESH_SCR_ID", "MESH_SCR_NAME", "MESH_ID"): _supplementary_diseases,
}
