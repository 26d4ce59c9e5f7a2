"""What `bioclin deid` does when something is wrong: each fault through the real command line.

For each: the exit status, the first line of the message, whether any word of a note stands in what
was printed, and what is on the disk afterwards.

    python -m benchmarks.deid.faults
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import write_result

DEID = [sys.executable, "-m", "spacy_bioclin", "deid"]
WARNING = "warning: without --pipeline"
N_NOTES = 3000
KEY = "a key for this benchmark"
# The DNIs have right check letters and are nobody's.
DNI = ("00000000T", "00000001R", "00000002W", "00000003A", "00000004G")
GERMAN = (
    "Der Patient wurde gestern wegen starker Schmerzen in die Klinik gebracht und gut untersucht. "
    "Nach der Untersuchung zeigte sich eine leichte Entzündung, die wir mit Antibiotika behandelt "
    "haben. Heute geht es ihm besser, er isst wieder und schläft gut. Morgen kann er nach Hause "
    "gehen, wenn die Werte stimmen und kein Fieber mehr auftritt."
)
# On a disk of 300 KiB that goes away with the namespace: no privileges are needed.
ON_TINY_DISK = """
mount -t tmpfs -o size=300k tmpfs "$DISK" && "$@"; status=$?; ls -AR "$DISK"; exit $status
"""


class Case(NamedTuple):
    """A fault.

    arguments (list[str]): Of the command, in its folder.
    files (dict[str, str | bytes]): What lies there first.
    key (bool): The environment has a key.
    """

    arguments: list[str]
    files: dict[str, str | bytes]
    key: bool = True


def note(i: int) -> str:
    name, phone = "D. Iker Zubizarreta", "612345678"
    return f"Paciente: {name}, DNI: {DNI[i % 5]}. Tel.: {phone}. Ingresa por neumonía número {i}."


def notes(n: int) -> str:
    rows = ({"id": f"r{i}", "text": note(i)} for i in range(n))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


JSONL = ["in.jsonl", "out.jsonl"]
FEW = {"in.jsonl": notes(3)}
BROKEN = {"in.jsonl": notes(1) + notes(1)[:60] + "\n" + notes(1)}
SURROGATES = {"policy.yml": "default: surrogate\n"}
CASES = {
    "missing key": Case([*JSONL, "--policy", "policy.yml"], {**FEW, **SURROGATES}, key=False),
    "key that can be guessed": Case(
        [*JSONL, "--policy", "policy.yml", "--key-file", "key"], {**FEW, **SURROGATES, "key": "123"}
    ),
    "unknown policy label": Case(
        [*JSONL, "--policy", "policy.yml"], {**FEW, "policy.yml": "operators: {PATIEN: mask}\n"}
    ),
    "unknown operator": Case(
        [*JSONL, "--policy", "policy.yml"], {**FEW, "policy.yml": "default: hide\n"}
    ),
    "unreadable row of JSONL": Case(JSONL, BROKEN),
    "unreadable row, --skip-bad": Case([*JSONL, "--skip-bad"], BROKEN),
    "CSV row with a column too many": Case(
        ["in.csv", "out.csv"], {"in.csv": f'id,text\n1,"{note(1)}"\n2,{note(2)}\n'}
    ),
    "null text": Case(JSONL, {"in.jsonl": '{"id": "Zubizarreta", "text": null}\n'}),
    "text file that is not UTF-8": Case(
        ["in.txt", "out.txt"], {"in.txt": note(1).encode("latin-1")}
    ),
    "Parquet that is none": Case(["in.parquet", "out.parquet"], {"in.parquet": note(1)}),
    "note in a third language": Case(["in.txt", "out.txt"], {"in.txt": GERMAN}),
    "empty file": Case(["in.txt", "out.txt"], {"in.txt": ""}),
    "empty JSONL": Case(JSONL, {"in.jsonl": ""}),
    "empty CSV": Case(["in.csv", "out.csv"], {"in.csv": ""}),
    "PHI in another column": Case(
        JSONL, {"in.jsonl": json.dumps({"nombre": "Zubizarreta, Iker", "text": note(1)}) + "\n"}
    ),
    "PHI in a file name": Case(["in", "out"], {"in/Iker Zubizarreta.txt": note(1)}),
    "OUT is IN": Case(["in.jsonl", "in.jsonl", "--overwrite"], FEW),
    "OUT exists": Case(JSONL, {**FEW, "out.jsonl": "old\n"}),
    "pipeline that is not there": Case([*JSONL, "--pipeline", "nowhere"], FEW),
}


def words_of(files: dict[str, str | bytes]) -> set[str]:
    """RETURNS (set[str]): Words of the notes that no message of ours has."""
    text = " ".join(c.decode("latin-1") if isinstance(c, bytes) else c for c in files.values())
    own = {"nombre", "patient"}  # a column; and a label
    return {word for word in re.findall(r"\w{5,}", text.lower()) if word not in own}


def environment(*, key: bool) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "BIOCLIN_DEID_KEY"}
    return {**kept, **({"BIOCLIN_DEID_KEY": KEY} if key else {})}


def describe(
    folder: Path, done: "subprocess.CompletedProcess[str]", words: set[str]
) -> dict[str, Any]:
    """RETURNS (dict): What happened."""
    said = done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(WARNING)]
    state = {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return {
        "exit": done.returncode,
        "message": [line.replace(f"{folder}/", "") for line in lines],
        "words_of_notes_in_it": sorted(word for word in words if word in said.lower()),
        "traceback": "Traceback" in said,
        "bytes_on_disk": state,
    }


def run_case(case: Case, folder: Path) -> dict[str, Any]:
    for name, content in case.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        (folder / name).write_bytes(data)
    before = {name: (folder / name).read_bytes() for name in case.files}
    done = run_deid(folder, *case.arguments, key=case.key)
    # The unreadable Parquet and text are notes; a policy and a key are none.
    inputs = {name: content for name, content in case.files.items() if name.startswith("in")}
    found = describe(folder, done, words_of(inputs))
    changed = [name for name, data in before.items() if (folder / name).read_bytes() != data]
    return {**found, "input_changed": changed}


def run_deid(folder: Path, *arguments: str, key: bool = True) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*DEID, *arguments, "--lang", "es"],
        cwd=folder,
        env=environment(key=key),
        capture_output=True,
        text=True,
        check=False,
    )


def run_full_disk(folder: Path) -> dict[str, Any]:
    """The work folder does not fit on the disk."""
    (folder / "in.jsonl").write_text(notes(N_NOTES), "utf-8")
    disk = folder / "disk"
    disk.mkdir()
    shell = ["unshare", "-rm", "sh", "-c", ON_TINY_DISK, "sh"]
    command = [*shell, *DEID, "in.jsonl", "disk/out.jsonl", "--lang", "es"]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environment(key=True), "DISK": str(disk)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = describe(folder, done, words_of({"in": note(0)}))
    listed = done.stdout.replace(f"{folder}/", "").split()
    return {**found, "bytes_on_disk": None, "names_on_the_full_disk": listed}


def run_killed(folder: Path) -> dict[str, Any]:
    """kill -9 after three parts, a try with another policy, then --resume."""
    (folder / "in.jsonl").write_text(notes(N_NOTES), "utf-8")
    (folder / "policy.yml").write_text("default: redact\n")
    whole = run_deid(folder, "in.jsonl", "whole.jsonl")
    assert whole.returncode == 0, whole.stderr
    command = [*DEID, *JSONL, "--lang", "es"]
    with subprocess.Popen(command, cwd=folder, env=environment(key=True)) as process:
        while len(list(folder.glob(".out.jsonl.work/*.part"))) < 3:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    words = words_of({"in": note(0)})
    steps: dict[str, Any] = {
        "killed": {
            "exit": process.returncode,
            "out_exists": (folder / "out.jsonl").exists(),
            "parts_on_disk": len(list(folder.glob(".out.jsonl.work/*.part"))),
            "parts_in_all": -(-N_NOTES // 100),
        }
    }
    for name, options in {
        "again": [],
        "--resume with another policy": ["--resume", "--policy", "policy.yml"],
        "--resume": ["--resume"],
    }.items():
        steps[name] = describe(folder, run_deid(folder, *JSONL, *options), words)
        del steps[name]["bytes_on_disk"]
    digests = [
        hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("whole.jsonl", "out.jsonl")
    ]
    steps["identical_to_an_uninterrupted_run"] = digests[0] == digests[1]
    steps["left_behind"] = sorted(path.name for path in folder.glob(".*"))
    return steps


def main() -> None:
    faults: dict[str, Any] = {}
    runs = {name: lambda folder, case=case: run_case(case, folder) for name, case in CASES.items()}
    runs |= {"disk full": run_full_disk, "kill -9 midway": run_killed}
    for name, run in runs.items():
        with tempfile.TemporaryDirectory() as folder:
            faults[name] = run(Path(folder))
        shown = faults[name]
        first = (shown.get("message") or [""])[0]
        print(f"{name:32} exit {shown.get('exit', '-')}  {first}", flush=True)
    print(write_result("deid_faults", {"faults": faults}))


if __name__ == "__main__":
    main()
