"""What the parts of the service share: pipeline, queue, counters, log and settings."""

import socket
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

from spacy.language import Language

from ..about import __version__
from ..runner.notes.coverage import watch_coverage
from ..runner.notes.loading import lift_limit
from .batching import Batcher
from .keys import Keys
from .log import Log
from .metrics import Metrics
from .notes import Describer, describe_pipeline, describe_service, has_deid
from .reading import warm_up
from .settings import Limits


class Refused(Exception):
    """A request that is answered with an error.

    status (int): Status of the answer.
    sentence (str): What is wrong, without anything that the client wrote.
    retry_after (int | None): Seconds after which the client may try again.
    """

    def __init__(self, status: int, sentence: str, *, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_after = status, sentence, retry_after

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        found = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return {**found, "WWW-Authenticate": "Bearer"} if self.status == 401 else found


class Service:
    """A pipeline that is served.

    nlp (Language): The pipeline.
    limits (Limits): What is taken at most.
    keys (Keys | None): Who may send notes; None for everybody.
    hosts (Sequence[str]): Names by which clients reach the service, beside IP addresses, localhost
        and the name of this machine.
    log (Log | None): Where events are written; None for stderr.
    load (Callable | None): Loads the same pipeline in the processes of `limits.workers`, so it can
        be pickled.
    """

    def __init__(
        self,
        nlp: Language,
        *,
        limits: Limits | None = None,
        keys: Keys | None = None,
        hosts: Sequence[str] = (),
        log: Log | None = None,
        load: Callable[[], Language] | None = None,
    ) -> None:
        self.limits = (limits or Limits()).check()
        self.keys, self.log = keys or Keys(), log or Log()
        self.hosts = {"localhost", socket.gethostname().lower(), *map(str.lower, hosts)}
        self.connections: set[Any] = set()
        self.is_draining = False
        watch_coverage(nlp)
        lift_limit(nlp)
        self.describer = Describer(nlp)
        self.pipeline = describe_pipeline(nlp)
        self.lang = str(nlp.lang)
        self.has_deid = has_deid(nlp)
        self.about = describe_service(nlp, self.limits._asdict())
        self.batcher = Batcher(nlp, self.limits, load=load)
        self.metrics = Metrics(lambda: len(self.batcher), lambda: len(self.connections))
        self.batcher.on_batch = self.metrics.add_batch

    def start(self) -> None:
        """Let the pipeline read a first note, and start what reads the others."""
        warm_up(self.batcher.nlp)
        self.metrics.add_batch(1, 1)
        self.batcher.start()

    def stop(self) -> None:
        """Finish the notes that wait, and end what reads them."""
        self.batcher.stop()

    @property
    def why_not_ready(self) -> str | None:
        """Why no notes are accepted; None if they are."""
        reasons = {
            "the service is ending": self.is_draining,
            "the pipeline has ended": not self.batcher.is_alive,
            "the pipeline does not come back from a note": self.batcher.is_stuck,
            "too many notes are waiting": self.batcher.is_full,
        }
        return next((why for why, is_so in reasons.items() if is_so), None)

    def stamp(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Add the pipeline and the version of the package to an answer."""
        return {**answer, "pipeline": self.pipeline, "version": __version__}

    def is_own_host(self, host: str) -> bool:
        """Check the Host header, so that no page of another site reaches the service by a name that
        was made to lead to it (DNS rebinding)."""
        name = host.strip().lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if name in self.hosts:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True
