"""Make what `probe` gives a pipeline to read: notes, pairs of them, or notes with spans."""

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc, Span

from ..annotations.pairs import make_pair
from ..evaluation.components import find_relation_components, get_setting
from ..spans import set_spans
from ..types import GIVEN_KEY

# Invented for these checks.
NOTES = {
    "es": (
        "Paciente de 54 años con neumonía adquirida en la comunidad. Se inicia amoxicilina "
        "500 mg cada 8 horas. No refiere fiebre.",
        "Nombre: Lucía Ferrer Alcázar. NHC: 4471902. Domicilio: C/ del Olmo 14, 2ºB, 46900 "
        "Torrent. Fecha de ingreso: 12/03/2019.",
        "Varón con diabetes mellitus tipo 2 en tratamiento con metformina 850 mg. Se realiza TAC "
        "abdominal en el Hospital de la Ribera.\n\nDiagnóstico: apendicitis aguda.",
        "",
        "Alta el 3 de mayo. Dra. Inés Roca, tel. 961 555 010. Control en 15 días con analítica.",
    ),
    "en": (
        "54-year-old man with community-acquired pneumonia. Started on amoxicillin 500 mg every 8 "
        "hours. Denies fever.",
        "Name: Laura Whitfield. MRN: 4471902. Address: 14 Elm Road, Ashford. Admitted on "
        "03/12/2019.",
        "She has type 2 diabetes mellitus and takes metformin 850 mg. CT of the abdomen at Ashford "
        "General Hospital.\n\nDiagnosis: acute appendicitis.",
        "",
        "Discharged on 3 May. Dr. Ian Rowe, phone 555 0101. Blood tests in 15 days.",
    ),
}
PAIRS = "bioclin_pairs"


def make_inputs(nlp: Any, texts: Sequence[str]) -> list[str | Doc]:
    """Make the inputs that a pipeline can read.

    nlp (Language): The pipeline.
    texts (Sequence[str]): The notes.
    RETURNS (list[str | Doc]): The texts. If the pipeline classifies pairs, pairs of those that are
        not blank, and the texts only if the component takes Docs that are no pairs. If the pipeline
        finds relations, but no entities, Docs in which some words have the labels of entities. All
        Docs are new, for a pipeline changes them.
    """
    readers = [name for name in nlp.pipe_names if _reads_pairs(nlp.get_pipe_meta(name))]
    if readers:
        full = [text for text in texts if text]
        made = [make_pair(nlp, text, full[i - 1]) for i, text in enumerate(full)]
        wants_pairs = any(get_setting(nlp, name, "require_pairs") is not False for name in readers)
        return [*made] if wants_pairs else [*texts, *made]
    alone = [each for each in find_relation_components(nlp) if not each.finds_entities]
    if not alone:
        return list(texts)
    docs: list[str | Doc] = []
    for text in texts:
        doc = nlp.make_doc(text)
        for finder in alone:
            types = getattr(nlp.get_pipe(finder.name), "label_data", None) or {}
            pairs = [pair for of_label in types.values() for pair in of_label]
            _label_words(doc, finder.spans_key, [label for pair in pairs for label in pair])
        docs.append(doc)
    return docs


def _reads_pairs(meta: Any) -> bool:
    return meta.factory == PAIRS or "doc._.pair" in meta.assigns


def _label_words(doc: Doc, spans_key: str | None, labels: Sequence[str]) -> None:
    """Make every other word an entity, with the labels in turn and a concept of its own."""
    places = [token.i for token in doc if token.is_alpha][::2]
    spans = [
        Span(doc, i, i + 1, label=labels[n % len(labels)], kb_id=f"C{n}")
        for n, i in enumerate(places if labels else ())
    ]
    set_spans(doc, spans_key, spans, [None] * len(spans))
    doc.user_data[GIVEN_KEY] = True
