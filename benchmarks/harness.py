"""What the benchmarks share: rounds in turns, worker processes, kept parts and result files.

This module imports nothing of spacy_bioclin, because it also runs in the environments of other
systems and beside trees under comparison.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

ROOT = next(path for path in Path(__file__).resolve().parents if (path / "setup.cfg").is_file())
RESULTS = ROOT / "benchmarks" / "results"
# What is kept between runs: outside of the checkout with $BIOCLIN_WORK.
WORK = Path(os.environ.get("BIOCLIN_WORK", ROOT / ".work")).resolve() / "benchmarks"
LIBRARIES = ("spacy", "spacy-transformers", "thinc", "torch", "transformers", "numpy")
THREAD_VARIABLES = ("OMP", "MKL", "OPENBLAS", "RAYON")
Result = dict[str, Any]
Answer = TypeVar("Answer")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    wide = [flag for flag in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if flag in flags]
    return f"{models[0] if models else platform.processor()} ({wide[0] if wide else 'scalar'})"


def _commit() -> str:
    command = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def rules_only(tree: Path) -> list[str]:
    """Give the options of `bioclin deid` in a tree for rules alone: once, that was the default."""
    folder = tree / "spacy_bioclin" / "cli" / "deid"
    has = any("--rules-only" in path.read_text("utf-8") for path in folder.glob("deid.py"))
    return ["--rules-only"] if has else []


def describe_machine() -> Result:
    """Describe date, processor, cores, Python and library versions, and the git commit."""
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
        "commit": _commit(),
    }


def status_mb(field: str) -> float:
    """Read megabytes from /proc/self/status: "VmRSS" (resident now) or "VmHWM" (its peak)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


def thread_environment(n_threads: int = 1) -> dict[str, str]:
    """Copy the environment, with so many threads for every library that has its own."""
    threads = {f"{name}_NUM_THREADS": str(n_threads) for name in THREAD_VARIABLES}
    return {**os.environ, **threads, "TOKENIZERS_PARALLELISM": "false"}


def data_dir() -> Path:
    """Find the corpora: $BIOCLIN_DATA, else ../shared/data beside the checkout."""
    default = ROOT.parent / "shared" / "data"
    return Path(os.environ.get("BIOCLIN_DATA", default))


def write_json(path: Path, value: Any, *, indent: int | None = None) -> None:
    """Write a file of JSON atomically, so that one that exists is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")  # two processes may write a result
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(path)


def read_json(path: Path) -> Any:
    """Read a file of JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def keep(path: Path, measure: Callable[[], Any]) -> Any:
    """Read the JSON of a part that was measured before, or measure it and keep it there."""
    if not path.exists():
        write_json(path, measure(), indent=2)
    return read_json(path)


def write_result(name: str, result: Result) -> Path:
    """Write benchmarks/results/NAME.json with the machine it was measured on."""
    path = RESULTS / f"{name}.json"
    write_json(path, {"machine": describe_machine(), **result}, indent=2)
    return path


def report(name: str, result: Result) -> None:
    """Print a result, and write it to benchmarks/results."""
    print(json.dumps(result, indent=2))
    print(write_result(name, result))


def make_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make a parser that shows a module's docstring."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def to_options(settings: Mapping[str, Any]) -> list[str]:
    """Write settings as options of `spacy train` and `bioclin train`: --KEY VALUE."""
    return [str(part) for key, value in settings.items() for part in (f"--{key}", value)]


class Usage(NamedTuple):
    """What a child process took."""

    seconds: float
    cpu_seconds: float
    peak_memory_mb: float


def run_python(*arguments: object, log: Path | None = None) -> Usage:
    """Run Python with these arguments in the root of the repository.

    log (Path | None): File for its output.
    RAISES (SystemExit): If it fails.
    """
    command = [sys.executable, "-u", "-W", "ignore", *map(str, arguments)]
    started = time.perf_counter()
    with open(log or os.devnull, "w") as out:
        child = subprocess.Popen(command, cwd=ROOT, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command[4:])} failed, see {log}")
    seconds = time.perf_counter() - started
    return Usage(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def ask_module(module: str, *arguments: object, env: Mapping[str, str] | None = None) -> Any:
    """Run a module in a new process, and read the JSON in the last line that it prints."""
    command = [sys.executable, "-W", "ignore", "-m", module, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    return json.loads(done.stdout.splitlines()[-1])


class Seconds(NamedTuple):
    """Wall and processor seconds of a call."""

    wall: float
    cpu: float


def time_call(function: Callable[[], Any]) -> Seconds:
    """Time one call of a function."""
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def median_cpu_seconds(function: Callable[[], Any], rounds: int) -> float:
    """Find the median processor time of some calls: other work on the machine changes it least."""
    return statistics.median(time_call(function).cpu for _ in range(rounds))


def take_turns(
    systems: Mapping[str, Callable[[], Answer]], rounds: int, *, warm_ups: int = 0, title: str = ""
) -> dict[str, list[Answer]]:
    """Call every system once per round, so that other work on the machine slows all of them.

    systems (Mapping[str, Callable]): Name -> function of one round.
    warm_ups (int): First rounds, whose answers are thrown away.
    RETURNS (dict[str, list]): Name -> its answers.
    """
    from rich.progress import track

    answers: dict[str, list[Answer]] = {name: [] for name in systems}
    turns = [(n, name) for n in range(warm_ups + rounds) for name in systems]
    for n, name in track(turns, title or "rounds"):
        answer = systems[name]()
        if n >= warm_ups:
            answers[name].append(answer)
    return answers


def summarize_rounds(answers: list[Result], sizes: Mapping[str, int]) -> Result:
    """Summarize the rounds of a system.

    answers (list[dict]): "seconds" of each round, and more figures, of which the last are kept.
    sizes (Mapping[str, int]): What a round works through: words, pieces.
    """
    seconds = [answer["seconds"] for answer in answers]
    median = statistics.median(seconds)
    return {
        **{f"{name}_per_second": round(n / median) for name, n in sizes.items()},
        "median_seconds": round(median, 3),
        "spread": round((max(seconds) - min(seconds)) / median, 3),
        "seconds": [round(value, 3) for value in seconds],
        **{key: value for key, value in answers[-1].items() if key != "seconds"},
    }


class Worker:
    """Another process that answers each line on its standard input with a line of JSON.

    command (Iterable): Arguments of Python.
    log (Path): File for its standard error.
    options: More arguments of `subprocess.Popen`: cwd, env.
    """

    def __init__(
        self,
        command: Iterable[object],
        log: Path,
        *,
        python: Path | str = sys.executable,
        **options: Any,
    ) -> None:
        self.log = log
        with log.open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [str(python), "-W", "ignore", *map(str, command)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                **options,
            )

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *exception: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def read(self) -> Result:
        """Wait for the next answer; the first one says that the process has loaded."""
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            raise SystemExit(f"a process ended with {self.process.wait()}, see {self.log}")
        return json.loads(line)

    def ask(self, question: str = "go") -> Result:
        """Send a line, and wait for its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{question}\n")
        self.process.stdin.flush()
        return self.read()


def compare_workers(
    commands: Mapping[str, Iterable[object]],
    logs: Path,
    sizes: Mapping[str, int],
    rounds: int,
    **options: Any,
) -> dict[str, Result]:
    """Let systems in processes of their own take turns, after one round to warm up.

    commands (Mapping[str, Iterable]): System -> arguments of Python.
    logs (Path): Folder of their logs.
    RETURNS (dict): System -> see `summarize_rounds`.
    """
    logs.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for name, command in commands.items():
            worker = Worker(command, logs / f"{name.replace(' ', '-')}.log", **options)
            workers[name] = stack.enter_context(worker)
        for worker in workers.values():
            worker.read()
        asks = {name: worker.ask for name, worker in workers.items()}
        answers = take_turns(asks, rounds, warm_ups=1, title=logs.name)
    return {name: summarize_rounds(given, sizes) for name, given in answers.items()}


def serve(first: Callable[[], tuple[Any, Callable[[str], Any]]]) -> None:
    """Answer each line of standard input with a line of JSON: the other side of `Worker`.

    first (Callable): Loads the system, and returns the first answer and a function that answers
        a line.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    with contextlib.redirect_stdout(sys.stderr):
        loaded, answer = first()
        print(json.dumps(loaded), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(answer(line.rstrip("\n"))), file=answers, flush=True)
