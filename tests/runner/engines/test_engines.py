"""The engines of `bioclin run`: what they make of bad notes, and a real Ray and a real Spark."""

import json
import os
import shutil
import sys
from functools import partial
from importlib.metadata import version

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner.engines.local import LocalEngine
from spacy_bioclin.runner.engines.remote import CheckedStart
from spacy_bioclin.runner.parts import Part
from spacy_bioclin.runner.records import Record
from spacy_bioclin.runner.work import Done, Work
from tests.runner import light
from tests.runner.engines.plugin import install

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")
# A part has one note. Line, from 1 -> what its note does.
NOTES = {
    "bad": {2: "veneno", 3: "mortal"},
    "deadly": {2: "mortal"},
}
LINES = 4


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A pipeline of which a component is in another package, and notes, of which some are bad."""
    folder = tmp_path_factory.mktemp("ready")
    packages = folder / "packages"
    packages.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", f"{packages}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        patched.setenv("OMP_NUM_THREADS", "1")
        patched.setattr("spacy_bioclin.runner.notes.job.PART_RECORDS", 1)
        patched.setattr(sys, "path", list(sys.path))
        install(packages)
        nlp = spacy.blank("es")
        nlp.add_pipe("test_deadly_note")
        nlp.add_pipe("entity_ruler").add_patterns([{"label": "SIGN", "pattern": "tos"}])
        nlp.to_disk(folder / "model")
        for name, special in NOTES.items():
            texts = [f"{i} con tos {special.get(i, '')}" for i in range(1, LINES + 1)]
            rows = [json.dumps({"id": f"n{i}", "text": text}) for i, text in enumerate(texts, 1)]
            (folder / f"{name}.jsonl").write_text("\n".join(rows))
        yield folder


def run(ready, out, engine, *options, notes="bad"):
    base = [ready / "model", ready / f"{notes}.jsonl", out, "--id-column", "id", "--engine", engine]
    arguments = ["run", *map(str, [*base, "--processes", 1, *options])]
    return CliRunner().invoke(app, arguments)


def read_all(folder, out="out.jsonl"):
    """Read the files of a run; the engine is not in them."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    about = json.loads(files.pop(f"{out}.run.json"))
    return about.pop("engine"), {**files, "about": about}


def test_bad_notes_are_quarantined(ready, inside, tmp_path):
    done = run(ready, tmp_path / "out.jsonl", "local", "--skip-bad")
    assert done.exit_code == 0, done.output
    engine, files = read_all(tmp_path)
    assert engine == {"name": "local", "workers": 1}
    assert sorted(files) == ["about", "out.jsonl", "out.jsonl.quarantine.jsonl"]
    assert files["about"]["records"] == {"read": 4, "written": 2, "quarantined": 2, "empty": 0}
    rows = [json.loads(line) for line in files["out.jsonl"].splitlines()]
    assert [row["record"] for row in rows] == [1, 4]
    assert {len(row["entities"]) for row in rows} == {1}
    bad, mortal = map(json.loads, files["out.jsonl.quarantine.jsonl"].splitlines())
    assert (bad["record"], bad["id"]) == (2, "n2") and "ValueError" in bad["reason"]
    assert (mortal["record"], mortal["id"], mortal["place"]) == (3, "n3", "line 3")
    assert mortal["reason"].startswith("line 3: the process died")
    assert b"mortal" not in files["out.jsonl.quarantine.jsonl"]


def test_without_skip_bad_the_deadly_note_is_named(ready, inside, tmp_path):
    done = run(ready, tmp_path / "out.jsonl", "local", notes="deadly")
    assert done.exit_code == 1, done.output
    assert "line 2: the process died" in done.stderr and "--skip-bad" in done.stderr
    assert "con tos" not in done.output
    assert len(list(tmp_path.glob(".out.jsonl.work/*.part"))) == 1  # what is finished stays


@pytest.mark.slow
def test_a_process_that_dies_is_replaced():
    """A real one: of a note that ends it, the others of its part do not get lost."""
    texts = ["uno", light.MORTAL]
    records = [Record(n, f"line {n}", {"text": text}) for n, text in enumerate(texts, start=1)]
    parts = [Part(0, records, []), Part(1, [Record(3, "line 3", {"text": "tres"})], [])]
    found = [done for _, done in LocalEngine(1, apart=True).map(light.start, parts)]
    assert [json.loads(done.data) for done in found] == [{"text": "UNO"}, {"text": "TRES"}]
    assert [done.refused for done in found] == [[{"place": "line 2", "reason": "died"}], []]


def check_start(ready, versions):
    model = str(ready / "model")
    return CheckedStart(partial(spacy.load, model), model, "0" * 64, versions)


def test_workers_have_the_pipeline_and_the_versions_of_the_command(ready, monkeypatch):
    monkeypatch.setattr("spacy_bioclin.runner.engines.remote.hide_texts", lambda: None)
    right = {"typer": version("typer")}
    with pytest.raises(BioclinError, match=r"other versions .* spacy, torch;"):
        check_start(ready, {"spacy": "0.0", "torch": "0.0", **right})()
    with pytest.raises(BioclinError, match="another pipeline"):
        check_start(ready, right)()


@pytest.fixture
def ray():
    """A Ray of this machine."""
    ray = pytest.importorskip("ray", reason="needs Ray")
    options = {"include_dashboard": False, "log_to_driver": False, "object_store_memory": 2**27}
    ray.init(address="local", num_cpus=1, logging_level="error", **options)
    yield ray
    ray.shutdown()


@pytest.fixture
def spark():
    """A session of Spark on this machine."""
    pytest.importorskip("pyspark", reason="needs pyspark")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    from spacy_bioclin.runner.engines.spark_jobs import open_session

    session, is_own = open_session(1)
    assert is_own
    yield session
    session.stop()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_another_engine_finishes_with_the_same_bytes(engine, ready, inside, tmp_path, request):
    """What processes of this machine began, another engine finishes. It does only what is left, and
    tells the errors of its workers."""
    wanted, made = tmp_path / "wanted", tmp_path / "made"
    for folder in (wanted, made):
        folder.mkdir()
    done = run(ready, wanted / "out.jsonl", "local", "--skip-bad")
    assert done.exit_code == 0, done.output
    _, files = read_all(wanted)
    out = made / "out.jsonl"
    done = run(ready, out, "local")
    assert done.exit_code == 1 and "line 2: the pipeline failed with ValueError" in done.stderr
    [part] = (made / ".out.jsonl.work").glob("*.part")
    work = Work.__new__(Work)  # write into the part, to see that it is not made again
    work.out, work.folder, work.hash = out, part.parent, part.name.split(".")[1]
    first = work.read(0)
    work.write(0, Done(first.data.replace(b'"n1"', b'"kept"'), *first[1:]))

    request.getfixturevalue(engine)  # starts it
    done = run(ready, out, engine, "--skip-bad", "--resume")
    assert done.exit_code == 0, done.output
    assert "con tos" not in done.output
    described, found = read_all(made)
    assert (described["name"], described["workers"]) == (engine, 1)
    files["out.jsonl"] = files["out.jsonl"].replace(b'"n1"', b'"kept"')
    assert found == files

    from spacy_bioclin.runner.engines.ray_actors import RayEngine
    from spacy_bioclin.runner.engines.spark_jobs import SparkEngine

    again = {"ray": RayEngine, "spark": SparkEngine}[engine](1)
    with pytest.raises(BioclinError, match="another pipeline"):
        list(again.map(check_start(ready, {}), [Part(0, [], [])]))
