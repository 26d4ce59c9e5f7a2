"""Run a pipeline over gold Docs and compute all scores of what it finds."""

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from spacy.lang.en.stop_words import STOP_WORDS as ENGLISH
from spacy.lang.es.stop_words import STOP_WORDS as SPANISH
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations.pairs import get_boundary, make_pair
from ..machine import find_commit, find_versions
from ..spans import annotated_labels
from ..types import GOLD_KEY
from .bootstrap import summarize_all
from .components import (
    find_category_components,
    find_concept_ids,
    find_relation_components,
    score_categories_of,
)
from .confusion import LayerDoc, confusion
from .linking_docs import (
    LinkedDoc,
    can_be_linked,
    compare_links,
    has_gold_ids,
    linking_metrics,
    spacy_linking_scores,
)
from .official import ScoredDoc, official_scores
from .relations import (
    ComparedRelations,
    compare_relations,
    has_gold_relations,
    relation_metrics,
    spacy_relation_scores,
)
from .spans import compare, relaxed_match, score_spans

# Name of the layer of doc.ents. The other names are keys of doc.spans.
ENTS = "ents"
LANGUAGE_DOCS = 100  # documents to guess the language from
MIN_STOP_WORDS = 20


class PipelineRun(NamedTuple):
    """What a pipeline found in a corpus.

    layers (dict[str, list[LayerDoc]]): For each layer of both the gold Docs and the pipeline, the
        documents that are annotated for it.
    links (dict[str, list[LinkedDoc]]): For each layer with gold concept ids that the pipeline can
        link to, the same documents.
    other_ids (list[str]): Layers that the pipeline links to a terminology with none of the gold
        ids.
    relations (dict[str, list[ComparedRelations]]): Where the gold Docs have relations, those of
        each `relations_key` for which the pipeline finds the entities too.
    categories (list[Example]): The documents with gold categories, if the pipeline writes some.
    unpredicted (list[str]): Layers of the gold Docs that the pipeline does not set.
    tasks (list[str]): Tasks that the gold Docs were annotated for, where they say so.
    n_docs (int): Number of documents.
    n_words (int): Number of tokens of the pipeline.
    seconds (float): Time of the whole run.
    """

    layers: dict[str, list[LayerDoc]]
    links: dict[str, list[LinkedDoc]]
    other_ids: list[str]
    relations: dict[str, list[ComparedRelations]]
    categories: list[Example]
    unpredicted: list[str]
    tasks: list[str]
    n_docs: int
    n_words: int
    seconds: float


def run_pipeline(
    nlp: Language, references: Sequence[Doc], on_doc: Callable[[Doc], None]
) -> PipelineRun:
    """Annotate the texts of gold Docs, and collect gold and predicted annotations.

    nlp (Language): The pipeline.
    references (Sequence[Doc]): Gold Docs, which are not changed.
    on_doc (Callable[[Doc], None]): Called with every predicted Doc, for progress.
    RETURNS (PipelineRun): Spans, links, relations and categories.
    """
    gold_layers = sorted({layer for doc in references for layer in annotated_layers(doc)})
    found: dict[str, list[LayerDoc]] = {layer: [] for layer in gold_layers}
    links: dict[str, list[LinkedDoc]] = {layer: [] for layer in gold_layers}
    has_relations = any(map(has_gold_relations, references))
    finders = [f for f in find_relation_components(nlp) if has_relations and f.finds_entities]
    relations: dict[str, list[ComparedRelations]] = {f.relations_key: [] for f in finders}
    categories: list[Example] = []
    finds_categories = bool(find_category_components(nlp))
    predicts: set[str] = set()
    n_words = 0
    known_ids = find_concept_ids(nlp)
    started = time.perf_counter()
    texts = ((make_input(nlp, reference), reference) for reference in references)
    for index, (doc, reference) in enumerate(nlp.pipe(texts, as_tuples=True)):
        eg = Example(doc, reference)
        n_words += len(doc)
        if len(doc):
            predicts |= annotated_layers(doc)
        name = reference.user_data.get(GOLD_KEY, {}).get("id", str(index))
        for layer in gold_layers:
            # A pipeline may set nested entities in doc.spans["ents"], which doc.ents cannot have.
            spans_key = None if layer == ENTS and ENTS not in doc.spans else layer
            spans, linked = compare(eg, spans_key), compare_links(eg, spans_key, name, known_ids)
            if spans is not None and linked is not None:
                labels = annotated_labels(reference, spans_key)
                found[layer].append(LayerDoc(name, doc.text, *spans, labels))
                links[layer].append(linked)
        for finder in finders:
            compared = compare_relations(eg, finder.relations_key, finder.symmetric)
            relations[finder.relations_key].append(compared)
        on_doc(doc)
        if finds_categories and reference.cats:
            categories.append(eg)
            if doc.has_extension("trf_data"):
                doc._.trf_data = None  # vectors, which would fill the memory
    seconds = time.perf_counter() - started
    layers = {layer: docs for layer, docs in found.items() if layer in predicts}
    links = {
        layer: links[layer]
        for layer in layers
        if has_gold_ids(links[layer]) and any(doc.links for doc in links[layer])
    }
    other_ids = [
        layer
        for layer, linked_docs in links.items()
        if known_ids is not None and not can_be_linked(linked_docs, known_ids)
    ]
    links = {layer: docs for layer, docs in links.items() if layer not in other_ids}
    unpredicted = [layer for layer in gold_layers if layer not in predicts]
    tasks = {doc.user_data.get(GOLD_KEY, {}).get("task") for doc in references}
    known = sorted(filter(None, tasks))
    counts = len(references), n_words, seconds
    return PipelineRun(layers, links, other_ids, relations, categories, unpredicted, known, *counts)


def make_input(nlp: Language, reference: Doc) -> str | Doc:
    """Make what a pipeline reads: the text of a gold Doc, or a new pair of the same texts."""
    boundary = get_boundary(reference)
    if boundary is None:
        return reference.text
    middle = reference[boundary].idx
    return make_pair(nlp, reference.text[:middle], reference.text[middle + 1 :])


def annotated_layers(doc: Doc) -> set[str]:
    """Find the layers that a Doc is annotated for, including those without any span."""
    gold = doc.user_data.get(GOLD_KEY)
    if gold is not None:
        return set(gold["layers"])
    return {*doc.spans, *([ENTS] if doc.has_annotation("ENT_IOB") else [])}


def layer_metrics(
    docs: Sequence[LayerDoc], links: Sequence[LinkedDoc] | None = None
) -> dict[str, Any]:
    """Compute all scores of a layer.

    docs (Sequence[LayerDoc]): The documents of the layer.
    links (Sequence[LinkedDoc] | None): Their links, if there are any to score.
    RETURNS (dict[str, Any]): The number of documents, and of those that were annotated for each
        label; the labels that any was annotated for (None for all); strict and relaxed scores with
        counts and 95 % intervals of F1, the confusion of labels, and `linking` (None without
        links). Ready for JSON, without note text.
    """
    pairs = [(doc.reference, doc.predicted) for doc in docs]
    strict = score_spans(pairs)
    counts = confusion(docs)
    cells = sorted(counts, key=lambda cell: (cell[0] or "", cell[1] or ""))
    labels = [doc.labels for doc in docs]
    annotated = None if None in labels else sorted(frozenset().union(*filter(None, labels)))
    return {
        "docs": len(docs),
        "docs_per_label": {
            label: sum(doc.labels is None or label in doc.labels for doc in docs)
            for label in strict.per_label
        },
        "annotated_labels": annotated,
        "strict": summarize_all(strict),
        "relaxed": summarize_all(score_spans(pairs, relaxed_match)),
        "confusion": [[*cell, counts[cell]] for cell in cells],
        "linking": None if links is None else linking_metrics(links),
    }


def spacy_scores(layers: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Give strict scores keys like those of spaCy, such as `ents_f` and `spans_phi_f`.

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


def make_metrics(
    nlp: Language,
    corpus: str,
    run: PipelineRun,
    official: str | None,
    given: Mapping[str, Sequence[ComparedRelations]] | None = None,
) -> dict[str, Any]:
    """Compute what `bioclin evaluate` writes.

    nlp (Language): The pipeline.
    corpus (str): Name of the corpus.
    run (PipelineRun): What the pipeline found in it.
    official (str | None): Shared task whose scores to add, one of `official.TASKS`.
    given (Mapping | None): `relations_key` -> relations between the gold entities, see
        `run_with_given`.
    RETURNS (dict[str, Any]): The scores, with pipeline, corpus, speed, date, versions and commit.
        Ready for JSON, without note text.
    """
    layers = {}
    for layer, docs in run.layers.items():
        layers[layer] = {**layer_metrics(docs, run.links.get(layer)), "official": None}
        if official:
            scored = [ScoredDoc(d.text, sorted(d.reference), sorted(d.predicted)) for d in docs]
            scores = official_scores(official, scored)
            layers[layer]["official"] = {"task": official, "scores": scores}
    relations = {}
    for finder in find_relation_components(nlp):
        key = finder.relations_key
        compared = run.relations.get(key, ()), (given or {}).get(key, ())
        if (of_key := relation_metrics(*compared, finder.level)) is not None:
            relations[key] = of_key
    categories = score_categories_of(nlp, run.categories)
    return {
        "pipeline": {
            "name": f"{nlp.lang}_{nlp.meta['name']}",
            "version": nlp.meta["version"],
            "components": nlp.pipe_names,
        },
        "corpus": {
            "name": corpus,
            "tasks": run.tasks,
            "docs": run.n_docs,
            "words": run.n_words,
        },
        "scores": {
            **spacy_scores(layers),
            **spacy_relation_scores(relations),
            **{key: value for of_pipe in categories.values() for key, value in of_pipe.items()},
        },
        "layers": layers,
        "relations": relations,
        "categories": categories,
        "layers_not_predicted": run.unpredicted,
        "layers_with_other_ids": run.other_ids,
        "speed": {
            "seconds": run.seconds,
            "words_per_second": run.n_words / max(run.seconds, 1e-9),
        },
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "versions": find_versions(),
        "commit": find_commit(),
    }


def find_other_language(lang: str, docs: Sequence[Doc]) -> str | None:
    """Guess from stop words whether Docs are in another language.

    lang (str): The expected language.
    docs (Sequence[Doc]): The Docs.
    RETURNS (str | None): "en" or "es"; None if they seem to be in the expected language.
    """
    only = {"en": ENGLISH - SPANISH, "es": SPANISH - ENGLISH}
    if lang not in only:
        return None
    words = [token.lower_ for doc in docs[:LANGUAGE_DOCS] for token in doc]
    counts = {each: sum(word in stop for word in words) for each, stop in only.items()}
    likely = max(counts, key=lambda each: counts[each])
    is_other = counts[likely] > MIN_STOP_WORDS and counts[likely] > 2 * counts[lang]
    return likely if is_other else None
