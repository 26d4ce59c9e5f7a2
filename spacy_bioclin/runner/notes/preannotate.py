"""Turn what a pipeline found in a note into annotations that an annotator corrects."""

from collections import defaultdict
from collections.abc import Collection

from spacy.tokens import Doc

from ...context.rules.rule_data import KINDS
from ...corpora.relations.predicted import make_annotations
from ...corpora.tools.exchange import PROBABILITY
from ...types import AnnotatedText, Annotation, CharSpan, OtherAnnotation, SpanAnnotation
from .describe import describe_entities


def preannotate(doc: Doc, id: str, layers: Collection[str] = ()) -> AnnotatedText:
    """List the spans, relations and attributes of a Doc.

    doc (Doc): A Doc that a pipeline has annotated.
    id (str): Id of the note.
    layers (Collection[str]): Layers of the spans ("ents", or keys of `doc.spans`); none for all,
        but for sections and cues. Arguments of relations are always there.
    RETURNS (AnnotatedText): Spans with their concept ids; relations; and, as attributes of brat,
        what the context says of a span ("Negated") and its probability.
    """
    text = doc.text
    spans: dict[CharSpan, str] = {}
    found: dict[CharSpan, dict[str, None]] = defaultdict(dict)
    for each in describe_entities(doc, text):
        if layers and each["layer"] not in layers:
            continue
        span = each["start"], each["end"], each["label"]
        spans[span] = each["kb_id"] or spans.get(span, "")
        found[span].update(dict.fromkeys(kind.capitalize() for kind in KINDS if each[kind]))
        if each["probability"] is not None:
            found[span][f"{PROBABILITY} {each['probability']}"] = None
    annotations: list[Annotation] = list(make_annotations(doc, spans))
    lines: list[Annotation] = []
    for one in annotations:
        if isinstance(one, SpanAnnotation):
            for attribute in found.get((*one.fragments[0], one.label), ()):
                number = len(lines) + 1
                name, _, value = attribute.partition(" ")
                line = f"A{number}\t{name} {one.id}" + (f" {value}" if value else "")
                lines.append(OtherAnnotation(f"A{number}", line))
    return AnnotatedText(id, text, (*annotations, *lines), id)
