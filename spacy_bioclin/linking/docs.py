"""What a linker reads from a Doc and writes to it.

Candidates, codes and offsets of abbreviations are plain values in `doc.user_data`, which DocBin,
bytes and other processes keep.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spacy.tokens import Doc, Span, SpanGroup

from ..spans import get_spans
from ..tokenization.defined_abbreviations import (
    Abbreviation,
    expand_mentions,
    find_short_forms,
)
from ..tokenization.long_forms import make_long_form
from .candidates import Candidate
from .references import Code, Codes, group_codes

# The form of the key of an extension: spaCy's warnings show the whole value under another key, as
# 0.2 and before had it.
CANDIDATES_KEY: Any = ("._.", "bioclin_candidates", None, None)
ABBREVIATIONS_KEY: Any = ("._.", "bioclin_abbreviations", None, None)
CODES_KEY: Any = ("._.", "bioclin_codes", None, None)


def install_extensions() -> None:
    """Register `span._.candidates`, `span._.codes`, `doc._.abbreviations`, `span._.long_form` and
    `doc._.abbreviation_offsets`."""
    getters: list[tuple[Any, str, Any]] = [
        (Span, "candidates", get_candidates),
        (Span, "codes", get_codes),
        (Doc, "abbreviations", get_abbreviations),
        (Span, "long_form", get_long_form),
        (Doc, "abbreviation_offsets", get_abbreviation_offsets),
    ]
    for kind, name, getter in getters:
        if not kind.has_extension(name):
            kind.set_extension(name, getter=getter)


def get_candidates(span: Span) -> list[Candidate]:
    """List what a span may mean, best first; empty if nothing is known."""
    rows = _stored(span.doc, CANDIDATES_KEY, {}).get(_key(span), ())
    return [Candidate(*row) for row in rows]


def get_codes(span: Span) -> dict[str, Codes]:
    """Get the codes of the concept of a span by terminology: "ICD10CM" -> its codes."""
    return group_codes(list_codes(span))


def list_codes(span: Span) -> list[Code]:
    """List the codes of the concept of a span, of each part of a composite mention."""
    return [Code(*row) for row in _stored(span.doc, CODES_KEY, {}).get(_key(span), ())]


def get_abbreviations(doc: Doc) -> list[Span]:
    """List every place of an abbreviation that the Doc defines, in order, as the
    AbbreviationDetector of scispaCy does. `span._.long_form` is its definition."""
    text, definitions = doc.text, _definitions(doc)
    places = find_short_forms(text, definitions)
    return [_cover(doc, start, end) for start, end in places]


def get_long_form(span: Span) -> Span | None:
    """Find what an abbreviation stands for: its definition in its Doc, or else the meaning that the
    lexicon of short forms has for it, as a Doc of its own. None if neither has it."""
    offsets = _definitions(span.doc).get(span.text)
    return make_long_form(span) if offsets is None else _cover(span.doc, *offsets)


def get_abbreviation_offsets(doc: Doc) -> list[list[int]]:
    """List where abbreviations are defined: start and end of each short form, then of its long
    form, as character offsets."""
    return [list(row) for row in _stored(doc, ABBREVIATIONS_KEY, ())]


def _definitions(doc: Doc) -> dict[str, tuple[int, int]]:
    """Map each short form to the offsets of its long form; the first of several counts."""
    text = doc.text
    definitions: dict[str, tuple[int, int]] = {}
    for start, end, *long in _stored(doc, ABBREVIATIONS_KEY, ()):
        definitions.setdefault(text[start:end], (long[0], long[1]))
    return definitions


def _stored(doc: Doc, key: Any, default: Any) -> Any:
    """Read what is stored under a key, or under its name alone."""
    return doc.user_data.get(key, doc.user_data.get(key[1], default))


def _cover(doc: Doc, start: int, end: int) -> Span:
    """Make a span of all tokens of which a part is between two offsets."""
    span: Any = doc.char_span(start, end, alignment_mode="expand")
    return span


def set_candidates(span: Span, candidates: Iterable[Candidate]) -> None:
    """Store the candidates of a span."""
    kept = span.doc.user_data.setdefault(CANDIDATES_KEY, {})
    kept[_key(span)] = [list(candidate) for candidate in candidates]


def set_codes(span: Span, codes: Iterable[Code]) -> None:
    """Store the codes of a span."""
    kept = span.doc.user_data.setdefault(CODES_KEY, {})
    kept[_key(span)] = [list(code) for code in codes]


def set_abbreviations(doc: Doc, abbreviations: Iterable[Abbreviation]) -> None:
    """Store the abbreviations of a Doc."""
    doc.user_data[ABBREVIATIONS_KEY] = [[*a.short, *a.long] for a in abbreviations]


def set_kb_ids(doc: Doc, spans_key: str | None, kb_ids: Mapping[int, str]) -> None:
    """Write the ids of concepts to the spans of a layer, and change nothing else.

    kb_ids (Mapping[int, str]): Index in `get_spans` -> id.
    """
    spans = get_spans(doc, spans_key)
    if spans_key is None:
        for i, kb_id in kb_ids.items():
            for token in spans[i]:
                token.ent_kb_id_ = kb_id
    elif kb_ids:
        group = doc.spans[spans_key]
        for i, kb_id in kb_ids.items():
            span = spans[i]
            spans[i] = Span(doc, span.start, span.end, span.label, kb_id=kb_id, span_id=span.id)
        doc.spans[spans_key] = SpanGroup(doc, name=group.name, attrs=dict(group.attrs), spans=spans)


def mention_texts(
    doc: Doc, spans: Sequence[Span], abbreviations: Sequence[Abbreviation]
) -> list[str]:
    """Get the text of each span, with abbreviations replaced by their definition in the Doc; the
    first of several definitions counts."""
    text = doc.text
    definitions: dict[str, str] = {}
    for short, long in abbreviations:
        definitions.setdefault(text[slice(*short)], text[slice(*long)])
    return expand_mentions([span.text for span in spans], definitions)


def _key(span: Span) -> str:
    # A string, because msgpack does not keep tuples as nested keys.
    return f"{span.start_char} {span.end_char} {span.label_}"
