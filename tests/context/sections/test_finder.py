"""Headings in texts, without spaCy."""

import re
import unicodedata
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.context.sections import finder
from spacy_bioclin.context.sections.finder import find_headings, find_sections
from spacy_bioclin.context.sections.rules import (
    SectionRules,
    make_rules,
    read_categories,
    read_titles,
)


@cache
def rules_of(lang: str) -> SectionRules:
    return make_rules((lang,), {})


def found(text: str, lang: str = "es") -> list[tuple[str, str]]:
    """Category and title of each section."""
    sections = find_sections(text, rules_of(lang))
    return [(section.category, text[section.start : section.title_end]) for section in sections]


def bodies(text: str, lang: str = "es") -> list[str]:
    """What follows each title."""
    return [
        text[section.title_end : section.end] for section in find_sections(text, rules_of(lang))
    ]


def check(lang: str, cases: list[tuple[str, str, str | None]]) -> None:
    """Compare the only heading of each text; a category of None is not looked at."""
    wrong = []
    for text, title, category in cases:
        shown = [(kind if category else None, name) for kind, name in found(text, lang)]
        if shown != [(category, title)]:
            wrong.append((text, shown))
    assert not wrong, wrong


def test_spanish_headings() -> None:
    cases: list[tuple[str, str, str | None]] = [
        ("ANTECEDENTES PERSONALES\nHTA", "ANTECEDENTES PERSONALES", "past_history"),
        ("Antecedentes personales: HTA", "Antecedentes personales", "past_history"),
        ("1.- ANTECEDENTES: HTA", "ANTECEDENTES", "past_history"),
        ("2) EF: normal", "EF", "physical_exam"),
        ("3.1. Evolución clínica: buena", "Evolución clínica", "evolution"),
        ("IV. JUICIO CLINICO: EPOC", "JUICIO CLINICO", "diagnosis"),
        ("a) Plan: alta", "Plan", "plan"),
        ("- Tratamiento: reposo", "Tratamiento", "treatment"),
        ("• Motivo de consulta: tos", "Motivo de consulta", "chief_complaint"),
        ("[EVOLUCION] buena", "EVOLUCION", "evolution"),
        ("**Alergias** no", "Alergias", "allergies"),
        ("## Exploración física\nnormal", "Exploración física", "physical_exam"),
        ("exploracion fisica: normal", "exploracion fisica", "physical_exam"),
        (
            "Exploracio\u0301n fi\u0301sica: normal",
            "Exploracio\u0301n fi\u0301sica",
            "physical_exam",
        ),
        ("Exploración\u00a0física: normal", "Exploración\u00a0física", "physical_exam"),
        ("Enfermedad actual.- Varón de 50 años", "Enfermedad actual", "present_illness"),
        ("Enfermedad actual. Varón de 50 años", "Enfermedad actual", "present_illness"),
        ("Enfermedad actual - Varón", "Enfermedad actual", "present_illness"),
        ("ENFERMEDAD ACTUAL Varón de 50 años", "ENFERMEDAD ACTUAL", "present_illness"),
        ("A.P.: HTA", "A.P", "past_history"),
        ("E.F.\nnormal", "E.F", "physical_exam"),
        ("I.Dx: neumonía", "I.Dx", "diagnosis"),
        ("TTO. AL ALTA:\nomeprazol", "TTO. AL ALTA", "discharge_treatment"),
        ("Antecedentes personales y familiares: no", "Antecedentes personales y familiares", None),
        ("ANTECEDENTES FAMILIARES/PERSONALES: no", "ANTECEDENTES FAMILIARES/PERSONALES", None),
        (
            "Antecedentes familiares y antecedentes personales: HTA",
            "Antecedentes familiares y antecedentes personales",
            "past_history",
        ),
        ("EXPLORACIÓN Y TRATAMIENTO\nnormal", "EXPLORACIÓN Y TRATAMIENTO", "physical_exam"),
        ("Tratamiento habitual (02/08/14): no", "Tratamiento habitual (02/08/14)", None),
        ("Tratamiento de la úlcera: cura", "Tratamiento de la úlcera", "treatment"),
        ("AF\tmadre con HTA", "AF", "family_history"),
        ("Alergias\n=======\nno", "Alergias", "allergies"),
    ]
    check("es", cases)


def test_english_headings() -> None:
    cases: list[tuple[str, str, str | None]] = [
        ("Past medical and surgical history: none", "Past medical and surgical history", None),
        ("PAST MEDICAL/SURGICAL HISTORY\nnone", "PAST MEDICAL/SURGICAL HISTORY", "past_history"),
        ("A&P: rest", "A&P", "assessment_and_plan"),
        ("A/P: rest", "A/P", "assessment_and_plan"),
        ("HPI: 45 yo with cough", "HPI", "present_illness"),
        ("H.P.I.: cough", "H.P.I", "present_illness"),
        ("PMHx - asthma", "PMHx", "past_history"),
        ("ROS negative for fever", "ROS", "review_of_systems"),
        ("RESULTS The scan was normal", "RESULTS", "tests"),
        ("Physical Exam on Discharge\nnormal", "Physical Exam on Discharge", "physical_exam"),
        ("OB/GYN History: G2P1", "OB/GYN History", "gynecologic_history"),
        ("Discharge medications:\naspirin", "Discharge medications", "discharge_treatment"),
        ("Labs: normal", "Labs", "laboratory"),
    ]
    check("en", cases)


def test_no_heading() -> None:
    cases = [
        ("En la exploración física se aprecia dolor.", "es"),
        ("Durante la exploración física: dolor", "es"),
        ("Presenta como antecedentes personales: HTA", "es"),
        ("Se inicia tratamiento con omeprazol.", "es"),
        ("Tratamiento con omeprazol desde ayer", "es"),
        ("Evolución favorable.", "es"),
        ("Plan renove para la consulta", "es"),
        ("Sigue el\ntratamiento\npautado", "es"),
        ("Consulta por ID y EA", "es"),
        ("ap hta y dm", "es"),
        ("SE REALIZA EXPLORACION FISICA: NORMAL", "es"),
        ("TRATAMIENTO CON OMEPRAZOL DESDE AYER", "es"),
        ("Se pide Rx de pelvis AP: sin hallazgos", "es"),
        ("Rítmico. AP: MVC sin ruidos", "es"),
        ("A.P : murmullo vesicular conservado", "es"),
        ("P: 80 lpm", "es"),
        ("Family history of cancer was denied.", "en"),
        ("There is a family history of cancer: mother", "en"),
        ("See the history of present illness.", "en"),
        ("Plan to discharge tomorrow", "en"),
        ("We discussed the Plan: rest", "en"),
        ("P: 80 bpm", "en"),
        ("Health Plan: private", "en"),
    ]
    wrong = [(text, shown) for text, lang in cases if (shown := found(text, lang))]
    assert not wrong, wrong


def test_inline_headings() -> None:
    text = "AP: HTA, DM. EF: TA 120/80. Consciente JC: neumonía. Plan: alta."
    assert [title for _, title in found(text)] == ["AP", "EF", "JC", "Plan"]
    assert bodies(text)[:2] == [": HTA, DM.", ": TA 120/80. Consciente"]
    text = "No allergies PMH: asthma FH: nil SH: lives alone Imp: viral Plan: 1. Rest"
    assert [title for _, title in found(text, "en")] == ["PMH", "FH", "SH", "Imp", "Plan"]


def test_sections_cover_the_text_from_the_first_heading_on() -> None:
    text = "Informe.\r\n\r\n1. AP:\r\n HTA\r\n\r\n2. EF: normal \r\n"
    assert [text[s.start : s.end] for s in find_sections(text, rules_of("es"))] == [
        "AP:\r\n HTA",
        "EF: normal",
    ]
    assert find_sections("", rules_of("es")) == find_sections("Sin nada", rules_of("es")) == []


def test_numbers_belong_to_no_section() -> None:
    text = "1.- AP:\nHTA\n2.- EF:\nnormal"
    assert bodies(text) == [":\nHTA", ":\nnormal"]


def test_soap_letters_count_only_together() -> None:
    assert found("S: cough\nP: 80") == []
    text = "S: cough\nO: no fever\nA: viral\nP: rest"
    categories = ["subjective", "objective", "assessment", "plan"]
    assert [category for category, _ in found(text, "en")] == categories


def test_unknown_headings_end_a_section() -> None:
    text = "AP:\nHTA\nUNIDAD DE LINFEDEMA:\nsesiones\nCosas varias:\nmás"
    assert found(text) == [("past_history", "AP"), ("other", "UNIDAD DE LINFEDEMA")]
    # ... but a part does not.
    assert found("EF:\nABDOMEN:\nblando\nTORAX:\nnormal") == [("physical_exam", "EF")]
    assert found("UNO DOS TRES CUATRO CINCO SEIS SIETE OCHO NUEVE:\nno") == []


def test_parts_open_a_section_after_the_history() -> None:
    text = "AP: HTA. Abdomen: blando. EEII: sin edemas."
    assert found(text) == [("past_history", "AP"), ("physical_exam", "Abdomen")]
    assert found("Ecografía: normal. Abdomen: blando.") == [("imaging", "Ecografía")]
    text = "HPI: cough. Respiratory: no dyspnea. Neurological: no headache."
    assert found(text, "en") == [("present_illness", "HPI"), ("review_of_systems", "Respiratory")]
    assert found("PMH: asthma. Cardiovascular: angina", "en") == [("past_history", "PMH")]


def test_titles_of_a_user_go_before_ours() -> None:
    added = read_titles(
        {
            "home_medication": [{"title": "ID", "unless_followed_by": "\\s*\\d"}],
            "pain": {"new": True, "titles": ["Unidad del dolor"], "loinc": "38212-7"},
        },
        where="test",
    )
    rules = make_rules(("es",), added)
    headings = find_headings("ID: insulina\nUnidad del dolor: EVA 7\nID: 77", rules)
    assert [heading.category for heading in headings] == ["home_medication", "pain"]
    assert rules.loinc["pain"] == "38212-7" and "pain" not in read_categories()


def test_both_languages() -> None:
    rules = make_rules(("es", "en"), {})
    headings = find_headings("AP: HTA\nPMH: asthma\nPlan: rest", rules)
    assert [h.category for h in headings] == ["past_history", "past_history", "plan"]


HOSTILE = [
    "\n",
    "\r",
    ":",
    "A",
    "ABCD ",
    "ABCD EFGH\n",
    "1",
    "1. ",
    " ",
    "\t",
    "[",
    "AP ",
    "A.P.",
    "antecedentes personales y familiares ",
    "Tratamiento: ",
    "Tratamiento aaa bbb ccc ddd ",
    "Tratamiento (a ",
    "S:\n",
    "ABCDE:\n",
    "e\u0301",
]


class CountedPattern:
    """A pattern that counts its calls, and the characters that a search may look at."""

    def __init__(self, pattern, counts: list[int]) -> None:
        self.pattern, self.counts = pattern, counts

    def __getattr__(self, name: str):
        method = getattr(self.pattern, name)
        if not callable(method):
            return method

        def call(text: str, *args):
            self.counts[0] += 1
            # match and fullmatch are bounded by their pattern; search goes through the text.
            self.counts[1] += len(text) if name in ("search", "fullmatch") else 0
            return method(text, *args)

        return call


def count_work(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count calls of patterns and characters of searched windows."""
    counts = [0, 0]
    with monkeypatch.context() as patch:
        for name, value in vars(finder).items():
            if isinstance(value, re.Pattern):
                patch.setattr(finder, name, CountedPattern(value, counts))
        find_sections(text, rules_of("es"))
    return sum(counts)


def test_work_grows_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for piece in HOSTILE:
        small, large = (count_work(piece * (n // len(piece)), monkeypatch) for n in (500, 4000))
        assert large <= 9 * small + 100, piece  # 64 if it were quadratic
        assert large <= 100 * 4000, piece


def test_patterns_are_bounded() -> None:
    """No pattern that is matched at a place repeats without a bound, so each call is bounded."""
    for name, value in vars(finder).items():
        if isinstance(value, re.Pattern) and name not in ("WORD", "BLANK_LINE", "SENTENCE_END"):
            unbounded = [char for char in "*+" if _repeats(value.pattern, char)]
            assert not unbounded, name


def _repeats(pattern: str, sign: str) -> bool:
    """Whether a sign outside of brackets and escapes repeats something."""
    inside = False
    for i, char in enumerate(pattern):
        if pattern[i - 1 : i] == "\\":
            continue
        if char == "[" and not inside:
            inside = True
        elif char == "]" and inside and pattern[i - 1] != "[":
            inside = False
        elif char == sign and not inside:
            return True
    return False


PIECES = [
    *["AP", "EF:", "Tratamiento", "ANTECEDENTES", "Plan:", "y", "de", "familiares", "P:", "S:"],
    *[
        "O:",
        "Exploracio\u0301n",
        "física",
        "(a)",
        "HTA.",
        "HPI",
        "A.P.",
        "TAC",
        "1.-",
        "-",
        "[",
        "]",
    ],
    *["\n", "\r\n", "\t", " ", "  ", ".", ":", "\u00ad", "\ufeff", "ß", "…", "ABCDE:", "normal"],
]


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from(["", " "]))
@settings(max_examples=50)
def test_sections_are_in_order_in_any_text(pieces: list[str], between: str) -> None:
    text, at = between.join(pieces), 0
    for section in find_sections(text, rules_of("es")):
        assert at <= section.start < section.title_end <= section.end <= len(text)
        assert text[section.start].isalnum() and section.category in read_categories()
        at = section.end


def test_line_ends_and_accents_do_not_count() -> None:
    text = (
        "Antecedentes:\nHTA\n\nEXPLORACIÓN FÍSICA\nnormal. Evolución: buena\nUNIDAD DE ICTUS:\nno\n"
    )
    categories = ["past_history", "physical_exam", "evolution", "other"]
    titles = [title for _, title in found(text)]
    for changed in (
        text.replace("\n", "\r\n"),
        text.replace("\n", "\r"),
        unicodedata.normalize("NFC", text),
        unicodedata.normalize("NFD", text),
    ):
        assert [category for category, _ in found(changed)] == categories
        assert [unicodedata.normalize("NFC", title) for _, title in found(changed)] == titles
