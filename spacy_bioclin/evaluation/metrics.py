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
from .spans import Counts, SpanScores, compare, relaxed_match, score_spans

# Name of the layer that doc.ents belongs to; the others are keys of doc.spans.
ENTS = "ents"


class PipelineRun(NamedTuple):
    """What a pipeline made of a corpus.

    layers (dict[str, list[LayerDoc]]): Of each layer that the gold and the pipeline have: the
        documents that are annotated for it.
    unpredicted (list[str]): Layers of the gold that the pipeline has not.
    n_docs (int): Documents.
    n_words (int): Tokens of the pipeline.
    seconds (float): Time of the whole run.
    """

    layers: dict[str, list[LayerDoc]]
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
            spans = compare(eg, None if layer == ENTS and ENTS not in doc.spans else layer)
            if spans is not None:
                found[layer].append(LayerDoc(name, doc.text, *spans))
        on_doc(doc)
    seconds = time.perf_counter() - started
    layers = {layer: docs for layer, docs in found.items() if layer in predicts}
    unpredicted = [layer for layer in gold_layers if layer not in predicts]
    return PipelineRun(layers, unpredicted, len(references), n_words, seconds)


def annotated_layers(doc: Doc) -> set[str]:
    """RETURNS (set[str]): The layers that a Doc is annotated for, be they empty."""
    gold = doc.user_data.get(GOLD_KEY)
    if gold is not None:
        return set(gold["layers"])
    return {*doc.spans, *([ENTS] if doc.has_annotation("ENT_IOB") else [])}


def layer_metrics(docs: Sequence[LayerDoc]) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): Strict and relaxed scores with counts and 95 % intervals of F1, and
    the confusion of labels; ready for JSON, without note text."""
    pairs = [(doc.reference, doc.predicted) for doc in docs]
    counts = confusion(docs)
    cells = sorted(counts, key=lambda cell: (cell[0] or "", cell[1] or ""))
    return {
        "docs": len(docs),
        "strict": _all_scores(score_spans(pairs)),
        "relaxed": _all_scores(score_spans(pairs, relaxed_match)),
        "confusion": [[*cell, counts[cell]] for cell in cells],
    }


def _all_scores(scores: SpanScores) -> dict[str, Any]:
    per_type = {label: _figures(scores.of_docs(label)) for label in scores.per_label}
    return {"micro": _figures(scores.of_docs()), "macro": scores.macro, "per_type": per_type}


def _figures(per_doc: list[Counts]) -> dict[str, Any]:
    total = Counts.total(per_doc)
    return {**total.prf(), **total._asdict(), "f_interval": list(f1_interval(per_doc))}


def spacy_scores(layers: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Strict scores under spaCy's keys: `ents_f`, `ents_per_type`, `spans_phi_f` …

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
    return scores
