"""`bioclin serve` as a process: its signals, its log, its limits, and its errors."""

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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from tests.util import make_flagship

for _name in ("fastapi", "uvicorn", "prometheus_client"):
    pytest.importorskip(_name, reason=f"the service needs {_name}")
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
def test_sigterm_under_load_loses_nothing(pipeline: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    answers: list[int] = []
    lost: list[str] = []

    def send(url: str) -> None:
        with httpx.Client(timeout=30) as client:
            while True:
                try:
                    answer = client.post(f"{url}/deidentify", json={"text": NOTE})
                except httpx.ConnectError:
                    return
                except httpx.HTTPError as error:
                    lost.append(repr(error))
                    return
                answers.append(answer.status_code)
                assert answer.status_code != 200 or "Xabina" not in answer.json()["text"]

    with serving(pipeline, log) as (process, url), ThreadPoolExecutor(16) as pool:
        clients = [pool.submit(send, url) for _ in range(16)]
        while len(answers) < 100:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        told = time.monotonic()
        assert process.wait(30) == 0
        assert time.monotonic() - told < 20
        for client in clients:
            client.result()
    assert lost == [] and set(answers) == {200}
    rows = read_log(log)
    assert [row["event"] for row in rows if row["event"] != "request"] == [
        "started",
        "ending",
        "ended",
    ]
    served = [row for row in rows if row["event"] == "request"]
    assert len(served) == len(answers)
    assert served[0].keys() == {"time", "event", "method", "path", "status", "seconds"} | {
        "notes",
        "words",
    }
    assert "Xabina" not in log.read_text() and "12345678" not in log.read_text()


@pytest.mark.slow
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


@pytest.mark.slow
def test_keys_of_the_environment_and_ctrl_c(pipeline: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    keys = {"BIOCLIN_SERVE_KEYS": f"{KEY} another-key-of-sixteen"}
    with serving(pipeline, log, "--allowed-host", "notes.example", **keys) as (process, url):
        assert httpx.post(f"{url}/annotate", json={"text": NOTE}).status_code == 401
        headers = {"Authorization": f"Bearer {KEY}", "Host": "notes.example"}
        answer = httpx.post(f"{url}/annotate", json={"text": NOTE}, headers=headers)
        assert answer.status_code == 200
        assert answer.json()["pipeline"]["name"] == "es_pipeline"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert [row["event"] for row in read_log(log)][-1] == "ended"
    assert KEY not in log.read_text()


def run(*arguments: object):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(app, ["serve", *map(str, arguments)])


def test_errors_are_one_sentence(pipeline: Path, tmp_path: Path) -> None:
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
