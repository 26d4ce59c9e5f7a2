"""Check that a wheel works where it is installed, in a new environment without network."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from ..errors import BioclinError

TIMEOUT = 120.0  # seconds for one check
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "PIP_NO_INDEX": "1",
    "PIP_CONFIG_FILE": os.devnull,
}


class Check(NamedTuple):
    """The outcome of a check.

    name (str): Name of the check.
    passed (bool): Whether it passed.
    note (str): Details, or what is wrong.
    seconds (float): Time it took.
    """

    name: str
    passed: bool
    note: str
    seconds: float


def check_wheel(
    wheel: Path,
    *,
    against: Path | None = None,
    env: Path | None = None,
    timeout: float = TIMEOUT,
) -> Iterator[Check]:
    """Install a wheel in a new environment and run every check of `probe` there.

    wheel (Path): A wheel of `bioclin package` or `spacy package`.
    against (Path | None): Folder of a pipeline that must give the same results.
    env (Path | None): Folder for the environment; None for a temporary one.
    timeout (float): Seconds for one check. A check that hangs has failed.
    YIELDS (Check): The outcomes in order, up to the first failed one.
    RAISES (BioclinError): The file is not a wheel, or the environment cannot be made.
    """
    package = package_name(wheel)
    if against is not None and not (against / "config.cfg").is_file():
        raise BioclinError(f"--against {against}: not a pipeline, it has no config.cfg")
    with tempfile.TemporaryDirectory(prefix="bioclin-check-") as folder:
        start = time.perf_counter()
        python = install_apart(wheel, env or Path(folder) / "env")
        yield Check("install", True, wheel.name, time.perf_counter() - start)
        command = [str(python), "-I", "-m", "spacy_bioclin.packaging.probe", package, folder]
        if against is not None:
            command.append(str(against.resolve()))
        yield from _follow(command, folder, timeout)


def package_name(wheel: Path) -> str:
    """Get the name by which `spacy.load` finds the pipeline of a wheel.

    RAISES (BioclinError): The file does not exist, or its name is not that of a wheel.
    """
    if not wheel.is_file():
        raise BioclinError(f"{wheel}: no such file; make one with `bioclin package`")
    try:
        parse_wheel_filename(wheel.name)
    except InvalidWheelFilename:
        raise BioclinError(
            f"{wheel}: not the name of a wheel, which is NAME-VERSION-py3-none-any.whl"
        ) from None
    return wheel.name.split("-")[0]


def install_apart(wheel: Path, env: Path) -> Path:
    """Install a wheel alone into a new virtual environment that borrows its dependencies.

    The environment sees the packages of this one through a .pth file: `--system-site-packages`
    would look past a virtual environment to the Python that it was made from. The wheel itself is
    in the new environment only, and the current one is left as it is.

    wheel (Path): The wheel.
    env (Path): Folder for the environment; an older environment there is replaced.
    RETURNS (Path): Its Python.
    RAISES (BioclinError): The folder holds something else, or pip refuses.
    """
    if env.exists() and any(env.iterdir()) and not (env / "pyvenv.cfg").is_file():
        raise BioclinError(f"{env}: not empty and not a virtual environment; give a new folder")
    venv.create(env, with_pip=False, clear=True)
    windows = os.name == "nt"
    # Not resolved: its link to the Python it was made from would lead out of the environment.
    python = env.absolute() / ("Scripts/python.exe" if windows else "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    offline = ["--no-deps", "--no-index", "--no-cache-dir", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, *offline, str(wheel.resolve())],
        capture_output=True,
        text=True,
        env=offline_environment(os.environ),
        check=False,
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise BioclinError(f"pip cannot install {wheel}: {reason[0]}")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site_packages = env / ("Lib/site-packages" if windows else f"lib/{version}/site-packages")
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    lines = [f"import site; site.addsitedir({path!r})\n" for path in sorted(borrowed)]
    (site_packages / "borrowed.pth").write_text("".join(lines), encoding="utf-8")
    return python


def offline_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Copy the environment variables without what leads to the network: proxies, index, hub."""
    kept = {
        key: value
        for key, value in environment.items()
        if not key.lower().endswith("_proxy") and not key.startswith(("PIP_", "PYTHON"))
    }
    return {**kept, **OFFLINE}


def _follow(command: list[str], folder: str, timeout: float) -> Iterator[Check]:
    """Run the probe and pass its outcomes on; end it if it is silent for `timeout` seconds."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            env=offline_environment(os.environ),
            start_new_session=True,  # so that its workers can be ended with it
        )
        try:
            yield from _read_checks(process, errors, timeout)
        finally:
            _end(process)


def _read_checks(
    process: "subprocess.Popen[str]", errors: IO[str], timeout: float
) -> Iterator[Check]:
    assert process.stdout is not None
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True).start()
    running, start = "start Python", time.perf_counter()
    while True:
        try:
            line = lines.get(timeout=timeout)
        except queue.Empty:
            yield Check(running, False, f"did not end within {timeout:g} s", timeout)
            return
        if not line:
            break
        message: dict[str, Any] = json.loads(line)
        if "begin" in message:
            running, start = message["begin"], time.perf_counter()
        else:
            yield Check(**message, seconds=time.perf_counter() - start)
            running = ""
            if not message["passed"]:
                return
    if process.wait() or running:
        errors.seek(0)
        reason = errors.read().strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
        yield Check(running or "end", False, reason[0], time.perf_counter() - start)


def _pump(stream: IO[str], lines: "queue.Queue[str]") -> None:
    for line in stream:
        if line.startswith("{"):
            lines.put(line)
    lines.put("")


def _end(process: "subprocess.Popen[str]") -> None:
    """End the probe and its workers, if they still run."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
