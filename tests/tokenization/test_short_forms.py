"""The lexicon of short forms, and reading and writing that it decides."""

import random

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.training import Example

from spacy_bioclin.corpora.docs import make_gold_doc
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.tokenization.capitals import lower_capitals
from spacy_bioclin.tokenization.long_forms import make_long_form
from spacy_bioclin.tokenization.noise import (
    GROUPS,
    Noisy,
    add_noise,
    apply,
    find_long_forms,
    make_noise_augmenter,
)
from spacy_bioclin.tokenization.short_forms import KINDS, LANGS, load_short_forms
from spacy_bioclin.types import GOLD_KEY, AnnotatedText, SpanAnnotation


@pytest.mark.parametrize("lang", LANGS)
def test_the_lexicon_is_whole(lang: str) -> None:
    forms = load_short_forms(lang)
    assert len(forms) >= 1_200
    rows = [form for meanings in forms.values() for form in meanings]
    assert {form.kind for form in rows} <= set(KINDS)
    assert len({(form.short, form.long) for form in rows}) == len(rows)
    assert all(form.short.strip() == form.short and all(form.long) for form in rows)
    assert load_short_forms("fr") == {}


def test_short_forms_mean_what_a_clinician_means() -> None:
    for lang, short, long in (
        ("es", "hta", "hipertensión arterial"),
        ("es", "fa", "fibrilación auricular"),
        ("es", "tac", "tomografía axial computarizada"),
        ("en", "sob", "shortness of breath"),
        ("en", "copd", "chronic obstructive pulmonary disease"),
    ):
        assert long in load_short_forms(lang)[short][0].long, short


@pytest.mark.parametrize(
    ("lang", "text", "short", "label", "long"),
    [
        ("es", "Paciente con FA anticoagulada", "FA", "DISEASE", "fibrilación auricular"),
        ("es", "GOT 45, GPT 60, FA 340 U/L", "FA", "TEST", "fosfatasa alcalina"),
        ("es", "FA permanente con sintrom", "FA", "", "fibrilación auricular"),
        ("es", "GOT 45 FA 340", "FA", "", "fosfatasa alcalina"),
        ("en", "severe MS, MR moderate on echo", "MS", "DISEASE", "mitral stenosis"),
        ("en", "MS 10 mg IV", "MS", "DRUG", "morphine sulfate"),
        ("en", "bitten by the cat", "cat", "", None),
        ("en", "no fracture", "fracture", "DISEASE", None),
    ],
)
def test_what_is_near_decides(
    lang: str, text: str, short: str, label: str, long: str | None
) -> None:
    doc = spacy.blank(lang)(text)
    start = text.index(short)
    found = make_long_form(doc.char_span(start, start + len(short), label=label))
    assert (found and found.text) == long


# What is in a note, and what the encoder reads.
CAPITALS = [
    (
        "es",
        "HEMATURIA RECURRENTE. PACIENTE CON ANEMIA CRÓNICA, HTA Y DM2",
        "hematuria recurrente. paciente con anemia crónica, HTA y DM2",
    ),
    ("es", "AP: HTA, EPOC. Acude por DISNEA hoy", "AP: HTA, EPOC. Acude por DISNEA hoy"),
    ("es", "Refiere tos.\nNIEGA FIEBRE\nAlta", "Refiere tos.\nniega fiebre\nAlta"),
    (
        "en",
        "CHEST PAIN AND SOB FOR THREE DAYS, K 5.4",
        "chest pain and SOB for three days, K 5.4",
    ),
    ("en", "Labs: Na 138, HCO3 22, LVEF 35%", "Labs: Na 138, HCO3 22, LVEF 35%"),
    ("en", "", ""),
]


def test_capitals_are_read_in_lower_case() -> None:
    for lang, text, wanted in CAPITALS:
        assert lower_capitals(text, lang) == wanted


@given(st.text(max_size=80), st.sampled_from(["es", "en", "fr"]))
def test_lower_capitals_keeps_offsets(text: str, lang: str) -> None:
    found = lower_capitals(text.upper() + text, lang)
    assert len(found) == len(text.upper() + text)
    assert found.lower() == (text.upper() + text).lower()


def test_long_forms_are_found_by_words() -> None:
    text = "con hipertensión arterial y enfermedad pulmonar obstructiva crónica"
    found = {text[start:end]: shorts for start, end, shorts in find_long_forms(text, "es")}
    assert "HTA" in found["hipertensión arterial"]
    assert "EPOC" in found["enfermedad pulmonar obstructiva crónica"]


TEXTS = {
    "es": "Paciente con hipertensión arterial.\nPresenta disnea, sin fiebre: 40 mg al día.",
    "en": "The patient has shortness of breath.\nDenies chest pain, and takes 40 mg of furosemide.",
}
WORDS = {"es": ("hipertensión arterial", "disnea", "40 mg"), "en": ("chest pain", "40 mg")}


@pytest.mark.parametrize("noise", [one for group in GROUPS for one, _ in group])
def test_spans_follow_each_noise(noise) -> None:  # type: ignore[no-untyped-def]
    changed = 0
    for lang, text in TEXTS.items():
        bounds = [(text.index(word), text.index(word) + len(word)) for word in WORDS[lang]]
        for seed in range(12):
            edits = sorted(noise(Noisy(text, bounds), lang, random.Random(seed)))
            noisy = apply(Noisy(text, bounds), edits)
            changed += noisy.text != text
            for (start, end), word in zip(noisy.bounds, WORDS[lang], strict=True):
                piece = noisy.text[start:end]
                assert piece and piece == piece.strip()
                assert abs(len(piece) - len(word)) <= 2 or piece.isupper()  # a short form
                assert noisy.text[:start].count("\n") <= text.count("\n") + 3
    assert changed


def test_noisy_copies_are_the_same_for_a_seed_and_keep_their_annotation() -> None:
    nlp = spacy.blank("es")
    text = TEXTS["es"]
    start = text.index("hipertensión")
    span = SpanAnnotation("T1", "DISEASE", ((start, start + 21),), "")
    reference = make_gold_doc(nlp, AnnotatedText("n", text, (span,)), layers={"*": "clinical"})
    eg = Example(nlp.make_doc(text), reference)
    augment = make_noise_augmenter(copies=6, seed=1)
    first, second = (list(augment(nlp, eg)) for _ in range(2))
    assert len(first) == 7 and first[0] is eg
    texts = [one.reference.text for one in first]
    assert texts == [one.reference.text for one in second] and len(set(texts)) > 3
    for one in first[1:]:
        [[begin, end, label, _]] = one.reference.user_data[GOLD_KEY]["layers"]["clinical"]
        [found] = one.reference.spans["clinical"]
        assert label == found.label_ == "DISEASE"
        assert one.predicted.text == one.reference.text
        assert one.reference.text[begin:end].strip() == one.reference.text[begin:end] != ""
    with pytest.raises(BioclinError, match="leave no example"):
        make_noise_augmenter(copies=0, keep=False)


def test_noise_of_a_text_without_spans() -> None:
    for seed in range(20):
        noisy = add_noise(Noisy("", []), "es", random.Random(seed))
        assert noisy == Noisy("", [])
