"""What a training will do, worked by hand from the papers' figures."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_bioclin.catalog.pretraining import load_pretraining
from spacy_bioclin.cli import app
from spacy_bioclin.pretraining.large.plan import find_rates, make_plan
from spacy_bioclin.pretraining.settings import PretrainSettings
from tests.util import make_encoder

RECIPES = load_pretraining()


def settings(name: str, phase: int = 1) -> PretrainSettings:
    return PretrainSettings(**RECIPES[name].phases[phase - 1])


def dry_run(*options: str) -> str:
    done = CliRunner().invoke(app, ["pretrain", "no-corpus", "-o", "out", "--dry-run", *options])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_tokens_warmup_and_weights_by_hand() -> None:
    millions = {}
    for name, phase, tokens, warmup in (
        ("carrino-2022", 1, 125_000 * 2048 * 512, 10_000),
        ("lewis-2020", 1, 500_000 * 8192 * 512, 25_000),
        ("lewis-2020-large", 1, 500_000 * 8192 * 512, 25_000),
        # 59 and 85 billion tokens in ouBioBERT's README
        ("oubiobert", 1, 7038 * 65536 * 128, 2001),
        ("oubiobert", 2, 7038 * 65536 * 128 + 1563 * 32768 * 512, 201),
    ):
        recipe = RECIPES[name]
        plan = make_plan(settings(name, phase), recipe, phase=phase, pieces_per_second=1e6)
        assert (plan.tokens, plan.warmup_steps) == (tokens, warmup)
        assert plan.hours == pytest.approx(plan.steps * plan.pieces / 1e6 / 3600)
        assert plan.division.at_once * plan.division.passes == plan.sequences
        if plan.weights:
            millions[name] = round(plan.weights / 1e6)
    # RoBERTa-base with 50,262 and 50,000 pieces, -large with 50,000, BERT-base with 32,000.
    assert millions == {
        "carrino-2022": 125,
        "lewis-2020": 124,
        "lewis-2020-large": 355,
        "oubiobert": 111,
    }


def test_rates_by_hand() -> None:
    # Carrino et al. (2022), table 3: up to 5e-4 in 10,000 steps, then down to 0 in 115,000.
    rates = dict(find_rates(settings("carrino-2022"), [0, 5000, 10_000, 67_500, 125_000]))
    expected = {0: 0.0, 5000: 2.5e-4, 10_000: 5e-4, 67_500: 2.5e-4, 125_000: 0.0}
    assert rates == pytest.approx(expected)
    # With a power of one half a quarter of the steps that are left has half the rate.
    slower = PretrainSettings(steps=100, learn_rate=1.0, warmup=0, decay_power=0.5)
    assert dict(find_rates(slower, [0, 75, 100])) == pytest.approx({0: 1.0, 75: 0.5, 100: 0.0})


def test_dry_run_prints_the_schedule_beside_the_papers(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--recipe", "oubiobert", "--phase", "2", "--pieces-per-second", "100000")
    printed = dry_run(*options)
    for cell in (
        "oubiobert, phase 2 of 2",
        "global_batch_size 32,768 32,768 sequences README",
        "tokens, both phases 85.3B 85B README",
        "optimizer lamb unconfirmed",
        "1 processes x 2,048 passes x 16 sequences of 512",
        "warm-up 201 steps",
        "pieces per second 100,000 (given)",
        "hours 72.8",
    ):
        assert cell in printed
    assert list(tmp_path.iterdir()) == []


def test_options_win_over_the_recipe(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = ("--recipe", "lewis-2020", "--pieces-per-second", "1")
    printed = dry_run(*recipe, "--steps", "100", "--warmup", "0.1", "--batch-pieces", "4096")
    assert "steps 100 500k section 5.1" in printed
    assert "batch 8 8,192 sequences section 5.1" in printed
    assert "warm-up 10 steps" in printed
    # Another length keeps the number of inputs.
    assert "pieces per step 524,288" in dry_run(*recipe, "--length", "64")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert "4 processes x 128 passes x 16 sequences" in dry_run(*recipe)


def test_dry_run_with_an_encoder_and_a_corpus_measures(corpus: Path, tmp_path: Path) -> None:
    start = make_encoder(tmp_path / "start", "roberta", "bytes")
    options = ["--start-from", str(start), "--length", "32", "--batch-pieces", "64"]
    command = ["pretrain", str(corpus), "-o", str(tmp_path / "out"), "--dry-run", *options]
    done = CliRunner().invoke(app, [*command, "--recipe", "carrino-2022"])
    assert done.exit_code == 0, done.output
    printed = " ".join(done.output.split())
    assert "Number of Layers 2 12 table 3" in printed
    assert "(measured in 3 passes)" in printed
    assert "corpus en 50.0%, es 50.0%" in printed
    assert not (tmp_path / "out").exists()
    plain = CliRunner().invoke(app, command)
    assert plain.exit_code == 0 and "paper" not in plain.output


def test_mistakes_are_one_line() -> None:
    command = ["pretrain", "no-corpus", "-o", "out", "--dry-run"]
    for options, message in (
        (["--recipe", "lewis"], "pretraining recipe 'lewis' is unknown, want one of carrino-2022"),
        (["--recipe", "lewis-2020", "--phase", "2"], "lewis-2020 has the phases 1 to 1"),
        (["--phase", "2"], "only a --recipe has phases"),
        (["--batch-pieces", "512", "--batch-sequences", "2"], "give only one of them"),
        (["--recipe", "lewis-2020", "--device-pieces", "100"], "at least one block"),
    ):
        done = CliRunner().invoke(app, [*command, *options])
        assert done.exit_code == 1
        assert message in " ".join(done.output.split())


def test_without_a_start_the_message_names_the_command() -> None:
    command = ["pretrain", "no-corpus", "-o", "out", "--recipe", "oubiobert"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert "bioclin init-encoder --recipe oubiobert" in " ".join(done.output.split())


def test_recipes_are_listed_and_shown() -> None:
    listed = CliRunner().invoke(app, ["recipes", "list"]).output
    assert all(name in listed for name in RECIPES) and "7,038 + 1,563" in listed
    shown = CliRunner().invoke(app, ["recipes", "show", "oubiobert"]).output
    assert "oubiobert:\n" in shown and "# For `bioclin pretrain`" in shown
    assert "batch_sequences: 65536" in shown
