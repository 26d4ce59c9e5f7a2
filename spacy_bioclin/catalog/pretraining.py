"""The pretraining recipes of `pretraining.yml`."""

from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from ..errors import BioclinError
from ..settings import Settings, get_entry_text, read_settings, read_yaml

PRETRAINING = Path(__file__).with_name("pretraining.yml")
TOKENS = "tokens"  # a published value that follows from the settings


class VocabularyRecipe(Settings):
    """Options of `bioclin learn-vocabulary`.

    kind (str): "bpe", "wordpiece" or "unigram".
    size (int): Largest number of pieces.
    uncased (bool): Whether case and accents are ignored.
    balance (bool): Whether all sources of text have the same share.
    """

    kind: str
    size: int
    uncased: bool
    balance: bool


class EncoderRecipe(Settings):
    """Size of an encoder.

    kind (str): Architecture of the transformers library.
    layers (int), width (int), heads (int): Number of layers, vector size, attention heads.
    inner (int): Width between the two matrices of a layer.
    """

    kind: str
    layers: int
    width: int
    heads: int
    inner: int


class Published(Settings):
    """A value as the paper prints it.

    name (str), value (str): Name and value.
    where (str): Table or section.
    setting (str): The setting here: "steps", "encoder.layers", "vocabulary.size"; "tokens" for all
        tokens up to the end of the phase.
    phase (int): Phase from 1; 0 for all.
    """

    name: str
    value: str
    where: str
    setting: str
    phase: int = 0


class PretrainingRecipe(Settings):
    """How a paper pretrains an encoder.

    paper (str): The paper.
    purpose (str): What the paper trained.
    hardware (str): What it was trained on.
    vocabulary (VocabularyRecipe): The vocabulary.
    encoder (EncoderRecipe): Architecture and size.
    phases (list[dict[str, Any]]): For each phase, name of a setting of `bioclin pretrain` -> value.
    published (list[Published]): What the paper states.
    unconfirmed (list[str]): Settings that it does not state.
    """

    paper: str
    purpose: str = Field(alias="for")
    hardware: str
    vocabulary: VocabularyRecipe
    encoder: EncoderRecipe
    phases: list[dict[str, Any]] = Field(min_length=1)
    published: list[Published]
    unconfirmed: list[str]

    @model_validator(mode="after")
    def _check_names(self) -> "PretrainingRecipe":
        known = {*self.settings_of(1), TOKENS}
        named = {row.setting for row in self.published} | set(self.unconfirmed)
        if unknown := named - known:
            raise ValueError(f"no phase has {', '.join(sorted(unknown))}")
        return self

    def settings_of(self, phase: int) -> dict[str, Any]:
        """List all settings of a phase by name, as in `Published`."""
        parts = {"vocabulary": self.vocabulary, "encoder": self.encoder}
        return {
            **{
                f"{part}.{k}": v for part, one in parts.items() for k, v in one.model_dump().items()
            },
            **self.phases[phase - 1],
        }


def load_pretraining() -> dict[str, PretrainingRecipe]:
    """Read the pretraining recipes of the catalogue by name."""
    return {
        name: read_settings(PretrainingRecipe, fields, where=f"{PRETRAINING.name}, {name}")
        for name, fields in read_yaml(PRETRAINING).items()
    }


def find_pretraining(name: str, phase: int = 1) -> PretrainingRecipe:
    """Look up a pretraining recipe.

    phase (int): Phase of training that it must have, from 1.
    RAISES (BioclinError): There is no recipe of this name, or it has no such phase.
    """
    recipes = load_pretraining()
    if name not in recipes:
        raise BioclinError(
            f"pretraining recipe {name!r} is unknown, want one of {', '.join(recipes)}"
        )
    n_phases = len(recipes[name].phases)
    if not 1 <= phase <= n_phases:
        raise BioclinError(f"phase = {phase}: {name} has the phases 1 to {n_phases}")
    return recipes[name]


def get_pretraining_text(name: str) -> str:
    """Extract the text of a recipe from pretraining.yml, with its comments.

    RAISES (BioclinError): There is no recipe of this name.
    """
    find_pretraining(name)
    return get_entry_text(PRETRAINING, name)
