"""The component adds structured PHI to a span group and keeps what is there."""

import pickle

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Span

from spacy_bioclin.errors import BioclinError

TEXT = "Paciente: Juan Pérez. DNI 12345678Z, visto el 3 de marzo de 2018."

NOTE = f"AP: sin fiebre. {TEXT} Hb 11,5 g/dl."


def make(lang: str = "es", **config: object) -> Language:
    nlp = spacy.blank(lang)
    nlp.add_pipe("bioclin_phi_rules", config=config)
    return nlp


def test_labels_ids_scores() -> None:
    doc = make()(TEXT)
    group = doc.spans["phi"]
    assert [(span.text, span.label_, span.id_) for span in group] == [
        ("Juan Pérez", "NOMBRE_SUJETO_ASISTENCIA", "es_name_label"),
        ("12345678Z", "ID_SUJETO_ASISTENCIA", "es_dni_label"),
        ("3 de marzo de 2018", "FECHAS", "es_date_day"),
    ]
    scores = group.attrs["scores"]
    assert scores.dtype == np.float32 and scores.shape == (3,) and (scores >= 0.5).all()
    assert doc.ents == ()


def test_scheme() -> None:
    for lang, scheme, label in (
        ("en", None, "DATE"),
        ("es", "i2b2", "DATE"),
        ("es", "meddocan", "FECHAS"),
    ):
        doc = (make(lang, scheme=scheme) if scheme else make(lang))("2018-03-03")
        assert [span.label_ for span in doc.spans["phi"]] == [label]


def test_keeps_what_is_there() -> None:
    nlp = make(spans_key="mine")
    doc = nlp.make_doc(TEXT)
    doc.spans["mine"] = [Span(doc, 2, 4, label="X")]
    doc.spans["mine"].attrs["scores"] = np.array([0.25], dtype=np.float32)
    group = nlp.get_pipe("bioclin_phi_rules")(doc).spans["mine"]
    assert [span.label_ for span in group][:2] == ["X", "NOMBRE_SUJETO_ASISTENCIA"]
    assert group.attrs["scores"][0] == np.float32(0.25) and len(group.attrs["scores"]) == 4


def test_no_scores_there() -> None:
    nlp = make()
    doc = nlp.make_doc(TEXT)
    doc.spans["phi"] = [Span(doc, 2, 4, label="X")]
    assert nlp.get_pipe("bioclin_phi_rules")(doc).spans["phi"].attrs["scores"][0] == 1


def test_threshold_and_empty() -> None:
    assert len(make(threshold=1.0)(TEXT).spans["phi"]) == 0
    assert len(make(threshold=0.0)(TEXT).spans["phi"]) >= 3
    for text in ("", "Sin datos."):
        group = make()(text).spans["phi"]
        assert len(group) == 0 and group.attrs["scores"].shape == (0,)


def test_span_within_a_token_takes_the_token() -> None:
    doc = make("en")("DOB:03/12/1958T10")
    assert all(span.text for span in doc.spans["phi"])


def test_langs() -> None:
    doc = make("xx", langs=["es", "en"])("NHC: 123456. MRN: 654321.")
    assert [span.id_ for span in doc.spans["phi"]] == ["es_nhc", "en_mrn"]


def test_bad_settings() -> None:
    settings: list[tuple[str, str, object]] = [
        ("xx", "langs", None),
        ("es", "langs", ["fr"]),
        ("es", "scheme", "no"),
        ("es", "threshold", 2.0),
    ]
    for lang, name, value in settings:
        with pytest.raises(BioclinError, match=name):
            make(lang, **({} if value is None else {name: value}))


def test_survives_bytes() -> None:
    again = spacy.blank("es")
    again.add_pipe("bioclin_phi_rules")
    again.from_bytes(make().to_bytes())
    for nlp in (again, pickle.loads(pickle.dumps(again))):
        assert len(nlp(TEXT).spans["phi"]) == 3


@pytest.mark.slow
def test_works_in_other_processes() -> None:
    nlp = make()
    for name in ("sentences", "sections", "context", "measurements"):
        nlp.add_pipe(f"bioclin_{name}")
    keys = ("phi", "sections", "context", "measurements")
    here, *there = [nlp(NOTE), *nlp.pipe([NOTE] * 2, n_process=2)]
    shown = [
        [[(span.text, span.label_) for span in doc.spans[key]] for key in keys]
        + [[str(one) for one in doc._.measurements], [str(one) for one in doc._.sections]]
        for doc in (here, *there)
    ]
    assert all(shown[0]) and shown == [shown[0]] * 3
