"""What `bioclin_sections` finds: span groups, `doc._.sections` and `span._.section`.

Everything is read from two span groups, so that it is there wherever the groups are: in a DocBin,
in the Docs of worker processes, in the safe Doc of `bioclin_deid`.
"""

import re
from typing import NamedTuple

from spacy.tokens import Doc, Span

DEFAULT_KEY = "sections"
# What is between a title and its text, on the title's line.
_SEPARATOR = re.compile(r"[\s:.\-–—=>)\]}*_#\"']+")


class Section(NamedTuple):
    """A section of a note.

    category (str): Its category, or "other".
    loinc (str | None): LOINC code of the category.
    title (Span | None): Its title; None if the group of titles is not there.
    body (Span): Its text after the title, the colon and white space. It may be empty.
    """

    category: str
    loinc: str | None
    title: Span | None
    body: Span


def titles_key(spans_key: str) -> str:
    """Name the span group of the titles: "section_titles" for "sections"."""
    return f"{spans_key.removesuffix('s')}_titles"


def install_extensions() -> None:
    """Register `doc._.sections` and `span._.section`."""
    if not Doc.has_extension("sections"):
        Doc.set_extension("sections", getter=get_sections)
    if not Span.has_extension("section"):
        Span.set_extension("section", getter=get_section)


def find_key(doc: Doc) -> str | None:
    """Find the span group with the sections: "sections", or another one with a group of titles."""
    keys = [key for key in (DEFAULT_KEY, *doc.spans) if titles_key(key) in doc.spans]
    return next((key for key in keys if key in doc.spans), None)


def get_sections(doc: Doc) -> list[Section]:
    """Read the sections of a Doc, in order.

    RETURNS (list[Section]): Empty if no heading was found or looked for.
    """
    key = find_key(doc)
    if key is None:
        return []
    titles = {title.start: title for title in doc.spans[titles_key(key)]}
    return [_make_section(span, titles.get(span.start)) for span in doc.spans[key]]


def _make_section(span: Span, title: Span | None) -> Section:
    doc, start = span.doc, span.start
    if title is not None:
        start = min(title.end, span.end)
        while start < span.end and _SEPARATOR.fullmatch(doc[start].text):
            start += 1
            if "\n" in doc[start - 1].text:
                break
        while start < span.end and doc[start].is_space:
            start += 1
    return Section(span.label_, span.kb_id_ or None, title, doc[start : span.end])


def get_section(span: Span) -> str | None:
    """Find the category of the section in which a span begins.

    RETURNS (str | None): None before the first heading.
    """
    key = find_key(span.doc)
    if key is None:
        return None
    group = span.doc.spans[key]
    low, high = 0, len(group)  # they are sorted, and do not overlap
    while low < high:
        middle = (low + high) // 2
        if group[middle].start <= span.start:
            low = middle + 1
        else:
            high = middle
    if low == 0 or group[low - 1].end <= span.start:
        return None
    return str(group[low - 1].label_)
