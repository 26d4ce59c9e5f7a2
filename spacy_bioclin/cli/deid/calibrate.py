"""`bioclin calibrate`: thresholds of PHI, for two operating points, and thresholds of relations."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from rich.console import Console
    from spacy.language import Language
    from spacy.tokens import Doc

RELATIONS = "bioclin_relations"


def main(
    pipeline: Annotated[str, typer.Argument(help="Folder or package name of the pipeline")],
    corpus: Annotated[Path, typer.Argument(help="Gold Docs that it was not trained on (.spacy)")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the new pipeline")],
    target_recall: Annotated[
        float | None,
        typer.Option(
            "--target-recall",
            help="Share of mentions of every label at the operating point high_recall, which then "
            "becomes that of the pipeline; without it: 0.99, and the pipeline has balanced",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
) -> None:
    """Choose the thresholds of a pipeline on a dev corpus: those of PHI, and those of relations."""
    from rich.console import Console

    from ...corpora.docbin import read_docs
    from ...corpora.formats import list_inputs
    from ...deid.pipeline import finds_phi
    from ...outputs import Output
    from ...vocab import save_pipeline
    from ..loading import list_pipeline, load_pipeline

    inputs = [*list_pipeline(pipeline), *list_inputs("spacy", [corpus])]
    out = Output(output, inputs=inputs, overwrite=overwrite, marker="config.cfg")
    if target_recall is not None and not 0 < target_recall <= 1:
        raise BioclinError(f"--target-recall {target_recall}: want a number above 0 and up to 1")
    nlp = load_pipeline(pipeline, gpu_id=gpu_id)
    relations = [n for n in nlp.pipe_names if nlp.get_pipe_meta(n).factory == RELATIONS]
    if not finds_phi(nlp) and not relations:
        raise BioclinError(
            f"{pipeline}: no component finds PHI in doc.spans['phi'] or relations (there are "
            f"{', '.join(nlp.pipe_names) or 'none'}), so there is nothing to calibrate. Train a "
            "pipeline with configs/deid.cfg or configs/relations.cfg, or use rules alone: "
            "`bioclin deid --rules-only`"
        )
    console = Console(highlight=False)
    docs = list(read_docs(corpus, nlp.vocab))
    report: dict[str, Any] = {}
    for name in relations:
        report[name] = _calibrate_relations(nlp, name, docs, console)
    if finds_phi(nlp):
        report["phi"] = _calibrate_phi(nlp, docs, target_recall, console)
    with out.open_folder() as folder:
        save_pipeline(nlp, folder)
        for name, own in report.items():
            stem = "deid_calibration_report" if name == "phi" else f"{name}_thresholds"
            (folder / f"{stem}.json").write_text(json.dumps(own, indent=2) + "\n", "utf-8")
    console.print(f"{output} written", markup=False)


def _calibrate_phi(
    nlp: "Language", docs: "list[Doc]", target_recall: float | None, console: "Console"
) -> dict[str, Any]:
    from ...deid.calibration import BALANCED, HIGH_RECALL
    from ...deid.fit import TARGET_RECALL, calibrate
    from ...deid.pipeline import add_deid

    before = set(nlp.pipe_names)
    add_deid(nlp)
    if added := [name for name in nlp.pipe_names if name not in before]:
        typer.echo(f"Added to the pipeline: {', '.join(added)}", err=True)
    point = BALANCED if target_recall is None else HIGH_RECALL
    chosen = calibrate(nlp, docs, target_recall or TARGET_RECALL, operating_point=point)
    error = chosen["calibration_error"]
    console.print(
        f"Expected calibration error on {len(docs):,} notes: {error['before']:.4f} before, "
        f"{error['after']:.4f} after."
    )
    for label, row in chosen["labels"].items():
        for name in (BALANCED, HIGH_RECALL):
            console.print(
                f"{label:40} {name:11} threshold {row[name]['threshold']:.4f}  recall "
                f"{row[name]['recall']:.4f} of {row['n_gold']:,}",
                markup=False,
            )
    console.print(f"The operating point of the pipeline is {point}.", markup=False)
    return chosen


def _calibrate_relations(
    nlp: "Language", name: str, docs: "list[Doc]", console: "Console"
) -> dict[str, Any]:
    from ...relations.thresholds import choose_thresholds

    choices = choose_thresholds(nlp, name, docs)
    for label, choice in choices.items():
        console.print(
            f"{name}: {label:30} threshold {choice.threshold:.4f}  F1 {choice.f:.4f}, before "
            f"{choice.f_before:.4f}, of {choice.n_gold:,}",
            markup=False,
        )
    return {label: choice._asdict() for label, choice in choices.items()}
