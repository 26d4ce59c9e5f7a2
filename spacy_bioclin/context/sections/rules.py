"""The titles of sections: the shipped ones, and those that a user adds.

A YAML file of titles, and the setting `titles`, map a category to its titles:

    past_history: [APP, Antecedentes de salud]
    allergies:
      titles:
        - title: RAM
          unless_followed_by: "\\\\s*\\\\d+ gb"
    pain_clinic: {new: true, loinc: null, titles: [Unidad del dolor]}

How a title is written: accents and case do not count; "y", "e", "and", "&", "/", "+" and "," are
equal. A title of up to `MAX_ABBREVIATION` letters that are all capitals is an abbreviation, which
may have points between its letters and is found in fewer places. The patterns are regular
expressions in lower case without accents, for the text after the title (after its colon too) and
for that before it, up to `PATTERN_CHARS` characters.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import srsly
from pydantic import AfterValidator, Field

from ...errors import BioclinError
from ...settings import Settings, find_nearest, read_settings
from ...text import fold_plain

LANGS = ("es", "en")
OTHER = "other"  # a heading that is in no list
MAX_ABBREVIATION = 6
MAX_TITLE_WORDS = 12
PATTERN_CHARS = 60
CONNECTOR = "&"
# The parts of a category open it after these.
_BEFORE_EXAM = (
    "clinical_summary chief_complaint present_illness past_history surgical_history family_history "
    "social_history gynecologic_history functional_status allergies immunizations home_medication"
)
OPENED_AFTER = {
    "physical_exam": frozenset(_BEFORE_EXAM.split()),
    "review_of_systems": frozenset({"chief_complaint", "present_illness"}),
}
JOINING_WORDS = frozenset({"y", "e", "and"})
_PART = re.compile(r"[^\W_]+|[&/+,]")


def _check_title(title: str) -> str:
    words = _words_of(title)
    if not any(word != CONNECTOR for word in words):
        raise ValueError("a title needs a letter or a digit")
    if len(words) > MAX_TITLE_WORDS:
        raise ValueError(f"a title has at most {MAX_TITLE_WORDS} words")
    return title


def _check_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression ({error})") from None
    return pattern


def _check_loinc(code: str) -> str:
    if not re.fullmatch(r"\d{1,7}-\d", code):
        raise ValueError("want a LOINC code such as 10164-2")
    return code


Title = Annotated[str, AfterValidator(_check_title)]
Pattern = Annotated[str, AfterValidator(_check_pattern)]
Loinc = Annotated[str, AfterValidator(_check_loinc)]


class TitleSettings(Settings):
    """A title that is no heading before or after certain words.

    title (str): The title.
    unless_followed_by (str | None): Pattern of the text after the title that makes it no heading.
    unless_preceded_by (str | None): Pattern of the text before it; write "$" at its end.
    """

    title: Title
    unless_followed_by: Pattern | None = None
    unless_preceded_by: Pattern | None = None


class CategorySettings(Settings):
    """The titles of a category.

    titles (list): Titles, added to the shipped ones.
    parts (list): Titles of its parts ("Abdomen"), which need a colon. They open the section only
        after some others, see `OPENED_AFTER`; elsewhere they belong to the section they are in.
    loinc (str | None): LOINC code of the section, in place of the shipped one.
    new (bool): The category is not a shipped one.
    """

    titles: list[TitleSettings] = Field(default_factory=list)
    parts: list[Title] = Field(default_factory=list)
    loinc: Loinc | None = None
    new: bool = False


class Entry(NamedTuple):
    """A title that is searched for.

    abbreviation (bool): See the module.
    dotted (bool): Its letters are words of their own, with a point after each.
    part (bool): It is the title of a part.
    """

    category: str
    abbreviation: bool = False
    dotted: bool = False
    part: bool = False
    not_before: re.Pattern[str] | None = None
    not_after: re.Pattern[str] | None = None


class Node:
    """A step of the search for titles: what the words so far are, and what may follow."""

    __slots__ = ("entries", "next")

    def __init__(self) -> None:
        self.next: dict[str, Node] = {}
        self.entries: list[Entry] = []


class SectionRules(NamedTuple):
    """The titles of some languages, and their categories.

    root (Node): The words of all titles.
    loinc (dict[str, str | None]): Category -> LOINC code.
    """

    root: Node
    loinc: dict[str, str | None]


def read_titles(titles: Any, *, where: str) -> dict[str, Any]:
    """Check titles that a user adds.

    titles (Any): Category -> list of titles, or `CategorySettings`.
    where (str): File or component, which begins every message.
    RETURNS (dict[str, Any]): Category -> `CategorySettings` as a plain dict.
    RAISES (BioclinError): A category that does not exist, a pattern that does not compile, or a
        value of another type.
    """
    if titles is None:
        return {}
    if not isinstance(titles, Mapping):
        raise BioclinError(f"{where}: want a table of categories with lists of titles")
    known = read_categories()
    found: dict[str, Any] = {}
    for category, values in titles.items():
        if not isinstance(category, str):
            raise BioclinError(f"{where}: category {category!r}: want a text; put it in quotes")
        if not isinstance(values, Mapping):
            values = {"titles": values}
        is_new = values.get("new") is True
        if category not in known and not is_new:
            raise BioclinError(
                f"{where}: unknown category {category!r}; {find_nearest(category, list(known))}"
                f"want one of {', '.join(known)}, or set new: true for a category of your own"
            )
        values = {**values, "titles": _expand(values.get("titles", []))}
        checked = read_settings(CategorySettings, values, where=f"{where}: {category}")
        found[category] = checked.model_dump()
    return found


def _expand(titles: Any) -> Any:
    """Write titles that are texts as `TitleSettings`; leave mistakes for the message."""
    if not isinstance(titles, list):
        return titles
    return [{"title": title} if isinstance(title, str) else title for title in titles]


@cache
def read_categories() -> dict[str, str | None]:
    """Read the shipped categories.

    RETURNS (dict[str, str | None]): Category -> LOINC code.
    """
    content = srsly.read_yaml(Path(__file__).with_name("categories.yml"))
    return {name: values.get("loinc") for name, values in content.items()}


@cache
def _shipped(lang: str) -> dict[str, Any]:
    path = Path(__file__).with_name(f"titles_{lang}.yml")
    return read_titles(srsly.read_yaml(path), where=path.name)


def make_rules(langs: tuple[str, ...], added: Mapping[str, Any]) -> SectionRules:
    """Index the titles of some languages and those of a user.

    langs (tuple[str, ...]): Of LANGS, in the order of precedence.
    added (Mapping[str, Any]): What `read_titles` returned. It goes before the shipped titles.
    RETURNS (SectionRules): The rules.
    RAISES (BioclinError): There are no titles for a language.
    """
    root = Node()
    loinc = dict(read_categories())
    for category, values in added.items():
        if values["loinc"] is not None or category not in loinc:
            loinc[category] = values["loinc"]
    unknown = next((lang for lang in langs if lang not in LANGS), None)
    if unknown is not None:
        raise BioclinError(
            f"there are no section titles for language {unknown!r}; want some of {', '.join(LANGS)}"
        )
    for source in (added, *map(_shipped, langs)):
        for category, values in source.items():
            for title in values["titles"]:
                _add(root, category, title, is_part=False)
            for title in values["parts"]:
                _add(root, category, {"title": title}, is_part=True)
    return SectionRules(root, loinc)


def _add(root: Node, category: str, settings: dict[str, str | None], *, is_part: bool) -> None:
    title = settings["title"] or ""
    patterns = [settings.get("unless_followed_by"), settings.get("unless_preceded_by")]
    not_before, not_after = (None if one is None else re.compile(one) for one in patterns)
    entry = Entry(
        category, is_abbreviation(title), part=is_part, not_before=not_before, not_after=not_after
    )
    words = _words_of(title)
    _insert(root, words, entry)
    if entry.abbreviation and len(words) == 1 and 1 < len(words[0]) <= MAX_ABBREVIATION:
        _insert(root, list(words[0]), entry._replace(dotted=True))


def _insert(root: Node, words: list[str], entry: Entry) -> None:
    node = root
    for word in words:
        node = node.next.setdefault(word, Node())
    # The first that is given counts: a user's before ours.
    if all(known.dotted != entry.dotted for known in node.entries):
        node.entries.append(entry)


def is_title(text: str, rules: SectionRules) -> bool:
    """Check whether a text is a known title or part."""
    node: Node | None = rules.root
    for word in _words_of(text):
        node = node.next.get(word) if node is not None else None
    return node is not None and bool(node.entries)


def is_abbreviation(title: str) -> bool:
    """Check for a title that is searched for as an abbreviation ("AP", "A&P")."""
    return title.isupper() and len(title) <= MAX_ABBREVIATION


def _words_of(title: str) -> list[str]:
    """Split a title into folded words, with `CONNECTOR` for all that means "and"."""
    words: list[str] = []
    parts = _PART.findall(fold_plain(title).lower())
    for i, part in enumerate(parts):
        joins = part in JOINING_WORDS and 0 < i < len(parts) - 1  # not of "E. física"
        if part.isalnum() and not joins:
            words.append(part)
        elif words and words[-1] != CONNECTOR:
            words.append(CONNECTOR)
    return words[:-1] if words and words[-1] == CONNECTOR else words
