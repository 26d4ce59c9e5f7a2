"""The `bioclin` command: one thin file per subcommand."""

import importlib
import sys

import typer

app = typer.Typer(
    name="bioclin",
    help="Clinical text in Spanish and English: convert, train, evaluate, package.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)

# command → module with a function `main`; imported here so that `--help` is complete.
COMMANDS = ("convert", "init_encoder", "evaluate", "annotate", "package", "check_package")

for _name in COMMANDS:
    _module = importlib.import_module(f".{_name}", __name__)
    app.command(_name.replace("_", "-"))(_module.main)


def fail(message: str) -> typer.Exit:
    """Print a user's mistake on stderr and return the exit to raise: `raise fail("…")`."""
    typer.secho(f"bioclin: {message}", fg=typer.colors.RED, err=True)
    return typer.Exit(1)


__all__ = ["app", "fail"]

if __name__ == "__main__":
    sys.exit(app())
