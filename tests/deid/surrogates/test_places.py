"""Places agree with each other: town, province and postcode move together."""

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.surrogates.context import SurrogateContext
from spacy_bioclin.deid.surrogates.places import (
    area_cycle,
    load_gazetteer,
    make_country,
    make_place,
    make_postcode,
    make_profession,
    province_of,
)
from spacy_bioclin.text import fold_alnum

KEY = b"0123456789abcdef"
SECRETS = st.builds(Secret, st.just(KEY), st.text(max_size=5))


def es(secret: Secret) -> SurrogateContext:
    return SurrogateContext(secret, "es")


AREAS = st.sampled_from([f"{code:02d}" for code in range(1, 53)])
# Read in the tests, for they are of Faker.
spain, states = partial(load_gazetteer, "es"), partial(load_gazetteer, "en")


def test_the_provinces_are_all_there() -> None:
    assert list(spain().area_names) == [f"{code:02d}" for code in range(1, 53)]
    assert len(states().area_names) == 50
    # A name stands for one place only.
    n_towns = sum(len(towns) for area, towns in spain().area_towns.items() if area)
    assert n_towns == len(spain().towns) > 250


def test_province_of_a_postcode() -> None:
    provinces = {"28013": "Madrid", "08001": "Barcelona", "01001": "Álava", "53000": None}
    provinces["2801"] = None
    assert {code: province_of(code) for code in provinces} == provinces


@settings(max_examples=30)
@given(SECRETS, AREAS, st.data())
def test_town_province_and_postcode_agree(secret: Secret, area: str, data: st.DataObject) -> None:
    town = data.draw(st.sampled_from(spain().area_towns[area]))
    code = f"{area}{data.draw(st.integers(1, 999)):03d}"
    new_code = make_postcode(code, es(secret)) or ""
    assert new_code != code and new_code[:2] == area_cycle(secret, "es")[area] != area
    new_town = make_place(town, es(secret)) or ""
    assert spain().towns[fold_alnum(new_town)] == new_code[:2]
    assert make_place(spain().area_names[area], es(secret), is_area=True) == province_of(new_code)
    assert make_place(f"{code} {town}", es(secret)) == f"{new_code} {new_town}"
    assert make_place(town.upper(), es(secret)) == new_town.upper()


@settings(max_examples=30)
@given(SECRETS, st.integers(0, 49), st.integers(0, 10**6))
def test_states_and_zip_codes_agree(secret: Secret, place: int, number: int) -> None:
    state = sorted(states().area_names)[place]
    low, high = states().zips[state]
    code = f"{low + number % (high - low + 1):05d}"
    new_state = make_place(state, SurrogateContext(secret, "en")) or ""
    low, high = states().zips[new_state]
    assert new_state != state
    new_code = make_postcode(code, SurrogateContext(secret, "en")) or ""
    assert new_code != code and low <= int(new_code) <= high
    long = make_postcode(f"{code}-1234", SurrogateContext(secret, "en")) or ""
    assert low <= int(long[:5]) <= high and long[5] == "-" and len(long) == 10
    name = make_place(states().area_names[state], SurrogateContext(secret, "en"))
    assert name == states().area_names[new_state]


@settings(max_examples=30)
@given(SECRETS, st.text(min_size=1, max_size=20))
def test_any_text_becomes_another_place_or_nothing(secret: Secret, value: str) -> None:
    for make in (make_place, make_country, make_profession, make_postcode):
        surrogate = make(value, es(secret))
        assert surrogate == make(value, es(secret))
        assert surrogate is None or fold_alnum(surrogate) != fold_alnum(value)


def test_several_places_in_one_value() -> None:
    for patient in "abcdef":
        value = make_place("Getafe (Madrid), España", es(Secret(KEY, patient))) or ""
        town, rest = value.split(" (")
        province, country = rest.split("), ")
        assert spain().towns[fold_alnum(town)] == spain().areas[fold_alnum(province)] != "28"
        assert country not in ("España", "")


def test_unknown_regions_and_foreign_codes() -> None:
    secret = Secret(KEY, "1")
    assert fold_alnum(make_place("Villaconejos de Abajo", es(secret)) or "") in spain().towns
    assert make_place("Cataluña", es(secret)) in spain().regions
    assert make_place("Boston", SurrogateContext(secret, "en")) in states().area_towns[""]
    foreign = make_postcode("SW1A 1AA", SurrogateContext(secret, "en")) or ""
    assert [char.isdigit() for char in foreign] == [char.isdigit() for char in "SW1A 1AA"]
    assert foreign != "SW1A 1AA" and foreign.isupper()
    assert make_postcode("Madrid", es(secret)) is None


def test_a_forbidden_place_does_not_come_out() -> None:
    secret = Secret(KEY, "1")
    first = make_place("Madrid", es(secret)) or ""
    other = make_place(
        "Madrid", SurrogateContext(secret, "es", {fold_alnum(word) for word in first.split()})
    )
    assert other not in (None, first)


def test_countries_and_professions_keep_their_case() -> None:
    secret = Secret(KEY, "1")
    country = make_country("España", es(secret)) or ""
    assert make_country("ESPAÑA", es(secret)) == country.upper()
    assert len(make_country("USA", es(secret)) or "") == 3
    assert not (make_country("EE.UU.", es(secret)) or "X").isupper()
    job = make_profession("carpintero", es(secret)) or ""
    assert job.islower() and make_profession("CARPINTERO", es(secret)) == job.upper()
    assert make_profession("", es(secret)) is None
