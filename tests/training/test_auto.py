"""What suits an encoder is chosen, said, and never put in place of what a user set."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_bioclin.catalog.choices import SIZES, choose_settings
from spacy_bioclin.catalog.encoders import load_encoders
from spacy_bioclin.cli import app
from tests.catalog.test_recipes import corpus  # noqa: F401

ROOT = Path(__file__).parents[2]
RATE = "training.optimizer.learn_rate.initial_rate"
WARMUP = "training.optimizer.learn_rate.warmup"
WINDOW = "components.transformer.model.window"
PARTS = "corpora.train.max_tokens"


@pytest.mark.parametrize(
    ("config", "rate", "said"),
    [
        (
            {"hidden_size": 384, "num_hidden_layers": 6},
            2e-4,
            "a small encoder: 6 layers of width 384",
        ),
        ({"dim": 768, "n_layers": 6}, 5e-5, "a base-size encoder: 6 layers"),
        ({"hidden_size": 1024, "num_hidden_layers": 24}, 1e-5, "a large encoder"),
        ({"_name_or_path": "allenai/scibert_scivocab_uncased"}, 5e-5, "scibert in the catalogue"),
        ({}, 5e-5, "unknown size"),
    ],
)
def test_by_entry_or_by_size(
    config: dict[str, Any], rate: float, said: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    choice = choose_settings(str(tmp_path))
    assert choice.learn_rate == rate and said in choice.reason


def test_every_entry_decides() -> None:
    for name, entry in load_encoders().items():
        choice = choose_settings(f"encoders/{name}")
        assert choice.learn_rate in (entry.learn_rates[:1] or [size.learn_rate for size in SIZES])
        assert choice.window == (entry.window or 256) <= entry.max_pieces


def test_the_page_has_the_same_figures() -> None:
    page = (ROOT / "docs" / "training.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\w-]+) \| [^|]+ \| (\S+) \| (\d+) % \| (\d+) \|$", page, re.MULTILINE)
    told = [(name, float(rate), int(share) / 100) for name, rate, share, _ in rows]
    assert told == [(size.name, size.learn_rate, size.warmup) for size in SIZES]
    for name in ("bioclin-sm", "bioclin-compact"):
        chosen = choose_settings(str(ROOT / "assets" / "encoders" / name))
        assert f"`{name}` has {chosen.learn_rate:.0e}.".replace("e-04", "e-4") in page


def train(config: Path, encoder: Path, notes: Path, out: Path, *words: object) -> tuple[str, Any]:
    paths = ("--paths.train", notes, "--paths.dev", notes, "--paths.encoder", encoder)
    short = ("--training.max_steps", 1, "--training.eval_frequency", 1)
    quiet = ("--training.logger.progress_bar", "null")
    command = ("train", config, "-o", out, *paths, *short, *quiet, *words)
    result = CliRunner().invoke(app, [str(word) for word in command])
    assert result.exit_code == 0, result.output
    return result.output, spacy.load(out / "model-last").config


def get(config: Any, path: str) -> Any:
    for key in path.split("."):
        config = config[key]
    return config


def test_chosen_values_are_said_and_stay_with_the_pipeline(
    tiny_encoder: Path,
    corpus: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    said, config = train(ROOT / "configs/ner.cfg", tiny_encoder, corpus, tmp_path / "out")
    assert "a small encoder: 2 layers of width 16" in said
    assert said.count("(chosen for this encoder)") == 4
    found = [get(config, path) for path in (RATE, WARMUP, WINDOW, PARTS)]
    assert found == [2e-4, 0.05, 64, "auto"]  # this one cannot read 256


def test_values_of_a_config_and_of_the_command_line_stay(
    tiny_encoder: Path,
    corpus: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    own = load_config(ROOT / "configs/ner.cfg", {WINDOW: 48, RATE: 1e-2}, interpolate=False)
    own.to_disk(tmp_path / "own.cfg")
    more = (f"--{WARMUP}_steps", 3, f"--{PARTS}", 20)
    recipe = ("--recipe", "auto")
    said, config = train(
        tmp_path / "own.cfg", tiny_encoder, corpus, tmp_path / "out", *recipe, *more
    )
    found = [get(config, path) for path in (RATE, WARMUP, f"{WARMUP}_steps", WINDOW, PARTS)]
    assert found == [1e-2, 0.0, 3, 48, 20]
    assert "learning rate 0.01 (set by the config; 0.0002 suits this encoder)" in said
    assert "warm-up over 3 updates (set by the command line)" in said
    assert "windows of 48 pieces (set by the config)" in said
    assert "training parts of at most 20 tokens (set by the command line)" in said
    assert "chosen" not in said


def test_a_recipe_is_said(
    tiny_encoder: Path,
    corpus: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    recipe = ("--recipe", "mulyar-2020", f"--{WINDOW}", 64)
    said, config = train(ROOT / "configs/ner.cfg", tiny_encoder, corpus, tmp_path / "out", *recipe)
    assert "learning rate 5e-05 (set by the recipe mulyar-2020; 0.0002 suits" in said
    assert "windows of 64 pieces (set by the command line)" in said
    assert get(config, "training.optimizer.learn_rate.rate") == 5e-5
