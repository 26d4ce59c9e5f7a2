"""`bioclin evaluate`: score a pipeline on a corpus of gold Docs."""

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...outputs import Output
from ...parallel import show_progress
from .score_checks import check_labels, check_other_labels, check_scored, warn
from .score_published import Predictions, find_scored_task, print_published, score_published
from .score_tables import print_categories, print_layer, print_relations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from spacy.language import Language
    from spacy.tokens import Doc

    from ...evaluation.metrics import PipelineRun
    from ...evaluation.relations import ComparedRelations


def main(
    pipeline: Annotated[str, typer.Argument(help="Folder or package name of the pipeline")],
    corpus: Annotated[Path, typer.Argument(help="A .spacy file or a folder of shards")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Metrics as JSON, no note text")],
    html: Annotated[Path | None, typer.Option(help="Write a page with scores and errors")] = None,
    no_text: Annotated[bool, typer.Option("--no-text", help="Page without note text")] = False,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
    precision: Annotated[
        str | None, typer.Option(help="auto, fp32, bf16, fp16 (GPU) or int8 (CPU)")
    ] = None,
    official: Annotated[
        str | None, typer.Option(help="Also meddocan, pharmaconer or cantemist scores")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Also the published metric of this task, see `bioclin tasks`"),
    ] = None,
    save_predictions: Annotated[
        Path | None, typer.Option(help="Write the predicted Docs (.spacy)")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUTPUT, HTML and SAVE_PREDICTIONS")
    ] = False,
) -> None:
    """Run PIPELINE over the texts of CORPUS and compare what it finds with the gold annotations.

    Scores doc.ents and every layer of doc.spans that both have, on character offsets of the whole
    text: strict and relaxed, per label, micro and macro, with 95 % intervals. Where the gold spans
    have concept ids and the pipeline links, it scores the links too. Relations are scored between
    the entities that the pipeline finds, and between the gold entities; categories of texts and of
    pairs of texts are scored by the component that finds them.

    With --task, it prints the metric that papers report on a task, beside their figures.
    """
    from ...corpora.docbin import make_docs_output, read_docs, write_docs
    from ...corpora.formats import list_inputs
    from ...evaluation.metrics import find_other_language, make_metrics
    from ...evaluation.official import check_task
    from ...evaluation.report import render_report
    from ..loading import list_pipeline, load_pipeline

    inputs = [*list_pipeline(pipeline), *list_inputs("spacy", [corpus])]
    rules: Any = {"inputs": inputs, "overwrite": overwrite}
    metrics_file = Output(output, **rules)
    page = html and Output(html, others=[output], private=not no_text, **rules)
    predictions = save_predictions and make_docs_output(
        save_predictions, others=[output, html], **rules
    )
    if official:
        check_task(official)
    nlp = load_pipeline(pipeline, gpu_id=gpu_id, precision=precision)
    known = find_scored_task(task, nlp) if task else None
    references = list(read_docs(corpus, nlp.vocab))
    if other := find_other_language(str(nlp.lang), references):
        warn(
            f"the pipeline is for language {nlp.lang!r}, the corpus looks like {other!r}:"
            " check that they belong together."
        )
    keep = bool(save_predictions or task)
    run, predicted = _run(nlp, references, keep=keep)
    given, with_given = _run_with_given(nlp, references, keep=keep)
    metrics = make_metrics(nlp, corpus.name, run, official, given)
    check_scored(pipeline, nlp, references, metrics)
    check_labels(nlp, run, is_all=not metrics["relations"] and not metrics["categories"])
    check_other_labels(nlp, run, given)
    if task and known:
        docs = Predictions(references, predicted, with_given, run.layers)
        metrics["published"] = score_published(task, known, nlp, docs)
    metrics_file.write(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n")
    if page:
        page.write(render_report(metrics, run.layers, with_text=not no_text))
    if predictions:
        write_docs(predicted, predictions)
    _print_scores(metrics)
    for path in filter(None, (output, html, save_predictions)):
        typer.echo(f"Written: {path}", err=True)


def _print_scores(metrics: dict[str, Any]) -> None:
    """Print all tables, and the speed."""
    for layer, scores in metrics["layers"].items():
        print_layer(layer, scores)
    for key, scores in metrics["relations"].items():
        print_relations(key, scores)
    for component, scores in metrics["categories"].items():
        print_categories(component, scores)
    if "published" in metrics:
        print_published(metrics["published"])
    typer.echo(f"{metrics['speed']['words_per_second']:,.0f} words/s")


def _run(
    nlp: "Language", references: "Sequence[Doc]", *, keep: bool
) -> tuple["PipelineRun", "list[Doc]"]:
    """Run a pipeline with a progress bar.

    keep (bool): Whether to return the predicted Docs, without their tensors.
    """
    from ...evaluation.metrics import run_pipeline

    kept: list[Doc] = []
    with _show_docs(references) as show:
        return run_pipeline(nlp, references, _keep_docs(kept, show) if keep else show), kept


def _run_with_given(
    nlp: "Language", references: "Sequence[Doc]", *, keep: bool
) -> tuple[dict[str, "list[ComparedRelations]"], dict[str, "list[Doc]"]]:
    """Find the relations between the gold entities, if there are any to score.

    keep (bool): Whether to return the predicted Docs, without their tensors.
    RETURNS (tuple[dict, dict]): `relations_key` -> the relations of each Doc, and the Docs.
    """
    from ...evaluation.components import find_relation_components
    from ...evaluation.given import run_with_given
    from ...evaluation.relations import has_gold_relations

    found: dict[str, list[ComparedRelations]] = {}
    kept: dict[str, list[Doc]] = {}
    if any(map(has_gold_relations, references)):
        for finder in find_relation_components(nlp):
            key = finder.relations_key
            kept[key] = []
            with _show_docs(references) as show:
                on_doc = _keep_docs(kept[key], show) if keep else show
                found[key] = run_with_given(nlp, references, finder, on_doc)
    return found, kept


def _keep_docs(kept: "list[Doc]", show: "Callable[[Doc], None]") -> "Callable[[Doc], None]":
    """Make a function that keeps each Doc that is done, without its tensors."""

    def on_doc(doc: "Doc") -> None:
        show(doc)
        if doc.has_extension("trf_data"):
            doc._.trf_data = None
        kept.append(doc)

    return on_doc


@contextmanager
def _show_docs(references: "Sequence[Doc]") -> "Iterator[Callable[[Doc], None]]":
    """Show a progress bar; give a function to call with each Doc that is done."""
    from rich.console import Console

    n_done, n_words = 0, max(sum(map(len, references)), 1)
    with show_progress(Console(stderr=True), "words") as show:

        def on_doc(doc: "Doc") -> None:
            nonlocal n_done
            n_done += len(doc)
            show(min(n_done / n_words, 1.0), n_done)

        yield on_doc
