"""`bioclin init-config`: copy a config that is shipped with the package."""

from pathlib import Path
from typing import Annotated

import typer

from ...errors import BioclinError


def main(
    name: Annotated[
        str | None, typer.Argument(help="Name of a config; without it, the configs are listed")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Config file to write, or - to print it")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Write a commented training config, or list the configs that there are."""
    from ...catalog.configs import describe_config, find_configs, write_config
    from ...outputs import Output
    from ..tables import print_table

    if name is None:
        rows = ([name, describe_config(path)] for name, path in find_configs().items())
        print_table(rows, ("config", "for"))
        return
    if output is None:
        raise BioclinError(f"give the file to write, such as -o {name}.cfg, or -o - to print it")
    if str(output) == "-":
        typer.echo(write_config(name, f"{name}.cfg"), nl=False)
        return
    text = write_config(name, str(output))
    Output(output, inputs=[find_configs()[name]], overwrite=overwrite).write(text)
    typer.echo(f"Written: {output}", err=True)
