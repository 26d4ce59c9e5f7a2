"""`bioclin ensemble`: train a pipeline per fold of the notes, and join them."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from spacy.language import Language
    from thinc.api import Config

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}
MEMBERS, MODEL, RESULT = "members", "model", "ensemble.json"


def main(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config of a member, as for bioclin train")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pipelines")],
    folds: Annotated[int, typer.Option("--folds", help="Number of folds, and of members")] = 5,
    with_dev: Annotated[
        bool, typer.Option("--with-dev", help="Divide the notes of dev into the folds, too")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run from its last evaluation")
    ] = False,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
) -> None:
    """Train the pipeline of CONFIG once per fold of its training notes. Each member trains on all
    folds but one, by which its best step is chosen. OUTPUT/model averages their probabilities.
    Settings such as --paths.train corpus/train.spacy are overridden as in `bioclin train`."""
    from spacy.cli._util import show_validation_error

    from ...machine import choose_device
    from ...ner.ensemble import join_pipelines
    from ...outputs import open_folder, write_atomic
    from ...runs import check_new_run, open_run
    from ...training.folds import describe_folds, find_corpora, train_folds
    from ...vocab import save_pipeline
    from .overrides import read_config

    settings, _ = read_config(config, context.args)
    if folds < 2:
        raise BioclinError(f"--folds {folds}: want two or more")
    check_new_run(output, resume=resume)
    choose_device(gpu_id)
    with show_validation_error(config):
        corpora = find_corpora(settings, with_dev=with_dev)
        made_from = describe_folds(settings, n_folds=folds, with_dev=with_dev)
    inputs = [*map(Path, corpora), *_find_inputs(settings)]
    with open_run(output, made_from, inputs=inputs, resume=resume):
        with show_validation_error(config):
            members = train_folds(
                settings,
                output / MEMBERS,
                n_folds=folds,
                with_dev=with_dev,
                use_gpu=gpu_id,
                stdout=sys.stdout,
                stderr=sys.stderr,
                tell=typer.echo,
            )
        nlp = join_pipelines(_load(output / MEMBERS, folds, gpu_id))
        nlp.config["corpora"] = settings["corpora"]
        scores = {} if with_dev else _score(nlp, settings)
        nlp.meta["performance"] = scores
        with open_folder(output / MODEL) as folder:
            save_pipeline(nlp, folder)
        result = {"members": members, "dev": scores}
        write_atomic(output / RESULT, json.dumps(result, indent=2) + "\n")
    main_score = {key: scores[key] for key in sorted(scores) if key.endswith("_f")}
    if main_score:
        typer.echo(f"Scores on dev: {', '.join(f'{k} {v:.4f}' for k, v in main_score.items())}")
    typer.echo(f"The pipeline is in {output / MODEL}")


def _find_inputs(settings: "Config") -> Iterator[Path]:
    """Find what is read beside the notes in the folds: the encoder, and dev."""
    paths = settings.interpolate().get("paths", {})
    for value in paths.values():
        if isinstance(value, str) and value and Path(value).exists():
            yield Path(value)


def _load(folder: Path, n_members: int, gpu_id: int) -> "Iterator[tuple[str, Language]]":
    """Load the members, one at a time."""
    from ...training.loop import BEST
    from ..loading import load_pipeline

    for number in range(n_members):
        path = folder / str(number) / BEST
        yield str(path), load_pipeline(str(path), gpu_id=gpu_id)


def _score(nlp: "Language", settings: "Config") -> dict[str, Any]:
    """Score the ensemble on dev.

    RETURNS (dict[str, Any]): The scores that [training.score_weights] names; none without dev.
    """
    from ...corpora.readers import make_corpus

    filled = settings.interpolate()
    reader = filled["corpora"]["dev"]
    if not reader.get("path"):
        return {}
    read = make_corpus(reader["path"], leave_out=reader.get("leave_out"))
    scores = nlp.evaluate(read(nlp))
    return {key: scores[key] for key in filled["training"]["score_weights"] if key in scores}
