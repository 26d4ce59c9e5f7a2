"""`bioclin_deid`: from detectors' spans to a safe note, on notes made at random."""

import re
from datetime import date
from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spacy_bioclin.deid.component import Deidentifier
from spacy_bioclin.deid.operators import decrypt_text
from spacy_bioclin.deid.policy import make_policy
from spacy_bioclin.deid.surrogates.dates import parse_date
from spacy_bioclin.deid.vault import restore, seal_originals
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.spans import get_probabilities, install_extensions
from spacy_bioclin.text import find_leaks
from tests.util import replaced_extension

KEY = b"a key for the tests, no more than that"
TOKENIZER = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
NAMES = ["Ana Ruiz Olmedo", "Marta García", "José Luis Peña Gil", "RAMÓN VEGA SOLER", "Inés Prado"]
TOWNS = ["Zaragoza", "Lugo", "Cartagena", "Alcalá de Henares"]
FILLERS = ["acude por", "refiere", "tratada con", "niega", "control de", ". Después,", "\n", "y"]
ENTITIES = ["neumonía", "dolor torácico", "amoxicilina 500 mg", "fiebre"]


def make_nlp(lang: str = "es", **policy: object) -> Language:
    nlp = spacy.blank(lang, config=TOKENIZER)
    deid = nlp.add_pipe("bioclin_deid", config={"policy": policy or None})
    assert isinstance(deid, Deidentifier)
    deid.key = KEY
    return nlp


@cache
def shared(operator: str, rules: bool = False) -> Language:
    """A pipeline that no test changes."""
    nlp = make_nlp(default=operator)
    if rules:
        nlp.add_pipe("bioclin_phi_rules", first=True)
    return nlp


masking, surrogates = partial(shared, "mask"), partial(shared, "surrogate")


class Note(NamedTuple):
    """A note with its PHI and entities, (start, end, label)."""

    text: str
    phi: list[tuple[int, int, str]]
    entities: list[tuple[int, int, str]]


def numeric(day: date) -> str:
    return f"{day.day:02}/{day.month:02}/{day.year}"


DATES = st.dates(date(2001, 1, 1), date(2024, 12, 31)).map(numeric)
PHI = st.one_of(
    st.tuples(st.just("NOMBRE_SUJETO_ASISTENCIA"), st.sampled_from(NAMES)),
    st.tuples(st.just("NOMBRE_PERSONAL_SANITARIO"), st.sampled_from(NAMES)),
    st.tuples(st.just("TERRITORIO"), st.sampled_from(TOWNS)),
    st.tuples(st.just("FECHAS"), DATES),
    st.tuples(st.just("ID_SUJETO_ASISTENCIA"), st.integers(10**6, 10**8).map(str)),
)
OTHER = st.one_of(
    st.tuples(st.just(""), st.sampled_from(FILLERS)),
    st.tuples(st.just("PROBLEM"), st.sampled_from(ENTITIES)),
)


@st.composite
def notes(draw: st.DrawFn) -> Note:
    text, phi, entities = "Paciente", [], []
    for label, piece in draw(st.lists(st.one_of(PHI, OTHER), min_size=1, max_size=14)):
        start = len(text) + 1
        text = f"{text} {piece}"
        if label == "PROBLEM":
            entities.append((start, len(text), label))
        elif label:
            phi.append((start, len(text), label))
    return Note(text, phi, entities)


def annotate(nlp: Language, note: Note, patient: str = "p1") -> Doc:
    doc = nlp.make_doc(note.text)
    doc.spans["phi"] = [doc.char_span(s, e, label=label) for s, e, label in note.phi]
    doc.set_ents([doc.char_span(s, e, label=label, kb_id="C1") for s, e, label in note.entities])
    doc._.patient = {"id": patient}
    return nlp(doc)


@pytest.mark.parametrize("operator", ["mask", "surrogate"])
@settings(max_examples=25)
@given(notes())
def test_no_leak_and_everything_in_its_place(operator: str, note: Note) -> None:
    doc = annotate(shared(operator), note)
    result = doc._.deid
    assert find_leaks(result.phi_values, result.checked_text) == []
    for start, end, label in note.phi:
        value = note.text[start:end]
        if label != "FECHAS":  # a date may be another one's surrogate
            assert find_leaks([(label, value)], result.text) == []
    # offsets there and back
    for edit in result.offsets.edits:
        assert result.offsets.to_safe(edit.start, edit.end) == (edit.safe_start, edit.safe_end)
        if edit.safe_start < edit.safe_end:
            assert result.offsets.to_original(edit.safe_start, edit.safe_end) == edit[:2]
    # entities stand where they stood
    safe = result.doc
    assert safe.text == result.text
    assert [ent.text for ent in safe.ents] == [note.text[s:e] for s, e, _ in note.entities]
    assert all(ent.kb_id_ == "C1" and ent.label_ == "PROBLEM" for ent in safe.ents)
    assert result.n_lost == 0
    # what is between PHI stays
    hidden = {i for span in result.spans for i in range(span.start, span.end)}
    for i, char in enumerate(note.text):
        if i not in hidden:
            start, end = result.offsets.to_safe(i, i + 1)
            assert result.text[start:end] == char


@settings(max_examples=10)
@given(notes())
def test_another_run_gives_the_same(note: Note) -> None:
    again = make_nlp(default="surrogate")
    first, second = annotate(surrogates(), note)._.deid, annotate(again, note)._.deid
    assert (first.text, first.spans, first.audit) == (second.text, second.spans, second.audit)


@settings(max_examples=15)
@given(notes())
def test_masked_text_stays_as_it_is(note: Note) -> None:
    for operator in ("mask", "mask_number", "hash", "encrypt"):
        nlp = shared(operator, rules=True)
        text = annotate(nlp, note)._.deid.text
        assert nlp(text)._.deid.text == text, operator


@settings(max_examples=20)
@given(st.lists(st.dates(date(2001, 1, 1), date(2024, 12, 31)), min_size=2, max_size=6))
def test_intervals_stay_in_all_notes_of_a_patient(days: list[date]) -> None:
    moved = []
    for day in days:
        text = f"Visita el {numeric(day)} ."
        doc = annotate(surrogates(), Note(text, [(10, 20, "FECHAS")], []))
        parsed = parse_date(doc._.deid.text[10:20], "es")
        assert parsed is not None and parsed.year and parsed.month and parsed.day
        moved.append(date(parsed.year, parsed.month, parsed.day))
    assert [(b - a).days for a, b in pairwise(days)] == [(b - a).days for a, b in pairwise(moved)]
    assert all(a != b for a, b in zip(days, moved, strict=True))


def test_one_person_has_one_name_in_all_notes_and_another_patient_another() -> None:
    texts = ["Acude Ana Ruiz Olmedo hoy.", "Acude ANA RUIZ hoy.", "Acude Ana Ruíz hoy."]
    spans = [(6, 21), (6, 14), (6, 14)]
    safe = [
        annotate(surrogates(), Note(t, [(*span, "NOMBRE_SUJETO_ASISTENCIA")], []))._.deid.text
        for t, span in zip(texts, spans, strict=True)
    ]
    names = [re.sub("^Acude | hoy.$", "", text) for text in safe]
    assert names[1].casefold() == names[2].casefold()
    assert names[0].casefold().startswith(names[1].casefold())
    assert names[1].isupper() and not names[2].isupper()
    other = annotate(surrogates(), Note(texts[0], [(6, 21, "NOMBRE_SUJETO_ASISTENCIA")], []), "p2")
    assert other._.deid.text != safe[0]


def test_a_repeat_is_hidden_wherever_it_stands() -> None:
    text = "Nombre: Marta García. La paciente MARTA\nGARCIA acude; Garcia\u0301 refiere. blanco"
    doc = annotate(masking(), Note(text, [(8, 20, "NOMBRE_SUJETO_ASISTENCIA")], []))
    mask = "[NOMBRE_SUJETO_ASISTENCIA]"
    assert doc._.deid.text == f"Nombre: {mask}. La paciente {mask} acude; {mask} refiere. blanco"
    assert [span.detector for span in doc._.deid.spans] == ["ner", "repeat", "repeat"]


def test_an_ordinary_word_that_is_also_a_name_stays() -> None:
    text = "Sra. Rosa Blanco. Glóbulos blancos, manto blanco."
    doc = annotate(masking(), Note(text, [(5, 16, "NOMBRE_SUJETO_ASISTENCIA")], []))
    assert doc._.deid.text.endswith("Glóbulos blancos, manto blanco.")


def test_a_name_of_one_word_that_is_an_ordinary_word_too_is_hidden_as_it_is_written() -> None:
    text = "Dra. Blanco. Color blanco. Blanco indica reposo. Sra. Toribio; toribio"
    spans = [(5, 11, "NOMBRE_PERSONAL_SANITARIO"), (54, 61, "NOMBRE_SUJETO_ASISTENCIA")]
    staff, patient = "[NOMBRE_PERSONAL_SANITARIO]", "[NOMBRE_SUJETO_ASISTENCIA]"
    doc = annotate(masking(), Note(text, spans, []))
    assert doc._.deid.text == (
        f"Dra. {staff}. Color blanco. {staff} indica reposo. Sra. {patient}; {patient}"
    )


def test_the_known_patient_is_found_without_any_detector() -> None:
    doc = masking().make_doc("Acude Marta Garcia, nacida el 3 de marzo de 1960.")
    doc._.patient = {"id": "1", "names": ["Marta García Gil"], "birth_date": "1960-03-03"}
    result = masking()(doc)._.deid
    assert result.text == "Acude [NOMBRE_SUJETO_ASISTENCIA], nacida el [FECHAS]."
    assert result.audit["patient_known"] and result.audit["detectors"] == {"known_patient": 2}


def test_operators_by_label() -> None:
    policy = {
        "default": "keep",
        "operators": {
            "FECHAS": "generalize",
            "EDAD_SUJETO_ASISTENCIA": "generalize",
            "NOMBRE_SUJETO_ASISTENCIA": "redact",
            "ID_SUJETO_ASISTENCIA": "encrypt",
            "TERRITORIO": "mask_number",
            "PAIS": "mask",
        },
    }
    nlp = make_nlp(**policy)
    text = "Ana Ruiz, 54 años, 1234567, Lugo, Vigo, Lugo, España, 3/4/2015, varón"
    values = {
        "Ana Ruiz": "NOMBRE_SUJETO_ASISTENCIA",
        "54 años": "EDAD_SUJETO_ASISTENCIA",
        "1234567": "ID_SUJETO_ASISTENCIA",
        "Vigo": "TERRITORIO",
        "España": "PAIS",
        "3/4/2015": "FECHAS",
        "varón": "SEXO_SUJETO_ASISTENCIA",
    }
    phi = [(text.index(v), text.index(v) + len(v), label) for v, label in values.items()]
    phi += [(m.start(), m.end(), "TERRITORIO") for m in re.finditer("Lugo", text)]
    result = annotate(nlp, Note(text, sorted(phi), []))._.deid
    pattern = (
        r", 50-59 años, (\[ID_SUJETO_ASISTENCIA \S+\]), \[TERRITORIO 1\], \[TERRITORIO 2\], "
        r"\[TERRITORIO 1\], \[PAIS\], 2015, varón"
    )
    found = re.fullmatch(pattern, result.text)
    assert found is not None
    assert decrypt_text(found[1], KEY) == "1234567"
    with pytest.raises(BioclinError, match="another key"):
        decrypt_text(found[1], KEY[::-1])


def test_a_label_of_no_scheme_is_encrypted_and_decrypted() -> None:
    nlp = make_nlp(default="encrypt")
    note = Note("Acude Ana Ruiz hoy", [(6, 14, "PERSON_X")], [])
    text = annotate(nlp, note)._.deid.text
    assert "Ruiz" not in text and "[OTROS_SUJETO_ASISTENCIA " in text
    assert decrypt_text(text, KEY) == note.text
    nlp.add_pipe("bioclin_phi_rules", first=True)
    assert nlp(text)._.deid.text == text


def test_without_a_key_only_what_needs_none() -> None:
    nlp = make_nlp(default="surrogate")
    deid = nlp.get_pipe("bioclin_deid")
    deid.key = None
    with pytest.raises(BioclinError, match="needs the secret key") as error:
        annotate(nlp, Note("Acude Ana Ruiz hoy", [(6, 14, "NOMBRE_SUJETO_ASISTENCIA")], []))
    assert "Ruiz" not in str(error.value)
    deid.policy = make_policy({"default": "mask"}, lang="es", source="test")
    note = Note("Acude Ana Ruiz hoy", [(6, 14, "NOMBRE_SUJETO_ASISTENCIA")], [])
    assert annotate(nlp, note)._.deid.text == "Acude [NOMBRE_SUJETO_ASISTENCIA] hoy"


@pytest.fixture
def negated():
    with replaced_extension(Span, "negated", default=False):
        yield


def test_results_live_in_a_docbin_and_extensions_move(negated) -> None:
    doc = annotate(masking(), Note("Ana Ruiz niega fiebre", [(0, 8, "PATIENT")], []))
    doc.set_ents([doc.char_span(15, 21, label="PROBLEM")])
    doc.ents[0]._.negated = True
    doc.spans["all"] = [doc[0:2], doc[3:4]]
    doc.spans["all"].attrs["scores"] = np.array([0.5, 0.25])
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    [loaded] = DocBin(store_user_data=True).from_bytes(data).get_docs(masking().vocab)
    safe = loaded._.deid.doc
    assert safe.text == "[NOMBRE_SUJETO_ASISTENCIA] niega fiebre"
    (ent,) = safe.ents
    assert ent.text == "fiebre" and ent._.negated
    assert [span.text for span in safe.spans["all"]] == ["[NOMBRE_SUJETO_ASISTENCIA]", "fiebre"]
    assert list(safe.spans["all"].attrs["scores"]) == [0.5, 0.25]
    assert [span.text for span in safe.spans["phi"]] == ["[NOMBRE_SUJETO_ASISTENCIA]"]


def test_the_audit_holds_no_phi_and_thresholds_are_saved(tmp_path) -> None:
    nlp = make_nlp()
    nlp.get_pipe("bioclin_deid").thresholds = {"FECHAS": 0.25}
    nlp.to_disk(tmp_path / "nlp")
    assert KEY not in b"".join(p.read_bytes() for p in (tmp_path / "nlp").rglob("*") if p.is_file())
    loaded = spacy.load(tmp_path / "nlp")
    assert loaded.get_pipe("bioclin_deid").thresholds == {"FECHAS": 0.25}
    note = Note("Ana Ruiz acude", [(0, 8, "NOMBRE_SUJETO_ASISTENCIA")], [])
    audit = annotate(loaded, note)._.deid.audit
    assert audit["labels"] == {"NOMBRE_SUJETO_ASISTENCIA": 1}
    assert "Ruiz" not in str(audit)


def test_thresholds_keep_the_scheme_in_which_they_were_chosen() -> None:
    nlp = make_nlp(scheme="i2b2")
    deid = nlp.get_pipe("bioclin_deid")
    deid.thresholds = {"CITY": 0.5, "ZIP": 0.1}
    deid.policy = make_policy({"scheme": "meddocan"}, lang="es", source="test")
    again = make_nlp(scheme="meddocan")
    again.get_pipe("bioclin_deid").from_bytes(deid.to_bytes())
    for pipeline in (nlp, again):
        doc = pipeline.make_doc("Vive en Lugo o Vigo, CP 27001")
        doc.spans["phi"] = [doc[2:3], doc[4:5], doc[7:8]]
        doc.spans["phi"] = [
            Span(doc, span.start, span.end, label=label)
            for span, label in zip(doc.spans["phi"], ("CITY", "ADDRESS", "ZIP"), strict=True)
        ]
        doc.spans["phi"].attrs["scores"] = [0.4, 0.4, 0.4]
        text = pipeline(doc)._.deid.text
        assert text == "Vive en Lugo o [CALLE], CP [TERRITORIO]"


def test_probabilities_of_phi_and_entities_are_apart() -> None:
    install_extensions()
    doc = masking().make_doc("Ana Ruiz niega fiebre")
    doc.set_ents([Span(doc, 0, 2, label="PERSON")])
    doc.ents[0]._.probability = 0.25
    doc.spans["phi"] = [Span(doc, 0, 2, label="PATIENT")]
    doc.spans["phi"].attrs["scores"] = [0.75]
    doc = masking()(doc)
    assert doc.spans["phi"][0]._.probability == 0.75
    assert doc.ents[0]._.probability == 0.25
    safe = doc._.deid.doc
    assert safe.spans["phi"][0]._.probability == 0.75 and safe.ents[0]._.probability == 0.25
    assert doc[2:3]._.probability is None


def test_an_entity_without_probability_has_that_of_the_first_group_with_the_same_span() -> None:
    install_extensions()
    doc = masking().make_doc("Ana Ruiz niega fiebre")
    doc.set_ents([Span(doc, 0, 2, label="A"), Span(doc, 2, 3, label="B"), Span(doc, 3, 4, "C")])
    doc.ents[2]._.probability = 0.125
    groups = {"none": (0, 2, "A", None), "x": (0, 2, "A", 0.25), "y": (0, 2, "A", 0.75)}
    for key, (start, end, label, score) in groups.items():
        doc.spans[key] = [Span(doc, start, end, label=label), Span(doc, 2, 3, label="Z")]
        if score is not None:
            doc.spans[key].attrs["scores"] = [score, score]
    expected = [0.25, None, 0.125]
    assert get_probabilities(doc, None) == [ent._.probability for ent in doc.ents] == expected


def test_a_third_language_is_told() -> None:
    french = "Le patient est hospitalisé pour une douleur thoracique apparue au repos avec " * 5
    spanish = "El paciente ingresa en el hospital por un dolor en el tórax que aparece en " * 5
    nlp = make_nlp()
    nlp.add_pipe("bioclin_phi_rules", before="bioclin_deid")
    assert nlp(french)._.deid.audit["other_language"]
    assert not nlp(spanish)._.deid.audit["other_language"]
    with pytest.raises(BioclinError, match="es and en"):
        spacy.blank("it").add_pipe("bioclin_deid")


@settings(max_examples=15)
@given(notes())
def test_the_vault_gives_the_original_back(note: Note) -> None:
    result = annotate(surrogates(), note)._.deid
    sealed = seal_originals(result, note.text, KEY)
    assert restore(result.text, sealed, KEY) == note.text
    for text, key in ((result.text + "x", KEY), (result.text, KEY[::-1])):
        with pytest.raises(BioclinError, match="cannot be decrypted"):
            restore(text, sealed, key)


def test_empty_and_blank_notes() -> None:
    for text in ("", " ", "\n\n"):
        assert masking()(text)._.deid.text == text


def test_a_name_beside_a_title_is_staff() -> None:
    nlp = make_nlp()
    nlp.add_pipe("bioclin_phi_rules", before="bioclin_deid")
    doc = nlp.make_doc("Revisión con la Dra. Remedios Dueñas. Acude Casilda Dueñas.")
    found = [doc.char_span(21, 36, label="NAME"), doc.char_span(44, 58, label="NAME")]
    doc.spans["phi"] = found
    labels = [span.label for span in nlp(doc)._.deid.spans]
    assert labels == ["NOMBRE_PERSONAL_SANITARIO", "NOMBRE_SUJETO_ASISTENCIA"]


def test_an_unknown_first_name_has_one_surrogate_in_the_note() -> None:
    nlp = make_nlp(default="surrogate")
    doc = nlp.make_doc("Acude Casilda García Nogales. Hoy Casilda refiere tos.")
    doc.spans["phi"] = [doc.char_span(6, 28, label="NOMBRE_SUJETO_ASISTENCIA")]
    first, *_ = re.findall(r"Acude (\w+)", safe := nlp(doc)._.deid.text)
    assert f"Hoy {first} refiere" in safe and first != "Casilda"
