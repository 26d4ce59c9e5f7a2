"""Train a linker on gold Docs: what `bioclin train-linker` does."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ...evaluation.linking import LinkedMention, gold_ids, written_forms
from ...spans import get_spans
from ...tokenization.defined_abbreviations import find_abbreviations
from ..bundle import TrainedModel
from ..codes import CodeFinder
from ..docs import mention_texts
from ..kb.concepts import Concept, wrong_id
from ..kb.knowledge_base import KnowledgeBase
from ..learned import LearnedMention, LearnedNames
from ..linker import Linker, Mention
from .codes import train_codes
from .ranker import RankerSettings, TrainMention, fit_ranker


class Layer(NamedTuple):
    """The spans of Docs to be linked.

    spans_key (str | None): Key of `doc.spans`, or None for `doc.ents`.
    labels (Collection[str] | None): Use spans of these labels; None for all.
    """

    spans_key: str | None
    labels: Collection[str] | None

    def spans(self, doc: Doc) -> list[Span]:
        """List the spans of a Doc, in order."""
        found = get_spans(doc, self.spans_key)
        return [span for span in found if self.labels is None or span.label_ in self.labels]


def gather_mentions(docs: Iterable[Doc], linker: Linker, layer: Layer) -> list[TrainMention]:
    """Collect the linked mentions of gold Docs, in the form in which the linker looks them up.

    docs (Iterable[Doc]): One for each note; `kb_id_` holds ids joined by "|", or "" for NIL.
    linker (Linker): Splits composite mentions.
    layer (Layer): The spans to use.
    RETURNS (list[TrainMention]): See `pair_parts`.
    """
    kb = linker.generator.kb
    texts: list[str] = []
    found: list[tuple[tuple[str, ...], int, str]] = []
    for note, doc in enumerate(docs):
        spans = layer.spans(doc)
        texts += mention_texts(doc, spans, find_abbreviations(doc.text))
        found += [(_own_ids(span.kb_id_, kb), note, span.text) for span in spans]
    mentions = []
    for text, parts, (ids, note, written) in zip(texts, linker.parts(texts), found, strict=True):
        mentions += pair_parts(text, parts, ids, note, written)
    return mentions


def pair_parts(
    text: str, parts: Sequence[str], ids: tuple[str, ...], note: int, written: str
) -> list[TrainMention]:
    """Assign the ids of a mention to its parts.

    text (str), parts (Sequence[str]): The mention and its parts.
    ids (tuple[str, ...]): What it means; a mention with one id is not split.
    note (int): Number of its note.
    written (str): The mention as the note has it.
    RETURNS (list[TrainMention]): One id for each part if there are as many, else all for each.
    """
    if len(ids) == 1:
        return [TrainMention(text, ids, note, written if written != text else "")]
    own = len(parts) == len(ids)
    return [TrainMention(part, (ids[i],) if own else ids, note) for i, part in enumerate(parts)]


def find_unknown_concepts(
    mentions: Iterable[TrainMention], kb: KnowledgeBase, lang: str
) -> list[Concept]:
    """List the concepts of mentions that a knowledge base lacks, such as codes of a hospital's own.

    Built into it, they can be linked like the others.

    mentions (Iterable[TrainMention]): Those with several ids do not show which part means what.
    lang (str): Language of the notes.
    RETURNS (list[Concept]): One for each id; its name is the most frequent text that meant it.
    """
    texts: dict[str, Counter[str]] = defaultdict(Counter)
    for mention in mentions:
        if len(mention.ids) == 1 and not wrong_id(mention.ids[0]):
            texts[mention.ids[0]][" ".join(mention.text.split())] += 1
    return [
        Concept(id, counts.most_common(1)[0][0], lang)
        for id, counts in texts.items()
        if kb.number(id) is None
    ]


def train_linker(
    linker: Linker, mentions: list[TrainMention], settings: RankerSettings
) -> tuple[TrainedModel, dict[str, Any]]:
    """Train a linker in place on mentions.

    RETURNS (tuple[TrainedModel, dict]): The model to write, and counts.
    RAISES (BioclinError): No mention has its concept among the candidates.
    """
    # A mention with several ids does not show which part of it means what.
    learned = LearnedNames(
        linker.generator.kb,
        (
            LearnedMention(form, mention.ids[0], mention.fold)
            for mention in mentions
            if len(mention.ids) == 1
            for form in mention.forms
        ),
    )
    kb = linker.generator.kb
    classifiers = train_codes(learned.counts, kb)
    linker.generator.learn(learned, CodeFinder(kb, classifiers) if classifiers else None)
    linker.ranker, report = fit_ranker(linker.generator, mentions, settings)
    linker.forget()
    counts = {"learned": learned.counts.total(), "unknown_ids": learned.n_unknown, **report}
    codes = classifiers[None].to_bytes() if classifiers else b""
    return TrainedModel(linker.ranker.to_dict(), learned.to_list(), codes), counts


def link_gold(docs: Iterable[Doc], linker: Linker, layer: Layer) -> list[LinkedMention]:
    """Link gold mentions, to evaluate the linker alone.

    RETURNS (list[LinkedMention]): For `evaluation.linking.score_linking`, with all candidates in
        order.
    """
    linked = []
    for note, doc in enumerate(docs):
        spans = layer.spans(doc)
        texts = mention_texts(doc, spans, find_abbreviations(doc.text))
        mentions = [Mention(t, span.label_, note) for t, span in zip(texts, spans, strict=True)]
        for span, (rankings, nil) in zip(spans, linker.rankings(mentions), strict=True):
            ids = _own_ids(span.kb_id_, linker.generator.kb)
            linked.append(LinkedMention(str(note), span.text, ids, rankings, nil))
    return linked


def _own_ids(joined: str, kb: KnowledgeBase) -> tuple[str, ...]:
    """List the ids of a mention as the knowledge base has them, alternative ids replaced.

    joined (str): Ids joined by "|" or "+", of which "+" may also be part of an id ("A17.0+"), with
        or without the prefixes MESH and OMIM.
    """
    ids: dict[str, None] = {}
    for part in joined.split("|"):
        own = _find_id(part.strip(), kb)
        for id in gold_ids([part]) if own is None else [own]:
            ids[_find_id(id, kb) or id] = None
    return tuple(ids)


def _find_id(id: str, kb: KnowledgeBase) -> str | None:
    rows = (kb.number(form) for form in written_forms(id))
    return next((str(kb.ids[row]) for row in rows if row is not None), None)
