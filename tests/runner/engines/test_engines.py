"""The engines of `bioclin run`: real processes, a real Ray and a real Spark of this machine."""

import json
import os
import shutil
import sys

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.runner.work import Done, Work
from tests.runner.engines.plugin import install

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux"),
]
PART = 2
# Line, from 1 -> what its note does. Parts are of two lines.
DEADLY = {4: "mortal", 5: "una vez", 6: "veneno"}
BAD = {3: "veneno"}
ENGINES = ("local", "ray", "spark")


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A pipeline of which a component is in another package, and notes, of which some are bad."""
    folder = tmp_path_factory.mktemp("ready")
    packages = folder / "packages"
    packages.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", f"{packages}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        patched.setenv("OMP_NUM_THREADS", "1")
        patched.setattr("spacy_bioclin.runner.notes.job.PART_RECORDS", PART)
        patched.setattr(sys, "path", list(sys.path))
        install(packages)
        nlp = spacy.blank("es")
        nlp.add_pipe("test_deadly_note")
        nlp.add_pipe("entity_ruler").add_patterns([{"label": "SIGN", "pattern": "tos"}])
        nlp.to_disk(folder / "model")
        for name, special in (("deadly", DEADLY), ("bad", BAD)):
            texts = [f"{i} con tos {special.get(i, '')}" for i in range(1, 7)]
            rows = [json.dumps({"id": f"n{i}", "text": text}) for i, text in enumerate(texts, 1)]
            (folder / f"{name}.jsonl").write_text("\n".join(rows))
        yield folder


@pytest.fixture(scope="module")
def ray(ready):
    """A Ray of this machine, for all tests of the module."""
    ray = pytest.importorskip("ray", reason="needs Ray")
    options = {"include_dashboard": False, "log_to_driver": False, "object_store_memory": 2**27}
    ray.init(address="local", num_cpus=2, logging_level="error", **options)
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def spark(ready):
    """A session of Spark on this machine, for all tests of the module."""
    pytest.importorskip("pyspark", reason="needs pyspark")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    from spacy_bioclin.runner.engines.spark_jobs import open_session

    session, is_own = open_session(2)
    assert is_own
    yield session
    session.stop()


@pytest.fixture
def prepare(request):
    """Start what an engine needs."""

    def prepare_engine(name):
        if name != "local":
            request.getfixturevalue(name)

    return prepare_engine


def run(ready, out, engine, *options, notes="deadly"):
    (ready / "packages" / "once").unlink(missing_ok=True)
    base = [ready / "model", ready / f"{notes}.jsonl", out, "--id-column", "id", "--engine", engine]
    arguments = ["run", *map(str, [*base, "--processes", 2, *options])]
    return CliRunner().invoke(app, arguments)


def read_all(folder, out="out.jsonl"):
    """Read the files of a run; the engine is not in them."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    about = json.loads(files.pop(f"{out}.run.json"))
    return about.pop("engine"), {**files, "about": about}


@pytest.fixture(scope="module")
def wanted(ready, tmp_path_factory):
    """What processes of this machine write; checked by hand in `test_local`."""
    folder = tmp_path_factory.mktemp("local")
    done = run(ready, folder / "out.jsonl", "local", "--skip-bad")
    assert done.exit_code == 0, done.output
    return read_all(folder)


def test_local(wanted):
    engine, files = wanted
    assert engine == {"name": "local", "workers": 2}
    assert sorted(files) == ["about", "out.jsonl", "out.jsonl.quarantine.jsonl"]
    assert files["about"]["records"] == {"read": 6, "written": 4, "quarantined": 2, "empty": 0}
    rows = [json.loads(line) for line in files["out.jsonl"].splitlines()]
    assert [row["record"] for row in rows] == [1, 2, 3, 5]
    assert {len(row["entities"]) for row in rows} == {1}
    mortal, bad = map(json.loads, files["out.jsonl.quarantine.jsonl"].splitlines())
    assert (mortal["record"], mortal["id"], mortal["place"]) == (4, "n4", "line 4")
    assert mortal["reason"].startswith("line 4: the process died")
    assert (bad["record"], bad["id"]) == (6, "n6") and "ValueError" in bad["reason"]
    assert b"mortal" not in files["out.jsonl.quarantine.jsonl"]


def test_without_skip_bad_the_deadly_note_is_named(ready, tmp_path):
    done = run(ready, tmp_path / "out.jsonl", "local")
    assert done.exit_code == 1, done.output
    assert "line 4: the process died" in done.stderr and "--skip-bad" in done.stderr
    assert "con tos" not in done.output
    assert len(list(tmp_path.glob(".out.jsonl.work/*.part"))) == 1  # what is finished stays


@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_the_same_bytes_whatever_the_engine(engine, ready, wanted, prepare, tmp_path):
    prepare(engine)
    done = run(ready, tmp_path / "out.jsonl", engine, "--skip-bad")
    assert done.exit_code == 0, done.output
    described, files = read_all(tmp_path)
    assert (described["name"], described["workers"]) == (engine, 2)
    assert files == wanted[1]
    assert "con tos" not in done.output


@pytest.mark.parametrize(
    ("first", "second"), [("local", "ray"), ("ray", "spark"), ("spark", "local")]
)
def test_resume_with_another_engine(first, second, ready, prepare, tmp_path):
    """The first stops at a bad note; the second does only what is left."""
    prepare(first)
    prepare(second)
    out = tmp_path / "out.jsonl"
    done = run(ready, out, first, notes="bad")
    assert done.exit_code == 1 and "line 3: the pipeline failed with ValueError" in done.stderr
    [part] = (tmp_path / ".out.jsonl.work").glob("*.part")
    work = Work.__new__(Work)  # write into the part, to see that it is not made again
    work.out, work.folder, work.hash = out, part.parent, part.name.split(".")[1]
    made = work.read(0)
    work.write(0, Done(made.data.replace(b'"n1"', b'"kept"'), *made[1:]))
    done = run(ready, out, second, "--skip-bad", "--resume", notes="bad")
    assert done.exit_code == 0, done.output
    ids = [json.loads(line)["id"] for line in out.read_text().splitlines()]
    assert ids == ["kept", "n2", "n4", "n5", "n6"]


def test_an_error_of_a_worker_is_told(ready, prepare, tmp_path):
    from functools import partial

    from spacy_bioclin.errors import BioclinError
    from spacy_bioclin.runner.engines.ray_actors import RayEngine
    from spacy_bioclin.runner.engines.remote import CheckedStart
    from spacy_bioclin.runner.engines.spark_jobs import SparkEngine
    from spacy_bioclin.runner.parts import Part

    prepare("ray")
    prepare("spark")
    model = str(ready / "model")
    for engine in (RayEngine(1), SparkEngine(1)):
        for sha256, versions, said in (
            ("0" * 64, {}, "another pipeline"),
            ("0" * 64, {"spacy": "0.0", "torch": "0.0"}, "other versions .* spacy, torch"),
        ):
            start = CheckedStart(partial(spacy.load, model), model, sha256, versions)
            with pytest.raises(BioclinError, match=said):
                list(engine.map(start, [Part(0, [], [])]))
