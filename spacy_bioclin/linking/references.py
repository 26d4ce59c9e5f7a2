"""The codes that a concept has in other terminologies, by the cross references of its own."""

from collections.abc import Iterable
from typing import NamedTuple

from .kb.concepts import AND, BROADER
from .kb.knowledge_base import KnowledgeBase

EXACT, BROAD, SEVERAL = "exact", "broader", "several"


class Code(NamedTuple):
    """A code of a concept.

    kb_id (str): Id of the concept, or of the concept of a part of a composite mention.
    system (str): The terminology, as the prefix of its ids is written: "ICD10CM".
    code (str): The code, without that prefix.
    match (str): "exact" if the terminology has this one code for the concept, "several" if it has
        more, which one the note does not say; "broader" if the code means more than the concept.
    """

    kb_id: str
    system: str
    code: str
    match: str


class Codes(NamedTuple):
    """The codes that a mention has in a terminology.

    match (str): "exact", "broader" or "several", see `Code`.
    codes (tuple[str, ...]): One if it is exact.
    """

    match: str
    codes: tuple[str, ...]


def find_codes(kb: KnowledgeBase, kb_ids: str) -> tuple[Code, ...]:
    """Find the codes of concepts, their ids among them.

    Where a terminology has codes that are not broader, its broader ones are left out.

    kb_ids (str): Id of a concept, or several joined by "|"; "" has none.
    RETURNS (tuple[Code, ...]): By concept and system; those of the concept's own id first.
    """
    return tuple(code for kb_id in kb_ids.split(AND) if kb_id for code in _find_codes_of(kb, kb_id))


def _find_codes_of(kb: KnowledgeBase, kb_id: str) -> Iterable[Code]:
    row = kb.number(kb_id)
    own: dict[str, list[str]] = {}
    broader: dict[str, list[str]] = {}
    for xref in [kb_id, *(kb.xrefs_of(row) if row is not None else ())]:
        system, colon, code = xref.removeprefix(BROADER).partition(":")
        if colon and system and code and not code.startswith("//"):  # no web address
            found = broader if xref.startswith(BROADER) else own
            found.setdefault(system, []).append(code)
    for system in dict.fromkeys((*own, *broader)):
        codes = own.get(system) or broader[system]
        one = EXACT if len(codes) == 1 else SEVERAL
        match = one if system in own else BROAD
        yield from (Code(kb_id, system, code, match) for code in codes)


def group_codes(codes: Iterable[Code]) -> dict[str, Codes]:
    """Group the codes of a mention by system; those of a composite mention are several."""
    found: dict[str, list[Code]] = {}
    for code in codes:
        found.setdefault(code.system, []).append(code)
    return {
        system: Codes(
            members[0].match if len({one.kb_id for one in members}) == 1 else SEVERAL,
            tuple(dict.fromkeys(one.code for one in members)),
        )
        for system, members in found.items()
    }
