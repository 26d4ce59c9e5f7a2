"""INCEpTION: UIMA CAS as XMI, through the `dkpro-cassis` library.

A folder has one .xmi file for each document and TypeSystem.xml, whose layers a project imports
once. Offsets are UTF-16 units, which cassis converts. XML cannot hold some control characters; they
are written as characters of the private use area and read back.
"""

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

from ...errors import BioclinError
from ...files import check_regular
from ...types import AnnotatedText
from ..files import (
    OnError,
    check_no_entities,
    decode,
    from_file_path,
    raise_error,
    read_text,
    skip_errors,
)
from .exchange import Link, Region, Task, read_tasks, to_task

if TYPE_CHECKING:
    from cassis import Cas, TypeSystem

SPAN, RELATION = "webanno.custom.BioclinSpan", "webanno.custom.BioclinRelation"
DOCUMENT = "webanno.custom.BioclinDocument"
NAMED_ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
META_DATA = "de.tudarmstadt.ukp.dkpro.core.api.metadata.type.DocumentMetaData"
TYPE_SYSTEM = "TypeSystem.xml"
# Types that say nothing about what was annotated.
IGNORED = (
    "uima.tcas.DocumentAnnotation",
    META_DATA,
    "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence",
    "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token",
    "de.tudarmstadt.ukp.clarin.webanno.api.type.CASMetadata",
)
MAX_ZIP_BYTES = 2**28
# Where the characters that XML 1.0 does not have go, from U+0000 on, in the private use area.
PRIVATE = 0xE700
CONTROLS = [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0xFFFE, 0xFFFF]
HIDE = {code: PRIVATE + (code & 0xFF) for code in CONTROLS}
SHOW = {private: code for code, private in HIDE.items()}


def format_inception(document: AnnotatedText) -> dict[str, str]:
    """Write a document as a CAS.

    RETURNS (dict[str, str]): Suffix -> content.
    RAISES (BioclinError): cassis is not installed.
    """
    return {".xmi": make_xmi(to_task(document, keep_line_ends=True))}


def make_xmi(task: Task) -> str:
    """Make the XMI of a task.

    RAISES (BioclinError): cassis is not installed, or the text has characters by which others are
        written.
    """
    types = make_type_system()  # says if cassis is missing
    from cassis import Cas

    if SHOW.keys() & set(map(ord, task.text)):
        raise BioclinError(
            f"{task.id}: the text has private characters between U+E700 and U+E7FF, by which "
            "control characters are written for INCEpTION; replace them, or use another tool"
        )
    cas = Cas(types)
    cas.sofa_string = task.text.translate(HIDE)
    cas.sofa_mime = "text/plain"
    cas.add(types.get_type(DOCUMENT)(**{key: task.meta[key] for key in ("id", "sha256")}))
    make_span, make_relation = types.get_type(SPAN), types.get_type(RELATION)
    spans: dict[str, Any] = {}
    for region in task.regions:
        spans[region.id] = make_span(
            begin=region.start,
            end=region.end,
            id=region.id,
            label=region.label,
            concepts=" ".join(region.concepts) or None,
            attributes=" ".join(region.attributes) or None,
            note=region.note or None,
        )
        cas.add(spans[region.id])
    for link in task.links:
        head, child = spans[link.head], spans[link.child]
        place = {"begin": child.begin, "end": child.end}
        cas.add(make_relation(**place, Governor=head, Dependent=child, label=link.label))
    return str(cas.to_xmi())


def make_type_system() -> "TypeSystem":
    """Make the layers for spans, relations and the id of a document.

    RAISES (BioclinError): cassis is not installed.
    """
    try:
        from cassis import TypeSystem
    except ImportError:
        raise BioclinError(
            "INCEpTION needs the library dkpro-cassis, which is not installed: "
            'pip install "spacy-bioclin[inception]"'
        ) from None
    types = TypeSystem()
    span = types.create_type(SPAN, "uima.tcas.Annotation")
    for name in ("id", "label", "concepts", "attributes", "note"):
        types.create_feature(span, name, "uima.cas.String")
    relation = types.create_type(RELATION, "uima.tcas.Annotation")
    for end in ("Governor", "Dependent"):
        types.create_feature(relation, end, span)
    types.create_feature(relation, "label", "uima.cas.String")
    document = types.create_type(DOCUMENT, "uima.cas.AnnotationBase")
    for name in ("id", "sha256"):
        types.create_feature(document, name, "uima.cas.String")
    return types


def format_type_system() -> str:
    """Write the file with the layers, which is beside the documents."""
    return str(make_type_system().to_xml())


@skip_errors
def read_inception(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read a document that INCEpTION exports as "UIMA CAS XMI": a .zip, or the .xmi file in it with
    TypeSystem.xml beside it."""
    make_type_system()  # says if cassis is missing
    from cassis import load_cas_from_xmi, load_typesystem

    xmi, types = _read_zip(path) if path.suffix == ".zip" else _read_pair(path)
    check_no_entities(xmi, str(path))
    check_no_entities(types, str(path))
    with catch_warnings():
        simplefilter("ignore")  # a warning may quote the document
        cas = load_cas_from_xmi(xmi, typesystem=load_typesystem(types))
        id = from_file_path(path)
        return read_tasks(path, [("document", cas)], lambda cas, _: _to_task(cas, id), on_error)


def _read_pair(path: Path) -> tuple[str, str]:
    return read_text(path), read_text(path.with_name(TYPE_SYSTEM))


def _read_zip(path: Path) -> tuple[str, str]:
    check_regular(path)
    with zipfile.ZipFile(path) as archive:
        if sum(info.file_size for info in archive.infolist()) > MAX_ZIP_BYTES:
            raise BioclinError(f"{path}: holds more than {MAX_ZIP_BYTES // 2**20} MB")
        names = [name for name in archive.namelist() if name.endswith(".xmi")]
        if len(names) != 1 or TYPE_SYSTEM not in archive.namelist():
            raise BioclinError(
                f"{path}: wants one .xmi file and {TYPE_SYSTEM} in it; export each document as "
                "UIMA CAS XMI"
            )
        content = (archive.read(name) for name in (names[0], TYPE_SYSTEM))
        xmi, types = (decode(data, "utf-8", str(path)) for data in content)
    return xmi, types


def _to_task(cas: "Cas", id: str) -> Task:
    meta: dict[str, str] = {}
    regions: dict[int, Region] = {}
    relations: list[Any] = []
    unread: list[str] = []
    for each in cas.select_all_fs():
        name = each.type.name
        if name == DOCUMENT:
            meta = {key: getattr(each, key) for key in ("id", "sha256") if getattr(each, key)}
        elif name == META_DATA and each.documentTitle:
            id = from_file_path(Path(each.documentTitle))
        elif name in (SPAN, NAMED_ENTITY):
            regions[each.xmiID] = _to_region(each, f"T{len(regions) + 1}")
        elif name == RELATION:
            relations.append(each)
        elif name not in IGNORED:
            unread.append(name)
    links = [
        Link(each.label or "", *(regions[end.xmiID].id for end in (each.Governor, each.Dependent)))
        for each in relations
    ]
    text = cas.sofa_string or ""
    if meta:  # in a document of another source, these characters are its own
        text = text.translate(SHOW)
    return Task(meta.get("id", id), text, meta, list(regions.values()), links, unread)


def _to_region(each: Any, default_id: str) -> Region:
    if each.type.name == NAMED_ENTITY:
        concepts = (each.identifier,) if each.identifier else ()
        return Region(default_id, each.begin, each.end, each.value or "", concepts)
    return Region(
        each.id or default_id,
        each.begin,
        each.end,
        each.label or "",
        tuple((each.concepts or "").split()),
        tuple((each.attributes or "").split()),
        each.note or "",
    )
