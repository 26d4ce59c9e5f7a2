"""Units are UCUM, and can be converted."""

import sys

import pytest

from spacy_bioclin.context.measurements.rules.find import Finder, find_measurements
from spacy_bioclin.context.measurements.rules.units import Units, check_code, list_codes
from spacy_bioclin.errors import BioclinError

WRITTEN = {
    "MG/DL": "mg/dL",
    "mg/kg/día": "mg/kg/d",
    "mm de Hg": "mm[Hg]",
    "x 10(9)/L": "10*9/L",
    "K/UL": "10*3/uL",
    "ml/min/1,73 m2": "mL/min/{1.73_m2}",
    "mm/1ª hora": "mm/h",
    "mM": "mmol/L",
    "MM": "mm",
    "µUI/mL": "u[IU]/mL",
    "μg": "ug",
    "células/mm3": "/mm3",
    "gb": None,
    "a": None,
    "mg/gb": None,
}


def test_codes_are_ucum() -> None:
    ucumvert = pytest.importorskip("ucumvert")
    parser = ucumvert.get_ucum_parser()  # made anew by each call
    for code in [*list_codes(), *filter(None, WRITTEN.values())]:
        parser.parse(code)  # an error names the code
        assert check_code(code, "units.yml") == code


def test_written_units() -> None:
    units = Units({})

    def read(text: str) -> str | None:
        found = units.pattern.match(text)
        return units.read(found[0]) if found and found.end() == len(text) else None

    assert {text: read(text) for text in WRITTEN} == WRITTEN


def test_units_of_a_user() -> None:
    finder = Finder("es", {"uds tóxicas": "[IU]", "mg": "g"})
    text = "3 uds tóxicas, 4 UDS TÓXICAS/ml y 5 mg"
    assert [one.unit for one in finder.find(text)] == ["[IU]", "[IU]/mL", "g"]
    assert find_measurements("5 mg", "es")[0].unit == "mg"


def test_codes_that_cannot_be_ucum() -> None:
    for code in ("", "5 mg", "mg/{a b}", "/", "1"):
        with pytest.raises(BioclinError, match=r"units.x = .*UCUM"):
            check_code(code, "units.x")


def test_conversion() -> None:
    pytest.importorskip("ucumvert")
    for text, unit, value in (
        ("13 g/dL", "g/L", 130),
        ("38,5 ºC", "[degF]", 101.3),
        ("7,2 x 10^3/µL", "10*9/L", 7.2),
        ("300 copias/ml", "{copies}/L", 300_000),
        ("5 comp", "{tablet}", 5),
        ("3 semanas", "d", 21),
        ("3 x 4 cm", "mm", (30, 40)),
    ):
        [found] = find_measurements(text, "es")
        converted = found.to(unit)
        assert converted.value == pytest.approx(value) and converted.unit == unit, text
        assert converted[5:] == found[5:], text
    [found] = find_measurements("TA 120/80", "es")
    assert found.to("kPa")[1:3] == pytest.approx((15.9987, 10.6658), abs=1e-3)


def test_conversions_that_fail() -> None:
    pytest.importorskip("ucumvert")
    for text, unit, message in (
        ("13 g/dL", "cm", "cannot be converted to cm"),
        ("13 g/dL", "foo", "'foo' is not a unit of UCUM"),
        ("5 comp", "{puff}", "count different things"),
        ("pH 7,35", "g/L", "without a unit"),
        ("12/03/2014", "d", "without a unit"),
    ):
        [found] = find_measurements(text, "es")
        with pytest.raises(BioclinError, match=message):
            found.to(unit)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from spacy_bioclin.context.measurements import convert

    monkeypatch.setitem(sys.modules, "ucumvert", None)
    convert._registry.cache_clear()
    [found] = find_measurements("13 g/dL", "es")
    with pytest.raises(BioclinError, match=r"spacy-bioclin\[units\]"):
        found.to("g/L")
    convert._registry.cache_clear()
