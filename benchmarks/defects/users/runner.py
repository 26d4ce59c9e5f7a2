"""What `bioclin deid` and `bioclin annotate` do with tables, folders and two runs at once."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from benchmarks.defects.case import Done, Seen, Tree, case
from benchmarks.harness import rules_only

KEY = {"BIOCLIN_DEID_KEY": "0" * 64}
SPAN_PIPELINE = """
import spacy
nlp = spacy.blank("es")
nlp.add_pipe("transformer", config={"model": {"@architectures": "spacy-bioclin.Encoder.v1",
    "name": ENCODER, "window": 64, "stride": 48}})
nlp.add_pipe("bioclin_ner", name="phi", config={"spans_key": "phi"})
doc = nlp.make_doc("Acude Xabina hoy.")
gold = doc.copy()
gold.spans["phi"] = [spacy.tokens.Span(gold, 1, 2, "NOMBRE_SUJETO_ASISTENCIA")]
nlp.initialize(lambda: [spacy.training.Example(doc, gold)])
nlp.to_disk("pipeline")
"""


def deid(tree: Tree, *arguments: object, **options: Any) -> Done:
    return tree.bioclin("deid", *arguments, "--lang", "es", **KEY, **options)


def write_lines(tree: Tree, *rows: dict[str, Any]) -> Path:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return tree.write("in.jsonl", "".join(lines))


def named(tree: Tree, *options: str) -> Sequence[str]:
    """Leave out the options that the tree does not have."""
    has_keep = "--keep" in tree.bioclin("deid", "--help").text
    return [] if not has_keep and options[0] in ("--keep", "--date-column") else options


def shown(tree: Tree, name: str, done: Done) -> str:
    out = tree.folder / name
    return out.read_text("utf-8") if out.is_file() else done.text[-160:]


@case(11, "A date column beside a note is not written unless the user has said what becomes of it.")
def date_column_is_not_written_unasked(tree: Tree) -> Seen:
    tree.write("visit.csv", "patient,visit,text\np-1,2021-03-12,Revisión 04/05/2018\n")
    tree.write("policy.yml", "default: surrogate\n")
    options = ("--policy", "policy.yml", "--patient-column", "patient")
    done = deid(tree, "visit.csv", "out.csv", *options)
    out = shown(tree, "out.csv", done)
    holds = done.code == 1 and "visit" in done.text and not (tree.folder / "out.csv").exists()
    return Seen(holds, {"exit code": done.code, "date written": "2021-03-12" in out})


@case(11, "A date column moves by as many days as the same patient's dates in the notes.")
def date_column_moves_with_the_patient(tree: Tree) -> Seen:
    rows = "".join(f"p-{i % 2},2018-05-04,Revisión 04/05/2018\n" for i in range(4))
    tree.write("visit.csv", f"patient,visit,text\n{rows}")
    tree.write("policy.yml", "default: surrogate\n")
    options = ["--policy", "policy.yml", "--patient-column", "patient"]
    options += named(tree, "--date-column", "visit")
    done = deid(tree, "visit.csv", "out.csv", *options)
    days = set()
    for line in shown(tree, "out.csv", done).splitlines()[1:]:
        fields = line.split(",")
        if len(fields) == 3:
            note = datetime.strptime(fields[2].split()[1], "%d/%m/%Y").date()
            days.add((note - date.fromisoformat(fields[1])).days)
    moved = "2018-05-04" not in shown(tree, "out.csv", done)
    return Seen(done.code == 0 and moved and days == {0}, f"days apart: {sorted(map(abs, days))}")


@case(11, "A date, number or name beside the note is a leak in whatever spelling or type.")
def leaks_are_found_by_value(tree: Tree) -> Seen:
    text = "Paciente: Marta García Gil. NHC: 0012345678. Revisión 04/05/2018. Tel.: 612345678."
    values = {
        "ISO date": "2018-05-04",
        "date in words": "4 de mayo de 2018",
        "nested date": {"a": ["el 4-5-18"]},
        "number without zeros": 12345678,
        "phone with prefix": "0034 612 345 678",
        "name in another order": "GARCIA GIL, MARTA",
    }
    options = [*named(tree, "--keep", "x"), *rules_only(tree.path)]
    # In one process: starting takes longer than the records do.
    code = f"""
import json
from typer.testing import CliRunner
from spacy_bioclin.cli import app
for what, value in {values!r}.items():
    row = {{"text": {text!r}, "x": value}}
    open("in.jsonl", "w", encoding="utf-8").write(json.dumps(row) + "\\n")
    options = ["--lang", "es", "--overwrite", *{options!r}]
    done = CliRunner().invoke(app, ["deid", "in.jsonl", "out.jsonl", *options])
    if not done.exit_code:
        print(what)
"""
    done = tree.python("-c", code, **KEY)
    written = [what for what in values if what in done.out.splitlines()]
    return Seen(done.code == 0 and not written, f"written: {', '.join(written) or 'none'}")


@case(11, "A Parquet timestamp is compared with the dates of the note by value.")
def parquet_timestamps_are_compared(tree: Tree) -> Seen:
    tree.python(
        "-c",
        "import datetime, pyarrow as pa, pyarrow.parquet as pq\n"
        "day = datetime.datetime(2018, 5, 4)\n"
        "row = {'text': 'Revisión 4 de mayo de 2018', 'day': day}\n"
        "pq.write_table(pa.Table.from_pylist([row]), 'in.parquet')",
    )
    done = deid(tree, "in.parquet", "out.parquet", *named(tree, "--keep", "day"))
    return Seen(done.code == 1 and "PHI of this record" in done.text, f"exit code {done.code}")


@case(11, "The patient's id is written as a keyed hash.")
def patient_ids_are_hashed(tree: Tree) -> Seen:
    source = write_lines(tree, {"patient": "NHC-4471", "text": "Sin cambios."})
    done = deid(tree, source, "out.jsonl", "--patient-column", "patient")
    out = shown(tree, "out.jsonl", done)
    return Seen(done.code == 0 and "4471" not in out, "id written" if "4471" in out else "hashed")


@case(15, "A birth date in the order of the language is found in the note.")
def birth_dates_have_the_order_of_the_language(tree: Tree) -> Seen:
    source = write_lines(tree, {"born": "12/05/1948", "text": "Nació el 12 de mayo de 1948."})
    done = deid(tree, source, "out.jsonl", "--known", "birth_date=born")
    out = shown(tree, "out.jsonl", done)
    return Seen(done.code == 0 and "1948" not in out, out[:80])


@case(15, "A CSV file in cp1252 can be read.")
def files_in_cp1252_are_read(tree: Tree) -> Seen:
    tree.write("in.csv", "text\nPaciente: Íñigo Núñez\n".encode("cp1252"))
    done = deid(tree, "in.csv", "out.csv", "--encoding", "cp1252")
    out = shown(tree, "out.csv", done)
    return Seen(done.code == 0 and "Núñez" not in out, out[-80:])


@case(15, "An error about a missing column lists the columns there are, and each place once.")
def errors_list_the_columns(tree: Tree) -> Seen:
    tree.write("in.csv", "id,nota\n1,x\n")
    lists = "id, nota" in deid(tree, "in.csv", "out.csv").text
    source = write_lines(tree, {"born": "ayer", "text": "x"})
    places = deid(tree, source, "o.jsonl", "--known", "birth_date=born").text.count("line 1:")
    return Seen(lists and places == 1, {"lists columns": lists, "names the place": places})


@case(15, "A kept column that is dense with PHI gets a warning.")
def kept_columns_with_phi_get_a_warning(tree: Tree) -> Seen:
    source = write_lines(tree, *({"text": "x", "cp": f"2801{i}"} for i in range(9)))
    done = deid(tree, source, "out.jsonl", *named(tree, "--keep", "cp"))
    warned = any("cp" in line and "PHI" in line for line in done.err.splitlines())
    return Seen(done.code == 0 and warned, "a warning" if warned else "no warning")


def start_deid(tree: Tree, *arguments: object) -> subprocess.Popen[str]:
    """Start a run that can be halted, with its messages in one stream."""
    command = [tree.path / ".venv/bin/python", "-m", "spacy_bioclin", "deid", *arguments]
    environment = {**os.environ, **KEY, "PYTHONPATH": str(tree.path), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*map(str, command), "--lang", "es", "--overwrite", *rules_only(tree.path)],
        cwd=tree.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(condition: Callable[[], bool], *runs: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and not condition() and all(run.poll() is None for run in runs):
        time.sleep(0.005)


@case(17, "Of two runs with one output, the second stops, and no note is left unmasked.")
def two_runs_on_one_output(tree: Tree) -> Seen:
    rows = ({"text": f"Paciente: Marta García Gil. DNI: 12345678Z. Nota {i}."} for i in range(1000))
    source = write_lines(tree, *rows)
    tree.write("keep.yml", "default: keep\n")
    work = tree.folder / ".out.jsonl.work"
    first = start_deid(tree, source, "out.jsonl")
    wait_for(lambda: len(list(work.glob("*.part"))) > 1, first)
    first.send_signal(signal.SIGSTOP)  # halfway, while another one begins that masks nothing
    second = start_deid(tree, source, "out.jsonl", "--policy", "keep.yml")
    name = "García".encode()
    wait_for(lambda: sum(name in path.read_bytes() for path in work.glob("*.part")) > 2, second)
    if second.poll() is None:
        second.send_signal(signal.SIGSTOP)
    first.send_signal(signal.SIGCONT)
    first.wait(60)
    n = shown(tree, "out.jsonl", Done(0, "", "")).count("García")
    second.send_signal(signal.SIGCONT)
    said = second.communicate(timeout=60)[0]
    one_line = "Traceback" not in said and "another run is writing it" in said
    codes = [first.returncode, second.returncode]
    return Seen(codes == [0, 1] and one_line and n == 0, {"exit codes": codes, "unmasked": n})


@case(19, "A pipeline folder without phi/cfg is refused on load, naming what is missing.")
def pipeline_without_cfg_is_refused(tree: Tree) -> Seen:
    encoder = repr(str(tree.path / "assets/encoders/bioclin-compact"))
    tree.python("-c", SPAN_PIPELINE.replace("ENCODER", encoder))
    (tree.folder / "pipeline/phi/cfg").unlink()
    done = tree.python("-c", "import spacy; print(spacy.load('pipeline')('Acude Xabina.').spans)")
    refused = done.code != 0 and "[components.phi]" in done.text and "cfg" in done.text
    return Seen(refused, "refused" if refused else f"exit code {done.code}, found nothing")


@case(19, "UTF-16 without a byte-order mark is refused.")
def utf_16_is_refused(tree: Tree) -> Seen:
    note = tree.write("note.txt", "Paciente: Marta Gil. DNI: 12345678Z".encode("utf-16-le"))
    done = deid(tree, note, "out.txt")
    return Seen(done.code == 1 and "UTF-16" in done.text, f"exit code {done.code}")


@case(19, "Notes behind a linked folder are found, and a link that leads nowhere is counted.")
def links_are_followed_or_counted(tree: Tree) -> Seen:
    tree.write("in/a.txt", "uno")
    tree.write("beside/b.txt", "dos")
    (tree.folder / "in/linked").symlink_to(tree.folder / "beside")
    (tree.folder / "in/lost.txt").symlink_to(tree.folder / "nowhere")
    done = deid(tree, "in", "out", "--skip-bad")
    found = sorted(path.name for path in (tree.folder / "out").rglob("*.txt"))
    audit = tree.folder / "out.audit.json"
    counts = json.loads(audit.read_text())["records"] if audit.exists() else {}
    holds = found == ["a.txt", "b.txt"] and counts.get("skipped") == 1 and not done.crashed
    return Seen(holds, {"written": found, "skipped": counts.get("skipped"), "crash": done.crashed})


@case(19, "A pipe among the notes is refused in one line.")
def pipes_are_refused(tree: Tree) -> Seen:
    tree.write("in/a.txt", "uno")
    os.mkfifo(tree.folder / "in/b.txt")
    done = deid(tree, "in", "out", timeout=20)
    refused = done.code == 1 and "pipe" in done.text and not done.crashed
    return Seen(refused, "hangs" if done.code == 124 else f"exit code {done.code}")


@case(20, "A leak in one record leaves out that record with --skip-bad, and keeps the others.")
def a_leak_is_quarantined(tree: Tree) -> Seen:
    rows = [{"id": i, "n": "x", "text": "DNI: 12345678Z"} for i in range(300)]
    rows[250]["n"] = "12345678-z"
    source = write_lines(tree, *rows)
    options = ["--id-column", "id", *named(tree, "--keep", "n")]
    stopped = deid(tree, source, "out.jsonl", *options)
    kept = len(list(tree.folder.glob(".out.jsonl.work/*.part")))
    more = ["--resume"] if kept else []
    done = deid(tree, source, "out.jsonl", *options, "--skip-bad", *more)
    n = shown(tree, "out.jsonl", done).count("\n")
    audit = tree.folder / "out.jsonl.audit.json"
    names_it = audit.exists() and "line 251" in audit.read_text()
    holds = stopped.code == 1 and kept == 2 and done.code == 0 and n == 299 and names_it
    return Seen(holds, {"written": n if done.code == 0 else 0, "finished parts kept": kept})


@case(20, "After an unclosed quotation mark in a CSV file every record is written or counted.")
def an_unclosed_quote_loses_no_record(tree: Tree) -> Seen:
    lines = [f"{i},nota {i}" for i in range(1, 1000)]
    lines[1] = '2,"nota'
    tree.write("in.csv", "\n".join(["id,text", *lines, ""]))
    done = deid(tree, "in.csv", "out.csv", "--id-column", "id", "--skip-bad")
    audit = tree.folder / "out.csv.audit.json"
    counts = json.loads(audit.read_text())["records"] if audit.exists() else {}
    holds = done.code == 0 and counts["read"] == 999 == counts["written"] + counts["skipped"]
    return Seen(holds, {name: counts.get(name) for name in ("read", "written", "skipped")})
