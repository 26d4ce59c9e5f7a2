"""A run that is killed and resumed writes the bytes of one that nothing disturbed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import spacy

from tests.runner.engines.plugin import install

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="Linux")
WAIT = 120
N = 4_000
FORMS = ("jsonl", "parquet", "spacy", "brat")


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A pipeline with a component of another package, and notes, of which some are bad."""
    folder = tmp_path_factory.mktemp("ready")
    (folder / "packages").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", list(sys.path))
        install(folder / "packages")  # workers have to find it
        patched.setenv("PYTHONPATH", str(folder / "packages"))
        yield make_ready(folder)


def make_ready(folder):
    nlp = spacy.blank("es")
    nlp.add_pipe("test_deadly_note")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "SIGN", "pattern": "tos"}])
    nlp.add_pipe("bioclin_measurements")
    nlp.to_disk(folder / "model")
    with (folder / "notes.jsonl").open("w") as file:
        for i in range(N):
            text = "veneno" if i % 777 == 5 else f"Paciente {i} con tos y fiebre de {i % 50} ºC."
            row = "null" if i % 999 == 7 else json.dumps({"id": f"n{i}", "text": text, "n": i})
            file.write(f"{row}\n")
    return folder


def start(ready, out, form, *options):
    arguments = [ready / "model", ready / "notes.jsonl", out, "--to", form, *options]
    arguments += ["--id-column", "id", "--keep", "n", "--skip-bad"]
    command = [sys.executable, "-W", "ignore", "-m", "spacy_bioclin", "run", *arguments]
    return subprocess.Popen(
        [str(each) for each in command], stderr=subprocess.PIPE, start_new_session=True
    )


def finish(process):
    _, err = process.communicate(timeout=WAIT)
    assert process.returncode == 0, err.decode()


def read_all(folder):
    """Read all files, those beside the output and hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def wanted(ready, tmp_path_factory):
    """Make the files of a run that nothing disturbs."""
    made = {}

    def make(form):
        if form not in made:
            folder = tmp_path_factory.mktemp(form)
            finish(start(ready, folder / f"out.{form}", form))
            made[form] = read_all(folder)
        return made[form]

    return make


def check(found, wanted, form):
    assert sorted(found) == sorted(wanted)
    record = f"out.{form}.run.json"
    assert [name for name in found if name != record and found[name] != wanted[name]] == []
    said, wanted_record = json.loads(found[record]), json.loads(wanted[record])
    assert [name for name in said if said[name] != wanted_record[name]] in ([], ["engine"])
    about = said["records"]
    n_bad = len(found[f"out.{form}.quarantine.jsonl"].splitlines())
    assert n_bad == len({i for i in range(N) if i % 777 == 5 or i % 999 == 7})
    assert (about["read"], about["written"], about["quarantined"]) == (N, N - n_bad, n_bad)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "processes"), [*((form, 1) for form in FORMS), ("jsonl", 2)])
def test_killed_at_random_moments(form, processes, ready, wanted, tmp_path):
    out = tmp_path / f"out.{form}"
    rng = random.Random(f"{form} {processes}")
    work = tmp_path / f".out.{form}.work"
    n_killed = 0
    for _ in range(3):
        n_before = len(list(work.glob("*.part")))
        process = start(ready, out, form, "--resume", "--processes", processes)
        end = time.monotonic() + WAIT
        while len(list(work.glob("*.part"))) <= n_before and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.3))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            n_killed += 1
        process.communicate(timeout=WAIT)
        if out.exists():
            break
    assert n_killed
    if not out.exists():
        finish(start(ready, out, form, "--resume", "--processes", processes))
    check(read_all(tmp_path), wanted(form), form)


@pytest.mark.slow
def test_two_processes_write_what_one_does(ready, wanted, tmp_path):
    finish(start(ready, tmp_path / "out.jsonl", "jsonl", "--processes", 2))
    check(read_all(tmp_path), wanted("jsonl"), "jsonl")


@pytest.mark.slow
def test_the_second_of_two_runs_is_refused(ready, wanted, tmp_path):
    out = tmp_path / "out.jsonl"
    first = start(ready, out, "jsonl")
    end = time.monotonic() + WAIT
    while not (tmp_path / ".out.jsonl.lock").exists():
        assert time.monotonic() < end and first.poll() is None
        time.sleep(0.005)
    first.send_signal(signal.SIGSTOP)
    second = start(ready, out, "jsonl", "--resume")
    _, err = second.communicate(timeout=WAIT)
    first.send_signal(signal.SIGCONT)
    finish(first)
    assert second.returncode == 1 and b"another run is writing it" in err
    check(read_all(tmp_path), wanted("jsonl"), "jsonl")


@pytest.mark.slow
def test_what_is_resumed_has_to_be_the_same(ready, tmp_path):
    """In this process, with parts that an earlier run has left."""
    from typer.testing import CliRunner

    from spacy_bioclin.cli import app
    from spacy_bioclin.runner.work import MANIFEST

    out = tmp_path / "out.jsonl"
    base = ["run", str(ready / "model"), str(ready / "notes.jsonl"), str(out), "--skip-bad"]
    done = CliRunner().invoke(app, [*base, "--limit", "600"])
    assert done.exit_code == 0, done.output
    about = json.loads(Path(f"{out}.run.json").read_text())
    names = ("pipeline", "input", "columns", "output", "limit", "versions")
    work = tmp_path / ".out.jsonl.work"
    for path in (out, Path(f"{out}.run.json")):
        path.unlink()
    work.mkdir(mode=0o700)
    settings = {name: json.dumps(about[name], sort_keys=True) for name in names}
    (work / MANIFEST).write_text(json.dumps(settings))
    (work / "00000000.x.part").write_text("")
    for options, named in (
        (["--limit", "601"], "limit"),
        (["--limit", "600", "--entity-text"], "output"),
        (["--limit", "600", "--keep", "n"], "columns"),
    ):
        done = CliRunner().invoke(app, [*base, *options, "--resume"])
        assert done.exit_code == 1 and f"not what they were: {named};" in done.stderr, done.stderr
    assert CliRunner().invoke(app, [*base, "--limit", "600"]).exit_code == 1  # without --resume
    done = CliRunner().invoke(app, [*base, "--limit", "600", "--resume"])
    assert done.exit_code == 0, done.output
