"""The papers' recipes: each trains, sets what it says, and is found from the command line.

Their heads for relations, pairs and texts are in test_recipe_kinds.py.
"""

import functools
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
    get_recipe_text,
    load_recipes,
    set_learn_rate,
)
from spacy_bioclin.catalog.recipes import find_recipe as find_in_file
from spacy_bioclin.cli import app
from spacy_bioclin.cli.train.overrides import read_config
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.epochs import set_updates
from spacy_bioclin.training.initialize import init_pipeline

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "ner.cfg"
# Configs without a head for named entities: see test_recipe_kinds.py.
OTHERS = ("pairs", "relations", "relations-markers", "textcat")
ONLY_ENTITIES = ("carrino-2022", "lewis-2020-seq")
ENCODER = "components.transformer.model"
RECIPES = (
    *("carrino-2022", "lewis-2020-seq", "lewis-2020-cls", "mulyar-2020", "oubiobert-blue"),
    *("tinn-2021-base", "tinn-2021-large", "tinn-2021-similarity"),
)
TEXTS = [
    ("Paciente con neumonía. Se inicia amoxicilina.", [(13, 21), (33, 44)]),
    ("Se inicia metformina. Niega neumonía.", [(10, 20), (28, 36)]),
]


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


find_recipe = functools.cache(find_in_file)  # which reads the file each time


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
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
    if config.stem == "several":
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


@functools.cache
def read(name: str) -> Any:
    return load_config(ROOT / "configs" / f"{name}.cfg", interpolate=False)


def load(name: str) -> Any:
    """Load one of the configs, to be changed."""
    return read(name).copy()


def find(config: Any, path: str) -> Any:
    for key in path.split("."):
        config = config[key]
    return config


def check_heads(name: str, config: str, before: Any, after: Any) -> None:
    """Check the heads for entities."""
    recipe = find_recipe(name)
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


def test_every_config_follows_every_recipe() -> None:
    """Those with heads for other kinds, too, except for recipes of entities alone."""
    configs = {path.stem: load(path.stem) for path in (ROOT / "configs").glob("*.cfg")}
    recipes = load_recipes()
    for name, recipe in recipes.items():
        for config, before in configs.items():
            after = before.copy()
            if name in ONLY_ENTITIES and config in OTHERS:
                with pytest.raises(BioclinError, match="needs a bioclin_ner"):
                    apply_recipe(after, recipe)
                continue
            apply_recipe(after, recipe)
            # "2" and not 2 would stop training
            assert after["training"]["max_epochs"] == recipe.epochs
            assert after["training"]["max_steps"] == 0
            inside = "transformer" not in after["components"]
            own = "components.relations.model.tok2vec" if inside else ENCODER
            assert find(after, own)["window"] == recipe.settings[f"{ENCODER}.window"]
            for component in after["components"].values():
                for path, value in recipe.heads.get(component["factory"], {}).items():
                    assert find(component, path) == value, (name, config, path)
            assert after.to_str(interpolate=False)
            if config in OTHERS:
                continue
            check_heads(name, config, before, after)
            batcher = after["training"]["batcher"]
            if config == "several":  # which task is next is not the recipe's matter
                assert batcher["@batchers"] == "spacy-bioclin.batch_by_task.v1"
                batcher = batcher["batcher"]
            assert batcher == recipe.settings["training.batcher"]
        after = configs[CONFIG.stem].copy()
        apply_recipe(after, recipe)
        schedule = after["training"]["optimizer"]["learn_rate"]
        assert schedule.get("initial_rate", schedule.get("rate")) in recipe.learn_rates
        assert any(character.isdigit() for character in recipe.paper) and recipe.purpose
    assert tuple(recipes) == RECIPES


# Each recipe on one config, and each config with one recipe; see test_recipe_kinds.py for others.
TRAINED = [
    ("lewis-2020-cls", "ner"),
    *(
        pytest.param(*pair, marks=pytest.mark.slow)
        for pair in (
            ("carrino-2022", "several"),
            ("lewis-2020-seq", "demo"),
            ("tinn-2021-large", "deid"),
            ("mulyar-2020", "ner-lexical"),
        )
    ),
]


@pytest.mark.parametrize(("name", "config"), TRAINED)
def test_recipes_train(
    name: str, config: str, corpus: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    deep = name.startswith("tinn")
    encoder = request.getfixturevalue("deep_encoder" if deep else "tiny_encoder")
    path = ROOT / "configs" / f"{config}.cfg"
    out = tmp_path / "training"
    train(corpus, encoder, out, name, "--training.max_epochs", 2, config=path)
    nlp = spacy.load(out / "model-last")
    doc = nlp(TEXTS[0][0])
    assert config == "deid" or doc.has_annotation("ENT_IOB")
    assert config in ("ner", "ner-lexical") or doc.spans.keys() & {"phi", "clinical"}
    for head, settings in list_heads(nlp.config).items():
        labels = {"NAME"} if settings["spans_key"] == "phi" else {"PROBLEM"}
        assert set(nlp.get_pipe(head).labels) == labels  # type: ignore[attr-defined]
    training = nlp.config["training"]
    size = find_recipe(name).settings["training.batcher"]["size"]
    if config != "several":
        assert training["max_steps"] == 2 * -(-20 // size)  # epochs times batches
        assert training["eval_frequency"] == training["max_steps"] // 2


def test_the_recipe_decides_and_the_command_line_over_it(corpus: Path, tiny_encoder: Path) -> None:
    frozen = ("--components.transformer.model.strategy.freeze_layers", 1)
    few = ("--training.max_steps", 3, "--training.optimizer.L2", 0.5, f"--{ENCODER}.window", 64)
    paths = ("--paths.train", corpus, "--paths.dev", corpus, "--paths.encoder", tiny_encoder)
    words = [str(word) for word in (*frozen, *few, *paths)]
    settings, _ = read_config(CONFIG, words, find_recipe("tinn-2021-base"))
    nlp = init_pipeline(settings)
    set_updates(nlp)
    config = nlp.config
    assert config["components"]["transformer"]["model"]["strategy"]["freeze_layers"] == 1
    assert config["components"]["ner"]["scheme"] == "BIO"
    assert config["training"]["optimizer"]["L2"] == 0.5
    assert (config["training"]["max_steps"], config["training"]["eval_frequency"]) == (3, 1)


# What the papers and the released code say (not what recipes.yml says): the paper's rates, the
# sequences of a batch, epochs, weight decay, clipping.
STATED = {
    "carrino-2022": ([8e-6, 1e-5, 2e-5, 3e-5, 5e-5], 64, 20, 0.0, 1.0),
    "lewis-2020-seq": ([1e-5], 32, 20, 0.0, 1.0),
    "lewis-2020-cls": ([2e-5], 16, 10, 0.0, 1.0),
    "mulyar-2020": ([5e-5], 25, 20, 0.0, 0.0),
    "oubiobert-blue": ([3e-5, 4e-5, 5e-5], 32, 30, 0.0, 1.0),
}


def test_figures_of_the_papers() -> None:
    found = {}
    for name in STATED:
        recipe, config = find_recipe(name), load(CONFIG.stem)
        apply_recipe(config, recipe)
        training = config["training"]
        optimizer = training["optimizer"]
        batch = training["batcher"]["size"]
        of_training = batch, recipe.epochs, optimizer["L2"], optimizer["grad_clip"]
        found[name] = recipe.learn_rates, *of_training
        assert training["accumulate_gradient"] == 1
    assert found == STATED


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
    for name in (RECIPES[0], RECIPES[-1]):
        one = get_recipe_text(name)
        assert f"\n{name}:" not in one and one.endswith(one.splitlines()[-1].strip())


def test_an_unknown_recipe_is_named_and_all_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (
        ("recipes", "show", "carino-2022"),
        ("recipes", "write", "carino-2022", CONFIG, "-o", "x.cfg"),
        ("train", CONFIG, "-o", "x", "--recipe", "carino-2022"),
    ):
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
