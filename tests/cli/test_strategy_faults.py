"""Faults of `bioclin train` and `bioclin sweep`: wrong strategies, recipes and rates.

benchmarks/results/strategy_faults.json records the same cases with the encoder that ships.
"""

import json
import re
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin
from transformers import AlbertConfig, AlbertModel, AutoTokenizer
from typer.testing import CliRunner

from spacy_bioclin.cli import app

ROOT = Path(__file__).parents[2]
SECTION = r"\[components.transformer.model.strategy\]"
STRATEGY = "--components.transformer.model.strategy"
SETTINGS = {
    "components.transformer.model.window": 64,
    "components.transformer.model.stride": 64,
    "training.max_steps": 4,
    "training.eval_frequency": 2,
}
NO_LAYER = r"2 layers \(encoder.layer.0 to encoder.layer.1\)"
TRAIN = {
    "unknown key": (
        {"freze_layers": 2},
        [SECTION, "freze_layers", "mean freeze_layers", "lora_rank"],
    ),
    "text for a number": ({"freeze_layers": "two"}, [SECTION, "freeze_layers = 'two'"]),
    "rate of lower layers above 1": ({"layer_decay": 9.5}, [SECTION, "layer_decay = 9.5", "1"]),
    "frozen layer that the encoder does not have": (
        {"freeze_layers": 12},
        [SECTION, "freeze_layers = 12", NO_LAYER],
    ),
    "new layer that the encoder does not have": (
        {"reinit_layers": 5},
        [SECTION, "reinit_layers = 5", NO_LAYER],
    ),
    "frozen and new": (
        {"freeze_layers": 2, "reinit_layers": 1},
        [SECTION, "freeze_layers = 2, reinit_layers = 1", "2 or less"],
    ),
    "selector that matches no weight": (
        {"no_decay": ["LayerNrom"]},
        [SECTION, "'LayerNrom' matches no weight", "encoder.layer.N.output.LayerNorm.weight"],
    ),
    "selector that is no regular expression": (
        {"no_decay": ["("]},
        [SECTION, r"no_decay = \['\('\]", "regular expressions"],
    ),
    "LoRA for layers that are not there": (
        {"lora_rank": 4, "lora_targets": ["q_proj"]},
        [SECTION, "'q_proj' matches no linear layer", "encoder.layer.N.attention.self.query"],
    ),
    "LoRA with mixout": (
        {"lora_rank": 4, "mixout": 0.5},
        [SECTION, "lora_rank = 4, mixout = 0.5", "leave out"],
    ),
    "adversarial with frozen embeddings": (
        {"adversarial": 1.0, "freeze_layers": 1},
        [SECTION, "adversarial = 1.0, freeze_layers = 1", "leave out"],
    ),
    "LoRA in a frozen encoder": (
        {"lora_rank": 4, "freeze_layers": 2},
        [SECTION, "freeze_layers = 2, lora_rank = 4"],
    ),
}
# One of each kind; the others are slow, and tests/encoders/strategy has all of them.
QUICK = {
    "unknown key",
    "frozen layer that the encoder does not have",
    "selector that matches no weight",
    "LoRA with mixout",
}
SWEEP = {
    "three wrong strategies beside a right one": (
        {
            "strategies": {
                "misspelt": {"freze_layers": 2},
                "too high": {"freeze_layers": 12},
                "no such weight": {"no_decay": ["LayerNrom"]},
                "right": {"freeze_layers": 2},
            }
        },
        0,
        [
            *(SECTION, "'freze_layers'", "mean freeze_layers"),
            *("freeze_layers = 12", NO_LAYER),
            *("'LayerNrom' matches no weight", "encoder.layer.N.output.LayerNorm.weight"),
            *("F1 on dev", "report.html"),
        ],
    ),
    "a trial that diverges beside one that does not": (
        {"learn_rates": [5e-4, 1e30], "strategies": {"frozen": {"freeze_layers": 2}}},
        0,
        ["diverged", r"1e\+30", "F1 on dev"],
    ),
    "unknown recipe": ({"recipe": "carino-2022"}, 1, ["carino-2022", "carrino-2022"]),
    "unknown key": ({"learn_rate": [1.0]}, 1, ["unknown key 'learn_rate'", "learn_rates"]),
}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Write a small corpus, and a tiny encoder whose layers share their weights."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "corpus").mkdir()
    nlp = spacy.blank("en")
    docs = []
    for text in ("Given metformin for diabetes.", "No fever today, some cough."):
        doc = nlp(text)
        doc.ents = [doc.char_span(*span, "PROBLEM") for span in [(0, 5)] if doc.char_span(*span)]
        docs.append(doc)
    for split in ("train", "dev", "test"):
        DocBin(docs=docs, store_user_data=True).to_disk(folder / "corpus" / f"{split}.spacy")
    return folder


@pytest.fixture
def train(work, tiny_encoder, monkeypatch, tmp_path):
    """Run `bioclin train` with more options.

    RETURNS (Callable): Returns the exit status, what was printed, and the names in the output.
    """

    def run(*options, encoder=tiny_encoder):
        monkeypatch.chdir(ROOT)
        settings = {
            "nlp.lang": "en",
            "paths.train": work / "corpus" / "train.spacy",
            "paths.dev": work / "corpus" / "dev.spacy",
            "paths.encoder": encoder,
            "training.logger.progress_bar": "null",
            **SETTINGS,
        }
        given = [part for key, value in settings.items() for part in (f"--{key}", str(value))]
        out = tmp_path / "out"
        done = CliRunner().invoke(
            app, ["train", "configs/ner.cfg", "-o", str(out), *given, *options]
        )
        assert done.exception is None or isinstance(done.exception, SystemExit), repr(
            done.exception
        )
        names = {path.name for path in out.glob("*")}
        return done.exit_code, " ".join(done.output.split()), names

    return run


def strategy_options(settings):
    pairs = [(f"{STRATEGY}.{key}", json.dumps(value)) for key, value in settings.items()]
    return [part for pair in pairs for part in pair]


@pytest.mark.slow
def test_nothing_wrong(train):
    status, said, names = train(*strategy_options({"freeze_layers": 1}))
    assert status == 0 and "The pipeline is in" in said
    assert {"model-best", "model-last"} <= names


def test_a_wrong_strategy_is_an_error_before_training(train):
    check_strategies(train, QUICK)


@pytest.mark.slow
def test_other_wrong_strategies(train):
    check_strategies(train, TRAIN.keys() - QUICK)


def check_strategies(train, names_of_cases):
    wrong = []
    for name in sorted(names_of_cases):
        settings, words = TRAIN[name]
        status, said, names = train(*strategy_options(settings))
        if status != 1 or names or not all(re.search(word, said) for word in words):
            wrong.append((name, status, names, said))
    assert wrong == []


def test_layers_of_an_encoder_that_shares_them(train, tiny_encoder, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    shape = {"embedding_size": 8, "hidden_size": 16, "intermediate_size": 16}
    config = AlbertConfig(
        vocab_size=len(tokenizer), num_hidden_layers=3, num_attention_heads=2, **shape
    )
    AlbertModel(config).save_pretrained(tmp_path / "albert")
    tokenizer.save_pretrained(tmp_path / "albert")
    options = strategy_options({"freeze_layers": 1})
    status, said, names = train(*options, encoder=tmp_path / "albert")
    assert status == 1 and names == set()
    assert re.search(f"{SECTION}.*freeze_layers = 1.*no separate layers", said), said


def test_a_number_is_no_section(train):
    status, said, names = train(STRATEGY, "3")
    assert status == 1 and "strategy" in said and names == set()


def test_an_unknown_recipe(train):
    status, said, names = train("--recipe", "carino-2022")
    assert status == 1 and "carino-2022" in said and "carrino-2022" in said and names == set()


def test_a_rate_that_makes_training_diverge(train):
    status, said, _ = train("--training.optimizer.learn_rate", "1e30")
    assert status == 1
    assert re.search("training diverged: .*at update .*lower", said), said


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEP)
def test_a_sweep(name, work, tiny_encoder, monkeypatch, tmp_path):
    changes, status, words = SWEEP[name]
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "1000")
    plan = {
        "tasks": {"demo": {"path": str(work / "corpus"), "lang": "en"}},
        "encoders": {"tiny": str(tiny_encoder)},
        "learn_rates": [5e-4],
        "seeds": [0],
        "settings": SETTINGS,
        **changes,
    }
    (tmp_path / "plan.yml").write_text(json.dumps(plan), "utf-8")
    done = CliRunner().invoke(
        app, ["sweep", str(tmp_path / "plan.yml"), "-o", str(tmp_path / "out")]
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    said = " ".join(done.output.split())
    assert done.exit_code == status, said
    assert [word for word in words if not re.search(word, said)] == [], said
    assert (tmp_path / "out" / "report.html").exists() == (status == 0)
