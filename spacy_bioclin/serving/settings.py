"""Limits of the service, and what it needs to be installed."""

from importlib.util import find_spec
from typing import NamedTuple

from ..errors import BioclinError

NEEDED = ("fastapi", "uvicorn", "prometheus_client")


class Limits(NamedTuple):
    """What the service takes at most.

    max_bytes (int): Size of the body of a request.
    max_notes (int): Notes in a request.
    max_queue (int): Notes that wait for the pipeline; more are refused with status 429.
    batch_words (int): Words of the notes that the pipeline reads together; 0 for one note at a
        time.
    wait (float): Seconds that the first note of a batch waits for others.
    timeout (float): Seconds after which a request is given up, in the queue or in the pipeline.
    patience (float): Seconds in which the headers and then the body of a request must arrive.
    max_connections (int): Open connections; a new one closes the oldest that has sent nothing.
    workers (int): Processes that have a pipeline, this one included.
    """

    max_bytes: int = 2_000_000
    max_notes: int = 100
    max_queue: int = 1_000
    batch_words: int = 2_000
    wait: float = 0.005
    timeout: float = 120.0
    patience: float = 10.0
    max_connections: int = 20_000
    workers: int = 1

    def check(self) -> "Limits":
        """Check that the limits belong together.

        RAISES (BioclinError): A request of the largest size would never be accepted.
        """
        if self.max_notes > self.max_queue:
            raise BioclinError(
                f"--max-notes {self.max_notes}: want at most the {self.max_queue} of --max-queue, "
                "or a request of so many notes is never accepted"
            )
        return self


def check_installed() -> None:
    """Check that the libraries of the service are installed.

    RAISES (BioclinError): One is not.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise BioclinError(
            f"the service needs {', '.join(missing)}: pip install 'spacy-bioclin[serve]'"
        )
