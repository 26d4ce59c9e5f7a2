"""Names of persons: consistent across their variants, in the same form, never the original."""

import re
import unicodedata
from functools import cache
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.surrogates.context import SurrogateContext
from spacy_bioclin.deid.surrogates.name_lists import FEMALE, MALE, SURNAME, load_names
from spacy_bioclin.deid.surrogates.persons import find_first_names, letter_cycle, make_name
from spacy_bioclin.text import fold_alnum

KEY = b"0123456789abcdef"
SECRETS = st.builds(Secret, st.just(KEY), st.text(max_size=5))
LANGS = st.sampled_from(["es", "en"])
WORD = re.compile(r"[^\W\d_]+")


def strip_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


@cache
def names_of(lang: str, *kinds: str) -> list[str]:
    known = load_names(lang).known
    return sorted(word for word, found in known.items() if found == set(kinds) and len(word) > 3)


def make(value: str, secret: Secret, lang: str = "es") -> str:
    surrogate = make_name(value, SurrogateContext(secret, lang))
    assert surrogate is not None
    return surrogate


@st.composite
def persons(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """Language, first name, two surnames."""
    lang = draw(LANGS)
    first = draw(st.sampled_from(names_of(lang, MALE) + names_of(lang, FEMALE)))
    surnames = [draw(st.sampled_from(names_of(lang, SURNAME))) for _ in range(2)]
    return (lang, first.title(), *(name.title() for name in surnames))


@settings(max_examples=30)
@given(persons(), SECRETS)
def test_all_variants_of_a_name_agree(person: tuple[str, str, str, str], secret: Secret) -> None:
    lang, first, one, two = person
    a, b, c = make(f"{first} {one} {two}", secret, lang).split()
    variants = {
        f"{one} {two}, {first}": f"{b} {c}, {a}",
        f"{one}-{two}": f"{b}-{c}",
        f"Dra. {one}": f"Dra. {b}",
        one: b,
        first: a,
        f"{first} {one}".upper(): f"{a} {b}".upper(),
        one.lower(): b.lower(),
        f"{first[0]}. {one}": f"{a[0]}. {b}",
        f"{first}\n{one}": f"{a}\n{b}",
    }
    if lang == "es" and first.startswith("D"):
        # Before a name that may be a man's it is "don".
        del variants[f"{first[0]}. {one}"]
    for value, expected in variants.items():
        assert fold_alnum(make(value, secret, lang)) == fold_alnum(expected), value
        assert make(value, secret, lang).isupper() == value.isupper()
    if one[0] + two[0] == "MD":
        return  # "M.D." is a doctor
    initials = make(f"{first[0]}.{one[0]}.{two[0]}.", secret, lang)
    assert fold_alnum(initials) == fold_alnum(a[0] + b[0] + c[0])


@settings(max_examples=30)
@given(persons(), SECRETS, st.data())
def test_never_the_original_and_never_what_is_forbidden(
    person: tuple[str, str, str, str], secret: Secret, data: st.DataObject
) -> None:
    lang, *names = person
    value = " ".join(names)
    first = make(value, secret, lang)
    forbidden = {fold_alnum(word) for word in [*names, data.draw(st.sampled_from(first.split()))]}
    other = make_name(value, SurrogateContext(secret, lang, frozenset(forbidden)))
    assert other is not None and len(other.split()) == 3
    assert not forbidden & {fold_alnum(word) for word in WORD.findall(other)}
    for old, new in zip(names, first.split(), strict=True):
        assert fold_alnum(old)[0] != fold_alnum(new)[0]


@settings(max_examples=30)
@given(LANGS, SECRETS, st.sampled_from([MALE, FEMALE]), st.data())
def test_gender_is_kept(lang: str, secret: Secret, gender: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names_of(lang, gender)))
    assert gender in load_names(lang).known[fold_alnum(make(name.title(), secret, lang))]


@settings(max_examples=20)
@given(SECRETS, LANGS)
def test_letters_make_one_cycle(secret: Secret, lang: str) -> None:
    cycle = letter_cycle(secret, lang)
    assert sorted(cycle) == sorted(cycle.values())
    place, seen = min(cycle), set()
    while place not in seen:
        seen.add(place)
        place = cycle[place]
    assert seen == set(cycle) and len(seen) > 10


@settings(max_examples=40)
@given(st.text(max_size=30), SECRETS, LANGS)
def test_any_text_keeps_what_is_no_word(value: str, secret: Secret, lang: str) -> None:
    surrogate = make_name(value, SurrogateContext(secret, lang))
    assert surrogate == make_name(value, SurrogateContext(secret, lang))
    assert surrogate is None or fold_alnum(surrogate) != fold_alnum(value)


def test_forms_of_one_name() -> None:
    """Written out by hand, from one surrogate for each word."""
    secret = Secret(KEY, "1")
    ana, maria, garcia, lopez = (make(x, secret) for x in ("Ana", "María", "García", "López"))
    for value, expected in {
        "García López, Ana María": f"{garcia} {lopez}, {ana} {maria}",
        "DRA. ANA Mª GARCIA-LOPEZ": f"DRA. {ana} {maria} {garcia}-{lopez}".upper(),
        "Dña. Ana M.ª García": f"Dña. {ana} {maria} {garcia}",
        "A. M. García de la López": f"{ana[0]}. {maria[0]}. {garcia} de la {lopez}",
        "AMG": f"{ana[0]}{maria[0]}{garcia[0]}",
        "ana garcía y lópez": f"{ana} {garcia} y {lopez}".lower(),
        "Dr. García": f"Dr. {garcia}",
        "Ana García 12": None,
    }.items():
        surrogate = make(value, secret)
        assert expected is None or strip_accents(surrogate) == strip_accents(expected)
    assert not make("Ana García 12", secret).endswith("12")


def test_titles_and_particles_stay() -> None:
    cases = [
        ("es", "Sr. D. José Pérez", r"Sr\. D\. \w+ \w+"),
        ("es", "D. García", r"(?!D)[A-Z]\. \w+"),
        ("es", "Ramón y Cajal", r"\w+ y \w+"),
        ("es", "RAMON Y CAJAL", r"[A-ZÁÉÍÓÚÑ]+ Y [A-ZÁÉÍÓÚÑ]+"),
        ("es", "Jordi D'Or", r"\w+ D'\w+"),
        ("es", "Fco. Javier Fdez. Ruiz", r"\w{3,} \w+ \w{4,} \w+"),
        ("en", "Patrick O'Connor, M.D.", r"\w+ O'\w+, M\.D\."),
        ("en", "Mr. James Taylor Jr.", r"Mr\. \w+ \w+ Jr\."),
        ("en", "D. Smith", r"[A-Z]\. \w+"),
    ]
    for (lang, value, shape), patient in product(cases, "abc"):
        surrogate = make(value, Secret(KEY, patient), lang)
        assert re.fullmatch(shape, surrogate), surrogate
        assert surrogate != value


def test_first_name_and_surname_alike_agree() -> None:
    for patient in "abcdef":
        secret = Secret(KEY, patient)
        martin = make("Martín", secret)
        assert make("Martín Gil Ruiz", secret).split()[0] == martin
        assert make("Dra. Martín", secret) == f"Dra. {martin}"
        assert make("Ana Martín", secret).split()[1] == martin


def test_a_compound_first_name_has_the_gender_of_its_first_word() -> None:
    known = load_names("es").known
    for patient in "abcdef":
        for value, gender in (("María José", FEMALE), ("José María", MALE)):
            for word in make(value, Secret(KEY, patient)).split():
                assert gender in known[fold_alnum(word)]


def test_nothing_to_replace() -> None:
    for value in ("", "Dr.", "de la", " - "):
        assert make_name(value, SurrogateContext(Secret(KEY, "1"), "es")) is None


def test_patients_and_keys_differ() -> None:
    surrogates = {make("García", Secret(KEY, str(i))) for i in range(50)}
    assert len(surrogates) > 25
    assert make("García", Secret(KEY, "1")) != make("García", Secret(KEY[::-1], "1"))


def test_an_unknown_first_name_becomes_a_first_name() -> None:
    known = load_names("es").known
    for value, gender in (
        ("Casilda García Nogales", FEMALE),
        ("García Nogales, Casilda", FEMALE),
        ("Dra. Fuensanta Mazuelas", FEMALE),
        ("Telesforo Zarzalejo", MALE),
        ("CASILDA GARCÍA", FEMALE),
        ("Dña. Arantzazu Etxeberria", FEMALE),
    ):
        (first,) = find_first_names([value], "es")
        assert first not in known
        place = [fold_alnum(word) for word in WORD.findall(value)].index(first)
        for patient in "abcdefgh":
            new = WORD.findall(make(value, Secret(KEY, patient)))[place]
            assert known[fold_alnum(new)] == {gender}


def test_an_unknown_first_name_is_the_same_alone() -> None:
    note = ["Casilda García Nogales", "Casilda", "Dr. Zarzalejo", "Ana Zarzalejo", "Zarzalejo Gil"]
    first_names = find_first_names(note, "es")
    assert first_names == {"casilda": FEMALE}  # Zarzalejo is a surname in the note
    for patient in "abcdefgh":
        context = SurrogateContext(Secret(KEY, patient), "es", first_names=first_names)
        full = make_name("Casilda García Nogales", context)
        assert full is not None and make_name("Casilda", context) == full.split()[0]
        assert make_name("Nogales", context) == full.split()[2]


def test_known_words_are_no_unknown_first_names() -> None:
    values = ["Ana García", "García López", "Zarzalejo", "Dr. Zarzalejo", "J. Zarzalejo", ""]
    assert find_first_names(values, "es") == {}


def test_surnames_have_their_accents() -> None:
    pools = load_names("es").pools.values()
    spelt = {name for pool in pools for name in pool}
    assert {"Fernández", "García", "López", "Martín"} <= spelt
    assert not {"Fernandez", "Garcia", "Lopez", "Martin", "Perez", "Gonzalez"} & spelt
    assert len(set(map(strip_accents, spelt))) == len(spelt)
