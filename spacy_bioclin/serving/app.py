"""The routes of the service."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from ..about import __version__
from ..errors import BioclinError
from ..linking.readers.values import language_code
from ..runner.columns import Row
from .batching import QueueFull
from .guard import CLIENT_LEFT, FAULT, PAGE
from .requests import EXAMPLES, NotesGiven, describe_mistake
from .service import Refused, Service

FOLDER = Path(__file__).with_name("page")
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
STATUSES = {
    400: "The body is not JSON",
    401: "The API key is missing or unknown",
    408: "The body did not arrive in time",
    413: "The body is too large, or has too many notes",
    415: "The body is said to be something else than JSON",
    421: "The service has another name than the Host header",
    422: "The body has other keys or values than wanted, or the only note failed",
    429: "The queue is full; the header Retry-After says when to try again",
    503: "The notes were not annotated in time",
}
SENTENCES = {
    404: "there is no such page; /openapi.json lists those that there are",
    405: "want another method; /openapi.json lists those that there are",
}


class Mistake(BaseModel):
    """The body of an error.

    error (str): What is wrong.
    pipeline (dict): Name, version and language of the pipeline.
    version (str): Version of spacy-bioclin.
    """

    error: str
    pipeline: dict[str, str]
    version: str


def make_app(service: Service) -> FastAPI:
    """Make the application."""
    app = FastAPI(
        title="spacy-bioclin",
        version=__version__,
        description="Annotate and de-identify clinical notes. Offsets are code points.",
        docs_url=None,  # their scripts come from other sites
        redoc_url=None,
        redirect_slashes=False,  # it would repeat the query, and lead to http behind a proxy
    )
    add_handlers(app, service)
    add_notes(app, service)
    add_state(app, service)
    app.mount(PAGE, StaticFiles(directory=FOLDER, check_dir=False))

    @app.get("/", include_in_schema=False)
    async def show_page() -> Response:
        return FileResponse(FOLDER / "index.html")

    return app


def add_notes(app: FastAPI, service: Service) -> None:
    """Add the routes that take notes."""
    refusals: dict[int | str, dict[str, Any]] = {
        status: {"description": why, "model": Mistake} for status, why in STATUSES.items()
    }
    body = {"requestBody": {"content": {"application/json": {"examples": EXAMPLES}}}}

    @app.post(
        "/annotate",
        summary="Find entities, sections, relations and classes",
        responses=refusals,
        openapi_extra=body,
    )
    async def annotate(request: Request, given: NotesGiven) -> Response:
        return await answer(service, request, given, service.describer.annotate)

    @app.post(
        "/deidentify",
        summary="Write notes that are safe to share",
        responses={
            **refusals,
            404: {"description": "The pipeline does not de-identify", "model": Mistake},
        },
        openapi_extra=body,
    )
    async def deidentify(request: Request, given: NotesGiven) -> Response:
        if not service.has_deid:
            raise Refused(
                404,
                "the pipeline has no bioclin_deid, and so does not de-identify; serve one that has",
            )
        return await answer(service, request, given, service.describer.deidentify)


def add_state(app: FastAPI, service: Service) -> None:
    """Add the routes that describe the service."""

    @app.get("/info", summary="Describe the pipeline and the limits")
    async def info() -> Response:
        return JSONResponse(service.about)

    # What answers is the inner route, which the header Allow of a 405 is made of; FastAPI's
    # description of the routes takes one method for each.
    @app.get("/health", summary="Tell whether the service works")
    @app.api_route("/health", methods=["GET", "HEAD"], include_in_schema=False)
    async def health() -> Response:
        return tell(service, None if service.batcher.is_alive else "the pipeline has ended")

    @app.get("/ready", summary="Tell whether the service accepts notes")
    @app.api_route("/ready", methods=["GET", "HEAD"], include_in_schema=False)
    async def ready() -> Response:
        return tell(service, service.why_not_ready)

    @app.get("/metrics", summary="Counters, for Prometheus")
    async def metrics() -> Response:
        return Response(service.metrics.show(), headers={"Content-Type": PROMETHEUS})


def tell(service: Service, why_not: str | None) -> Response:
    """Answer with 200, or with 503 and the reason."""
    if why_not is None:
        return JSONResponse(service.stamp({"status": "ok"}))
    raise Refused(503, why_not, retry_after=1)


def add_handlers(app: FastAPI, service: Service) -> None:
    """Let every error have a body of the same form, which repeats nothing of the request."""

    def respond(error: Refused, headers: Mapping[str, str] | None = None) -> JSONResponse:
        content = service.stamp({"error": error.sentence})
        return JSONResponse(content, error.status, headers={**error.headers, **(headers or {})})

    @app.exception_handler(Refused)
    async def refuse(request: Request, error: Refused) -> Response:
        return respond(error)

    @app.exception_handler(RequestValidationError)
    async def explain(request: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        status = 400 if found[0]["type"] == "json_invalid" else 422
        return respond(Refused(status, describe_mistake(found)))

    @app.exception_handler(HTTPException)
    async def translate(request: Request, error: HTTPException) -> Response:
        sentence = SENTENCES.get(error.status_code, "the body is not JSON that can be read")
        return respond(Refused(error.status_code, sentence), error.headers)  # Allow of a 405

    @app.exception_handler(Exception)
    async def fail(request: Request, error: Exception) -> Response:
        return respond(Refused(500, FAULT))  # the guard logs it


async def answer(service: Service, request: Request, given: NotesGiven, read: Any) -> Response:
    """Let the pipeline read the notes of a request, and answer.

    read (Callable): Takes the answer for a note out of its Doc.
    RAISES (Refused): There are too many notes, their language is another one, the queue is full,
        or they were not annotated in time.
    """
    notes, limits = given.list_notes(), service.limits
    if given.language is not None and language_code(given.language) != service.lang:
        raise Refused(422, f"language: the pipeline reads {service.lang} only")
    if len(notes) > limits.max_notes:
        raise Refused(413, f"want at most {limits.max_notes:,} notes in a request")
    try:
        waiting = service.batcher.submit([note.text for note in notes], read)
    except QueueFull as error:
        raise Refused(429, str(error), retry_after=error.seconds) from None
    found = await collect(request, waiting, limits.timeout)
    rows = [
        {"id": note.id, **({"error": str(one)} if isinstance(one, BioclinError) else one)}
        for note, one in zip(notes, found, strict=True)
    ]
    n_failed = sum("error" in row for row in rows)
    service.metrics.notes.labels("done").inc(len(rows) - n_failed)
    service.metrics.notes.labels("failed").inc(n_failed)
    n_words = sum(len(note.text.split()) for note in notes)
    request.scope["log"].update(notes=len(rows), words=n_words, failed=n_failed or None)
    if given.notes is not None:
        return JSONResponse(service.stamp({"notes": rows}))
    return JSONResponse(service.stamp(rows[0]), 422 if n_failed else 200)


async def collect(
    request: Request, waiting: "Sequence[Future[Row | BioclinError]]", timeout: float
) -> list[Row | BioclinError]:
    """Wait for the answers to all notes of a request.

    RAISES (Refused): They took too long, or the client has left. The notes are taken out of the
        queue, and work on a long one ends.
    """
    answers = asyncio.gather(*(asyncio.wrap_future(one) for one in waiting))
    answers.add_done_callback(lambda done: done.cancelled() or done.exception())  # or it is logged
    leaving = asyncio.ensure_future(wait_until_left(request))
    try:
        both: set[asyncio.Future[Any]] = {answers, leaving}
        await asyncio.wait(both, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if answers.done():
            return answers.result()
        if leaving.done():
            raise Refused(CLIENT_LEFT, "the client has left")
        raise Refused(503, f"the notes were not annotated in {timeout:g} s", retry_after=10)
    finally:
        leaving.cancel()
        answers.cancel()


async def wait_until_left(request: Request) -> None:
    """Wait until the client of a request, whose body was read, closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
