"""Surrogates of towns, provinces, states, countries, postcodes and professions.

For each patient, a keyed cycle replaces every Spanish province (and American state) with another
one, and a town becomes a town of the province that replaces its own: town, province and postcode
still agree.
"""

import importlib
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from ...text import compose, fold_alnum
from ..secret import Secret
from .context import DIGITS, NON_ZERO, SurrogateContext, keyed_cycle
from .identifiers import fill, make_identifier
from .wording import match_case

DATA = Path(__file__).with_name("places.yml")
MAX_COUNTRY_CHARS = 22
_SPANISH_CODE = re.compile(r"(?<!\d)\d{5}(?!\d)")
_ZIP = re.compile(r"(?<!\d)(\d{5})(-\d{4})?(?!\d)")
_ALIEN_CODE = re.compile(r"(?=.*\d)[A-Z0-9]{2,5}[ -]?[A-Z0-9]{2,4}", re.IGNORECASE)
# Between places: "Getafe (Madrid), España", "28013 Madrid".
_BETWEEN = re.compile(r"(\s*[,;()/\n]\s*|\s+[-–]\s+|(?<=\d)\s+(?=[^\W\d])|(?<=[^\W\d_])\s+(?=\d))")


class Gazetteer(NamedTuple):
    """The known places. An area is a Spanish province (two digits) or an American state (two
    letters).

    areas (dict[str, str]): Folded name of an area -> area.
    area_names (dict[str, str]): Area -> its name.
    towns (dict[str, str]): Folded town -> area; empty for American ones, whose names recur.
    area_towns (dict[str, tuple[str, ...]]): Area -> its towns; "" -> all.
    zips (dict[str, tuple[int, int]]): American state -> first and last postcode.
    regions (tuple[str, ...]): Spanish regions.
    """

    areas: dict[str, str]
    area_names: dict[str, str]
    towns: dict[str, str]
    area_towns: dict[str, tuple[str, ...]]
    zips: dict[str, tuple[int, int]]
    regions: tuple[str, ...]


@cache
def load_places() -> dict[str, Any]:
    """Read places.yml."""
    return srsly.read_yaml(DATA)


def _provider(kind: str, locale: str) -> Any:
    return importlib.import_module(f"faker.providers.{kind}.{locale}").Provider


@cache
def load_gazetteer(lang: str) -> Gazetteer:
    """Load the places of a language: "en", or Spanish for all others."""
    data = load_places()
    if lang == "en":
        provider = _provider("address", "en_US")
        abbreviations = [code for code in provider.states_abbr if code != "DC"]
        names = dict(zip(abbreviations, provider.states, strict=True))
        return Gazetteer(
            {fold_alnum(text): code for code, name in names.items() for text in (name, code)},
            names,
            {},
            {"": tuple(data["towns_en"])},
            {code: provider.states_postcode[code] for code in names},
            (),
        )
    provinces = data["provinces"]
    return Gazetteer(
        {fold_alnum(name): code for code, one in provinces.items() for name in one["names"]},
        {code: one["names"][0] for code, one in provinces.items()},
        {fold_alnum(town): code for code, one in provinces.items() for town in one["towns"]},
        {
            **{code: tuple(one["towns"]) for code, one in provinces.items()},
            "": tuple(town for one in provinces.values() for town in one["towns"]),
        },
        {},
        tuple(data["regions"]),
    )


@lru_cache(maxsize=1024)
def area_cycle(secret: Secret, lang: str) -> dict[str, str]:
    """Map each province or state to the one that replaces it."""
    places = load_gazetteer(lang)
    # Ceuta and Melilla, with one town each, replace nothing.
    lone = [area for area, towns in places.area_towns.items() if len(towns) == 1]
    others = [area for area in places.area_names if area not in lone]
    return {
        **keyed_cycle(others, secret, "areas"),
        **{area: others[secret.number("lone area", area, len(others))] for area in lone},
    }


def province_of(postcode: str) -> str | None:
    """Name the Spanish province of a postcode of five digits; None if there is none."""
    if not re.fullmatch(r"\d{5}", postcode):
        return None
    return load_gazetteer("es").area_names.get(postcode[:2])


def make_place(value: str, context: SurrogateContext, is_area: bool = False) -> str | None:
    """Make another town, province, state or region, or several ("28013 Getafe (Madrid)").

    value (str): An unknown name becomes any town; postcodes and countries in it are replaced too.
    is_area (bool): "Madrid" is the province, not the town, as it always is in brackets.
    RETURNS (str | None): None if there is nothing to replace.
    """
    value = compose(value)
    lead = len(value) - len(value.lstrip())
    new, in_brackets = [value[:lead]], False
    for part in _BETWEEN.split(value.strip()):
        surrogate: str | None = part
        if any(map(str.isalnum, part)):
            surrogate = _make_part(part, context, is_area or in_brackets)
        if surrogate is None:
            return None
        in_brackets = "(" in part
        new.append(surrogate)
    text = "".join(new)
    return text if fold_alnum(text) != fold_alnum(value) else None


def _make_part(part: str, context: SurrogateContext, is_area: bool) -> str | None:
    if any(map(str.isdigit, part)):
        return make_postcode(part, context)
    secret, lang = context.secret, context.lang
    places, folded = load_gazetteer(lang), fold_alnum(part)
    if folded in places.towns and not (is_area and folded in places.areas):
        area = area_cycle(secret, lang)[places.towns[folded]]
        pools = [places.area_towns[area], places.area_towns[""]]
    elif folded in places.areas:
        area = area_cycle(secret, lang)[places.areas[folded]]
        if len(part) <= 2:
            return match_case(part, area)
        pools = [(places.area_names[area],), tuple(places.area_names.values())]
    elif folded in map(fold_alnum, places.regions):
        pools = [places.regions]
    elif folded in _folded_countries(lang):
        return make_country(part, context)
    else:
        pools = [places.area_towns[""]]
    chosen = (context.choose(pool, "place", part) for pool in pools)
    town = next((town for town in chosen if town is not None), None)
    return None if town is None else match_case(part, town)


def make_postcode(value: str, context: SurrogateContext) -> str | None:
    """Make another postcode, of the province or state that replaces the original's.

    A postcode of another country becomes one of the same shape.
    RETURNS (str | None): None if there is no digit.
    """
    value, lang = compose(value), context.lang
    found = (_ZIP if lang == "en" else _SPANISH_CODE).search(value)
    area = None if found is None else _area_of(found.group()[:5], lang)
    if found is None or area is None:
        if not any(map(str.isdigit, value)):
            return None
        if _ALIEN_CODE.fullmatch(value) and not value.isdigit():
            shape = [DIGITS if char.isdigit() else "ABDEGHLMNRSTW" for char in fold_alnum(value)]
            return fill(value, context.draw_other(shape, "postcode", fold_alnum(value)))
        return make_identifier(value, context, "postcode")
    code = found.group()
    digits = code.replace("-", "")
    target = area_cycle(context.secret, lang)[area]
    for tail in context.draw([DIGITS] * (len(digits) - 1) + [NON_ZERO], "postcode", digits):
        if lang == "en":
            low, high = load_gazetteer(lang).zips[target]
            new = f"{low + int(tail[:5]) % (high - low + 1):05d}{tail[5:]}"
        else:
            # The first hundreds of a province are its capital, the others its towns.
            new = f"{target}{'0' if digits[2] == '0' else tail[2]}{tail[3:]}"
        if new != digits and new not in context.forbidden:
            written = new if len(new) == len(code) else f"{new[:5]}-{new[5:]}"
            return value[: found.start()] + written + value[found.end() :]
    return None


def _area_of(code: str, lang: str) -> str | None:
    places = load_gazetteer(lang)
    if lang != "en":
        return code[:2] if code[:2] in places.area_names else None
    number = int(code)
    return next((area for area, (a, b) in places.zips.items() if a <= number <= b), None)


@cache
def _countries(lang: str) -> tuple[str, ...]:
    names = _provider("address", "en_US" if lang == "en" else "es").countries
    plain = [name for name in names if len(name) <= MAX_COUNTRY_CHARS and "(" not in name]
    return tuple(sorted(plain))


@cache
def _country_codes(n_letters: int) -> tuple[str, ...]:
    provider = _provider("address", "es")
    codes = {2: provider.alpha_2_country_codes, 3: provider.alpha_3_country_codes}
    return tuple(sorted(codes[n_letters]))


@cache
def _folded_countries(lang: str) -> frozenset[str]:
    return frozenset(map(fold_alnum, _countries(lang)))


def make_country(value: str, context: SurrogateContext) -> str | None:
    """Make another country; a code of two or three capitals becomes a code.

    RETURNS (str | None): None if there is no letter.
    """
    letters = "".join(filter(str.isalpha, value))
    if not letters:
        return None
    if value.isupper() and letters == value and len(letters) in (2, 3):
        return context.choose(_country_codes(len(letters)), "country", value)
    country = context.choose(_countries(context.lang), "country", value)
    # "EE.UU." is an abbreviation, not a name in capitals.
    return country if country is None or "." in value else match_case(value, country)


@cache
def _jobs(lang: str) -> tuple[str, ...]:
    names = _provider("job", "en_US" if lang == "en" else "es").jobs
    return tuple(sorted(name for name in names if not re.search(r"[,(/]", name)))


def make_profession(value: str, context: SurrogateContext) -> str | None:
    """Make another profession, in the same case.

    RETURNS (str | None): None if there is no letter.
    """
    if not any(map(str.isalpha, value)):
        return None
    job = context.choose(_jobs(context.lang), "profession", value)
    return None if job is None else match_case(value, job)
