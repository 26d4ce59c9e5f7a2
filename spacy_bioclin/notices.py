"""Show warnings, logs and crashes of other libraries without their words, which may quote a note.

`hide_texts` closes every way to stderr that Python has, for the whole process: a library may warn
of a note, log it, or raise an error with it in a thread. The environment variable
BIOCLIN_TRACEBACK=1 shows everything.
"""

import atexit
import logging
import os
import re
import sys
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from string import Formatter
from typing import Any, TextIO, TypeVar

from .errors import BioclinError, BioclinWarning, first_line
from .text import show_controls

# Shows what is kept from an error's line, for it may hold text of notes.
DEBUG = "BIOCLIN_TRACEBACK"
HIDDEN = f"its message is not shown, for it may hold text of a note: {DEBUG}=1 shows it"
# Errors of other libraries about settings, whose messages do not quote notes.
ABOUT_SETTINGS = ("RegistryError", "ConfigValidationError", "ModuleNotFoundError")
# Libraries that warn of tensors and settings, not of what a note says.
ABOUT_TENSORS = ("torch", "numpy", "transformers")
# Libraries that log settings, files and progress.
ABOUT_RUNS = (*ABOUT_TENSORS, "spacy", "thinc", "accelerate", "huggingface_hub", "optuna")
PACKAGE = __name__.partition(".")[0]
CODE = re.compile(r"\[([EW]\d{3,4})\]")
# Fields of spaCy's templates for settings and versions. Its others may be filled from a note.
FIELDS = {"current", "default", "lang", "listener", "method", "model", "model_version", "name"}
FIELDS |= {"opts", "pipe", "segmenter", "spans_key", "supported", "version"}
MAX_FIELD = 200  # characters

R = TypeVar("R")
_COUNTS: Counter[str] = Counter()  # of lines, those that were not shown again too


def hide_texts() -> None:
    """Let this process show no text of a note on stderr, whatever other libraries complain of.

    It is for the processes of a command: the settings of `warnings`, `logging`, `threading` and
    `sys` that it changes belong to the whole process.
    """
    if os.environ.get(DEBUG) or warnings.showwarning is _show_warning:
        return
    warnings.showwarning = _show_warning
    logging.setLogRecordFactory(_make_record)
    logging.raiseExceptions = False  # it prints what could not be formatted
    sys.excepthook = lambda kind, error, trace: report(error)
    threading.excepthook = _end_thread
    sys.unraisablehook = _skip_unraisable
    atexit.register(_say_totals)


def describe(error: BaseException) -> str:
    """Describe an error in one line, without text of a note."""
    if isinstance(error, BioclinError):
        return str(error)
    kind = type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        names = dict.fromkeys(str(name) for name in (error.filename, error.filename2) if name)
        return ": ".join([*names, error.strerror])
    if kind in ABOUT_SETTINGS:
        return first_line(error)
    if isinstance(error, MemoryError) or kind == "OutOfMemoryError":
        return (
            "the memory is not enough; end other programs, use fewer processes or smaller batches, "
            "or give a smaller input"
        )
    if isinstance(error, RecursionError):
        return "an input is nested too deeply to be read; look for the file that is not ordinary"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    why = f"{reason}; " if (reason := _describe_code(str(error))) else ""
    return f"unexpected {kind}{where}; {why}{HIDDEN}, please report it without such text"


def report(error: BaseException) -> None:
    """Write a line about an error to stderr; all of it if that is wanted."""
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    _say(describe(error))


def call_without_text(function: Callable[..., R], *args: Any) -> R:
    """Call a function in a process whose errors are sent to another, without text of a note.

    The message of an error that is not ours stays here, and so does an error that cannot be sent.

    RAISES (Exception): What the function raised, or a `BioclinError` that describes it.
    """
    try:
        return function(*args)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # panics of libraries in Rust are no Exception
        if os.environ.get(DEBUG):
            raise
        cleaned = _clean(error)
    raise cleaned


def _clean(error: BaseException) -> Exception:
    """Make an error without text of a note of an error."""
    if isinstance(error, BioclinError):
        error.__cause__ = error.__context__ = None
        return error
    if isinstance(error, OSError) and error.strerror:
        return OSError(error.errno, error.strerror, error.filename, None, error.filename2)
    if isinstance(error, MemoryError):
        return MemoryError()
    return BioclinError(describe(error))


def _describe_code(message: str) -> str:
    """Describe a warning or error of spaCy by its code: its template, with settings alone filled.

    RETURNS (str): One line; "" if the message has no known code.
    """
    found = CODE.match(message)
    known = sys.modules.get("spacy.errors")
    if found is None or known is None:
        return ""
    kind = known.Warnings if found[1].startswith("W") else known.Errors
    template = getattr(kind, found[1], "")
    parts = list(Formatter().parse(template))
    pattern = "".join(
        re.escape(text) + ("" if field is None else "(.*?)") for text, field, _, _ in parts
    )
    # Without backtracking over a message as long as a note.
    match = re.fullmatch(pattern, message, re.DOTALL) if len(message) < 10_000 else None
    values = list(match.groups()) if match else []
    line = ""
    for text, field, _, _ in parts:
        line += text
        if field is not None:
            value = values.pop(0) if values else ""
            line += value if value and field in FIELDS and len(value) <= MAX_FIELD else "…"
    return " ".join(line.split())


def _is_of(filename: str, libraries: tuple[str, ...]) -> bool:
    """Check whether a source file belongs to one of the libraries."""
    modules = (sys.modules.get(name) for name in libraries)
    roots = tuple(str(Path(m.__file__).parent) + os.sep for m in modules if m and m.__file__)
    return filename.startswith(roots)


def _say(line: str) -> None:
    """Write a line to stderr, and repeat it only at the 10th time, the 100th and so on."""
    line = " ".join(show_controls(line).split())
    _COUNTS[line] += 1
    n = _COUNTS[line]
    if n == 1:
        _write(line)
    elif n == 10 ** (len(str(n)) - 1):
        _write(f"{line} ({n:,} times so far)")


def _say_totals() -> None:
    """Write how often there was what was not shown each time."""
    for line, n in _COUNTS.items():
        if n != 10 ** (len(str(n)) - 1):
            _write(f"{line} ({n:,} times in all)")
    _COUNTS.clear()


def _write(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"bioclin: {line}\n")
        sys.stderr.flush()


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, BioclinWarning) or _is_of(filename, ABOUT_TENSORS):
        said = str(message)
    else:
        said = _describe_code(str(message)) or (
            f"{category.__name__} ({Path(filename).name}, line {lineno}); {HIDDEN}"
        )
    _say(f"warning: {said}")


def _make_record(
    name: str,
    level: int,
    pathname: str,
    lineno: int,
    message: Any,
    args: Any,
    exc_info: Any,
    *more: Any,
    **others: Any,
) -> logging.LogRecord:
    """Make a log record without text of a note, for whichever handler."""
    if not _is_of(pathname, (PACKAGE, *ABOUT_RUNS)):
        where = f"{Path(pathname).name}, line {lineno}" if pathname else "of another process"
        message, args = f"log record of {name} ({where}); {HIDDEN}", ()
    if isinstance(message, BaseException):
        message = describe(message)
    if isinstance(args, tuple):
        args = tuple(describe(arg) if isinstance(arg, BaseException) else arg for arg in args)
    if isinstance(exc_info, tuple) and exc_info[1] is not None:
        described = describe(exc_info[1]).replace("%", "%%" if args else "%")
        message, exc_info = f"{message}: {described}", None
    return logging.LogRecord(
        name, level, pathname, lineno, message, args, exc_info, *more, **others
    )


def _end_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not issubclass(ended.exc_type, SystemExit):
        _say(f"in a thread: {describe(ended.exc_value)}")


def _skip_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    if unraisable.exc_value is not None:
        _say(f"ignored: {describe(unraisable.exc_value)}")
