"""Collect records of concepts, as numbers and bytes, until a knowledge base is built."""

import re
import unicodedata
from array import array
from collections.abc import Collection

import numpy as np

from ...errors import BioclinError
from ..names.columns import StringBuffer, as_array
from ..names.normalize import normalize
from .concepts import Concept, SkipReport, wrong_id

# A longer "name" is a definition or a table read wrongly.
MAX_NAME = 500
# The report shows this much of a wrong id.
SHOWN = 50
# What does not belong into a name: control characters, invisible ones such as those that reverse
# the direction of a text, and halves of surrogate pairs, which cannot be written to a file.
INVISIBLE = ("Cc", "Cf", "Cs")
# Two of these together survive any normalisation, so most names need none to be checked.
SURE = re.compile("[A-Za-z0-9]{2}")
# The codes of languages, in the letters and digits of RFC 5646.
LANG = re.compile(r"[A-Za-z0-9]{0,8}(?:[-_][A-Za-z0-9]{1,8}){0,3}")
# The language of a name is stored in a byte.
MAX_LANGS = 256


class Values:
    """Numbers that belong to concepts, in the order they came."""

    def __init__(self) -> None:
        self.owner, self.value = array("i"), array("q")

    def append(self, owner: int, value: int) -> None:
        """Add a number."""
        self.owner.append(owner)
        self.value.append(value)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Get the owners (int32) and the values (int64)."""
        return as_array(self.owner, np.int32), as_array(self.value, np.int64)


class Texts(Values):
    """Strings that belong to concepts; equal strings have equal values."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = StringBuffer()

    def add(self, owner: int, text: str) -> None:
        """Add a string."""
        self.append(owner, hash(text))
        self.texts.append(text)


class Records:
    """The content of all records. Each id, also that of a parent, gets a number when it is first
    seen: the "owner" in the columns.

    report (SkipReport): Counts names that are left out.
    langs (Collection[str]): Keep names in these languages, and names without a language; empty
        keeps all.
    """

    def __init__(self, report: SkipReport, langs: Collection[str]) -> None:
        self.report, self.langs = report, frozenset(langs)
        self.number: dict[str, int] = {}
        self.type_number: dict[str, int] = {}
        self.lang_number: dict[str, int] = {}
        self.is_record, self.parents, self.types = bytearray(), Values(), Values()
        self.names, self.lang, self.preferred = Texts(), array("B"), bytearray()
        self.definitions, self.xrefs, self.other_ids = Texts(), Texts(), Texts()

    def add(self, record: Concept) -> None:
        """Add a concept, or more about one that was added before.

        RAISES (BioclinError): There are too many languages for a knowledge base.
        """
        if why := wrong_id(record.id):
            self.report.skip(why, repr(record.id[:SHOWN]))
            return
        owner = self._owner(record.id)
        self.is_record[owner] = True
        if record.name:
            self._add_name(owner, record.id, record.name, record.lang, preferred=True)
        for alias in record.aliases:
            self._add_name(owner, record.id, alias.text, alias.lang, preferred=False)
        for name in map(_drop_invisible, record.types):
            self.types.append(owner, self.type_number.setdefault(name, len(self.type_number)))
        for parent in record.parents:
            if why := wrong_id(parent):
                self.report.skip(f"parent: {why}", record.id)
            else:
                self.parents.append(owner, self._owner(parent))
        if record.definition:
            self.definitions.add(owner, _drop_invisible(record.definition))
        for xref in map(_drop_invisible, record.xrefs):
            self.xrefs.add(owner, xref)
        for other in record.alternative_ids:
            if why := wrong_id(other):
                self.report.skip(f"alternative id: {why}", record.id)
            else:
                self.other_ids.add(owner, other)

    def _owner(self, id: str) -> int:
        owner = self.number.setdefault(id, len(self.number))
        if owner == len(self.is_record):
            self.is_record.append(False)
        return owner

    def _add_name(self, owner: int, id: str, text: str, lang: str, *, preferred: bool) -> None:
        text = " ".join(text.split())
        if (shown := _drop_invisible(text)) != text:
            self.report.skip("name with invisible or control characters (removed)", id)
            text = " ".join(shown.split())
        if not LANG.fullmatch(lang):
            self.report.skip("language that is not a code (left out)", id)
            lang = ""
        number = self.lang_number.setdefault(lang, len(self.lang_number))
        if number == MAX_LANGS:
            raise BioclinError(
                f"{id}: {lang[:20]!r} is language number {MAX_LANGS + 1} of the names; is this the "
                "right column for the language?"
            )
        if lang and self.langs and lang not in self.langs:
            self.report.skip(f"name in language {lang}, not asked for", id)
        elif len(text) > MAX_NAME:
            self.report.skip(f"name over {MAX_NAME} characters", id)
        elif not SURE.search(text) and not normalize(text):
            self.report.skip("name without a letter (Latin or Greek) or digit", id)
        else:
            self.names.add(owner, text)
            self.lang.append(number)
            self.preferred.append(preferred)


def _drop_invisible(text: str) -> str:
    """Remove characters that nobody sees; line breaks and tabs become blanks."""
    if text.isprintable():
        return text
    return "".join(
        " " if char.isspace() else char
        for char in text
        if char.isspace() or unicodedata.category(char) not in INVISIBLE
    )
