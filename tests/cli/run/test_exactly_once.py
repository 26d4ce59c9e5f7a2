"""A run that is killed and resumed writes the bytes of one that nothing disturbed."""

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.outputs import lock_output
from spacy_bioclin.runner.engines.local import LocalEngine
from spacy_bioclin.runner.notes import job
from spacy_bioclin.runner.work import MANIFEST
from tests.dying import KILLED, in_fork
from tests.runner.engines.plugin import install

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="Linux")
N, PART = 230, 50
FORMS = ("jsonl", "parquet", "spacy", "brat")
# It kills the command with all its processes at a note with "alto", if there is a file "order".
MODULE = "bioclin_test_alto"
KILLS = f'''
import os
import signal
from pathlib import Path

from spacy.language import Language


@Language.component("{MODULE}")
def kill_all(doc):
    order = Path(__file__).with_name("order")
    if "alto" in doc.text and order.exists():
        order.unlink()
        os.killpg(os.getpgrp(), signal.SIGKILL)
    return doc
'''


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A pipeline with components of other packages, and notes, of which some are bad."""
    folder = tmp_path_factory.mktemp("ready")
    packages = folder / "packages"
    packages.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [str(packages), *sys.path])
        install(packages)  # workers have to find it
        (packages / f"{MODULE}.py").write_text(KILLS)
        info = packages / f"{MODULE}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {MODULE}\nVersion: 1\n")
        entry = f"[spacy_factories]\n{MODULE} = {MODULE}:kill_all\n"
        (info / "entry_points.txt").write_text(entry)
        __import__(MODULE)
        patched.setenv("PYTHONPATH", str(packages))
        yield make_ready(folder)


def make_ready(folder):
    nlp = spacy.blank("es")
    nlp.add_pipe("test_deadly_note")
    nlp.add_pipe(MODULE)
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "SIGN", "pattern": "tos"}])
    nlp.to_disk(folder / "model")
    write_notes(folder / "notes.jsonl", N)
    return folder


def is_bad(i):
    return i % 77 == 5 or i % 99 == 7


def write_notes(path, n):
    with path.open("w") as file:
        for i in range(n):
            stop = " alto" if i == n - 30 else ""
            text = "veneno" if i % 77 == 5 else f"Paciente {i} con tos y fiebre{stop}."
            row = "null" if i % 99 == 7 else json.dumps({"id": f"n{i}", "text": text, "n": i})
            file.write(f"{row}\n")


@pytest.fixture
def _here(monkeypatch):
    """Small parts, and --skip-bad without a process of its own: a fork is the whole command."""
    make = LocalEngine.__init__
    monkeypatch.setattr(job, "PART_RECORDS", PART)
    monkeypatch.setattr(
        LocalEngine, "__init__", lambda self, workers, *, apart: make(self, workers)
    )


def call(ready, out, form, *options, notes="notes.jsonl"):
    """RETURNS (str): What was printed; a command that fails is an error."""
    arguments = [ready / "model", ready / notes, out, "--to", form, *options]
    arguments += ["--id-column", "id", "--keep", "n", "--skip-bad"]
    done = CliRunner().invoke(app, ["run", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def read_all(folder):
    """Read all files, those beside the output and hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def is_killed(act, number):
    """Run a command in a fork that is killed just before such a call, the first one is 1; False if
    there were fewer calls."""

    def run():
        n_calls = 0

        def count(real, *args, **options):
            nonlocal n_calls
            n_calls += 1
            if n_calls == number:
                os._exit(KILLED)
            return real(*args, **options)

        for name in ("rename", "replace", "link", "rmdir"):
            setattr(os, name, partial(count, getattr(os, name)))
        act()

    code = in_fork(run)
    assert code in (0, KILLED), code
    return code == KILLED


def check(found, wanted, form, n=N):
    assert sorted(found) == sorted(wanted)
    record = f"out.{form}.run.json"
    assert [name for name in found if name != record and found[name] != wanted[name]] == []
    said, wanted_record = json.loads(found[record]), json.loads(wanted[record])
    assert [name for name in said if said[name] != wanted_record[name]] in ([], ["engine"])
    about = said["records"]
    n_bad = len(found[f"out.{form}.quarantine.jsonl"].splitlines())
    assert n_bad == sum(map(is_bad, range(n)))
    assert (about["read"], about["written"], about["quarantined"]) == (n, n - n_bad, n_bad)


def make_wanted(ready, folder, form, notes="notes.jsonl"):
    folder.mkdir()
    call(ready, folder / f"out.{form}", form, notes=notes)
    return read_all(folder)


@pytest.mark.usefixtures("_here")
def test_killed_before_it_ends(ready, tmp_path):
    """Killed while it makes the parts, and while it moves the output into place."""
    wanted = make_wanted(ready, tmp_path / "wanted", "jsonl")
    folder = tmp_path / "killed"
    folder.mkdir()
    out = folder / "out.jsonl"
    # Its first renames are those of the settings and the parts.
    for number, n_parts in ((4, 2), (6, 5)):
        assert is_killed(lambda: call(ready, out, "jsonl", "--resume"), number)
        assert not out.exists()
        assert len(list(folder.glob(".out.jsonl.work/*.part"))) == n_parts
    call(ready, out, "jsonl", "--resume")
    check(read_all(folder), wanted, "jsonl")


@pytest.mark.slow
@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize("form", FORMS)
def test_killed_at_every_step(form, ready, tmp_path):
    """Killed just before each change of the folder, and resumed: what is there at the end is one
    run's work. Until the last part, all forms are alike."""
    wanted = make_wanted(ready, tmp_path / "wanted", form)
    number = 1 if form == "jsonl" else 6
    while True:
        folder = tmp_path / str(number)
        folder.mkdir()
        out = folder / f"out.{form}"
        if not is_killed(lambda out=out: call(ready, out, form, "--resume"), number):
            break
        call(ready, out, form, "--resume")
        for path in folder.glob(f".out.{form}.run.json.*.partial"):
            path.unlink()  # a record that was not in place yet; it has no text of notes
        check(read_all(folder), wanted, form)
        number += 1
    assert number > 9  # the settings, five parts, the quarantine, the record, the output


@pytest.mark.slow
def test_two_processes_go_on_after_one_that_was_killed(ready, tmp_path):
    n = 2 * job.PART_RECORDS + 50
    write_notes(ready / "many.jsonl", n)
    folder = tmp_path / "killed"
    folder.mkdir()
    out = folder / "out.jsonl"

    def act():
        os.setsid()
        call(ready, out, "jsonl", "--resume", notes="many.jsonl")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LocalEngine, "map", map_here)
        wanted = make_wanted(ready, tmp_path / "wanted", "jsonl", "many.jsonl")
        (ready / "packages" / "order").touch()
        assert in_fork(act) == -signal.SIGKILL
    assert not out.exists() and len(list(folder.glob(".out.jsonl.work/*.part"))) == 2
    call(ready, out, "jsonl", "--resume", "--processes", "2", notes="many.jsonl")
    check(read_all(folder), wanted, "jsonl", n)


def map_here(self, start, parts):
    """Make parts in this process, as `LocalEngine.map` would without --skip-bad."""
    make_part = start()
    for part in parts:
        yield part, make_part(part)


@pytest.mark.usefixtures("_here")
def test_what_is_resumed_has_to_be_the_same(ready, tmp_path):
    """With a part that an earlier run has left, and while another run goes on."""
    out = tmp_path / "out.jsonl"
    base = ["run", str(ready / "model"), str(ready / "notes.jsonl"), str(out), "--skip-bad"]
    base += ["--limit", "60"]
    done = CliRunner().invoke(app, base)
    assert done.exit_code == 0, done.output
    record = Path(f"{out}.run.json")
    about = json.loads(record.read_text())
    names = ("pipeline", "input", "columns", "output", "limit", "versions")
    work = tmp_path / ".out.jsonl.work"
    for path in (out, record):
        path.unlink()
    work.mkdir(mode=0o700)
    settings = {name: json.dumps(about[name], sort_keys=True) for name in names}
    (work / MANIFEST).write_text(json.dumps(settings))
    (work / "00000000.x.part").write_text("")
    before = read_all(tmp_path)
    for options, named in (
        (["--limit", "61"], "limit"),
        (["--entity-text"], "output"),
        (["--keep", "n"], "columns"),
    ):
        done = CliRunner().invoke(app, [*base, *options, "--resume"])
        assert done.exit_code == 1 and f"not what they were: {named};" in done.stderr, done.stderr
    assert CliRunner().invoke(app, base).exit_code == 1  # without --resume
    with lock_output(out):
        done = CliRunner().invoke(app, [*base, "--resume"])
    assert done.exit_code == 1 and "another run is writing it" in done.stderr
    assert {name: read_all(tmp_path).get(name) for name in before} == before
    done = CliRunner().invoke(app, [*base, "--resume"])
    assert done.exit_code == 0, done.output
