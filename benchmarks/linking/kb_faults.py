"""What `bioclin kb` does with bad terminologies and damaged knowledge bases: each fault through the
real command line.

For each: the exit status, what is said, the peak memory, whether the input is as it was, and what
else is on the disk afterwards. The line of 2 GB is written to a temporary folder and removed.

    python -m benchmarks.linking.kb_faults
"""

import gzip
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import write_result
from spacy_bioclin.linking.kb.storage import FORMAT

KB = [sys.executable, "-m", "spacy_bioclin", "kb"]
BUILD = ("build", "-o", "kb")
LONG_LINE = 2 * 2**30
OBO = """format-version: 1.2

[Term]
id: X:1
name: breast cancer
synonym: "breast carcinoma" EXACT []
is_a: X:2

[Term]
id: X:2
name: neoplasm
"""
CIRCLE = (
    OBO + "is_a: X:3\n\n[Term]\nid: X:3\nname: lesion\nis_a: X:1\n\n[Term]\nid: X:4\nname: cyst\n"
)
TWICE = OBO + '\n[Term]\nid: X:2\nname: tumour\nsynonym: "growth" EXACT []\n'
TABLE = "codigo;descriptor\nC50;Cáncer de mama\nF32;Depresión\n"
SPACES = TABLE.replace(";", "   ")
WRONG = TABLE.replace(";", "#")
CONSO = "C1|ENG|P|L1|PF|S1|Y|A1||M1|D1|MSH|MH|D1|Asthma|0|N||\n"
STY = "C1|T047|B2.2.1.2.1|Disease or Syndrome|AT1||\n"
RECORDS = '{"id": "a", "name": "one", "lang": "en"}\n{"id": 7}\nnot JSON\n{"name": "no id"}\n'
LATIN = TABLE.encode("latin-1")
QUOTE = 'code,name\nA,"never closed\nB,beta\n'
BOMB = gzip.compress(b"\0" * 2**26)


class Case(NamedTuple):
    """A fault.

    arguments (tuple[str, ...]): Of `bioclin kb`, in the folder of the files.
    files (dict[str, str | bytes]): What lies there first.
    damage (Callable | None): What is done to the knowledge base that is built of them first.
    """

    arguments: tuple[str, ...]
    files: dict[str, str | bytes]
    damage: Callable[[Path], object] | None = None


def edit_meta(folder: Path, **changes: object) -> None:
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    (folder / "meta.json").write_text(json.dumps({**meta, **changes}), "utf-8")


def flip(path: Path) -> None:
    """Change the last byte."""
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def gz(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


ONE = {"in.obo": OBO}
CASES = {
    "nothing wrong": Case((*BUILD, "in.obo"), ONE),
    "circle of parents": Case((*BUILD, "in.obo"), {"in.obo": CIRCLE}),
    "id twice": Case((*BUILD, "in.obo"), {"in.obo": TWICE}),
    "no name in the language asked for": Case(
        (*BUILD, "in.jsonl", "--lang", "es"), {"in.jsonl": RECORDS}
    ),
    "no concept of the type asked for": Case((*BUILD, "in.obo", "--types", "C04*"), ONE),
    "broken records of JSON lines": Case((*BUILD, "in.jsonl"), {"in.jsonl": RECORDS}),
    "wrong delimiter": Case((*BUILD, "in.csv"), {"in.csv": WRONG}),
    "wrong delimiter, columns given": Case(
        (*BUILD, "in.csv", "--columns", "id=codigo,name=descriptor"), {"in.csv": WRONG}
    ),
    "blanks as delimiter": Case((*BUILD, "table:in.csv"), {"in.csv": SPACES}),
    "column that is not there": Case(
        (*BUILD, "in.csv", "--columns", "id=code,name=descriptor"), {"in.csv": TABLE}
    ),
    "quote that is never closed": Case((*BUILD, "in.csv"), {"in.csv": QUOTE}),
    "table in Latin-1": Case((*BUILD, "in.csv"), {"in.csv": LATIN}),
    "table read as OBO": Case((*BUILD, "obo:in.csv"), {"in.csv": TABLE}),
    "RRF without MRCONSO": Case((*BUILD, "rrf:in"), {"in/MRSTY.RRF": STY}),
    "RRF with MRCONSO alone": Case((*BUILD, "rrf:in"), {"in/MRCONSO.RRF": CONSO}),
    "folder without any terminology": Case((*BUILD, "in"), {"in/notes.txt": "a note"}),
    "gzip cut off": Case((*BUILD, "in.obo.gz"), {"in.obo.gz": gz(OBO * 50)[:-20]}),
    "gzip with changed bytes": Case(
        (*BUILD, "in.obo.gz"), {"in.obo.gz": gz(OBO)[:40] + b"\xff" * 40 + gz(OBO)[80:]}
    ),
    "gzip that is none": Case((*BUILD, "in.obo.gz"), {"in.obo.gz": OBO}),
    "64 MB of zero bytes in gzip": Case((*BUILD, "obo:in.gz"), {"in.gz": BOMB}),
    "empty file": Case((*BUILD, "in.obo"), {"in.obo": ""}),
    "OUT holds something else": Case(
        ("build", "in.obo", "-o", "work"), {**ONE, "work/thesis.txt": "years of work"}
    ),
    "OUT cannot be written": Case(("build", "in.obo", "-o", "/proc/kb"), ONE),
    "index of another format version": Case(
        ("search", "kb", "cancer"), ONE, lambda kb: edit_meta(kb, format=FORMAT - 1)
    ),
    "hash that does not match: an array": Case(
        ("info", "kb", "--check"), ONE, lambda kb: flip(kb / "names.npy")
    ),
    "hash that does not match: meta.json": Case(
        ("info", "kb", "--check"), ONE, lambda kb: edit_meta(kb, sources=[])
    ),
    "array cut off": Case(("search", "kb", "cancer"), ONE, lambda kb: cut(kb / "names.npy")),
    "array missing": Case(("search", "kb", "cancer"), ONE, lambda kb: (kb / "ids.npy").unlink()),
    "meta.json cut off": Case(("info", "kb"), ONE, lambda kb: cut(kb / "meta.json")),
    "no knowledge base": Case(("diff", "work", "kb"), {**ONE, "work/a.txt": "a"}, lambda kb: None),
}


class Done(NamedTuple):
    """exit (int): Status. said (str): All that was printed. peak_mb, seconds (float): Spent."""

    exit: int
    said: str
    peak_mb: float
    seconds: float


def run_kb(folder: Path, *arguments: str) -> Done:
    """Run `bioclin kb`, and measure its peak memory by itself."""
    start = time.perf_counter()
    log = folder.parent / f"{folder.name}.log"
    with log.open("wb") as out:
        environment = {**os.environ, "COLUMNS": "1000", "PWD": str(folder)}
        pid = os.posix_spawn(
            "/usr/bin/env",
            ["env", "-C", str(folder), *KB, *arguments],
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), n) for n in (1, 2)],
        )
        _, status, usage = os.wait4(pid, 0)
    said = log.read_text("utf-8").replace(f"{folder}/", "").replace(sys.executable, "python")
    log.unlink()
    exit = os.waitstatus_to_exitcode(status)
    return Done(exit, said, usage.ru_maxrss / 1024, time.perf_counter() - start)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def describe(done: Done) -> dict[str, Any]:
    lines = [line.rstrip() for line in done.said.splitlines() if line.strip()]
    return {
        "exit": done.exit,
        "message": lines,
        "traceback": "Traceback" in done.said,
        "peak_mb": round(done.peak_mb),
    }


def run_case(case: Case, folder: Path) -> dict[str, Any]:
    for name, content in case.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        (folder / name).write_bytes(data)
    if case.damage:
        first = run_kb(folder, *BUILD, "in.obo")
        assert first.exit == 0, first.said
        case.damage(folder / "kb")
    before = digests(folder)
    found = describe(run_kb(folder, *case.arguments))
    after = digests(folder)
    new = sorted({name.split("/")[0] for name in after.keys() - before.keys()})
    return {
        **found,
        "input_unchanged": all(after.get(name) == digest for name, digest in before.items()),
        "new_on_disk": new,
    }


def run_long_line(folder: Path) -> dict[str, Any]:
    """A table with one line of 2 GB between two right ones."""
    path, block = folder / "in.tsv", b"x" * 2**24
    with path.open("wb") as file:
        file.write(b"code\tname\nA\talpha\nB\t")
        for _ in range(LONG_LINE // len(block)):
            file.write(block)
        file.write(b"\nC\tgamma\n")
    before = path.stat()
    done = run_kb(folder, *BUILD, path.name)
    after = path.stat()
    same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    names = sorted(p.name for p in folder.iterdir() if p != path)
    spent = {"seconds": round(done.seconds, 1), "bytes": before.st_size}
    return {**describe(done), **spent, "input_unchanged": same, "new_on_disk": names}


def main() -> None:
    faults: dict[str, Any] = {}
    runs = {name: lambda folder, case=case: run_case(case, folder) for name, case in CASES.items()}
    runs |= {"line of 2 GB": run_long_line}
    for name, run in runs.items():
        with tempfile.TemporaryDirectory() as folder:
            faults[name] = run(Path(folder))
        shown = faults[name]
        said = " / ".join(shown["message"])
        print(f"{name:36} exit {shown['exit']}  {said}", flush=True)
        assert not shown["traceback"] and shown["input_unchanged"], name
    print(write_result("kb_faults", {"faults": faults}))


if __name__ == "__main__":
    main()
