"""Hypothesis strategies of hostile input: notes, values of columns, tables, spans over a text.

The profile that tests/conftest.py loads is derandomized and has no deadline, so a test that passes
once passes always; `QUICK` is for tests whose examples take more than a few milliseconds.
benchmarks/fuzz.py draws from the same strategies with random seeds.
"""

import json
import math
from datetime import date
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

QUICK = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

# What breaks offsets, searches and line counts. No surrogates: no UTF-8 file can hold them.
ODD_WORDS = (
    "\u0301 \u0303 \u0308 e\u0301 n\u0303 \u1e9b\u0323 \u0345 \u20dd "  # combining
    "\u200b \u200c \u200d \u2060 \ufeff \u00ad \u034f \ufe0f "  # zero width
    "\u202a \u202e \u2066 \u2069 \u200e \u200f \u061c "  # direction
    "ﬁ ﬀ ﬃ ﬆ ß ẞ ĳ ŉ ǆ İ ı ſ ﷺ "  # longer or shorter when folded
    "𝐉𝐮𝐚𝐧 🏥 👨‍👩‍👧 🇪🇸 𠮷 \U0010ffff \U0001d7d9 "  # outside the first plane
    "½ ² ① Ⅷ ٣ ५ ３ 〇 ª º № "  # digits that are not, or not ASCII
    "Ω Ω K Å µ μ а е О Р "  # look alike
    "\x00 \x01 \x07 \x08 \x1b[31m \x7f \ue000 \ufdd0 \uffff \ufffd "  # controls, non-characters
    "% %s %(a)s {0} {x} \\ \\n \\u0041 $1 ${HOME} ' \" ` | ; , <b> </script> &amp; <!-- ]]> "
    "= + - @ [REDACTED] [PHI] [NOMBRE] <PERSON_1> "
)
ODD = ODD_WORDS.split(" ")
BREAKS = [" ", "  ", "\t", "\n", "\r\n", "\r", "\n\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"]
BREAKS += ["\xa0", "\u3000", "\x1c", "\x1d", "\x1e", ""]
NAMES = [
    *("Juan García Pérez", "MARÍA DE LOS ÁNGELES", "José Mª Ñíguez", "O'Neill-Smith, Anne-Marie"),
    *("Dr. Sánchez", "Dra. López-Íbor", "Mr. Lee", "van der Berg", "d'Ors", "Li", "Jean‐Luc"),
]
IDENTIFIERS = [
    *("12345678Z", "12.345.678-Z", "X1234567L", "28/12345678/40", "078-05-1120", "943 476 5919"),
    *("+34 612 345 678", "(555) 010-9999", "ana.perez@hospital.es", "https://h.es/p?id=12345"),
    *("ES91 2100 0418 4502 0005 1332", "192.168.10.12", "NHC: 0012345", "MRN# A-99812"),
]
LAYOUTS = [
    "Nombre: {name}\nDNI: {id}\nFecha de nacimiento: {date}\n\nMotivo de consulta:\n{text}\n",
    "Paciente:\t{name}\tNHC\t{id}\r\nIngreso {date}\r\n\r\n{text}\r\nFdo.: {name}\r\n",
    "INFORME DE ALTA\x0c{name} ({id}), nacido el {date}.{text}",
    "Patient: {name} | MRN: {id} | DOB: {date}\n\nHPI: {text}\n\nSigned, {name}, {date}",
    "{date}  {name}  {id}\n{text}",
    "Remitido por {name} (tel. {id}) el {date}: {text}. Vive en C/ Mayor, 3, 28013 Madrid.",
    "Mr. {name} was seen on {date}. {text} Call {id}. Lives at 12 Elm St, Boston, MA 02115.",
    "|{name}|{id}|{date}|\n|---|---|---|\n|{text}|||",
]
DATES = st.one_of(
    st.dates(date(1900, 1, 1), date(2099, 12, 31)).flatmap(
        lambda day: st.sampled_from(
            [
                day.isoformat(),
                f"{day.day}/{day.month}/{day.year}",
                f"{day.day:02}-{day.month:02}-{day.year % 100:02}",
                f"{day.day} de mayo de {day.year}",
                f"March {day.day}, {day.year}",
            ]
        )
    ),
    st.sampled_from(["31/02/2019", "0/0/0000", "29/2/1900", "99.99.9999", "mayo", "24:61", "²/3"]),
)


def odd_texts(max_size: int = 12) -> st.SearchStrategy[str]:
    """Make short strings of hostile Unicode, also empty ones."""
    characters = st.characters(codec="utf-8")
    pieces = st.one_of(
        st.sampled_from([*ODD, *BREAKS]), characters, st.text(st.sampled_from("aé1Z .,-:/@"))
    )
    return st.lists(pieces, max_size=max_size).map("".join)


@st.composite
def clinical_notes(draw: st.DrawFn) -> str:
    """Make a note with identifiers in the layouts of Spanish and English records."""
    text = draw(odd_texts(4)) + draw(
        st.sampled_from(["", "Niega fiebre.", "No chest pain.", "TA 120/80, Fc 70 lpm", "1.000 mg"])
    )
    name, id = draw(st.sampled_from(NAMES)), draw(st.sampled_from(IDENTIFIERS))
    note = draw(st.sampled_from(LAYOUTS)).format(name=name, id=id, date=draw(DATES), text=text)
    change = draw(st.sampled_from(["", "upper", "lower", "crlf", "cr", "nfd", "glued"]))
    if change in ("upper", "lower"):
        return note.upper() if change == "upper" else note.lower()
    if change == "nfd":
        import unicodedata

        return unicodedata.normalize("NFD", note)
    line_ends = {"crlf": "\r\n", "cr": "\r", "glued": ""}
    return note.replace("\n", line_ends[change]) if change in line_ends else note


def notes() -> st.SearchStrategy[str]:
    """Make notes: clinical ones, hostile ones, both joined, a long line, and the empty note."""
    parts = st.one_of(clinical_notes(), odd_texts())
    return st.one_of(
        clinical_notes(),
        odd_texts(30),
        st.lists(parts, max_size=4).map("\n".join),
        st.tuples(odd_texts(3), st.integers(1, 2000)).map(lambda pair: pair[0] * pair[1]),
        st.sampled_from(["", " ", "\n", "\r\n", "\t", "\ufeff", "\x0c", "a", "\u0301", "\u200b"]),
    )


def whole_numbers() -> st.SearchStrategy[int]:
    """Make integers, also ones that a float or 64 bits cannot hold."""
    return st.one_of(
        st.integers(), st.sampled_from([0, -1, 2**53 + 1, 2**63, 2**64, -(10**20), 10**40])
    )


def json_values() -> st.SearchStrategy[Any]:
    """Make values of JSON, with odd numbers and keys and some nesting; no NaN or infinity."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        whole_numbers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([0.1, 1e-300, 5e-324, 1.7976931348623157e308, -0.0]),
        odd_texts(4),
        DATES,
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(odd_texts(2), inner, max_size=3)
        ),
        max_leaves=5,
    )


# Numbers as people and other programs write them: no reader may write them in another way.
JSON_NUMBER_WORDS = (
    "0 -0 -0.0 1.0 1.10 1e2 1E+2 1e400 -1e400 1e-400 0.1000000000000000055511151231257827 "
    "12345678901234567890 123456789012345678901234567890.123456789 9007199254740993"
)
JSON_NUMBERS = JSON_NUMBER_WORDS.split()


def json_lines(text: str, columns: dict[str, Any]) -> str:
    """Write one line of JSON: a note and what is carried with it."""
    return json.dumps({"text": text, **columns}, ensure_ascii=False)


class Rows(NamedTuple):
    """A table: names of columns and cells, all strings, as in CSV."""

    columns: list[str]
    rows: list[list[str]]


def column_names() -> st.SearchStrategy[str]:
    """Make names of columns that nobody expects. None is empty or `id` or `text`."""
    odd = ["ID", "Text", "text ", "a b", "ñ", "n\u0303", "=1+1", "a,b", 'a"b', "a;b", "0", "None"]
    odd += ["\ufeffx", "__index_level_0__", "annotations", "entities", "deid", "text_id", "α"]
    names = st.one_of(st.sampled_from(odd), odd_texts(2))
    return names.filter(
        lambda name: name.strip() and name not in ("id", "text") and "\0" not in name
    )


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 4) -> Rows:
    """Make a table with the columns `id` and `text` and others, in any order."""
    more = draw(st.lists(column_names(), max_size=3, unique=True))
    columns = draw(st.permutations(["id", "text", *more]))
    cell = st.one_of(
        odd_texts(4), st.sampled_from(["", " ", "007", "1e5", "NA", "null", "=1+1", "1,5", '"'])
    ).map(lambda value: value.replace("\0", ""))
    rows = []
    for i in range(draw(st.integers(0, max_rows))):
        row = {name: draw(cell) for name in more}
        row |= {"id": f"{i}", "text": draw(notes()).replace("\0", "") or "x"}
        rows.append([row[name] for name in columns])
    return Rows(list(columns), rows)


def spans_over(text: str, max_size: int = 5) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Make spans within a text, empty ones and overlapping ones too.

    RETURNS (SearchStrategy[list[tuple[int, int]]]): Start and end, in characters.
    """
    offset = st.integers(0, len(text))
    span = st.tuples(offset, offset).map(lambda pair: (min(pair), max(pair)))
    return st.lists(span, max_size=max_size)


def bad_offsets(text_length: int) -> st.SearchStrategy[str]:
    """Make what a file may give as an offset and no text has: negative, huge, not a number."""
    wrong = ["-1", "99999999999", "1e9", "1.5", "²", "٣", "", " ", "nan", "0x10", "1_0", "+1"]
    return st.sampled_from([*wrong, str(text_length + 1), "9" * 5000, "\x00"])


def finite(value: Any) -> bool:
    """Tell whether a value of JSON holds no NaN or infinity."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    return all(map(finite, value)) if isinstance(value, list) else True
