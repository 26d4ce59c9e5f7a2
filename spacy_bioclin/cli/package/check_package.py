"""`bioclin check-package`: check that a wheel works where it is installed."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ...errors import BioclinError
from ..tables import print_table


def main(
    wheel: Annotated[Path, typer.Argument(help="Wheel to check")],
    against: Annotated[
        Path | None, typer.Option(help="Folder of a pipeline that must give the same results")
    ] = None,
    env: Annotated[Path | None, typer.Option(help="Folder to keep the environment in")] = None,
    timeout: Annotated[float, typer.Option(help="Time limit of one check, in seconds")] = 120.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace ENV")] = False,
) -> None:
    """Install a wheel in a new environment without network, and check that it gives the same
    results one by one, in batches, in two processes, and after every way of storing it."""
    from rich.console import Console
    from rich.text import Text

    from ...outputs import check_output, lock_output
    from ...packaging.check import check_wheel

    if env is not None:
        inputs = [path for path in (wheel, against) if path is not None]
        check_output(env, inputs=inputs, overwrite=overwrite, marker="pyvenv.cfg")

    results = []
    locked = nullcontext() if env is None else lock_output(env)
    with locked, Console(stderr=True).status("checking …") as status:
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
