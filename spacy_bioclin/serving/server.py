"""uvicorn with limits for connections that send nothing, and an end that loses no request."""

import asyncio
import gc
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import BioclinError
from ..interrupts import handled
from .app import make_app
from .guard import Guard
from .service import Service

BACKLOG = 2048
GRACE = 0.3  # seconds after SIGTERM in which requests that are on their way are still taken
SHORT = 1.0  # seconds after that in which open connections may still send one
SLOW = 60.0  # seconds for a client to take an answer
RESERVED = 200  # files beside the connections
MAX_FILES = 65_536


class Protocol(H11Protocol):
    """Close connections whose headers do not arrive in time.

    uvicorn has a limit for the time between two requests only.
    """

    service: ClassVar[Service]
    max_connections: ClassVar[int]
    idle: ClassVar[dict["Protocol", None]]  # without a request, the oldest first

    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count a new connection; if there are too many, close the oldest that sends nothing."""
        super().connection_made(transport)
        self.service.connections.add(self)
        self._watch()
        if len(self.service.connections) > self.max_connections:
            next(iter(self.idle)).give_up("too many")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self.service.connections.discard(self)
        self._disarm()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle what has arrived."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._watch()

    def shutdown(self) -> None:
        """Close the connection: after the answer if a request has begun, or else soon, for one may
        be on its way."""
        if self._has_request():
            self.cycle.keep_alive = False
        else:
            self._disarm()
            self._arm(SHORT)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a sentence, and close the connection."""
        self.service.metrics.add_request("other", 400, 0)
        body = json.dumps(self.service.stamp({"error": "this is not a request of HTTP/1.1"}))
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        # An answer may have begun.
        with suppress(h11.LocalProtocolError):
            for event in (
                h11.Response(status_code=400, headers=list(headers.items())),
                h11.Data(data=body.encode()),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        """Limit the time until the next request is there, or the last answer was taken."""
        if self._has_request():
            self._disarm()
        elif self.timer is None:
            self._arm(self.service.limits.patience)

    def _arm(self, seconds: float) -> None:
        if self.transport.get_write_buffer_size() > 0:  # the client still takes an answer
            seconds = SLOW
        self.timer = self.loop.call_later(seconds, self.give_up, "too slow")
        self.idle[self] = None

    def _disarm(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.idle.pop(self, None)

    def give_up(self, why: str) -> None:
        """Close the connection at once."""
        self.service.metrics.refused.labels(why).inc()
        self._disarm()
        self.transport.abort()


class Server(uvicorn.Server):
    """Serve until `should_exit` is true; then finish every request that was accepted.

    service (Service): Its pipeline's thread must run.
    on_start (Callable | None): Called when requests are accepted.
    """

    def __init__(self, service: Service, on_start: Callable[[], None] | None = None) -> None:
        self.service, self.on_start = service, on_start
        protocol = type(
            "ServiceProtocol",
            (Protocol,),
            {"service": service, "max_connections": allow_connections(service), "idle": {}},
        )
        super().__init__(
            uvicorn.Config(
                Guard(make_app(service), service),
                http=protocol,
                ws="none",
                loop="asyncio",
                lifespan="off",
                backlog=BACKLOG,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the server."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        if self.on_start is not None:
            self.on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End. Answers from now on close their connections, so that clients go elsewhere."""
        self.service.is_draining = True
        self.service.log.write("ending", waiting=len(self.service.batcher))
        await asyncio.sleep(GRACE)
        await self._accept_rest(sockets or [])
        await super().shutdown(sockets)

    async def _accept_rest(self, sockets: list[socket.socket]) -> None:
        """Accept the connections that the system has made already."""
        loop = asyncio.get_running_loop()
        accepted = []
        for one in sockets:
            with suppress(OSError):  # BlockingIOError: there is none
                while True:
                    accepted.append(one.accept()[0])
        for server in self.servers:
            server.close()
        for connection in accepted:
            connection.setblocking(False)
            await loop.connect_accepted_socket(self._make_protocol, connection)

    def _make_protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state={})


def serve(service: Service, listening: socket.socket, on_start: Callable[[str], None]) -> None:
    """Serve until the process gets SIGTERM or Ctrl-C; then finish every request that was accepted.

    listening (socket): See `bind`.
    on_start (Callable): Called with the address when requests are accepted.
    RAISES (BioclinError): A second signal came before all requests were answered.
    """
    service.log.take_over()
    service.start()
    host, port = listening.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start() -> None:
        service.log.write("started", address=address, **service.stamp({}))
        on_start(address)

    def end(number: int) -> None:
        server.force_exit, server.should_exit = server.should_exit, True

    server = Server(service, start)
    gc.collect()
    gc.freeze()  # the pipeline is never collected, so it need not be looked through
    with handled(end):
        server.run(sockets=[listening])
    if server.force_exit:
        raise BioclinError("ended at the second signal, before every request was answered")
    service.stop()
    service.log.write("ended")


def allow_connections(service: Service) -> int:
    """Let the process open as many files as the system allows.

    RETURNS (int): How many connections may be open.
    """
    wanted = service.limits.max_connections
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft < most:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(wanted, soft - RESERVED))


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket, on which the server will listen.

    port (int): 0 for any that is free.
    RAISES (BioclinError): The port is in use, or the host is not one of this machine.
    """
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(kind, socket.SOCK_STREAM)
    except OSError as error:
        raise BioclinError(f"--host {host}: no such address ({error.strerror})") from None
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        found.close()
        raise BioclinError(
            f"--host {host} --port {port}: cannot listen there ({error.strerror}); give another "
            "--port, or end what uses it"
        ) from None
    found.setblocking(False)
    return found
