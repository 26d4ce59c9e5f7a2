"""What a linker reads from a Doc and writes to it.

Candidates and abbreviations are plain values in `doc.user_data`, which DocBin, bytes and other
processes keep.
"""

from collections.abc import Iterable, Mapping, Sequence

from spacy.tokens import Doc, Span, SpanGroup

from ..spans import get_spans
from ..tokenization.defined_abbreviations import Abbreviation, expand_abbreviations
from .candidates import Candidate

CANDIDATES_KEY, ABBREVIATIONS_KEY = "bioclin_candidates", "bioclin_abbreviations"


def install_extensions() -> None:
    """Register `span._.candidates` and `doc._.abbreviations`."""
    if not Span.has_extension("candidates"):
        Span.set_extension("candidates", getter=get_candidates)
    if not Doc.has_extension("abbreviations"):
        Doc.set_extension("abbreviations", getter=get_abbreviations)


def get_candidates(span: Span) -> list[Candidate]:
    """List what a span may mean, best first; empty if nothing is known."""
    rows = span.doc.user_data.get(CANDIDATES_KEY, {}).get(_key(span), ())
    return [Candidate(*row) for row in rows]


def get_abbreviations(doc: Doc) -> list[list[int]]:
    """List start and end of each short form, then of its long form, as character offsets."""
    return [list(row) for row in doc.user_data.get(ABBREVIATIONS_KEY, ())]


def set_candidates(span: Span, candidates: Iterable[Candidate]) -> None:
    """Store the candidates of a span."""
    kept = span.doc.user_data.setdefault(CANDIDATES_KEY, {})
    kept[_key(span)] = [list(candidate) for candidate in candidates]


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
    return [expand_abbreviations(span.text, definitions) for span in spans]


def _key(span: Span) -> str:
    # A string, because msgpack does not keep tuples as nested keys.
    return f"{span.start_char} {span.end_char} {span.label_}"
