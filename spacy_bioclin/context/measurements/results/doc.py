"""Read the results of a Doc: `doc._.results`."""

from collections.abc import Iterator

from spacy.tokens import Doc, Span

from ...rules.attributes import SPANS_KEY as CONTEXT_KEY
from ...rules.attributes import has_kind
from ..store import get_finder, get_settings
from .find import make_result_finder
from .result import Result

TEST, TEST_VALUE = "TEST", "TEST_VALUE"


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
    tests = sorted({(span.start_char, span.end_char) for span in _find_entities(doc, TEST)})
    found = finder.find(doc.text, tests)
    return tuple(one for one in found if not _is_other(doc, one))


def _find_entities(doc: Doc, label: str) -> Iterator[Span]:
    for group in (doc.ents, *(each for key, each in doc.spans.items() if key != CONTEXT_KEY)):
        for span in group:
            if span.label_.upper() == label:
                yield span


def _is_other(doc: Doc, one: Result) -> bool:
    """Check whether the context says that a result is none of the patient's."""
    if CONTEXT_KEY not in doc.spans:
        return False
    span = doc.char_span(one.name_start, one.name_end, alignment_mode="expand")
    return span is not None and (has_kind(span, "hypothetical") or has_kind(span, "family"))
