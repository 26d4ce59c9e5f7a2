"""The papers' recipes: each trains, sets what it says, and is found from the command line.

Their heads for relations, pairs and texts are in test_recipe_kinds.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_bioclin.catalog.recipes import (
    apply_recipe,
    find_recipe,
    get_recipe_text,
    load_recipes,
    set_learn_rate,
)
from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "ner.cfg"
# Configs without a head for named entities: see test_recipe_kinds.py.
OTHERS = ("pairs", "relations", "relations-markers", "textcat")
CONFIGS = sorted(path.stem for path in (ROOT / "configs").glob("*.cfg") if path.stem not in OTHERS)
QUICK = "carrino-2022"  # trained on all configs in the default suite; the others if -m slow
RECIPES = load_recipes()
SLOW = pytest.mark.slow
TEXTS = [
    ("Paciente con neumonía. Se inicia amoxicilina.", [(13, 21), (33, 44)]),
    ("Se inicia metformina. Niega neumonía.", [(10, 20), (28, 36)]),
]


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 short notes with entities."""
    nlp = spacy.blank("es")
    docs = []
    for text, spans in TEXTS * 10:
        doc: Doc = nlp.make_doc(text)
        doc.set_ents([doc.char_span(*span, label="PROBLEM") for span in spans])
        doc.spans["phi"] = [doc.char_span(0, 8, label="NAME", alignment_mode="expand")]
        doc.spans["clinical"] = list(doc.ents)
        docs.append(doc)
    path = tmp_path_factory.mktemp("corpus") / "notes.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


@pytest.fixture(scope="module")
def deep_encoder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder with the 12 layers that tinn-2021-base counts on."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    folder = tmp_path_factory.mktemp("encoders") / "deep"
    config = AutoConfig.from_pretrained(tiny_encoder, num_hidden_layers=12)
    AutoModel.from_config(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(folder)
    return folder


def train(
    corpus: Path, encoder: Path, out: Path, name: str, *more: object, config: Path = CONFIG
) -> None:
    paths: tuple[object, ...] = ("--paths.train", corpus, "--paths.dev", corpus)
    if "tasks" in load_config(config)["corpora"]["train"]:
        for task in load_config(config)["corpora"]["train"]["tasks"]:
            for split in ("train", "dev"):
                file = out.with_name("corpora") / task / f"{split}.spacy"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(corpus.read_bytes())
        paths = ("--paths.corpora", out.with_name("corpora"))
    small = ("--components.transformer.model.window", 64, "--training.logger.progress_bar", "null")
    run(
        "train",
        config,
        "-o",
        out,
        "--recipe",
        name,
        "--paths.encoder",
        encoder,
        *paths,
        *small,
        *more,
    )


def list_heads(config: Any) -> dict[str, Any]:
    components = config["components"].items()
    return {name: one for name, one in components if one.get("factory") == "bioclin_ner"}


def list_poolings(section: Any) -> list[str]:
    """Find how the listeners of a head make vectors of tokens, at any depth."""
    sections = [value for value in section.values() if isinstance(value, dict)]
    found = [section["pooling"]["@layers"]] if "pooling" in section else []
    return found + [pooling for one in sections for pooling in list_poolings(one)]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_head_of_every_config_follows_the_recipe(name: str, config: str) -> None:
    recipe = RECIPES[name]
    before = load_config(ROOT / "configs" / f"{config}.cfg", interpolate=False)
    after = before.copy()
    apply_recipe(after, recipe)
    batcher = after["training"]["batcher"]
    if config == "several":  # which task is next is not the recipe's matter
        assert batcher["@batchers"] == "spacy-bioclin.batch_by_task.v1"
        batcher = batcher["batcher"]
    assert batcher == recipe.settings["training.batcher"]
    heads = list_heads(after)
    assert len(heads) == (2 if config == "demo" else 1)
    if "bioclin_ner" not in recipe.heads:
        assert heads == list_heads(before)
        return
    for head in heads.values():
        assert head["scheme"] == "BIO"
        assert head["model"]["@architectures"] == "spacy-bioclin.LinearTagger.v1"
        assert head["model"]["learn_rate_scale"] == 1.0
        assert head["model"]["dropout"] == (0.0 if name == "mulyar-2020" else 0.1)
        assert list_poolings(head["model"]) == [recipe.pooling]


@pytest.mark.parametrize("config", [one for one in CONFIGS if one != CONFIG.stem])
@pytest.mark.parametrize(
    "name",
    [QUICK, *(pytest.param(one, marks=SLOW) for one in RECIPES if one != QUICK)],
)
def test_every_recipe_trains_on_every_config(
    name: str, config: str, corpus: Path, deep_encoder: Path, tmp_path: Path
) -> None:
    few = ("--training.max_steps", 2, "--training.eval_frequency", 2)
    path = ROOT / "configs" / f"{config}.cfg"
    train(corpus, deep_encoder, tmp_path / "training", name, *few, config=path)
    nlp = spacy.load(tmp_path / "training" / "model-last")
    doc = nlp(TEXTS[0][0])
    assert config == "ner-lexical" or doc.spans.keys() & {"phi", "clinical"}
    for head, settings in list_heads(nlp.config).items():
        labels = {"NAME"} if settings["spans_key"] == "phi" else {"PROBLEM"}
        assert set(nlp.get_pipe(head).labels) == labels  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name",
    [
        one if one in ("lewis-2020-cls", "tinn-2021-large") else pytest.param(one, marks=SLOW)
        for one in sorted(RECIPES)
    ],
)
def test_every_recipe_trains(name: str, corpus: Path, deep_encoder: Path, tmp_path: Path) -> None:
    train(corpus, deep_encoder, tmp_path / "training", name, "--training.max_epochs", 2)
    nlp = spacy.load(tmp_path / "training" / "model-last")
    doc = nlp(TEXTS[0][0])
    assert doc.has_annotation("ENT_IOB")
    training = nlp.config["training"]
    size = RECIPES[name].settings["training.batcher"]["size"]
    assert training["max_steps"] == 2 * -(-20 // size)  # epochs times batches
    assert training["eval_frequency"] == training["max_steps"] // 2


def test_the_recipe_decides_and_the_command_line_over_it(
    corpus: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    frozen = ("--components.transformer.model.strategy.freeze_layers", 1)
    few = ("--training.max_steps", 3, "--training.optimizer.L2", 0.5)
    train(corpus, tiny_encoder, tmp_path / "training", "tinn-2021-base", *frozen, *few)
    config = spacy.load(tmp_path / "training" / "model-last").config
    assert config["components"]["transformer"]["model"]["strategy"]["freeze_layers"] == 1
    assert config["components"]["ner"]["scheme"] == "BIO"
    assert config["training"]["optimizer"]["L2"] == 0.5
    assert (config["training"]["max_steps"], config["training"]["eval_frequency"]) == (3, 1)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_recipe_names_its_paper_and_its_rate_is_one_of_them(name: str) -> None:
    recipe = RECIPES[name]
    config = load_config(CONFIG, interpolate=False)
    apply_recipe(config, recipe)
    schedule = config["training"]["optimizer"]["learn_rate"]
    assert schedule.get("initial_rate", schedule.get("rate")) in recipe.learn_rates
    assert config["training"]["max_epochs"] == recipe.epochs
    assert config["training"]["max_steps"] == 0
    assert any(character.isdigit() for character in recipe.paper) and recipe.purpose


# What the papers and the released code say (not what recipes.yml says): the paper's rates, the
# sequences of a batch, epochs, weight decay, clipping.
STATED = {
    "carrino-2022": ([8e-6, 1e-5, 2e-5, 3e-5, 5e-5], 64, 20, 0.0, 1.0),
    "lewis-2020-seq": ([1e-5], 32, 20, 0.0, 1.0),
    "lewis-2020-cls": ([2e-5], 16, 10, 0.0, 1.0),
    "mulyar-2020": ([5e-5], 25, 20, 0.0, 0.0),
    "oubiobert-blue": ([3e-5, 4e-5, 5e-5], 32, 30, 0.0, 1.0),
}


@pytest.mark.parametrize("name", sorted(STATED))
def test_figures_of_the_papers(name: str) -> None:
    config = load_config(CONFIG, interpolate=False)
    apply_recipe(config, RECIPES[name])
    training = config["training"]
    optimizer = training["optimizer"]
    batch = training["batcher"]["size"]
    found = RECIPES[name].learn_rates, batch, RECIPES[name].epochs, optimizer["L2"]
    assert (*found, optimizer["grad_clip"]) == STATED[name]
    assert training["accumulate_gradient"] == 1


def test_lewis_cls_leaves_heads_alone() -> None:
    before, after = load_config(CONFIG), load_config(CONFIG)
    apply_recipe(after, find_recipe("lewis-2020-cls"))
    assert after["components"]["ner"] == before["components"]["ner"]


def test_write_makes_a_config_that_loads(tmp_path: Path) -> None:
    out = tmp_path / "new" / "mulyar.cfg"
    run("recipes", "write", "mulyar-2020", CONFIG, "-o", out, "--learn-rate", 1e-4)
    config = load_config(out, interpolate=False)
    expected = {"@schedules": "constant.v1", "rate": 1e-4}
    assert config["training"]["optimizer"]["learn_rate"] == expected
    assert config["paths"]["encoder"] is None
    listed = json.loads(run("recipes", "list", "--json"))
    assert list(listed) == list(RECIPES)
    assert "mulyar-2020" in run("recipes", "list")


def test_show_prints_the_recipe_with_its_comments() -> None:
    text = run("recipes", "show", "lewis-2020-seq")
    assert text.startswith("lewis-2020-seq:\n") and "# Section 5.2" in text
    assert "lewis-2020-cls" not in text.replace("lewis-2020-seq", "")
    for name in RECIPES:
        assert f"\n{name}:" not in get_recipe_text(name)
        assert get_recipe_text(name).endswith(get_recipe_text(name).splitlines()[-1].strip())


@pytest.mark.parametrize(
    "words",
    [
        ("recipes", "show", "carino-2022"),
        ("recipes", "write", "carino-2022", CONFIG, "-o", "x.cfg"),
        ("train", CONFIG, "-o", "x", "--recipe", "carino-2022"),
    ],
)
def test_an_unknown_recipe_is_named_and_all_are_listed(
    words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 1
    assert "'carino-2022' is unknown" in result.output
    assert all(name in result.output.replace("\n", "") for name in RECIPES)
    assert not list(tmp_path.iterdir())


def test_a_config_that_a_recipe_does_not_fit(tmp_path: Path) -> None:
    config = load_config(CONFIG, interpolate=False)
    del config["components"]["ner"]
    with pytest.raises(BioclinError, match=r"needs a bioclin_ner; .*transformer \(transformer\)"):
        apply_recipe(config, find_recipe("carrino-2022"))
    config["training"]["optimizer"]["learn_rate"] = {"@schedules": "cyclic_triangular.v1"}
    with pytest.raises(BioclinError, match="cannot tell which is the rate"):
        set_learn_rate(config, 1e-5)
