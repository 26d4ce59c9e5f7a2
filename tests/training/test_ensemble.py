"""`bioclin ensemble`: members per fold, killed and resumed, joined, scored, a teacher."""

import json
import os
from functools import partial
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Span
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import read_docs, write_docs
from spacy_bioclin.files import hash_files
from spacy_bioclin.types import GOLD_KEY
from tests.dying import KILLED, in_fork

ROOT = Path(__file__).parents[2]
WORDS = {"neumonía", "tos", "fiebre", "disnea"}
TEXTS = [
    f"{start} {sign} {end}."
    for start, end in [("Paciente con", "leve"), ("Refiere", "ayer"), ("No tiene", "hoy")]
    for sign in sorted(WORDS)
]
CALLS = {"done": 0, "kill_at": None}


@pytest.fixture(scope="module", autouse=True)
def kill():
    @spacy.registry.callbacks("tests.kill_ensemble.v1")
    def make_kill():
        def before_update(nlp, state):
            CALLS["done"] += 1
            if CALLS["done"] == CALLS["kill_at"]:
                os._exit(KILLED)

        return before_update


@pytest.fixture(scope="module")
def options(tmp_path_factory, tiny_encoder):
    folder = tmp_path_factory.mktemp("corpora")
    nlp = spacy.blank("es")
    for split, texts in (("train", TEXTS[:8]), ("dev", TEXTS[8:])):
        docs = []
        for number, text in enumerate(texts):
            doc = nlp(text)
            signs = [Span(doc, t.i, t.i + 1, label="SIGN") for t in doc if t.text in WORDS]
            doc.set_ents(signs, default="outside")
            doc.user_data[GOLD_KEY] = {"id": f"{split}{number}", "task": "", "layers": {}}
            docs.append(doc)
        write_docs(docs, folder / f"{split}.spacy")
    settings = {
        "paths.train": folder / "train.spacy",
        "paths.dev": folder / "dev.spacy",
        "paths.encoder": tiny_encoder,
        "nlp.lang": "es",
        "components.transformer.model.window": 32,
        "training.max_steps": 4,
        "training.eval_frequency": 2,
        "training.batcher.size": 8,
        "training.logger.progress_bar": "null",
        "training.before_update": '{"@callbacks":"tests.kill_ensemble.v1"}',
    }
    return [str(part) for key, value in settings.items() for part in (f"--{key}", value)]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def ensemble(out, options, *more):
    return run("ensemble", ROOT / "configs" / "ner.cfg", "-o", out, "--folds", 2, *more, *options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, options):
    out = tmp_path_factory.mktemp("whole") / "out"
    done = ensemble(out, options)
    assert done.exit_code == 0, done.output
    assert "Member 2 of 2: 4 documents for training, 4 to choose the best step" in done.output
    assert "Scores on dev: ents_f" in done.output and f"{out / 'model'}" in done.output
    return out


@pytest.mark.slow
def test_output(whole, options):
    assert sorted(path.name for path in whole.iterdir()) == [
        *("ensemble.json", "members", "model", "run.json"),
    ]
    for number in range(2):
        names = sorted(path.name for path in (whole / "members" / str(number)).iterdir())
        assert names == ["model-best", "result.json"]  # no notes
    nlp = spacy.load(whole / "model")
    assert nlp.pipe_names == ["sentences", "ner", "cleaner"]
    assert nlp.config["corpora"]["train"]["path"] == "${paths.train}"
    assert nlp.config["paths"]["train"] == options[1]
    found = json.loads((whole / "ensemble.json").read_text("utf-8"))
    assert [member["fold"] for member in found["members"]] == [0, 1]
    assert [member["documents"] for member in found["members"]] == [4, 4]
    for member in found["members"]:
        assert member["best_step"] in (0, 2, 4) and 0 <= member["scores"]["ents_f"] <= 1
    stored = nlp.meta["performance"]  # spaCy rounds
    assert found["dev"].keys() == stored.keys()
    assert found["dev"]["ents_f"] == pytest.approx(stored["ents_f"])
    for member in (whole / "members").iterdir():
        assert spacy.load(member / "model-best").get_pipe("ner").labels == ("SIGN",)


@pytest.mark.slow
def test_killed_and_resumed(whole, options, tmp_path):
    out = tmp_path / "out"
    resume: list[str] = []
    # Updates of a run: before the first evaluation, after one, in the second member.
    for kill_at, finished in ((1, 0), (4, 0), (9, 1)):
        CALLS.update(done=0, kill_at=kill_at)
        assert in_fork(partial(ensemble, out, options, *resume)) == KILLED
        assert len(list(out.glob("members/*/result.json"))) == finished
        resume = ["--resume"]
    CALLS["kill_at"] = None
    refused = ensemble(out, options)
    assert refused.exit_code == 1 and "--resume" in refused.output
    other = ensemble(out, options, "--resume", "--system.seed", 7)
    assert other.exit_code == 1 and "system.seed was 0 and is 7" in " ".join(other.output.split())
    done = ensemble(out, options, "--resume")
    assert done.exit_code == 0 and "Member 1" not in done.output, done.output
    assert hash_files(out / "model") == hash_files(whole / "model")
    again = ensemble(out, options, "--resume")
    assert again.exit_code == 0 and "Member" not in again.output


@pytest.mark.slow
def test_with_dev(options, tmp_path):
    leave_out = tmp_path / "leave-out.txt"
    leave_out.write_text("train3\n", "utf-8")
    more = ("--with-dev", "--corpora.train.leave_out", leave_out, "--training.max_steps", 1)
    done = ensemble(tmp_path / "out", options, *more)
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "out" / "ensemble.json").read_text("utf-8"))
    assert sum(member["left_out"] for member in found["members"]) == 11
    assert found["dev"] == {} == spacy.load(tmp_path / "out" / "model").meta["performance"]


@pytest.mark.slow
def test_teaches_a_student(whole, options, tmp_path):
    config = ROOT / "configs" / "ner.cfg"
    text = tmp_path / "more.txt"
    text.write_text("Sufre tos y disnea.\nAlta.\n", "utf-8")
    out = tmp_path / "student"
    more = ("--texts", text, *options, "--training.max_steps", 1)
    done = run("distill-ner", whole / "model", config, "-o", out, *more)
    assert done.exit_code == 0, done.output
    assert spacy.load(out / "model-best").pipe_names[1:3] == ["transformer", "ner"]
    nlp = spacy.load(whole / "model")
    [gold] = (out / "corpus").glob("gold-*")
    for doc in read_docs(gold, nlp.vocab):
        layer = doc.user_data["bioclin_teacher"]["layers"]["ents"]
        found = nlp.get_pipe("ner").get_marginals([nlp.make_doc(doc.text)], temperature=1.0)[0]
        assert layer["marginals"] == pytest.approx(found, abs=2e-3)


def test_refused(options, tmp_path):
    config = ROOT / "configs" / "ner.cfg"
    for words, message in [
        ((config, "--folds", 1, *options), "want two or more"),
        ((config, "--folds", 9, *options), "only 8 of them differ"),
        ((config, *options[2:]), "[corpora.train] has no path"),
        ((ROOT / "configs" / "several.cfg",), "[corpora.train] must be a spacy-bioclin.Corpus.v1"),
        (("no.cfg",), "no such file"),
    ]:
        done = run("ensemble", *words, "-o", tmp_path / "out")
        assert done.exit_code == 1 and message in " ".join(done.output.split()), done.output
        assert not (tmp_path / "out" / "model").exists()
