"""OBO, the flat file of HPO, the Disease Ontology, GO, ChEBI and many more, versions 1.0 to 1.4.

Format: https://owlcollab.github.io/oboformat/doc/GO.format.obo-1_4.html
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...errors import BioclinError
from ..kb.concepts import Alias, Concept, SkipReport, wrong_id
from .lines import read_lines
from .values import clean, compact_id

# A broad synonym ("cancer" of angiosarcoma) is the name of another concept.
LEFT_OUT_SCOPE = "BROAD"
SCOPES = ("EXACT", "NARROW", "RELATED", LEFT_OUT_SCOPE)
SYNONYM_TAGS = {
    "synonym": "RELATED",  # the scope where a line states none
    "exact_synonym": "EXACT",
    "narrow_synonym": "NARROW",
    "related_synonym": "RELATED",
    "broad_synonym": LEFT_OUT_SCOPE,
}
ESCAPED = {"n": "\n", "t": "\t", "W": " "}
QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"\s*(\w*)')
COMMENT = re.compile(r"(?:^|\s)!(?:\s.*)?$")
MODIFIERS = re.compile(r"\s\{[\w:.-]+=[^{}]*\}$")

Tags = dict[str, list[str]]


class Obsolete(NamedTuple):
    """An obsolete term.

    replaced_by (tuple[str, ...]): Ids of the terms that replace it.
    alternative_ids (tuple[str, ...]): Its own ones.
    """

    replaced_by: tuple[str, ...]
    alternative_ids: tuple[str, ...]


def read_obo(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read the terms of an OBO file. Their types are their namespace and subsets.

    An obsolete term is left out; where it names the term that replaces it, its ids become
    alternative ids of that. If that is obsolete too, the one that replaces it is meant, and so on.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts obsolete terms, those replaced by terms that are obsolete without
        being replaced, terms without id or name, broad synonyms, and malformed lines.
    YIELDS (Concept): The terms, in the order of the file, then the ids of obsolete ones.
    RAISES (BioclinError): The file cannot be read, or has no [Term].
    """
    namespace: list[str] = []
    obsolete: dict[str, Obsolete] = {}
    n_terms = 0
    for kind, place, tags in _stanzas(path, report):
        if not kind:
            namespace = tags.get("default-namespace", [])
        if kind != "Term":
            continue
        n_terms += 1
        tags.setdefault("namespace", namespace)
        concept = _to_concept(tags, place, report, obsolete)
        if concept:
            yield concept
    yield from replaced(obsolete, report)
    if not n_terms:
        raise BioclinError(f"{path}: no [Term] in it, so it is not an OBO file; name its format")


def _stanzas(path: Path, report: SkipReport) -> Iterator[tuple[str, str, Tags]]:
    """Read stanza by stanza.

    YIELDS (tuple[str, str, Tags]): Kind of the stanza ("" for the header), place, tags.
    """
    kind, place, tags = "", f"{path}, line 1", Tags()
    for number, line in read_lines(path, report):
        line = line.strip()
        if not line or line.startswith("!"):
            continue
        if line.startswith("[") and line.endswith("]"):
            yield kind, place, tags
            kind, place, tags = line[1:-1], f"{path}, line {number}", Tags()
            continue
        tag, colon, value = line.partition(":")
        if colon:
            tags.setdefault(tag, []).append(value.strip())
        else:
            report.skip("line without a tag", f"{path}, line {number}")
    yield kind, place, tags


def replaced(obsolete: dict[str, Obsolete], report: SkipReport) -> Iterator[Concept]:
    """Yield the ids of obsolete terms as alternative ids of the terms that replace them."""
    for id, (replaced_by, alternative_ids) in obsolete.items():
        seen, successors = {id}, replaced_by
        while len(successors) == 1 and (new := successors[0]) in obsolete and new not in seen:
            seen.add(new)
            successors = obsolete[new].replaced_by
        if len(successors) == 1 and successors[0] not in seen:
            yield Concept(*successors, alternative_ids=(id, *alternative_ids))
        elif len(replaced_by) == 1:
            report.skip("obsolete, and replaced by no current term", id)


def _to_concept(
    tags: Tags, place: str, report: SkipReport, obsolete: dict[str, Obsolete]
) -> Concept | None:
    """Make a concept of a term; an obsolete one is added to `obsolete` instead."""

    def plain(*names: str) -> list[str]:
        return [_plain(value) for name in names for value in tags.get(name, ())]

    id = next(map(compact_id, plain("id")), "")
    if why := wrong_id(id):
        report.skip(why if id else "term without an id", place)
        return None
    alternative_ids = tuple(map(compact_id, plain("alt_id")))
    if "true" in plain("is_obsolete"):
        report.skip("obsolete", id)
        obsolete[id] = Obsolete(tuple(map(compact_id, plain("replaced_by"))), alternative_ids)
        return None
    name = next(iter(plain("name")), "")
    if not name:
        report.skip("term without a name", place)
        return None
    definition = QUOTED.match(next(iter(tags.get("def", ())), ""))
    return Concept(
        id,
        name,
        aliases=tuple(_aliases(tags, id, report)),
        types=tuple(plain("namespace", "subset")),
        definition=clean(_unescape(definition[1])) if definition else "",
        parents=tuple(map(compact_id, plain("is_a"))),
        # Without their descriptions.
        xrefs=tuple(first for xref in plain("xref") for first in xref.split()[:1]),
        alternative_ids=alternative_ids,
    )


def _aliases(tags: Tags, id: str, report: SkipReport) -> Iterator[Alias]:
    for tag, default in SYNONYM_TAGS.items():
        for value in tags.get(tag, ()):
            match = QUOTED.match(value)
            text = clean(_unescape(match[1])) if match else ""
            if not match or not text:
                report.skip("malformed or empty synonym", id)
                continue
            scope = match[2] if match[2] in SCOPES else default
            if scope == LEFT_OUT_SCOPE:
                report.skip("broad synonym", id)
            else:
                yield Alias(text)


def _plain(value: str) -> str:
    """Strip an unquoted value of its comment (`! label`) and modifiers (`{source="x"}`)."""
    return clean(_unescape(MODIFIERS.sub("", COMMENT.sub("", value).rstrip())))


def _unescape(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: ESCAPED.get(match[1], match[1]), value)
