"""Ctrl-C, SIGTERM, SIGHUP, dead workers, closed pipes: one line, an exit status, nothing left."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.cli.faults import report_faults
from spacy_bioclin.errors import BioclinError
from tests.hostile.commands import list_members

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="Linux")
WAIT = 60  # seconds, for machines that are busy
BIOCLIN = (sys.executable, "-W", "ignore", "-m", "spacy_bioclin")
RULES = ("--lang", "es", "--rules-only")
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def start(*command, folder, **options):
    """Start a command as a terminal does: in a group of its own."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    arguments = [str(each) for each in command]
    return subprocess.Popen(
        arguments, cwd=folder, start_new_session=True, text=True, **{**pipes, **options}
    )


def wait_for(condition, process=None):
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.01)


def has_handled(process, number):
    """Check whether a process has ended, or ignores a signal, as it does from the first on."""
    if not any(pid == process.pid for pid in list_members(process.pid)):
        return True
    status = Path(f"/proc/{process.pid}/status").read_text()
    ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
    return bool(ignored >> (number - 1) & 1)


def interrupt(process, number=signal.SIGINT, *, group=True, times=1):
    """Send a signal, again when the first one has been handled, and wait for the end.

    RETURNS (tuple[str, str]): Standard output, and standard error without warnings.
    """
    for _ in range(times):
        os.killpg(process.pid, number) if group else process.send_signal(number)
        if times > 1:
            wait_for(lambda: has_handled(process, number))
    out, err = process.communicate(timeout=WAIT)
    wait_for(lambda: not [*list_members(process.pid)])
    lines = [line for line in err.splitlines() if not line.startswith("warning: ")]
    return out, "\n".join(lines)


def script(folder, code):
    """Start a small command under the same watch as `bioclin`."""
    head = """
        import hashlib, os, signal, sys, time
        from pathlib import Path
        from spacy_bioclin.interrupts import watched
        from spacy_bioclin.outputs import open_atomic, open_folder
        from spacy_bioclin.parallel import map_parts

        def ready():
            Path("ready").touch()
    """
    path = folder / "script.py"
    path.write_text(textwrap.dedent(head) + textwrap.dedent(code))
    process = start(sys.executable, path, folder=folder)
    wait_for((folder / "ready").exists, process)
    return process


def left_in(folder):
    return {path.name for path in folder.iterdir()} - {"ready", "script.py"}


slow = pytest.mark.slow
STUCK = {
    "waiting": "time.sleep(600)",
    "in C": "hashlib.pbkdf2_hmac('sha256', b'', b'', 2_000_000_000)",
    "deaf": """
        while True:
            try:
                time.sleep(600)
            except BaseException:
                pass""",
    "in a clean-up": """
        try:
            time.sleep(600)
        finally:
            time.sleep(600)""",
}


@pytest.mark.parametrize(
    ("kind", "number"),
    [("waiting", number) for number in STATUS]
    + [("in C", signal.SIGINT)]
    + [pytest.param(kind, signal.SIGINT, marks=slow) for kind in ("deaf", "in a clean-up")],
)
def test_whatever_the_main_thread_does(kind, number, tmp_path):
    body = textwrap.indent(textwrap.dedent(STUCK[kind]).strip(), " " * 8)
    process = script(
        tmp_path,
        f"""
with watched(), open_atomic(Path("out")) as file, open_folder(Path("folder")) as folder:
    file.write("half")
    (folder / "half").touch()
    ready()
    if True:
{body}
""",
    )
    _, err = interrupt(process, number, times=2)
    assert process.returncode == STATUS[number]
    assert err.startswith("bioclin: ") and len(err.splitlines()) == 1
    assert "run the same command again" in err
    assert left_in(tmp_path) == set()


def test_a_rename_in_two_steps_is_not_interrupted(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").touch()
    process = script(
        tmp_path,
        """
        rename = Path.rename
        def interrupted(self, target):
            rename(self, target)
            os.kill(os.getpid(), signal.SIGINT)
        Path.rename = interrupted
        with watched(), open_folder(Path("folder")) as folder:
            (folder / "new").touch()
            ready()
        """,
    )
    process.communicate(timeout=WAIT)
    assert process.returncode == 130
    assert left_in(tmp_path) == {"folder"}
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["new"]


WORKERS = """
        def work(part):
            ready()
            time.sleep(600)
        def begin():
            return work
        if __name__ == "__main__":
            with watched():
                list(map_parts(begin, range(9), 2))
"""


@pytest.mark.parametrize("group", [True, pytest.param(False, marks=slow)])
def test_workers_that_hang_end_with_the_command(group, tmp_path):
    process = script(tmp_path, WORKERS)
    _, err = interrupt(process, group=group)
    assert process.returncode == 130
    assert err == "bioclin: interrupted (Ctrl-C): nothing was written; run the same command again"


def test_workers_that_boot_print_nothing(tmp_path):
    begin = "def parts():\n            ready()\n            yield from range(9)\n        def begin"
    code = WORKERS.replace("def begin", begin).replace("range(9), 2", "parts(), 2")
    process = script(tmp_path, code.replace("ready()\n            time", "time"))
    _, err = interrupt(process)
    assert process.returncode == 130
    assert len(err.splitlines()) == 1


def test_a_worker_that_waits_for_its_task_prints_nothing(tmp_path):
    slowly = """
        from multiprocessing import util
        spawn = util.spawnv_passfds
        def spawn_slowly(*arguments):
            pid = spawn(*arguments)
            if "--multiprocessing-fork" in arguments[1]:
                ready()
                time.sleep(0.3)  # the new process reads what it has to do, which is not written yet
            return pid
        util.spawnv_passfds = spawn_slowly
"""
    process = script(tmp_path, slowly + WORKERS.replace("ready()\n            ", ""))
    _, err = interrupt(process)
    assert process.returncode == 130
    assert err == "bioclin: interrupted (Ctrl-C): nothing was written; run the same command again"


def test_what_the_parent_ignores_stays_ignored(tmp_path):
    """`nohup`, and jobs in the background of a script."""
    process = script(
        tmp_path,
        """
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with watched():
            ready()
            while not Path("go").exists():
                time.sleep(0.01)
        """,
    )
    process.send_signal(signal.SIGHUP)  # it is there before the file: it would end the loop
    (tmp_path / "go").touch()
    process.communicate(timeout=WAIT)
    assert process.returncode == 0


@pytest.mark.parametrize(
    "module", ["spacy_bioclin.interrupts", "spacy_bioclin.cli", pytest.param("spacy", marks=slow)]
)
def test_ctrl_c_while_the_command_starts(module, tmp_path):
    """The signal comes when a module is about to be imported."""
    (tmp_path / "note.txt").write_text("Paciente de 40 años.")
    program = f"""
        import os, signal, sys

        class Interrupting:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}:
                    sys.meta_path.remove(self)
                    os.kill(os.getpid(), signal.SIGINT)

        sys.meta_path.insert(0, Interrupting())
        from spacy_bioclin.__main__ import main
        main()
    """
    command = (sys.executable, "-W", "ignore", "-c", textwrap.dedent(program))
    process = start(*command, "deid", "note.txt", "out.txt", *RULES, folder=tmp_path)
    _, err = process.communicate(timeout=WAIT)
    assert process.returncode == 130
    assert err == "bioclin: interrupted (Ctrl-C): nothing was written; run the same command again\n"
    assert left_in(tmp_path) == {"note.txt"}


@pytest.mark.parametrize(
    "when",
    ["in `with`", *(pytest.param(f"{when} the block", marks=slow) for when in ("before", "after"))],
)
def test_ctrl_c_between_the_lines(when, tmp_path):
    """The signal comes when no `try` of `watched` is open."""
    program = f"""
        import contextlib, os, signal
        from spacy_bioclin import __main__, cli
        from spacy_bioclin.interrupts import watch

        def then_interrupt(function):
            def run(*arguments):
                found = function(*arguments)
                os.kill(os.getpid(), signal.SIGINT)
                return found
            return run

        where, name = {{
            "before the block": (watch, "_install"),
            "in `with`": (contextlib._GeneratorContextManager, "__enter__"),
            "after the block": (watch, "_ignore_signals"),
        }}[{when!r}]
        cli.app = lambda: None
        setattr(where, name, then_interrupt(getattr(where, name)))
        __main__.main()
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    if when == "after the block":  # signals are ignored by then
        assert (done.returncode, done.stderr) == (0, "")
    else:
        line = "bioclin: interrupted (Ctrl-C): nothing was written; run the same command again\n"
        assert (done.returncode, done.stderr) == (130, line)


N = 350  # in four parts


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """Notes, and what becomes of them in a run that is not interrupted."""
    folder = tmp_path_factory.mktemp("notes")
    texts = (f"Paciente Juan Pérez, NHC {37 * i}, visto el 3/4/20{i % 25:02}." for i in range(N))
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "notes.jsonl").write_text(lines)
    done = CliRunner().invoke(app, deid(folder, folder / "wanted.jsonl"))
    assert done.exit_code == 0, done.output
    return folder


def deid(folder, out, *options):
    return ["deid", str(folder / "notes.jsonl"), str(out), *RULES, *options]


def go_on(notes, out):
    done = CliRunner().invoke(app, deid(notes, out, "--resume"))
    assert done.exit_code == 0, done.output
    assert out.read_bytes() == (notes / "wanted.jsonl").read_bytes()
    audits = [path.with_name(f"{path.name}.audit.json") for path in (out, notes / "wanted.jsonl")]
    assert audits[0].read_bytes() == audits[1].read_bytes()
    assert {path.name for path in out.parent.iterdir()} == {"out.jsonl", "out.jsonl.audit.json"}


# After the second part, the command waits for whatever the test does.
STOP = """
import time
from pathlib import Path
from spacy_bioclin.runner.work import Work

write = Work.write
def write_and_wait(self, index, *arguments, **options):
    write(self, index, *arguments, **options)
    if len(list(self.folder.glob("*.part"))) == 2 and not Path({go!r}).exists():
        Path({ready!r}).touch()
        while not Path({go!r}).exists():
            time.sleep(0.01)
Work.write = write_and_wait
"""


@pytest.fixture
def stopped(notes, commands, tmp_path, tmp_path_factory):
    """Start a run that waits after two parts. Returns it, and the file with which it goes on."""

    def begin(out, processes):
        beside = tmp_path_factory.mktemp("beside")
        ready, go = beside / "ready", beside / "go"
        command = deid(notes, out, "--processes", processes)
        code = STOP.format(ready=str(ready), go=str(go))
        process = commands.start(*command, folder=tmp_path, before=code)
        wait_for(ready.exists, process)
        return process, go

    return begin


# Each worker imports for seconds: with two, only on demand.
def with_two(*values):
    return pytest.param(*values, marks=pytest.mark.full)


@slow
@pytest.mark.parametrize(
    ("number", "processes", "group", "times"),
    [
        (signal.SIGINT, 1, True, 2),
        (signal.SIGTERM, 1, False, 1),
        (signal.SIGHUP, 1, True, 2),
        with_two(signal.SIGINT, 2, True, 1),
        with_two(signal.SIGINT, 2, False, 1),
        with_two(signal.SIGTERM, 2, True, 1),
    ],
)
def test_deid_says_how_to_go_on(number, processes, group, times, notes, stopped, tmp_path):
    out = tmp_path / "out.jsonl"
    process, _ = stopped(out, processes)
    _, err = interrupt(process, number, group=group, times=times)
    assert process.returncode == STATUS[number]
    assert len(err.splitlines()) == 1
    assert "2 finished parts are kept; run the same command again with --resume" in err
    assert {path.name for path in tmp_path.iterdir()} == {".out.jsonl.work"}
    go_on(notes, out)


@pytest.mark.full
def test_a_worker_that_is_killed(notes, stopped, tmp_path):
    out = tmp_path / "out.jsonl"
    process, go = stopped(out, 2)
    workers = [
        pid
        for pid in list_members(process.pid)
        if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()
    ]
    os.kill(workers[-1], signal.SIGKILL)
    go.touch()
    _, err = process.communicate(timeout=WAIT)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    wait_for(lambda: not [*list_members(process.pid)])
    # Another process did its part.
    assert out.read_bytes() == (notes / "wanted.jsonl").read_bytes()


def fail_with(error):
    def command():
        raise error

    with pytest.raises(typer.Exit) as ended:
        report_faults(command)()
    return ended.value.exit_code


class NoMemory(RuntimeError):
    """As torch raises it."""


NoMemory.__name__ = "OutOfMemoryError"


def test_every_error_is_one_line(capsys):
    rows = [
        (BioclinError("a: b"), 1, "bioclin: a: b"),
        (KeyboardInterrupt(), 130, "interrupted (Ctrl-C): nothing was written"),
        (MemoryError(), 1, "memory is not enough"),
        (NoMemory("secreto"), 1, "memory is not enough"),
        (RecursionError("secreto"), 1, "nested too deeply"),
        (OSError(errno.ENOSPC, "No space left on device", "out"), 1, "out: No space left"),
        (OSError("secreto"), 1, "unexpected OSError"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1, ""),
        (ValueError("secreto"), 1, "unexpected ValueError (test_signals.py, line"),
        (UnicodeDecodeError("utf-8", b"secreto", 0, 1, "secreto"), 1, "unexpected Unicode"),
        (ModuleNotFoundError("No module named 'foo'"), 1, "No module named 'foo'"),
        (SystemExit("a message"), 1, "a message"),
    ]
    for error, status, said in rows:
        assert fail_with(error) == status, said
        out, err = capsys.readouterr()
        assert out == "" and said in err and "secreto" not in err, (said, err)
        assert len(err.splitlines()) == bool(said), said


def test_the_traceback_is_there_for_who_wants_it(capsys, monkeypatch):
    monkeypatch.setenv("BIOCLIN_TRACEBACK", "1")
    assert fail_with(ValueError("what")) == 1
    assert "ValueError: what" in capsys.readouterr().err


@slow
@pytest.mark.parametrize("command", [["--help"], ["recipes", "list"]])
def test_a_pipe_that_nobody_reads(command, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*BIOCLIN, *command, folder=tmp_path, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=WAIT)
    assert process.returncode in (0, 1) and err == ""


def test_closed_streams(tmp_path):
    """A file must not take the number of a stream, or it gets what is printed."""
    command = "exec {} deid-key key <&- >&- 2>&-".format(" ".join(BIOCLIN))
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, timeout=WAIT, check=False)
    assert done.returncode == 0
    assert len((tmp_path / "key").read_text()) == 45
