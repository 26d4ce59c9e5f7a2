"""A service in a thread, and small pipelines to serve."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import StringIO
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

for _name in ("fastapi", "uvicorn", "prometheus_client", "httpx"):
    pytest.importorskip(_name, reason=f"the service and its tests need {_name}")

NOTE = "Antecedentes: asma.\nPaciente Xabina con fiebre. No tos. DNI 12345678Z."
SLOW, BROKEN, PANIC = "lento", "roto", "pánico"
HANGS = 120.0  # seconds after which something will never happen
HOUR = 3_600.0


class Panic(BaseException):
    """As a library in Rust raises."""


class Door:
    """Where notes with the word `SLOW` wait in the pipeline until it is opened."""

    def __init__(self) -> None:
        self.arrived = threading.Semaphore(0)
        self.opened = threading.Event()
        self.n_arrived = 0

    def go_through(self) -> None:
        self.n_arrived += 1
        self.arrived.release()
        self.opened.wait(HANGS)

    def await_one(self) -> None:
        """Wait until a note is there."""
        assert self.arrived.acquire(timeout=HANGS)


_doors: list[Door] = []


@contextmanager
def closed_door() -> Iterator[Door]:
    """Let slow notes wait at a door of their own. It opens at the end of the block."""
    door = Door()
    _doors.append(door)
    try:
        yield door
    finally:
        door.opened.set()
        _doors.remove(door)


@Language.component("tests_serving_moods")
def feel(doc: Doc) -> Doc:
    """Be slow, or fail, on notes that say so."""
    if SLOW in doc.text:
        _doors[-1].go_through()
    if BROKEN in doc.text:
        raise ValueError(doc.text)
    if PANIC in doc.text:
        raise Panic(doc.text)
    return doc


def make_nlp(*, deid: bool = True) -> Language:
    """Make a pipeline that finds symptoms with their context, sections, and, with `deid`, PHI."""
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    nlp = spacy.blank("es", config={"nlp": {"tokenizer": tokenizer}})
    nlp.meta.update(name="tiny", version="1.2.3")
    nlp.add_pipe("tests_serving_moods")
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("bioclin_sections")
    ruler: Any = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "SYMPTOM", "pattern": word} for word in ("fiebre", "tos")])
    ruler.add_patterns([{"label": "DISEASE", "pattern": "asma"}])
    if deid:
        names: Any = nlp.add_pipe("span_ruler", config={"spans_key": "phi"})
        names.add_patterns([{"label": "NOMBRE_SUJETO_ASISTENCIA", "pattern": "Xabina"}])
        nlp.add_pipe("bioclin_phi_rules")
    nlp.add_pipe("bioclin_context")
    if deid:
        nlp.add_pipe("bioclin_deid")
    return nlp


@cache
def shared_nlp(*, deid: bool = True) -> Language:
    """Make one of these for all tests that do not change it."""
    return make_nlp(deid=deid)


class Running:
    """A service that runs.

    url (str): Where.
    client (httpx.Client): Knows the address, and keeps its connections.
    """

    def __init__(self, service: Any, server: Any, url: str, log: StringIO) -> None:
        import httpx

        self.service, self.server, self.url, self.log = service, server, url, log
        self.client = httpx.Client(base_url=url, timeout=HANGS, verify=False, trust_env=False)
        self.loop: Any = None
        self.late = 0.0

    def post(self, path: str, **body: object) -> Any:
        """Send JSON."""
        return self.client.post(path, json=body)

    def start_clock(self) -> None:
        """Let the loop of the service, in whose thread this is called, have a clock of its own."""
        self.loop = asyncio.get_running_loop()
        self.loop.time = lambda: time.monotonic() + self.late

    def advance(self, seconds: float) -> None:
        """Let time go by for the service: what it waits for is due at once."""
        self.late += seconds
        self.loop.call_soon_threadsafe(lambda: None)

    def await_queue(self, n: int) -> None:
        """Wait until so many notes are in the queue; the pipeline must be at a closed door."""
        batcher = self.service.batcher
        with batcher.changed:
            assert batcher.changed.wait_for(lambda: len(batcher) == n, timeout=HANGS)


@contextmanager
def running(
    nlp: Language | None = None, *, keys: tuple[str, ...] = (), **limits: Any
) -> Iterator[Running]:
    """Serve a pipeline in a thread, on a free port. No connection is too slow by itself.

    nlp (Language | None): The pipeline; None for the shared one.
    limits: See `Limits`.
    """
    from spacy_bioclin.serving import server as module
    from spacy_bioclin.serving.keys import Keys
    from spacy_bioclin.serving.log import Log
    from spacy_bioclin.serving.service import Service
    from spacy_bioclin.serving.settings import Limits

    written = StringIO()
    given = Limits(**{"patience": HOUR, **limits})
    service = Service(nlp or shared_nlp(), limits=given, keys=Keys(keys), log=Log(written))
    service.log.take_over()
    service.start()
    listening = module.bind("127.0.0.1", 0)
    started = threading.Event()

    def start() -> None:
        it.start_clock()
        started.set()

    server = module.Server(service, start)
    server.config.timeout_keep_alive = int(HOUR)
    it = Running(service, server, f"http://127.0.0.1:{listening.getsockname()[1]}", written)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "GRACE", 0.0)
        thread.start()
        assert started.wait(HANGS)
        try:
            yield it
        finally:
            it.client.close()
            server.should_exit = True
            thread.join()
            service.stop()


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for what another thread or process does."""
    end = time.monotonic() + HANGS
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.002)
