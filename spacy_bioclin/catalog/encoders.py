"""The pretrained encoders of `encoders.yml`."""

import difflib
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator, model_validator

from .. import settings
from ..errors import BioclinError
from ..settings import Settings, check_choice, read_settings, read_yaml

ENCODERS = Path(__file__).with_name("encoders.yml")


def check_commit(revision: str | None) -> str | None:
    """Check that a revision is a whole commit id, for use in a validator.

    RAISES (ValueError): It is not.
    """
    if revision is not None and not re.fullmatch("[0-9a-f]{40}", revision):
        raise ValueError("want 40 hexadecimal digits")
    return revision


class Encoder(Settings):
    """A pretrained encoder. The head of encoders.yml describes each field.

    names (list[str]): Other names for it, beside its name in the catalogue.
    hub (str | None): Id on the Hugging Face hub.
    archive (str | None): Address of a .tar.gz.
    folder (str | None): Folder of this repository.
    revision (str | None): Commit of the hub repository, 40 hexadecimal digits.
    architecture (str): `model_type` of its config.json.
    tokenizer (str): Kind of its tokenizer.
    cased (bool): False if case and accents are lost.
    max_pieces (int): Longest input, in pieces, special ones included.
    vocabulary (dict[int, str]): Number of pieces -> source of that number.
    layers (int): Number of transformer layers.
    width (int): Size of a piece's vector.
    langs (list[str]): Languages of the pretraining text, "mul" for about a hundred.
    default_for (list[str]): Languages for which it is the one to try first.
    licence (str): Licence of the weights; "" if none is stated.
    non_commercial (bool): Whether the licence forbids commercial use.
    gated (bool): Whether the hub requires a login and a click.
    pretraining (str): Text that it was pretrained on, and where that came from.
    paper (str): What to cite.
    recipe (str): Name of a fine-tuning recipe in recipes.yml.
    learn_rates (list[float]): Rates that were best for it, the most often best first; [] if none
        was compared.
    window (int | None): Pieces per window that suit it; None for 256.
    notes (str): What to know before use.
    unfit (str): Why `spacy-bioclin.Encoder.v1` cannot read the source; "" if it can.
    unconfirmed (list[str]): Fields that no source confirms.
    """

    names: list[str]
    hub: str | None
    archive: str | None
    folder: str | None
    revision: str | None
    architecture: str
    tokenizer: Literal["wordpiece", "bytes", "unigram", "bpe"]
    cased: bool
    max_pieces: int
    vocabulary: dict[int, str]
    layers: int
    width: int
    langs: list[str]
    default_for: list[str]
    licence: str
    non_commercial: bool
    gated: bool
    pretraining: str
    paper: str
    recipe: str
    learn_rates: list[float]
    window: int | None
    notes: str
    unfit: str
    unconfirmed: list[str]

    @field_validator("revision")
    @classmethod
    def _check_revision(cls, revision: str | None) -> str | None:
        return check_commit(revision)

    @field_validator("unconfirmed")
    @classmethod
    def _check_unconfirmed(cls, fields: list[str]) -> list[str]:
        return [check_choice(field, list(cls.model_fields)) for field in fields]

    @model_validator(mode="after")
    def _check_together(self) -> "Encoder":
        if [self.hub, self.archive, self.folder].count(None) < 2:
            raise ValueError("want one of hub, archive and folder, not several")
        if self.default_for and self.licence_warning:
            raise ValueError(
                f"a default must be free for everybody to use, but {self.licence_warning}"
            )
        return self

    @property
    def source(self) -> str:
        """Where to get it: hub id, address or folder; "" if unknown."""
        return self.hub or self.archive or self.folder or ""

    @property
    def licence_warning(self) -> str:
        """What a user must know about the licence before use; "" if there is nothing."""
        if self.non_commercial:
            return f"{self.licence}: no commercial use, and never inside a package that is sold"
        if not self.licence:
            return "no licence is stated: ask its authors before use"
        if "licence" in self.unconfirmed:
            return f"no source confirms that it is {self.licence}: read its model card before use"
        return ""


@functools.cache
def load_encoders(path: Path = ENCODERS) -> dict[str, Encoder]:
    """Read the catalogue of encoders.

    path (Path): A file like encoders.yml; it is read once.
    RETURNS (dict[str, Encoder]): The encoders by name, in the order of the file.
    RAISES (BioclinError): An entry has a mistake, or two entries have the same name or default.
    """
    encoders = {
        name: read_settings(Encoder, fields, where=f"{path.name}, {name}")
        for name, fields in read_yaml(path).items()
        if not name.startswith(".")
    }
    owners: dict[str, str] = {}
    for name, encoder in encoders.items():
        defaults = {f"default for {lang}" for lang in encoder.default_for}
        for alias in _spellings(name, encoder) | defaults:
            if owners.setdefault(alias, name) != name:
                raise BioclinError(f"{path.name}: {alias!r} is both {owners[alias]} and {name}")
    return encoders


def _spellings(name: str, encoder: Encoder) -> set[str]:
    """Collect everything that finds an encoder: its names, with and without organisation."""
    names = {name, *encoder.names}
    return {spelling.casefold() for name in names for spelling in (name, name.split("/")[-1])}


def find_encoder(name: str) -> tuple[str, Encoder]:
    """Look an encoder up by any of its names, in any case, with or without its organisation.

    RETURNS (tuple[str, Encoder]): Its name in the catalogue, and the entry.
    RAISES (BioclinError): The catalogue has no such encoder; the message lists the nearest names.
    """
    encoders = load_encoders()
    found = match_encoder(name, encoders)
    if found is None:
        known = sorted({name for key in encoders for name in _spellings(key, encoders[key])})
        near = difflib.get_close_matches(name.casefold(), known, n=3)
        hint = f"; the nearest are {', '.join(near)}" if near else ""
        raise BioclinError(
            f"encoder {name!r} is not in the catalogue{hint}. `bioclin encoders list` lists them"
        )
    return found, encoders[found]


def match_encoder(name: str, encoders: Mapping[str, Encoder]) -> str | None:
    """Find the encoder that has a name.

    RETURNS (str | None): Its name in the catalogue.
    """
    wanted = name.casefold()
    return next((key for key in encoders if wanted in _spellings(key, encoders[key])), None)


# Where `bioclin fetch` and transformers write the name of an encoder: file and key.
RECOGNIZED_BY = (("fetched.json", "name"), ("config.json", "_name_or_path"))


def recognize_encoder(folder: Path) -> str | None:
    """Find which encoder of the catalogue a folder holds, by what was written into it or its name.

    RETURNS (str | None): Name in the catalogue; None if nothing is known.
    """
    encoders = load_encoders()
    stored = [read_json(folder / file).get(key) for file, key in RECOGNIZED_BY]
    names = (match_encoder(str(name), encoders) for name in [*stored, folder.resolve().name])
    return next((name for name in names if name), None)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; {} if there is none."""
    try:
        return settings.read_json(path)
    except BioclinError:
        return {}
