"""Write golden.json: the surrogates of fixed values, to notice when one changes.

A project's notes get the same surrogates in every run, so a change breaks the link between notes
that were written before and after it. Run `python -m tests.deid.surrogates.make_golden` only when
Faker's lists change or a changed surrogate is intended, and say so in the changelog.
"""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spacy_bioclin.deid.labels import load_types
from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.surrogates.by_label import make_surrogate
from spacy_bioclin.deid.surrogates.context import SurrogateContext

GOLDEN = Path(__file__).with_name("golden.json")
KEY = b"0123456789abcdef"
LANGS = ("es", "en")
FORBIDDEN = frozenset({"garcia", "ana", "madrid", "sevilla", "hospital", "maria", "2018"})
VALUES = (
    *("García López, Ana María", "DRA. ANA Mª GARCIA-LOPEZ", "J. M. Gómez de la Serna", "JGL"),
    *("Sr. D. José Pérez", "Fco. Javier Fdez. Ruiz", "Patrick O'Connor, M.D.", "Ramón y Cajal"),
    *("María José", "Martín Gil Ruiz", "Wladimir Kovac", "Ana García 12", "jgarcia82"),
    *("C/ Ramón y Cajal, nº 3, 2º B", "Avda. Valdecilla s/n", "CALLE SERRANO 5, 4D"),
    *("4500 N. Lamar Blvd Suite 12", "PO Box 1234", "123 Main Street, Apt 4B"),
    *("Hospital General Gregorio Marañón", "Hospital Carlos Haya de Málaga", "H. U. La Princesa"),
    *('Hospital "12 de Octubre"', "HOSPITAL LA PAZ, PLANTA 11", "Hospital Clínico", "HUVN"),
    *("St. Mary's Hospital", "Universidad de Valencia", "Smith & Sons Inc.", "Hospital del Mar"),
    *("Madrid", "28013 Getafe (Madrid), España", "Ceuta", "Texas", "CA", "Boston", "Cataluña"),
    *("28013", "02139-1234", "SW1A 1AA", "España", "USA", "EE.UU.", "carpintero", "NURSE"),
    *("913 36 80 00", "+34 986421439", "(415) 867-5309", "91 336 80 00 ext. 23", "112"),
    *("ana.garcia@hospital.es", "e-mail: a_b@x.org, c@y.com", "https://www.hospital.es/ana.html"),
    *("192.168.1.10", "00:1B:44:11:3A:B7", "fe80::1ff:fe23:4567:890a"),
    *("NHC 078165", "12345678Z", "X1234567L", "28 12345678 40", "28 28 57941", "1234 BCD"),
    *("ES91 2100 0418 4502 0005 1332", "4111 1111 1111 1111", "9872023 VH5797S 0001 WX"),
    *("HEGG560427MVZRRL04", "GODE561231GR8", "1HGCM82633A004352", "078-05-1120", "A/2018/12345"),
    *("12/03/2018", "lunes 12 de marzo de 2018", "March 12th, 2018", "12-15 de marzo", "mar-18"),
    *("12-III-2018", "'18", "Residente de 5° año", "57 años", "Dr.", "Calle", ""),
)


ALL = [(lang, words) for lang in LANGS for words in (frozenset[str](), FORBIDDEN)]


def make_golden(ways: list[tuple[str, frozenset[str]]] = ALL) -> dict[str, dict[str, str]]:
    """Make surrogates of every value as every type.

    ways (list[tuple[str, frozenset[str]]]): Languages, each with forbidden words.
    """
    types: dict[str, dict[str, str]] = {}
    for phi_type in load_types():
        made = {
            f"{lang}{' forbidden' if words else ''}": [
                make_surrogate(value, phi_type, SurrogateContext(Secret(KEY, "p-1"), lang, words))
                for value in VALUES
            ]
            for lang, words in ways
        }
        types[phi_type] = {
            name: hashlib.sha256(json.dumps(rows).encode("ascii")).hexdigest()[:16]
            for name, rows in made.items()
        }
    return types


def make_shown() -> dict[str, list[str | None]]:
    """Make a few surrogates that the file shows as they are."""
    chosen = ("patient_name", "street", "hospital", "city", "phone", "email", "record_id", "date")
    return {
        value: [
            make_surrogate(value, name, SurrogateContext(Secret(KEY, "p-1"), "es"))
            for name in chosen
        ]
        for value in VALUES
    }


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    parts = [f'"faker": {json.dumps(version("Faker"))}']
    for key, table in {"types": make_golden(), "shown": make_shown()}.items():
        rows = [f"  {_write(name)}: {_write(row)}" for name, row in table.items()]
        parts.append(f'"{key}": {{\n' + ",\n".join(rows) + "\n }")
    GOLDEN.write_text("{\n " + ",\n ".join(parts) + "\n}\n", "utf-8")
