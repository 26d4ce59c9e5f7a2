"""Abbreviations: definitions in both orders and languages, none invented, linear time."""

import pytest

from spacy_bioclin.tokenization.defined_abbreviations import (
    Abbreviation,
    expand_abbreviations,
    find_abbreviations,
    find_short_forms,
)
from tests.hostile.growth.measure import MAX_CLOCK_RATIO, Subject, time_growth

# text -> "short = long" for each definition
FOUND = {
    "Hipertensión arterial (HTA) en tratamiento.": "HTA = Hipertensión arterial",
    "virus de la inmunodeficiencia humana (VIH)": "VIH = virus de la inmunodeficiencia humana",
    "VIH (virus de la inmunodeficiencia humana)": "VIH = virus de la inmunodeficiencia humana",
    "Se realiza una punción con aguja fina (PAAF).": "PAAF = punción con aguja fina",
    "Carcinoma de mama; metástasis en mama (MM).": "MM = metástasis en mama",
    "con un ácido úrico (AU) alto": "AU = ácido úrico",
    "vuelve de Estados Unidos (EE. UU.) con fiebre": "EE. UU. = Estados Unidos",
    "dolor en miembros inferiores (MMII)": "MMII = miembros inferiores",
    "tomografía por emisión de positrones (PET)": "PET = tomografía por emisión de positrones",
    "inhibidor tirosina quinasa (ITK)": "ITK = inhibidor tirosina quinasa",
    "interferón alfa (IFN-α)": "IFN-α = interferón alfa",
    "EGFR (del inglés epidermal growth factor receptor)": "EGFR = epidermal growth factor receptor",
    "TVP (trombosis venosa profunda, sin TEP)": "TVP = trombosis venosa profunda",
    "trombosis venosa profunda (TVP; DVT)": "TVP = trombosis venosa profunda",
    "quimioterapia (QT) y radioterapia (RT)": "QT = quimioterapia, RT = radioterapia",
    "patients with Parkinson's disease (PD)": "PD = Parkinson's disease",
    "odds ratios (ORs) were": "ORs = odds ratios",
    "acetylsalicylic acid [ASA]": "ASA = acetylsalicylic acid",
    "hepatic (prostate-specific antigen (PSA)) was": "PSA = prostate-specific antigen",
    "converting enzyme (CE) inhibitor (CEI)": (
        "CE = converting enzyme, CEI = converting enzyme (CE) inhibitor"
    ),
    "heparin-induced\nthrombocytopenia (HIT)": "HIT = heparin-induced\nthrombocytopenia",
    "5-fluorouracil (5-FU)": "5-FU = 5-fluorouracil",
    "por hibridación in situ fluorescente (FISH)": "FISH = hibridación in situ fluorescente",
    "inhibidor tirosin-cinasa (ITK)": "ITK = inhibidor tirosin-cinasa",
    "GFAP (proteína ácida fibrilar glial)": "GFAP = proteína ácida fibrilar glial",
    "RE (receptores de estrógenos) 3+": "RE = receptores de estrógenos",
    "free radical (FR) production": "FR = free radical",
    "resonancia magnética cerebral (RM)": "RM = resonancia magnética",
    "ventrículo izquierdo (VI)": "VI = ventrículo izquierdo",
}
NONE = [
    "",
    "RM (magnetic resonance, MR)",
    "adenocarcinoma (T2N0M0) de colon",
    "estadio avanzado (IV) y grado (II)",
    "ingresa (ayer) y tose (poco)",
    "Tumor de mama. (TM)",  # the long form ended with the sentence
    "tumor\n\nmaligno (TM)",
    "dosis única (5 mg/kg)",
    "At normal [Na]o and N(G)-nitro",
    "fracción medida (FEVI)",
    "PET (PET)",
    "inmunoglobulina IV (IVIG)",
    "resección en noviembre de 2017 (pT3, N1)",
    "cáncer (de mama) HTA",
    "(HTA)",
    ") (HTA",
]


def test_definitions() -> None:
    found = {
        text: ", ".join(
            f"{text[slice(*a.short)]} = {text[slice(*a.long)]}" for a in find_abbreviations(text)
        )
        for text in [*FOUND, *NONE]
    }
    wanted = FOUND | dict.fromkeys(NONE, "")
    assert {text: said for text, said in found.items() if said != wanted[text]} == {}


def test_offsets_count_characters_of_the_text() -> None:
    text = "İ🙂 cafe\u0301 — hipertensión\tarterial (HTA)"
    start = text.index("hiper")
    short = text.index("HTA")
    expected = [Abbreviation((short, short + 3), (start, text.index(" (HTA")))]
    assert find_abbreviations(text) == expected


def test_expansion_replaces_whole_words() -> None:
    definitions = {"CDI": "carcinoma ductal infiltrante", "PD": "Parkinson disease", "I": "yodo"}
    assert expand_abbreviations("metástasis de CDI", definitions) == (
        "metástasis de carcinoma ductal infiltrante"
    )
    assert expand_abbreviations("PDs", definitions) == "Parkinson disease"
    assert expand_abbreviations("CDIS, cdi, PDX", definitions) == "CDIS, cdi, PDX"
    assert expand_abbreviations("PD-CDI", definitions) == (
        "Parkinson disease-carcinoma ductal infiltrante"
    )
    assert expand_abbreviations("", definitions) == ""
    assert expand_abbreviations("PD", {}) == "PD"


def test_expansion_prefers_the_longest_and_is_not_repeated() -> None:
    definitions = {"TC": "tomografía computarizada", "TC-TAP": "TC toracoabdominopélvica"}
    assert expand_abbreviations("TC-TAP y TC", definitions) == (
        "TC toracoabdominopélvica y tomografía computarizada"
    )


def test_a_short_form_behind_its_long_form_is_left_out() -> None:
    definitions = {"PD": "Parkinson disease", "RT": "radioterapia"}
    assert expand_abbreviations("parkinson disease (PD) onset", definitions) == (
        "parkinson disease onset"
    )
    assert expand_abbreviations("tratamiento (RT)", definitions) == "tratamiento (radioterapia)"


def test_short_forms_are_no_patterns() -> None:
    assert expand_abbreviations("A.B y AxB", {"A.B": "uno", "(": "dos"}) == "uno y AxB"


@pytest.mark.full
def test_any_text_takes_linear_time() -> None:
    pieces = ["(", ")", "a", "(a", "AB (", "(AB) ", "a b (AB)", "VI (virus imp) ", "[("]
    wrong = []
    for piece in [*pieces, "de ", "D (", "; "]:
        subject = Subject(
            lambda n, piece=piece: piece * n + " (ABCDEFGHIJ)", find_abbreviations, 20
        )
        _, ratios = time_growth(subject)
        wrong += [(piece, ratios)] * (ratios[-1] >= MAX_CLOCK_RATIO)
    assert not wrong


def test_every_place_of_a_short_form_is_found() -> None:
    text = "Virus de la inmunodeficiencia humana (VIH). VIH positivo, VIHs y VIHA; vih."
    places = find_short_forms(text, ["VIH", "SIDA"])
    assert [(text[slice(*place)], place[0]) for place in places] == [
        ("VIH", 38),
        ("VIH", 44),
        ("VIH", 58),
    ]
    assert find_short_forms(text, []) == []
