"""`bioclin evaluate`: score a pipeline on a corpus of gold Docs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import BioclinError
from ...outputs import Output
from ...parallel import show_progress
from ..tables import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spacy.language import Language
    from spacy.tokens import Doc

    from ...evaluation.metrics import PipelineRun

COLUMNS = ("Label", "Gold", "Found", "P", "R", "F1", "95 %")


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
    save_predictions: Annotated[
        Path | None, typer.Option(help="Write the predicted Docs (.spacy)")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUTPUT, HTML and SAVE_PREDICTIONS")
    ] = False,
) -> None:
    """Run PIPELINE over the texts of CORPUS and compare what it finds with the gold spans.

    Scores doc.ents and every layer of doc.spans that both have, on character offsets of the whole
    text: strict and relaxed, per label, micro and macro, with 95 % intervals. Where the gold spans
    have concept ids and the pipeline links, it scores the links too.
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
    references = list(read_docs(corpus, nlp.vocab))
    if other := find_other_language(str(nlp.lang), references):
        _warn(
            f"the pipeline is for language {nlp.lang!r}, the corpus looks like {other!r}:"
            " check that they belong together."
        )
    run, predicted = _run(nlp, references, keep=save_predictions is not None)
    for layer in run.unpredicted:
        _warn(
            f"the corpus is annotated for the layer {layer!r}, which the pipeline never sets: it is"
            " not scored."
        )
    if not run.layers:
        raise BioclinError(
            f"Nothing to score: the pipeline {pipeline!r} sets none of the layers that the corpus"
            f" is annotated for ({', '.join(run.unpredicted) or 'none'}). Choose a pipeline or a"
            " corpus with the same layers (see `bioclin convert --help`)."
        )
    _check_labels(nlp, run)
    metrics = make_metrics(nlp, corpus.name, run, official)
    metrics_file.write(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n")
    if page:
        page.write(render_report(metrics, run.layers, with_text=not no_text))
    if predictions:
        write_docs(predicted, predictions)
    for layer, scores in metrics["layers"].items():
        _print_layer(layer, scores)
    typer.echo(f"{metrics['speed']['words_per_second']:,.0f} words/s")
    for path in filter(None, (output, html, save_predictions)):
        typer.echo(f"Written: {path}", err=True)


def _check_labels(nlp: "Language", run: "PipelineRun") -> None:
    """Warn of annotated labels that the pipeline does not have: nothing is ever found of them.

    A label that a component does not list counts as one that the pipeline has if it was found.

    RAISES (BioclinError): The pipeline has other labels only.
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
    if missing and others and not matches:
        labels = "; ".join(f"{layer}: {names}" for layer, names in missing.items())
        raise BioclinError(
            f"Nothing to score: the pipeline has none of the labels that the corpus is annotated"
            f" with ({labels}). It has {', '.join(sorted(others))}. Choose a pipeline or a corpus"
            " with the same labels, or rename those of the corpus (bioclin convert --label"
            " OLD=NEW)."
        )
    for layer, names in missing.items():
        _warn(
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


def _run(
    nlp: "Language", references: "Sequence[Doc]", *, keep: bool
) -> tuple["PipelineRun", "list[Doc]"]:
    """Run a pipeline with a progress bar.

    keep (bool): Whether to return the predicted Docs, without their tensors.
    """
    from rich.console import Console

    from ...evaluation.metrics import run_pipeline

    kept: list[Doc] = []
    n_done, n_words = 0, max(sum(map(len, references)), 1)
    with show_progress(Console(stderr=True), "words") as show:

        def on_doc(doc: "Doc") -> None:
            nonlocal n_done
            n_done += len(doc)
            show(min(n_done / n_words, 1.0), n_done)
            if keep:
                if doc.has_extension("trf_data"):
                    doc._.trf_data = None
                kept.append(doc)

        return run_pipeline(nlp, references, on_doc), kept


def _print_layer(layer: str, scores: dict[str, Any]) -> None:
    strict, relaxed = scores["strict"], scores["relaxed"]["micro"]
    n_docs = scores["docs_per_label"]
    columns: tuple[str, ...] = COLUMNS
    rows = [[label, *_cells(figures)] for label, figures in strict["per_type"].items()]
    if set(n_docs.values()) - {scores["docs"]}:  # not every document was annotated for every label
        columns = (*COLUMNS, "Docs")
        rows = [[*row, str(n_docs[row[0]])] for row in rows]
    print_table(
        rows,
        columns,
        title=f"{layer}: strict scores in %, {scores['docs']} documents",
        right=columns[1:],
        footer=("micro", *_cells(strict["micro"]), *[""] * (len(columns) - len(COLUMNS))),
    )
    typer.echo(
        f"macro F1 {100 * strict['macro']['f']:.2f}, relaxed micro F1"
        f" {100 * relaxed['f']:.2f} (95 %: {_interval(relaxed['f_interval'])})"
    )
    if scores["linking"]:
        _print_linking(scores["linking"])
    if scores["official"]:
        for name, figures in scores["official"]["scores"].items():
            shown = "  ".join(f"{key} {value:.4f}" for key, value in figures.items())
            typer.echo(f"official {scores['official']['task']} {name}: {shown}")


def _print_linking(linking: dict[str, Any]) -> None:
    whole, figures = linking["end_to_end"]["mentions"], linking["biosyn"]
    recall = "  ".join(
        f"R@{key[1:]} {100 * value:.2f}" for key, value in figures.items() if key[1:].isdigit()
    )
    typer.echo(
        f"linking of the {figures['n']} mentions found (of {linking['n_gold']}): accuracy"
        f" {100 * figures['acc']:.2f} (95 %: {_interval(figures['acc_interval'])}), strict"
        f" {100 * linking['strict']['acc']:.2f}  {recall}  MRR {100 * figures['mrr']:.2f}"
    )
    interval = _interval(whole["f_interval"])
    typer.echo(f"offsets and id: F1 {100 * whole['f']:.2f} (95 %: {interval})")


def _cells(figures: dict[str, Any]) -> list[str]:
    gold, found = figures["tp"] + figures["fn"], figures["tp"] + figures["fp"]
    prf = [f"{100 * figures[key]:.2f}" for key in "prf"]
    return [str(gold), str(found), *prf, _interval(figures["f_interval"])]


def _interval(bounds: list[float]) -> str:
    low, high = (100 * bound for bound in bounds)
    return f"{low:.1f}–{high:.1f}"


def _warn(message: str) -> None:
    typer.secho(f"bioclin: warning: {message}", fg=typer.colors.YELLOW, err=True)
