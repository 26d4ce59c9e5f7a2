"""The pretraining recipes: complete, with the papers' values, and understood by the commands."""

from dataclasses import fields

import pytest

from spacy_bioclin.catalog.pretraining import (
    TOKENS,
    PretrainingRecipe,
    find_pretraining,
    get_pretraining_text,
    load_pretraining,
)
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.architecture import Shape, check_shape
from spacy_bioclin.pretraining.settings import PretrainSettings
from spacy_bioclin.pretraining.trainer import check_optimizer, split_warmup
from spacy_bioclin.settings import read_settings

RECIPES = load_pretraining()
WORDS = ("Linear", "linear to 0", "custom 32k", "subwords")


def test_the_papers_are_here() -> None:
    assert list(RECIPES) == ["carrino-2022", "lewis-2020", "lewis-2020-large", "oubiobert"]


def test_every_setting_is_one_of_the_commands() -> None:
    known = {field.name for field in fields(PretrainSettings)}
    for recipe in RECIPES.values():
        for phase in recipe.phases:
            assert phase.keys() <= known
            settings = PretrainSettings(**phase)
            check_optimizer(settings)
            split_warmup(settings.warmup, settings.steps)
        check_shape(Shape(**recipe.encoder.model_dump()))


def test_every_setting_is_published_unconfirmed_or_explained() -> None:
    # "uncased" and "Adam" are in the text of the recipe.
    rest = {"vocabulary.uncased", "vocabulary.kind", "optimizer", "device_pieces"}
    for recipe in RECIPES.values():
        printed, unconfirmed = {row.setting for row in recipe.published}, set(recipe.unconfirmed)
        assert recipe.settings_of(1).keys() - printed - unconfirmed - rest == set()
        assert not printed & unconfirmed


def number(text: str) -> float:
    """Read a value as printed: "10k", "2,048", "5% of steps", "8,192 sequences"."""
    word = text.split()[0].replace(",", "")
    for end, factor in (("k", 1e3), ("B", 1e9), ("%", 0.01)):
        if word.endswith(end):
            return float(word[:-1]) * factor
    return float(word.removeprefix("L-").removeprefix("H-").removeprefix("A-"))


def test_values_are_those_that_are_printed() -> None:
    rows = [(recipe, row) for recipe in RECIPES.values() for row in recipe.published]
    for recipe, row in rows:
        for i, phase in enumerate(recipe.phases, 1):
            value = {**recipe.settings_of(1), **phase}.get(row.setting)
            if row.phase not in (0, i) or row.setting == TOKENS:
                continue
            if row.setting == "learn_rate" and "large" in row.value:
                assert f"{value:.0e}".replace("e-0", "e-") in row.value
            elif isinstance(value, int | float) and row.value not in WORDS:
                assert value == pytest.approx(number(row.value)), row.name


def test_two_phases_of_oubiobert() -> None:
    first, second = RECIPES["oubiobert"].phases
    assert (first["steps"], first["batch_sequences"], first["length"]) == (7038, 65536, 128)
    assert (second["steps"], second["batch_sequences"], second["length"]) == (1563, 32768, 512)


def test_text_has_the_sources() -> None:
    text = get_pretraining_text("carrino-2022")
    assert "# table 3" in text and "lewis" not in text
    with pytest.raises(BioclinError, match="'carrino' is unknown"):
        get_pretraining_text("carrino")
    with pytest.raises(BioclinError, match="phase = 3: oubiobert has the phases 1 to 2"):
        find_pretraining("oubiobert", 3)


def test_a_name_that_no_phase_has_is_an_error() -> None:
    fields_ = RECIPES["lewis-2020"].model_dump(by_alias=True)
    fields_["unconfirmed"] = ["clipping"]
    with pytest.raises(BioclinError, match="no phase has clipping"):
        read_settings(PretrainingRecipe, fields_, where="recipe")
