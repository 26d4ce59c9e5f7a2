"""The one line that tells the user of an interrupted command what is kept, and how to go on."""

import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

SIGNALS = {
    getattr(signal, name): how
    for name, how in (
        ("SIGINT", "interrupted (Ctrl-C)"),
        ("SIGTERM", "ended by SIGTERM"),
        ("SIGHUP", "ended because its terminal closed (SIGHUP)"),
    )
    if hasattr(signal, name)
}


class _Message:
    """What the line will say."""

    said = False
    finished: ClassVar[list[Path]] = []
    kept: Callable[[], str] | None = None


def start_command() -> None:
    """Forget what an earlier command of this process has said and written."""
    _Message.said, _Message.kept, _Message.finished = False, None, []


def tell(kept: Callable[[], str]) -> None:
    """Set what a user is told about the work done so far, if the command is interrupted.

    kept (Callable): Called after cleaning up. Returns what is kept and how to go on, or "" if
        nothing is.
    """
    _Message.kept = kept


def note_output(path: Path) -> None:
    """Note that an output is whole: an interruption after it says so."""
    _Message.finished.append(path)


def has_said() -> bool:
    """Check whether the line was written."""
    return _Message.said


def say(number: int) -> None:
    """Write, once, the line about a signal to stderr."""
    if _Message.said:
        return
    _Message.said = True
    with suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[2K\x1b[?25h")  # a progress bar has hidden the cursor
        elif _has_open_bar():
            sys.stderr.write("\n")
        sys.stderr.write(f"bioclin: {SIGNALS.get(number, 'interrupted')}: {_describe()}\n")
        sys.stderr.flush()


def _has_open_bar() -> bool:
    """Check whether a bar of tqdm, which transformers shows, has left its line open."""
    tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)
    return bool(getattr(tqdm, "_instances", None))


def _describe() -> str:
    kept = ""
    if _Message.kept is not None:
        with suppress(Exception):
            kept = _Message.kept()
    if not kept and _Message.finished:
        names = ", ".join(map(str, _Message.finished))
        kept = f"{names} is written and whole, the rest is not; run the same command again"
    return kept or "nothing was written; run the same command again"
