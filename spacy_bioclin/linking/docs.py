"""What a linker writes to a Doc: candidates and abbreviations, as plain values in `doc.user_data`,
which DocBin, bytes and other processes pass on."""

from collections.abc import Iterable, Mapping, Sequence

from spacy.tokens import Doc, Span, SpanGroup

from ..tokenization.abbreviations import Abbreviation, expand_abbreviations, find_abbreviations
from .candidates import Candidate

CANDIDATES_KEY, ABBREVIATIONS_KEY = "bioclin_candidates", "bioclin_abbreviations"


def install_extensions() -> None:
    """Register `span._.candidates` and `doc._.abbreviations`."""
    if not Span.has_extension("candidates"):
        Span.set_extension("candidates", getter=get_candidates)
    if not Doc.has_extension("abbreviations"):
        Doc.set_extension("abbreviations", getter=get_abbreviations)


def get_candidates(span: Span) -> list[Candidate]:
    """RETURNS (list[Candidate]): What the span may mean, best first; empty if nothing is known."""
    rows = span.doc.user_data.get(CANDIDATES_KEY, {}).get(_key(span), ())
    return [Candidate(*row) for row in rows]


def get_abbreviations(doc: Doc) -> list[list[int]]:
    """RETURNS (list[list[int]]): Start and end of each short form, then of its long form, as
    character offsets."""
    return [list(row) for row in doc.user_data.get(ABBREVIATIONS_KEY, ())]


def set_candidates(span: Span, candidates: Iterable[Candidate]) -> None:
    """Keep the candidates of a span."""
    kept = span.doc.user_data.setdefault(CANDIDATES_KEY, {})
    kept[_key(span)] = [list(candidate) for candidate in candidates]


def set_abbreviations(doc: Doc, abbreviations: Iterable[Abbreviation]) -> None:
    """Keep the abbreviations of a Doc."""
    doc.user_data[ABBREVIATIONS_KEY] = [[*a.short, *a.long] for a in abbreviations]


def get_spans(doc: Doc, spans_key: str | None) -> list[Span]:
    """RETURNS (list[Span]): `doc.ents`, or the spans of a key, none if the Doc has not got it."""
    return list(doc.ents) if spans_key is None else list(doc.spans.get(spans_key, ()))


def set_kb_ids(doc: Doc, spans_key: str | None, kb_ids: Mapping[int, str]) -> None:
    """Write the ids of concepts; whatever else a span says stays.

    kb_ids (Mapping[int, str]): Index in `get_spans` -> id.
    """
    spans = get_spans(doc, spans_key)
    if spans_key is None:
        for i, kb_id in kb_ids.items():
            for token in spans[i]:
                token.ent_kb_id_ = kb_id
        return
    if kb_ids:
        group = doc.spans[spans_key]
        for i, kb_id in kb_ids.items():
            span = spans[i]
            spans[i] = Span(doc, span.start, span.end, span.label, kb_id=kb_id, span_id=span.id)
        doc.spans[spans_key] = SpanGroup(doc, name=group.name, attrs=dict(group.attrs), spans=spans)


def mention_texts(
    doc: Doc, spans: Sequence[Span], abbreviations: Sequence[Abbreviation]
) -> list[str]:
    """RETURNS (list[str]): The text of each span, abbreviations replaced by what the Doc says they
    stand for; of several definitions the first counts."""
    text = doc.text
    definitions: dict[str, str] = {}
    for short, long in abbreviations:
        definitions.setdefault(text[slice(*short)], text[slice(*long)])
    return [expand_abbreviations(span.text, definitions) for span in spans]


def abbreviations_of(doc: Doc, expand: bool) -> list[Abbreviation]:
    """RETURNS (list[Abbreviation]): Those that the Doc defines; none if they are not asked for."""
    return find_abbreviations(doc.text) if expand else []


def _key(span: Span) -> str:
    # A string: nested keys that are tuples do not survive msgpack.
    return f"{span.start_char} {span.end_char} {span.label_}"
