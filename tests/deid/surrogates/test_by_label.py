"""What holds for surrogates of every type of PHI."""

import re
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.deid.labels import load_types
from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.surrogates.by_label import MAKERS, WITHOUT_SURROGATE, make_surrogate
from spacy_bioclin.deid.surrogates.context import DateShift, SurrogateContext
from spacy_bioclin.text import fold_alnum

KEY = b"0123456789abcdef"
SECRETS = st.builds(Secret, st.just(KEY), st.text(max_size=5))
EXAMPLES = {
    "patient_name": ["García López, Ana María", "JGL", "Yidani"],
    "staff_name": ["Dr. J. M. Gómez de la Serna", "Mary-Ann O'Connor, MD"],
    "user_name": ["jgarcia82"],
    "profession": ["Carpintero", "nurse"],
    "date": ["12/03/2018", "marzo de 2018", "March 12, 2018"],
    "hospital": ["Hospital La Paz", "Hospital Clínico", "Massachusetts General Hospital"],
    "health_centre": ["Centro de Salud Talavera"],
    "organization": ["Universidad de Valencia", "Roche"],
    "street": ["C/ Mayor, 3, 2º B", "123 Main Street"],
    "city": ["Madrid", "28013 Getafe", "Boston"],
    "state": ["Sevilla", "Texas"],
    "other_place": ["Valle de Arán"],
    "postcode": ["28013", "02139"],
    "country": ["España", "USA"],
    "cadastre": ["9872023 VH5797S 0001 WX"],
    "phone": ["913 36 80 00", "(415) 867-5309"],
    "fax": ["+34 986421439"],
    "email": ["ana.garcia@hospital.es"],
    "url": ["www.hospital.es/ana"],
    "ip_address": ["192.168.1.10"],
    "record_id": ["NHC 123456", "078165"],
    "national_id": ["12345678Z", "X1234567L"],
    "contact_id": ["7435703"],
    "insurance_id": ["28 12345678 40"],
    "health_plan_id": ["ABC-123456"],
    "licence_id": ["28 28 57941"],
    "staff_id": ["E-1234"],
    "account": ["ES77 1234 1234 1612 3456 7890"],
    "vehicle": ["1234 BCD"],
    "device": ["SN: A1B2C3D4"],
    "biometric": ["FP-99812"],
    "other_id": ["A/2018/12345"],
}
PAIRS = [(phi_type, value) for phi_type, values in EXAMPLES.items() for value in values]


def words_of(text: str) -> set[str]:
    return {fold_alnum(word) for word in re.findall(r"[^\W_]+", text)}


def test_every_type_has_a_surrogate_or_none_on_purpose() -> None:
    assert set(MAKERS) | set(WITHOUT_SURROGATE) | {"date"} == set(load_types())
    assert set(EXAMPLES) == set(MAKERS) | {"date"}
    for phi_type in WITHOUT_SURROGATE:
        assert make_surrogate("madre", phi_type, SurrogateContext(Secret(KEY, "1"), "es")) is None


@settings(max_examples=60)
@given(st.sampled_from(PAIRS), SECRETS, st.sampled_from(["es", "en"]))
def test_deterministic_other_and_not_forbidden(
    pair: tuple[str, str], secret: Secret, lang: str
) -> None:
    phi_type, value = pair
    shift = DateShift(400) if phi_type == "date" else None
    first = make_surrogate(value, phi_type, SurrogateContext(secret, lang, dates=shift))
    assert first is not None and fold_alnum(first) != fold_alnum(value)
    assert first == make_surrogate(value, phi_type, SurrogateContext(secret, lang, dates=shift))
    if phi_type == "date":
        return
    kept = words_of(value) | {"example"}
    forbidden = {word for word in words_of(first) - kept if len(word) >= 4}
    second = make_surrogate(value, phi_type, SurrogateContext(secret, lang, forbidden))
    # Initials and addresses in networks have no choice.
    assert second is not None or value == "JGL" or phi_type == "ip_address"
    assert not words_of(second or "") & {word for word in forbidden if word.isalpha()}
    assert fold_alnum(second or "") != fold_alnum(value)


@settings(max_examples=50)
@given(st.sampled_from(PAIRS), SECRETS)
def test_accents_and_case_do_not_count(pair: tuple[str, str], secret: Secret) -> None:
    phi_type, value = pair
    shift = DateShift(400)
    surrogates = set()
    decomposed = unicodedata.normalize("NFD", value)
    bare = "".join(char for char in decomposed if not unicodedata.combining(char))
    for form in (value, decomposed, bare):
        surrogate = make_surrogate(form, phi_type, SurrogateContext(secret, "es", dates=shift))
        surrogates.add(fold_alnum(surrogate or ""))
    assert len(surrogates) == 1
    # A short word in capitals alone is an acronym.
    if value not in ("Roche", "JGL"):
        upper = make_surrogate(value.upper(), phi_type, SurrogateContext(secret, "es", dates=shift))
        assert {fold_alnum(upper or "")} == surrogates


@settings(max_examples=80)
@given(st.text(max_size=25), st.sampled_from(sorted(load_types())), SECRETS)
def test_any_text_of_any_type(value: str, phi_type: str, secret: Secret) -> None:
    surrogate = make_surrogate(value, phi_type, SurrogateContext(secret, "es"))
    assert surrogate is None or fold_alnum(surrogate) != fold_alnum(value)


def test_patients_differ() -> None:
    contexts = [SurrogateContext(Secret(KEY, str(i)), "es") for i in range(10)]
    wrong = [
        (value, phi_type, made)
        for phi_type, value in PAIRS
        if len(made := {make_surrogate(value, phi_type, one) for one in contexts}) < 3
    ]
    assert not wrong, wrong


@pytest.mark.slow
def test_another_process_gives_the_same() -> None:
    """Hash seeds differ between processes; nothing may depend on them."""
    code = (
        "from spacy_bioclin.deid.secret import Secret\n"
        "from spacy_bioclin.deid.surrogates.by_label import make_surrogate\n"
        "from spacy_bioclin.deid.surrogates.context import SurrogateContext\n"
        f"for phi_type, value in {PAIRS!r}:\n"
        f"    context = SurrogateContext(Secret({KEY!r}, '1'), 'es')\n"
        "    print(make_surrogate(value, phi_type, context))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    here = [make_surrogate(v, t, SurrogateContext(Secret(KEY, "1"), "es")) for t, v in PAIRS]
    assert outputs.pop().decode("utf-8").splitlines() == here
