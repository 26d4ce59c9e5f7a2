"""Connections that send nothing, send slowly, or come while the service ends."""

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from spacy_bioclin.serving import server
from tests.serving.util import (
    HANGS,
    HOUR,
    SLOW,
    Running,
    closed_door,
    running,
    shared_nlp,
    wait_until,
)

BODY = b'{"text": "tos"}'
HEAD = b"POST /annotate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def connect(it: Running) -> socket.socket:
    return socket.create_connection(find_address(it), timeout=HANGS)


def find_address(it: Running) -> tuple[str, int]:
    return "127.0.0.1", int(it.url.rpartition(":")[2])


def read_all(one: socket.socket) -> bytes:
    """Read until the service closes the connection."""
    received = b""
    try:
        while part := one.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received


def annotate(it: Running) -> int:
    """Annotate through a connection of its own."""
    one = connect(it)
    one.sendall(HEAD + b"Content-Length: 15\r\nConnection: close\r\n\r\n" + BODY)
    return int(read_all(one).split()[1])


def test_connections_that_are_too_slow_are_closed() -> None:
    """The clock of the service is moved on by hand."""
    with running(shared_nlp(deid=False), patience=HOUR) as it:
        silent, headers, body, trickle = (connect(it) for _ in range(4))
        headers.sendall(HEAD)
        body.sendall(HEAD + b"Content-Length: 15\r\n\r\n{")
        trickle.sendall(HEAD[:1])
        wait_until(lambda: sum(bool(each.cycle) for each in it.service.connections) == 1)
        assert annotate(it) == 200 and len(it.service.connections) == 4
        it.advance(0.7 * HOUR)
        trickle.sendall(HEAD[1:9])  # what comes letter by letter is as slow
        assert annotate(it) == 200 and len(it.service.connections) == 4
        it.advance(0.5 * HOUR)
        assert read_all(silent) == b"" and read_all(headers) == b"" and read_all(trickle) == b""
        assert body.recv(65_536).startswith(b"HTTP/1.1 408 ")
        assert annotate(it) == 200
        metrics = it.client.get("/metrics").text
        assert 'bioclin_refused_connections_total{reason="too slow"}' in metrics


def test_a_crowd_that_sends_nothing_makes_room() -> None:
    with running(shared_nlp(deid=False), patience=60.0, max_connections=20) as it:
        crowd = [connect(it) for _ in range(60)]
        assert annotate(it) == 200
        assert read_all(crowd[0]) == b"", "the oldest should have been closed"
        crowd[-1].sendall(HEAD + b"Content-Length: 15\r\nConnection: close\r\n\r\n" + BODY)
        assert read_all(crowd[-1]).startswith(b"HTTP/1.1 200 ")
        for one in crowd:
            one.close()


def test_what_is_not_http_gets_a_sentence() -> None:
    with running(shared_nlp(deid=False)) as it:
        for content in (
            b"Xabina\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01",
            b"GET / HTTP/9\r\n\r\n",
            b"\0" * 99 + b"\r\n\r\n",
        ):
            one = connect(it)
            one.sendall(content)
            head, _, body = read_all(one).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400 "), content
            assert json.loads(body)["error"] == "this is not a request of HTTP/1.1"
        large = connect(it)
        large.sendall(HEAD + b"X-Large: " + b"x" * 200_000)
        assert read_all(large)[:13] in (b"HTTP/1.1 400 ", b"")
        assert annotate(it) == 200
        assert "Xabina" not in it.log.getvalue()


def test_one_connection_takes_many_requests() -> None:
    with running(shared_nlp(deid=False), max_bytes=1_000) as it:
        one = connect(it)
        request = HEAD + b"Content-Length: 15\r\n\r\n" + BODY
        one.sendall(request * 3)  # without waiting for the answers
        # What is said to be too large is refused at once, and answered although it is never sent.
        one.sendall(HEAD + b"Content-Length: 9999999999\r\n\r\n")
        received = b""
        while b" 413 " not in received:
            received += one.recv(65_536)
        assert received.count(b"HTTP/1.1 200 ") == 3
        one.close()


def test_a_client_that_takes_no_answer_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections whose answers nobody reads pile up if this fails."""
    bind = server.bind

    def bind_small(host: str, port: int) -> socket.socket:
        """Let the system keep little of an answer that nobody takes."""
        found = bind(host, port)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        return found

    monkeypatch.setattr(server, "bind", bind_small)
    with running(shared_nlp(deid=False)) as it:
        content = json.dumps({"text": "tos " * 2_000}).encode()
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        one.connect(find_address(it))
        length = f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
        one.sendall(HEAD + length + content)
        wait_until(lambda: '"status": 200' in it.log.getvalue())
        assert it.service.connections
        it.advance(server.SLOW + 1)
        wait_until(lambda: not it.service.connections)
        assert annotate(it) == 200
        one.close()


def test_an_end_loses_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that were accepted, and those that are on their way, are answered after the service
    is told to end; later ones find nobody."""
    monkeypatch.setattr(server, "SHORT", HANGS)
    ending, go_on = threading.Event(), threading.Event()
    with (
        running(shared_nlp(deid=False), batch_words=0) as it,
        ThreadPoolExecutor(8) as pool,
        closed_door() as door,
    ):
        write = it.service.log.write

        def write_and_wait(event: str, **fields: object) -> None:
            write(event, **fields)
            if event == "ending":  # the loop of the service stands still here
                ending.set()
                go_on.wait(HANGS)

        monkeypatch.setattr(it.service.log, "write", write_and_wait)
        kept = http.client.HTTPConnection(*find_address(it), timeout=HANGS)
        kept.request("GET", "/health")
        assert kept.getresponse().read()
        answers = [pool.submit(annotate_slowly, it) for _ in range(8)]
        door.await_one()
        it.await_queue(7)
        it.server.should_exit = True
        assert ending.wait(HANGS)
        late = connect(it)  # the system takes it, but the service has not seen it yet
        late.sendall(HEAD + b"Content-Length: 15\r\n\r\n" + BODY)
        go_on.set()
        door.opened.set()
        assert read_all(late).startswith(b"HTTP/1.1 200 ")
        kept.request("GET", "/health")  # an open connection may still send one
        answer = kept.getresponse()
        assert (answer.status, answer.headers["Connection"]) == (200, "close")
        assert [each.result() for each in answers] == [200] * 8
    with pytest.raises(ConnectionRefusedError):
        connect(it)
    log = [json.loads(line) for line in it.log.getvalue().splitlines()]
    assert sum(row["event"] == "request" for row in log) == 11


def annotate_slowly(it: Running) -> int:
    return int(it.post("/annotate", text=SLOW).status_code)


def test_the_service_is_not_ready_while_it_ends() -> None:
    with (
        running(shared_nlp(deid=False)) as it,
        ThreadPoolExecutor(1) as pool,
        closed_door() as door,
    ):
        slow = pool.submit(annotate_slowly, it)
        door.await_one()
        assert it.client.get("/ready").status_code == 200
        it.service.is_draining = True
        answer = it.client.get("/ready")
        assert answer.status_code == 503 and answer.headers["Connection"] == "close"
        door.opened.set()
        assert slow.result() == 200
