"""Docs made by hand: what each component would have written is given."""

from collections.abc import Iterable

import spacy
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
