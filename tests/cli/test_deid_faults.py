"""Faults of `bioclin deid`: status, message, disk, and no word of a note in it.

benchmarks/results/deid_faults.json records the same cases, run as separate processes.
"""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.runner import work

pytestmark = pytest.mark.usefixtures("kept_pipelines")
KEY = "a key for these tests"
# The DNIs have right check letters and belong to nobody.
DNI = ("00000000T", "00000001R", "00000002W", "00000003A", "00000004G")
GERMAN = (
    "Der Patient wurde gestern wegen starker Schmerzen in die Klinik gebracht und gut untersucht. "
    "Nach der Untersuchung zeigte sich eine leichte Entzündung, die wir mit Antibiotika behandelt "
    "haben. Heute geht es ihm besser, er isst wieder und schläft gut. Morgen kann er nach Hause "
    "gehen, wenn die Werte stimmen und kein Fieber mehr auftritt."
)
OWN_WORDS = {"nombre", "patient"}  # a column and a label, which messages may name
# A disk of 40 KiB that disappears with the namespace; needs no privileges.
ON_TINY_DISK = """
mount -t tmpfs -o size=40k tmpfs "$DISK" && "$@"; status=$?; ls -AR "$DISK"; exit $status
"""


def note(i):
    name, phone = "D. Iker Zubizarreta", "612345678"
    return f"Paciente: {name}, DNI: {DNI[i % 5]}. Tel.: {phone}. Ingresa por neumonía número {i}."


def notes(n):
    rows = ({"text": note(i)} for i in range(n))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def words_of(files):
    """Collect the words of the notes that a message must not have."""
    texts = [
        content.decode("latin-1") if isinstance(content, bytes) else content
        for name, content in files.items()
        if name.startswith("in")
    ]
    return set(re.findall(r"\w{5,}", " ".join(texts).lower())) - OWN_WORDS


JSONL = "in.jsonl out.jsonl"
TXT = "in.txt out.txt"
POLICY = f"{JSONL} --policy policy.yml"
FEW = {"in.jsonl": notes(3)}
BROKEN = {"in.jsonl": notes(1) + notes(1)[:60] + "\n" + notes(1)}
SURROGATES = {**FEW, "policy.yml": "default: surrogate\n"}
LONG_ROW = {"in.csv": f'id,text\n1,"{note(1)}"\n2,{note(2)}\n'}
NAMED = {"in.jsonl": json.dumps({"nombre": "Zubizarreta, Iker", "text": note(1)}) + "\n"}
NULL = {"in.jsonl": '{"id": "Zubizarreta", "text": null}\n'}
UTF_16 = "Paciente: Iker Zubizarreta".encode("utf-16-le")
FAULTS = {
    "missing key": (POLICY, SURROGATES, "needs a secret key"),
    "key that can be guessed": (
        f"{POLICY} --key-file key",
        {**SURROGATES, "key": "123"},
        "key of 3 bytes can be guessed",
    ),
    "unknown policy label": (
        POLICY,
        {**FEW, "policy.yml": "operators: {PATIEN: mask}\n"},
        "policy.yml: .*PATIEN.*did you mean PATIENT",
    ),
    "unknown operator": (
        POLICY,
        {**FEW, "policy.yml": "default: hide\n"},
        "policy.yml: .*hide.*redact, mask",
    ),
    "unreadable row of JSONL": (JSONL, BROKEN, "in.jsonl, line 2: not JSON .*--skip-bad"),
    "CSV row with a column too many": (
        "in.csv out.csv --id-column id",
        LONG_ROW,
        "in.csv, line 3: 3 columns, but the header has 2",
    ),
    "null text": (f"{JSONL} --drop id", NULL, "in.jsonl, line 1: no 'text'"),
    "UTF-16 that is no error in UTF-8": (TXT, {"in.txt": UTF_16}, "in.txt: has NUL characters"),
    "text file that is not UTF-8": (
        TXT,
        {"in.txt": note(1).encode("latin-1")},
        r"in.txt, line 1: not UTF-8 \(byte 82\)",
    ),
    "Parquet that is none": (
        "in.parquet out.parquet",
        {"in.parquet": note(1)},
        "in.parquet: cannot be read as Parquet",
    ),
    "empty CSV": ("in.csv out.csv", {"in.csv": ""}, "in.csv, line 1: no header"),
    "column of which nothing is said": (JSONL, NAMED, "nombre.* --keep COLUMN"),
    "PHI in another column": (
        f"{JSONL} --keep nombre",
        NAMED,
        "line 1: PHI .*column 'nombre'.*--drop",
    ),
    "PHI in a file name": (
        "in out",
        {"in/Iker Zubizarreta.txt": note(1)},
        "file 1: PHI of this record .*--rename",
    ),
    "OUT is IN": ("in.jsonl in.jsonl --overwrite", FEW, "in.jsonl: is the input in.jsonl"),
    "OUT exists": (JSONL, {**FEW, "out.jsonl": "old\n"}, "exists already.*--overwrite"),
    "pipeline that is not there": (
        f"{JSONL} --pipeline nowhere",
        FEW,
        "cannot load the pipeline 'nowhere'",
    ),
}
WARNINGS = {
    "unreadable row, --skip-bad": (f"{JSONL} --skip-bad", BROKEN, "2 records .*skipped: 1"),
    "note in a third language": (TXT, {"in.txt": GERMAN}, "1 records .*another language"),
    "empty file": (TXT, {"in.txt": ""}, r"1 records .*\(1 empty\)"),
    "empty JSONL": (JSONL, {"in.jsonl": ""}, r"0 records .*\(0 empty\)"),
}


def run(arguments, files, folder, monkeypatch):
    """Run the command on files that must stay as they are.

    RETURNS (tuple): Result of the command, and the new files.
    """
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        (folder / name).write_bytes(data)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    monkeypatch.chdir(folder)
    rules = [] if "--pipeline" in arguments else ["--rules-only"]
    done = CliRunner().invoke(app, ["deid", *arguments.split(), "--lang", "es", *rules])
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert [word for word in words_of(files) if word in done.output.lower()] == []
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    kept = {path for path in before if ".out.jsonl.work" not in path.parts}
    assert {path: after.get(path) for path in kept} == {path: before[path] for path in kept}
    return done, {path.relative_to(folder).as_posix() for path in after.keys() - before.keys()}


def test_a_fault_is_an_error_and_leaves_nothing(tmp_path, monkeypatch):
    wrong = []
    for i, (name, (arguments, files, message)) in enumerate(FAULTS.items()):
        monkeypatch.setenv("BIOCLIN_DEID_KEY", KEY)
        if name == "missing key":
            monkeypatch.delenv("BIOCLIN_DEID_KEY")
        done, new = run(arguments, files, tmp_path / str(i), monkeypatch)
        said = " ".join(done.stderr.split())
        named = re.search(f"bioclin: .*{message}", said) and KEY not in said
        if done.exit_code != 1 or new or not named:
            wrong.append((name, done.exit_code, said, new))
    assert wrong == []


def test_a_doubt_is_counted_and_written(tmp_path, monkeypatch):
    wrong = []
    for i, (name, (arguments, files, message)) in enumerate(WARNINGS.items()):
        done, new = run(arguments, files, tmp_path / str(i), monkeypatch)
        said = " ".join(done.stderr.split())
        out = arguments.split()[1]
        expected = {out, f"{out}.audit.json"}
        if done.exit_code or new != expected or not re.search(message, said):
            wrong.append((name, done.exit_code, said, new))
    assert wrong == []


def can_mount():
    return shutil.which("unshare") and not subprocess.run(["unshare", "-rm", "true"]).returncode


def test_a_full_disk_keeps_finished_parts(tmp_path, monkeypatch):
    """As if the disk were full at the second part."""
    write = work.write_atomic

    def write_or_fail(path, *args, **options):
        if path.name.startswith("00000001."):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, *args, **options)

    monkeypatch.setattr(work, "write_atomic", write_or_fail)
    done, new = run(JSONL, {"in.jsonl": notes(150)}, tmp_path, monkeypatch)
    said = " ".join(done.stderr.split())
    assert done.exit_code == 1 and re.search("the disk is full.*--resume", said), said
    parts = sorted(Path(name).name for name in new)
    assert len(parts) == 2 and parts[0].startswith("00000000.") and parts[1] == "manifest.json"
    monkeypatch.setattr(work, "write_atomic", write)
    whole, _ = run(f"{JSONL} --resume", {}, tmp_path, monkeypatch)
    assert whole.exit_code == 0, whole.output
    assert len((tmp_path / "out.jsonl").read_text("utf-8").splitlines()) == 150


@pytest.mark.full
def test_a_disk_that_is_full(tmp_path):
    if not can_mount():
        pytest.skip("user namespaces are not available")
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "in.jsonl").write_text(notes(350), "utf-8")
    deid = [sys.executable, "-m", "spacy_bioclin", "deid", "in.jsonl", "disk/out.jsonl"]
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", ON_TINY_DISK, "sh", *deid, "--lang", "es", "--rules-only"],
        cwd=tmp_path,
        env={**os.environ, "DISK": str(disk)},
        capture_output=True,
        text=True,
    )
    if "mount" in done.stderr:
        pytest.skip("no disk can be mounted here")
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert re.search("the disk is full.*--resume", " ".join(done.stderr.split()))
    assert not words_of({"in": note(0)}) & set(re.findall(r"\w+", done.stderr.lower()))
    names = done.stdout.replace(f"{tmp_path}/", "").split()
    assert (
        any(name.startswith("00000000.") for name in names)
        and "manifest.json" in names
        and "out.jsonl" not in names
    )
