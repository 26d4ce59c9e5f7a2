"""`bioclin encoders`: the pretrained encoders that the catalogue knows, and a look into a copy."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ...catalog.encoders import Encoder
    from ...encoders.hub.inspection import Inspection

AS_JSON = Annotated[bool, typer.Option("--json", help="JSON instead of a table")]
MARKS = {"ok": "", "note": "note: ", "differs": "differs: ", "unfit": "cannot be used: "}


def list_encoders(
    lang: Annotated[str, typer.Option(help="Only those that read this language")] = "",
    commercial: Annotated[
        bool, typer.Option("--commercial", help="Only with a licence that allows commercial use")
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
        everything = {name: encoder._asdict() for name, encoder in chosen.items()}
        typer.echo(json.dumps(everything, indent=2, ensure_ascii=False))
        return
    head = ("name", "reads", "architecture", "pieces", "window", "licence")
    _print_table(head, (_row(name, encoder) for name, encoder in chosen.items()))
    typer.echo(
        "*: the one to try first; ?: see its licence. `bioclin encoders show NAME` says more."
    )


list_encoders.__name__ = "list"


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
    name: Annotated[str, typer.Argument(help="Any name it has had")], as_json: AS_JSON = False
) -> None:
    """Say all that is known of an encoder, and what no source confirms."""
    from ...catalog.encoders import find_encoder

    name, encoder = find_encoder(name)
    if as_json:
        content = {"name": name, **encoder._asdict()}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    _print_table((), _describe(name, encoder))
    if encoder.source and not encoder.folder:
        typer.echo(f"Get it: bioclin fetch {name}")
    if encoder.source:
        where = encoder.folder or f"encoders/{name}"
        typer.echo(f"Use it: bioclin train … --paths.encoder {where} --recipe {encoder.recipe}")
    warn(encoder.licence_warning)


def _describe(name: str, encoder: "Encoder") -> Iterator[tuple[str, str]]:
    """YIELDS (tuple[str, str]): Field and value, "(unconfirmed)" where no source confirms it."""
    rows = {
        "names": ", ".join(encoder.names),
        "hub": encoder.hub or "",
        "archive": encoder.archive or "",
        "folder": encoder.folder or "",
        "revision": encoder.revision or ("the newest" if encoder.hub else ""),
        "architecture": encoder.architecture,
        "tokenizer": encoder.tokenizer,
        "cased": "yes" if encoder.cased else "no: case and accents are lost",
        "max_pieces": f"{encoder.max_pieces:,}",
        "vocabulary": "; ".join(f"{n:,}: {who}" for n, who in encoder.vocabulary.items()),
        "layers": str(encoder.layers),
        "width": str(encoder.width),
        "langs": " ".join(encoder.langs),
        "default_for": " ".join(encoder.default_for),
        "licence": encoder.licence or "none stated",
        "gated": "the hub wants a login" if encoder.gated else "",
        "pretraining": encoder.pretraining,
        "paper": encoder.paper,
        "recipe": encoder.recipe,
        "learn_rates": ", ".join(f"{rate:g}" for rate in encoder.learn_rates),
        "notes": encoder.notes,
        "unfit": encoder.unfit,
    }
    yield "name", name
    for field, value in rows.items():
        doubt = field in encoder.unconfirmed
        if value or doubt:
            yield field, f"{value} (unconfirmed)".strip() if doubt else value


def check(
    path: Annotated[Path, typer.Argument(help="Folder of an encoder")],
    name: Annotated[
        str | None, typer.Option(help="Its name in the catalogue, if it is not recognised")
    ] = None,
    as_json: AS_JSON = False,
) -> None:
    """Compare a local copy with the catalogue and say whether Encoder.v1 can read it; exit status 1
    if it cannot, or if its files are not those that were fetched."""
    from ...catalog.encoders import find_encoder
    from ...encoders.hub.download import find_damaged
    from ...encoders.hub.inspection import inspect_encoder

    inspection = inspect_encoder(path, find_encoder(name)[0] if name else None)
    damaged = find_damaged(path)
    usable = inspection.usable and not damaged
    if as_json:
        found = [finding._asdict() for finding in inspection.findings]
        content = {"name": inspection.name, "usable": usable, "damaged": damaged, "findings": found}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        print_inspection(inspection)
        for file in damaged:
            typer.echo(f"{path / file} is not the file that was fetched: fetch it again")
    if not usable:
        raise typer.Exit(1)


def print_inspection(inspection: "Inspection") -> None:
    """Print what was found in a folder."""
    rows = ((found.subject, MARKS[found.level] + found.text) for found in inspection.findings)
    _print_table((), (("encoder", inspection.name or "not recognised: give --name"), *rows))
    typer.echo(
        "spacy-bioclin.Encoder.v1 can read it."
        if inspection.usable
        else "spacy-bioclin.Encoder.v1 cannot read it."
    )


def warn(text: str) -> None:
    """Print a warning on stderr, if there is one."""
    if text:
        typer.secho(f"Licence: {text}", fg=typer.colors.YELLOW, err=True)


COMMANDS: tuple[Callable[..., None], ...] = (list_encoders, show, check)


def _print_table(head: tuple[str, ...], rows: Any) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*(head or ("", "")), box=SIMPLE_HEAD, show_header=bool(head), pad_edge=False)
    for column in table.columns[: len(head) - 1 if head else 1]:
        column.no_wrap = True
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 120)  # for a pipe, a row is a line
    console.print(table)
