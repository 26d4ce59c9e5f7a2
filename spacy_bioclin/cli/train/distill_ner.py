"""`bioclin distill-ner`: train a small pipeline to imitate a large one."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from thinc.api import Config

    from ...ner.distill.teacher import Teacher

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}
READER = "spacy-bioclin.Corpus.v1"


def main(
    context: typer.Context,
    teacher: Annotated[str, typer.Argument(help="Folder or package name of the teacher")],
    config: Annotated[Path, typer.Argument(help="Config of the student, as for bioclin train")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pipelines")],
    texts: Annotated[
        list[Path] | None,
        typer.Option(
            "--texts",
            help="Text for the teacher to annotate: .txt or .xz (one document a line) or .spacy; "
            "can be repeated",
        ),
    ] = None,
    temperature: Annotated[
        float, typer.Option("--temperature", help="Divides the scores of teacher and student")
    ] = 1.0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run from its last evaluation")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the pipelines of OUTPUT")
    ] = False,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
) -> None:
    """Train the pipeline of CONFIG on its training notes and on TEXTS, which TEACHER annotates.
    Settings are overridden as in `bioclin train`: --paths.train corpus/train.spacy
    --components.ner.teacher_weight 0.7."""
    from spacy.cli._util import show_validation_error
    from spacy.training.initialize import init_nlp

    from ...ner.distill.teacher import Teacher, check_student, write_corpus
    from ...outputs import lock_output
    from ...training.auto import settle_settings
    from ...training.loop import LAST, check_new, train
    from ..loading import load_pipeline

    for path in (config, *(texts or ())):
        if not path.exists():
            raise BioclinError(f"{path}: no such file")
    settings = read_settings(config, context.args)
    source = settings.interpolate()["corpora"]["train"]["path"]
    if not source and not texts:
        raise BioclinError("nothing to learn from: give --paths.train, --texts, or both")
    if not resume:
        check_new(output, overwrite=overwrite)
    loaded = Teacher(load_pipeline(teacher, gpu_id=gpu_id), temperature=temperature)
    follow_teacher(settings, loaded, config)
    corpus = output / "corpus"
    with lock_output(corpus):
        write_corpus(loaded, Path(source) if source else None, texts or [], corpus, _watch)
        del loaded  # frees its memory for the student
        settings["corpora"]["train"]["path"] = str(corpus)
        with show_validation_error(config):
            nlp = init_nlp(settings, use_gpu=gpu_id)
        typer.echo("\n".join(settle_settings(nlp, {})))
        check_student(nlp, corpus)
        train(nlp, output, resume=resume, use_gpu=gpu_id, stdout=sys.stdout, stderr=sys.stderr)
    typer.echo(f"The pipeline is in {output / LAST}")


def read_settings(config: Path, arguments: list[str]) -> "Config":
    """Load the student's config.

    arguments (list[str]): Overrides as on the command line of `spacy train`.
    RAISES (BioclinError): Its training corpus cannot be replaced.
    """
    from spacy.cli._util import show_validation_error

    from .overrides import read_config

    settings, _ = read_config(config, arguments)
    with show_validation_error(config):
        reader = settings.interpolate().get("corpora", {}).get("train", {})
    if reader.get("@readers") != READER or "path" not in reader:
        raise BioclinError(f"{config}: [corpora.train] must be a {READER} with a path")
    return settings


def follow_teacher(settings: "Config", teacher: "Teacher", config: Path) -> None:
    """Copy the labels of the teacher's heads to the student's config.

    settings (Config): The student's config, changed in place.
    config (Path): Its file, for errors.
    RAISES (BioclinError): No head has a teacher, or a head has other tags than its teacher.
    """
    matched = False
    for name, component in settings.interpolate()["components"].items():
        if component.get("factory") != "bioclin_ner":
            continue
        head = teacher.heads.get(component.get("spans_key") or "ents")
        if head is None:
            continue
        matched = True
        for key in ("scheme", "nested"):
            own = component.get(key, {"scheme": "BILUO", "nested": False}[key])
            if own != head.cfg[key]:
                raise BioclinError(
                    f"[components.{name}] has {key} = {own!r}, its teacher {head.cfg[key]!r}: use "
                    "the teacher's value"
                )
        initialize = settings.setdefault("initialize", {}).setdefault("components", {})
        initialize.setdefault(name, {})["labels"] = list(head.labels)
    if not matched:
        raise BioclinError(
            f"{config}: no bioclin_ner writes a layer of the teacher ({', '.join(teacher.heads)}): "
            "set spans_key to one of these"
        )


def _watch(name: str, n_docs: int, docs: "Iterator[Doc]") -> "Iterator[Doc]":
    """Show a bar with rate and time left while Docs are annotated."""
    from rich.console import Console

    from ...parallel import show_progress

    console = Console(stderr=True, highlight=False)
    with show_progress(console, "documents") as show:
        for number, doc in enumerate(docs, start=1):
            yield doc
            show(number / n_docs, number)
    console.print(f"{n_docs:,} documents of {name} annotated", markup=False)
