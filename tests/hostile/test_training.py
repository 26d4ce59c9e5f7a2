"""Trainings that are killed, resumed with something else, damaged, or aimed at their own input."""

import json
import pickle
from pathlib import Path

import pytest
import spacy
import torch
from spacy.tokens import DocBin, Span
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.outputs import grow_folder
from spacy_bioclin.training.state import PIPELINE, STATE, VALUES
from tests.dying import die_at_write, leftovers

ROOT = Path(__file__).parents[2]
NOTES = ["Paciente con neumonía.", "Sufre tos y fiebre.", "Sin fiebre ni disnea.", "Refiere tos."]
WORDS = {"neumonía", "tos", "fiebre", "disnea"}


def write_corpus(path, notes=NOTES, label="SIGN"):
    nlp = spacy.blank("es")
    docs = [nlp(note) for note in notes]
    for doc in docs:
        signs = [Span(doc, t.i, t.i + 1, label=label) for t in doc if t.text in WORDS]
        doc.set_ents(signs, default="outside")
    path.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=docs).to_disk(path)
    return path


@pytest.fixture(scope="module")
def train(tmp_path_factory, tiny_encoder):
    corpus = write_corpus(tmp_path_factory.mktemp("corpus") / "notes.spacy")

    def run(output, *options, config=ROOT / "configs/ner.cfg", **settings):
        settings = {
            "paths.train": corpus,
            "paths.dev": corpus,
            "paths.encoder": tiny_encoder,
            "nlp.lang": "es",
            "components.transformer.model.window": 32,
            "components.transformer.model.stride": 32,
            "training.max_steps": 4,
            "training.eval_frequency": 2,
            "training.batcher.size": 8,
            "training.logger.progress_bar": "null",
            **{key.replace("__", "."): value for key, value in settings.items()},
        }
        flat = [str(part) for key, value in settings.items() for part in (f"--{key}", value)]
        return CliRunner().invoke(app, ["train", str(config), "-o", str(output), *options, *flat])

    return run


@pytest.fixture(scope="module")
def whole(train, tmp_path_factory):
    output = tmp_path_factory.mktemp("whole") / "out"
    assert train(output).exit_code == 0
    return output


def refused(done, *words):
    assert (done.exit_code, done.exception.__class__) == (1, SystemExit), done.output
    assert all(word in done.stderr for word in words), done.stderr
    return True


def test_a_trained_pipeline_holds_no_words_of_its_notes(whole):
    stored = [path for path in whole.rglob("strings.json") if path.parent.name == "vocab"]
    assert len(stored) == 3, "model-best, model-last and the state"
    for path in stored:
        strings = set(json.loads(path.read_text("utf-8")))
        assert "SIGN" in strings, "labels stay"
        assert not WORDS & strings, path
    doc = spacy.load(whole / "model-best")("Refiere tos.")
    assert [token.text for token in doc] == ["Refiere", "tos", "."]


def read_files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and STATE not in path.parts
    }


# The moments: before each rename of a pipeline or a state, and between the two that replace one.
@pytest.mark.parametrize(
    "moment", [14, *(pytest.param(number, marks=pytest.mark.slow) for number in (2, 9, 18, 27))]
)
def test_killed_at_any_moment_it_resumes_with_the_same_result(train, whole, tmp_path, moment):
    out = tmp_path / "out"
    assert die_at_write(lambda: train(out), moment)
    done = train(out, "--resume")
    if done.exit_code:  # nothing was whole yet
        assert refused(done, "nothing to resume")
        assert train(out, "--overwrite").exit_code == 0
    assert read_files(out) == read_files(whole)
    assert not leftovers(out)


def test_state_is_data(train, whole, tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "executed",))

    out = copy(whole, tmp_path / "out")
    values = torch.load(out / STATE / VALUES, weights_only=True)
    torch.save({**values, "generators": Evil()}, out / STATE / VALUES)
    assert refused(train(out, "--resume"), VALUES, "damaged or was changed")
    trust_hashes(out)
    assert refused(train(out, "--resume"), "cannot be read")
    (out / STATE / VALUES).write_bytes(pickle.dumps(Evil()))
    trust_hashes(out)
    assert refused(train(out, "--resume"), "cannot be read")
    assert not (tmp_path / "executed").exists()


def test_damaged_state_is_refused(train, whole, tmp_path):
    out = copy(whole, tmp_path / "out")
    for name, cut in ((VALUES, 0), (f"{PIPELINE}/transformer/model", 0.5)):
        path = out / STATE / name
        content = path.read_bytes()
        path.write_bytes(content[: int(cut * len(content))])
        assert refused(train(out, "--resume"), "damaged")
        trust_hashes(out)  # whoever writes the files can write their hashes
        assert refused(train(out, "--resume"), "cannot be read")
        path.write_bytes(content)
        trust_hashes(out)


def test_damaged_record_of_a_state_is_refused(train, whole, tmp_path):
    out = copy(whole, tmp_path / "out")
    for content in ("", "[]", '{"format": 99}'):
        (out / STATE / "run.json").write_text(content)
        assert refused(train(out, "--resume"), STATE)


def test_only_the_same_training_is_resumed(train, whole, tmp_path):
    out = copy(whole, tmp_path / "out")
    other = write_corpus(tmp_path / "other.spacy", NOTES[1:])
    assert refused(train(out, "--resume", paths__train=other), "corpora was")
    assert refused(train(out, "--resume", training__dropout=0.5), "training.dropout was")
    assert refused(train(out, "--resume", system__seed=7), "seed was 0 and is 7")
    before = read_files(out)
    same = write_corpus(tmp_path / "moved.spacy")
    assert train(out, "--resume", paths__train=same, paths__dev=same).exit_code == 0
    assert read_files(out).keys() == before.keys()


@pytest.mark.slow
def test_a_longer_training_goes_on(train, whole, tmp_path):
    out = copy(whole, tmp_path / "out")
    assert train(out, "--resume", training__max_steps=6).exit_code == 0


def test_one_process_at_a_time(train, tmp_path):
    with grow_folder(tmp_path / "out"):
        assert refused(train(tmp_path / "out"), "another run is writing it")


def test_nothing_of_others_is_replaced(train, tmp_path):
    for name in ("model-last", "model-best", STATE):
        out = tmp_path / name
        (out / name).mkdir(parents=True)
        (out / name / "thesis.txt").write_text("mine")
        assert refused(train(out, "--overwrite"), "is not replaced")
        assert (out / name / "thesis.txt").read_text() == "mine"
        assert refused(train(out), "--overwrite")


def test_input_is_not_replaced(train, whole, tmp_path):
    out = copy(whole, tmp_path / "out")
    corpus = write_corpus(out / "model-best" / "notes.spacy")
    done = train(out, "--overwrite", paths__train=corpus, paths__dev=corpus)
    assert refused(done, "is the input", "or holds it")
    assert corpus.exists()


def test_what_is_no_config_is_refused(train, tmp_path):
    config = tmp_path / "bad.cfg"
    for content in (b"x=[", b"\xff\xfe\0", b"\0" * 100):
        config.write_bytes(content)
        assert refused(train(tmp_path / "out", config=config), "bad.cfg")
        assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_hostile_labels_stay_labels(train, tmp_path):
    corpus = write_corpus(tmp_path / "c.spacy", label="../a/\n<b>\x1b[31m=cmd()")
    done = train(tmp_path / "out", paths__train=corpus, paths__dev=corpus)
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.spacy", "out"]


def copy(source, target):
    import shutil

    return shutil.copytree(source, target)


def trust_hashes(out):
    import json

    from spacy_bioclin.files import hash_files

    path = out / STATE / "run.json"
    run = json.loads(path.read_text())
    run["files"] = {name: hash_files(out / STATE / name) for name in (PIPELINE, VALUES)}
    path.write_text(json.dumps(run))
