"""Faults of `bioclin kb`: bad terminologies and damaged knowledge bases.

Each case states the exit status and what the message has; no input changes, and a failed build
leaves nothing. benchmarks/results/kb_faults.json records the same cases, run as separate processes.
"""

import gzip
import hashlib
import json
import re
import shutil
import tracemalloc

from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.linking.kb.concepts import SkipReport
from spacy_bioclin.linking.kb.storage import FORMAT
from spacy_bioclin.linking.readers import lines

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
CONSO = "C1|ENG|P|L1|PF|S1|Y|A1||M1|D1|MSH|MH|D1|Asthma|0|N||\n"
STY = "C1|T047|B2.2.1.2.1|Disease or Syndrome|AT1||\n"
RECORDS = '{"id": "a", "name": "one", "lang": "en"}\n{"id": 7}\nnot JSON\n{"name": "no id"}\n'
QUOTE = 'code,name\nA,"never closed\nB,beta\n'
GZIP = gzip.compress(OBO.encode(), mtime=0)
GZIP_CUT = gzip.compress((OBO * 50).encode(), mtime=0)[:-20]
GZIP_CHANGED = GZIP[:40] + b"\xff" * 40 + GZIP[80:]
ONE = {"in.obo": OBO}
BUILD = "build -o kb"

# Name -> arguments, files, what the message has.
ERRORS = {
    "no name in the language asked for": (
        f"{BUILD} in.jsonl --lang es",
        {"in.jsonl": RECORDS},
        r"nothing is left of 1 concepts .*found: \['en'\]",
    ),
    "no concept of the type asked for": (
        f"{BUILD} in.obo --types C04*",
        ONE,
        "nothing is left of 2 concepts",
    ),
    "wrong delimiter": (
        f"{BUILD} in.csv",
        {"in.csv": TABLE.replace(";", "#")},
        "in.csv: not recognised as a terminology.*obo, obographs",
    ),
    "wrong delimiter, columns given": (
        f"{BUILD} in.csv --columns id=codigo,name=descriptor",
        {"in.csv": TABLE.replace(";", "#")},
        "in.csv, line 1: one column only",
    ),
    "blanks as delimiter": (
        f"{BUILD} table:in.csv",
        {"in.csv": TABLE.replace(";", "   ")},
        "in.csv, line 1: one column only",
    ),
    "column that is not there": (
        f"{BUILD} in.csv --columns id=code,name=descriptor",
        {"in.csv": TABLE},
        "no column 'code' .*'codigo', 'descriptor'",
    ),
    "quote that is never closed": (
        f"{BUILD} in.csv",
        {"in.csv": QUOTE},
        "in.csv: no concept .*is it never closed",
    ),
    "table of DOS": (
        f"{BUILD} in.csv",
        {"in.csv": TABLE.encode("cp850")},
        "in.csv, line 3: is neither UTF-8 nor Windows-1252; .*iconv",
    ),
    "table of DOS with accents in its header": (
        f"{BUILD} in.csv",
        {"in.csv": TABLE.replace("codigo", "código").encode("cp850")},
        "in.csv, line 1: is neither UTF-8 nor Windows-1252",
    ),
    "table of DOS with columns by number": (
        f"{BUILD} in.csv --columns id=1,name=2",
        {"in.csv": "J45;Asma\nF32;Depresión\nF41;Angustia año\n".encode("cp850")},
        "in.csv, line 2: is neither UTF-8 nor Windows-1252",
    ),
    "table read as OBO": (f"{BUILD} obo:in.csv", {"in.csv": TABLE}, r"no \[Term\]"),
    "RRF without MRCONSO": (f"{BUILD} rrf:in", {"in/MRSTY.RRF": STY}, "no MRCONSO.RRF"),
    "folder without any terminology": (
        f"{BUILD} in",
        {"in/notes.txt": "a note"},
        "in: not recognised as a terminology",
    ),
    "gzip cut off": (
        f"{BUILD} in.obo.gz",
        {"in.obo.gz": GZIP_CUT},
        r"in.obo.gz: .*beyond byte \d+ .*may be cut off",
    ),
    "gzip with changed bytes": (
        f"{BUILD} in.obo.gz",
        {"in.obo.gz": GZIP_CHANGED},
        "in.obo.gz: .*decompressing",
    ),
    "gzip that is none": (f"{BUILD} in.obo.gz", {"in.obo.gz": OBO}, "Not a gzipped file"),
    "64 MB of zero bytes in gzip": (
        f"{BUILD} obo:in.gz",
        {"in.gz": gzip.compress(bytes(2**26), 1)},
        r"no \[Term\]",
    ),
    "empty file": (f"{BUILD} in.obo", {"in.obo": ""}, r"no \[Term\]"),
    "OUT holds something else": (
        "build in.obo -o work --overwrite",
        {**ONE, "work/thesis.txt": "years of work"},
        "work: not an output",
    ),
    "OUT cannot be written": ("build in.obo -o /proc/kb", ONE, "/proc/kb"),
    "no knowledge base": ("diff work kb", {**ONE, "work/a.txt": "a"}, "work.*bioclin kb build"),
}
REPORTS = {
    "nothing wrong": ("in.obo", ONE, "2 concepts, 3 names"),
    "circle of parents": ("in.obo", {"in.obo": CIRCLE}, "3 parent in a circle.*X:1, X:2, X:3"),
    "id twice": ("in.obo", {"in.obo": TWICE}, "1 id that came before.*in.obo, X:2"),
    "broken records of JSON lines": (
        "in.jsonl",
        {"in.jsonl": RECORDS},
        "1 value .*line 2.*1 broken JSON.*line 3.*1 no id.*line 4",
    ),
    "RRF with MRCONSO alone": (
        "rrf:in",
        {"in/MRCONSO.RRF": CONSO},
        "file missing: MRSTY.RRF.*1 concepts, 1 names",
    ),
}


def edit_meta(folder, **changes):
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    (folder / "meta.json").write_text(json.dumps({**meta, **changes}), "utf-8")


def flip_last_byte(path):
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def cut(path):
    path.write_bytes(path.read_bytes()[:-8])


# Name -> arguments, damage to the knowledge base, what the message has.
DAMAGE = {
    "index of another format version": (
        "search kb cancer",
        lambda kb: edit_meta(kb, format=FORMAT - 1),
        rf"kb: format {FORMAT - 1}, .*reads {FORMAT}: build it again",
    ),
    "hash that does not match: an array": (
        "info kb --check",
        lambda kb: flip_last_byte(kb / "names.npy"),
        "names.npy: its SHA-256 .*meta.json",
    ),
    "hash that does not match: meta.json": (
        "info kb --check",
        lambda kb: edit_meta(kb, sources=[]),
        "meta.json: its hash",
    ),
    "array cut off": ("search kb cancer", lambda kb: cut(kb / "names.npy"), "names.npy is missing"),
    "array missing": (
        "search kb cancer",
        lambda kb: (kb / "ids.npy").unlink(),
        "ids.npy is missing",
    ),
    "meta.json cut off": ("info kb", lambda kb: cut(kb / "meta.json"), "meta.json is damaged"),
}


def write(files, folder):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        (folder / name).write_bytes(data)


def hash_files(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def run(arguments, folder, monkeypatch):
    """Run the command.

    RETURNS (tuple): Exit status, what was printed, and the new files and folders.
    """
    monkeypatch.chdir(folder)
    before = hash_files(folder)
    done = CliRunner().invoke(app, ["kb", *arguments.split()], env={"COLUMNS": "1000"})
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    after = hash_files(folder)
    assert {name: after.get(name) for name in before} == before
    new = {name.split("/")[0] for name in after.keys() - before.keys()}
    return done.exit_code, " ".join(done.output.split()), new


def test_a_fault_is_an_error_and_leaves_nothing(tmp_path, monkeypatch):
    wrong = []
    for i, (name, (arguments, files, message)) in enumerate(ERRORS.items()):
        folder = tmp_path / str(i)
        write(files, folder)
        status, said, new = run(arguments, folder, monkeypatch)
        if status != 1 or new or not re.search(f"bioclin: .*{message}", said):
            wrong.append((name, status, said, new))
    assert wrong == []


def test_skipped_records_are_counted_with_their_place(tmp_path, monkeypatch):
    wrong = []
    for i, (name, (source, files, message)) in enumerate(REPORTS.items()):
        folder = tmp_path / str(i)
        write(files, folder)
        status, said, new = run(f"{BUILD} {source}", folder, monkeypatch)
        if status != 0 or new != {"kb"} or not re.search(message, said):
            wrong.append((name, status, said, new))
    assert wrong == []


def test_a_damaged_knowledge_base_is_not_read(tmp_path, monkeypatch):
    write(ONE, tmp_path)
    status, said, _ = run(f"{BUILD} in.obo", tmp_path, monkeypatch)
    assert status == 0, said
    wrong = []
    for i, (name, (arguments, damage, message)) in enumerate(DAMAGE.items()):
        folder = tmp_path / f"copy{i}"
        shutil.copytree(tmp_path / "kb", folder / "kb")
        damage(folder / "kb")
        status, said, new = run(arguments, folder, monkeypatch)
        if status != 1 or new or not re.search(f"bioclin: .*{message}", said):
            wrong.append((name, status, said, new))
    assert wrong == []


def test_a_long_line_is_skipped_in_little_memory(tmp_path, monkeypatch):
    """A line of 4 MB between two good ones, with a limit of 64 KB."""
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 2**16)
    write({"in.tsv": b"code\tname\nA\talpha\nB\t" + b"x" * 2**22 + b"\nC\tgamma\n"}, tmp_path)
    tracemalloc.start()
    try:
        found = [line for _, line in lines.read_lines(tmp_path / "in.tsv", SkipReport())]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == ["code\tname", "A\talpha", "C\tgamma"]
    assert peak < 2**20, "the whole line must not be held in memory"
    status, said, _ = run(f"{BUILD} in.tsv", tmp_path, monkeypatch)
    assert status == 0, said
    assert "1 line over 65,536 bytes; first: in.tsv, line 3" in said
    assert "2 concepts, 2 names" in said
