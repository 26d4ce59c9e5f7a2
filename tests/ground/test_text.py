"""Known strings are found however they are written, and nothing else is."""

import unicodedata

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.text import (
    FoldedText,
    drop_invisible,
    find_leaks,
    find_values,
    fold_alnum,
    fold_plain,
)

ALL_CHARS = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x30000))]
ALL_CHARS += map(chr, range(0xE0000, 0xE1000))
# Without most of the ideographs and syllables, which are letters and stay as they are.
SOME_CHARS = {*ALL_CHARS[:0x3400], *ALL_CHARS[0xF200:0x10000], *ALL_CHARS[0x1C000:0x1F000:7]}


FOUND = [
    ("García López", "la Sra. GARCIA LOPEZ acude"),
    ("García López", "García-López"),
    ("García López", "el apellido Garc\nía   López"),
    ("García", "gonza\u0301lez garci\u0301a"),
    ("12.345.678-Z", "DNI 12345678z"),
    ("913908121", "tel. 913 90 81-21."),
    ("ana@hospital.es", "ANA@HOSPITAL.ES"),
    ("Ana", "Ana acude"),
    ("Ana", "\u202aA\u00adna\u202c acude"),
    ("García López", "Gar\u200bcía\u3164\u00a0López"),
    ("12345678Z", "DNI １２３４５６７８\u2060\u2011Ｚ"),
    ("Łukasz Weiß", "LUKASZ WEISS"),
]


def test_found() -> None:
    for value, text in FOUND:
        ((start, end, kind),) = find_values([("NAME", value)], text)
        assert kind == "NAME"
        assert fold_alnum(text[start:end]) == fold_alnum(value)
        assert find_leaks([("NAME", value)], text) == ["NAME"]


NOT_FOUND = [
    ("Ana", "semana sana An a"),  # inside words, and a short word is not put together
    ("12345", "912345 y 123456"),
    ("2012", "en 2012"),  # a year tells nothing
    ("M", "M"),
    ("García López", "García y López"),
]


def test_not_found() -> None:
    assert [row for row in NOT_FOUND if find_leaks([("NAME", row[0])], row[1])] == []


def test_the_last_letter_keeps_its_accent() -> None:
    ((start, end, _),) = find_values([("NAME", "José")], "don Jose\u0301.")
    assert (start, end) == (4, 9)


def test_kinds_come_once_and_sorted() -> None:
    values = [("PHONE", "913908121"), ("NAME", "García"), ("NAME", "López")]
    assert find_leaks(values, "García López 913908121 García") == ["NAME", "PHONE"]


def test_every_default_ignorable_character_is_dropped() -> None:
    """The library regex has the property of Unicode's database, which unicodedata does not."""
    text = "".join(ALL_CHARS)
    ignorable = set(regex.findall(r"\p{Default_Ignorable_Code_Point}", text))
    dropped = {char for char in SOME_CHARS | ignorable if not fold_plain(char)}
    assert len(ignorable) > 4_000 and ignorable <= dropped
    assert {unicodedata.category(char) for char in dropped} <= {"Cc", "Cf", "Cn", "Lo", "Mn", "Me"}
    assert not any(char.isspace() or (char.isprintable() and char.isascii()) for char in dropped)


def test_every_character_of_a_category_is_one() -> None:
    for category, plain in (("Zs", " "), ("Pd", "-"), ("Mn", "")):
        chars = [char for char in ALL_CHARS if unicodedata.category(char) == category]
        assert len(chars) > 15 and {fold_plain(char) for char in chars} == {plain}


def test_every_decimal_digit_is_ascii() -> None:
    digits = [char for char in ALL_CHARS if unicodedata.category(char) == "Nd"]
    assert all(fold_plain(char) == str(unicodedata.decimal(char)) for char in digits)


def test_plain() -> None:
    assert fold_plain("Nº 5, ª, m², ½, ≠, …, 年") == "Nº 5, ª, m², ½, ≠, …, 年"
    assert fold_plain("ＤＮＩ № ５\t–\u2002ﬁn, Œ ß Łø ễ n\u0303 N° `a´") == (
        "DNI No 5 - fin, OE ss Lo e n Nº 'a'"
    )
    assert fold_plain("Gar\u00adcía, Gar\u00ad\r\ncía") == "Garcia, Gar- \ncia"


@settings(max_examples=40)
@given(st.text(st.sampled_from("aá\u0301\u200b\u00ad \u00a0ﬁß\n5５–") | st.characters()), st.data())
def test_places_lead_back_to_the_text(text: str, data: st.DataObject) -> None:
    folded = FoldedText(text)
    assert fold_plain(folded.plain) == folded.plain == fold_plain(text)
    assert len(folded.lower) == len(folded.plain)
    if not folded.plain:
        return
    start = data.draw(st.integers(0, len(folded.plain) - 1))
    end = data.draw(st.integers(start + 1, len(folded.plain)))
    place = folded.place(start, end)
    # A ligature is whole, and a soft hyphen at the end of a line is one only there.
    assert folded.plain[start:end] in fold_plain(text[place[0] : place[1] + 2])
    assert place[1] == len(text) or fold_plain(text[place[1]]) or text[place[1]] == "\u00ad"
    assert fold_plain(text[place[0]]) or text[place[0]] == "\u00ad"
    assert folded.place(0, len(folded.plain))[1] == len(text) or text.endswith("\u00ad")


def test_invisible_characters_are_part_of_what_is_found() -> None:
    text = "la Sra.\u200e Gar\u00adci\u0301a\u200b, viuda"
    ((start, end, _),) = find_values([("NAME", "García")], text)
    assert text[start:end] == "Gar\u00adci\u0301a\u200b"


def test_drop_invisible_keeps_accents() -> None:
    assert drop_invisible("\u202aGarci\u0301a\u00ad – ５º\u202c") == "García – ５º"


def test_many_different_characters_are_folded_as_each_alone() -> None:
    chars = [char for char in SOME_CHARS if len(fold_plain(char)) == 1 and fold_plain(char) != char]
    assert fold_plain("".join(chars) * 2) == "".join(map(fold_plain, chars)) * 2
