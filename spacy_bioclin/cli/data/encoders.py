"""`bioclin encoders`: List known encoders and fine-tuned checkpoints; check or export one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import BioclinError
from ..language import shorten_language
from ..tables import AS_JSON, print_json, print_table

if TYPE_CHECKING:
    from ...catalog.checkpoints import Checkpoint
    from ...catalog.encoders import Encoder
    from ...encoders.hub.inspection import Inspection

MARKS = {"ok": "", "note": "note: ", "differs": "differs: ", "unfit": "cannot be used: "}


def list_encoders(
    lang: Annotated[
        str, typer.Option(callback=shorten_language, help="Show only encoders for this language")
    ] = "",
    commercial: Annotated[
        bool, typer.Option("--commercial", help="Show only those that allow commercial use")
    ] = False,
    as_json: AS_JSON = False,
) -> None:
    """List the encoders; * marks the one to try first for a language."""
    from ...catalog.encoders import load_encoders

    chosen = {
        name: encoder
        for name, encoder in load_encoders().items()
        if (not lang or lang in encoder.langs or "mul" in encoder.langs)
        and not (commercial and encoder.licence_warning)
    }
    if as_json:
        print_json({name: encoder.model_dump() for name, encoder in chosen.items()})
        return
    rows = [_row(name, encoder) for name, encoder in chosen.items()]
    print_table(rows, ("name", "reads", "architecture", "pieces", "window", "licence"))
    typer.echo("*: try this one first; ?: check its licence with `bioclin encoders show NAME`.")
    typer.echo("Fine-tuned checkpoints: bioclin encoders checkpoints")


list_encoders.__name__ = "list"


def checkpoints(
    lang: Annotated[
        str, typer.Option(callback=shorten_language, help="Show only checkpoints for this language")
    ] = "",
    as_json: AS_JSON = False,
) -> None:
    """List fine-tuned checkpoints that `bioclin fetch` downloads and `bioclin import-hf` reads."""
    from ...catalog.checkpoints import load_checkpoints

    chosen = {
        name: one for name, one in load_checkpoints().items() if not lang or lang in one.langs
    }
    if as_json:
        print_json({name: one.model_dump() for name, one in chosen.items()})
        return
    rows = [
        (name, " ".join(one.langs), one.finds, one.licence, " ".join(one.labels) or "see the card")
        for name, one in chosen.items()
    ]
    print_table(rows, ("name", "reads", "finds", "licence", "labels"))
    typer.echo("Get one: bioclin fetch NAME, then bioclin import-hf checkpoints/NAME -o PIPELINE")


def _row(name: str, encoder: "Encoder") -> tuple[str, ...]:
    kind = encoder.tokenizer if encoder.cased else f"{encoder.tokenizer}, uncased"
    licence = encoder.licence or "none stated"
    if encoder.licence_warning:
        licence += ", non-commercial" if encoder.non_commercial else " ?"
    return (
        f"{name}{' *' if encoder.default_for else ''}",
        " ".join(encoder.langs),
        f"{encoder.architecture} {encoder.layers}x{encoder.width}",
        kind,
        f"{encoder.max_pieces:,}",
        licence,
    )


def show(
    name: Annotated[str, typer.Argument(help="Name in the catalogue, on the hub, in a paper")],
    as_json: AS_JSON = False,
) -> None:
    """Show everything known about an encoder, and which facts no source confirms."""
    from ...catalog.checkpoints import load_checkpoints, match_checkpoint
    from ...catalog.encoders import find_encoder

    if key := match_checkpoint(name):
        _show_checkpoint(key, load_checkpoints()[key], as_json)
        return
    name, encoder = find_encoder(name)
    if as_json:
        print_json({"name": name, **encoder.model_dump()})
        return
    print_table(_describe(name, encoder))
    if encoder.source and not encoder.folder:
        typer.echo(f"Get it: bioclin fetch {name}")
    if encoder.source:
        where = encoder.folder or f"encoders/{name}"
        typer.echo(f"Use it: bioclin train … --paths.encoder {where} --recipe {encoder.recipe}")
    warn_of_licence(encoder.licence_warning)


def _show_checkpoint(name: str, checkpoint: "Checkpoint", as_json: bool) -> None:
    values = {"name": name, **checkpoint.model_dump()}
    if as_json:
        print_json(values)
        return
    del values["unconfirmed"]
    rows = []
    for field, value in values.items():
        shown = ", ".join(value) if isinstance(value, list) else str(value or "")
        doubt = " (unconfirmed)" if field in checkpoint.unconfirmed else ""
        if shown or doubt:
            rows.append((field, f"{shown}{doubt}".strip()))
    print_table(rows)
    typer.echo(f"Get it: bioclin fetch {name}")
    typer.echo(
        f"Import it: bioclin import-hf checkpoints/{name} -o PIPELINE {checkpoint.import_options}"
    )
    warn_of_licence(checkpoint.to_encoder().licence_warning)


def _describe(name: str, encoder: "Encoder") -> Iterator[tuple[str, str]]:
    """Describe an encoder as names and values, "(unconfirmed)" where no source confirms it."""
    values: dict[str, Any] = {
        **encoder.model_dump(exclude={"non_commercial", "unconfirmed"}),
        "revision": encoder.revision or ("the newest" if encoder.hub else ""),
        "cased": "yes" if encoder.cased else "no: case and accents are lost",
        "vocabulary": "; ".join(f"{n:,}: {source}" for n, source in encoder.vocabulary.items()),
        "licence": encoder.licence or "none stated",
        "gated": "the hub requires a login" if encoder.gated else "",
        "learn_rates": [f"{rate:g}" for rate in encoder.learn_rates],
    }
    yield "name", name
    for field, value in values.items():
        if isinstance(value, int):
            value = f"{value:,}"
        shown = ", ".join(value) if isinstance(value, list) else value or ""
        doubtful = field in encoder.unconfirmed
        if shown or doubtful:
            yield field, f"{shown} (unconfirmed)".strip() if doubtful else shown


def check(
    path: Annotated[Path, typer.Argument(help="Folder of an encoder")],
    name: Annotated[
        str | None, typer.Option(help="Name in the catalogue, if the copy is not recognised")
    ] = None,
    as_json: AS_JSON = False,
) -> None:
    """Compare a local copy with the catalogue and check that Encoder.v1 can read it. The exit
    status is 1 if it cannot, or if a file differs from the one that was fetched."""
    from ...catalog.encoders import find_encoder
    from ...encoders.hub.download import find_damaged
    from ...encoders.hub.inspection import inspect_encoder

    inspection = inspect_encoder(path, find_encoder(name)[0] if name else None)
    damaged = find_damaged(path)
    usable = inspection.usable and not damaged
    if as_json:
        found = [finding._asdict() for finding in inspection.findings]
        print_json(
            {"name": inspection.name, "usable": usable, "damaged": damaged, "findings": found}
        )
    else:
        print_inspection(inspection)
        for file in damaged:
            typer.echo(f"{path / file} is not the file that was fetched: fetch it again")
    if not usable:
        raise typer.Exit(1)


def print_inspection(inspection: "Inspection") -> None:
    """Print the findings about a local copy of an encoder."""
    rows = [(found.subject, MARKS[found.level] + found.text) for found in inspection.findings]
    print_table([("encoder", inspection.name or "not recognised: give --name"), *rows])
    typer.echo(
        "spacy-bioclin.Encoder.v1 can read it."
        if inspection.usable
        else "spacy-bioclin.Encoder.v1 cannot read it."
    )


def export(
    pipeline: Annotated[str, typer.Argument(help="Folder or package name of the pipeline")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the encoder")],
    component: Annotated[
        str | None, typer.Option(help="Its component, if several have an encoder")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Write the encoder of a trained pipeline as files of the transformers library, to train other
    pipelines with."""
    from ...encoders.hub.export import export_encoder
    from ...outputs import Output
    from ..loading import find_encoders, list_pipeline, load_pipeline

    inputs = list_pipeline(pipeline)
    out = Output(output, inputs=inputs, overwrite=overwrite, marker="config.json")
    encoders = find_encoders(load_pipeline(pipeline))
    shown = ", ".join(encoders) or "none"
    if component is None and len(encoders) != 1:
        raise BioclinError(f"{pipeline}: components with an encoder: {shown}; give --component")
    name = component or next(iter(encoders))
    if name not in encoders:
        raise BioclinError(f"--component {name}: has no encoder; those that have one: {shown}")
    if (number := len(encoders[name])) > 1:
        raise BioclinError(
            f"{pipeline}: {name} has {number} encoders, of an ensemble; export that of a member"
        )
    with out.open_folder() as folder:
        export_encoder(encoders[name][0], folder)
    typer.echo(f"Use it: bioclin train … --paths.encoder {output}")


def warn_of_licence(text: str) -> None:
    """Print a warning about a licence on stderr, if there is one."""
    if text:
        typer.secho(f"Licence: {text}", fg=typer.colors.YELLOW, err=True)


COMMANDS: tuple[Callable[..., None], ...] = (list_encoders, checkpoints, show, check, export)
