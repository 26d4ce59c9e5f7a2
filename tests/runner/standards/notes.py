"""Docs made by hand, with what each component would have written, and a tiny pipeline."""

from collections.abc import Iterable
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_bioclin.context.rules.attributes import Context, make_group

# A mention: words, label, id, attributes.
Given = tuple[str, str, str, Iterable[str]]


def make_doc(
    text: str,
    mentions: Iterable[Given],
    *,
    sections: Iterable[tuple[str, str, str]] = (),
    spans_key: str | None = None,
    with_context: bool = True,
) -> Doc:
    """A Doc of tokens between blanks, whose mentions have what is given.

    sections: Category, LOINC code and title of each, in order; a section ends with the text.
    """
    nlp = spacy.blank("es")
    doc = Doc(nlp.vocab, words=text.split(" "))
    assert doc.text == f"{text} "
    spans, context = [], []
    for words, label, kb_id, kinds in mentions:
        start = text.index(words)
        span = doc.char_span(start, start + len(words), label=label, kb_id=kb_id)
        spans.append(span)
        place = span.start, span.end
        found: list[Context] = [(kind, "given", place, place) for kind in kinds]
        context += found
    if spans_key is None:
        doc.set_ents(spans, default="outside")
    else:
        doc.spans[spans_key] = spans
    if with_context:
        make_group(doc, context)
    titles, bodies = [], []
    for category, loinc, title in sections:
        start = doc.char_span(text.index(title), text.index(title) + len(title)).start
        titles.append(Span(doc, start, start + 1, label=category))
        bodies.append((start, category, loinc))
    ends = [start for start, _, _ in bodies[1:]] + [len(doc)]
    if titles:
        doc.spans["section_titles"] = titles
        doc.spans["sections"] = [
            Span(doc, start, end, label=category, kb_id=loinc)
            for (start, category, loinc), end in zip(bodies, ends, strict=True)
        ]
    return doc


# Ids that entities get from the component of `write_pipeline`, as if from a linker.
KB_IDS = {"HTA": "MESH:D006973", "fiebre": "HP:0001945"}
NOTES = [
    {"note_id": 70, "person": "p-1", "text": "Antecedentes:\nHTA. Niega tos."},
    {"note_id": 8, "person": "p-2", "text": "Sin hallazgos."},
    {"note_id": 9, "person": "p-1", "text": 'Acude por "fiebre"; tos, tos.'},
]
CONCEPTS_CSV = """source_code,source_vocabulary_id,target_concept_id,source_concept_id,other
D006973,MESH,320128,45618364,x
0001945,HP,437663,,x
11348-0,LOINC,3000001,3000001,x
"""


@Language.component("test_standards_ids")
def add_ids(doc: Doc) -> Doc:
    """Give entities the ids of `KB_IDS`."""
    doc.ents = [
        Span(doc, ent.start, ent.end, label=ent.label_, kb_id=KB_IDS.get(ent.text, ""))
        for ent in doc.ents
    ]
    return doc


def write_pipeline(folder: Path) -> Path:
    """Write a pipeline that finds a disease, two symptoms and a drug, with sections and context,
    and gives them ids, by a component that only this process has."""
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_sentences")
    labels = {"HTA": "DISEASE", "fiebre": "SYMPTOM", "tos": "SYMPTOM", "aspirina": "DRUG"}
    patterns = [{"label": label, "pattern": words} for words, label in labels.items()]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    nlp.add_pipe("test_standards_ids")
    nlp.add_pipe("bioclin_sections")
    nlp.add_pipe("bioclin_context")
    nlp.to_disk(folder)
    return folder
