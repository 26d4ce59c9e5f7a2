"""A service in a thread, and small pipelines to serve."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


class Panic(BaseException):
    """As a library in Rust raises."""


@Language.component("tests_serving_moods")
def feel(doc: Doc) -> Doc:
    """Be slow, or fail, on notes that say so."""
    if SLOW in doc.text:
        time.sleep(0.2)
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


class Running:
    """A service that runs.

    url (str): Where.
    """

    def __init__(self, service: Any, url: str, log: StringIO) -> None:
        self.service, self.url, self.log = service, url, log


@contextmanager
def running(nlp: Language, *, keys: tuple[str, ...] = (), **limits: Any) -> Iterator[Running]:
    """Serve a pipeline in a thread, on a free port.

    limits: See `Limits`.
    """
    from spacy_bioclin.serving.keys import Keys
    from spacy_bioclin.serving.log import Log
    from spacy_bioclin.serving.server import Server, bind
    from spacy_bioclin.serving.service import Service
    from spacy_bioclin.serving.settings import Limits

    written = StringIO()
    service = Service(nlp, limits=Limits(**limits), keys=Keys(keys), log=Log(written))
    service.log.take_over()
    service.start()
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = Server(service)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Running(service, f"http://127.0.0.1:{port}", written)
    finally:
        server.should_exit = True
        thread.join()
        service.stop()
