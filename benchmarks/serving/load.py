"""Requests to `bioclin serve` from many clients at once, and to a service around Presidio.

    python -m benchmarks.serving.load --pipeline es_bioclin_sm --minutes 10 --clients 64

Every client sends a note of MEDDOCAN dev, waits for the answer, and sends the next. The systems are
the whole pipeline (/annotate), with batches and note by note; the parts of it that de-identify
(/deidentify); and Presidio's analyzer and anonymizer with the same encoder (benchmarks/serving/
peer.py). Clients are in a process of their own, on the same machine. The first system is measured
for --minutes and the others for --minutes-beside. At the end the first system gets 1,000 malformed
requests, and then SIGTERM while all clients send. benchmarks/results/serving.svg shows the memory
of the first system.
"""

import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import harness
from benchmarks.harness import RESULTS, ROOT, make_parser, thread_environment, write_result

WORK = harness.WORK / "serving"
N_NOTES = 200
N_MALFORMED = 1_000
PIECES = ['{"text":', '"notes":', "[", "]", "{", "}", ",", '"a"', "1e999", "null", '"id":', "ñ"]


class System(NamedTuple):
    """A service that is measured.

    command (list): Arguments of Python.
    route (str): Where notes are sent.
    """

    command: list[str]
    route: str


class Seen:
    """What the clients have seen."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.statuses: Counter[str] = Counter()
        self.elapsed = 0.0  # until the last answer


@contextmanager
def serving(command: list[str], log: Path, threads: int) -> Iterator[tuple[Any, int]]:
    """Run a service.

    YIELDS (tuple): The process and the port.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", *command],
            cwd=ROOT,
            env={**thread_environment(threads), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            while (line := process.stdout.readline()) and " at http://" not in line:
                pass
            if not line:
                raise SystemExit(f"{command[0]} ended, see {log}")
            yield process, int(line.partition(" at http://")[2].split()[0].rpartition(":")[2])
        finally:
            process.kill()


def make_request(route: str, content: bytes) -> bytes:
    head = f"POST {route} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def exchange(reader: Any, writer: Any, request: bytes) -> tuple[int, bool]:
    """Send a request and read the answer.

    RETURNS (tuple): Status, and whether it goes on.
    """
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head[9:12]), b"connection: close" not in head


async def be_client(port: int, requests: list[bytes], seen: Seen, end: float) -> None:
    """Send requests until the end, or until the service does not take connections any more."""
    draw, connection = random.Random(), None
    while time.perf_counter() < end:
        if connection is None:
            try:
                connection = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                seen.statuses["refused"] += 1
                return
        started = time.perf_counter()
        try:
            status, goes_on = await exchange(*connection, draw.choice(requests))
        except (OSError, asyncio.IncompleteReadError):
            seen.statuses["lost"] += 1
            connection = None
            continue
        seen.seconds.append(time.perf_counter() - started)
        seen.statuses[str(status)] += 1
        if not goes_on:
            connection[1].close()
            connection = None
        if status in (429, 503):
            await asyncio.sleep(0.5)


async def send_for(
    port: int, requests: list[bytes], n_clients: int, seconds: float, pid: int
) -> tuple[Seen, list[tuple[float, float]]]:
    """Let clients send for a time.

    RETURNS (tuple): What they saw, and MB of the process by minute.
    """
    seen, started = Seen(), time.perf_counter()
    end = started + seconds
    clients = [be_client(port, requests, seen, end) for _ in range(n_clients)]
    running = asyncio.gather(*clients)
    memory = []
    while not running.done():
        memory.append(((time.perf_counter() - started) / 60, resident_mb(pid)))
        await asyncio.wait([running], timeout=max(seconds / 200, 0.2))
    await running
    seen.elapsed = time.perf_counter() - started
    return seen, memory


def resident_mb(pid: int) -> float:
    """Read how much memory a process has; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return round(int(found[0]) / 1024, 1) if found else 0.0


def summarize(seen: Seen, memory: list[tuple[float, float]]) -> dict[str, Any]:
    cuts = statistics.quantiles(seen.seconds, n=100) if len(seen.seconds) > 1 else [0.0] * 99
    settled = [mb for _, mb in memory[len(memory) // 5 :] if mb]
    return {
        "notes_per_second": round(seen.statuses["200"] / seen.elapsed, 2),
        "p50_ms": round(1000 * cuts[49], 1),
        "p95_ms": round(1000 * cuts[94], 1),
        "p99_ms": round(1000 * cuts[98], 1),
        "answers": dict(seen.statuses),
        "errors": sum(seen.statuses.values()) - seen.statuses["200"],
        "memory_mb": {"after a fifth": settled[0], "end": settled[-1], "most": max(settled)},
    }


async def send_malformed(port: int, route: str) -> dict[str, int]:
    """Send requests that are not as they should be.

    RETURNS (dict): Status -> number.
    """
    draw, found = random.Random(0), Counter[str]()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(N_MALFORMED):
        text = "".join(draw.choices(PIECES, k=draw.randint(1, 12))).encode()
        content = text if number % 2 else draw.randbytes(draw.randint(0, 300))
        status, _ = await exchange(reader, writer, make_request(route, content))
        found[str(status)] += 1
    writer.close()
    return dict(found)


async def end_under_load(
    process: Any, port: int, requests: list[bytes], n_clients: int
) -> dict[str, Any]:
    """Send SIGTERM while all clients send.

    RETURNS (dict): What became of their requests.
    """
    loop = asyncio.get_running_loop()
    told: list[float] = []

    def end() -> None:
        told.append(time.perf_counter())
        process.send_signal(signal.SIGTERM)

    loop.call_later(3, end)
    seen, _ = await send_for(port, requests, n_clients, 120, process.pid)
    status = await asyncio.to_thread(process.wait, 120)
    return {
        "answers": dict(seen.statuses),
        "lost": seen.statuses["lost"],
        "exit_status": status,
        "seconds_to_end": round(time.perf_counter() - told[0], 2),
    }


def make_systems(pipeline: str, folder: Path) -> dict[str, System]:
    """Write what is served, and list the systems."""
    import spacy

    from benchmarks.deid.speed import make_systems as make_taggers
    from spacy_bioclin.deid.pipeline import list_unneeded_of

    if not (folder / "tagger").exists():
        deid = spacy.load(pipeline, exclude=list_unneeded_of(pipeline))
        folder.mkdir(parents=True, exist_ok=True)
        deid.to_disk(folder / "deid")
        make_taggers(folder / "deid", folder)
    serve = ["spacy_bioclin", "serve"]
    alone = ["--batch-words", "0"]
    port = ["--port", "0", "--max-queue", "10000"]
    safe = [*serve, str(folder / "deid"), *port]
    peer = ["benchmarks.serving.peer", "--tagger", str(folder / "tagger")]
    return {
        "annotate": System([*serve, pipeline, *port], "/annotate"),
        "annotate, note by note": System([*serve, pipeline, *port, *alone], "/annotate"),
        "deidentify": System(safe, "/deidentify"),
        "deidentify, note by note": System([*safe, *alone], "/deidentify"),
        "presidio": System(peer, "/deidentify"),
    }


def measure(
    name: str,
    system: System,
    texts: list[str],
    arguments: Any,
    minutes: float,
    *,
    with_faults: bool,
) -> tuple[dict[str, Any], list[tuple[float, float]]]:
    """Measure a system.

    RETURNS (tuple): Its figures, and its memory by minute.
    """
    log = WORK / f"{name.replace(' ', '-').replace(',', '')}.log"
    requests = [make_request(system.route, json.dumps({"text": text}).encode()) for text in texts]
    with serving(system.command, log, arguments.threads) as (process, port):
        warm_up = min(10.0, 30 * minutes)
        asyncio.run(send_for(port, requests, arguments.clients, warm_up, process.pid))
        seconds = 60 * minutes
        seen, memory = asyncio.run(
            send_for(port, requests, arguments.clients, seconds, process.pid)
        )
        found = summarize(seen, memory)
        if with_faults:
            found["malformed"] = asyncio.run(send_malformed(port, system.route))
            found["sigterm"] = asyncio.run(
                end_under_load(process, port, requests, arguments.clients)
            )
    return found, memory


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pipeline", default="es_bioclin_sm")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--minutes-beside", type=float, default=3)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the services")
    parser.add_argument("--systems", nargs="+", help="some of them; without it, all")
    arguments = parser.parse_args()
    from benchmarks.corpora import read_notes
    from spacy_bioclin.pages import draw_curves

    texts = read_notes("meddocan/dev/brat", N_NOTES)
    systems = make_systems(arguments.pipeline, WORK)
    unknown = set(arguments.systems or ()) - systems.keys()
    if unknown:
        parser.error(f"--systems: want some of {', '.join(systems)}")
    chosen = {name: systems[name] for name in arguments.systems or systems}
    result: dict[str, Any] = {
        "pipeline": arguments.pipeline,
        "clients": arguments.clients,
        "threads": arguments.threads,
        "characters_per_note": round(statistics.mean(map(len, texts))),
        "minutes": [arguments.minutes, arguments.minutes_beside],
        "systems": {},
    }
    for number, (name, system) in enumerate(chosen.items()):
        minutes = arguments.minutes_beside if number else arguments.minutes
        found, memory = measure(
            name, system, texts, arguments, minutes, with_faults=name == "annotate"
        )
        print(name, json.dumps(found, indent=2), flush=True)
        result["systems"][name] = found
        if not number:
            curves = {"MB": memory}
    print(write_result("serving", result))
    picture = draw_curves(curves, title="Resident memory of the service, MB", x_label="minutes")
    (RESULTS / "serving.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
