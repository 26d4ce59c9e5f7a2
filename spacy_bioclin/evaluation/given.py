"""Find relations between the gold entities, for scores without the errors of the NER."""

from collections.abc import Callable, Sequence

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import filter_spans

from ..errors import BioclinError
from ..spans import get_char_spans
from ..types import GIVEN_KEY, GOLD_KEY
from .components import RelationFinder
from .metrics import ENTS, annotated_layers, make_input
from .relations import ComparedRelations, align_span, compare_relations


def give_spans(nlp: Language, reference: Doc) -> Doc:
    """Make a Doc with the tokens of a pipeline and the spans of a gold Doc.

    nlp (Language): Its tokenizer makes the tokens.
    reference (Doc): The gold Doc, which is not changed.
    RETURNS (Doc): Spans that touch no token are missing. Of those that overlap, `doc.ents` has the
        longest, and `doc.spans["ents"]` all.
    """
    made = make_input(nlp, reference)
    doc = nlp.make_doc(made) if isinstance(made, str) else made
    doc.user_data[GIVEN_KEY] = True
    stored = reference.user_data.get(GOLD_KEY, {}).get("layers", {})
    for layer in sorted(annotated_layers(reference)):
        items = stored.get(layer)
        if items is None:
            group = reference.ents if layer == ENTS else reference.spans[layer]
            items = [(s.start_char, s.end_char, s.label_, s.kb_id_) for s in group]
        spans = []
        for start, end, label, *kb_id in items:
            aligned = align_span(doc, start, end)
            if aligned is not None:
                span = doc.char_span(*aligned, label=label, kb_id=kb_id[0] if kb_id else "")
                assert span is not None  # its ends are those of tokens
                spans.append(span)
        doc.spans[layer] = spans
        if layer == ENTS and len(doc):
            doc.set_ents(filter_spans(spans), default="outside")
    return doc


def run_with_given(
    nlp: Language,
    references: Sequence[Doc],
    finder: RelationFinder,
    on_doc: Callable[[Doc], None],
) -> list[ComparedRelations]:
    """Find the relations of gold Docs between their gold entities.

    nlp (Language): The pipeline. The components that would write the entities are left out.
    references (Sequence[Doc]): Gold Docs, which are not changed.
    finder (RelationFinder): The component.
    on_doc (Callable[[Doc], None]): Called with every predicted Doc, for progress.
    RETURNS (list[ComparedRelations]): The relations of each Doc.
    RAISES (BioclinError): A component has replaced the gold entities.
    """
    compared = []
    with nlp.select_pipes(disable=list(finder.writers)):
        docs = (give_spans(nlp, reference) for reference in references)
        given = ((doc, (get_char_spans(doc, finder.spans_key), i)) for i, doc in enumerate(docs))
        for doc, (before, index) in nlp.pipe(given, as_tuples=True):
            if get_char_spans(doc, finder.spans_key) != before:
                layer = "doc.ents" if finder.spans_key is None else f"doc.spans: {finder.spans_key}"
                raise BioclinError(
                    f"Cannot score {finder.name!r} with the gold entities: a component without "
                    f'`assigns` changes {layer}. Register it with assigns=["doc.ents"] or '
                    'assigns=["doc.spans"]'
                )
            eg = Example(doc, references[index])
            compared.append(compare_relations(eg, finder.relations_key, finder.symmetric))
            on_doc(doc)
    return compared
