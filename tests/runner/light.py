"""Work for processes that are started for a test, without spaCy, so that they start at once; and a
worker that is no process."""

import os
import signal
from collections.abc import Callable
from typing import Any

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.parallel import WorkerDied
from spacy_bioclin.runner.parts import Part
from spacy_bioclin.runner.records import encode_lines
from spacy_bioclin.runner.work import Done

MORTAL = "mortal"  # a note with this word ends the process that works on it


def upper(part: Part) -> Done:
    """Write the texts of a part in capital letters."""
    texts = [record.row["text"] for record in part.records]
    if MORTAL in texts:
        os.kill(os.getpid(), signal.SIGKILL)
    rows = [{**record.row, "text": record.row["text"].upper()} for record in part.records]
    refused = [{"place": record.place, "reason": "died"} for record in part.deadly]
    return Done(encode_lines(rows), {"written": len(rows), "of": {"all": len(rows)}}, refused)


def start() -> Callable[[Part], Done]:
    """Start the work."""
    return upper


def start_and_fail() -> Callable[[Part], Done]:
    """Fail as a pipeline that cannot be loaded does."""
    raise BioclinError("no such pipeline")


def start_and_die() -> Callable[[Part], Done]:
    """Start work that ends its process, whatever the part."""
    return lambda part: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[return-value]


class Inside:
    """A worker in this process, which dies of the notes that would end a process of its own."""

    def __class_getitem__(cls, kinds: Any) -> type["Inside"]:
        return cls

    def __init__(self, start: Callable[[], Callable[[Part], Done]], *, one_thread: bool) -> None:
        self.make_part = start()

    def work(self, part: Part) -> Done:
        """Make a part."""
        if any(MORTAL in record.row["text"] for record in part.records):
            raise WorkerDied
        return self.make_part(part)

    def close(self) -> None:
        """End: there is nothing to end."""
