"""Processes of `bioclin` that start at once: forks of one that has imported the libraries.

To import them takes seconds of the processor for each process. The one that is forked has no other
thread, so nothing that a fork copies is locked.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.hostile.code import ROOT

WAIT = 300  # seconds, for machines that are busy
# Each line of its input is a command to start or a process to wait for. The fork leaves the loop
# and becomes the command, so that it ends as every process of Python ends.
SERVER = """
import gc, importlib.metadata, json, os, runpy, signal, sys
import catalogue, faker, spacy, spacy_transformers
import spacy_bioclin.cli, spacy_bioclin.cli.deid.deid, spacy_bioclin.cli.run.annotate
from spacy_bioclin.deid import make_pipeline

make_pipeline("es", rules_only=True)("Paciente Ana Pérez, visto el 3/4/2020.")
gc.collect()
gc.freeze()  # else each fork copies all objects when they are looked through
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "wait" in asked:
        pid, status = os.waitpid(asked["wait"], os.WNOHANG if asked["poll"] else 0)
        print(json.dumps(os.waitstatus_to_exitcode(status) if pid else None), flush=True)
        continue
    pid = os.fork()
    if pid == 0:
        break
    print(pid, flush=True)
else:
    os._exit(0)
os.setsid()
os.chdir(asked["folder"])
for number, path in enumerate((os.devnull, asked["out"], asked["err"])):
    opened = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(opened, number)
    os.close(opened)
sys.stdin = open(0)
os.environ.clear()
os.environ.update(asked["environment"])
sys.path[:0] = os.environ.get("PYTHONPATH", "").split(os.pathsep)
found = importlib.metadata.entry_points()
catalogue.AVAILABLE_ENTRY_POINTS = found
sys.argv = ["bioclin", *asked["arguments"]]
exec(asked["before"])
runpy.run_module("spacy_bioclin", run_name="__main__", alter_sys=True)
"""


class Done(NamedTuple):
    """How a command has ended."""

    returncode: int
    stdout: str
    stderr: str


class Started:
    """A process of `bioclin`, in a session of its own. It has the methods of subprocess.Popen."""

    def __init__(self, commands: "Commands", pid: int, out: Path, err: Path) -> None:
        self._commands, self._out, self._err = commands, out, err
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Give the exit status, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._commands.ask(wait=self.pid, poll=True)
        return self.returncode

    def communicate(self, timeout: float = WAIT) -> tuple[str, str]:
        """Wait for the end.

        RETURNS (tuple[str, str]): Standard output and standard error.
        RAISES (subprocess.TimeoutExpired): It runs on.
        """
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("bioclin", timeout)
            time.sleep(0.01)
        return self._out.read_text("utf-8"), self._err.read_text("utf-8")

    def send_signal(self, number: int) -> None:
        """Send a signal to this process alone."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill this process alone."""
        self.send_signal(signal.SIGKILL)


class Commands:
    """The process that is forked.

    folder (Path): Where the output of commands is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._n = folder, 0
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._read() == "ready"

    def _read(self) -> str:
        assert self._server.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._server.stdout], [], [], WAIT)
            assert ready, "the process that is forked hangs"
            got = os.read(self._server.stdout.fileno(), 1)
            assert got, "the process that is forked has ended"
            line += got
        return line.decode().strip()

    def ask(self, **asked: Any) -> Any:
        """Ask the process for something, and read its answer."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(asked).encode() + b"\n")
        return json.loads(self._read())

    def start(
        self,
        *arguments: object,
        folder: Path,
        before: str = "",
        environment: dict[str, str] | None = None,
    ) -> Started:
        """Start a command.

        before (str): Code that its process runs first.
        """
        self._n += 1
        out, err = (self._folder / f"{self._n}.{name}" for name in ("out", "err"))
        pid = self.ask(
            arguments=[str(each) for each in arguments],
            folder=str(folder),
            before=before,
            environment={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            out=str(out),
            err=str(err),
        )
        return Started(self, pid, out, err)

    def run(self, *arguments: object, folder: Path, **environment: str) -> Done:
        """Run a command to its end."""
        process = self.start(*arguments, folder=folder, environment=environment)
        out, err = process.communicate()
        assert process.returncode is not None
        return Done(process.returncode, out, err)

    def close(self) -> None:
        """End the process."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(WAIT)


def list_members(session: int) -> Iterator[int]:
    """List the processes of a session that still run."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                state, _, _, its_session = file.read().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(its_session) == session and state != "Z":
            yield int(entry)
