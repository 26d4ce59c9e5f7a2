"""Score the links of Docs: apply `linking.py` to `span.kb_id_` and `span._.candidates`.

`kb_id_` has ids joined by "|", one for each part of a composite mention; "" or "NIL" is NIL.
`candidates`, an extension that a linker may set, is a list of tuples with the field `kb_id`, best
first. The chosen id counts as the first candidate.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span
from spacy.training import Example

from ..spans import get_spans, keep_annotated
from ..types import GOLD_KEY
from .components import ConceptIds
from .linking import (
    RULES,
    Alternatives,
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
    """The gold and the predicted links of one layer of a document.

    mentions (list[LinkedMention]): Gold mentions that the system found with equal offsets.
    n_gold (int): Number of all gold mentions.
    reference (set[SpanId]): Gold offsets and ids.
    predicted (set[SpanId]): Predicted offsets and ids.
    links (bool): True if any span has a predicted id or candidate.
    """

    mentions: list[LinkedMention]
    n_gold: int
    reference: set[SpanId]
    predicted: set[SpanId]
    links: bool


class _Link(NamedTuple):
    """The predicted link of a span. Without candidates there are no rankings."""

    label: str
    ids: tuple[str, ...]
    rankings: tuple[Sequence[str], ...]


def compare_links(
    eg: Example, spans_key: str | None, name: str, concept_ids: Alternatives | None = None
) -> LinkedDoc | None:
    """Read the gold and the predicted links of an Example.

    eg (Example): The Example, which is not changed.
    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    name (str): Id of the document.
    concept_ids (Alternatives | None): Any id of a concept -> its own id, so that a gold id that was
        merged or retired since is right.
    RETURNS (LinkedDoc | None): None if the reference is not annotated for this layer.
    RAISES (BioclinError): The predicted Doc has another text than the reference.
    """
    spans = compare(eg, spans_key)
    if spans is None:
        return None
    found = {}
    for (start, end), links in _system_links(eg.predicted, spans_key, concept_ids).items():
        if kept := [link for link in links if (start, end, link.label) in spans[1]]:
            found[start, end] = kept
    gold = _gold_mentions(eg.reference, spans_key, concept_ids)
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


def _gold_mentions(
    doc: Doc, spans_key: str | None, concept_ids: Alternatives | None
) -> list[tuple[int, int, str, tuple[str, ...]]]:
    """Read (start, end, label, ids) of each gold mention, without repeats.

    The offsets are those of the corpus file if the Doc has them.
    """
    layers = doc.user_data.get(GOLD_KEY, {}).get("layers", {})
    layer = layers.get("ents" if spans_key is None else spans_key)
    if layer is None:
        layer = [
            (span.start_char, span.end_char, span.label_, span.kb_id_)
            for span in get_spans(doc, spans_key)
        ]
    return list(
        dict.fromkeys(
            (start, end, label, gold_ids(kb_id, concept_ids))
            for start, end, label, *kb_id in keep_annotated(layer, doc, spans_key)
        )
    )


def _system_links(
    doc: Doc, spans_key: str | None, concept_ids: Alternatives | None
) -> dict[tuple[int, int], list[_Link]]:
    """Read the links: offsets -> the links of the spans there, one for each label.

    Where a span of a key has no id, that of the equal entity in doc.ents counts: `bioclin_ents`
    fills doc.ents from doc.spans, and a linker may link doc.ents only.
    """
    links: dict[tuple[int, int], dict[str, _Link]] = {}
    for span in (*(() if spans_key is None else doc.ents), *get_spans(doc, spans_key)):
        of_label = links.setdefault((span.start_char, span.end_char), {})
        link = _read_link(span, concept_ids)
        if span.label_ not in of_label or link.ids:
            of_label[span.label_] = link
    return {span: list(of_label.values()) for span, of_label in links.items()}


def _read_link(span: Span, concept_ids: Alternatives | None) -> _Link:
    candidates = span._.get(CANDIDATES) if Span.has_extension(CANDIDATES) else None
    ranking = tuple(canonical_id(candidate.kb_id, concept_ids) for candidate in candidates or ())
    ids = gold_ids([span.kb_id_], concept_ids)
    rankings = tuple((id, *ranking) for id in ids) or ((ranking,) if ranking else ())
    return _Link(span.label_, ids, rankings)


def has_gold_ids(docs: Iterable[LinkedDoc]) -> bool:
    """Check whether any document has gold ids to compare with."""
    return any(doc.reference for doc in docs)


def can_be_linked(docs: Iterable[LinkedDoc], known_ids: ConceptIds) -> bool:
    """Check whether any gold id is in the knowledge bases, or was found without them."""
    return any(
        (*span, id) in doc.predicted or known_ids.find(id) is not None
        for doc in docs
        for *span, id in doc.reference
    )


def linking_metrics(docs: Sequence[LinkedDoc]) -> dict[str, Any]:
    """Compute all scores of the links of a layer.

    docs (Sequence[LinkedDoc]): One entry per document.
    RETURNS (dict[str, Any]): `n_gold`, the number of gold mentions; for each rule, the scores of
        the mentions that were found; and `end_to_end`. Ready for JSON, without note text.
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
    """Give the scores keys like spaCy's.

    metrics (dict[str, Any]): From `linking_metrics`.
    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    rule (str): One of `linking.RULES`.
    RETURNS (dict[str, Any]): `link_acc`, `link_r5`, `link_mrr`, … for the mentions that were found,
        `link_p`, `link_r`, `link_f` end to end, `link_docs_p` … for the sets of ids. The keys begin
        with `spans_{key}_` for a layer of `doc.spans`.
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
    examples: Iterable[Example],
    *,
    spans_key: str | None,
    rule: str,
    concept_ids: Alternatives | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Compute linking scores under keys like spaCy's.

    examples (Iterable[Example]): The Examples, which are not changed.
    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    rule (str): One of `linking.RULES`.
    concept_ids (Alternatives | None): See `compare_links`.
    RETURNS (dict[str, Any]): See `spacy_linking_scores`. All are None if no reference has ids.
    """
    compared = (compare_links(eg, spans_key, str(i), concept_ids) for i, eg in enumerate(examples))
    docs = [doc for doc in compared if doc is not None]
    scores = spacy_linking_scores(linking_metrics(docs), spans_key=spans_key, rule=rule)
    return scores if has_gold_ids(docs) else dict.fromkeys(scores)


def make_linking_scorer(
    spans_key: str | None = None, rule: str = DEFAULT_RULE
) -> Callable[..., dict[str, Any]]:
    """Make a scorer of links. It is registered as `spacy-bioclin.linking_scorer.v1`.

    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    rule (str): "biosyn" (any id of a composite mention is right) or "strict" (all are needed).
    RETURNS (Callable): `linking_score` for that layer, which can be pickled.
    RAISES (BioclinError): There is no such rule.
    """
    get_rule(rule)
    return partial(linking_score, spans_key=spans_key, rule=rule)
