"""Read the cues and scopes that a tagger has found, and add those that only rules find."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from spacy.tokens import Doc

from ..errors import BioclinError
from .rules.attributes import CUE, SCOPE, Context, Tokens
from .rules.rule_data import PSEUDO, TRAINED

TRAINED_KINDS = ("negated", "uncertain")  # those of the task nubes-context
LABELS = [kind + part for kind in TRAINED_KINDS for part in (CUE, SCOPE)]


def read_tagged(doc: Doc, key: str, *, where: str) -> Iterator[Context]:
    """Read the cues and scopes of a span group.

    doc (Doc): A Doc with sentences.
    key (str): Key of the group in `doc.spans`.
    where (str): What begins an error message.
    YIELDS (tuple): Kind, rule, cue and scope, see `rules.attributes.make_group`.
    RAISES (BioclinError): A span has another label.
    """
    found: dict[str, list[Tokens]] = defaultdict(list)
    for span in doc.spans[key]:
        if span.label_ not in LABELS:
            raise BioclinError(
                f"{where} doc.spans[{key!r}] has the label {span.label_!r}; want some of "
                f"{', '.join(LABELS)}, as a tagger that was trained on the task nubes-context gives"
            )
        found[span.label_].append((span.start, span.end))
    sentences = [sent.start for sent in doc.sents] if found else []
    for kind in TRAINED_KINDS:
        for cue, scope in join_scopes(found[kind + CUE], found[kind + SCOPE], sentences):
            yield kind, TRAINED, cue, scope


def join_scopes(
    cues: Sequence[Tokens], scopes: Sequence[Tokens], sentences: Sequence[int]
) -> Iterator[tuple[Tokens, Tokens]]:
    """Give each scope to the nearest cue of its sentence.

    In NUBes (Lima López et al. 2020) a scope is next to its cue, or is another item of an
    enumeration. A cue without scope is its own, as "afebril".

    cues, scopes (Sequence[tuple[int, int]]): Those of one kind.
    sentences (Sequence[int]): First token of each sentence, in order.
    YIELDS (tuple[tuple[int, int], tuple[int, int]]): Cue and scope, in the order of the scopes;
        then the cues without one. A scope without cue in its sentence is left out.
    """
    cues = sorted(cues)
    starts = [start for start, _ in cues]
    own = set(cues)
    for scope in sorted(scopes):
        sentence = bisect_right(sentences, scope[0])
        at = bisect_right(starts, scope[0])
        near = [
            (_gap(cue, scope), cue)
            for cue in cues[max(0, at - 1) : at + 1]
            if bisect_right(sentences, cue[0]) == sentence
        ]
        if near:
            # Of equally near ones the first: most cues come before their scope.
            _, cue = min(near)
            own.discard(cue)
            yield cue, scope
    for cue in sorted(own):
        yield cue, cue


def add_rules(tagged: Iterable[Context], by_rules: Iterable[Context]) -> Iterator[Context]:
    """Add what only rules find to the cues and scopes of a tagger.

    The tagger's cue and scope stay where both found a cue. If it found no scope, the cue gets that
    of the rule on its right. A tagged cue in a phrase that is no cue is left out, and so is one
    without scope that no rule knows. What rules alone find counts, except in a negated scope of the
    tagger ("sin imagen sugestiva de neumonía").

    tagged (Iterable[tuple]): What `read_tagged` yields.
    by_rules (Iterable[tuple]): Kind, rule, cue and scope that rules have found, of any kinds.
    YIELDS (tuple): The tagger's, then those of rules.
    """
    cues: dict[str, dict[Tokens, list[Context]]] = defaultdict(dict)
    for one in by_rules:
        cues[one[0]].setdefault(one[2], []).append(one)
    known = {kind: _Places(of_kind) for kind, of_kind in cues.items()}
    none = _Places(())
    kept = []
    for kind, rule, cue, scope in tagged:
        own = known.get(kind, none).overlapping(cue)
        is_alone = cue == scope
        if known.get(PSEUDO, none).overlapping(cue) or (is_alone and not own):
            continue
        right = [
            found[3]
            for place in own
            for found in cues[kind][place]
            if found[3] is not None and found[3][0] >= place[1]
        ]
        kept += [(kind, rule, cue, place) for place in (right if is_alone and right else [scope])]
    yield from kept
    of_tagger = {kind: _Places(one[2] for one in kept if one[0] == kind) for kind in TRAINED_KINDS}
    denied = _Places(one[3] for one in kept if one[0] == "negated" and one[3] is not None)
    for kind in TRAINED_KINDS:
        for cue, found in cues.get(kind, {}).items():
            if not of_tagger[kind].overlapping(cue) and not denied.overlapping(cue):
                yield from found


class _Places:
    """Spans of tokens in order, to find those that overlap another one."""

    def __init__(self, places: Iterable[Tokens]) -> None:
        self.places = sorted(set(places))
        furthest = 0
        self.reach = [furthest := max(furthest, end) for _, end in self.places]

    def overlapping(self, place: Tokens) -> list[Tokens]:
        """Find the spans that share a token with another one."""
        start, end = place
        found = []
        at = bisect_left(self.places, (end,)) - 1
        while at >= 0 and self.reach[at] > start:
            if self.places[at][1] > start:
                found.append(self.places[at])
            at -= 1
        return found[::-1]


def _gap(one: Tokens, other: Tokens) -> int:
    """Count the tokens between two spans."""
    return max(0, other[0] - one[1], one[0] - other[1])
