"""The steps of the Containerfile, run in a chroot, where there is no engine.

The base is this machine's Python, and the dependencies are those of this environment, so that no
network is needed: what is tested is that the sources that are copied are enough to build and
install the package, and that the command works without privileges on files that it cannot write to.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.serving.test_container import FILE, ROOT, read_steps

for _name in ("fastapi", "uvicorn", "prometheus_client"):
    pytest.importorskip(_name, reason=f"the service needs {_name}")
pytestmark = pytest.mark.slow  # it builds and installs the package: 15 s

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
DEPENDENCIES = "/dependencies"
OFFLINE = "--no-index --no-deps --no-build-isolation --no-compile --quiet"
# What the container would do, from the first request to its end, as the user of the image.
CLIENT = """
import json, signal, subprocess, sys, urllib.request
service = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True)
url = service.stdout.readline().split()[3].replace("0.0.0.0", "127.0.0.1")
request = urllib.request.Request(url + "/deidentify", b'{"text": "Paciente Juan P\\u00e9rez."}',
                                 {"Content-Type": "application/json"})
answer = json.load(urllib.request.urlopen(request))
try:
    open("/venv/written", "w")
    answer["wrote"] = True
except OSError:
    answer["wrote"] = False
service.send_signal(signal.SIGTERM)
print(json.dumps({**answer, "status": service.wait()}))
"""


def can_mount() -> bool:
    """Check whether this process may mount folders in a namespace of its own."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("chroot"):
        return False
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", "mount --bind /usr /usr"], capture_output=True
    )
    return done.returncode == 0


def copy_sources(root: Path) -> None:
    """Do what the steps COPY say."""
    for step, rest in read_steps():
        if step != "COPY" or rest.startswith("--from"):
            continue
        *sources, target = shlex.split(rest)
        for source in sources:
            there = root / "src" / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, there, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                there.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, there)


def write_script(root: Path, packages: Path) -> str:
    """Write a script that mounts what the base has, does the steps RUN, and starts the command."""
    lines = ["set -eu", f"mount --bind {root} {root}"]
    system = {Path(each): Path(each) for each in SYSTEM if Path(each).exists()}
    base = Path(sys.base_prefix)
    for folder, target in {**system, base: base, packages: Path(DEPENDENCIES)}.items():
        if folder.is_symlink():
            (root / folder.name).symlink_to(os.readlink(folder))
        elif folder not in system and target.is_relative_to("/usr"):
            continue  # it is there
        else:
            inside = root / target.relative_to("/")
            inside.mkdir(parents=True, exist_ok=True)
            lines += [f"mount --bind {folder} {inside}", f"mount -o remount,bind,ro {inside}"]
    for device in ("null", "urandom", "random", "zero"):
        (root / "dev" / device).touch()
        lines.append(f"mount --bind /dev/{device} {root}/dev/{device}")
    lines.append(f"mount -t proc proc {root}/proc")
    args = dict(re.findall(r'^ARG (\w+)="(.*)"$', FILE.read_text("utf-8"), re.MULTILINE))
    args["PIP_OPTIONS"] = OFFLINE
    exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in args.items())
    steps = read_steps()
    for step, rest in steps:
        if step == "RUN":
            command = f"cd /src; {exports}{rest}"
            lines.append(f"chroot {root} sh -euc {shlex.quote(command)}")
    lines += [f"mount -o remount,bind,ro {root}", f"mount -t tmpfs tmpfs {root}/tmp"]
    found = dict(steps)
    serve = [*json.loads(found["ENTRYPOINT"]), *json.loads(found["CMD"]), "--port", "0"]
    set_env = found["ENV"].replace("$PATH", '"$PATH"')
    client = CLIENT.replace("COMMAND", repr(serve))
    run = f"export {set_env}; cd /; exec python -c {shlex.quote(client)}"
    user = f"--userspec={found['USER']}:{found['USER']}"
    lines.append(f"exec chroot {user} {root} sh -euc {shlex.quote(run)}")
    return "\n".join(lines)


def test_the_steps_of_the_container_run(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("only root, with unshare and chroot, can run the steps of a Containerfile here")
    root = tmp_path / "root"
    for folder in ("dev", "proc", "tmp", "src", "base", "etc"):
        (root / folder).mkdir(parents=True)
    shutil.copytree("/etc", root / "etc", dirs_exist_ok=True, symlinks=True)
    copy_sources(root)
    (root / "base" / "python").symlink_to(Path(sys.base_prefix, "bin", "python3"))
    packages = Path(sysconfig.get_paths()["purelib"])
    script = write_script(root, packages)
    environment = {
        "PATH": "/base:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": DEPENDENCIES,
        "OMP_NUM_THREADS": "1",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["pipeline"]["name"] == "es_bioclin_sm" and "Juan" not in answer["text"]
    assert answer["status"] == 0 and answer["wrote"] is False
