"""`bioclin check-package`: does a wheel work where it is installed?"""

from pathlib import Path
from typing import Annotated

import typer

from ...errors import BioclinError
from ..tables import print_table


def main(
    wheel: Annotated[Path, typer.Argument(help="The wheel")],
    against: Annotated[
        Path | None, typer.Option(help="Folder of a pipeline that has to give the same")
    ] = None,
    env: Annotated[Path | None, typer.Option(help="Keep the environment in this folder")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for one check")] = 120.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace ENV")] = False,
) -> None:
    """Install a wheel in a new environment without network, load it there, and see that it gives
    the same one by one, in batches, in two processes, and after every way of storing it."""
    from rich.console import Console
    from rich.text import Text

    from ...files import check_output
    from ...packaging.check import check_wheel

    if env is not None:
        inputs = [path for path in (wheel, against) if path is not None]
        check_output(env, inputs=inputs, overwrite=overwrite, marker="pyvenv.cfg")

    results = []
    with Console(stderr=True).status("checking …") as status:
        for check in check_wheel(wheel, against=against, env=env, timeout=timeout):
            results.append(check)
            status.update(f"{check.name}: done, next …")
    outcomes = {True: Text("passed", style="green"), False: Text("failed", style="red")}
    rows: list[list[str | Text]] = [
        [check.name, outcomes[check.passed], f"{check.seconds:.1f}", check.note]
        for check in results
    ]
    print_table(rows, ("Check", "Result", "Seconds", "Note"), right=("Seconds",))
    failed = [check for check in results if not check.passed]
    if failed:
        raise BioclinError(f"{wheel}: the check {failed[0].name!r} failed: {failed[0].note}")
