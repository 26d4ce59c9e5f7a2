"""Eponyms and drugs leave the PHI only where they clearly are none."""

import srsly

from spacy_bioclin.deid.detect.allow_list import (
    ALLOW_LIST,
    AllowList,
    load_allow_list,
    usual_names,
)
from spacy_bioclin.text import fold_alnum
from tests.hostile.growth.measure import is_linear

# The span stands between brackets.
ALLOWED = [
    "Antecedentes de [Parkinson] y HTA.",
    "Padre con [Alzheimer].",
    "enfermedad de [Wilson]",
    "Enfermedad de [Crohn] ileal",
    "ENFERMEDAD DE [PARKINSON].",
    "[enfermedad de Crohn]",
    "demencia por cuerpos de [Lewy]",
    "Se perfunde [Ringer] lactato",
    "signos de Kernig y [Murphy] negativos",
    "signos de [Murphy] y Blumberg",
    "[Murphy] positivo, Blumberg negativo",
    "escala de coma de [Glasgow]",
    "[Glasgow] 15/15 a su llegada",
    "[Glasgow]: 15",
    "[Gleason] 3+4",
    "síndrome de [Guillain-Barré]",
    "síndrome de [Stevens-Johnson]",
    "síndrome de Wolff-[Parkinson]-White",
    "clasificación modificada de [Marsh]",
    "estadio IIB de [Ann Arbor]",
    "sonda de [Foley]",
    "tinción de [Gram]",
    "aguja de [Kirschner]",
    "posición de [Trendelenburg]",
    "Eco [Doppler] normal",
    "síndrome de [Pepperstein]",
    "[Graves]' disease",
    "[Parkinson]'s disease",
    "[Down] syndrome",
    "[Wilson] disease",
    "Padre: [Parkinson].",
    "[Foley] catheter in place",
    "[Glasgow] coma scale 14",
    "Probable [Crohn].",
    "tratamiento con [Yasmin] diario",
    "[Diane] 35 mg",
    "baile de [San Vito]",
    "encefalitis de [San Luis]",
    "toma [Sintrom] y Adiro",
]
REFUSED = [
    "Dr. [Parkinson]",
    "Dra. [Crohn]",
    "Fdo.: [Wilson]",
    "[María Crohn] acude",
    "María [Crohn] acude",
    "El paciente María [Crohn]",
    "[Parkinson], María",
    "[Crohn], J.",
    "J. [Crohn]",
    "Apellidos: [Wilson].",
    "Nombre: [Alzheimer]",
    "Remitido por: Juan [Kocher]",
    "Acude [Wilson] a consulta",
    "Vive en [Glasgow] desde 2010",
    "natural de [Toronto]",
    "enfermedad del hijo de [Wilson]",
    "enfermedad tratada por [Wilson]",
    "Hospital de [Santa Lucía]",
    "Hospital [Trendelenburg]",
    "[Santa Lucía]",
    "calle [Parkinson] 5",
    "[Parkinson] Street",
    "[Wilson], MD",
    "Wilson, [Foley] M.",
    "síndrome de [García]",
    "síndrome de [Parkinson] María",
    "test de [María]",
    "[Carmen] toma su medicación con leche",
    "Atendida por [Candida]",
    "[Parkinson 3]",
    "[Yasmin] acude sola",
    "Mr. [Hodgkin] was seen",
    "Firmado: [Cushing]",
    "su hija, [Alport], acude",
    "lives in [Lyme], CT",
]


def span(marked: str) -> tuple[str, int, int]:
    before, rest = marked.split("[")
    body, after = rest.split("]")
    return before + body + after, len(before), len(before) + len(body)


def test_what_is_allowed_and_what_is_refused() -> None:
    covers = load_allow_list("es").covers
    wrong = [marked for marked in ALLOWED if not covers(*span(marked))]
    wrong += [marked for marked in REFUSED if covers(*span(marked))]
    assert not wrong, wrong


def test_data_is_large_and_each_ambiguous_entry_is_listed() -> None:
    data = srsly.read_yaml(ALLOW_LIST)
    eponyms = {fold_alnum(name) for names in data["eponyms"].values() for name in names}
    assert len(eponyms) >= 350
    listed = eponyms | {fold_alnum(name) for name in data["drugs"]}
    assert not {fold_alnum(name) for name in data["also_names"]} - listed


def test_usual_names_need_evidence() -> None:
    """What Faker calls a name and we list is marked, but for these."""
    data = srsly.read_yaml(ALLOW_LIST)
    marked = {fold_alnum(name) for name in data["also_names"]}
    alone = {"".join(key) for key in load_allow_list("es").entries if len(key) == 1} - marked
    assert alone & usual_names() <= {"parkinson", "foley"}


def test_ordinary_words_are_of_a_language() -> None:
    assert load_allow_list("es").is_ordinary("Dolores")
    assert not load_allow_list("es").is_ordinary("Grace")
    assert load_allow_list("en").is_ordinary("Grace")
    assert AllowList("fr").is_ordinary("Grace") and AllowList("fr").is_ordinary("Dolores")
    assert not load_allow_list("es").is_ordinary("García")


def test_accents_may_be_decomposed() -> None:
    assert load_allow_list("es").covers("síndrome de Sjögren".replace("ö", "o\u0308"), 12, 20)


def test_context_does_not_cost_more_in_a_long_text() -> None:
    allow = load_allow_list("es")

    def look_at_all(text: str) -> None:
        for start in range(0, len(text), 6):
            allow.covers(text, start, start + 5)

    assert is_linear(look_at_all, "Crohn ", 8_000)
