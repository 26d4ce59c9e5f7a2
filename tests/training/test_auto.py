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
from spacy_bioclin.catalog.recipes import find_recipe
from spacy_bioclin.cli import app
from spacy_bioclin.cli.train.overrides import read_config
from spacy_bioclin.training.auto import settle_settings
from spacy_bioclin.training.initialize import init_pipeline
from tests.catalog.test_recipes import corpus  # noqa: F401

ROOT = Path(__file__).parents[2]
RATE = "training.optimizer.learn_rate.initial_rate"
WARMUP = "training.optimizer.learn_rate.warmup"
WINDOW = "components.transformer.model.window"
PARTS = "corpora.train.max_tokens"


SMALL = {"hidden_size": 384, "num_hidden_layers": 6}
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24}


def test_by_entry_or_by_size(tmp_path: Path) -> None:
    rows: list[tuple[dict[str, Any], float, str]] = [
        (SMALL, 2e-4, "a small encoder: 6 layers of width 384"),
        ({"dim": 768, "n_layers": 6}, 5e-5, "a base-size encoder: 6 layers"),
        (LARGE, 1e-5, "a large encoder"),
        ({"_name_or_path": "allenai/scibert_scivocab_uncased"}, 5e-5, "scibert in the catalogue"),
        ({}, 5e-5, "unknown size"),
    ]
    for config, rate, said in rows:
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


@pytest.fixture
def words(tiny_encoder: Path, corpus: Path) -> list[str]:  # noqa: F811
    """Overrides of the command line."""
    paths = ("--paths.train", corpus, "--paths.dev", corpus, "--paths.encoder", tiny_encoder)
    short = ("--training.max_steps", 1, "--training.eval_frequency", 1)
    return [str(word) for word in (*paths, *short, "--training.logger.progress_bar", "null")]


def get(config: Any, path: str) -> Any:
    for key in path.split("."):
        config = config[key]
    return config


def test_chosen_values_are_said_and_stay_with_the_pipeline(
    words: list[str], tmp_path: Path
) -> None:
    command = ["train", str(ROOT / "configs/ner.cfg"), "-o", str(tmp_path / "out"), *words]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "a small encoder: 2 layers of width 16" in result.output
    assert result.output.count("(chosen for this encoder)") == 4
    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert nlp.pipe_names[-1] == "cleaner"
    config = nlp.config
    found = [get(config, path) for path in (RATE, WARMUP, WINDOW, PARTS)]
    assert found == [2e-4, 0.05, 64, "auto"]  # this one cannot read 256


def settle(config: Path, words: list[str], recipe: str | None) -> tuple[str, Any]:
    """RETURNS: What `bioclin train` says of the settings, and the config of the pipeline."""
    chosen = find_recipe(recipe) if recipe else None
    settings, overrides = read_config(config, words, chosen)
    nlp = init_pipeline(settings)
    sources = dict.fromkeys(chosen.settings if chosen else (), f"recipe {recipe}")
    said = settle_settings(nlp, sources | dict.fromkeys(overrides, "command line"))
    return "\n".join(said), nlp.config


def test_values_of_a_config_and_of_the_command_line_stay(words: list[str], tmp_path: Path) -> None:
    own = load_config(ROOT / "configs/ner.cfg", {WINDOW: 48, RATE: 1e-2}, interpolate=False)
    own.to_disk(tmp_path / "own.cfg")
    more = [f"--{WARMUP}_steps", "3", f"--{PARTS}", "20"]
    said, config = settle(tmp_path / "own.cfg", [*words, *more], None)
    found = [get(config, path) for path in (RATE, WARMUP, f"{WARMUP}_steps", WINDOW, PARTS)]
    assert found == [1e-2, 0.0, 3, 48, 20]
    assert "learning rate 0.01 (set by the config; 0.0002 suits this encoder)" in said
    assert "warm-up over 3 updates (set by the command line)" in said
    assert "windows of 48 pieces (set by the config)" in said
    assert "training parts of at most 20 tokens (set by the command line)" in said
    assert "chosen" not in said


def test_a_recipe_is_said(words: list[str]) -> None:
    more = [f"--{WINDOW}", "64"]
    said, config = settle(ROOT / "configs/ner.cfg", [*words, *more], "mulyar-2020")
    assert "learning rate 5e-05 (set by the recipe mulyar-2020; 0.0002 suits" in said
    assert "windows of 64 pieces (set by the command line)" in said
    assert get(config, "training.optimizer.learn_rate.rate") == 5e-5
