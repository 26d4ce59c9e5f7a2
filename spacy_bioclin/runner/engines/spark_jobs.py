"""Annotate in jobs of Spark, on this machine or on a cluster."""

import json
import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from secrets import token_hex
from threading import Event
from typing import Any, NamedTuple

from ...errors import BioclinError
from ...notices import describe, hide_texts
from ...parallel import WorkerDied, answer, map_in_order
from ..parquet import import_pyarrow
from ..parts import Part
from ..work import Done
from .deadly import work_around_deadly

Start = Callable[[], Callable[[Part], Done]]
PARTS_PER_WORKER = 4  # of a job, so that what Spark needs to plan one is little beside its work
JOBS = 2  # at the same time, so that no worker waits for the last part of a job
SCHEMA = "number long, done binary, error string"


class SparkEngine:
    """Annotate in jobs of Spark: in the session of spark-submit, or in one of this machine.

    workers (int): Number of tasks that a job is cut into, and of processes of a session that is
        started here.
    gpu (bool): Let each task use the GPU that Spark assigns to it.
    RAISES (BioclinError): pyspark or Java is not installed.
    """

    name = "spark"
    remedy = (
        "use fewer workers with --processes, give them more memory, and check that each node has "
        "spacy-bioclin and the pipeline"
    )

    def __init__(self, workers: int, *, gpu: bool = False) -> None:
        self.workers, self.gpu = workers, gpu
        self._version = check_spark()

    def describe(self) -> dict[str, Any]:
        """Describe the engine for the record of a run."""
        return {"name": self.name, "workers": self.workers, "version": self._version}

    def map(self, start: Start, parts: Iterable[Part]) -> Iterator[tuple[Part, Done]]:
        """Make parts. See `LocalEngine.map`."""
        session, is_own = open_session(self.workers)
        jobs = _Jobs(session, MakeParts(start, token_hex(8), self.gpu), self.workers)

        def work(some: list[Part]) -> list[Done]:
            try:
                return jobs.run(some)
            except WorkerDied:
                return [work_around_deadly(jobs, part, self.remedy) for part in some]

        stream = iter(parts)
        n = PARTS_PER_WORKER * self.workers
        waves = iter(lambda: list(islice(stream, n)), [])
        try:
            for some, made in map_in_order(work, waves, JOBS, jobs.close):
                yield from zip(some, made, strict=True)
        finally:
            if is_own:
                session.stop()


class MakeParts(NamedTuple):
    """Make parts in a worker of Spark.

    start (Callable): Called once in each process; gives the function that makes a part.
    token (str): Identifies the run: a process may have worked for another one.
    gpu (bool): Use the GPU of the task.
    """

    start: Start
    token: str
    gpu: bool

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Make the parts of Arrow batches: what `mapInArrow` calls."""
        pa, _ = import_pyarrow()
        hide_texts()
        for batch in batches:
            for row in batch.to_pylist():
                done, error = answer(self.make, row["part"])
                said = None if error is None else describe(error)
                made = {"number": [row["number"]], "done": [done], "error": [said]}
                yield pa.RecordBatch.from_pydict(
                    made, pa.schema([("number", "int64"), ("done", "binary"), ("error", "string")])
                )

    def make(self, data: bytes) -> bytes:
        """Make a part that was pickled by the command."""
        if self.token not in _MADE:
            _MADE.clear()
            if self.gpu:
                _choose_gpu()
            _MADE[self.token] = self.start()
        return encode_done(_MADE[self.token](pickle.loads(data)))


_MADE: dict[str, Callable[[Part], Done]] = {}  # token of the run -> what makes a part


def _choose_gpu() -> None:
    """Let this process see the GPU that Spark has assigned to the task, and no other."""
    from pyspark import TaskContext

    context = TaskContext.get()
    resources = context.resources() if context is not None else {}
    if "gpu" in resources:
        os.environ["CUDA_VISIBLE_DEVICES"] = resources["gpu"].addresses[0]


def encode_done(done: Done) -> bytes:
    """Write a finished part as a line about it and its data."""
    head = {
        "counts": done.counts,
        "refused": list(done.refused),
        "quarantined": list(done.quarantined),
    }
    return json.dumps(head, ensure_ascii=False).encode("utf-8") + b"\n" + done.data


def decode_done(content: bytes) -> Done:
    """Read what `encode_done` wrote."""
    line, _, data = content.partition(b"\n")
    head = json.loads(line)
    return Done(data, head["counts"], head["refused"], head["quarantined"])


class _Jobs:
    """Run jobs in a session."""

    def __init__(self, session: Any, make_parts: MakeParts, workers: int) -> None:
        self._session, self._make_parts, self._workers = session, make_parts, workers
        self._closed = Event()

    def work(self, part: Part) -> Done:
        """Make a part in a job by itself."""
        [done] = self.run([part])
        return done

    def run(self, parts: list[Part]) -> list[Done]:
        """Make parts.

        RAISES (WorkerDied): A worker died.
        RAISES (BioclinError): The work failed.
        """
        pa, _ = import_pyarrow()
        batches = [
            pa.RecordBatch.from_pydict({"number": [i], "part": [pickle.dumps(part)]})
            for i, part in enumerate(parts)
        ]
        frame = self._session.createDataFrame(pa.Table.from_batches(batches))
        made = frame.coalesce(self._workers).mapInArrow(self._make_parts, SCHEMA)
        try:
            rows = made.toArrow().to_pylist()
        except Exception as error:
            if self._closed.is_set():
                raise CancelledError from None
            if is_death(error):
                raise WorkerDied() from None
            raise BioclinError(
                f"--engine spark: a job failed with {type(error).__name__}; the log of Spark says "
                "why, if `spark.log.level` lets it"
            ) from None
        for row in rows:
            if row["error"] is not None:
                raise BioclinError(row["error"])
        rows.sort(key=lambda row: row["number"])
        return [decode_done(row["done"]) for row in rows]

    def close(self) -> None:
        """Cancel all jobs."""
        self._closed.set()
        self._session.sparkContext.cancelAllJobs()


def is_death(error: Exception) -> bool:
    """Tell whether a job failed because a process or a node died."""
    signs = (
        "Python worker exited",
        "Python worker failed",
        "ExecutorLost",
        "executor lost",
        "EOFException",
        "Connection reset",
    )
    return any(sign.lower() in str(error).lower() for sign in signs)


def open_session(workers: int) -> tuple[Any, bool]:
    """Open a session of Spark.

    workers (int): Processes of a session that is started here.
    RETURNS (tuple): The session, and whether it was started here.
    RAISES (BioclinError): Spark does not start.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    with suppress(PySparkException):  # there is none
        return SparkSession.active(), False
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # not of spark-submit
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(f"local[{workers}]")
        for name, value in {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.io.encryption.enabled": "true",  # parts may be in its files for a moment
            "spark.log.level": "OFF",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }.items():
            builder = builder.config(name, value)
    # Its warnings are about versions of pandas, and repeat in each thread.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    quiet = nullcontext() if "PYSPARK_GATEWAY_PORT" in os.environ else _without_stderr()
    try:
        with quiet:
            return builder.appName("bioclin run").getOrCreate(), True
    except Exception as error:
        raise BioclinError(
            f"--engine spark: Spark does not start ({type(error).__name__}); check that `java "
            "-version` says 17 or later, or use --engine local"
        ) from None


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Let processes that start in the block have no stderr: Java's log may quote anything."""
    sys.stderr.flush()
    old = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(old, 2)
        os.close(old)
        os.close(nowhere)


def check_spark() -> str:
    """Check that Spark can start.

    RETURNS (str): Its version.
    RAISES (BioclinError): pyspark or Java is missing.
    """
    try:
        import pyspark
    except ImportError:
        raise BioclinError(
            '--engine spark needs pyspark: pip install "spacy-bioclin[spark]", or use --engine '
            "local"
        ) from None
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and shutil.which("java", path=f"{home}/bin")):
        raise BioclinError(
            "--engine spark needs Java 17 or later: install it (openjdk-17-jre-headless on "
            "Debian), or set JAVA_HOME; or use --engine local"
        )
    version: str = pyspark.__version__
    return version
