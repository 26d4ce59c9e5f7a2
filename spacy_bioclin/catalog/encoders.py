"""The pretrained encoders of `encoders.yml`."""

import difflib
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import srsly

from ..errors import BioclinError

ENCODERS = Path(__file__).with_name("encoders.yml")
TOKENIZERS = ("wordpiece", "bytes", "unigram", "bpe")
COMMIT = re.compile(r"[0-9a-f]{40}")


class Encoder(NamedTuple):
    """A pretrained encoder. The head of encoders.yml says what each field means.

    names (list[str]): What it has been called, beside its name in the catalogue.
    hub (str | None): Id on the Hugging Face hub.
    archive (str | None): Address of a .tar.gz.
    folder (str | None): Folder of this repository.
    revision (str | None): Commit of the hub repository, 40 hexadecimal digits.
    architecture (str): `model_type` of its config.json.
    tokenizer (str): One of TOKENIZERS.
    cased (bool): False if case and accents are lost.
    max_pieces (int): Longest input, in pieces, special ones included.
    vocabulary (dict[int, str]): Number of pieces -> who says so.
    layers (int): Of the transformer.
    width (int): Size of a piece's vector.
    langs (list[str]): Languages of the pretraining text, "mul" for about a hundred.
    default_for (list[str]): Languages for which it is the one to try first.
    licence (str): Of the weights; "" if none is stated.
    non_commercial (bool): Whether the licence forbids commercial use.
    gated (bool): Whether the hub wants a login and a click.
    pretraining (str): On what text, from where.
    paper (str): What to cite.
    recipe (str): Name of a fine-tuning recipe in recipes.yml.
    learn_rates (list[float]): Rates that were best for it; [] for those of the recipe.
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
    tokenizer: str
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
    notes: str
    unfit: str
    unconfirmed: list[str]

    @property
    def source(self) -> str:
        """Where it comes from; "" if nobody could say."""
        return self.hub or self.archive or self.folder or ""

    @property
    def licence_warning(self) -> str:
        """What a user must know of the licence before use; "" if there is nothing."""
        if self.non_commercial:
            return f"{self.licence}: no commercial use, and never inside a package that is sold"
        if not self.licence:
            return "no licence is stated: ask its authors before use"
        if "licence" in self.unconfirmed:
            return f"that it is {self.licence} no source confirms: read its model card before use"
        return ""


@functools.cache
def load_encoders(path: Path = ENCODERS) -> dict[str, Encoder]:
    """
    path (Path): A file like encoders.yml; it is read once.
    RETURNS (dict[str, Encoder]): The encoders by name, in the order of the file.
    RAISES (BioclinError): An entry is not as the head of encoders.yml says.
    """
    content = srsly.read_yaml(path)
    encoders = {
        name: _read_entry(fields, f"{path.name}, {name}")
        for name, fields in content.items()
        if not name.startswith(".")
    }
    _check_together(encoders, path.name)
    return encoders


def _read_entry(fields: Mapping[str, Any], where: str) -> Encoder:
    types = get_type_hints(Encoder)
    for problem, names in (
        ("unknown", fields.keys() - types.keys()),
        ("missing", types.keys() - fields.keys()),
    ):
        if names:
            raise BioclinError(f"{where}: {problem} {', '.join(sorted(names))}")
    for name, value in fields.items():
        if not _has_type(value, types[name]):
            raise BioclinError(f"{where}: {name} is {value!r}, want {types[name]}")
    encoder = Encoder(**fields)
    if encoder.tokenizer not in TOKENIZERS:
        want = ", ".join(TOKENIZERS)
        raise BioclinError(f"{where}: tokenizer is {encoder.tokenizer!r}, want one of {want}")
    if encoder.revision is not None and not COMMIT.fullmatch(encoder.revision):
        raise BioclinError(f"{where}: revision is {encoder.revision!r}, want 40 hexadecimal digits")
    if sum(source is not None for source in (encoder.hub, encoder.archive, encoder.folder)) > 1:
        raise BioclinError(f"{where}: want one of hub, archive and folder, not several")
    if unknown := set(encoder.unconfirmed) - types.keys():
        raise BioclinError(f"{where}: unconfirmed holds {', '.join(sorted(unknown))}, no fields")
    if encoder.default_for and encoder.licence_warning:
        raise BioclinError(
            f"{where}: a default must be free for all to use, but {encoder.licence_warning}"
        )
    return encoder


def _has_type(value: Any, wanted: Any) -> bool:
    """Whether the value is of a type such as str, `str | None`, list[str] or dict[int, str]."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin is list:
        return isinstance(value, list) and all(_has_type(item, inner[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            _has_type(key, inner[0]) and _has_type(item, inner[1]) for key, item in value.items()
        )
    if origin is not None:
        return any(_has_type(value, one) for one in inner)
    return type(value) is wanted


def _check_together(encoders: Mapping[str, Encoder], where: str) -> None:
    owners: dict[str, str] = {}
    defaults: dict[str, str] = {}
    for name, encoder in encoders.items():
        for alias in _spellings(name, encoder):
            if owners.setdefault(alias, name) != name:
                raise BioclinError(f"{where}: {alias!r} names {owners[alias]} and {name}")
        for lang in encoder.default_for:
            if lang in defaults:
                raise BioclinError(
                    f"{where}: {defaults[lang]} and {name} are both the default for {lang}"
                )
            defaults[lang] = name


def _spellings(name: str, encoder: Encoder) -> set[str]:
    """RETURNS (set[str]): All that finds the encoder: its names, with and without organisation."""
    names = {name, *encoder.names}
    return {spelling.casefold() for name in names for spelling in (name, name.split("/")[-1])}


def find_encoder(name: str) -> tuple[str, Encoder]:
    """Look an encoder up by any name it has had, in any case, with or without its organisation.

    RETURNS (tuple[str, Encoder]): Its name in the catalogue, and the entry.
    RAISES (BioclinError): There is none; the message names the nearest.
    """
    encoders = load_encoders()
    found = match_encoder(name, encoders)
    if found is None:
        known = sorted({name for key in encoders for name in _spellings(key, encoders[key])})
        near = difflib.get_close_matches(name.casefold(), known, n=3)
        hint = f"; the nearest are {', '.join(near)}" if near else ""
        raise BioclinError(
            f"encoder {name!r} is not in the catalogue{hint}. `bioclin encoders list` shows what is"
        )
    return found, encoders[found]


def match_encoder(name: str, encoders: Mapping[str, Encoder]) -> str | None:
    """RETURNS (str | None): Name in the catalogue of the encoder that was ever called so."""
    wanted = name.casefold()
    return next((key for key in encoders if wanted in _spellings(key, encoders[key])), None)


def default_encoder(lang: str) -> str:
    """RETURNS (str): Name of the encoder to try first. RAISES (BioclinError): None is named."""
    defaults = {lang: name for name, one in load_encoders().items() for lang in one.default_for}
    if lang not in defaults:
        raise BioclinError(
            f"no encoder is the default for language {lang!r}, only for {', '.join(defaults)}"
        )
    return defaults[lang]
