"""The records that terminology readers yield, and the count of what they leave out."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

# For each reason, the report names the first places only.
MAX_PLACES = 5
# Joins the ids of the parts of a composite mention, so it cannot be part of an id.
AND = "|"
# Begins a cross reference to what means more than the concept.
BROADER = "<"
# In characters; addresses of concepts are shorter, and a longer id is a table read wrongly.
MAX_ID = 500


class Alias(NamedTuple):
    """A name of a concept.

    text (str): The name as the terminology writes it.
    lang (str): Two-letter language code, "" if the source does not state it.
    """

    text: str
    lang: str = ""


class Concept(NamedTuple):
    """A concept, or a part of one: records of one id are joined when a knowledge base is built.

    id (str): Identifier within the terminology ("HP:0000003", "D001943", "8500/3").
    name (str): Preferred name; "" in a record that only adds to a concept (a translation).
    lang (str): Language of the preferred name, "" if the source does not state it.
    aliases (tuple[Alias, ...]): Other names, any language.
    types (tuple[str, ...]): Semantic types, tree numbers or other classes of the source.
    definition (str): One definition, or "".
    parents (tuple[str, ...]): Ids of the broader concepts.
    xrefs (tuple[str, ...]): Ids in other terminologies, as "PREFIX:id"; "<PREFIX:id" if that means
        more than the concept.
    alternative_ids (tuple[str, ...]): Retired or merged ids that mean this concept.
    """

    id: str
    name: str = ""
    lang: str = ""
    aliases: tuple[Alias, ...] = ()
    types: tuple[str, ...] = ()
    definition: str = ""
    parents: tuple[str, ...] = ()
    xrefs: tuple[str, ...] = ()
    alternative_ids: tuple[str, ...] = ()


def wrong_id(id: str) -> str:
    """Say why a text cannot be an id.

    RETURNS (str): The reason, for `SkipReport`; "" for an id.
    """
    if not id:
        return "no id"
    if len(id) > MAX_ID:
        return f"id over {MAX_ID} characters"
    if AND in id:
        return 'id with "|", which joins the ids of a composite mention'
    if id != id.strip():
        return "id with a blank before or after it"
    if not id.isprintable():
        return "id with a line break, or a control or invisible character"
    return ""


def is_type(name: str, wanted: Collection[str]) -> bool:
    """Check whether a type is one of those wanted; "C04*" stands for all that begin with C04."""
    return any(name.startswith(w[:-1]) if w.endswith("*") else name == w for w in wanted)


class SkipReport:
    """Count what was left out, by reason, with the first places of each."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.places: dict[str, list[str]] = {}

    def skip(self, reason: str, place: str, n: int = 1) -> None:
        """Count something that is left out.

        reason (str): Why, in general terms ("obsolete", "no name").
        place (str): Which: "file, line 12" or an id.
        n (int): How many.
        """
        self.counts[reason] += n
        places = self.places.setdefault(reason, [])
        if len(places) < MAX_PLACES:
            places.append(place)

    def as_dict(self) -> dict[str, dict[str, object]]:
        """Map each reason to {"n": count, "first": places}, the most frequent first."""
        return {
            reason: {"n": n, "first": self.places[reason]}
            for reason, n in self.counts.most_common()
        }
