"""`bioclin serve` as a process: its signals, its log, its limits, and its errors."""

import http.client
import io
import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from tests.serving.util import shared_nlp, wait_until
from tests.util import make_flagship

httpx = pytest.importorskip("httpx")

ROOT = Path(__file__).parents[2]
NOTE = "Paciente Xabina con fiebre. DNI 12345678Z."
KEY = "a-key-of-more-than-16-letters"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_flagship(tmp_path_factory.mktemp("serve") / "model")


@contextmanager
def serving(
    pipeline: Path, log: Path, *options: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command.

    YIELDS (tuple): The process, and the address that it prints.
    """
    command = [sys.executable, "-m", "spacy_bioclin", "serve", str(pipeline), "--port", "0"]
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [*command, *options],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, log.read_text()
            yield process, line.split()[3]
        finally:
            process.kill()


def read_log(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_the_service_is_told_to_end(pipeline: Path, tmp_path: Path) -> None:
    """Keys and names come from outside; a request that has begun is answered after SIGTERM."""
    log = tmp_path / "log"
    keys = {"BIOCLIN_SERVE_KEYS": f"{KEY} another-key-of-sixteen"}
    headers = {"Authorization": f"Bearer {KEY}", "Host": "notes.example"}
    body = json.dumps({"text": NOTE}).encode()
    with serving(pipeline, log, "--allowed-host", "notes.example", **keys) as (process, url):
        assert httpx.post(f"{url}/annotate", json={"text": NOTE}).status_code == 401
        connection = http.client.HTTPConnection(url.partition("//")[2], timeout=120)
        connection.putrequest("POST", "/deidentify", skip_host=True)
        lengths = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in {**headers, **lengths}.items():
            connection.putheader(name, value)
        connection.endheaders(body[:1])
        # The service reads in order: it has seen the beginning of that request before this one.
        assert httpx.get(f"{url}/health").status_code == 200
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: '"ending"' in log.read_text("utf-8"))
        connection.send(body[1:])
        answer = connection.getresponse()
        found = json.loads(answer.read())
        assert answer.status == 200 and found["pipeline"]["name"] == "es_pipeline"
        assert "Xabina" not in found["text"]
        assert process.wait(120) == 0
    rows = read_log(log)
    events = [row["event"] for row in rows if row["event"] != "request"]
    assert events == ["started", "ending", "ended"]
    [*_, served] = [row for row in rows if row["event"] == "request"]
    named = {"time", "event", "method", "path", "status", "seconds", "notes", "words"}
    assert served.keys() == named
    for secret in ("Xabina", "12345678", KEY):
        assert secret not in log.read_text("utf-8")


def test_signals_end_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C and SIGTERM end it as soon as the requests are answered, and a second one at once."""
    from spacy_bioclin.serving.log import Log
    from spacy_bioclin.serving.server import bind, serve
    from spacy_bioclin.serving.service import Service

    for name in ("gc.collect", "gc.freeze"):  # they are for a process that only serves
        monkeypatch.setattr(name, lambda: 0)
    for numbers in ([signal.SIGINT], [signal.SIGTERM], [signal.SIGTERM, signal.SIGINT]):
        log = io.StringIO()
        service = Service(shared_nlp(deid=False), log=Log(log))

        def end(address: str, numbers: list[int] = numbers, service: Service = service) -> None:
            assert address.startswith("http://127.0.0.1:")
            for number in numbers:
                signal.raise_signal(number)

        if len(numbers) == 1:
            serve(service, bind("127.0.0.1", 0), end)
        else:
            with pytest.raises(BioclinError, match="second signal"):
                serve(service, bind("127.0.0.1", 0), end)
            service.stop()
        events = [json.loads(line)["event"] for line in log.getvalue().splitlines()]
        assert events == ["started", "ending", "ended"][: 4 - len(numbers)]


@pytest.mark.full  # a busy machine may be too slow for it
def test_ten_thousand_connections_that_send_nothing(pipeline: Path, tmp_path: Path) -> None:
    """The next request is served, and the end is quick."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 10_000
    if hard != resource.RLIM_INFINITY and hard < wanted + 500:
        pytest.skip(f"a process may open {hard} files here, and 10,500 are wanted")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted + 500, hard))
    crowd: list[socket.socket] = []
    try:
        with serving(pipeline, tmp_path / "log") as (process, url):
            port = int(url.rpartition(":")[2])
            for _ in range(wanted):
                crowd.append(socket.create_connection(("127.0.0.1", port), timeout=30))
            answer = httpx.post(f"{url}/annotate", json={"text": NOTE}, timeout=30)
            assert answer.status_code == 200
            with selectors.DefaultSelector() as selector:  # those that are closed can be read
                for one in crowd:
                    selector.register(one, selectors.EVENT_READ)
                end, closed = time.monotonic() + 60, 0
                while closed < wanted and time.monotonic() < end:
                    for key, _ in selector.select(1):
                        selector.unregister(key.fileobj)
                        closed += 1
            assert closed == wanted
            assert httpx.get(f"{url}/health", timeout=30).status_code == 200
            process.terminate()
            assert process.wait(30) == 0
    finally:
        for one in crowd:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def run(*arguments: object):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(app, ["serve", *map(str, arguments)])


def test_errors_are_one_sentence(pipeline: Path, tmp_path: Path, loaded_once: None) -> None:
    (tmp_path / "short").write_text("short\n")
    (tmp_path / "empty").write_text("# no key\n\n")
    (tmp_path / "policy.yml").write_text("scheme: meddocan\ndefault: surrogate\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for arguments, message in (
            (["no_such_pipeline", "--port", "0"], "cannot load the pipeline 'no_such_pipeline'"),
            ([pipeline, "--port", taken.getsockname()[1]], "cannot listen there"),
            ([pipeline, "--host", "256.1.1.1", "--port", "0"], "--host 256.1.1.1: no such address"),
            ([pipeline, "--keys", tmp_path / "none"], "cannot be read"),
            ([pipeline, "--keys", tmp_path / "empty"], "has no key"),
            ([pipeline, "--keys", tmp_path / "short"], "key 1 is not one word of 16 or more"),
            ([pipeline, "--max-notes", 9, "--max-queue", 8], "--max-notes 9: want at most the 8"),
            ([pipeline, "--port", "0", "--policy", tmp_path / "policy.yml"], "needs a secret key"),
            ([pipeline, "--port", "0", "--precision", "fp7"], "fp7"),
        ):
            done = run(*arguments)
            assert done.exit_code == 1, arguments
            assert message in " ".join(done.stderr.split()), arguments
            assert len(done.stderr.strip().splitlines()) == 1 and "short\n" not in done.stderr
