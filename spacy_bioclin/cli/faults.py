"""End a command with one line and an exit status, whatever stops it."""

import errno
import functools
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import typer

from .. import interrupts
from ..notices import DEBUG, describe
from ..text import show_controls


def report_faults(command: Callable[..., None]) -> Callable[..., None]:
    """Let whatever stops a command end with one line on stderr and an exit status.

    It is 1 for an error, 130 after Ctrl-C, 143 after SIGTERM.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        interrupts.start_command()
        forbid_core_dumps()
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort, SystemExit) as end:
            status = getattr(end, "exit_code", getattr(end, "code", 0))
            _raise_if_caught()
            if isinstance(status, int | None):
                raise
            _end(str(status))  # sys.exit("message")
        except KeyboardInterrupt as error:
            number = interrupts.caught() or getattr(error, "number", interrupts.CTRL_C)
            interrupts.say(number)
            raise typer.Exit(interrupts.exit_code(number)) from None
        except BaseException as error:  # panics of libraries in Rust are no Exception
            _raise_if_caught()
            if _is_usage(error):
                raise
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                close_output()
                raise typer.Exit(1) from None
            if os.environ.get(DEBUG):
                traceback.print_exc()
            _end(describe(error))

    return run


def forbid_core_dumps() -> None:
    """Let a crash of a library leave no file with the memory, which holds notes and the key.

    Processes that the command starts inherit it. Without effect on Windows.
    """
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _raise_if_caught() -> None:
    """Go on as interrupted if a signal is the reason, such as for a library that gave up."""
    if number := interrupts.caught():
        interrupts.say(number)
        raise typer.Exit(interrupts.exit_code(number)) from None


def _is_usage(error: BaseException) -> bool:
    """Check whether this is typer's own error about an option, which it shows."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def _end(message: str) -> None:
    with suppress(OSError):
        typer.secho(f"bioclin: {show_controls(message)}", fg=typer.colors.RED, err=True)
    raise typer.Exit(1) from None


def close_output() -> None:
    """Let nothing more be written to a pipe that nobody reads (`| head -1`)."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            with suppress(OSError, ValueError, AttributeError):
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
