"""The `bioclin` command: one thin file per subcommand."""

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

import typer

from ..errors import BioclinError

app = typer.Typer(
    name="bioclin",
    help="Clinical text in Spanish and English: train, evaluate, package, de-identify, pretrain.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # locals hold note text
)

# Each is a module of this folder with a function `main`. Heavy imports belong inside `main`.
COMMANDS = (
    *("convert", "train", "sweep", "evaluate", "annotate", "package", "check_package"),
    *(
        "clean_text",
        "learn_vocabulary",
        "init_encoder",
        "pretrain",
        "distill",
        "distill_ner",
        "info",
    ),
    *("deid", "deid_key", "calibrate", "augment_phi"),
    *("embed_kb", "align_encoder", "train_linker"),
    "import_hf",
    "fetch",
)
# Each is a module of this folder with several commands.
GROUPS = ("kb", "encoders", "recipes")


def without_traceback(command: Callable[..., None]) -> Callable[..., None]:
    """A user's mistake ends with one message on stderr and exit status 1."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except BioclinError as error:
            typer.secho(f"bioclin: {error}", fg=typer.colors.RED, err=True)
            raise typer.Exit(1) from None

    return run


for _name in COMMANDS:
    _module = importlib.import_module(f".{_name}", __name__)
    _command = app.command(
        _name.replace("_", "-"), context_settings=getattr(_module, "CONTEXT", None)
    )
    _command(without_traceback(_module.main))
for _name in GROUPS:
    _module = importlib.import_module(f".{_name}", __name__)
    _group = typer.Typer(help=(_module.__doc__ or "").partition(": ")[2], no_args_is_help=True)
    for _main in _module.COMMANDS:
        _group.command(_main.__name__)(without_traceback(_main))
    app.add_typer(_group, name=_name)


if __name__ == "__main__":
    sys.exit(app())
