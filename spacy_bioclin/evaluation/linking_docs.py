"""Linking scores of Docs: `linking.py` on what `span.kb_id_` and `span._.candidates` hold.

`kb_id_` holds ids joined by "|", one for each part of a composite mention; "" or "NIL" is NIL.
`candidates`, an extension that a linker may set, is a list of tuples with the field `kb_id`, best
first. The chosen id counts as the first candidate.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span
from spacy.training import Example

from ..types import GOLD_KEY
from .linking import (
    RULES,
    LinkedMention,
    SpanId,
    canonical_id,
    end_to_end,
    get_rule,
    gold_ids,
    score_linking,
)
from .spans import compare

CANDIDATES = "candidates"
DEFAULT_RULE = "biosyn"


class LinkedDoc(NamedTuple):
    """The links of one layer of a document on both sides.

    mentions (list[LinkedMention]): Gold mentions that the system found with equal offsets.
    n_gold (int): All gold mentions.
    reference (set[SpanId]): Gold offsets and ids.
    predicted (set[SpanId]): Those of the system.
    links (bool): Whether the system gives any span an id or a candidate.
    """

    mentions: list[LinkedMention]
    n_gold: int
    reference: set[SpanId]
    predicted: set[SpanId]
    links: bool


class _Link(NamedTuple):
    """What a system makes of a span; no rankings if it does not say."""

    label: str
    ids: tuple[str, ...]
    rankings: tuple[Sequence[str], ...]


def compare_links(eg: Example, spans_key: str | None, name: str) -> LinkedDoc | None:
    """Gather the links of both sides of an Example.

    eg (Example): Not changed.
    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    name (str): Id of the document.
    RETURNS (LinkedDoc | None): None if the reference is not annotated for this layer.
    RAISES (BioclinError): If the predicted Doc has another text than the reference.
    """
    spans = compare(eg, spans_key)
    if spans is None:
        return None
    found = {}
    for (start, end), links in _system_links(eg.predicted, spans_key).items():
        if kept := [link for link in links if (start, end, link.label) in spans[1]]:
            found[start, end] = kept
    gold = _gold_mentions(eg.reference, spans_key)
    mentions = []
    for start, end, label, ids in gold:
        if (start, end) in found:
            links = found[start, end]
            link = next((link for link in links if link.label == label), links[0])
            text = eg.reference.text[start:end]
            mentions.append(LinkedMention(name, text, ids, link.rankings, nil=not link.ids))
    return LinkedDoc(
        mentions=mentions,
        n_gold=len(gold),
        reference={(start, end, id) for start, end, _, ids in gold for id in ids},
        predicted={
            (*span, id) for span, links in found.items() for link in links for id in link.ids
        },
        links=any(link.rankings for links in found.values() for link in links),
    )


def _gold_mentions(doc: Doc, spans_key: str | None) -> list[tuple[int, int, str, tuple[str, ...]]]:
    """RETURNS (list[tuple]): (start, end, label, ids) of each gold mention, each once; the offsets
    are those of the corpus file where the Doc remembers them."""
    layers = doc.user_data.get(GOLD_KEY, {}).get("layers", {})
    layer = layers.get("ents" if spans_key is None else spans_key)
    if layer is None:
        layer = [
            (span.start_char, span.end_char, span.label_, span.kb_id_)
            for span in _spans(doc, spans_key)
        ]
    return list(
        dict.fromkeys((start, end, label, gold_ids(kb_id)) for start, end, label, *kb_id in layer)
    )


def _system_links(doc: Doc, spans_key: str | None) -> dict[tuple[int, int], list[_Link]]:
    """RETURNS (dict): Offsets -> the links of the spans there, one for each label."""
    links: dict[tuple[int, int], dict[str, _Link]] = {}
    # doc.spans["ents"] holds more than doc.ents can, but it is doc.ents that a linker may have set.
    groups = (_spans(doc, spans_key), doc.ents if spans_key == "ents" else ())
    for span in (span for group in groups for span in group):
        of_label = links.setdefault((span.start_char, span.end_char), {})
        link = _read_link(span)
        if span.label_ not in of_label or link.ids:
            of_label[span.label_] = link
    return {span: list(of_label.values()) for span, of_label in links.items()}


def _spans(doc: Doc, spans_key: str | None) -> Sequence[Span]:
    return doc.ents if spans_key is None else list(doc.spans.get(spans_key, ()))


def _read_link(span: Span) -> _Link:
    candidates = span._.get(CANDIDATES) if Span.has_extension(CANDIDATES) else None
    ranking = tuple(canonical_id(candidate.kb_id) for candidate in candidates or ())
    ids = gold_ids([span.kb_id_])
    rankings = tuple((id, *ranking) for id in ids) or ((ranking,) if ranking else ())
    return _Link(span.label_, ids, rankings)


def has_gold_ids(docs: Iterable[LinkedDoc]) -> bool:
    """RETURNS (bool): Whether there is anything to score."""
    return any(doc.reference for doc in docs)


def linking_metrics(docs: Sequence[LinkedDoc]) -> dict[str, Any]:
    """Every figure about the links of a layer.

    docs (Sequence[LinkedDoc]): One per document.
    RETURNS (dict[str, Any]): `n_gold` (mentions), by name of each rule the scores of the mentions
        that were found, `end_to_end`; ready for JSON, without note text.
    """
    mentions = [mention for doc in docs for mention in doc.mentions]
    return {
        "n_gold": sum(doc.n_gold for doc in docs),
        **{rule: score_linking(mentions, rule=rule).as_dict() for rule in RULES},
        "end_to_end": end_to_end((doc.reference, doc.predicted) for doc in docs).as_dict(),
    }


def spacy_linking_scores(
    metrics: dict[str, Any], *, spans_key: str | None, rule: str = DEFAULT_RULE
) -> dict[str, Any]:
    """Put the figures under keys like spaCy's.

    metrics (dict[str, Any]): From `linking_metrics`.
    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    rule (str): One of `linking.RULES`.
    RETURNS (dict[str, Any]): `link_acc`, `link_r5`, `link_mrr`, … of the mentions found; end to end
        `link_p`, `link_r`, `link_f`; by sets of ids `link_docs_p` …; with `spans_{key}_` before
        them for a key.
    """
    prefix = "link" if spans_key is None else f"spans_{spans_key}_link"
    whole = metrics["end_to_end"]
    scores = {
        **metrics[rule],
        **{key: whole["mentions"][key] for key in "prf"},
        **{f"docs_{key}": whole["documents"][key] for key in "prf"},
    }
    return {f"{prefix}_{key}": value for key, value in scores.items()}


def linking_score(
    examples: Iterable[Example], *, spans_key: str | None, rule: str, **kwargs: Any
) -> dict[str, Any]:
    """Linking scores under keys like spaCy's.

    examples (Iterable[Example]): Not changed.
    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    rule (str): One of `linking.RULES`.
    RETURNS (dict[str, Any]): See `spacy_linking_scores`; each is None where no reference has ids.
    """
    compared = (compare_links(eg, spans_key, str(i)) for i, eg in enumerate(examples))
    docs = [doc for doc in compared if doc is not None]
    scores = spacy_linking_scores(linking_metrics(docs), spans_key=spans_key, rule=rule)
    return scores if has_gold_ids(docs) else dict.fromkeys(scores)


def make_linking_scorer(
    spans_key: str | None = None, rule: str = DEFAULT_RULE
) -> Callable[..., dict[str, Any]]:
    """Registered as `spacy-bioclin.linking_scorer.v1`.

    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    rule (str): "biosyn" (any id of a composite mention will do) or "strict" (each is needed).
    RETURNS (Callable): `linking_score` for that layer; it can be pickled.
    RAISES (BioclinError): There is no such rule.
    """
    get_rule(rule)
    return partial(linking_score, spans_key=spans_key, rule=rule)
