"""Let a function be killed at a chosen moment, as by `kill -9`: no handler runs, no buffer is
flushed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

KILLED = 137


def count_writes(act: Callable[[], object]) -> int:
    """Count the renames, links and removals of files that a function makes; it runs in a fork."""
    read, write = os.pipe()

    def report() -> None:
        calls = _watch(0)
        act()
        os.write(write, str(len(calls)).encode())

    assert in_fork(report) == 0
    os.close(write)
    with os.fdopen(read) as file:
        return int(file.read())


def die_at_write(act: Callable[[], object], number: int) -> bool:
    """Run a function in a fork that is killed just before such a call.

    number (int): Of the call, from 1.
    RETURNS (bool): Whether it was killed; False if there were fewer calls.
    """

    def run() -> None:
        _watch(number)
        act()

    code = in_fork(run)
    assert code in (0, KILLED), code
    return code == KILLED


def in_fork(act: Callable[[], object]) -> int:
    """Run a function in a fork. RETURNS (int): Its exit status; 1 for an error."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _watch(at: int) -> list[str]:
    """Count calls that change the folder, in this process; die before the one of that number."""
    calls: list[str] = []
    patch = pytest.MonkeyPatch()
    for name in ("rename", "replace", "rmdir", "mkdir"):
        real = getattr(os, name)

        def changed(*args: object, _real: Callable = real, _name: str = name, **kw: object):  # type: ignore[no-untyped-def, type-arg]
            calls.append(_name)
            if len(calls) == at:
                os._exit(KILLED)
            return _real(*args, **kw)

        patch.setattr(os, name, changed)
    return calls


def leftovers(folder: Path) -> list[str]:
    """List what hidden files and folders are in a folder."""
    return sorted(path.name for path in folder.rglob(".*"))
