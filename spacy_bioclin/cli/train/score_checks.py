"""Check that `bioclin evaluate` has something to score, and warn of what it cannot score."""

from typing import TYPE_CHECKING, Any

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from spacy.language import Language
    from spacy.tokens import Doc

    from ...evaluation.metrics import PipelineRun
    from ...evaluation.relations import ComparedRelations


def check_scored(
    pipeline: str, nlp: "Language", references: "Sequence[Doc]", metrics: dict[str, Any]
) -> None:
    """Warn of annotations that are not scored.

    pipeline (str): Name of the pipeline, for the error.
    nlp (Language): The pipeline.
    references (Sequence[Doc]): The gold Docs.
    metrics (dict[str, Any]): See `make_metrics`.
    RAISES (BioclinError): There is nothing to score.
    """
    from ...evaluation.components import find_category_components, find_relation_components
    from ...evaluation.relations import has_gold_relations

    annotated = list(metrics["layers_not_predicted"])
    for layer in annotated:
        warn(
            f"the corpus is annotated for the layer {layer!r}, which the pipeline never sets: it is"
            " not scored."
        )
    for layer in metrics["layers_with_other_ids"]:
        warn(
            f"the pipeline links the layer {layer!r}, but no concept id of the corpus is in its"
            " knowledge base: links are not scored. Build one from the terminology of the corpus"
            " (see `bioclin kb build --help`)."
        )
    if any(map(has_gold_relations, references)):
        annotated.append("relations")
        finders = find_relation_components(nlp)
        for finder in finders:
            if finder.relations_key not in metrics["relations"]:
                warn(
                    f"{finder.name!r} finds relations at the level {finder.level!r}, but the corpus"
                    " is not annotated for it: they are not scored. Convert the corpus again, with"
                    " relations at that level (see `bioclin convert --help`)."
                )
        if not finders:
            warn("the corpus has relations, but no component of the pipeline finds any.")
    if any(doc.cats for doc in references):
        annotated.append("categories")
        if not find_category_components(nlp):
            warn("the corpus has categories, but no component of the pipeline finds any.")
    if not any(metrics[key] for key in ("layers", "relations", "categories")):
        raise BioclinError(
            f"Nothing to score: the pipeline {pipeline!r} sets none of the layers that the corpus"
            f" is annotated for ({', '.join(annotated) or 'none'}). Choose a pipeline or a"
            " corpus with the same layers (see `bioclin convert --help`)."
        )


def check_labels(nlp: "Language", run: "PipelineRun", *, is_all: bool) -> None:
    """Warn of annotated labels that the pipeline does not have: nothing is ever found of them.

    A label that a component does not list counts as one that the pipeline has if it was found.

    nlp (Language): The pipeline.
    run (PipelineRun): What it found.
    is_all (bool): Whether there is nothing else to score.
    RAISES (BioclinError): Nothing else is scored, and the pipeline has other labels only.
    """
    missing, others = {}, set()
    matches = False
    for layer, docs in run.layers.items():
        gold = {label for doc in docs for _, _, label in doc.reference}
        known = {label for doc in docs for _, _, label in doc.predicted}
        known |= _list_labels(nlp, layer)
        matches |= not gold or bool(gold & known)
        others |= known
        if gold - known:
            missing[layer] = ", ".join(sorted(gold - known))
    if is_all and missing and others and not matches:
        labels = "; ".join(f"{layer}: {names}" for layer, names in missing.items())
        raise BioclinError(
            f"Nothing to score: the pipeline has none of the labels that the corpus is annotated"
            f" with ({labels}). It has {', '.join(sorted(others))}. Choose a pipeline or a corpus"
            " with the same labels, or rename those of the corpus (bioclin convert --label"
            " OLD=NEW)."
        )
    for layer, names in missing.items():
        warn(
            f"the pipeline does not have these labels of the layer {layer!r}: {names}. Their gold"
            " spans count as missed: rename them if the pipeline has other names for them"
            " (bioclin convert --label OLD=NEW)."
        )


def _list_labels(nlp: "Language", layer: str) -> set[str]:
    """List the labels that the components of a pipeline can give to the spans of a layer."""
    from ...deid.labels import scheme_labels

    labels = {label for each in nlp.pipe_labels.values() for label in each}
    for name, component in nlp.pipeline:
        if getattr(component, "spans_key", None) != layer:
            continue
        factory = nlp.get_pipe_meta(name).factory
        if factory == "bioclin_phi_rules":
            labels |= set(scheme_labels(component.scheme))  # type: ignore[attr-defined]
        elif factory == "bioclin_deid":  # gives all spans labels of its scheme
            labels = set(scheme_labels(component.policy.scheme))  # type: ignore[attr-defined]
    return labels


def check_other_labels(
    nlp: "Language", run: "PipelineRun", given: "Mapping[str, Sequence[ComparedRelations]]"
) -> None:
    """Warn of labels of relations and categories that the pipeline does not have.

    nlp (Language): The pipeline.
    run (PipelineRun): What it found.
    given (Mapping): `relations_key` -> relations between the gold entities.
    """
    from ...evaluation.components import find_category_components, find_relation_components
    from ...evaluation.relations import list_labels

    for finder in find_relation_components(nlp):
        gold, found = list_labels(given.get(finder.relations_key, ()))
        _warn_missing(finder.name, gold, found | finder.labels, "relations")
    gold = {label for eg in run.categories for label in eg.reference.cats}
    found = {label for eg in run.categories for label in eg.predicted.cats}
    names = find_category_components(nlp)
    labels = {label for name in names for label in getattr(nlp.get_pipe(name), "labels", ())}
    _warn_missing(", ".join(names), gold, found | labels, "categories")


def _warn_missing(component: str, gold: set[str], known: "AbstractSet[str]", what: str) -> None:
    if missing := sorted(gold - known):
        warn(
            f"{component!r} does not have these labels of the {what} of the corpus: "
            f"{', '.join(missing)}. Nothing is ever found of them."
        )


def warn(message: str) -> None:
    """Print a warning on stderr."""
    typer.secho(f"bioclin: warning: {message}", fg=typer.colors.YELLOW, err=True)
