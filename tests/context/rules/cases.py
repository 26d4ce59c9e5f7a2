"""Make pipelines and read cases of one line: "sin [fiebre]" marks a mention."""

import re
from functools import cache

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

MENTION = re.compile(r"\[([^\]]*)\]")


@cache
def make_nlp(lang: str) -> Language:
    """A pipeline with sentences and context."""
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    nlp = spacy.blank(lang, config={"nlp": {"tokenizer": tokenizer}})
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("bioclin_context")
    return nlp


def mentions(lang: str, marked: str) -> list[Span]:
    """Annotate "sin [fiebre]" without the brackets, and make a span of what is in each."""
    text, places = "", []
    for i, part in enumerate(MENTION.split(marked)):
        if i % 2:
            places.append((len(text), len(text) + len(part)))
        text += part
    doc = make_nlp(lang)(text)
    return [char_span(doc, *place) for place in places]


def char_span(doc: Doc, start: int, end: int) -> Span:
    span = doc.char_span(start, end, label="X")
    assert span is not None, doc.text[start:end]
    return span


def check(lang: str, kind: str, cases: list[tuple[str, str]]) -> None:
    """Compare an attribute of the mentions of each text with "+-": one sign a mention."""
    wrong = []
    for marked, expected in cases:
        signs = ["+" if span._.get(kind) else "-" for span in mentions(lang, marked)]
        if "".join(signs) != expected:
            wrong.append((marked, "".join(signs)))
    assert not wrong, wrong
