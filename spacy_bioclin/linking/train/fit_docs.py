"""Train a linker on gold Docs: what `bioclin train-linker` does."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ...evaluation.linking import LinkedMention, gold_ids
from ...spans import get_spans
from ...tokenization.abbreviations import find_abbreviations
from ..bundle import TrainedModel
from ..docs import mention_texts
from ..kb.knowledge_base import KnowledgeBase
from ..linker import Linker, Mention
from .fit import FitSettings, TrainMention, fit_ranker, learn_names


class Layer(NamedTuple):
    """The spans of a Doc that are to be linked.

    spans_key (str | None): Those of `doc.spans[spans_key]`, or `doc.ents` if None.
    labels (Collection[str] | None): Only spans of these labels; None: all.
    """

    spans_key: str | None
    labels: Collection[str] | None

    def spans(self, doc: Doc) -> list[Span]:
        """RETURNS (list[Span]): In order."""
        found = get_spans(doc, self.spans_key)
        return [span for span in found if self.labels is None or span.label_ in self.labels]


def gather_mentions(docs: Iterable[Doc], linker: Linker, layer: Layer) -> list[TrainMention]:
    """Take the linked mentions out of gold Docs, in the form in which the linker looks them up.

    docs (Iterable[Doc]): One for each note; `kb_id_` holds ids joined by "|", "" is NIL.
    linker (Linker): Knows which composite mentions it takes apart.
    layer (Layer): Which spans.
    RETURNS (list[TrainMention]): See `pair_parts`.
    """
    kb = linker.generator.kb
    texts: list[str] = []
    found: list[tuple[tuple[str, ...], int]] = []
    for note, doc in enumerate(docs):
        spans = layer.spans(doc)
        texts += mention_texts(doc, spans, find_abbreviations(doc.text))
        found += [(_own_ids(gold_ids([span.kb_id_]), kb), note) for span in spans]
    mentions = []
    for text, parts, (ids, note) in zip(texts, linker.parts(texts), found, strict=True):
        mentions += pair_parts(text, parts, ids, note)
    return mentions


def pair_parts(
    text: str, parts: Sequence[str], ids: tuple[str, ...], note: int
) -> list[TrainMention]:
    """Say what a mention that can be taken apart, or a part of it, means.

    text (str), parts (Sequence[str]): The mention and its parts.
    ids (tuple[str, ...]): What it means; with one id it is no composite, whatever it looks like.
    note (int): Number of its note.
    RETURNS (list[TrainMention]): An id for each part where there are as many, else all for each.
    """
    if len(ids) == 1:
        return [TrainMention(text, ids, note)]
    own = len(parts) == len(ids)
    return [TrainMention(part, (ids[i],) if own else ids, note) for i, part in enumerate(parts)]


def train_linker(
    linker: Linker, mentions: list[TrainMention], settings: FitSettings
) -> tuple[TrainedModel, dict[str, Any]]:
    """Train on mentions; the linker itself works with what it learned afterwards.

    RETURNS (tuple[TrainedModel, dict]): What to write, and counts.
    RAISES (BioclinError): No mention has its concept among the candidates.
    """
    learned = learn_names(linker.generator, mentions)
    linker.generator.learn(learned)
    linker.ranker, report = fit_ranker(linker.generator, mentions, settings)
    linker.forget()
    counts = {"learned": learned.counts.total(), "unknown_ids": learned.n_unknown, **report}
    return TrainedModel(linker.ranker.to_dict(), learned.to_list()), counts


def link_gold(docs: Iterable[Doc], linker: Linker, layer: Layer) -> list[LinkedMention]:
    """Link gold mentions, to score the linker alone.

    RETURNS (list[LinkedMention]): What `evaluation.linking.score_linking` takes, with every
        candidate that was found, in order.
    """
    linked = []
    for note, doc in enumerate(docs):
        spans = layer.spans(doc)
        texts = mention_texts(doc, spans, find_abbreviations(doc.text))
        mentions = [Mention(text, span.label_) for text, span in zip(texts, spans, strict=True)]
        for span, (rankings, nil) in zip(spans, linker.rankings(mentions), strict=True):
            ids = _own_ids(gold_ids([span.kb_id_]), linker.generator.kb)
            linked.append(LinkedMention(str(note), span.text, ids, rankings, nil))
    return linked


def _own_ids(ids: Iterable[str], kb: KnowledgeBase) -> tuple[str, ...]:
    """RETURNS (tuple[str, ...]): Alternative ids of the knowledge base's concepts replaced."""
    rows = {id: kb.number(id) for id in ids}
    return tuple(dict.fromkeys(id if row is None else str(kb.ids[row]) for id, row in rows.items()))
