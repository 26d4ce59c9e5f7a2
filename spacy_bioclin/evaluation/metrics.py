"""Run a pipeline over gold Docs and gather every figure about what it found."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..types import GOLD_KEY
from .bootstrap import f1_interval
from .confusion import LayerDoc, confusion
from .linking_docs import (
    LinkedDoc,
    compare_links,
    has_gold_ids,
    linking_metrics,
    spacy_linking_scores,
)
from .spans import Counts, SpanScores, compare, relaxed_match, score_spans

# Name of the layer that doc.ents belongs to; the others are keys of doc.spans.
ENTS = "ents"


class PipelineRun(NamedTuple):
    """What a pipeline made of a corpus.

    layers (dict[str, list[LayerDoc]]): Of each layer that the gold and the pipeline have: the
        documents that are annotated for it.
    links (dict[str, list[LinkedDoc]]): Of each layer whose gold has concept ids, if the pipeline
        links: the same documents.
    unpredicted (list[str]): Layers of the gold that the pipeline has not.
    n_docs (int): Documents.
    n_words (int): Tokens of the pipeline.
    seconds (float): Time of the whole run.
    """

    layers: dict[str, list[LayerDoc]]
    links: dict[str, list[LinkedDoc]]
    unpredicted: list[str]
    n_docs: int
    n_words: int
    seconds: float


def run_pipeline(
    nlp: Language, references: Sequence[Doc], on_doc: Callable[[Doc], None]
) -> PipelineRun:
    """Annotate the texts of gold Docs from scratch and compare.

    nlp (Language): The pipeline.
    references (Sequence[Doc]): Gold Docs; not changed.
    on_doc (Callable[[Doc], None]): Called with every predicted Doc, for progress.
    RETURNS (PipelineRun): Spans of both sides.
    """
    gold_layers = sorted({layer for doc in references for layer in annotated_layers(doc)})
    found: dict[str, list[LayerDoc]] = {layer: [] for layer in gold_layers}
    links: dict[str, list[LinkedDoc]] = {layer: [] for layer in gold_layers}
    predicts: set[str] = set()
    n_words = 0
    started = time.perf_counter()
    texts = ((reference.text, reference) for reference in references)
    for index, (doc, reference) in enumerate(nlp.pipe(texts, as_tuples=True)):
        eg = Example(doc, reference)
        n_words += len(doc)
        if len(doc):
            predicts |= annotated_layers(doc)
        name = reference.user_data.get(GOLD_KEY, {}).get("id", str(index))
        for layer in gold_layers:
            # A pipeline may find more than doc.ents can hold: nested entities in doc.spans["ents"].
            spans_key = None if layer == ENTS and ENTS not in doc.spans else layer
            spans, linked = compare(eg, spans_key), compare_links(eg, spans_key, name)
            if spans is not None and linked is not None:
                found[layer].append(LayerDoc(name, doc.text, *spans))
                links[layer].append(linked)
        on_doc(doc)
    seconds = time.perf_counter() - started
    layers = {layer: docs for layer, docs in found.items() if layer in predicts}
    links = {
        layer: links[layer]
        for layer in layers
        if has_gold_ids(links[layer]) and any(doc.links for doc in links[layer])
    }
    unpredicted = [layer for layer in gold_layers if layer not in predicts]
    return PipelineRun(layers, links, unpredicted, len(references), n_words, seconds)


def annotated_layers(doc: Doc) -> set[str]:
    """RETURNS (set[str]): The layers that a Doc is annotated for, be they empty."""
    gold = doc.user_data.get(GOLD_KEY)
    if gold is not None:
        return set(gold["layers"])
    return {*doc.spans, *([ENTS] if doc.has_annotation("ENT_IOB") else [])}


def layer_metrics(
    docs: Sequence[LayerDoc], links: Sequence[LinkedDoc] | None = None
) -> dict[str, Any]:
    """Every figure about a layer.

    docs (Sequence[LayerDoc]): Its documents.
    links (Sequence[LinkedDoc] | None): Their links, if there are any to score.
    RETURNS (dict[str, Any]): Strict and relaxed scores with counts and 95 % intervals of F1, the
        confusion of labels, and `linking` (None without links); ready for JSON, without note text.
    """
    pairs = [(doc.reference, doc.predicted) for doc in docs]
    counts = confusion(docs)
    cells = sorted(counts, key=lambda cell: (cell[0] or "", cell[1] or ""))
    return {
        "docs": len(docs),
        "strict": _all_scores(score_spans(pairs)),
        "relaxed": _all_scores(score_spans(pairs, relaxed_match)),
        "confusion": [[*cell, counts[cell]] for cell in cells],
        "linking": None if links is None else linking_metrics(links),
    }


def _all_scores(scores: SpanScores) -> dict[str, Any]:
    per_type = {label: _figures(scores.of_docs(label)) for label in scores.per_label}
    return {"micro": _figures(scores.of_docs()), "macro": scores.macro, "per_type": per_type}


def _figures(per_doc: list[Counts]) -> dict[str, Any]:
    total = Counts.total(per_doc)
    return {**total.prf(), **total._asdict(), "f_interval": list(f1_interval(per_doc))}


def spacy_scores(layers: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Strict scores under spaCy's keys: `ents_f`, `ents_per_type`, `spans_phi_f`, `link_acc` …

    layers (Mapping[str, dict]): Name of the layer -> `layer_metrics`.
    """
    scores: dict[str, Any] = {}
    for layer, metrics in layers.items():
        prefix = ENTS if layer == ENTS else f"spans_{layer}"
        strict = metrics["strict"]
        scores.update({f"{prefix}_{key}": strict["micro"][key] for key in "prf"})
        scores[f"{prefix}_per_type"] = {
            label: {key: figures[key] for key in "prf"}
            for label, figures in strict["per_type"].items()
        }
        if metrics["linking"] is not None:
            spans_key = None if layer == ENTS else layer
            scores.update(spacy_linking_scores(metrics["linking"], spans_key=spans_key))
    return scores
