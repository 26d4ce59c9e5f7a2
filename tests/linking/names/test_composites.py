"""Composite names: what the parts share is in each of them; names that are none stay whole."""

import pytest
import srsly

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.names.composites import MAX_CHARACTERS, split_composite
from spacy_bioclin.linking.names.coordination import LANGS, LISTS
from spacy_bioclin.text import fold_by_char
from tests.hostile.growth.measure import Subject, count_lines

ENGLISH = {
    "breast and ovarian cancer": "breast cancer|ovarian cancer",
    "breast as well as ovarian cancer": "breast cancer|ovarian cancer",
    "breast and/or ovarian cancer": "breast cancer|ovarian cancer",
    "brain, breast, and prostate cancer": "brain cancer|breast cancer|prostate cancer",
    "hereditary breast and ovarian cancer": "hereditary breast cancer|hereditary ovarian cancer",
    "colon and some other cancers": "colon cancers|cancers",
    "colorectal, breast and head and neck cancers": (
        "colorectal cancers|breast cancers|head and neck cancers"
    ),
    "Duchenne/Becker muscular dystrophy": "Duchenne muscular dystrophy|Becker muscular dystrophy",
    "bone and soft tissue tumors": "bone tumors|soft tissue tumors",
    "acute and chronic renal failure": "acute renal failure|chronic renal failure",
    "left ventricular systolic and diastolic dysfunction": (
        "left ventricular systolic dysfunction|left ventricular diastolic dysfunction"
    ),
    "ventricular septal (VSD) and midline (MD) defects": (
        "ventricular septal (VSD) defects|midline (MD) defects"
    ),
    "ventricular tachycardia and fibrillation": "ventricular tachycardia|ventricular fibrillation",
    "cleft lip and palate": "cleft lip|cleft palate",
    "hypertension and diabetic nephropathy": "hypertension|diabetic nephropathy",
    "cancer of the breast and ovary": "cancer of the breast|cancer of the ovary",
    "cancer of the small and large bowel": "cancer of the small bowel|cancer of the large bowel",
    "cysts in the kidney, pancreas, and epididymis": (
        "cysts in the kidney|cysts in the pancreas|cysts in the epididymis"
    ),
    "partial or complete deficiency of lactase": (
        "partial deficiency of lactase|complete deficiency of lactase"
    ),
    "fever and pain in the leg": "fever|pain in the leg",
    "pain and swelling of the leg": "pain of the leg|swelling of the leg",
    "hepatitis B and C": "hepatitis B|hepatitis C",
    "type 1 and 2 diabetes": "type 1 diabetes|type 2 diabetes",
    "stage II or stage III colorectal cancer": (
        "stage II colorectal cancer|stage III colorectal cancer"
    ),
    "MEN1 and 2": "MEN1|MEN2",
    "BRCA1 and BRCA2 mutations": "BRCA1 mutations|BRCA2 mutations",
    "prostaglandin D2, E2, or F2 alpha": "prostaglandin D2|prostaglandin E2|prostaglandin F2 alpha",
    "hypo- and hyperglycemia": "hypoglycemia|hyperglycemia",
    "RCC- and disease-associated tumors": "RCC-associated tumors|disease-associated tumors",
}
SPANISH = {
    "cáncer de mama y ovario": "cáncer de mama|cáncer de ovario",
    "cáncer de mama y de ovario": "cáncer de mama|cáncer de ovario",
    "cáncer de la mama y del ovario": "cáncer de la mama|cáncer del ovario",
    "tumor de colon y recto benigno": "tumor de colon benigno|tumor de recto benigno",
    "metástasis en hígado, hueso y pulmón": (
        "metástasis en hígado|metástasis en hueso|metástasis en pulmón"
    ),
    "lesión de 5 cm en hígado y bazo": "lesión de 5 cm en hígado|lesión de 5 cm en bazo",
    "tumor benigno y maligno": "tumor benigno|tumor maligno",
    "TUMOR BENIGNO Y MALIGNO": "TUMOR BENIGNO|TUMOR MALIGNO",
    "insuficiencia renal aguda y crónica": "insuficiencia renal aguda|insuficiencia renal crónica",
    "metástasis hepáticas y pulmonares": "metástasis hepáticas|metástasis pulmonares",
    "metástasis hepáticas bilaterales y óseas": "metástasis hepáticas bilaterales|metástasis óseas",
    "carcinoma ductal y/o lobulillar": "carcinoma ductal|carcinoma lobulillar",
    "tumor de células grandes y pequeñas": "tumor de células grandes|tumor de células pequeñas",
    "dolor de cabeza y abdominal": "dolor de cabeza|dolor abdominal",
    "recidiva local y a distancia": "recidiva local|recidiva a distancia",
    "recidiva local y pulmonar de melanoma": (
        "recidiva local de melanoma|recidiva pulmonar de melanoma"
    ),
    "dolor y rigidez de rodilla": "dolor de rodilla|rigidez de rodilla",
    "fiebre y dolor de cabeza": "fiebre|dolor de cabeza",
    "dolor abdominal y fiebre": "dolor abdominal|fiebre",
    "estenosis e insuficiencia mitral": "estenosis|insuficiencia mitral",
    "hemorragia gástrica u otra úlcera": "hemorragia gástrica|úlcera",
    "tumor localmente avanzado o metastásico": "tumor localmente avanzado|tumor metastásico",
    "tumor de alto y bajo grado": "tumor de alto grado|tumor de bajo grado",
    "hepatitis B y C": "hepatitis B|hepatitis C",
    "diabetes tipo 1 y tipo 2": "diabetes tipo 1|diabetes tipo 2",
    "hipo e hipertiroidismo": "hipotiroidismo|hipertiroidismo",
    "lesiones supra e infratentoriales": "lesiones supratentoriales|lesiones infratentoriales",
}
WHOLE = [
    ("breast cancer", "en"),
    ("head and neck cancer", "en"),
    ("diabetes mellitus, type 2", "en"),
    ("1,2-dimethylhydrazine", "en"),
    ("lopinavir/ritonavir", "en"),
    ("HIV/AIDS infection", "en"),
    ("distance between liver and spleen", "en"),
    ("and", "en"),
    ("cancer and", "en"),
    ("", "en"),
    ("cáncer de mama", "es"),
    ("carcinoma de cabeza y cuello", "es"),
    ("hepatitis E", "es"),
    ("quístico y sólido", "es"),
    ("adenocarcinoma de pulmón, de patrón sólido y tubular", "es"),
    ("tumor con metástasis hepáticas y óseas, G1", "es"),
    ("carcinoma (micropapilar y sólido", "es"),
    ("lesión entre esófago y estómago", "es"),
    ("tumor de piel y partes blandas", "es"),
    (" y ", "es"),
]


def test_parts_of_names() -> None:
    rows = [
        *((mention, "en", parts) for mention, parts in ENGLISH.items()),
        *((mention, "es", parts) for mention, parts in SPANISH.items()),
        *((mention, lang, mention) for mention, lang in WHOLE),
    ]
    found = [(mention, lang, "|".join(split_composite(mention, lang))) for mention, lang, _ in rows]
    assert [row for row, wanted in zip(found, rows, strict=True) if row != wanted] == []


def test_too_long_and_too_many_parts_stay_whole() -> None:
    many = ", ".join("abcdefghijklmno") + " and breast cancer"
    assert split_composite(many, "en") == (many,)
    long = "a" * MAX_CHARACTERS + " and ovarian cancer"
    assert split_composite(long, "en") == (long,)


def test_unknown_language() -> None:
    with pytest.raises(BioclinError, match=r"language 'ca'.*en, es"):
        split_composite("càncer", "ca")


PIECES = ["(", "a", "y ", "a/", "de ", " ( y ", "a, ", "hipo- y ", "/ "]


def test_any_text_takes_little_work() -> None:
    split_composite("a y b", "es")  # reads the lists
    for piece in PIECES:
        subject = Subject(lambda n, piece=piece: (piece * n)[:n], run=split_spanish, size=0)
        assert count_lines(subject, MAX_CHARACTERS) < 200 * MAX_CHARACTERS
        assert count_lines(subject, 100_000) < 20


def split_spanish(mention: str) -> tuple[str, ...]:
    return split_composite(mention, "es")


def test_every_list_is_folded() -> None:
    """A word with an accent or a capital in composites.yml would never match."""
    data = srsly.read_yaml(LISTS)
    for lang in LANGS:
        for name, words in data[lang].items():
            assert [fold_by_char(word) for word in words] == words, (lang, name)
