"""Dates move by one offset and keep their written form."""

from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.dates import MONTHS, ROMANS, SHORT_MONTHS, find_day_first
from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.surrogates.context import DateShift, SurrogateContext
from spacy_bioclin.deid.surrogates.dates import (
    parse_date,
    shift_dates,
    shift_days,
)

KEY = b"0123456789abcdef"
DAYS = st.dates(date(1936, 1, 1), date(2029, 12, 31))
OFFSETS = st.builds(shift_days, st.builds(Secret, st.just(KEY), st.text(max_size=5)), st.booleans())
# 2018-03-12 was a Monday; 400 days later it is Tuesday, 2019-04-16.
FORMS = {
    "es": {
        "12/03/2018": "16/04/2019",
        "12-3-18": "16-4-19",
        "2018-03-12": "2019-04-16",
        "12.03.2018": "16.04.2019",
        "20180312": "20190416",
        "12 de marzo de 2018": "16 de abril de 2019",
        "12 DE MARZO DEL 2018": "16 DE ABRIL DEL 2019",
        "12 marzo": "16 abril",
        "Marzo de 2018": "Abril de 2019",
        "marzo del año 2018": "abril del año 2019",
        "mar-18": "abr-19",
        "Marzo 18": "Abril 19",
        "12/03": "16/04",
        "03/2018": "04/2019",
        "2018": "2019",
        "año 2018": "año 2019",
        "12 de marzo del 2.018": "16 de abril del 2.019",
        "Marzo 2.018": "Abril 2.019",
        "'18": "'19",
        "mes de marzo": "mes de abril",
        "12MAR2018": "16ABR2019",
        "12-III-2018": "16-IV-2019",
        "iii/18": "iv/19",
        "lunes 12 de marzo de 2018": "martes 16 de abril de 2019",
        "Lun. 12/03/2018 14:30 h": "Mar. 16/04/2019 14:30 h",
        "2018-03-12T14:30:00Z": "2019-04-16T14:30:00Z",
        "del 12 al 15 de marzo de 2018": "del 16 al 19 de abril de 2019",
        "28-3 de marzo de 2018": "4-7 de abril de 2019",
        "12 de marzo al 3 de abril de 2018": "16 de abril al 8 de mayo de 2019",
        "marzo y abril de 2018": "abril y mayo de 2019",
        "2018-2020": "2019-2021",
        "1º de mayo de 2018": "5 de junio de 2019",
        "12 de\nmarzo  de 2018": "16 de\nabril  de 2019",
        "20/11//2018": "25/12//2019",
        "03/25/2018": "04/29/2019",
    },
    "en": {
        "03/12/2018": "04/16/2019",
        "25/03/2018": "29/04/2019",
        "3/12": "4/16",
        "March 12, 2018": "April 16, 2019",
        "MAR 12, 2018": "APR 16, 2019",
        "Monday, March 12th, 2018": "Tuesday, April 16th, 2019",
        "April 27th 2018": "June 1st 2019",
        "the 12th of March, 2018": "the 16th of April, 2019",
        "12-May-18": "16-Jun-19",
        "May 2018": "June 2019",
        "June 04": "July 09",
        "Jan-04": "Feb-05",
        "March 12-15, 2018": "April 16-19, 2019",
        "fall of 2018": "fall of 2019",
    },
}


def written_forms(day: date, lang: str) -> list[str]:
    """Write a date in the forms that notes have it in.

    lang (str): "en" puts the month first in figures; else the day.
    RETURNS (list[str]): About thirty forms, without doubles, the longest first.
    """
    language = "en" if lang == "en" else "es"
    name, short = MONTHS[language][day.month - 1], SHORT_MONTHS[language][day.month - 1]
    year, yy = f"{day.year:04d}", f"{day.year % 100:02d}"
    padded, bare = (f"{day.day:02d}", f"{day.month:02d}"), (str(day.day), str(day.month))
    forms = [f"{year}-{padded[1]}-{padded[0]}", f"{year}/{padded[1]}/{padded[0]}"]
    forms.append(year + padded[1] + padded[0])
    for d, m in (padded, bare):
        first, second = (m, d) if language == "en" else (d, m)
        forms += [f"{first}{s}{second}{s}{y}" for s in "/-." for y in (year, yy)]
        forms += [f"{d}-{short}-{year}", f"{d}-{short}-{yy}", f"{d} {short} {year}"]
        forms += [f"{d}-{ROMANS[day.month - 1]}-{year}", f"{d}/{ROMANS[day.month - 1]}/{year}"]
        if language == "en":
            forms += [f"{d} {name} {year}", f"{name} {d}, {year}", f"{short} {d}, {year}"]
            suffix = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}.get(
                day.day, "th"
            )
            forms += [f"{name} {d}{suffix}, {year}", f"{d}{suffix} of {name} {year}"]
        else:
            forms += [f"{d} de {name} de {year}", f"{d} de {name} del {year}", f"{d} {name} {year}"]
            forms += [f"{d}-{name}-{year}"]
    return sorted(dict.fromkeys(forms), key=len, reverse=True)


def shift(text: str, days: int, lang: str) -> str | None:
    context = SurrogateContext(Secret(KEY, "1"), lang, dates=DateShift(days))
    return shift_dates(text, context)


def test_one_note_has_one_order_of_day_and_month() -> None:
    assert find_day_first(["28/02/2021", "05/03/2021"]) is True
    assert find_day_first(["02/28/2021", "05/03/2021"]) is False
    assert find_day_first(["02/28/2021", "28/02/2021"]) is None
    assert find_day_first(["05/03/2021", "2021-02-28"]) is None
    assert find_day_first(["05/03/2021", "91-12-34", "45/12/2021"]) is None  # no days


def test_the_order_of_the_note_counts() -> None:
    for day_first, moved in ((None, "06/12/2022"), (False, "06/12/2022"), (True, "09/04/2022")):
        dates = DateShift(400, day_first=day_first)
        context = SurrogateContext(Secret(KEY, "1"), "en", dates=dates)
        assert shift_dates("05/03/2021" if day_first else "05/08/2021", context) == moved


def test_written_form_is_kept() -> None:
    for lang, forms in FORMS.items():
        assert {text: shift(text, 400, lang) for text in forms} == forms


def test_what_is_no_date_has_no_surrogate() -> None:
    for text in (
        *("", "30/02/2018", "31 de abril", "45/03/2018", "3 meses", "tres de marzo de 2018"),
        *("10710/2015", "12/03/2018 Ana", "963 862 700", "12 de marzo " * 40, "29/02/2018"),
    ):
        assert shift(text, 400, "es") is None and parse_date(text, "es") is None, text


def test_weekday_alone_stays_with_whole_weeks_and_so_has_no_surrogate() -> None:
    assert shift("lunes", 400, "es") == "martes"
    assert shift("lunes", 399, "es") is None


@settings(max_examples=20)
@given(DAYS, DAYS, OFFSETS, st.sampled_from(["es", "en"]))
def test_intervals_are_kept_in_every_written_form(
    first: date, second: date, offset: int, lang: str
) -> None:
    for one, two in zip(written_forms(first, lang), written_forms(second, lang), strict=False):
        moved = []
        for text in (one, two):
            shifted = shift(text, offset, lang)
            assert shifted is not None and shifted != text
            read = parse_date(shifted, lang)
            assert read is not None and None not in (read.year, read.month, read.day)
            moved.append(read)
        days = [date(read.year or 0, read.month or 0, read.day or 0) for read in moved]
        expected = first + timedelta(offset), second + timedelta(offset)
        # Two digits say the year of a hundred only.
        for day, want in zip(days, expected, strict=True):
            assert (day.day, day.month, day.year % 100) == (want.day, want.month, want.year % 100)
        if all(
            str(day.year) in form for day, form in zip((first, second), (one, two), strict=True)
        ):
            assert days[1] - days[0] == second - first


@settings(max_examples=20)
@given(DAYS, st.sampled_from(["es", "en"]))
def test_every_written_form_is_read_as_the_date(day: date, lang: str) -> None:
    forms = written_forms(day, lang)
    assert len(forms) == len(set(forms)) >= 18
    for form in forms:
        read = parse_date(form, lang)
        assert read is not None and (read.month, read.day) == (day.month, day.day), form
        assert read.year is not None and read.year % 100 == day.year % 100


@settings(max_examples=20)
@given(DAYS, OFFSETS, st.sampled_from(["es", "en"]))
def test_partial_dates_move_too(day: date, offset: int, lang: str) -> None:
    months = {"es": "enero febrero marzo abril mayo junio julio", "en": "January March May July"}
    name = months[lang].split()[day.month % 4]
    for text in (str(day.year), f"{name} {day.year}", name, f"{day.day % 28 + 1} {name}"):
        moved = shift(text, offset, lang)
        assert moved is not None and moved != text
        assert [part.isdigit() for part in moved.split()] == [p.isdigit() for p in text.split()]


@settings(max_examples=40)
@given(st.text(max_size=8), st.booleans())
def test_offset_is_secret_constant_and_far_from_whole_years(patient: str, weeks: bool) -> None:
    days = shift_days(Secret(KEY, patient), weeks)
    assert days == shift_days(Secret(KEY, patient), weeks)
    assert 190 <= abs(days) <= 1460
    assert 31 < abs(days) % 365.25 < 334.25
    assert not weeks or days % 7 == 0


def test_offsets_differ_between_patients_and_keys() -> None:
    offsets = {shift_days(Secret(KEY, str(i)), False) for i in range(200)}
    assert len(offsets) > 150
    assert min(offsets) < 0 < max(offsets)
    assert shift_days(Secret(KEY, "1"), False) != shift_days(Secret(KEY[::-1], "1"), False)


@settings(max_examples=20)
@given(DAYS, st.text(max_size=5))
def test_weekdays_stay_where_they_are_wanted(day: date, patient: str) -> None:
    names = ["lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"]
    offset = shift_days(Secret(KEY, patient), True)
    for text in (
        f"{names[day.weekday()]} {day:%d/%m/%Y}",
        f"{day:%d/%m/%Y} ({names[day.weekday()]})",
    ):
        moved = shift(text, offset, "es") or ""
        assert f"{day + timedelta(offset):%d/%m/%Y}" in moved
        assert names[(day + timedelta(offset)).weekday()] == names[day.weekday()]
        assert names[day.weekday()] in moved
