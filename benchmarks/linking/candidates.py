"""Candidates for mentions from 0.5, 1 and 3 million names: ours beside scispaCy's and rapidfuzz.

    pip install -c constraints.txt -e . -r benchmarks/peers.txt
    pip install --no-deps scispacy==0.6.2
    python -m benchmarks.linking.candidates

Every system builds, loads and answers in processes of its own, on one core; systems of one kind
take turns, round by round. Times are processor seconds of their one thread, which other processes
do not stretch; wall seconds stand beside them. Every finished measurement is kept below
.work/benchmarks/linking, and a second call goes on from there; `--again bioclin` measures a system
anew. scispaCy's index takes hours: start it beforehand, on a core of its own, with

    python -m benchmarks.linking.systems build scispacy 3000000 .work/benchmarks/linking

What is not built after --time-limit seconds is reported as that. "scispacy-quick" is its index
built with a tenth of the effort, for sizes where the full one is out of reach; its search is
quicker than that of the full one.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.progress import track

from benchmarks.harness import ROOT, write_result
from benchmarks.linking.names import read_mentions, write_names
from benchmarks.linking.systems import SYSTEMS

WORK = ROOT / ".work" / "benchmarks" / "linking"
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
Result = dict[str, Any]


def _command(what: str, system: str, size: int) -> list[str]:
    return [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "benchmarks.linking.systems",
        what,
        system,
        str(size),
        str(WORK),
    ]


def _environment() -> dict[str, str]:
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
    return {**os.environ, **threads, "LINKING_CORE": os.environ.get("LINKING_CORE", "1")}


def _kept(name: str) -> Result | None:
    path = WORK / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _keep(name: str, found: Result) -> Result:
    partial = WORK / f"{name}.partial"
    partial.write_text(json.dumps(found), encoding="utf-8")
    partial.rename(WORK / f"{name}.json")
    return found


def _building(system: str, size: int) -> bool:
    """RETURNS (bool): Whether a process started by somebody else builds this."""
    try:
        process = int((WORK / f"build-{system}-{size}.pid").read_text(encoding="ascii"))
        command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return False
    return str(size).encode() in command and system.encode() in command


def build(system: str, size: int, time_limit: float) -> Result:
    """RETURNS (dict): What its build took, or how long it was given."""
    name = f"build-{system}-{size}"
    started, process = time.time(), None
    if (found := _kept(name)) is None and not _building(system, size):
        with (WORK / f"{name}.log").open("w", encoding="utf-8") as log:
            command = _command("build", system, size)
            process = subprocess.Popen(command, stderr=log, stdout=log, env=_environment())
    elif found is None:
        started = (WORK / f"{name}.pid").stat().st_mtime
    while (found := _kept(name)) is None:
        if process is not None and process.poll():
            raise RuntimeError(f"{system}, {size:,} names: the build failed, see {name}.log")
        if (spent := time.time() - started) > time_limit:
            unfinished = {"not_finished_after_s": round(spent), **_progress(name)}
            if process is not None:
                process.kill()
            return unfinished
        time.sleep(1)
    return found


def _progress(name: str) -> Result:
    """RETURNS (dict): Processor seconds of a build so far, and how much of the index it has made by
    its own progress bar of 51 stars."""
    process = (WORK / f"{name}.pid").read_text(encoding="ascii")
    user, system = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    bar = (WORK / f"{name}.log").read_text(encoding="utf-8").rsplit("|", 1)
    return {
        "not_finished_after_cpu_s": round((int(user) + int(system)) / os.sysconf("SC_CLK_TCK")),
        "done_share": round(bar[-1].count("*") / 51, 2) if len(bar) > 1 else 0.0,
    }


class Server:
    """One system in a process of its own."""

    def __init__(self, system: str, size: int) -> None:
        with (WORK / f"serve-{system.replace(' ', '-')}-{size}.log").open("w") as log:
            self.process = subprocess.Popen(
                _command("serve", system, size),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=_environment(),
            )
        self.loaded = self._answer()

    def _answer(self) -> Result:
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            raise RuntimeError(
                f"{self.process.args}: ended with {self.process.wait()}, see its log"
            )
        return json.loads(line)

    def ask(self, mentions: list[str]) -> Result:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(mentions) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def load(system: str, size: int) -> Result:
    """RETURNS (dict): Load time until the first answer, in fresh processes: once with its files out
    of the page cache, then the median of those with its files in it."""
    name = f"load-{system.replace(' ', '-')}-{size}"
    if (found := _kept(name)) is not None:
        return found
    for path in WORK.glob(f"*-{size}*"):
        for file in path.rglob("*") if path.is_dir() else [path]:
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    loads = []
    for _ in range(N_LOADS + 1):
        server = Server(system, size)
        server.stop()
        loads.append(server.loaded)
    medians = {
        key: statistics.median(one[key] for one in loads[1:])
        for key in ("import_s", "load_wall_s", "load_cpu_s")
    }
    memory = {key: loads[-1][key] for key in ("imported_mb", "loaded_mb")}
    return _keep(name, {"load_cold_wall_s": loads[0]["load_wall_s"], **medians, **memory})


def speed(systems: list[str], size: int, rounds: int) -> dict[str, Result]:
    """RETURNS (dict): Per system mentions per second and memory after them: of different strings,
    none of which is asked twice, and of the running ones with their repeats. Each list is cut into
    one part to warm up and a part for each round."""
    slow = systems[0].split()[0] in SLOW
    name = f"speed-{'-'.join(systems[0].split()) if slow else systems[0].split()[1]}-{size}"
    if (found := _kept(name)) is not None and set(found) == set(systems):
        return found
    rates: dict[str, Result] = {system: {} for system in systems}
    for kind in ("few",) if slow else ("unique", "running"):
        servers = {system: Server(system, size) for system in systems}
        answers: dict[str, list[Result]] = {system: [] for system in systems}
        for part in track(_parts(kind, rounds + 1), f"{size:,} names, {kind} mentions"):
            for system, server in servers.items():
                answers[system].append({"mentions": len(part), **server.ask(part)})
        for system, server in servers.items():
            server.stop()
            rates[system][kind] = _rates(answers[system][1:])
            rates[system]["queried_mb"] = answers[system][-1]["memory_mb"]
    return _keep(name, rates)


def _parts(kind: str, n: int) -> list[list[str]]:
    mentions = json.loads((WORK / f"{kind}.json").read_text(encoding="utf-8"))
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


def recall(system: str, size: int) -> Result:
    name = f"recall-{system}-{size}"
    if (found := _kept(name)) is not None:
        return found
    command = _command("recall", system, size)
    done = subprocess.run(
        command, env=_environment(), stdout=subprocess.PIPE, text=True, check=True
    )
    return _keep(name, json.loads(done.stdout.splitlines()[-1]))


def measure(size: int, chosen: Iterable[str], rounds: int, time_limit: float) -> Result:
    """RETURNS (dict): All of one size, system by system."""
    found: Result = {}
    for system in chosen:
        found[system] = {"build": {} if system in SLOW else build(system, size, time_limit)}
        print(size, system, "build", found[system]["build"], flush=True)
    ready = [system for system in chosen if "not_finished_after_s" not in found[system]["build"]]
    for system in ready:
        if system not in SLOW:
            found[system]["recall"] = recall(system, size)
    for group in GROUPS:
        levels = [name for name in group if name.split()[0] in ready and _offers(name)]
        for name in levels:
            system, level = name.split()
            found[system][level] = load(name, size)
        for name, rates in (speed(levels, size, rounds) if levels else {}).items():
            system, level = name.split()
            found[system][level].update(rates)
            print(size, name, found[system][level], flush=True)
    return found


def _offers(name: str) -> bool:
    system, level = name.split()
    return hasattr(SYSTEMS[system], level)


def figures(found: Result) -> dict[str, float]:
    """RETURNS (dict): The figures of one system at one size that are compared and extrapolated."""
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
    """RETURNS (dict): Theirs over ours for each peer: what is above 1 is in our favour."""
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
    """RETURNS (dict): What was aimed at, beside scispaCy's full index where it was built in time:
    how many times as quick and as small, and our load and recall themselves."""
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
    """RETURNS (dict): What each system would take for PLANNED names: a straight line through the
    logarithms of what was measured, at all sizes at which it was, if at two at least."""
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
    """Write the lists of mentions that the systems are asked.

    RETURNS (dict): How many there are in each.
    """
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
        (WORK / f"{name}.json").write_text(json.dumps(mentions), encoding="utf-8")
    return {name: len(mentions) for name, mentions in lists.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
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
