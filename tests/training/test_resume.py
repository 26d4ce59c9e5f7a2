"""A resumed run gives the weights of one that was not interrupted."""

import io
import shutil
from pathlib import Path

import pytest
import spacy
import torch
from spacy.tokens import DocBin, Span
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as spacy_train
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.loop import BEST, LAST, train
from spacy_bioclin.training.state import STATE

ROOT = Path(__file__).parents[2]
NOTES = ["Paciente con neumonía.", "Sufre tos y fiebre.", "Sin fiebre ni disnea.", "Refiere tos."]
WORDS = {"neumonía", "tos", "fiebre", "disnea"}
STEPS, EVERY = 6, 3


@pytest.fixture(scope="module")
def settings(tmp_path_factory, tiny_encoder):
    """Overrides of a config; dropout and shuffling make the order of random draws matter."""
    nlp = spacy.blank("es")
    docs = []
    for note in NOTES:
        doc = nlp(note)
        signs = [Span(doc, t.i, t.i + 1, label="SIGN") for t in doc if t.text in WORDS]
        doc.set_ents(signs, default="outside")
        docs.append(doc)
    corpus = tmp_path_factory.mktemp("corpus") / "notes.spacy"
    DocBin(docs=docs).to_disk(corpus)
    return {
        "paths.train": str(corpus),
        "paths.dev": str(corpus),
        "paths.encoder": str(tiny_encoder),
        "nlp.lang": "es",
        "components.transformer.model.window": 32,
        "components.transformer.model.stride": 32,
        "training.max_steps": STEPS,
        "training.eval_frequency": EVERY,
        "training.batcher.size": 8,
        "training.logger.progress_bar": None,
    }


class Killed(BaseException):
    pass


def run(settings, output, *, config="ner.cfg", resume=False, kill_at=None):
    nlp = init_nlp(load_config(ROOT / "configs" / config, settings, interpolate=True))
    if kill_at is not None:

        @spacy.registry.callbacks("tests.kill.v1")
        def make_kill():
            def kill(given, state):
                assert given is nlp  # and not what repeats its updates
                if state["step"] == kill_at:
                    raise Killed

            return kill

        nlp.config["training"]["before_update"] = {"@callbacks": "tests.kill.v1"}
    out = io.StringIO()
    try:
        train(nlp, output, resume=resume, stdout=out, stderr=out)
    except Killed:
        assert kill_at is not None
    return out.getvalue()


def weights(folder):
    nlp = spacy.load(folder)
    found = {}
    for pipe in ("transformer", "ner"):
        for i, node in enumerate(nlp.get_pipe(pipe).model.walk()):
            for shim in node.shims:
                for name, tensor in shim.module.state_dict().items():
                    found[f"{pipe}.{i}.{name}"] = tensor
            for name in node.param_names:
                found[f"{pipe}.{i}.{name}"] = torch.from_numpy(node.get_param(name).copy())
    return found


@pytest.fixture(scope="module")
def finished(settings, tmp_path_factory):
    """Folder of a run that was not stopped, and what it printed."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, run(settings, folder)


def list_rows(printed):
    """Epochs, steps, losses and scores."""
    return [line for line in printed.splitlines() if line.split() and line.split()[0].isdigit()]


def assert_resumed_run_equals(finished, tmp_path, settings, *, config="ner.cfg", kill_at):
    folder, whole = finished
    run(settings, tmp_path, config=config, kill_at=kill_at)
    rest = run(settings, tmp_path, config=config, resume=True)
    for name in (BEST, LAST):
        expected, got = weights(folder / name), weights(tmp_path / name)
        assert expected.keys() == got.keys()
        for key, tensor in expected.items():
            assert torch.equal(tensor, got[key]), (name, key)
    rows, again = list_rows(whole), list_rows(rest)
    assert again and again == rows[-len(again) :]
    assert len(again) < len(rows)


def test_resumed_run_equals_one_that_was_not_stopped(finished, tmp_path, settings):
    assert_resumed_run_equals(finished, tmp_path, settings, kill_at=4)


@pytest.mark.slow
@pytest.mark.parametrize(("config", "kill_at"), [("ner.cfg", 5), ("ner-lexical.cfg", 4)])
def test_other_resumed_runs(tmp_path, settings, config, kill_at):
    whole = tmp_path / "whole", run(settings, tmp_path / "whole", config=config)
    assert_resumed_run_equals(whole, tmp_path / "killed", settings, config=config, kill_at=kill_at)


@pytest.mark.slow
def test_averages_are_saved_and_resumed(tmp_path, settings):
    """model-best and model-last have the averages of the weights, those of torch and of thinc."""
    config = "ner-lexical.cfg"
    settings = {**settings, "training.optimizer.use_averages": True}
    run(settings, tmp_path / "whole", config=config)
    run(settings, tmp_path / "killed", config=config, kill_at=4)
    run(settings, tmp_path / "killed", config=config, resume=True)
    run(settings, tmp_path / "killed", config=config, resume=True)  # which was finished
    run({**settings, "training.optimizer.use_averages": False}, tmp_path / "no", config=config)
    nlp = init_nlp(load_config(ROOT / "configs" / config, settings, interpolate=True))
    (tmp_path / "spacy").mkdir()
    spacy_train(nlp, tmp_path / "spacy", stdout=io.StringIO(), stderr=io.StringIO())
    by_spacy = weights(tmp_path / "spacy" / LAST)
    expected, got, trained = (weights(tmp_path / name / LAST) for name in ("whole", "killed", "no"))
    assert all(torch.equal(tensor, got[key]) for key, tensor in expected.items())
    assert all(torch.equal(tensor, by_spacy[key]) for key, tensor in expected.items())
    learning = [key for key in expected if torch.is_floating_point(expected[key])]
    assert not any(torch.equal(expected[key], trained[key]) for key in learning)
    same = weights(tmp_path / "whole" / STATE / "pipeline")  # goes on with the weights themselves
    assert all(torch.equal(same[key], trained[key]) for key in learning)


def test_a_finished_run_does_not_change(finished, tmp_path, settings):
    before = weights(finished[0] / LAST)
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    run(settings, tmp_path, resume=True)
    # As after a kill between the two renames of the state.
    (tmp_path / STATE).rename(tmp_path / f".{STATE}.old")
    run(settings, tmp_path, resume=True)
    after = weights(tmp_path / LAST)
    assert all(torch.equal(tensor, after[key]) for key, tensor in before.items())


def test_nothing_to_resume_is_an_error(tmp_path, settings):
    with pytest.raises(BioclinError, match="nothing to resume"):
        run(settings, tmp_path, resume=True)


def test_command(finished, settings):
    """What it refuses; that it trains is in test_auto.py."""
    folder, _ = finished
    options = [str(part) for key, value in settings.items() for part in (f"--{key}", value)]
    options[options.index("None")] = "null"
    config = str(ROOT / "configs" / "ner.cfg")
    again = CliRunner().invoke(app, ["train", config, "-o", str(folder), *options])
    assert again.exit_code == 1 and "--overwrite" in again.output
    wrong = CliRunner().invoke(app, ["train", "no.cfg", "-o", str(folder / "new")])
    assert wrong.exit_code == 1
    assert "no such file" in wrong.output
