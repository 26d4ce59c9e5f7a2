"""What `doc.spans["context"]` says about a span: `span._.negated` and the other attributes.

The group holds each cue (label "negated_cue") and each scope ("negated_scope"); `span.id_` is the
rule's name and a number that a cue and its scopes share. The attributes are read from the group, so
they hold for entities, for the spans of any group and for spans that are made later, and they stay
where the group stays.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

from spacy.tokens import Doc, Span, SpanGroup

from .rule_data import KINDS, SECTION, TRAINED

SPANS_KEY = "context"
CUE, SCOPE = "_cue", "_scope"  # what follows the kind in a label
OF_LABELS = re.compile(rf"{SECTION} \((.+)\)")  # rule of a section that holds for some labels

Tokens = tuple[int, int]  # first token, and the token after the last
Context = tuple[str, str, Tokens, Tokens | None]


class Modifier(NamedTuple):
    """Why a span has an attribute.

    kind (str): The attribute: "negated", "uncertain", "historical", "hypothetical" or "family".
    rule (str): Name of the rule: its phrase, if it has no other name; "section" for a section,
        "section (PROCEDURE, TEST)" if it holds for some labels.
    cue (Span): The words of the rule, or the section's title.
    scope (Span): What the rule holds for.
    source (str): What found it: "rules" or "trained".
    """

    kind: str
    rule: str
    cue: Span
    scope: Span
    source: str


class _Scope(NamedTuple):
    """A scope by tokens [start, end), its cue, and the labels that it holds for; () for all."""

    start: int
    end: int
    cue_start: int
    cue_end: int
    rule: str
    labels: tuple[str, ...]


class _Index(NamedTuple):
    """The scopes of a group in order of their starts.

    group (SpanGroup), size (int): The group, and its size when it was read.
    scopes (dict): (kind, whether it is of a section) -> scopes.
    reach (dict): The same key -> greatest end of each scope and those before it.
    """

    group: SpanGroup
    size: int
    scopes: dict[tuple[str, bool], list[_Scope]]
    reach: dict[tuple[str, bool], list[int]]


# Of each Doc that is in use. It holds no span, which would keep the Doc.
_INDEXES: "WeakKeyDictionary[Doc, _Index]" = WeakKeyDictionary()


def install_extensions() -> None:
    """Register `span._.negated`, one attribute for each other kind, and `span._.context`."""
    for kind in KINDS:
        if not Span.has_extension(kind):
            Span.set_extension(kind, getter=partial(has_kind, kind=kind))
    if not Span.has_extension("context"):
        Span.set_extension("context", getter=get_modifiers)


def has_kind(span: Span, kind: str) -> bool:
    """Check whether a span has an attribute.

    span (Span): An entity or any other span.
    kind (str): One of KINDS.
    RETURNS (bool): False if `bioclin_context` did not run. What never was, or was somebody else's,
        is not historical: "no previous stroke", "father MI 2010".
    """
    if kind == "historical" and (has_kind(span, "negated") or has_kind(span, "family")):
        return False
    return any(True for _ in _covering(span, kind))


def get_modifiers(span: Span) -> list[Modifier]:
    """Get every cue that gives a span an attribute, in the order of KINDS and of the text.

    span (Span): An entity or any other span.
    RETURNS (list[Modifier]): Empty if there is none.
    """
    doc = span.doc
    return [
        Modifier(
            kind,
            scope.rule,
            Span(doc, scope.cue_start, scope.cue_end, label=kind + CUE),
            Span(doc, scope.start, scope.end, label=kind + SCOPE),
            TRAINED if scope.rule == TRAINED else "rules",
        )
        for kind in KINDS
        if has_kind(span, kind)
        for scope in _covering(span, kind)
    ]


def make_group(doc: Doc, found: Iterable[Context]) -> None:
    """Write cues and scopes to `doc.spans["context"]`, replacing what is there.

    doc (Doc): The Doc.
    found (Iterable[tuple]): Kind, rule, cue and scope; None for a cue without scope. Cue and scope
        are tokens (start, end).
    """
    spans: list[Span] = []
    numbers: dict[tuple[str, str, Tokens], int] = {}
    for kind, rule, cue, scope in found:
        n_known = len(numbers)
        number = numbers.setdefault((kind, rule, cue), n_known + 1)
        span_id = f"{rule}#{number}"
        if number > n_known:
            spans.append(Span(doc, *cue, label=kind + CUE, span_id=span_id))
        if scope is not None:
            spans.append(Span(doc, *scope, label=kind + SCOPE, span_id=span_id))
    doc.spans[SPANS_KEY] = spans


def _covering(span: Span, kind: str) -> Iterable[_Scope]:
    """Find the scopes that a span is in.

    A span is in a scope if they share a token and the span does not begin before a cue that is in
    the span and on the left of its scope: "ausencia de fiebre" is negated as a whole, "anemia sin
    criterios de transfusión" is not.
    """
    index = _index_of(span.doc)
    if index is None:
        return
    for key in ((kind, False), (kind, True)):
        scopes = index.scopes.get(key)
        if not scopes:
            continue
        reach = index.reach[key]
        found = []
        at = bisect_left(scopes, (span.end,)) - 1
        while at >= 0 and reach[at] > span.start:
            scope = scopes[at]
            of_label = not scope.labels or span.label_ in scope.labels
            inside = scope.end > span.start and not span.start < scope.cue_start < scope.start
            if inside and of_label:
                found.append(scope)
            at -= 1
        yield from reversed(found)


def _index_of(doc: Doc) -> _Index | None:
    if SPANS_KEY not in doc.spans:
        return None
    group = doc.spans[SPANS_KEY]
    index = _INDEXES.get(doc)
    if index is None or index.group is not group or index.size != len(group):
        index = _INDEXES[doc] = _make_index(group)
    return index


def _make_index(group: SpanGroup) -> _Index:
    cues: dict[tuple[str, str], tuple[int, int]] = {}
    scopes: dict[tuple[str, bool], list[_Scope]] = defaultdict(list)
    for span in group:
        if span.label_.endswith(CUE):
            cues[span.label_.removesuffix(CUE), span.id_] = span.start, span.end
    for span in group:
        if span.label_.endswith(SCOPE):
            kind = span.label_.removesuffix(SCOPE)
            rule = span.id_.rpartition("#")[0]
            cue = cues.get((kind, span.id_), (span.start, span.start))
            of_labels = OF_LABELS.fullmatch(rule)
            labels = tuple(of_labels[1].split(", ")) if of_labels else ()
            is_section = rule == SECTION or bool(of_labels)
            scope = _Scope(span.start, span.end, *cue, rule, labels)
            scopes[kind, is_section].append(scope)
    reach = {}
    for key, of_kind in scopes.items():
        of_kind.sort()
        furthest = 0
        reach[key] = [furthest := max(furthest, scope.end) for scope in of_kind]
    return _Index(group, len(group), dict(scopes), reach)
