"""Make gold Docs from annotations, and annotations from Docs."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..errors import BioclinError
from ..types import (
    GOLD_KEY,
    AnnotatedText,
    Annotation,
    CharSpan,
    NoteAnnotation,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from .brat import count_rounded_ids
from .relations.gold import Arguments, Level, RelationLabels, find_gold_relations
from .relations.predicted import has_predicted, make_annotations, replace_relations
from .report import LossReport
from .tools.exchange import count_unread

# Label -> name of the layer that it belongs to; "*" means every label not named.
# The layer "ents" is doc.ents (flat) and doc.spans["ents"] (all of it), any other layer L is
# doc.spans[L]: {"*": "phi"} puts everything in doc.spans["phi"] and leaves doc.ents missing. None
# leaves spans out, and counts them.
Layers = Mapping[str, str | None]
ALL_ENTS: Layers = {"*": "ents"}

# Key in `doc.user_data` with the annotations as the file has them: what a Doc cannot hold
# (fragments, relations, notes, the order of lines) survives brat -> Doc -> brat here.
SOURCE_KEY = "bioclin_source"
KINDS = {
    "span": SpanAnnotation,
    "relation": RelationAnnotation,
    "note": NoteAnnotation,
    "other": OtherAnnotation,
}


class GoldSpan(NamedTuple):
    """A span of a layer.

    start, end (int): Character offsets as in the file, from the first fragment to the last.
    tokens (tuple[int, int] | None): First token and end (exclusive); None if it touches no token.
    """

    id: str
    start: int
    end: int
    label: str
    kb_id: str
    tokens: tuple[int, int] | None


def make_gold_doc(
    nlp: Language,
    annotated: AnnotatedText,
    *,
    layers: Layers = ALL_ENTS,
    annotated_labels: Collection[str] | None = None,
    relations: RelationLabels | None = None,
    level: Level = "mention",
    task: str = "",
    report: LossReport | None = None,
) -> Doc:
    """Make the gold Doc of a document.

    A layer that the task annotates is complete: tokens outside its spans are "O" in doc.ents, and
    doc.spans has its key even if it is empty. A layer that the task does not annotate has no key in
    doc.spans, or doc.ents is missing on every token (ENT_IOB 0).

    nlp (Language): Tokenizes; its components run too (sentences).
    annotated (AnnotatedText): The document.
    layers (Layers): Label -> layer, see `ALL_ENTS`.
    annotated_labels (Collection[str] | None): The labels that the document was annotated for; None
        for all labels.
    relations (RelationLabels | None): Labels of the relations that the Doc gets, or "all"; None if
        it was not annotated for relations.
    level (Level): What the relations are between, see `find_gold_relations`.
    task (str): Name of the task that the document was annotated for.
    report (LossReport | None): Counts what happens to the spans and relations.
    RETURNS (Doc): The gold Doc, with the offsets of the file under `GOLD_KEY` in its user_data.
    RAISES (BioclinError): A label has no layer, or occurs although it was not annotated.
    """
    report = LossReport() if report is None else report
    doc = nlp(annotated.text)
    name = _name(annotated)
    by_layer: dict[str, list[GoldSpan]] = {layer: [] for layer in layers.values() if layer}
    found = list(_gold_spans(doc, annotated, layers))
    for layer, span in found:
        if layer is None:
            report.read += 1
            report.add("left_out", name)
        else:
            by_layer[layer].append(span)
    for layer, spans in by_layer.items():
        not_in_ents = _fill_layer(doc, layer, spans)
        _count(doc, spans, not_in_ents, name, report)
    _count_fragments(annotated, name, report)
    report.add("rounded_id", name, count_rounded_ids(annotated.annotations))
    report.add("unread", name, count_unread(annotated.annotations))
    report.docs += 1
    gold: dict[str, Any] = {
        "id": annotated.id,
        "task": task,
        "layers": {
            layer: [[span.start, span.end, span.label, span.kb_id] for span in spans]
            for layer, spans in by_layer.items()
        },
    }
    if annotated_labels is not None:
        gold["annotated"] = group_labels(annotated_labels, layers)
        _check_labels(by_layer, gold["annotated"], annotated.source or annotated.id)
        report.annotated.update(annotated_labels)
    if relations is not None:
        rules: dict[str, Any] = {"labels": relations, "level": level}
        arguments = _list_arguments(found)
        gold |= find_gold_relations(
            annotated.annotations, arguments, **rules, name=name, report=report
        )
    report.labels.update(span.label for spans in by_layer.values() for span in spans)
    doc.user_data[GOLD_KEY] = gold
    doc.user_data[SOURCE_KEY] = _pack(annotated.annotations)
    return doc


def group_labels(labels: Iterable[str], layers: Layers) -> dict[str, list[str]]:
    """Group labels by their layer.

    layers (Layers): Label -> layer, see `ALL_ENTS`.
    RETURNS (dict[str, list[str]]): For each layer its labels, sorted; some layers may have none.
    RAISES (BioclinError): A label has no layer.
    """
    groups: dict[str, list[str]] = {layer: [] for layer in layers.values() if layer}
    for label in sorted(set(labels)):
        layer = layers[label] if label in layers else layers.get("*")
        if not layer:
            raise BioclinError(
                f"label {label!r} is annotated, but no layer is set for it; set one for it, or for "
                f"all other labels ('*'); set are {', '.join(layers)}"
            )
        groups[layer].append(label)
    return groups


def _check_labels(
    by_layer: Mapping[str, Iterable[GoldSpan]], annotated: Mapping[str, list[str]], where: str
) -> None:
    for layer, spans in by_layer.items():
        if others := {span.label for span in spans} - set(annotated[layer]):
            raise BioclinError(
                f"{where}: has spans of {min(others)!r}, but {min(others)!r} is not one of the "
                f"labels that it was annotated for ({', '.join(annotated[layer])}): add it to "
                "--annotated, or leave --annotated out if every label was annotated"
            )


def snap(starts: list[int], ends: list[int], start: int, end: int) -> tuple[int, int] | None:
    """Find the tokens that a span of characters touches.

    starts, ends (list[int]): Character offsets of the tokens.
    start, end (int): Character offsets of the span, end exclusive.
    RETURNS (tuple[int, int] | None): First token and end (exclusive), or None if the span touches
        no token.
    """
    first, behind = bisect_right(ends, start), bisect_left(starts, end)
    return (first, behind) if first < behind and start < end else None


def doc_to_annotated(doc: Doc, *, id: str) -> AnnotatedText:
    """Turn a Doc into annotations.

    A gold Doc gives the annotations of its file. If its spans have changed (a pipeline has run
    over it), or if it never had a file, doc.ents and doc.spans are used. Relations that a component
    has found take the place of those of the file.

    doc (Doc): A gold or predicted Doc.
    id (str): Identifier for a Doc that has none.
    RETURNS (AnnotatedText): Text and annotations.
    """
    gold = doc.user_data.get(GOLD_KEY)
    if gold:
        id = gold["id"]
        if SOURCE_KEY in doc.user_data and _is_untouched(doc):
            annotations = _unpack(doc.user_data[SOURCE_KEY])
            if has_predicted(doc):
                annotations = replace_relations(doc, annotations, _find_ids(doc, annotations))
            return AnnotatedText(id, doc.text, annotations)
    found: dict[CharSpan, str] = {}
    for span in (span for group in (*doc.spans.values(), doc.ents) for span in group):
        key = (span.start_char, span.end_char, span.label_)
        found[key] = found.get(key) or span.kb_id_
    return AnnotatedText(id, doc.text, make_annotations(doc, found))


def _find_ids(doc: Doc, annotations: Iterable[Annotation]) -> dict[CharSpan, str]:
    """Find the annotation of each span of a Doc; of several with the same tokens, the first."""
    edges = find_edges(doc)
    ids: dict[CharSpan, str] = {}
    for span in (a for a in annotations if isinstance(a, SpanAnnotation)):
        if tokens := align(doc, edges, *_extent(span)):
            ids.setdefault((edges[0][tokens[0]], edges[1][tokens[1] - 1], span.label), span.id)
    return ids


def _extent(span: SpanAnnotation) -> tuple[int, int]:
    """Find the first character of a span in fragments, and its end."""
    return min(start for start, _ in span.fragments), max(end for _, end in span.fragments)


def _name(annotated: AnnotatedText) -> str:
    """Name a document in the loss report: its file, and its id if the file holds several."""
    source = Path(annotated.source)
    is_whole_file = not annotated.source or source.stem == annotated.id
    return (source.name or annotated.id) if is_whole_file else f"{source.name}#{annotated.id}"


def spans_of(annotated: AnnotatedText) -> list[SpanAnnotation]:
    """List the spans of a document, in file order."""
    return [a for a in annotated.annotations if isinstance(a, SpanAnnotation)]


def _gold_spans(
    doc: Doc, annotated: AnnotatedText, layers: Layers
) -> Iterator[tuple[str | None, GoldSpan]]:
    """Find the layer and the tokens of each span, in file order."""
    edges = find_edges(doc)
    for span in spans_of(annotated):
        key = span.label if span.label in layers else "*"
        if key not in layers:
            raise BioclinError(
                f"{annotated.source or annotated.id}: no layer is set for label {span.label!r}; "
                f"set one for it, or for all other labels ('*'); set are {', '.join(layers)}"
            )
        start, end = _extent(span)
        tokens = align(doc, edges, start, end)
        kb_id = "|".join(span.concept_ids)
        yield layers[key], GoldSpan(span.id, start, end, span.label, kb_id, tokens)


def _list_arguments(found: Iterable[tuple[str | None, GoldSpan]]) -> Arguments:
    """List what relations can be between."""
    arguments = Arguments({}, set(), set())
    for layer, span in found:
        concepts = set(filter(None, span.kb_id.split("|")))
        if layer is None:
            arguments.left_out.update({span.id}, concepts)
        elif span.tokens:
            arguments.spans[span.id] = (span.start, span.end, span.label)
            arguments.concepts.update(concepts)
    return arguments


def find_edges(doc: Doc) -> tuple[list[int], list[int]]:
    """Find the characters at which tokens start and end, each list (n_tokens,)."""
    return [token.idx for token in doc], [token.idx + len(token) for token in doc]


def align(
    doc: Doc, edges: tuple[list[int], list[int]], start: int, end: int
) -> tuple[int, int] | None:
    """Find the tokens of a span, without blank ones at its ends, which spaCy's NER cannot learn.

    edges (tuple): See `find_edges`.
    start, end (int): Character offsets of the span, end exclusive.
    RETURNS (tuple[int, int] | None): First token and end (exclusive); None if there is none.
    """
    tokens = snap(*edges, start, end)
    while tokens and doc[tokens[0]].is_space:
        tokens = (tokens[0] + 1, tokens[1]) if tokens[0] + 1 < tokens[1] else None
    while tokens and doc[tokens[1] - 1].is_space:
        tokens = (tokens[0], tokens[1] - 1)
    return tokens


def _fill_layer(doc: Doc, layer: str, gold: list[GoldSpan]) -> int:
    """Write a layer into the Doc and return how many of its spans doc.ents cannot hold."""
    spans = [
        Span(doc, *span.tokens, label=span.label, kb_id=span.kb_id, span_id=span.id)
        for span in gold
        if span.tokens
    ]
    doc.spans[layer] = spans
    if layer != "ents":
        return 0
    flat = filter_spans(spans)  # most tokens win, then the earliest, then file order
    doc.set_ents(flat, default="outside")
    return len(spans) - len(flat)


def _count(doc: Doc, gold: list[GoldSpan], not_in_ents: int, name: str, report: LossReport) -> None:
    """Add the spans of one layer of one document to the report."""
    held = [(span, span.tokens) for span in gold if span.tokens]
    report.read += len(gold)
    report.kept += len(held)
    report.add("empty", name, len(gold) - len(held))
    report.add("not_in_ents", name, not_in_ents)
    for span, (first, behind) in held:
        edges = doc[first].idx, doc[behind - 1].idx + len(doc[behind - 1])
        report.add("snapped", name, edges != (span.start, span.end))
    for kind in overlaps([(span.start, span.end, span.label) for span in gold]):
        report.add(kind, name)


def overlaps(spans: list[CharSpan]) -> list[str]:
    """Say how the spans of a layer overlap.

    spans (list[CharSpan]): Start, end and label of each.
    RETURNS (list[str]): One entry for each span that is a "duplicate" of another (same offsets and
        label), "nested" in another (or has its offsets and another label), or else is "crossing"
        one that starts before it.
    """
    kinds: list[str] = []
    before: CharSpan | None = None
    furthest = -1  # end of the spans that start before
    for span in sorted(spans, key=lambda span: (span[0], -span[1], span[2])):
        start, end, _ = span
        if furthest > start:
            duplicate = span == before and start < end
            nested = furthest >= end
            kinds.append("duplicate" if duplicate else "nested" if nested else "crossing")
        before, furthest = span, max(furthest, end)
    return kinds


def _count_fragments(annotated: AnnotatedText, name: str, report: LossReport) -> None:
    for span in spans_of(annotated):
        report.add("discontinuous", name, len(span.fragments) > 1)
        covered = " ".join(annotated.text[start:end] for start, end in span.fragments)
        # brat writes a line break within a span as a blank
        differs = bool(span.surface) and covered.split() != span.surface.split()
        report.add("wrong_offset", name, differs)


def _is_untouched(doc: Doc) -> bool:
    """Check whether the spans of a gold Doc are still those of its file."""
    layers = doc.user_data[GOLD_KEY]["layers"]
    if set(doc.spans) != set(layers) or ("ents" not in layers and doc.ents):
        return False
    edges = find_edges(doc)
    for layer, items in layers.items():
        aligned = ((align(doc, edges, item[0], item[1]), item[2]) for item in items)
        expected = [(*tokens, label) for tokens, label in aligned if tokens]
        if expected != [(span.start, span.end, span.label_) for span in doc.spans[layer]]:
            return False
    return "ents" not in layers or list(doc.ents) == filter_spans(doc.spans["ents"])


def _pack(annotations: Iterable[Annotation]) -> list[list[Any]]:
    """Turn annotations into plain lists, for msgpack."""
    names = {kind: name for name, kind in KINDS.items()}
    return [[names[type(annotation)], *annotation] for annotation in annotations]


def _unpack(packed: Iterable[Iterable[Any]]) -> tuple[Annotation, ...]:
    return tuple(KINDS[name](*map(_as_tuple, fields)) for name, *fields in packed)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, (list, tuple)) else value
