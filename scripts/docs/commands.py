"""The reference of the command line, made from the commands."""

from collections.abc import Iterator
from typing import Any

import typer

from spacy_bioclin.cli import app

from .text import write_code, write_table

HEAD = """# Commands

What `bioclin COMMAND --help` prints, in one page. Every command writes its outputs whole or not at
all, and replaces an output only with `--overwrite`. The exit code is 0 if all went well, 1 after an
error, and 2 for options that cannot be understood.
"""
GROUPS = {
    "data": "Corpora and encoders",
    "train": "Train and evaluate",
    "deid": "De-identify",
    "link": "Link",
    "pretrain": "Pretrain and distil",
    "package": "Configs and packages",
    "run": "Annotate and serve",
}


def write_page() -> str:
    """Write the page: a section for each group of commands, a table of options for each command."""
    command: Any = typer.main.get_command(app)
    sections: dict[str, list[str]] = {}
    for name, one in list_commands(command, "bioclin"):
        room = one.callback.__wrapped__.__module__.split(".")[2]
        sections.setdefault(room, []).append(write_command(name, one))
    parts = [HEAD]
    for room, texts in sections.items():
        parts += [f"## {GROUPS.get(room, room.capitalize())}\n", *texts]
    return "\n".join(parts)


def list_commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """List all commands, those inside of groups too, with their full names."""
    for part, inner in getattr(command, "commands", {}).items():
        if hasattr(inner, "commands"):
            yield from list_commands(inner, f"{name} {part}")
        else:
            yield f"{name} {part}", inner


def write_command(name: str, command: Any) -> str:
    """Write the section of a command."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = " ".join([name, *map(name_argument, arguments)])
    rows = [
        (write_code(name_argument(one)), "", getattr(one, "help", "") or "") for one in arguments
    ]
    rows += [
        (
            ", ".join(map(write_code, [*one.opts, *one.secondary_opts])),
            write_default(one),
            one.help or "",
        )
        for one in options
        if not one.hidden
    ]
    table = write_table(("option", "default", "meaning"), rows) if rows else ""
    about = (command.help or "").strip()
    return f"### {name}\n\n{about}\n\n```console\n$ {usage}\n```\n\n{table}"


def name_argument(argument: Any) -> str:
    """Write the name of an argument as `--help` does, with dots if there may be several."""
    name = str(argument.metavar or argument.name.upper()).removesuffix("...")
    return name + ("..." if argument.nargs == -1 else "")


def write_default(param: Any) -> str:
    """Write the default of an option; "required" if it has to be given."""
    default = param.default() if callable(param.default) else param.default
    if param.required:
        return "required"
    if default is None or default is False or default == () or default == []:
        return ""
    return write_code(str(default))
