"""Keep measurements in the span group of a Doc, and read them back.

The group's attrs hold plain values, which survive `Doc.to_bytes`, a DocBin and processes: the
settings of the component, and one row for each span, in order. Where only the settings are left, as
in the Doc that de-identification makes, measurements are found again around each span: a value that
was replaced in the text is not kept elsewhere.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from spacy.tokens import Doc, Span, SpanGroup

from .measurement import KINDS, Measurement
from .rules.find import Finder
from .rules.lexicon import LANGS

ROWS, SETTINGS = "measurements", "measurement_settings"
_MARGIN = 150  # characters around a span that the rules look at

Row = list[Any]


def install_extensions() -> None:
    """Register `doc._.measurements`, `doc._.note_date` and `span._.measurement`."""
    if not Span.has_extension("measurement"):
        Span.set_extension("measurement", getter=get_measurement)
    if not Doc.has_extension("measurements"):
        Doc.set_extension("measurements", getter=get_measurements)
    if not Doc.has_extension("note_date"):
        Doc.set_extension("note_date", default=None)


@lru_cache(maxsize=16)
def _make_finder(lang: str, units: tuple[tuple[str, str], ...]) -> Finder:
    return Finder(lang, dict(units))


def get_finder(lang: str, units: dict[str, str]) -> Finder:
    """Get the finder of a language with a user's units; it is made once."""
    return _make_finder(lang, tuple(sorted(units.items())))


def find_in(text: str, langs: Iterable[str], units: dict[str, str]) -> list[Measurement]:
    """Find measurements by the rules of some languages; what an earlier one found stays.

    RETURNS (list[Measurement]): In order, not overlapping.
    """
    found: list[Measurement] = []
    for lang in langs:
        other = get_finder(lang, units).find(text)
        found = _merge(found, other) if found else other
    return found


def _merge(kept: list[Measurement], other: list[Measurement]) -> list[Measurement]:
    starts = [one.start_char for one in kept]
    new = []
    for one in other:
        at = bisect_left(starts, one.end_char)
        if at == 0 or kept[at - 1].end_char <= one.start_char:
            new.append(one)
    return sorted(kept + new, key=lambda one: one.start_char)


def set_measurements(
    doc: Doc, key: str, found: list[Measurement], settings: dict[str, Any]
) -> None:
    """Write measurements as spans of whole tokens.

    A measurement that begins or ends inside a token gets a span of all its tokens, which it may
    share with another one; the row has its exact characters.
    """
    spans, rows = [], []
    for one in found:
        span = doc.char_span(one.start_char, one.end_char, label=one.kind, alignment_mode="expand")
        assert span is not None  # the offsets are those of the Doc's text
        spans.append(span)
        value = list(one.value) if isinstance(one.value, tuple) else one.value
        rows.append([one.kind, value, *one[2:], span.start_char, span.end_char])
    doc.spans[key] = spans
    doc.spans[key].attrs.update({ROWS: rows, SETTINGS: settings})


def has_measurements(doc: Doc) -> bool:
    """Check whether the component annotated a Doc, even if it found nothing."""
    return any(True for _ in _groups(doc))


def get_measurements(doc: Doc) -> tuple[Measurement, ...]:
    """Get `doc._.measurements`: all of a Doc, in order, with their exact characters."""
    return tuple(each for _, group in _groups(doc) for each in _read_group(group))


def _read_group(group: SpanGroup) -> Iterator[Measurement]:
    rows = _rows(group)
    if rows is not None:
        yield from map(_from_row, rows)
    else:
        yield from filter(None, map(get_measurement, group))


def get_measurement(span: Span) -> Measurement | None:
    """Get `span._.measurement`: None for a span that is no measurement.

    Of several measurements in one token, the first of the span's label.
    """
    settings: dict[str, Any] = {}
    for _, group in _groups(span.doc):
        settings = group.attrs[SETTINGS]
        rows = _rows(group)
        if rows is None:
            continue
        at = bisect_left(rows, span.start_char, key=lambda row: row[-2])
        while at < len(rows) and rows[at][-2] == span.start_char:
            if rows[at][-1] == span.end_char and rows[at][0] == span.label_:
                return _from_row(rows[at])
            at += 1
    return _find_again(span, settings) if span.label_ in KINDS else None


def _find_again(span: Span, settings: dict[str, Any]) -> Measurement | None:
    """Find the measurement of a span by the text around it."""
    text: str = span.doc.text
    langs = settings.get("langs") or [span.doc.lang_]
    start = max(0, span.start_char - _MARGIN)
    window = text[start : span.end_char + _MARGIN]
    for one in find_in(
        window, (lang for lang in langs if lang in LANGS), settings.get("units", {})
    ):
        first, last = one.start_char + start, one.end_char + start
        if one.kind == span.label_ and span.start_char <= first and last <= span.end_char:
            return one._replace(start_char=first, end_char=last)
    return None


def measurements_between(doc: Doc, start: int, end: int) -> list[Measurement]:
    """Get the measurements of a Doc that begin in a range of characters."""
    for _, group in _groups(doc):
        rows = _rows(group)
        if rows is not None:
            first = bisect_left(rows, start, key=lambda row: row[-2])
            last = bisect_right(rows, end - 1, key=lambda row: row[-2])
            return [_from_row(row) for row in rows[first:last]]
        found = find_in(
            doc.text[start:end], group.attrs[SETTINGS]["langs"], group.attrs[SETTINGS]["units"]
        )
        return [
            m._replace(start_char=m.start_char + start, end_char=m.end_char + start) for m in found
        ]
    return []


def get_settings(doc: Doc) -> dict[str, Any]:
    """Get the settings of the component that annotated a Doc; empty if none did."""
    return next((group.attrs[SETTINGS] for _, group in _groups(doc)), {})


def _groups(doc: Doc) -> Iterator[tuple[str, SpanGroup]]:
    return ((key, group) for key, group in doc.spans.items() if SETTINGS in group.attrs)


def _rows(group: SpanGroup) -> list[Row] | None:
    """Get the rows of a group; None if its spans were changed since."""
    rows: list[Row] | None = group.attrs.get(ROWS)
    return rows if rows is not None and len(rows) == len(group) else None


def _from_row(row: Row) -> Measurement:
    value = tuple(row[1]) if isinstance(row[1], list) else row[1]
    return Measurement(row[0], value, *row[2:7])
