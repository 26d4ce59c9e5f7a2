"""Counters of the service, in the format of Prometheus."""

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Count requests, notes and batches.

    count_waiting (Callable): Counts the notes in the queue.
    count_connections (Callable): Counts the open connections.
    """

    def __init__(
        self, count_waiting: Callable[[], int], count_connections: Callable[[], int]
    ) -> None:
        own = self.registry = CollectorRegistry()
        ProcessCollector(registry=own)
        self.requests = Counter(
            "bioclin_requests", "Requests that were answered", ["path", "status"], registry=own
        )
        self.seconds = Histogram(
            "bioclin_request_seconds",
            "Time from the headers of a request to the end of its answer",
            ["path"],
            buckets=SECONDS,
            registry=own,
        )
        self.notes = Counter("bioclin_notes", "Notes, by outcome", ["outcome"], registry=own)
        self.words = Counter("bioclin_words", "Words that the pipeline has read", registry=own)
        self.batches = Histogram(
            "bioclin_batch_notes", "Notes of a batch", buckets=SIZES, registry=own
        )
        self.refused = Counter(
            "bioclin_refused_connections", "Connections closed, by reason", ["reason"], registry=own
        )
        waiting = Gauge("bioclin_queue_notes", "Notes that wait for the pipeline", registry=own)
        waiting.set_function(count_waiting)
        connections = Gauge("bioclin_connections", "Open connections", registry=own)
        connections.set_function(count_connections)

    def add_batch(self, n_notes: int, n_words: int) -> None:
        """Count a batch."""
        self.batches.observe(n_notes)
        self.words.inc(n_words)

    def add_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered.

        path (str): Its route; never what a client wrote.
        """
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def show(self) -> bytes:
        """Write all of them in the text format of Prometheus."""
        return generate_latest(self.registry)
