"""Connections that send nothing, send slowly, or come while the service ends."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.serving.util import SLOW, Running, make_nlp, running

httpx = pytest.importorskip("httpx")

BODY = b'{"text": "tos"}'
HEAD = b"POST /annotate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def connect(it: Running) -> socket.socket:
    port = int(it.url.rpartition(":")[2])
    found = socket.create_connection(("127.0.0.1", port), timeout=20)
    return found


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
    return httpx.post(
        f"{it.url}/annotate", content=BODY, headers={"Content-Type": "application/json"}, timeout=20
    ).status_code


def test_connections_that_are_too_slow_are_closed() -> None:
    with running(make_nlp(deid=False), patience=0.3) as it:
        silent, headers, body, trickle = (connect(it) for _ in range(4))
        headers.sendall(HEAD)
        body.sendall(HEAD + b"Content-Length: 15\r\n\r\n{")
        stop = threading.Event()

        def send_slowly() -> None:
            for letter in HEAD:
                try:
                    trickle.sendall(bytes([letter]))
                except OSError:
                    break
                if stop.wait(0.05):
                    break

        thread = threading.Thread(target=send_slowly)
        thread.start()
        assert annotate(it) == 200
        assert read_all(silent) == b"" and read_all(headers) == b"" and read_all(trickle) == b""
        assert read_all(body).startswith(b"HTTP/1.1 408 ")
        stop.set()
        thread.join()
        assert annotate(it) == 200
        metrics = httpx.get(f"{it.url}/metrics").text
        assert 'bioclin_refused_connections_total{reason="too slow"}' in metrics


def test_a_crowd_that_sends_nothing_makes_room() -> None:
    with running(make_nlp(deid=False), patience=60.0, max_connections=20) as it:
        crowd = [connect(it) for _ in range(60)]
        assert annotate(it) == 200
        crowd[0].settimeout(10)
        assert read_all(crowd[0]) == b"", "the oldest should have been closed"
        crowd[-1].sendall(HEAD + b"Content-Length: 15\r\nConnection: close\r\n\r\n" + BODY)
        assert read_all(crowd[-1]).startswith(b"HTTP/1.1 200 ")
        for one in crowd:
            one.close()


def test_what_is_not_http_gets_a_sentence() -> None:
    with running(make_nlp(deid=False)) as it:
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
    with running(make_nlp(deid=False), max_bytes=1_000) as it:
        one = connect(it)
        request = HEAD + b"Content-Length: 15\r\n\r\n" + BODY
        one.sendall(request * 3)  # without waiting for the answers
        # What is said to be too large is refused at once, and answered although it is never sent.
        one.sendall(HEAD + b"Content-Length: 9999999999\r\n\r\n")
        time.sleep(0.2)
        received = b""
        while b" 413 " not in received:
            received += one.recv(65_536)
        assert received.count(b"HTTP/1.1 200 ") == 3
        one.close()


def test_a_client_that_takes_no_answer_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections whose answers nobody reads pile up if this fails."""
    from spacy_bioclin.serving import server

    monkeypatch.setattr(server, "SLOW", 0.5)
    with running(make_nlp(deid=False)) as it:
        content = json.dumps({"text": "tos " * 10_000}).encode()
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        one.connect(("127.0.0.1", int(it.url.rpartition(":")[2])))
        length = f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
        one.sendall(HEAD + length + content)
        end = time.monotonic() + 20
        while '"status": 200' not in it.log.getvalue() and time.monotonic() < end:
            time.sleep(0.05)
        while it.service.connections and time.monotonic() < end:
            time.sleep(0.05)
        assert not it.service.connections
        assert annotate(it) == 200
        one.close()


def test_an_end_loses_no_request() -> None:
    """Requests that were accepted are answered after the service is told to end; later ones are
    refused or never connect."""
    answers: list[int] = []
    lost: list[str] = []

    def send(it: Running) -> None:
        with httpx.Client(timeout=30) as client:
            while True:
                try:
                    answer = client.post(f"{it.url}/annotate", json={"text": SLOW})
                except httpx.ConnectError:
                    return
                except httpx.HTTPError as error:
                    lost.append(repr(error))
                    return
                answers.append(answer.status_code)

    with ThreadPoolExecutor(8) as pool:
        with running(make_nlp(deid=False)) as it:
            clients = [pool.submit(send, it) for _ in range(8)]
            while len(answers) < 8:
                time.sleep(0.01)
        for client in clients:
            client.result()
    assert lost == [] and set(answers) == {200} and len(answers) >= 16
    log = [json.loads(line) for line in it.log.getvalue().splitlines()]
    assert sum(row["event"] == "request" for row in log) == len(answers)


def test_the_service_is_not_ready_while_it_ends() -> None:
    with running(make_nlp(deid=False)) as it, ThreadPoolExecutor(1) as pool:
        slow = pool.submit(httpx.post, f"{it.url}/annotate", json={"text": SLOW}, timeout=30)
        assert httpx.get(f"{it.url}/ready").status_code == 200
        it.service.is_draining = True
        answer = httpx.get(f"{it.url}/ready")
        assert answer.status_code == 503 and answer.headers["Connection"] == "close"
        assert slow.result().status_code == 200
