"""The papers' recipes on configs for relations, pairs, texts, and several kinds of heads."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc
from thinc.api import Config
from typer.testing import CliRunner

from spacy_bioclin.annotations.pairs import make_pair
from spacy_bioclin.catalog.recipe_configs import find_sections
from spacy_bioclin.catalog.recipes import apply_recipe
from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.types import GOLD_KEY
from tests.catalog.test_recipes import ONLY_ENTITIES, RECIPES, find, find_recipe, load
from tests.catalog.test_recipes import deep_encoder as deep_encoder
from tests.training.several import NOTES, SIGNS, make_config, make_ner
from tests.training.several import make_docs as make_notes

ROOT = Path(__file__).parents[2]
HEADS = {
    "relations": "relations",
    "relations-markers": "relations",
    "pairs": "pairs",
    "textcat": "textcat",
}
OTHERS = sorted(set(RECIPES) - set(ONLY_ENTITIES))
OWN, SHARED = "components.relations.model.tok2vec", "components.transformer.model"
LISTENER = "spacy-transformers.TransformerListener.v1"


def apply(recipe: str, config: str) -> Config:
    changed = load(config)
    apply_recipe(changed, find_recipe(recipe))
    return changed


# -- what changes ----------------------------------------------------------------------------------


def test_heads_without_settings_stay() -> None:
    for recipe in OTHERS:
        for config, head in HEADS.items():
            before, after = load(config), apply(recipe, config)
            if before["components"][head]["factory"] in find_recipe(recipe).heads:
                continue
            if config == "relations-markers":  # its encoder is inside of it
                before["components"][head]["model"].pop("tok2vec")
                after["components"][head]["model"].pop("tok2vec")
            assert after["components"][head] == before["components"][head]


def test_masked_candidates_need_an_encoder_in_the_head() -> None:
    for recipe in ("lewis-2020-cls", "oubiobert-blue"):
        shared, own = apply(recipe, "relations"), apply(recipe, "relations-markers")
        for config in (shared, own):
            assert config["nlp"]["pipeline"] == ["sentences", "relations"]
            assert list(config["components"]) == ["sentences", "relations"]
            assert config["components"]["relations"]["input"] == "masked"
            assert config["corpora"]["train"]["max_tokens"] == 100
            assert not list(find_sections(config["components"], LISTENER, ""))
        head = "components.relations.model"
        assert find(shared, head) == find(own, head)


def test_relations_beside_other_heads_go_on_reading_whole_notes() -> None:
    config, ner = load("relations"), load("ner")
    config["components"]["ner"] = ner["components"]["ner"]
    apply_recipe(config, find_recipe("lewis-2020-cls"))
    head = config["components"]["relations"]
    assert head["input"] == "spans" and head["model"]["context"] is True
    assert head["model"]["learn_rate_scale"] == 1.0
    assert "transformer" in config["components"]


def test_a_strategy_is_for_the_encoder_wherever_it_is() -> None:
    assert find(apply("tinn-2021-base", "relations-markers"), f"{OWN}.strategy.freeze_layers") == 6
    assert find(apply("tinn-2021-base", "relations"), f"{SHARED}.strategy.freeze_layers") == 6
    similar = apply("tinn-2021-similarity", "pairs")
    assert find(similar, f"{SHARED}.strategy") == {"reinit_layers": 1}


def test_texts_and_pairs_stay_whole() -> None:
    for config in ("pairs", "textcat"):
        assert apply("lewis-2020-cls", config)["corpora"]["train"]["max_tokens"] == 0
    whole = load("relations")  # of a corpus with relations in the whole document
    whole["corpora"]["train"]["max_tokens"] = 0
    apply_recipe(whole, find_recipe("tinn-2021-base"))
    assert whole["corpora"]["train"]["max_tokens"] == 0
    assert apply("tinn-2021-base", "relations")["corpora"]["train"]["max_tokens"] == "auto"


# What the papers and the released code say of other heads: the rate, the sequences of a batch.
STATED = {
    ("lewis-2020-cls", "pairs"): (2e-5, 16),
    ("lewis-2020-cls", "relations"): (2e-5, 16),
    ("mulyar-2020", "pairs"): (5e-5, 40),
    ("mulyar-2020", "ner"): (5e-5, 25),
    ("oubiobert-blue", "pairs"): (4e-5, 32),
    ("oubiobert-blue", "relations-markers"): (4e-5, 32),
}


def test_figures_of_the_papers() -> None:
    found = {}
    for recipe, config in STATED:
        training = apply(recipe, config)["training"]
        schedule = training["optimizer"]["learn_rate"]
        rate = schedule.get("initial_rate", schedule.get("rate"))
        found[recipe, config] = rate, training["batcher"]["size"]
    assert found == STATED
    assert {name for name in RECIPES if find_recipe(name).keep == "last"} == {"mulyar-2020"}


# -- training --------------------------------------------------------------------------------------


def make_relations() -> Iterator[Doc]:
    nlp = spacy.blank("es")
    drug, sign = [7, 18, "DRUG"], [23, 31, "SIGN"]
    for number in range(10):
        doc = nlp.make_doc("Inicia amoxicilina por neumonía. Niega tos.")
        layers = {"ents": [[*drug, ""], [*sign, ""]]}
        relations = [["TREATS", drug, sign]] if number % 2 else []
        gold = {"id": str(number), "task": "t", "layers": layers, "relations": relations}
        doc.user_data[GOLD_KEY] = gold
        doc.set_ents([doc.char_span(start, end, label) for start, end, label in (drug, sign)])
        doc.spans["ents"] = list(doc.ents)
        yield doc


def make_classes(*, pairs: bool) -> Iterator[Doc]:
    nlp = spacy.blank("es")
    for number in range(10):
        text = "Toma aspirina." if number % 2 else "Niega tos."
        doc = make_pair(nlp, text, "Toma un fármaco.") if pairs else nlp.make_doc(text)
        doc.cats = {"no": float(number % 2 == 0), "yes": float(number % 2)}
        yield doc


def write_corpus(config: str, path: Path) -> Path:
    docs = make_relations() if "relations" in config else make_classes(pairs=config == "pairs")
    write_docs(list(docs), path)
    return path


def train(config: Path, out: Path, recipe: str, *more: object) -> str:
    words = ("train", config, "-o", out, "--recipe", recipe, *more)
    quiet = ("--training.logger.progress_bar", "null")
    result = CliRunner().invoke(app, [str(word) for word in (*words, *quiet)])
    assert result.exit_code == 0, result.output
    return result.stdout


# Each config with one recipe; test_recipes.py has the other recipes.
TRAINED = [
    ("lewis-2020-cls", "relations-markers"),
    ("oubiobert-blue", "relations"),
    ("tinn-2021-base", "pairs"),
    ("tinn-2021-similarity", "textcat"),
    ("mulyar-2020", "pairs"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "config"), TRAINED)
def test_recipes_train(
    recipe: str, config: str, tiny_encoder: Path, deep_encoder: Path, tmp_path: Path
) -> None:
    encoder = deep_encoder if recipe == "tinn-2021-base" else tiny_encoder
    corpus = write_corpus(config, tmp_path / "docs.spacy")
    own = OWN if "transformer" not in apply(recipe, config)["components"] else SHARED
    few = ("--training.max_steps", 2, "--training.eval_frequency", 2, f"--{own}.window", 64)
    paths = ("--paths.train", corpus, "--paths.dev", corpus, "--paths.encoder", encoder)
    out = tmp_path / "training"
    printed = train(ROOT / "configs" / f"{config}.cfg", out, recipe, *few, *paths)
    kept = "the last" if recipe == "mulyar-2020" else "the best on dev"
    assert f"Weights that the paper of {recipe} reports: {kept}" in printed
    nlp = spacy.load(out / "model-last")
    assert nlp.pipe_labels[HEADS[config]]
    assert nlp.config["training"]["optimizer"]["L2_is_weight_decay"]


@pytest.mark.slow
def test_mulyar_trains_entities_and_pairs_in_turn(tiny_encoder: Path, tmp_path: Path) -> None:
    write_docs(make_notes(NOTES * 15, SIGNS, "SIGN", None), tmp_path / "signs.spacy")
    write_docs(list(make_classes(pairs=True)) * 9, tmp_path / "pairs.spacy")
    pairs = load("pairs")["components"]["pairs"] | {"require_pairs": False}
    tasks = {
        name: {"path": str(tmp_path / f"{name}.spacy"), "heads": [head]}
        for name, head in (("signs", "ner"), ("pairs", "pairs"))
    }
    config = make_config(tiny_encoder, {"ner": make_ner(None), "pairs": pairs}, tasks)
    config.to_disk(tmp_path / "joint.cfg")
    small = ("--components.transformer.model.window", 32, "--training.max_epochs", 1)
    train(tmp_path / "joint.cfg", tmp_path / "out", "mulyar-2020", *small)
    batcher = spacy.load(tmp_path / "out" / "model-last").config["training"]
    sequence = {"@batchers": "spacy.batch_by_sequence.v1", "get_length": None}
    assert batcher["batcher"] == {
        "@batchers": "spacy-bioclin.batch_by_task.v1",
        "draw": "round_robin",
        "step": "batch",
        "temperature": 2.0,
        "turns": {},
        "batcher": {**sequence, "size": 25},
        "batchers": {"pairs": {**sequence, "size": 40}},
    }
    # 60 notes are 3 batches of 25, 90 pairs are 3 batches of 40: a round robin of 3 rounds
    assert batcher["max_steps"] == 6
