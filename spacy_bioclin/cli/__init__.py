"""The `bioclin` command: one thin file per subcommand."""

import importlib
import sys
from typing import Annotated, Any

import typer

from ..about import __version__
from ..interrupts import watched
from ..notices import hide_texts
from .faults import report_faults

# Options that had another name up to 0.1, without their dashes.
OLD_OPTIONS = {"out": "output", "licence": "license", "accept-licence": "accept-license"}


class _App(typer.Typer):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line of this process."""
        hide_texts()
        with watched():
            return super().__call__(*args, **kwargs)


app = _App(
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
    "data.convert_table",
    "data.export",
    "data.suggest",
    "data.prepare",
    "data.tasks",
    "data.fetch",
    "data.overlap",
    "data.merge",
    "train.train",
    "train.sweep",
    "train.evaluate",
    "train.distill_ner",
    "train.ensemble",
    "deid.deid",
    "deid.deid_key",
    "deid.calibrate",
    "deid.augment_phi",
    "deid.invent_notes",
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
    "run.run",
    "run.info",
    "run.serve",
)
# One module with several commands for each group.
GROUPS = ("link.kb", "data.encoders", "train.recipes")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spacy-bioclin {__version__}")
        raise typer.Exit


@app.callback(help=app.info.help)
def start(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version"),
    ] = False,
) -> None:
    """Run before every command."""


for _path in COMMANDS:
    _module = importlib.import_module(f".{_path}", __name__)
    _name = _path.rpartition(".")[2].replace("_", "-")
    _command = app.command(_name, context_settings=getattr(_module, "CONTEXT", None))
    _command(report_faults(_module.main))
for _path in GROUPS:
    _module = importlib.import_module(f".{_path}", __name__)
    _group = typer.Typer(help=(_module.__doc__ or "").partition(": ")[2], no_args_is_help=True)
    for _main in _module.COMMANDS:
        _group.command(_main.__name__)(report_faults(_main))
    app.add_typer(_group, name=_path.rpartition(".")[2])


if __name__ == "__main__":
    sys.exit(app())
