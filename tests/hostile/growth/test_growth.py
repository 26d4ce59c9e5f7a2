"""Nothing takes time that grows faster than its input, whatever is in it.

By default the lines of Python that run are counted. The slow tests ask the clock of the processor
too, which sees what C does: searches in lists, slices, regular expressions.
"""

import itertools
import random
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache, partial
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_bioclin.corpora.docs import make_gold_doc, overlaps
from spacy_bioclin.deid import make_pipeline
from spacy_bioclin.deid.detect.known_patient import find_known
from spacy_bioclin.deid.merge import choose_labels, merge_spans
from spacy_bioclin.deid.spans import PhiSpan
from spacy_bioclin.encoders.windows import cut_windows
from spacy_bioclin.evaluation.confusion import align
from spacy_bioclin.evaluation.spans import relaxed_match
from spacy_bioclin.linking.names.composites import split_composite
from spacy_bioclin.linking.names.normalize import name_key
from spacy_bioclin.ner.ents import choose_spans
from spacy_bioclin.runner.leaks import Hidden
from spacy_bioclin.spans import get_probabilities, install_extensions, set_spans
from spacy_bioclin.text import FoldedText, find_values
from spacy_bioclin.tokenization.defined_abbreviations import (
    expand_abbreviations,
    find_abbreviations,
    find_short_forms,
)
from spacy_bioclin.tokenization.rules import RULES
from spacy_bioclin.tokenization.sentences import sentence_starts
from spacy_bioclin.types import AnnotatedText, SpanAnnotation

from .measure import MAX_CLOCK_RATIO, MAX_RATIO, Subject, count_growth, time_growth

OURS = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
SYLLABLES = ["ba", "ce", "di", "fo", "gu", "la", "me", "ni", "po", "ru", "ta", "ve"]
DAY = date(1901, 1, 1)
LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def name(i: int) -> str:
    """Make a capitalised word, another one for each number below 20,000."""
    return "".join(SYLLABLES[i // 12**k % 12] for k in range(4)).capitalize()


# Notes of n characters or more, in which each value is another one, or the same.
DISTINCT: dict[str, Callable[[int], str]] = {
    "dates": lambda i: f"{(DAY + timedelta(i % 60_000)):%d/%m/%Y} ",
    "e-mails": lambda i: f"ab{i}@cd.es ",
    "names": lambda i: f"Dr. {name(i)} {name(i * 7 + 1)}, ",
    "record ids": lambda i: f"NHC: {100_000 + 7 * i} ",
    "short ids": lambda i: f"NHC: {100 + i % 900} ",
    "phones": lambda i: f"Tel. 96{1_000_000 + 7 * i:07d} ",
    "dni": lambda i: f"DNI {10_000_000 + i}{LETTERS[(10_000_000 + i) % 23]} ",
    "streets": lambda i: f"Calle {name(i)}, {i}, 28013 Madrid\n",
    "towns": lambda i: f"Vive en {name(i)}. ",
    "hospitals": lambda i: f"Hospital {name(i)}. ",
    "ages": lambda i: f"{i % 90} años, ",
    "urls": lambda i: f"http://{name(i)}.es/{i} ",
    "masks": lambda i: f"[FECHAS] {i % 28 + 1}/03/20{i % 100:02d} ",
    "numbered masks": lambda i: f"[FECHAS {i}] ",
}
REPEATED = {
    "e-mails": "ab@cd.es ",
    "glued names": "AnaGarcía ",
    "glued dates": "García12/03/2020",
    "round brackets": "(",
    "square brackets": "[",
    "pairs": "[A 1]",
    "lines": "\n",
    "carriage returns": "\r",
    "tabs": "\t",
    "blanks": " ",
    "one word": "a",
    "one number": "1",
    "accents": "a\u0301",
    "nothing visible": "\u200b",
    "hyphens": "a-",
    "dots": ".",
    "stops": "A. ",
    "abbreviations": "virus (VIH) ",
    "colons": "Nombre: ",
    "ligatures": "ß",
    "soft hyphens": "\u00ad\n",
    "chinese": "病人",
}
FIRST = "Paciente: Ana García. "


def distinct(kind: str, n: int) -> str:
    size = len(DISTINCT[kind](1000))
    return FIRST + "".join(map(DISTINCT[kind], range(n // size + 1)))


def repeated(kind: str, n: int) -> str:
    return FIRST + REPEATED[kind] * (n // len(REPEATED[kind]) + 1)


TEXTS = {
    **{f"distinct {kind}": partial(distinct, kind) for kind in DISTINCT},
    **{f"many {kind}": partial(repeated, kind) for kind in REPEATED},
}


# Nine hundred ids use up all surrogates of three digits: both sizes have more.
SIZES = {"distinct short ids": 10_000}


@cache
def pipeline(lang: str, operator: str) -> Language:
    return make_pipeline(lang, rules_only=True, policy={"default": operator}, key=b"k" * 32)


@cache
def blank() -> Language:
    nlp = spacy.blank("es", config=OURS)
    nlp.max_length = 2**31
    return nlp


def check_lines(subjects: dict[str, Subject]) -> None:
    found = {name: count_growth(subject) for name, subject in subjects.items()}
    wrong = {name: ratio for name, ratio in found.items() if ratio >= MAX_RATIO}
    assert not wrong, "4 n takes so many times as many lines"


def check_seconds(subjects: dict[str, Subject]) -> None:
    found = {name: time_growth(subject) for name, subject in subjects.items()}
    wrong = {name: one for name, one in found.items() if one[1][-1] >= MAX_CLOCK_RATIO}
    assert not wrong, "n, and how many times as long 16 n takes"


# Texts whose work is not in C alone. For URLs, each note has a fixed cost that hides all else.
LINES = [text for text in TEXTS if text.startswith("distinct") and text != "distinct urls"]
LINES += [f"many {kind}" for kind in ("glued names", "pairs", "abbreviations", "soft hyphens")]


@pytest.mark.parametrize("part", range(3))
def test_lines_of_deid_are_linear(part: int) -> None:
    nlp = pipeline("es", "surrogate")
    check_lines({text: Subject(TEXTS[text], nlp, 300) for text in LINES[part::3]})


OPERATORS = [("en", "surrogate"), ("es", "mask"), ("es", "hash"), ("en", "encrypt")]
full = pytest.mark.full


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_time_of_deid_is_linear(part: int) -> None:
    nlp = pipeline("es", "surrogate")
    texts = [*TEXTS][part::3]
    check_seconds({text: Subject(TEXTS[text], nlp, SIZES.get(text, 1000)) for text in texts})


# By turns, each operator with a quarter of the texts; all of them only on demand.
@pytest.mark.slow
@pytest.mark.parametrize("turn", [0, *(pytest.param(i, marks=full) for i in (1, 2, 3))])
@pytest.mark.parametrize("number", range(4))
def test_every_operator_is_linear(number: int, turn: int) -> None:
    nlp = pipeline(*OPERATORS[number])
    texts = [*TEXTS][(number + turn) % 4 :: 4]
    check_seconds({text: Subject(TEXTS[text], nlp, SIZES.get(text, 1000)) for text in texts})


def random_spans(n: int, longest: int = 12) -> list[PhiSpan]:
    drawn = random.Random(0)
    starts = [drawn.randrange(8 * n) for _ in range(n)]
    return [
        PhiSpan(start, start + drawn.randint(1, longest), f"L{i % 3}", drawn.random(), f"d{i % 9}")
        for i, start in enumerate(starts)
    ]


def nested_spans(n: int) -> list[PhiSpan]:
    return [PhiSpan(i, 2 * n - i, f"L{i % 3}", i % 7 / 7, f"d{i % 9}") for i in range(n)]


def covered_spans(n: int) -> list[PhiSpan]:
    small = [PhiSpan(8 * i, 8 * i + 5, f"L{i % 3}", 0.9, "x") for i in range(n // 2)]
    return small + [PhiSpan(i, 8 * n, f"L{i % 3}", 0.5, f"d{i % 9}") for i in range(n // 2)]


def merge(spans: list[PhiSpan]) -> list[PhiSpan]:
    text = "abc, de " * (max(span.end for span in spans) // 8 + 1)
    return merge_spans(spans, text, overlaps="confident", keeps=lambda span: span.label == "L2")


def choose(spans: list[PhiSpan]) -> list[PhiSpan]:
    both = frozenset({"L0", "L1"})
    return choose_labels([(s, both if s.label == "L2" else frozenset({s.label})) for s in spans])


def sides(spans: list[PhiSpan]) -> tuple[set[Any], set[Any]]:
    found = [(span.start, span.end, "X") for span in spans]
    return set(found[::2]), set(found[1::2])


def make_doc(n: int) -> Doc:
    return Doc(blank().vocab, words=["uno", "dos"] * (n // 2 + 1))


def keep_probabilities(doc: Doc) -> None:
    ents = [Span(doc, i, i + 1, "A") for i in range(0, len(doc), 2)]
    set_spans(doc, None, ents, [0.5] * len(ents))
    set_spans(doc, "phi", ents, [0.5] * len(ents))
    assert get_probabilities(doc, None) == [0.5] * len(ents)


def look_for_probabilities(doc: Doc) -> None:
    """Read the probabilities of entities that have none, beside a group of other spans."""
    install_extensions()
    spans = [Span(doc, i, i + 1, "A") for i in range(0, len(doc), 2)]
    doc.set_ents(spans)
    doc.spans["phi"] = [Span(doc, i, i + 2, "B") for i in range(0, len(doc) - 2, 2)]
    doc.spans["phi"].attrs["scores"] = [0.5] * len(doc.spans["phi"])
    assert get_probabilities(doc, None) == [None] * len(spans)


def annotated(n: int) -> AnnotatedText:
    spans = [
        SpanAnnotation(f"T{i}", "A", ((j, j + k),), "", ())
        for i, (j, k) in enumerate(itertools.product(range(0, 4 * n, 8), (3, 7)))
    ]
    return AnnotatedText("1", "uno dos " * n, tuple(spans))


def short_forms(n: int) -> tuple[str, dict[str, str]]:
    shorts = {name(i).upper(): f"forma larga {i}" for i in range(n)}
    return " ".join(shorts), shorts


def linked(made: tuple[str, dict[str, str]]) -> None:
    text, shorts = made
    assert len(find_short_forms(text, shorts)) == len(shorts)
    expand_abbreviations(text, shorts)


def hidden(n: int) -> tuple[str, list[tuple[str, str]]]:
    values = [("name", f"Marta {name(i)}") for i in range(n)]
    values += [("id", f"{100_000 + 7 * i}") for i in range(n)]
    return " ".join(value.lower() + "x" for _, value in values), values


def find_hidden(made: tuple[str, list[tuple[str, str]]]) -> None:
    text, values = made
    search = Hidden(values, "es")
    search.find_in_note(text)
    search.find([value for _, value in values])


def patient(n: int) -> tuple[str, dict[str, Any]]:
    known = {
        "names": [f"{name(i)} {name(2 * i)}" for i in range(min(n, 50))],
        "identifiers": [f"{100_000 + 7 * i}" for i in range(n)] + [f"{i}" for i in range(100, 999)],
        "phones": [f"96{1_000_000 + 7 * i:07d}" for i in range(n // 4)],
        "emails": [f"ab{i}@cd.es" for i in range(n)],
    }
    return " ".join(f"x{i} 9612345 ab@cd.es {name(i)}" for i in range(n)), known


SUBJECTS = {
    "merge of random spans": Subject(random_spans, merge, 200),
    "merge of long spans": Subject(partial(random_spans, longest=500), merge, 200),
    "merge of nested spans": Subject(nested_spans, merge, 100),
    "merge of covered spans": Subject(covered_spans, merge, 100),
    "labels of nested spans": Subject(nested_spans, choose, 100),
    "labels of random spans": Subject(random_spans, choose, 100),
    "relaxed match": Subject(lambda n: sides(random_spans(n)), lambda s: relaxed_match(*s), 200),
    "relaxed match, nested": Subject(
        lambda n: sides(nested_spans(n)), lambda s: relaxed_match(*s), 200
    ),
    "confusion, one long span": Subject(
        lambda n: sides([*random_spans(n), PhiSpan(0, 8 * n, "A", 1, "x")]),
        lambda s: align(*s),
        200,
    ),
    "gold overlaps": Subject(lambda n: [s[:3] for s in random_spans(n)], overlaps, 200),
    "gold overlaps, nested": Subject(lambda n: [s[:3] for s in nested_spans(n)], overlaps, 200),
    "gold doc": Subject(annotated, lambda made: make_gold_doc(blank(), made), 100),
    "probabilities": Subject(make_doc, keep_probabilities, 200),
    "no probabilities": Subject(make_doc, look_for_probabilities, 200),
    "short forms": Subject(short_forms, linked, 50),
    "hidden values": Subject(hidden, find_hidden, 20),
    "known patient": Subject(patient, lambda m: find_known(m[0], m[1], lang="es"), 20),
    "windows": Subject(lambda n: n, lambda n: cut_windows(n, *[[0]] * 2, size=8, overlap=2), 500),
    "best entities": Subject(
        lambda n: [(i, 2 * n - i) for i in range(n)],
        lambda v: choose_spans(v, [i / len(v) for i, _ in v], ["A"] * len(v)),
        400,
    ),
    "find values": Subject(
        lambda n: [("A", f"{name(i)} {i}") for i in range(n)],
        lambda v: find_values(v, " ".join(value for _, value in v)),
        50,
    ),
    "nested values": Subject(
        lambda n: [("A", "ab " * i) for i in range(int(n**0.5))],
        lambda v: find_values(v, "ab " * (len(v) ** 2)),
        400,
    ),
}


def test_lines_are_linear() -> None:
    blank()
    check_lines(SUBJECTS)


@pytest.mark.slow
def test_time_is_linear() -> None:
    check_seconds(SUBJECTS)


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["es", "en"])
def test_reading_a_text_is_linear(lang: str) -> None:
    def read(made: str) -> None:
        blank()(made)
        sentence_starts(made, RULES[lang])
        find_abbreviations(made)
        FoldedText(made).lower.islower()
        name_key(made)
        split_composite(made, lang)

    kinds = [*REPEATED][["es", "en"].index(lang) :: 2]
    check_seconds({kind: Subject(TEXTS[f"many {kind}"], read, 1000) for kind in kinds})


def test_growth_is_seen() -> None:
    """Of loops in Python by the lines that run."""

    def look_at_pairs(n: int) -> None:
        for i in range(n):
            any(j < 0 for j in range(i))

    assert count_growth(Subject(lambda n: n, look_at_pairs, 50)) > MAX_RATIO
