"""A package is data: whatever it holds, nothing is run, written elsewhere or silently wrong."""

import ast
import copy
import json
import pickle
import resource
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.deid import make_pipeline
from spacy_bioclin.encoders.loading import load_pretrained
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.vocab import check_components, save_pipeline
from tests.hostile.code import ROOT, parse_files
from tests.packaging.hostile import (
    BAD_CHECKPOINTS,
    IGNORED,
    REFUSED,
    add_code,
    change_json,
    change_model,
    nan,
)

NOTE = "Paciente con neumonía en el Hospital General ."
KEY = b"0123456789abcdef-secret"
TEXTS = ["Paciente Juan Pérez, DNI 12345678Z."] * 4


@pytest.fixture
def package(pipeline, tmp_path):
    """Copy of a good package, in a folder of its own with nothing else in it."""
    return Path(shutil.copytree(pipeline, tmp_path / "home" / "package"))


@pytest.fixture
def renew(pipeline, tmp_path):
    """Make the package a good one again."""

    def renew():
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
        return Path(shutil.copytree(pipeline, tmp_path / "home" / "package"))

    return renew


@pytest.fixture(scope="module")
def good_checkpoint(tmp_path_factory, tiny_encoder):
    """A token-classification checkpoint, as transformers writes one."""
    from transformers import AutoConfig, AutoModelForTokenClassification

    folder = tmp_path_factory.mktemp("good") / "checkpoint"
    shutil.copytree(tiny_encoder, folder)
    labels = {0: "O", 1: "B-X", 2: "I-X"}
    config = AutoConfig.from_pretrained(tiny_encoder, id2label=labels, trust_remote_code=False)
    AutoModelForTokenClassification.from_config(config).save_pretrained(folder)
    return folder


@pytest.fixture
def checkpoint(good_checkpoint, tmp_path):
    return Path(shutil.copytree(good_checkpoint, tmp_path / "home" / "checkpoint"))


def annotate(nlp):
    doc = nlp(NOTE)
    spans = [*doc.ents, *doc.spans.get("phi", ())]
    return [(span.start, span.end, span.label_) for span in spans]


def list_files(folder):
    return sorted((str(path), path.lstat().st_mtime_ns) for path in folder.rglob("*"))


@pytest.fixture
def little_memory():
    """Limit the memory that may still be taken."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**32, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("third", range(3))
def test_hostile_package_is_refused(renew, tmp_path, little_memory, third):
    for name in [*REFUSED][third::3]:
        package = renew()
        make, word = REFUSED[name]
        make(package)
        before = list_files(tmp_path)
        with pytest.raises(BioclinError, match=word) as error:
            spacy.load(package)
        assert "\n" not in str(error.value) and len(str(error.value)) < 500, name
        assert list_files(tmp_path) == before, name
        assert not Path("/tmp/bioclin-hostile-name").exists(), name


@pytest.mark.parametrize("half", range(2))
def test_what_names_code_or_files_is_left_out(pipeline, renew, tmp_path, half):
    wanted = annotate(spacy.load(pipeline))
    for name in [*IGNORED][half::2]:
        package = renew()
        IGNORED[name](package)
        before = list_files(tmp_path)
        assert annotate(spacy.load(package)) == wanted, name
        assert list_files(tmp_path) == before, name


@pytest.mark.parametrize("head", ["ner", "phi"])
def test_weights_of_a_head_are_numbers(package, head):
    from spacy_bioclin.ner.component import ClinicalNer

    nlp = spacy.load(package)
    ner = nlp.get_pipe(head)
    assert isinstance(ner, ClinicalNer)
    nan(ner.model.get_ref("head").shims[0].module.output.weight.data)
    ner.to_disk(package / head)
    with pytest.raises(BioclinError, match=rf"\[components.{head}\] .* not finite"):
        spacy.load(package)


def check_cuts(pipeline, copied, cuts):
    """Cut each file at each place: an error of one line, or the same annotations."""
    wanted, silent = annotate(spacy.load(pipeline)), []
    for path in sorted(path for path in copied.rglob("*") if path.is_file()):
        content = path.read_bytes()
        for cut in cuts(len(content)):
            path.write_bytes(content[:cut])
            try:
                if annotate(spacy.load(copied)) != wanted:
                    silent.append(f"{path.name} cut at {cut}: other annotations")
            except Exception as error:  # spaCy's own files can raise any error
                if path.parent.name in ("transformer", "ner", "phi"):
                    assert isinstance(error, ValueError), (path, cut, error)
            quiet = cut or path.parent.name not in ("package", "ner")
            done = None if quiet else CliRunner().invoke(app, ["info", str(copied)])
            if done and not isinstance(done.exception, SystemExit | None):
                silent.append(f"{path.name} cut at {cut}: info raised {done.exception!r}")
        path.write_bytes(content)
    return silent


def test_empty_files_are_errors_or_change_nothing(pipeline, package):
    assert check_cuts(pipeline, package, lambda size: [0] if size else []) == []


@pytest.mark.slow
def test_files_that_are_cut_are_errors_or_change_nothing(pipeline, package):
    assert check_cuts(pipeline, package, lambda size: range(4096, size, 4096)) == []


def test_settings_of_wrong_types_are_one_line(package, tmp_path):
    for file in ("meta.json", "config.cfg", "ner/cfg"):
        whole = (package / file).read_bytes()
        for content in ("[]", "7", "", "[" * 10**6, '{"a": {"b": ', "null"):
            (package / file).write_text(content)
            arguments = ["annotate", package, ROOT / "README.md", "-o", tmp_path / "x"]
            done = CliRunner().invoke(app, [*map(str, arguments)])
            assert done.exit_code == 1, (file, content[:20], done.output)
            assert isinstance(done.exception, SystemExit), (file, content[:20], done.exception)
            assert "cannot load the pipeline" in done.output and len(done.output) < 1000
        (package / file).write_bytes(whole)


def test_damaged_checkpoint_is_one_line(good_checkpoint, tmp_path, little_memory):
    out = tmp_path / "out"
    for name, damage in BAD_CHECKPOINTS.items():
        checkpoint = Path(shutil.copytree(good_checkpoint, tmp_path / name / "checkpoint"))
        damage(checkpoint)
        done = CliRunner().invoke(app, ["import-hf", str(checkpoint), "-o", str(out)])
        assert done.exit_code == 1 and isinstance(done.exception, SystemExit), (name, done.output)
        assert done.stderr.count("\n") == 1 and "Traceback" not in done.output, name
        assert not out.exists(), name


def test_code_beside_a_checkpoint_is_not_run(checkpoint, tmp_path):
    add_code(checkpoint, tmp_path / "executed")
    arguments = ["import-hf", str(checkpoint), "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, arguments, input="y\n" * 50)
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "executed").exists()
    done = CliRunner().invoke(app, ["encoders", "check", str(checkpoint)], input="y\n" * 50)
    assert not (tmp_path / "executed").exists()


def test_key_is_never_written(tmp_path):
    nlp = make_pipeline("es", rules_only=True, policy={"default": "hash"}, key=KEY)
    nlp.to_disk(tmp_path / "nlp")
    files = [path.read_bytes() for path in (tmp_path / "nlp").rglob("*") if path.is_file()]
    deid = nlp.get_pipe("bioclin_deid")
    shown = [repr(deid), repr(vars(deid)), repr(nlp.config), repr(nlp.meta), nlp.config.to_str()]
    forms = [pickle.dumps(nlp), pickle.dumps(deid), nlp.to_bytes(), *files]
    assert not [form for form in [*forms, *(s.encode() for s in shown)] if KEY in form]
    assert deid.key == KEY


def test_a_pickle_has_the_key_of_where_it_is_read(monkeypatch):
    monkeypatch.delenv("BIOCLIN_DEID_KEY", raising=False)
    data = pickle.dumps(make_pipeline("es", rules_only=True, policy={"default": "hash"}, key=KEY))
    with pytest.raises(BioclinError, match="needs the secret key"):
        pickle.loads(data)(TEXTS[0])
    monkeypatch.setenv("BIOCLIN_DEID_KEY", KEY.decode())
    there = make_pipeline("es", rules_only=True, policy={"default": "hash"}, key=KEY)
    assert pickle.loads(data)(TEXTS[0])._.deid.text == there(TEXTS[0])._.deid.text


SPAWN = f"""
import multiprocessing
from spacy_bioclin.deid import make_pipeline
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    nlp = make_pipeline("es", rules_only=True, policy={{"default": "hash"}}, key={KEY!r})
    one = [doc._.deid.text for doc in nlp.pipe({TEXTS!r})]
    two = [doc._.deid.text for doc in nlp.pipe({TEXTS!r}, n_process=2, batch_size=2)]
    assert one == two
"""


def test_copies_in_memory_have_the_key():
    nlp = make_pipeline("es", rules_only=True, policy={"default": "hash"}, key=KEY)
    assert copy.deepcopy(nlp)(TEXTS[0])._.deid.text == nlp(TEXTS[0])._.deid.text


@pytest.mark.full
def test_spawned_processes_have_the_key(tmp_path):
    """Each of them imports the libraries, for seconds."""
    (tmp_path / "main.py").write_text(SPAWN)
    subprocess.run([sys.executable, "-W", "ignore", "main.py"], cwd=tmp_path, check=True)


def calls(rooms, words, pattern=r"(?!)"):
    """The calls in files of some folders that have some words: place, name, the call."""
    for room in rooms:
        for path, tree in parse_files(room, words, pattern):
            for node in ast.walk(tree):
                if isinstance(node, ast.Call):
                    yield f"{path}:{node.lineno}", ast.unparse(node.func), node


def argument(call, name, default=""):
    return next((ast.unparse(k.value) for k in call.keywords if k.arg == name), default)


def test_every_from_pretrained_says_that_no_code_is_run():
    rooms = ("spacy_bioclin", "scripts", "benchmarks", "projects")
    found = [
        (where, argument(call, "trust_remote_code"))
        for where, name, call in calls(rooms, ["from_pretrained"])
        if name.endswith(".from_pretrained")
    ]
    assert len(found) > 20
    assert [where for where, trust in found if trust != "False"] == []


UNSAFE_MODULES = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "cloudpickle"}
# Spark's Arrow batches hold bytes: a part that this command has pickled for its own workers.
PICKLES = {"spark_jobs.py"}
UNSAFE_CALLS = {"eval", "exec", "compile", "os.system", "os.popen", "yaml.load", "__import__"}


def test_nothing_unpickles_or_evaluates():
    rooms = ("spacy_bioclin", "scripts", "projects")
    bad = []
    words = [*UNSAFE_MODULES, "shell", "torch.load(", "np.load("]
    words += [f"{name}(" for name in UNSAFE_CALLS - {"compile", "eval", "exec"}]
    # Nearly every file has re.compile.
    pattern = r"(?<![.\w])(compile|eval|exec)\("
    for where, name, call in calls(rooms, words, pattern):
        if name in UNSAFE_CALLS or argument(call, "shell", "False") != "False":
            bad.append(f"{where} {name}")
        if name == "torch.load" and argument(call, "weights_only") != "True":
            bad.append(f"{where} {name}")
        if name.endswith("np.load") and argument(call, "allow_pickle", "False") != "False":
            bad.append(f"{where} {name}")
        is_allowed = Path(where.partition(":")[0]).name in PICKLES and name.startswith("pickle.")
        if name.split(".")[0] in UNSAFE_MODULES and not is_allowed:
            bad.append(f"{where} {name}")
    for path, tree in parse_files("spacy_bioclin", UNSAFE_MODULES):
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            bad += [f"{path.name} {name}" for name in names if name.split(".")[0] in UNSAFE_MODULES]
    assert bad == [f"{name} pickle" for name in PICKLES]


def test_meta_of_a_package_decides_no_path_and_no_requirement(package, tmp_path):
    lines = {key: f"a\nRequires-Dist: {key}" for key in ("description", "author", "email", "url")}
    lines["license"] = "MIT\n\nimport os"
    change_json(
        package / "meta.json", setup_requires=["evil @ https://evil.example/e.whl"], **lines
    )
    arguments = ["--name", "x", "--version", "0.1", str(package), str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["package", *arguments])
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(next((tmp_path / "out").glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("METADATA"))
        requires = [
            line
            for line in wheel.read(name).decode().splitlines()
            if line.startswith(("Requires", "Provides"))
        ]
    names = [line.partition(": ")[2].partition("<")[0] for line in requires]
    assert names == ["spacy-bioclin", "spacy-transformers"], requires


def test_language_name_and_version_are_no_path(package, tmp_path):
    def refused(name="x", version="0.1"):
        before = list_files(tmp_path)
        arguments = ["--name", name, "--version", version, str(package), str(tmp_path / "out")]
        done = CliRunner().invoke(app, ["package", *arguments])
        assert (done.exit_code, done.stderr.count("\n")) == (1, 1), done.output
        assert list_files(tmp_path) == before

    for name, version in (("../x", "0.1"), ("x", "0.1/../../x"), ("x\ny", "1")):
        refused(name, version)
    for lang in ("../../../evil", "/evil", "es\nx", 7, None, "es/.."):
        change_json(package / "meta.json", lang=lang)
        refused()


def test_what_a_link_leads_to_is_not_packaged(package, tmp_path):
    (tmp_path / "notes.txt").write_text("a note")
    (package / "notes.txt").symlink_to(tmp_path / "notes.txt")
    arguments = ["--name", "x", "--version", "0.1", str(package), str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["package", *arguments])
    assert done.exit_code == 1 and "a link to something outside" in done.stderr


def test_names_of_components_are_no_paths():
    check_components(["ner", "ner.es", "mi componente", "Ñandú-2"])
    for name in ("/tmp/evil", "a/b", "..", "", "a\\b", "vocab", "tokenizer", "a\0", 7):
        with pytest.raises(BioclinError, match="a folder of its own") as caught:
            check_components([name])
        assert "\n" not in str(caught.value), name


def test_a_component_is_not_written_outside(tmp_path):
    """spaCy joins the folder and the name, and an absolute name is where it then writes."""
    outside = tmp_path / "outside"
    nlp = spacy.blank("es")
    nlp.add_pipe("sentencizer", name=str(outside))
    nlp.to_disk(tmp_path / "package")
    [written] = tmp_path.glob("outside*")  # what spaCy does
    before = written.stat().st_mtime_ns
    (tmp_path / "note.txt").write_text("Tos .")
    with pytest.raises(BioclinError, match="a folder of its own"):
        save_pipeline(nlp, tmp_path / "again")
    commands = [
        ["package", "package", "out", "--name", "x", "--version", "0.1"],
        ["annotate", "package", "note.txt"],
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        for command in commands:
            done = CliRunner().invoke(app, command)
            assert done.exit_code == 1 and "rename it in config.cfg" in done.output, done.output
            assert "Traceback" not in done.output
    assert written.stat().st_mtime_ns == before and not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize("where", ["vocabulary", "around a text"])
def test_pieces_beyond_the_encoder_are_one_line(tiny_encoder, tmp_path, where):
    """When it is loaded, not when a note has such a piece."""
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    load_pretrained(str(folder), {})
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text())
    if where == "vocabulary":
        content["model"]["vocab"]["qxz"] = 10**6
    else:
        content["post_processor"]["sep"][1] = 10**6
    file.write_text(json.dumps(content))
    with pytest.raises(BioclinError, match=r"piece number 1,000,000, and the encoder vectors"):
        load_pretrained(str(folder), {})


def test_stored_pieces_beyond_the_encoder_are_one_line(package):
    def add(header, _):
        content = json.loads(header["tokenizer"]["tokenizer.json"])
        content["model"]["vocab"]["qxz"] = 10**6
        header["tokenizer"]["tokenizer.json"] = json.dumps(content)

    change_model(package, add)
    with pytest.raises(BioclinError, match="piece number 1,000,000"):
        spacy.load(package)
