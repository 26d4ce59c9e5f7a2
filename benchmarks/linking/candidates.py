"""Candidates for mentions from 0.5, 1 and 3 million names: ours beside scispaCy's and rapidfuzz.

    pip install -c constraints.txt -e . -r benchmarks/peers.txt
    pip install --no-deps scispacy==0.6.2
    python -m benchmarks.linking.candidates

Every system builds, loads and answers in processes of its own, on one core; systems of one kind
take turns, round by round. Times are processor seconds of their one thread, which other processes
change least, and wall seconds. Every finished measurement is kept below .work/benchmarks/linking,
where a second call resumes; `--again bioclin` measures a system again.
scispaCy's index takes hours: start it beforehand, on a core of its own, with

    python -m benchmarks.linking.systems build scispacy 3000000 .work/benchmarks/linking

What is not built after --time-limit seconds is reported as that. "scispacy-quick" is its index
built with a tenth of the effort, for sizes where the full one is out of reach; its search is
quicker than that of the full one.
"""

import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from benchmarks import harness
from benchmarks.harness import (
    Result,
    Worker,
    ask_module,
    keep,
    make_parser,
    read_json,
    take_turns,
    thread_environment,
    write_json,
    write_result,
)
from benchmarks.linking.names import read_mentions, write_names
from benchmarks.linking.systems import SYSTEMS

WORK = harness.WORK / "linking"
SIZES = (500_000, 1_000_000, 3_000_000)
# Systems that take turns: alike in what they are asked and what they answer.
GROUPS = (
    ("bioclin index", "scispacy index", "scispacy-quick index"),
    ("bioclin generator", "scispacy generator", "scispacy-quick generator"),
    ("rapidfuzz index",),
)
SLOW = ("rapidfuzz",)  # gets a few mentions only, and is not scored: its score is another one
PEERS = ("scispacy", "scispacy-quick")
N_SAMPLE, N_SLOW, N_LOADS = 1000, 12, 3
LIBRARIES = ("scispacy", "nmslib-metabrainz", "rapidfuzz", "sparse-dot-topn", "scipy")
PLANNED = 20_000_000


def _command(what: str, system: str, size: int) -> list[str]:
    return ["-m", "benchmarks.linking.systems", what, system, str(size), str(WORK)]


def _environment() -> dict[str, str]:
    return {**thread_environment(), "LINKING_CORE": os.environ.get("LINKING_CORE", "1")}


def _building(system: str, size: int) -> bool:
    """Say whether a process that was started separately builds this."""
    try:
        process = int((WORK / f"build-{system}-{size}.pid").read_text(encoding="ascii"))
        command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return False
    return str(size).encode() in command and system.encode() in command


def build(system: str, size: int, time_limit: float) -> Result:
    """Build an index in a process of its own.

    RETURNS (dict): What the build took, or how long it was given.
    """
    name = f"build-{system}-{size}"
    done, started, process = WORK / f"{name}.json", time.time(), None
    if not done.exists() and _building(system, size):
        started = (WORK / f"{name}.pid").stat().st_mtime
    elif not done.exists():
        with (WORK / f"{name}.log").open("w", encoding="utf-8") as log:
            command = [sys.executable, "-W", "ignore", *_command("build", system, size)]
            process = subprocess.Popen(command, stderr=log, stdout=log, env=_environment())
    while not done.exists():
        if process is not None and process.poll():
            raise RuntimeError(f"{system}, {size:,} names: the build failed, see {name}.log")
        if (spent := time.time() - started) > time_limit:
            unfinished = {"not_finished_after_s": round(spent), **_progress(name)}
            if process is not None:
                process.kill()
            return unfinished
        time.sleep(1)
    return read_json(done)


def _progress(name: str) -> Result:
    """Measure the processor seconds of a build so far, and read its progress bar of 51 stars."""
    process = (WORK / f"{name}.pid").read_text(encoding="ascii")
    user, system = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    bar = (WORK / f"{name}.log").read_text(encoding="utf-8").rsplit("|", 1)
    return {
        "not_finished_after_cpu_s": round((int(user) + int(system)) / os.sysconf("SC_CLK_TCK")),
        "done_share": round(bar[-1].count("*") / 51, 2) if len(bar) > 1 else 0.0,
    }


def start_server(system: str, size: int) -> Worker:
    """Start a system in a process of its own."""
    log = WORK / f"serve-{system.replace(' ', '-')}-{size}.log"
    return Worker(_command("serve", system, size), log, env=_environment())


def load(system: str, size: int) -> Result:
    """Measure the time until the first answer, in fresh processes.

    RETURNS (dict): Load time with the files out of the page cache, the median of those with the
        files in it, and memory.
    """
    for path in WORK.glob(f"*-{size}*"):
        for file in path.rglob("*") if path.is_dir() else [path]:
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    loads = []
    for _ in range(N_LOADS + 1):
        with start_server(system, size) as server:
            loads.append(server.read())
    medians = {
        key: statistics.median(one[key] for one in loads[1:])
        for key in ("import_s", "load_wall_s", "load_cpu_s")
    }
    memory = {key: loads[-1][key] for key in ("imported_mb", "loaded_mb")}
    return {"load_cold_wall_s": loads[0]["load_wall_s"], **medians, **memory}


def speed(systems: list[str], size: int, rounds: int) -> dict[str, Result]:
    """Measure mentions per second, and memory after them.

    "unique" are different strings, none of which is asked twice; "running" are the mentions in
    order, with repeats. Each list is cut into one part to warm up and a part for each round.
    """
    slow = systems[0].split()[0] in SLOW
    name = f"speed-{'-'.join(systems[0].split()) if slow else systems[0].split()[1]}-{size}"
    path = WORK / f"{name}.json"
    if path.exists() and set(found := read_json(path)) == set(systems):
        return found
    rates: dict[str, Result] = {system: {} for system in systems}
    for kind in ("few",) if slow else ("unique", "running"):
        parts = _parts(kind, rounds + 1)
        with ExitStack() as stack:
            servers = {name: stack.enter_context(start_server(name, size)) for name in systems}
            for server in servers.values():
                server.read()
            asks = {name: _ask_parts(server, parts) for name, server in servers.items()}
            title = f"{size:,} names, {kind} mentions"
            answers = take_turns(asks, len(parts) - 1, warm_ups=1, title=title)
        for system in systems:
            rates[system][kind] = _rates(answers[system])
            rates[system]["queried_mb"] = answers[system][-1]["memory_mb"]
    write_json(path, rates)
    return rates


def _ask_parts(server: Worker, parts: list[list[str]]) -> Callable[[], Result]:
    """Make a function that asks for the next part each time that it is called."""
    rest = iter(parts)

    def ask() -> Result:
        part = next(rest)
        return {"mentions": len(part), **server.ask(json.dumps(part))}

    return ask


def _parts(kind: str, n: int) -> list[list[str]]:
    mentions = read_json(WORK / f"{kind}.json")
    size = math.ceil(len(mentions) / n)
    return [mentions[i : i + size] for i in range(0, len(mentions), size)]


def _rates(answers: list[Result]) -> Result:
    return {
        "mentions": [answer["mentions"] for answer in answers],
        "cpu_s": [answer["cpu_s"] for answer in answers],
        **{
            f"per_{unit}": round(
                statistics.median(one["mentions"] / one[unit] for one in answers), 2
            )
            for unit in ("cpu_s", "wall_s")
        },
    }


def measure(size: int, chosen: Iterable[str], rounds: int, time_limit: float) -> Result:
    """Measure all systems at one size."""
    found: Result = {}
    for system in chosen:
        found[system] = {"build": {} if system in SLOW else build(system, size, time_limit)}
        print(size, system, "build", found[system]["build"], flush=True)
    ready = [system for system in chosen if "not_finished_after_s" not in found[system]["build"]]
    for system in ready:
        if system not in SLOW:
            found[system]["recall"] = keep(
                WORK / f"recall-{system}-{size}.json",
                lambda system=system: ask_module(
                    *_command("recall", system, size)[1:], env=_environment()
                ),
            )
    for group in GROUPS:
        levels = [name for name in group if name.split()[0] in ready and _offers(name)]
        for name in levels:
            system, level = name.split()
            kept = WORK / f"load-{system}-{level}-{size}.json"
            found[system][level] = keep(kept, lambda name=name: load(name, size))
        for name, rates in (speed(levels, size, rounds) if levels else {}).items():
            system, level = name.split()
            found[system][level].update(rates)
            print(size, name, found[system][level], flush=True)
    return found


def _offers(name: str) -> bool:
    system, level = name.split()
    return hasattr(SYSTEMS[system], level)


def figures(found: Result) -> dict[str, float]:
    """Collect the figures of one system at one size that are compared and extrapolated."""
    flat: dict[str, float] = {}
    if parts := found["build"].get("parts"):
        flat["build_cpu_s"] = sum(part["cpu_s"] for part in parts.values())
        flat["build_peak_mb"] = found["build"]["peak_mb"]
        flat["disk_mb"] = sum(found["build"]["disk_mb"].values())
    for level in ("index", "generator"):
        if level in found:
            values = found[level]
            flat[f"{level}_load_s"] = values["load_wall_s"]
            for kind in ("unique", "running", "few"):
                if kind in values:
                    flat[f"{level}_s_per_{kind}_mention"] = 1 / values[kind]["per_cpu_s"]
            for kind in ("rss", "private", "anonymous"):
                flat[f"{level}_{kind}_mb"] = values["queried_mb"][kind]
    return flat


def compare(found: Result) -> Result:
    """Divide the figures of each peer by ours: above 1 is in our favour."""
    if "bioclin" not in found:
        return {}
    ours = figures(found["bioclin"])
    ratios = {}
    for peer in PEERS:
        theirs = figures(found[peer]) if peer in found else {}
        ratios[peer] = {key: round(theirs[key] / ours[key], 2) for key in ours if key in theirs}
        waited = found.get(peer, {}).get("build", {}).get("not_finished_after_cpu_s")
        if waited is not None:
            ratios[peer]["build_at_least"] = round(waited / ours["build_cpu_s"], 1)
    return ratios


def aims(size: int, found: Result, over: Result) -> Result:
    """Compare the measurements with our aims.

    RETURNS (dict): How many times as fast and as small as scispaCy's full index, where it was
        built in time, and our load time and recall.
    """
    built = [name for name in PEERS if "index" in found.get(name, {})]
    if not built or "bioclin" not in found:
        return {}
    ratios, ours = over[built[0]], found["bioclin"]
    level = "generator" if "generator" in ours else "index"
    measured = {
        "build": (ratios["build_cpu_s"], 50),
        "mentions_per_s": (ratios[f"{level}_s_per_unique_mention"], 5 if size < 1_000_000 else 2),
        "private_mb": (ratios[f"{level}_private_mb"], 4),
        "rss_mb": (ratios[f"{level}_rss_mb"], 4),
        "recall_at_10": (ours["recall"]["recall_at_10"], found[built[0]]["recall"]["recall_at_10"]),
    }
    reached = {
        name: {"measured": value, "at_least": aim, "met": value >= aim}
        for name, (value, aim) in measured.items()
    }
    load_s = ours[level]["load_wall_s"]
    reached["load_s"] = {"measured": load_s, "at_most": 1.0, "met": load_s <= 1.0}
    return {"beside": built[0], "level": level, **reached}


def plan(sizes: dict[int, Result]) -> Result:
    """Extrapolate what each system would take for PLANNED names.

    A straight line is drawn through the logarithms of the measurements, if there are at least two.
    """
    found: Result = {}
    for system in SYSTEMS:
        measured = {n: figures(of[system]) for n, of in sizes.items() if system in of}
        for key in {key for one in measured.values() for key in one}:
            points = [(math.log(n), math.log(of[key])) for n, of in measured.items() if key in of]
            if len(points) < 2:
                continue
            line = statistics.linear_regression(*zip(*points, strict=True))
            value = math.exp(line.intercept + line.slope * math.log(PLANNED))
            found.setdefault(system, {})[key] = {
                "value": float(f"{value:.3g}"),
                "exponent": round(line.slope, 2),
                "from_sizes": len(points),
            }
        found[system] = dict(sorted(found.get(system, {}).items()))
    return {"names": PLANNED, "systems": found}


def write_mentions() -> dict[str, int]:
    """Write the lists of mentions that the systems look up, and return their lengths."""
    running = read_mentions()
    unique = list(dict.fromkeys(running))
    chance = random.Random(0)
    lists = {
        "running": running,
        "unique": chance.sample(unique, len(unique)),
        "sample": chance.sample(unique, N_SAMPLE),
        "few": chance.sample(unique, N_SLOW),
    }
    for name, mentions in lists.items():
        write_json(WORK / f"{name}.json", mentions)
    return {name: len(mentions) for name, mentions in lists.items()}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=7200, help="seconds for one build")
    parser.add_argument("--again", nargs="+", default=[], choices=list(SYSTEMS))
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    for system in arguments.again:
        for kind in ("build-{}-*.json", "load-{}-[ig]*.json", "recall-{}-*.json", "speed-*.json"):
            for path in WORK.glob(kind.format(system)):
                path.unlink()
    counts = {**write_names(WORK, list(arguments.sizes)), "mentions": write_mentions()}
    sizes = {
        size: measure(size, arguments.systems, arguments.rounds, arguments.time_limit)
        for size in arguments.sizes
    }
    over = {size: compare(found) for size, found in sizes.items()}
    versions = {name: version(name) for name in LIBRARIES}
    result = {
        "versions": versions,
        **counts,
        "sizes": sizes,
        "theirs_over_ours": over,
        "aims": {size: aims(size, found, over[size]) for size, found in sizes.items()},
        "plan": plan(sizes),
    }
    print(json.dumps(result["aims"], indent=2))
    print(write_result("linking", result))


if __name__ == "__main__":
    main()
