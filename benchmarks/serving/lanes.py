"""How long a short note waits beside a long one, and whether work that nobody waits for stops.

    python -m benchmarks.serving.lanes --pipeline es_bioclin_sm --workers 1 2

A client sends a note of 13 characters again and again: alone, and while the service reads a note of
200 kB. Then the long note is sent and its client leaves: the seconds until the service has read
another note of 5 kB, beside those that it takes alone. On a busy machine compare ratios only.
"""

import asyncio
import json
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.harness import make_parser, write_result
from benchmarks.serving.load import exchange, make_request, serving

SHORT = "Niega fiebre."
PAUSE = 0.02  # seconds between two short notes
LEAVES = 1.0  # seconds after which the client of the long note leaves


async def ask(port: int, text: str) -> float:
    """Send a note on a connection of its own. RETURNS (float): Seconds to the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    started = time.perf_counter()
    body = json.dumps({"text": text}).encode()
    try:
        status, _ = await exchange(reader, writer, make_request("/annotate", body))
    finally:
        writer.close()
    if status != 200:
        raise SystemExit(f"the service has answered {status}")
    return time.perf_counter() - started


def summarize(seconds: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100) if len(seconds) > 1 else seconds * 99
    named = {"p50": cuts[49], "p99": cuts[98], "max": max(seconds)}
    return {"n": len(seconds), **{f"{k}_ms": round(1000 * v, 1) for k, v in named.items()}}


async def measure(port: int, long: str, rounds: int) -> dict[str, Any]:
    """Measure a service."""
    for _ in range(10):
        await ask(port, SHORT)
    alone, beside = [], []
    for _ in range(rounds):
        alone.append(await ask(port, SHORT))
        await asyncio.sleep(PAUSE)
    running = asyncio.ensure_future(ask(port, long))
    await asyncio.sleep(PAUSE)
    while not running.done():
        beside.append(await ask(port, SHORT))
        await asyncio.sleep(PAUSE)
    middle = long[:5_000]
    before = await ask(port, middle)
    leaving = asyncio.ensure_future(ask(port, long))
    await asyncio.sleep(LEAVES)
    leaving.cancel()
    after = await ask(port, middle)
    found = {"alone": summarize(alone), "beside": summarize(beside)}
    return {
        **found,
        "p99_ratio": round(found["beside"]["p99_ms"] / found["alone"]["p99_ms"], 2),
        "long_s": round(await running, 1),
        "middle_s": round(before, 2),
        "middle_after_abandoned_s": round(after, 2),
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pipeline", default="es_bioclin_sm")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--threads", type=int, default=1, help="of the service")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--characters", type=int, default=200_000)
    parser.add_argument("--dry-run", action="store_true", help="print the result only")
    arguments = parser.parse_args()
    from benchmarks.corpora import read_notes

    long = "\n\n".join(read_notes("meddocan/dev/brat", 200))[: arguments.characters]
    result: dict[str, Any] = {"pipeline": arguments.pipeline, "threads": arguments.threads}
    for workers in arguments.workers:
        log = Path(harness.WORK) / "serving" / f"lanes-{workers}.log"
        options = ["--port", "0", "--timeout", "1000"]
        if workers > 1:
            options += ["--workers", str(workers)]
        command = ["spacy_bioclin", "serve", arguments.pipeline, *options]
        with serving(command, log, arguments.threads) as (_, port):
            found = asyncio.run(measure(port, long, arguments.rounds))
        print(workers, json.dumps(found, indent=2), flush=True)
        result[f"workers {workers}"] = found
    if not arguments.dry_run:
        print(write_result("lanes", result))


if __name__ == "__main__":
    main()
