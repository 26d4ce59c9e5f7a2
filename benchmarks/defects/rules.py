"""PHI that the rules do not find, and surrogates that give it away."""

import json
import unicodedata
from collections.abc import Iterable

from benchmarks.defects.case import Done, Seen, Tree, case

KEY = "0" * 64
# A line with a label, and the value that must not be in the safe note.
LABELLED = {
    "Paciente: Marta García Gil": "Marta",
    "DNI: 12345678Z": "12345678",
    "NHC: 1234567": "1234567",
    "NASS: 28 12345678 40": "12345678",
    "CIP: ABCD123456789012": "123456789012",
    "Fecha de nacimiento: 12/05/1948": "1948",
    "Edad: 54 años": "54",
    "Tel.: 961 62 24 03": "961",
    "Correo: marta.garcia@correo.es": "marta",
    "Domicilio: Calle Mayor, 5": "Mayor",
    "Médico: Dra. Casilda Nogales": "Nogales",
}
REPORTED = "\u00ad\u034f\u061c\u180e\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
REPORTED += "\u2060\u2066\u2067\u2068\u2069\ufe0f"


def mask(tree: Tree, texts: Iterable[str], *options: object) -> tuple[Done, list[str]]:
    """Mask Spanish notes with the command, and return their safe texts in order."""
    rows = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    notes = tree.write("notes.jsonl", "\n".join(map(json.dumps, rows)) + "\n")
    options = (*options, "--lang", "es") if "--lang" not in options else options
    done = tree.bioclin("deid", notes, "out.jsonl", *options, BIOCLIN_DEID_KEY=KEY)
    out = tree.folder / "out.jsonl"
    written = out.read_text("utf-8").splitlines() if out.exists() else []
    made = {row["id"]: row["text"] for row in map(json.loads, written)}
    return done, [made.get(row["id"], "") for row in rows]


def hide(line: str, char: str) -> list[str]:
    """Put a character after the label, within the label, and within the value."""
    at = line.index(":") + 1
    end = len(line) - 2
    return [line[:i] + char + line[i:] for i in (at, at - 2, end)]


def see_left(tree: Tree, pairs: list[tuple[str, str]]) -> Seen:
    """Mask notes and count those that still have their value."""
    done, safe = mask(tree, [text for text, _ in pairs])
    visible = [
        "".join(c for c in unicodedata.normalize("NFKC", text) if c.isprintable()) for text in safe
    ]
    left = sum(value in text for (_, value), text in zip(pairs, visible, strict=True))
    return Seen(done.code == 0 and not left and all(safe), f"{left} of {len(pairs)} values left")


@case(18, "An invisible character near a label or in a value does not hide PHI.")
def invisible_characters_hide_nothing(tree: Tree) -> Seen:
    return see_left(
        tree,
        [
            (text, value)
            for line, value in LABELLED.items()
            for char in REPORTED
            for text in hide(line, char)
        ],
    )


@case(18, "Fullwidth digits and letters, other dashes and blanks, and accents apart hide nothing.")
def look_alike_characters_hide_nothing(tree: Tree) -> Seen:
    def widen(text: str) -> str:
        return "".join(
            chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else "\u3000" if c == " " else c for c in text
        )

    pairs = [(widen(line), value) for line, value in LABELLED.items()]
    for blank in "\u00a0\u2007\u2009\u202f\u3000":
        pairs += [(line.replace(" ", blank), value) for line, value in LABELLED.items()]
    pairs += [(unicodedata.normalize("NFD", line), value) for line, value in LABELLED.items()]
    pairs += [
        (f"DNI: 12.345.678{dash}Z", "12.345.678") for dash in "\u2010\u2011\u2012\u2212\ufe63\uff0d"
    ]
    pairs += [
        (f"Nacida el 12{dash}05{dash}1948", "1948")
        for dash in "\u2010\u2011\u2012\u2212\ufe63\uff0d"
    ]
    return see_left(tree, pairs)
