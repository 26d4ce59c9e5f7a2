"""Options and messages that the commands for training an encoder share."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ...errors import BioclinError
from ...pretraining.settings import TrainerSettings
from ...runs import is_first_process

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for checkpoints and encoder")]
Resume = Annotated[bool, typer.Option(help="Resume from the last checkpoint")]
Shares = Annotated[
    list[str] | None,
    typer.Option(
        help="LANG=SHARE of the text, once per language, or SOURCE.LANG=SHARE, once per source. "
        "Default: equal shares of the languages."
    ),
]
Recipe = Annotated[
    str | None, typer.Option(help="Pretraining recipe of a paper; see `bioclin recipes list`")
]
# Values of a command's options -> settings, for the options that are not on the command line.
Base = Callable[[dict[str, Any]], Mapping[str, Any]]


def given_options(context: typer.Context) -> set[str]:
    """Find the options of a command that are not at their default.

    context (typer.Context): The running command.
    RETURNS (set[str]): Their names, as of the command's arguments.
    """
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name != "DEFAULT"}


def add_options(
    model: type[TrainerSettings], base: Base | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each documented field of its settings.

    model (type[TrainerSettings]): What the command takes as its argument `settings`.
    base (Callable | None): Gets the values of all options, and returns settings for those that are
        not on the command line.
    RETURNS (Callable): A decorator.
    """
    hints = get_type_hints(model, include_extras=True)
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=Annotated[
                hint.__origin__, typer.Option(help=hint.__metadata__[0].documentation)
            ],
        )
        for field in fields(model)
        if hasattr(hint := hints[field.name], "__metadata__")
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(context: typer.Context, **values: Any) -> None:
            given = given_options(context)
            if {"batch_pieces", "batch_sequences"} <= given:
                raise BioclinError("--batch-pieces and --batch-sequences: give only one of them")
            chosen = {option.name: values[option.name] for option in options}
            from_base = dict(base(values)) if base else {}
            if "batch_pieces" in given:
                from_base.pop("batch_sequences", None)
            chosen |= {name: one for name, one in from_base.items() if name not in given}
            for option in options:
                values.pop(option.name)
            settings = model(**chosen)
            command(**values, settings=settings)

        own = inspect.signature(command).parameters.values()
        context = inspect.Parameter(
            "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        )
        parameters = [context, *(each for each in own if each.name != "settings"), *options]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def parse_shares(options: Iterable[str] | None) -> dict[str, float]:
    """Parse options such as "es=0.6".

    RETURNS (dict[str, float]): Language or part -> share.
    RAISES (BioclinError): An option has another form.
    """
    shares = {}
    for option in options or ():
        lang, _, number = option.partition("=")
        try:
            shares[lang] = float(number)
        except ValueError:
            raise BioclinError(f"--share is {option!r}, want LANG=SHARE such as es=0.6") from None
    return shares


def has_result(record: dict[str, Any]) -> bool:
    """Check whether there is a result to print here, and say so if the training was stopped."""
    if is_first_process() and not record["finished"]:
        seconds = record["settings"]["max_seconds"]
        typer.echo(f"stopped after {seconds:g} s: resume with --resume")
    return is_first_process() and record["finished"]
