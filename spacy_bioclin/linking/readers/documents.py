"""JSON documents: CodeSystem and ValueSet of FHIR (R4, R5), and ontologies as OBO Graphs.

Formats: https://hl7.org/fhir/codesystem.html, https://hl7.org/fhir/valueset.html,
https://github.com/geneontology/obographs
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import BioclinError
from ..kb.concepts import Alias, Concept, SkipReport
from .jsonl import load_json
from .obo import Obsolete, replaced
from .rows import parse_rows
from .values import clean, compact_id, language_code

# Properties of a code that say that it is no longer valid, and their values; None is any value.
RETIRED: dict[str, tuple[object, ...] | None] = {
    "status": ("retired", "deprecated", "inactive"),
    "inactive": (True,),
    "deprecated": (True,),
    "deprecationDate": None,
    "retirementDate": None,
}
OBO = "http://purl.obolibrary.org/obo/"
OBO_IN_OWL = "http://www.geneontology.org/formats/oboInOwl#"
REPLACED_BY = f"{OBO}IAO_0100001"


def read_fhir(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read the codes of a CodeSystem or ValueSet, or of all that are in a Bundle.

    Displays and designations are the names, the address of the system is the type.

    path (Path): A JSON file, compressed or not.
    report (SkipReport): Counts retired codes, codes without a name, other resources, and what a
        ValueSet includes without listing it.
    YIELDS (Concept): One for each code.
    RAISES (BioclinError): It is not JSON, or a resource lists no code.
    """
    document = _dict(load_json(path))
    entries = _dicts(document.get("entry"))
    for resource in [_dict(entry.get("resource")) for entry in entries] or [document]:
        kind = _text(resource.get("resourceType"))
        place = f"{path}, {kind} {_text(resource.get('id')) or _text(resource.get('url'))}"
        if kind == "CodeSystem":
            codes = _walk(resource, "concept", _text(resource.get("url")))
        elif kind == "ValueSet":
            codes = _value_set(resource, place, report)
        else:
            report.skip("resource other than CodeSystem and ValueSet", place)
            continue
        lang = language_code(_text(resource.get("language")))
        found = [_code(*code, lang) for code in codes if not _is_retired(code[0], place, report)]
        if not found:
            raise BioclinError(
                f"{place}: lists no current code; give a CodeSystem whose content is complete, or "
                "the expansion of the ValueSet (operation $expand)"
            )
        yield from parse_rows(enumerate(found, 1), lambda concept: concept, path, report)


Code = tuple[Mapping[str, Any], str, str]


def _walk(resource: Mapping[str, Any], key: str, system: str) -> Iterator[Code]:
    """List codes that hold others, with the system and the code above each."""
    stack = [(record, "") for record in reversed(_dicts(resource.get(key)))]
    while stack:
        record, parent = stack.pop()
        yield record, _text(record.get("system")) or system, parent
        own = _text(record.get("code"))
        stack += [(below, own) for below in reversed(_dicts(record.get(key)))]


def _value_set(resource: Mapping[str, Any], place: str, report: SkipReport) -> Iterator[Code]:
    """List the codes of the expansion, or else those that the definition lists."""
    expansion = _dict(resource.get("expansion"))
    seen: dict[str, str] = {}
    codes: list[Code] = list(_walk(expansion, "contains", ""))
    total = expansion.get("total")
    if codes and isinstance(total, int) and total > len(codes):
        report.skip("code beyond this page of the expansion", place, total - len(codes))
    if not codes:
        for include in _dicts(_dict(resource.get("compose")).get("include")):
            system = _text(include.get("system"))
            listed = list(_walk(include, "concept", system))
            codes += listed
            if not listed:
                report.skip("codes that a ValueSet includes without listing them", place)
    for code in codes:
        own, system = _text(code[0].get("code")), code[1]
        if seen.setdefault(own, system) == system:
            yield code
        else:
            report.skip("code that another system has too", f"{place}, {own}")


def _is_retired(record: Mapping[str, Any], place: str, report: SkipReport) -> bool:
    values = {"inactive": record.get("inactive")}  # of a code in an expansion
    for found in _dicts(record.get("property")):
        value = next((v for key, v in found.items() if key.startswith("value")), None)
        values[_text(found.get("code"))] = value
    for key, retired in RETIRED.items():
        if (value := values.get(key)) and (retired is None or value in retired):
            report.skip("retired", f"{place}, {_text(record.get('code'))}")
            return True
    return False


def _code(record: Mapping[str, Any], system: str, parent: str, lang: str) -> Concept:
    name = _text(record.get("display"))
    found = _dicts(record.get("designation"))
    aliases = [
        Alias(_text(d.get("value")), language_code(_text(d.get("language"))) or lang) for d in found
    ]
    above = [parent] + [
        _text(p.get("valueCode"))
        for p in _dicts(record.get("property"))
        if p.get("code") == "parent"
    ]
    return Concept(
        _text(record.get("code")),
        name,
        lang if name else "",
        tuple(alias for alias in aliases if alias.text),
        (system,) if system else (),
        _text(record.get("definition")),
        tuple(dict.fromkeys(filter(None, above))),
    )


def read_obographs(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read the classes of an ontology, as `read_obo` reads its terms.

    path (Path): A JSON file, compressed or not.
    report (SkipReport): Counts obsolete classes, broad synonyms, and classes without a name.
    YIELDS (Concept): The classes, then the ids of obsolete ones.
    RAISES (BioclinError): It is not JSON, or has no graph.
    """
    graphs = _dicts(_dict(load_json(path)).get("graphs"))
    if not graphs:
        raise BioclinError(f"{path}: no graph in it, so it is not an ontology as OBO Graphs")
    obsolete: dict[str, Obsolete] = {}
    for graph in graphs:
        parents: dict[str, list[str]] = defaultdict(list)
        for edge in _dicts(graph.get("edges")):
            if edge.get("pred") == "is_a":
                parents[_text(edge.get("sub"))].append(compact_id(_text(edge.get("obj"))))
        nodes = (
            node for node in _dicts(graph.get("nodes")) if node.get("type", "CLASS") == "CLASS"
        )
        concepts = (_node(node, parents, report, obsolete) for node in nodes)
        rows = enumerate((concept for concept in concepts if concept), 1)
        yield from parse_rows(rows, lambda concept: concept, path, report)
    yield from replaced(obsolete, report)


def _node(
    node: Mapping[str, Any],
    parents: Mapping[str, list[str]],
    report: SkipReport,
    obsolete: dict[str, Obsolete],
) -> Concept | None:
    address = _text(node.get("id"))
    id, meta = compact_id(address), _dict(node.get("meta"))
    values: dict[str, list[str]] = defaultdict(list)
    for value in _dicts(meta.get("basicPropertyValues")):
        values[_text(value.get("pred"))].append(_text(value.get("val")))
    others = tuple(map(compact_id, values[f"{OBO_IN_OWL}hasAlternativeId"]))
    if meta.get("deprecated") is True:
        report.skip("obsolete", id)
        # Some releases write the address, others the short id with "_".
        new = (v if v.startswith("http") else f"{OBO}{v}" for v in values[REPLACED_BY] if v)
        obsolete[id] = Obsolete(tuple(map(compact_id, new)), others)
        return None
    name = _text(node.get("lbl"))
    if not name:
        report.skip("term without a name", id)
        return None
    aliases = []
    for synonym in _dicts(meta.get("synonyms")):
        if "Broad" in _text(synonym.get("pred")):
            report.skip("broad synonym", id)
        elif text := _text(synonym.get("val")):
            aliases.append(Alias(text))
    subsets = meta.get("subsets")
    subsets = subsets if isinstance(subsets, list) else []
    return Concept(
        id,
        name,
        aliases=tuple(aliases),
        types=(
            *filter(None, values[f"{OBO_IN_OWL}hasOBONamespace"]),
            *(_text(subset).rpartition("#")[2] for subset in subsets if _text(subset)),
        ),
        definition=_text(_dict(meta.get("definition")).get("val")),
        parents=tuple(parents.get(address, ())),
        xrefs=tuple(filter(None, (_text(x.get("val")) for x in _dicts(meta.get("xrefs"))))),
        alternative_ids=others,
    )


def _text(value: object) -> str:
    """Clean a text; "" for anything else, and for half a surrogate pair, which no file can hold."""
    if not isinstance(value, str):
        return ""
    return clean(value.encode("utf-8", "ignore").decode())


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
