"""`bioclin evaluate`: score a pipeline on a corpus of gold Docs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import BioclinError
from ..tables import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from spacy.language import Language
    from spacy.tokens import Doc

    from ...evaluation.metrics import PipelineRun

TEXT_SHARE = 100  # documents that the language is guessed from


def main(
    pipeline: Annotated[str, typer.Argument(help="Folder or package name of the pipeline.")],
    corpus: Annotated[Path, typer.Argument(help="A .spacy file or a folder of shards.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Metrics as JSON, no note text.")],
    html: Annotated[Path | None, typer.Option(help="Write a page with scores and errors.")] = None,
    no_text: Annotated[bool, typer.Option("--no-text", help="Page without note text.")] = False,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="-1 for the CPU.")] = -1,
    precision: Annotated[
        str | None, typer.Option(help="auto, fp32, bf16, fp16 (GPU) or int8 (CPU).")
    ] = None,
    official: Annotated[
        str | None, typer.Option(help="Also meddocan, pharmaconer or cantemist scores.")
    ] = None,
    save_predictions: Annotated[
        Path | None, typer.Option(help="Write the predicted Docs (.spacy).")
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
    from ...corpora.docbin import check_docs_output, read_docs, write_docs
    from ...evaluation.official import check_task
    from ...evaluation.report import render_report
    from ...files import Output
    from ..loading import load_pipeline

    inputs = [Path(pipeline), corpus]
    out = Output(output, inputs=inputs, overwrite=overwrite)
    page = html and Output(html, inputs=inputs, overwrite=overwrite, private=not no_text)
    if save_predictions:
        check_docs_output(save_predictions, inputs=inputs, overwrite=overwrite)
    if official:
        check_task(official)
    nlp = load_pipeline(pipeline, gpu_id=gpu_id, precision=precision)
    references = list(read_docs(corpus, nlp.vocab))
    _warn_of_language(nlp, references)
    run, predicted = _run(nlp, references, keep=save_predictions is not None)
    _check_layers(pipeline, run)
    metrics = _make_metrics(nlp, corpus, run, official)
    out.write(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n")
    if page:
        page.write(render_report(metrics, run.layers, with_text=not no_text))
    if save_predictions:
        write_docs(predicted, save_predictions)
    _print(metrics)
    for path in filter(None, (output, html, save_predictions)):
        typer.echo(f"Written: {path}", err=True)


def _warn_of_language(nlp: "Language", references: "Sequence[Doc]") -> None:
    """Count stop words that only one of the two languages has."""
    from spacy.lang.en.stop_words import STOP_WORDS as ENGLISH
    from spacy.lang.es.stop_words import STOP_WORDS as SPANISH

    only = {"en": ENGLISH - SPANISH, "es": SPANISH - ENGLISH}
    if nlp.lang not in only:
        return
    words = [token.lower_ for doc in references[:TEXT_SHARE] for token in doc]
    counts = {lang: sum(word in stop for word in words) for lang, stop in only.items()}
    likely = max(counts, key=lambda lang: counts[lang])
    if counts[likely] > 20 and counts[likely] > 2 * counts[nlp.lang]:
        _warn(
            f"the pipeline is for language {nlp.lang!r}, the corpus looks like {likely!r}:"
            " check that they belong together."
        )


def _run(
    nlp: "Language", references: "Sequence[Doc]", *, keep: bool
) -> tuple["PipelineRun", "list[Doc]"]:
    """Run a pipeline with a progress bar.

    keep (bool): Whether to return the predicted Docs, without their tensors.
    """
    from rich.console import Console

    from ...evaluation.metrics import run_pipeline
    from ...parallel import show_progress

    kept: list[Doc] = []
    n_words, n_done = sum(map(len, references)), 0
    with show_progress(Console(stderr=True), "words") as show:

        def on_doc(doc: "Doc") -> None:
            nonlocal n_done
            n_done += len(doc)
            show(n_done / n_words, n_done)
            if keep:
                if doc.has_extension("trf_data"):
                    doc._.trf_data = None
                kept.append(doc)

        run = run_pipeline(nlp, references, on_doc)
    return run, kept


def _check_layers(pipeline: str, run: "PipelineRun") -> None:
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


def _make_metrics(
    nlp: "Language", corpus: Path, run: "PipelineRun", official: str | None
) -> dict[str, Any]:
    """RETURNS (dict): All that metrics.json holds; no note text."""
    import datetime

    from ...evaluation.metrics import layer_metrics, spacy_scores
    from ...evaluation.official import ScoredDoc, official_scores
    from ...machine import find_commit, find_versions

    layers = {
        layer: layer_metrics(docs, run.links.get(layer)) for layer, docs in run.layers.items()
    }
    for layer, docs in run.layers.items():
        scored = [ScoredDoc(d.text, sorted(d.reference), sorted(d.predicted)) for d in docs]
        layers[layer]["official"] = official and {
            "task": official,
            "scores": official_scores(official, scored),
        }
    return {
        "pipeline": {
            "name": f"{nlp.lang}_{nlp.meta['name']}",
            "version": nlp.meta["version"],
            "components": nlp.pipe_names,
        },
        "corpus": {"name": corpus.name, "docs": run.n_docs, "words": run.n_words},
        "scores": spacy_scores(layers),
        "layers": layers,
        "layers_not_predicted": run.unpredicted,
        "speed": {
            "seconds": run.seconds,
            "words_per_second": run.n_words / max(run.seconds, 1e-9),
        },
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "versions": find_versions(),
        "commit": find_commit(),
    }


def _print(metrics: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    for layer, scores in metrics["layers"].items():
        strict, relaxed = scores["strict"], scores["relaxed"]
        title = f"{layer}: strict scores in %, {scores['docs']} documents"
        head = ("Label", "Gold", "Found", "P", "R", "F1", "95 %")
        rows = [[label, *_cells(figures)] for label, figures in strict["per_type"].items()]
        footer = ["micro", *_cells(strict["micro"])]
        print_table(rows, head, title=title, right=head[1:], footer=footer, console=console)
        console.print(
            f"macro F1 {100 * strict['macro']['f']:.2f}, relaxed micro F1"
            f" {100 * relaxed['micro']['f']:.2f} (95 %: {_interval(relaxed['micro'])})"
        )
        if scores["linking"]:
            _print_linking(console, scores["linking"])
        for name, figures in (scores["official"] or {"scores": {}})["scores"].items():
            shown = "  ".join(f"{key} {value:.4f}" for key, value in figures.items())
            console.print(f"official {scores['official']['task']} {name}: {shown}")
    console.print(f"{metrics['speed']['words_per_second']:,.0f} words/s")


def _print_linking(console: "Console", linking: dict[str, Any]) -> None:
    whole, figures = linking["end_to_end"]["mentions"], linking["biosyn"]
    recall = "  ".join(
        f"R@{key[1:]} {100 * value:.2f}" for key, value in figures.items() if key[1:].isdigit()
    )
    low, high = (100 * bound for bound in figures["acc_interval"])
    console.print(
        f"linking of the {figures['n']} mentions found (of {linking['n_gold']}): accuracy"
        f" {100 * figures['acc']:.2f} (95 %: {low:.1f}–{high:.1f}), strict"
        f" {100 * linking['strict']['acc']:.2f}  {recall}  MRR {100 * figures['mrr']:.2f}"
    )
    console.print(f"offsets and id: F1 {100 * whole['f']:.2f} (95 %: {_interval(whole)})")


def _cells(figures: dict[str, Any]) -> list[str]:
    gold, found = figures["tp"] + figures["fn"], figures["tp"] + figures["fp"]
    prf = [f"{100 * figures[key]:.2f}" for key in "prf"]
    return [str(gold), str(found), *prf, _interval(figures)]


def _interval(figures: dict[str, Any]) -> str:
    low, high = figures["f_interval"]
    return f"{100 * low:.1f}–{100 * high:.1f}"


def _warn(message: str) -> None:
    typer.secho(f"bioclin: warning: {message}", fg=typer.colors.YELLOW, err=True)
