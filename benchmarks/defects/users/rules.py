"""PHI that the rules do not find, and surrogates that give it away."""

import json
import unicodedata
from collections.abc import Collection

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


def mask(tree: Tree, texts: Collection[str], *options: object) -> tuple[Done, list[str]]:
    """Mask Spanish notes with the command, and return their safe texts in order."""
    folder = f"notes-{len(list(tree.folder.glob('notes-*')))}"
    names = [f"{i:04}.txt" for i, _ in enumerate(texts)]
    for name, text in zip(names, texts, strict=True):
        tree.write(f"{folder}/{name}", text)
    options = (*options, "--lang", "es") if "--lang" not in options else options
    done = tree.bioclin("deid", folder, f"safe-{folder}", *options, BIOCLIN_DEID_KEY=KEY)
    written = [tree.folder / f"safe-{folder}" / name for name in names]
    return done, [path.read_text("utf-8") if path.exists() else "" for path in written]


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


@case(13, "Ages are found whole, however they are written, in Spanish and English.")
def ages_are_found(tree: Tree) -> Seen:
    spanish = {
        "Mujer, 43 años, con cefalea.": "43",
        "Paciente 72 años con tos.": "72",
        "Varón 54a, HTA.": "54a",
        "Mujer de 67 a. de edad.": "67",
        "Acude, con setenta y dos años, por tos.": "setenta",
        "Mujer caucásica de 56 años.": "56",
        "García Nogales, Casilda (63 años).": "63",
        "Edad 54, sin alergias.": "54",
        "CIP SNS BBBBBBBQR648597": "648597",
    }
    english = {
        "She is a 94-year-old woman.": "year-old",
        "He is 102 y/o.": "y/o",
        "A ninety-four-year-old man.": "ninety",
        "Seen today, 45 yo.": "45 yo",
    }
    left, codes = [], []
    for lang, notes in (("es", spanish), ("en", english)):
        done, safe = mask(tree, notes, "--lang", lang)
        codes.append(done.code)
        found = zip(notes.values(), safe, strict=True)
        left += [value for value, text in found if value in text or not text]
    return Seen(not any(codes) and not left, left)


@case(13, "A duration is not an age.")
def durations_stay(tree: Tree) -> Seen:
    kept = "Dolor de 5 años de evolución. Fumadora durante 30 años. VSG 100 a la hora."
    done, safe = mask(tree, [kept])
    return Seen(done.code == 0 and safe == [kept], safe[0])


@case(12, "The notes of README's command keep no name, town, age or occupation.")
def notes_of_the_readme_are_safe(tree: Tree) -> Seen:
    source = tree.path / "assets/demo/notes/es"
    done = tree.bioclin("deid", source, "safe", "--lang", "es")
    text = "".join(path.read_text("utf-8") for path in sorted(tree.folder.glob("safe/**/*.txt")))
    values = ("Inés", "99214", "Torremuelas", "63 años", "camionero", "maestra")
    left = [value for value in values if value in text]
    return Seen(done.code == 0 and bool(text) and not left, left)


@case(12, "Names, towns and occupations in running text are found where a phrase shows them.")
def running_text_is_masked(tree: Tree) -> Seen:
    notes = {
        "Te remito a Obdulia Iturbide Mazuelas, de 36 a.": "Iturbide",
        "ALMAZARRO ESCOBEDO, ELADIO": "ALMAZARRO",
        "La familia (Inés) deja el teléfono.": "Inés",
        "Vive en Torremuelas con su hijo.": "Torremuelas",
        "C/ Batanes 95, 99214 Torremuelas.": "Torremuelas",
        "Trabaja como maestra.": "maestra",
        "Varón de 63 años, camionero.": "camionero",
        "De profesión electricista, jubilado.": "electricista",
    }
    done, safe = mask(tree, notes)
    left = [
        value for value, text in zip(notes.values(), safe, strict=True) if value in text or not text
    ]
    return Seen(done.code == 0 and not left, left)


SURROGATE = """
import json, sys
from spacy_bioclin.deid.surrogates.by_label import make_surrogate
from spacy_bioclin.deid.surrogates.context import SurrogateContext
from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.surrogates.name_lists import load_names
from spacy_bioclin.text import fold_alnum
known = load_names("es").known
contexts = [
    SurrogateContext(Secret(bytes([i] * 16), "1"), "es") for i in range(int(sys.argv[2]))
]
made = [make_surrogate(sys.argv[1], "patient_name", context) for context in contexts]
kinds = [sorted(known.get(fold_alnum(name.split()[0]), ["unknown"])) for name in made]
print(json.dumps([made, kinds]))
"""


UNACCENTED = {
    *("Fernandez", "Garcia", "Lopez", "Martinez", "Perez", "Gonzalez", "Gomez", "Sanchez"),
    *("Rodriguez", "Dominguez", "Benitez", "Menendez", "Alvarez", "Diaz"),
}


@case(14, "The surrogate of an unknown first name is a first name of its gender.")
def unknown_first_name_gets_a_first_name(tree: Tree) -> Seen:
    done = tree.python("-c", SURROGATE, "Casilda García Nogales", 8)
    made, kinds = json.loads(done.out.splitlines()[-1])
    return Seen(all(kind == ["female"] for kind in kinds), made[:3])


@case(14, "Surrogates of surnames are spelt with their accents.")
def surnames_have_accents(tree: Tree) -> Seen:
    done = tree.python("-c", SURROGATE, "Ana García Nogales", 250)
    made, _ = json.loads(done.out.splitlines()[-1])
    words = {word for name in made for word in name.split()}
    plain = words & UNACCENTED
    return Seen(not plain, sorted(plain))


STAFF = """
from spacy import blank; from spacy_bioclin.deid import make_pipeline
nlp = make_pipeline(blank("es"))
doc = nlp.make_doc("Revisión con la Dra. Remedios Dueñas.")
doc.spans["phi"] = [doc.char_span(21, 36, label="NAME")]
print([span.label for span in nlp(doc)._.deid.spans])
"""


@case(14, "A name that a tagger calls NAME is staff beside a title.")
def doctor_is_staff(tree: Tree) -> Seen:
    done = tree.python("-c", STAFF)
    labels = done.out.strip().splitlines()[-1] if done.out.strip() else done.text[-150:]
    return Seen(labels == "['NOMBRE_PERSONAL_SANITARIO']", labels)
