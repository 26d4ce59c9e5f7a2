"""Structured logs: one JSON object a line, without text of a note."""

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, TextIO

LIBRARIES = ("uvicorn.error", "asyncio")


class Log:
    """Write events as JSON lines.

    stream (TextIO | None): Where to; None for stderr.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self.lock = Lock()

    def write(self, event: str, **fields: Any) -> None:
        """Write an event. Fields that are None are left out."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        row = {"time": now, "event": event, **fields}
        line = json.dumps({name: value for name, value in row.items() if value is not None})
        with self.lock, suppress(OSError, ValueError):  # whoever reads it may have gone
            stream = self.stream or sys.stderr
            stream.write(line + "\n")
            stream.flush()

    def take_over(self) -> None:
        """Write the warnings and errors of the libraries of the service, but not their words."""
        for name in LIBRARIES:
            other = logging.getLogger(name)
            other.handlers = [_Handler(self)]
            other.propagate = False
            other.setLevel(logging.WARNING)


class _Handler(logging.Handler):
    """Write where a record comes from and the type of its error: its message may quote a note."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.log.write(
            "library",
            level=record.levelname.lower(),
            name=record.name,
            where=f"{Path(record.pathname).name}, line {record.lineno}",
            error=type(error).__name__ if error else None,
        )
