"""Merge corpora that annotate the same notes for different labels."""

from collections.abc import Iterable, Mapping
from typing import Any

from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ...annotations.relations import GOLD_CONCEPT_RELATIONS, GOLD_RELATIONS
from ...errors import BioclinError
from ...types import GOLD_KEY
from ..docs import SOURCE_KEY


def merge_docs(corpora: Mapping[str, Iterable[Doc]]) -> tuple[list[Doc], int]:
    """Merge the Docs of several corpora that have the same text, so that a training learns all of
    their labels from a note at once.

    Texts are the same if they differ only in blanks at their ends. A merged Doc has the id and the
    text of the first corpus, the spans and the relations of all, and is annotated for the labels of
    all. It forgets what only the files have: fragments and notes. Other Docs stay as they are.

    corpora (Mapping[str, Iterable[Doc]]): Name of a corpus, for errors -> its gold Docs, of the
        same vocabulary.
    RETURNS (tuple[list[Doc], int]): The Docs, in the order of the corpora, and how many of them are
        merged.
    RAISES (BioclinError): A Doc does not say which labels it was annotated for, or the same text
        was annotated twice for a label.
    """
    merged: list[Doc] = []
    by_text: dict[str, tuple[int, str]] = {}  # place in `merged`, corpus that it was last found in
    joined: set[int] = set()
    for name, docs in corpora.items():
        for doc in docs:
            text = doc.text.strip()
            place, last = by_text.get(text, (len(merged), name))
            if last == name:  # a new text, or one that a corpus has twice
                by_text.setdefault(text, (len(merged), name))
                merged.append(doc)
                continue
            _add_annotation(merged[place], doc, (last, name))
            by_text[text] = place, name
            joined.add(place)
    return merged, len(joined)


def _add_annotation(doc: Doc, other: Doc, names: tuple[str, str]) -> None:
    """Add the annotation of another Doc of the same text, in place."""
    gold, added = (_read_gold(each, name) for each, name in zip((doc, other), names, strict=True))
    shift = _blanks(doc) - _blanks(other)
    for layer, items in added["layers"].items():
        labels, others = gold["annotated"].get(layer, []), added["annotated"][layer]
        if both := sorted({*labels} & {*others}):
            raise BioclinError(
                f"{names[1]}: document {added['id']} was annotated for {both[0]!r} in another "
                "corpus too; merge corpora of different labels, or leave the document out of one"
            )
        gold["annotated"][layer] = sorted([*labels, *others])
        moved = [[start + shift, end + shift, *rest] for start, end, *rest in items]
        gold["layers"][layer] = [*gold["layers"].get(layer, []), *moved]
        spans = [_move(span, doc, shift) for span in other.spans.get(layer, ())]
        doc.spans[layer] = [*doc.spans.get(layer, ()), *spans]
        if layer == "ents":
            doc.set_ents(filter_spans(doc.spans[layer]), default="outside")
    _add_relations(gold, added, shift)
    doc.user_data.pop(SOURCE_KEY, None)


def _add_relations(gold: dict[str, Any], added: dict[str, Any], shift: int) -> None:
    """Add the relations of another Doc, where it was annotated for them."""
    if GOLD_RELATIONS in added:
        moved = [
            [label, *([start + shift, end + shift, name] for start, end, name in arguments)]
            for label, *arguments in added[GOLD_RELATIONS]
        ]
        gold[GOLD_RELATIONS] = [*gold.get(GOLD_RELATIONS, []), *moved]
    if GOLD_CONCEPT_RELATIONS in added:
        own = gold.get(GOLD_CONCEPT_RELATIONS, [])
        gold[GOLD_CONCEPT_RELATIONS] = [*own, *added[GOLD_CONCEPT_RELATIONS]]


def _read_gold(doc: Doc, name: str) -> dict[str, Any]:
    """Read which labels a Doc was annotated for. RAISES (BioclinError): It does not say so."""
    gold: dict[str, Any] = doc.user_data.get(GOLD_KEY, {"id": "without id", "layers": {"": []}})
    if not set(gold["layers"]) <= set(gold.get("annotated", {})):
        raise BioclinError(
            f"{name}: document {gold['id']} does not say which labels it was annotated for; "
            "convert the corpus with `bioclin convert --annotated` or `--common`"
        )
    return gold


def _blanks(doc: Doc) -> int:
    """Count the blanks before a text."""
    return len(doc.text) - len(doc.text.lstrip())


def _move(span: Span, doc: Doc, shift: int) -> Span:
    """Make the same span of another Doc of the same text."""
    start, end = span.start_char + shift, span.end_char + shift
    found = doc.char_span(
        start, end, label=span.label, kb_id=span.kb_id, span_id=span.id, alignment_mode="expand"
    )
    assert found is not None  # a span has characters
    return found
