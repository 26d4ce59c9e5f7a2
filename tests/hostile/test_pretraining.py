"""Pretraining that is killed, resumed with something else, damaged, or that diverges."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.outputs import grow_folder
from spacy_bioclin.pretraining.compact import build_compact_encoder
from spacy_bioclin.pretraining.masked_lm import pretrain
from spacy_bioclin.pretraining.settings import PretrainSettings
from spacy_bioclin.pretraining.trainer import WHOLE
from tests.dying import die_at_write, in_fork
from tests.pretraining.fixtures import SENTENCES

SETTINGS = PretrainSettings(
    steps=4,
    batch_pieces=64,
    length=32,
    learn_rate=5e-3,
    dropout=0.1,
    every=2,
    precision="fp32",
)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start") / "random"
    texts = [sentence for sentences in SENTENCES.values() for sentence in sentences]
    build_compact_encoder(texts * 3, folder, vocab_size=320, layers=1, width=64, seed=0)
    return folder


@pytest.fixture(scope="module")
def run(start, corpus):
    def run(out, *, corpus=corpus, start_from=start, resume=False, **changes):
        return pretrain(
            corpus,
            out,
            start_from=str(start_from),
            tokenizer=None,
            layers=None,
            settings=replace(SETTINGS, **changes),
            resume=resume,
        )

    return run


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    return out, run(out)


@pytest.fixture
def made(whole, tmp_path):
    return shutil.copytree(whole[0], tmp_path / "out")


def weights(out):
    return (out / "encoder" / "model.safetensors").read_bytes()


# Before the blocks, in and between checkpoints, before the encoder and before the record.
@pytest.mark.slow
@pytest.mark.parametrize("moment", [3, 9, 14, 17])
def test_killed_at_any_moment_it_resumes_with_the_same_result(run, whole, tmp_path, moment):
    out = tmp_path / "out"
    assert die_at_write(lambda: run(out), moment)
    record = run(out, resume=True)
    assert record["finished"] and record["loss"] == whole[1]["loss"]
    assert weights(out) == weights(whole[0])


# Two accumulated passes per update with 32 pieces at once. Each process imports for seconds; the
# test above kills forks.
@pytest.mark.full
@pytest.mark.parametrize("device_pieces", [0, 32])
def test_kill_9_of_the_command_and_resume_give_the_same_weights(
    start, corpus, tmp_path, device_pieces
):
    def command(out, *more):
        settings = {"--steps": 60, "--every": 10, "--batch-pieces": 64, "--length": 32}
        settings |= {"--dropout": 0.1, "--precision": "fp32", "--learn-rate": 5e-3}
        settings |= {"--device-pieces": device_pieces}
        flat = [str(part) for pair in settings.items() for part in pair]
        arguments = [str(corpus), "-o", str(out), "--start-from", str(start), *flat, *more]
        return [sys.executable, "-W", "ignore", "-m", "spacy_bioclin", "pretrain", *arguments]

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command(tmp_path / "whole"), check=True, **quiet)
    parts = tmp_path / "parts"
    child = subprocess.Popen(command(parts), **quiet)
    end = time.monotonic() + 300
    while not (parts / "checkpoint-20" / WHOLE).exists():
        assert child.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    assert not (parts / "encoder").exists()
    subprocess.run(command(parts, "--resume"), check=True, **quiet)
    assert weights(parts) == weights(tmp_path / "whole")
    records = [
        json.loads((out / "pretraining.json").read_text()) for out in (parts, tmp_path / "whole")
    ]
    assert records[0]["loss"] == records[1]["loss"]
    assert records[0]["perplexity"] == records[1]["perplexity"]


# Files that the Trainer would silently do without.
@pytest.mark.parametrize("name", [WHOLE, pytest.param("optimizer.pt", marks=pytest.mark.slow)])
def test_a_checkpoint_that_was_cut_short_does_not_count(run, whole, made, name, caplog):
    (made / "checkpoint-4" / name).unlink()
    shutil.rmtree(made / "encoder")
    record = run(made, resume=True)
    assert record["loss"] == whole[1]["loss"] and weights(made) == weights(whole[0])
    assert "checkpoint-4: is damaged or was cut short" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "damage"),
    [("optimizer.pt", "cut"), ("pytorch_model.bin", "changed"), ("trainer_state.json", "empty")],
)
def test_damaged_checkpoints_do_not_count(run, whole, made, name, damage):
    for folder in made.glob("checkpoint-*"):
        content = (folder / name).read_bytes()
        changed = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
        (folder / name).write_bytes(
            {"cut": content[: len(content) // 2], "changed": changed, "empty": b""}[damage]
        )
    shutil.rmtree(made / "encoder")
    assert run(made, resume=True)["loss"] == whole[1]["loss"]
    assert weights(made) == weights(whole[0])


def test_only_the_same_training_is_resumed(run, made, corpus, tmp_path, start, monkeypatch):
    for change, message in (
        ({"steps": 6}, "steps was 4 and is 6"),
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"learn_rate": 1e-3}, "learn_rate was 0.005 and is 0.001"),
    ):
        with pytest.raises(BioclinError, match=message):
            run(made, resume=True, **change)
    other = shutil.copytree(corpus, tmp_path / "other")
    assert run(made, corpus=other, resume=True)["finished"]  # the same text elsewhere
    with (other / "es.train.txt").open("a", encoding="utf-8") as file:
        file.write("Una frase más de otro corpus.\n")
    with pytest.raises(BioclinError, match="corpus was"):
        run(made, corpus=other, resume=True)
    encoder = shutil.copytree(start, tmp_path / "encoder")
    (encoder / "README.md").write_text("other")
    with pytest.raises(BioclinError, match="start_from was"):
        run(made, start_from=encoder, resume=True)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(BioclinError, match="processes was 1 and is 2"):
        run(made, resume=True)


@pytest.mark.slow
def test_a_moved_folder_keeps_its_best_encoder(run, whole, tmp_path):
    out = tmp_path / "first"
    # The first evaluation is the best: the rate is far too high, but nothing overflows.
    changes = {"learn_rate": 0.3, "steps": 6}
    expected = tmp_path / "expected"
    run(expected, **changes)
    run(out, max_seconds=1e-9, **changes)
    moved = out.rename(tmp_path / "moved")
    run(moved, resume=True, **changes)
    assert weights(moved) == weights(expected)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "swapped", "record"])
def test_damaged_blocks_are_made_again(run, whole, made, damage):
    blocks = made / "blocks"
    first, second = blocks / "es.train.bin", blocks / "en.train.bin"
    content = first.read_bytes()
    if damage == "cut":
        first.write_bytes(content[: len(content) // 64 * 32])
    elif damage == "swapped":
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
    else:
        (blocks / "blocks.json").write_text("[")
    for folder in made.glob("checkpoint-*"):
        shutil.rmtree(folder)
    assert run(made, resume=True)["loss"] == whole[1]["loss"]
    assert first.read_bytes() == content


def test_blocks_hold_text_and_are_private(whole):
    for path in (whole[0] / "blocks").glob("*.bin"):
        assert path.stat().st_mode & 0o077 == 0


def test_folders_of_others_and_inputs_are_left_alone(run, tmp_path, corpus, start):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "encoder").write_text("mine")
    with pytest.raises(BioclinError, match="holds other files"):
        run(tmp_path / "mine")
    own = shutil.copytree(corpus, tmp_path / "own" / "corpus")
    for out in (own, own.parent):
        with pytest.raises(BioclinError, match="is the input"):
            run(out, corpus=own)
    encoder = shutil.copytree(start, tmp_path / "there" / "encoder")
    with pytest.raises(BioclinError, match="is the input"):
        run(encoder.parent, start_from=encoder)
    with grow_folder(tmp_path / "out"), pytest.raises(BioclinError, match="another run"):
        run(tmp_path / "out")


@pytest.mark.slow
def test_a_training_that_diverges_stops(run, tmp_path):
    with pytest.raises(BioclinError, match=r"diverged: .*loss is nan .* lower --learn-rate"):
        run(tmp_path / "out", learn_rate=1e30, steps=6)
    assert not (tmp_path / "out" / "encoder").exists()


@pytest.mark.slow
def test_what_failed_before_its_first_checkpoint_may_be_begun_again(run, tmp_path):
    with pytest.raises(BioclinError, match="batch_pieces"):
        run(tmp_path / "out", batch_pieces=33)
    assert run(tmp_path / "out")["finished"]


def test_damaged_record_is_refused(run, made):
    for content in ("[]", '{"steps": 4'):
        (made / "run.json").write_text(content)
        with pytest.raises(BioclinError, match=r"run\.json|was"):
            run(made, resume=True)


# clean-text


def clean(tmp_path, *options):
    notes = tmp_path / "notes.txt"
    if not notes.exists():
        sentence = "El paciente número {} ingresa por dolor torácico y disnea de esfuerzo."
        notes.write_text("".join(f"{sentence.format(i)}\n" for i in range(40)), "utf-8")
    out = ["-o", str(tmp_path / "out"), "--lang", "es", "--held-out", "0.3", "--workers", "1"]
    return CliRunner().invoke(app, ["clean-text", str(notes), *out, *options])


@pytest.mark.slow
def test_killed_clean_text_leaves_the_old_corpus_or_the_new(tmp_path):
    assert clean(tmp_path).exit_code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with (tmp_path / "notes.txt").open("a", encoding="utf-8") as file:
        file.write("Otro documento con palabras distintas sobre una fractura de cadera.\n")
    read, states = tmp_path / "out", set()
    assert in_fork(lambda: clean(tmp_path, "--overwrite")) == 0
    after = {path.name: path.read_bytes() for path in read.iterdir()}
    assert after != before
    shutil.rmtree(read)
    for moment in range(1, 9):
        shutil.rmtree(read, ignore_errors=True)
        read.mkdir()
        for name, content in before.items():
            (read / name).write_bytes(content)
        die_at_write(lambda: clean(tmp_path, "--overwrite"), moment)
        if read.exists():  # else between the two renames: the next run puts it back
            now = {path.name: path.read_bytes() for path in read.iterdir()}
            assert now in (before, after)
            states.add(now == after)
    assert states == {True, False} or states == {False}


def test_cleaned_text_is_private(tmp_path):
    assert clean(tmp_path).exit_code == 0
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert "torácico" not in json.dumps(report, ensure_ascii=False)


@pytest.mark.slow
def test_paths_of_a_record_are_not_followed(run, made, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    mark = json.loads((made / "checkpoint-4" / WHOLE).read_text())
    (made / "checkpoint-4" / WHOLE).write_text(json.dumps({**mark, "../../secret": "0"}))
    run(made, resume=True)
    assert Path(secret).read_text() == "x"
