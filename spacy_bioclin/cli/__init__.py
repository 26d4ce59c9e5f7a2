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
    "package.package",
    "package.check_package",
    "package.import_hf",
    "run.annotate",
    "run.info",
)
# One module with several commands for each group.
GROUPS = ("link.kb", "data.encoders", "train.recipes")


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
