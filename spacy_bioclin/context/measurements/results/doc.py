"""Read the results of a Doc: `doc._.results`."""

from collections.abc import Iterator, Sequence

from spacy.tokens import Doc, Span

from ....text import fold_by_char
from ...rules.attributes import SPANS_KEY as CONTEXT_KEY
from ...rules.attributes import has_kind
from ..store import get_finder, get_settings
from .find import make_result_finder
from .names import get_names
from .result import Result

TEST = "TEST"
DRUGS = ("DRUG", "FARMACO", "MEDICATION", "MEDICAMENTO")  # chemicals may be analytes


def install_extensions() -> None:
    """Register `doc._.results`."""
    if not Doc.has_extension("results"):
        Doc.set_extension("results", getter=get_results)


def get_results(doc: Doc) -> tuple[Result, ...]:
    """Get `doc._.results`, in order of their values, from the text and the entities of a Doc.

    Names are those of our lists, and entities labelled TEST of `doc.ents` and any span group. What
    `bioclin_context` calls hypothetical or of the family is left out.

    RETURNS (tuple[Result, ...]): Empty if `bioclin_measurements` did not annotate the Doc.
    """
    settings = get_settings(doc)
    langs = tuple(settings.get("langs") or ())
    if not langs:
        return ()
    finder = make_result_finder(langs, get_finder(langs[0], settings.get("units", {})))
    tests = {(span.start_char, span.end_char) for span in _find_entities(doc, (TEST,))}
    found = finder.find(doc.text, sorted(tests))
    drugs = {token.i for span in _find_entities(doc, DRUGS) for token in span}
    return tuple(one for one in found if not _is_other(doc, one, drugs))


def is_vital(doc: Doc, one: Result) -> bool:
    """Check whether a result is a vital sign."""
    names = get_names(tuple(get_settings(doc).get("langs") or ()))
    return fold_by_char(one.name) in names.vitals


def get_name_span(doc: Doc, one: Result) -> Span:
    """Get the name of a result as a span of whole tokens."""
    span = doc.char_span(one.name_start, one.name_end, alignment_mode="expand")
    assert span is not None  # the offsets are those of the Doc's text
    return span


def _find_entities(doc: Doc, labels: Sequence[str]) -> Iterator[Span]:
    for group in (doc.ents, *(each for key, each in doc.spans.items() if key != CONTEXT_KEY)):
        for span in group:
            if span.label_.upper() in labels:
                yield span


def _is_other(doc: Doc, one: Result, drugs: set[int]) -> bool:
    """Check whether a result is a dose, or the context says that it is none of the patient's."""
    span = get_name_span(doc, one)
    if not drugs.isdisjoint(range(span.start, span.end)):
        return True
    if CONTEXT_KEY not in doc.spans:
        return False
    return has_kind(span, "hypothetical") or has_kind(span, "family")
