"""Score cues, scopes and the attributes of entities such as `span._.negated`."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span
from spacy.training import Example

from ..errors import BioclinError
from ..types import CharSpan
from .spans import Counts, SpanScores, score_spans

ATTRIBUTES = ("negated", "uncertain", "historical", "hypothetical", "family")
WORD = re.compile(r"\w+|[^\w\s]")
MARKS = " .,;:()?¿-\r\n\t"  # ignored at both ends of a scope

# Text, gold spans and predicted spans of a document.
Scored = tuple[str, Iterable[CharSpan], Iterable[CharSpan]]


class Cue(NamedTuple):
    """A cue with its scopes, by characters (start, end).

    kind (str): "negated", "uncertain" or another kind.
    scopes (frozenset): The parts of its scope; empty for a word like "afebril" that has none.
    """

    kind: str
    start: int
    end: int
    scopes: frozenset[tuple[int, int]]


def score_cues(docs: Iterable[tuple[str, Iterable[Cue], Iterable[Cue]]]) -> dict[str, SpanScores]:
    """Score cues and scopes in four ways, by kind.

    docs (Iterable[tuple]): Text, gold cues and predicted cues of each document.
    RETURNS (dict[str, SpanScores]): "cues": exact offsets. "scopes": exact offsets of each part of
        a scope, without the marks and blanks at its ends, whatever its cue is. "tokens": words in
        these scopes, see `score_words`. "cue_and_scope": cues with exact offsets and exactly their
        scopes, which is the "full negation" of the shared task *SEM 2012 (Morante and Blanco 2012)
        without negated events. It is the strictest of the four: a scope counts only with its cue,
        and a wrong scope makes its cue wrong as well.
    """
    cues, scopes, words, whole = [], [], [], []
    for text, *sides in docs:
        gold, found = [[_trim(text, cue) for cue in side] for side in sides]
        cues.append((_places(gold), _places(found)))
        scopes.append((_parts(gold), _parts(found)))
        words.append((text, _parts(gold), _parts(found)))
        whole.append((_with_scopes(gold), _with_scopes(found)))
    return {
        "cues": score_spans(cues),
        "scopes": score_spans(scopes),
        "tokens": score_words(words),
        "cue_and_scope": score_spans(whole),
    }


def _trim(text: str, cue: Cue) -> Cue:
    scopes = set()
    for start, end in cue.scopes:
        part = text[start:end]
        start += len(part) - len(part.lstrip(MARKS))
        end -= len(part) - len(part.rstrip(MARKS))
        scopes.add((start, max(start, end)))
    return cue._replace(scopes=frozenset(scopes))


def _places(cues: Iterable[Cue]) -> set[CharSpan]:
    return {(cue.start, cue.end, cue.kind) for cue in cues}


def _parts(cues: Iterable[Cue]) -> set[CharSpan]:
    return {(start, end, cue.kind) for cue in cues for start, end in cue.scopes}


def _with_scopes(cues: Iterable[Cue]) -> set[Any]:
    return {((cue.start, cue.end), cue.scopes, cue.kind) for cue in cues}


def score_words(docs: Iterable[Scored]) -> SpanScores:
    """Score spans by the words in them: a scope that is half right counts by half.

    docs (Iterable[tuple]): Text, gold spans and predicted spans of each document. Spans of one
        label may overlap; a word counts once for each label. Marks count as words.
    RETURNS (SpanScores): Counts of words per document and label.
    """
    return score_spans([(_words(text, gold), _words(text, found)) for text, gold, found in docs])


def _words(text: str, spans: Iterable[CharSpan]) -> set[CharSpan]:
    return {
        (word.start(), word.end(), label)
        for start, end, label in spans
        for word in WORD.finditer(text, start, end)
    }


def context_score(
    examples: Iterable[Example], *, attributes: Iterable[str] = ATTRIBUTES, **kwargs: Any
) -> dict[str, Any]:
    """Compute precision, recall and F1 of the attributes of the gold entities.

    The predicted Doc is asked for the attributes of the gold entities, so that what another
    component missed does not count. A gold entity has the attributes that its extension says
    (`ent._.negated`), stored or computed from the Doc's spans.

    examples (Iterable[Example]): The Examples, which are not changed.
    attributes (Iterable[str]): Names of extensions; those that are not registered are left out.
    RETURNS (dict[str, Any]): For each attribute `context_negated_p`, `_r` and `_f`; `context_f` is
        the mean F1 of the attributes that some gold entity has. None if there is no such one.
    RAISES (BioclinError): A predicted Doc has another text than its reference.
    """
    names = [name for name in attributes if Span.has_extension(name)]
    counts = dict.fromkeys(names, Counts(0, 0, 0))
    for eg in examples:
        gold = _flags(eg.reference, eg.reference, names)
        predicted = _flags(eg.reference, eg.predicted, names)
        for name in names:
            of_doc = Counts.of_sets(gold[name], predicted[name])
            counts[name] = Counts.total((counts[name], of_doc))
    scores: dict[str, Any] = {}
    for name, count in counts.items():
        has_gold = count.tp + count.fn > 0
        for key, value in count.prf().items():
            scores[f"context_{name}_{key}"] = value if has_gold else None
    known = [scores[f"context_{name}_f"] for name in names]
    known = [value for value in known if value is not None]
    return {"context_f": sum(known) / len(known) if known else None, **scores}


def _flags(reference: Doc, doc: Doc, names: Iterable[str]) -> dict[str, set[tuple[int, int]]]:
    """Find the gold entities that have each attribute in a Doc."""
    if reference.text != doc.text:
        raise BioclinError(
            "cannot score attributes: predicted and reference Doc hold different texts; make the "
            "predicted Doc with nlp.make_doc(reference.text)"
        )
    flags: dict[str, set[tuple[int, int]]] = {name: set() for name in names}
    for ent in reference.ents:
        place = ent.start_char, ent.end_char
        span = ent if doc is reference else doc.char_span(*place, alignment_mode="expand")
        for name in flags:
            if span is not None and span._.get(name):
                flags[name].add(place)
    return flags


def make_context_scorer(attributes: Iterable[str] = ATTRIBUTES) -> Callable[..., dict[str, Any]]:
    """Make a scorer for the attributes of entities: `spacy-bioclin.context_scorer.v1`.

    attributes (Iterable[str]): Names of extensions.
    RETURNS (Callable): `context_score` for these attributes, which can be pickled.
    """
    return partial(context_score, attributes=tuple(attributes))
