"""Take out of an annotated Doc what is written about it: entities, relations, categories."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ...annotations.relations import RELATIONS_KEY, Relation, get_relations
from ...context.measurements.measurement import Measurement
from ...context.measurements.results.doc import get_results
from ...context.measurements.store import SETTINGS, get_measurements
from ...context.medication.record import is_drug, read_medication
from ...context.rules.attributes import get_modifiers
from ...context.rules.rule_data import KINDS
from ...context.sections.result import find_key, titles_key
from ...linking.docs import list_codes
from ...spans import get_layers
from ..columns import Row
from .coverage import Coverage

ENTS = "ents"  # the layer of doc.ents
CONTEXT = "context"
MEASUREMENTS = "measurements"
CODE_KEYS = ("system", "code", "match")  # what is written of a code


class Note(NamedTuple):
    """What is written about a note.

    record (int): Its position in the input, from 1.
    id (str): Its id.
    kept (Row): The columns of the input that are kept.
    text (str): Its text.
    entities (list[Row]): Spans of all layers, see `describe_entities`.
    relations (list[Row]): See `describe_relations`.
    categories (dict[str, float] | None): Class of the text -> probability.
    coverage (Coverage | None): What the encoder has read.
    language (str | None): A guess, see `guess_language`.
    results (Sequence[Row]): See `describe_results`.
    """

    record: int
    id: str
    kept: Row
    text: str
    entities: list[Row]
    relations: list[Row]
    categories: dict[str, float] | None
    coverage: Coverage | None
    language: str | None = None
    results: Sequence[Row] = ()


class _Around:
    """What is around the spans of a Doc: its text, sections and cues, looked up once.

    text (str): Text of the Doc, which spaCy joins again each time.
    """

    def __init__(self, doc: Doc, text: str) -> None:
        self.text = text
        self.key = find_key(doc)
        sections = doc.spans[self.key] if self.key is not None else ()
        self.sections = [(each.start, each.end, each.label_) for each in sections]
        cues = doc.spans.get(CONTEXT)
        self.has_sentences = doc.has_annotation("SENT_START")
        self.has_cues = cues is not None and len(cues) > 0
        self.no_kinds = dict.fromkeys(KINDS, None if cues is None else False)

    def describe(self, span: Span, layer: str, probability: float | None) -> Row:
        """Describe a span."""
        start, end = span.start_char, span.end_char
        kinds: dict[str, Any] = self.no_kinds
        if self.has_cues and (modifiers := get_modifiers(span)):
            kinds = {**kinds, **{each.kind: True for each in modifiers}}
        return {
            "start": start,
            "end": end,
            "label": span.label_,
            "layer": layer,
            "text": self.text[start:end],
            "kb_id": span.kb_id_ or None,
            "codes": describe_codes(span),
            "probability": _round(probability),
            "section": self._find_section(span.start),
            **kinds,
            "medication": self._find_medication(span),
            "value": None,
            "high": None,
            "comparator": None,
            "unit": None,
        }

    def _find_medication(self, span: Span) -> Row | None:
        is_known = self.has_sentences and is_drug(span)
        return read_medication(span).to_dict() if is_known else None

    def _find_section(self, token: int) -> str | None:
        """Find the section of a token, as `get_section` does."""
        at = bisect_right(self.sections, token, key=lambda each: each[0]) - 1
        return self.sections[at][2] if at >= 0 and token < self.sections[at][1] else None


def describe_codes(span: Span) -> list[dict[str, str]] | None:
    """Describe the codes of the concept of a span: system, code, match; None without any."""
    codes = (code._asdict() for code in list_codes(span))
    return [{key: code[key] for key in CODE_KEYS} for code in codes] or None


def describe_entities(doc: Doc, text: str) -> list[Row]:
    """Describe the spans of all layers, but for sections and cues, which entities refer to.

    text (str): Text of the Doc.
    RETURNS (list[Row]): Offsets are code points of the untouched text. `probability` is None where
        the component gives none. The attributes of `bioclin_context` are None if it did not run,
        `medication` is None but for drugs, and `value`, `high`, `comparator` and `unit` belong to
        measurements.
    """
    around = _Around(doc, text)
    left_out = {CONTEXT, *([around.key, titles_key(around.key)] if around.key else [])}
    rows = []
    measured: list[Span] = []
    for key, spans, probabilities in get_layers(doc):
        if key in left_out:
            continue
        if key is not None and SETTINGS in doc.spans[key].attrs:
            measured += spans
            continue
        for span, p in zip(spans, probabilities, strict=True):
            rows.append(around.describe(span, key or ENTS, p))
    return [*rows, *_describe_measurements(doc, measured, around)]


def _describe_measurements(doc: Doc, spans: Sequence[Span], around: _Around) -> Iterator[Row]:
    """Describe measurements, which have exact characters, by their spans of whole tokens."""
    found = get_measurements(doc) if spans else ()
    if len(found) != len(spans):  # of a group that was changed since
        spans = [
            span
            for one in found
            if (span := doc.char_span(one.start_char, one.end_char, alignment_mode="expand"))
        ]
    for one, span in zip(found, spans, strict=True):
        yield {
            **around.describe(span, MEASUREMENTS, None),
            "start": one.start_char,
            "end": one.end_char,
            "label": one.kind,
            "text": around.text[one.start_char : one.end_char],
            "kb_id": None,
            "codes": None,
            "value": _describe_value(one),
            "high": one.high,
            "comparator": one.comparator,
            "unit": one.unit,
        }


def _describe_value(one: Measurement) -> Any:
    return list(one.value) if isinstance(one.value, tuple) else one.value


def describe_results(doc: Doc) -> list[Row]:
    """Describe the results of tests; "text" is the name of the test, start and end the value's."""
    return [
        {
            "start": one.start_char,
            "end": one.end_char,
            "name_start": one.name_start,
            "name_end": one.name_end,
            "text": one.name,
            "kind": one.kind,
            "value": list(one.value) if isinstance(one.value, tuple) else one.value,
            "high": one.high,
            "comparator": one.comparator,
            "unit": one.unit,
            "out_of": one.out_of,
            "low_limit": one.low_limit,
            "high_limit": one.high_limit,
            "flag": one.flag,
            "date": one.date,
        }
        for one in get_results(doc)
    ]


def describe_relations(doc: Doc) -> list[Row]:
    """Describe the relations that components have found; each argument by its offsets."""
    if RELATIONS_KEY not in doc.user_data:
        return []
    return [_describe_relation(relation) for relation in get_relations(doc)]


def _describe_relation(relation: Relation) -> Row:
    concepts = relation.concepts or (None, None)
    row: Row = {"label": relation.label, "probability": _round(relation.probability)}
    for role, span, kb_id in zip(
        ("head", "child"), (relation.head, relation.child), concepts, strict=True
    ):
        row[role] = {
            "start": span.start_char,
            "end": span.end_char,
            "label": span.label_,
            "text": span.text,
            "kb_id": kb_id,
        }
    return row


def describe_categories(doc: Doc) -> dict[str, float] | None:
    """Describe the classes of the text; None if the pipeline does not classify texts."""
    return {label: round(float(p), 4) for label, p in doc.cats.items()} or None


def count_note(note: Note) -> dict[str, Any]:
    """Count what was found in a note, for the sums of a run."""
    counts: dict[str, Any] = {
        "written": 1,
        "empty": int(not note.text.strip()),
        "characters": len(note.text),
        "words": count_words(note.text),
        "entities": {},
        "relations": dict(Counter(each["label"] for each in note.relations)),
        "languages": {note.language or "unknown": 1},
    }
    for (layer, label), n in Counter((e["layer"], e["label"]) for e in note.entities).items():
        counts["entities"].setdefault(layer, {})[label] = n
    if note.coverage is not None:
        is_partial = note.coverage.outside > 0
        counts["coverage"] = {**note.coverage._asdict(), "notes": 1, "partial": int(is_partial)}
    return counts


def count_words(text: str) -> int:
    """Count the words of a text, which white space separates."""
    return len(text.split())


def _round(probability: float | None) -> float | None:
    return None if probability is None else round(float(probability), 4)
