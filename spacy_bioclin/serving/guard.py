"""What is checked before a request is parsed, and what is counted and logged of each."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ..notices import describe
from .service import Refused, Service

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

WITH_NOTES = ("/annotate", "/deidentify")
WITH_KEY = (*WITH_NOTES, "/info", "/metrics")
ROUTES = (*WITH_KEY, "/", "/health", "/ready", "/openapi.json")
PAGE = "/page"
MAX_READING = 256_000_000  # bytes of all bodies that are being read
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
FAULT = "the service has failed; its log says where"
CLIENT_LEFT = 499  # as nginx logs it
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Check host, key, type and size of each request, before the application sees it.

    app (Application): The application.
    service (Service): The service.
    """

    def __init__(self, app: Application, service: Service) -> None:
        self.app, self.service = app, service
        self.n_reading = 0
        self.headers = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, count it and log it. A fault of ours is status 500."""
        if scope["type"] != "http":
            return
        started, status = time.monotonic(), 0
        about: dict[str, Any] = {}  # what the application adds to the log
        scope["log"] = about

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                close = [(b"connection", b"close")] if self.service.is_draining else []
                message["headers"] = [*message.get("headers", ()), *self.headers, *close]
            await send(message)

        try:
            try:
                await self.app(scope, await self._check(scope, receive), answer)
            except Refused as error:
                await send_error(self.service, error, answer)
            except Exception as error:
                about["fault"] = describe(error)
                if not status:
                    await send_error(self.service, Refused(500, FAULT), answer)
        finally:
            route, seconds = find_route(scope["path"]), time.monotonic() - started
            self.service.metrics.add_request(route, status or CLIENT_LEFT, seconds)
            self.service.log.write(
                "request",
                method=scope["method"] if scope["method"] in METHODS else "other",
                path=route,
                status=status or CLIENT_LEFT,
                seconds=round(seconds, 4),
                **about,
            )

    async def _check(self, scope: Message, receive: Receive) -> Receive:
        """Check a request, and read its body if it has notes.

        RETURNS (Receive): Gives the body to the application.
        RAISES (Refused): The request is not as it should be.
        """
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if host and not self.service.is_own_host(host):
            raise Refused(
                421, "the service has another name than the Host header; see --allowed-host"
            )
        if scope["path"] in WITH_KEY and not self.service.keys.accept(headers):
            raise Refused(401, "want an API key: send it as Authorization: Bearer KEY")
        if scope["path"] not in WITH_NOTES or scope["method"] != "POST":
            return receive
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise Refused(415, "want JSON: send the header Content-Type: application/json")
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise Refused(415, "want a body that is not compressed; leave Content-Encoding out")
        body = await self._read(headers, receive)

        async def receive_again() -> Message:
            nonlocal body
            if body is None:
                return await receive()
            message = {"type": "http.request", "body": body, "more_body": False}
            body = None
            return message

        return receive_again

    async def _read(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """Read a body of limited size in limited time.

        RAISES (Refused): It is too large, too slow, or too many are being read.
        """
        limits = self.service.limits
        too_large = Refused(413, f"want a body of at most {limits.max_bytes:,} bytes")
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > limits.max_bytes:
            raise too_large
        body = bytearray()

        async def read() -> None:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(CLIENT_LEFT, "the client has left")
                part = message.get("body", b"")
                body.extend(part)
                self.n_reading += len(part)
                if len(body) > limits.max_bytes:
                    raise too_large
                if self.n_reading > MAX_READING:
                    raise Refused(503, "too many requests are being read", retry_after=1)
                more = message.get("more_body", False)

        try:
            await asyncio.wait_for(read(), limits.patience)
        except TimeoutError:
            raise Refused(408, f"the body did not arrive in {limits.patience:g} s") from None
        finally:
            self.n_reading -= len(body)
        return bytes(body)


def find_route(path: str) -> str:
    """Name the route of a request; what a client made up is "other"."""
    if path.startswith(f"{PAGE}/"):
        return PAGE
    return path if path in ROUTES else "other"


async def send_error(service: Service, error: Refused, send: Send) -> None:
    """Answer with an error."""
    body = json.dumps(service.stamp({"error": error.sentence})).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    headers.update(error.headers)
    await send(
        {
            "type": "http.response.start",
            "status": error.status,
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})
