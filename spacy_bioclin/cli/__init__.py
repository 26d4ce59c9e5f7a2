"""The `bioclin` command: one thin file per subcommand."""

import errno
import functools
import importlib
import signal
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..about import __version__
from ..errors import BioclinError

# Options that had another name up to 0.1, without their dashes.
OLD_OPTIONS = {"out": "output", "licence": "license", "accept-licence": "accept-license"}

app = typer.Typer(
    name="bioclin",
    help="Clinical text in Spanish and English: train, evaluate, package, de-identify, pretrain.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # locals hold note text
    context_settings={"token_normalize_func": lambda name: OLD_OPTIONS.get(name, name)},
)

# One module with a function `main` for each command. Heavy imports belong inside `main`.
COMMANDS = (
    "data.convert",
    "data.fetch",
    "train.train",
    "train.sweep",
    "train.evaluate",
    "train.distill_ner",
    "deid.deid",
    "deid.deid_key",
    "deid.calibrate",
    "deid.augment_phi",
    "link.embed_kb",
    "link.align_encoder",
    "link.train_linker",
    "pretrain.clean_text",
    "pretrain.learn_vocabulary",
    "pretrain.init_encoder",
    "pretrain.pretrain",
    "pretrain.distill",
    "package.init_config",
    "package.package",
    "package.check_package",
    "package.import_hf",
    "run.annotate",
    "run.info",
)
# One module with several commands for each group.
GROUPS = ("link.kb", "data.encoders", "train.recipes")


def without_traceback(command: Callable[..., None]) -> Callable[..., None]:
    """Let a user's mistake, or a disk's, end with one message on stderr and exit status 1."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except BioclinError as error:
            typer.secho(f"bioclin: {error}", fg=typer.colors.RED, err=True)
            raise typer.Exit(1) from None
        except OSError as error:
            if error.errno in (None, errno.EPIPE):
                raise
            said = ": ".join(filter(None, [str(error.filename or ""), error.strerror]))
            typer.secho(f"bioclin: {said}", fg=typer.colors.RED, err=True)
            raise typer.Exit(1) from None

    return run


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spacy-bioclin {__version__}")
        raise typer.Exit


def _end(signal_number: int, frame: Any) -> None:
    raise SystemExit(128 + signal_number)  # so that what is half written is removed


@app.callback(help=app.info.help)
def start(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version"),
    ] = False,
) -> None:
    """Run before every command."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)


for _path in COMMANDS:
    _module = importlib.import_module(f".{_path}", __name__)
    _name = _path.rpartition(".")[2].replace("_", "-")
    _command = app.command(_name, context_settings=getattr(_module, "CONTEXT", None))
    _command(without_traceback(_module.main))
for _path in GROUPS:
    _module = importlib.import_module(f".{_path}", __name__)
    _group = typer.Typer(help=(_module.__doc__ or "").partition(": ")[2], no_args_is_help=True)
    for _main in _module.COMMANDS:
        _group.command(_main.__name__)(without_traceback(_main))
    app.add_typer(_group, name=_path.rpartition(".")[2])


if __name__ == "__main__":
    sys.exit(app())
