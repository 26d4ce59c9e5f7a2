"""Count which labels are confused, and find the most frequent errors."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import repeat
from typing import NamedTuple

from ..types import CharSpan

# A reference span and the predicted span that is aligned with it; None if missed or spurious.
Pair = tuple[CharSpan | None, CharSpan | None]


class LayerDoc(NamedTuple):
    """The reference and the predicted spans of one layer of a document.

    id (str): Id of the document in its corpus.
    text (str): The untouched text.
    reference (set[CharSpan]): Gold spans, with the exact offsets of the corpus.
    predicted (set[CharSpan]): Spans of the pipeline.
    labels (frozenset[str] | None): Labels that the document was annotated for; None for all.
    """

    id: str
    text: str
    reference: set[CharSpan]
    predicted: set[CharSpan]
    labels: frozenset[str] | None = None


class ErrorKind(NamedTuple):
    """A kind of error.

    kind (str): "missed", "spurious", "label" (offsets agree), "boundary" (label agrees) or "both".
    reference (str | None): Label of the reference span, if there is one.
    predicted (str | None): Label of the predicted span, if there is one.
    """

    kind: str
    reference: str | None
    predicted: str | None


class ErrorExample(NamedTuple):
    """An error: the document and the pair of spans."""

    doc: LayerDoc
    pair: Pair


def align(reference: Collection[CharSpan], predicted: Collection[CharSpan]) -> list[Pair]:
    """Pair the spans of a document, each at most once, even if their labels differ.

    Equal spans are paired first, then those that share the most characters; among these first those
    with the closest offsets, then with equal labels, then the leftmost.

    RETURNS (list[Pair]): Every span once, in the order of the text.
    """
    pairs: list[Pair] = [(span, span) for span in set(reference) & set(predicted)]
    left, right = set(reference) - set(predicted), set(predicted) - set(reference)

    def cost(pair: tuple[CharSpan, CharSpan]) -> tuple[int, int, bool, CharSpan, CharSpan]:
        (s1, e1, label1), (s2, e2, label2) = pair
        shared = min(e1, e2) - max(s1, s2)
        return -shared, abs(s1 - s2) + abs(e1 - e2), label1 != label2, *pair

    for gold, system in sorted(_overlapping(left, right), key=cost):
        if gold in left and system in right:
            pairs.append((gold, system))
            left.remove(gold)
            right.remove(system)
    pairs += [(gold, None) for gold in left]
    pairs += [(None, system) for system in right]
    return sorted(pairs, key=lambda pair: (pair[0] or pair[1], pair[1] or pair[0]))


def _overlapping(left: set[CharSpan], right: set[CharSpan]) -> Iterator[tuple[CharSpan, CharSpan]]:
    begun: tuple[list[tuple[int, CharSpan]], ...] = ([], [])  # per side, the first to end on top
    for (start, end, label), side in sorted([*zip(left, repeat(0)), *zip(right, repeat(1))]):
        for spans in begun:
            while spans and spans[0][0] <= start:
                heappop(spans)
        span = start, end, label
        yield from ((span, other) if side == 0 else (other, span) for _, other in begun[1 - side])
        heappush(begun[side], (end, span))


def confusion(docs: Iterable[LayerDoc]) -> Counter[tuple[str | None, str | None]]:
    """Count the aligned spans by (reference label, predicted label).

    RETURNS (Counter): Counts, also of (label, None) for missed and (None, label) for spurious
        spans. A row sums up to the reference spans of its label, a column to the predicted ones.
        Boundaries may differ, so that the diagonal is not the strict score.
    """
    return Counter(
        (gold[2] if gold else None, system[2] if system else None)
        for doc in docs
        for gold, system in align(doc.reference, doc.predicted)
    )


def error_kind(pair: Pair) -> ErrorKind | None:
    """Classify a pair of spans.

    RETURNS (ErrorKind | None): None if offsets and label agree.
    """
    gold, system = pair
    labels = gold[2] if gold else None, system[2] if system else None
    if gold is None or system is None:
        return ErrorKind("spurious" if gold is None else "missed", *labels)
    if gold == system:
        return None
    if gold[2] == system[2]:
        return ErrorKind("boundary", *labels)
    return ErrorKind("label" if gold[:2] == system[:2] else "both", *labels)


def worst_errors(
    docs: Sequence[LayerDoc], *, n_kinds: int, n_examples: int
) -> list[tuple[ErrorKind, int, list[ErrorExample]]]:
    """Find the most frequent kinds of error, with examples.

    docs (Sequence[LayerDoc]): Documents of one layer.
    n_kinds (int): Number of kinds.
    n_examples (int): Number of examples of each kind, the first ones with different texts.
    RETURNS (list[tuple]): Kind, number of errors, examples; most frequent first.
    """
    counts: Counter[ErrorKind] = Counter()
    examples: dict[ErrorKind, dict[str, ErrorExample]] = defaultdict(dict)
    for doc in docs:
        for pair in align(doc.reference, doc.predicted):
            kind = error_kind(pair)
            if kind is None:
                continue
            counts[kind] += 1
            if len(examples[kind]) < n_examples:
                surface = "|".join(doc.text[span[0] : span[1]] for span in pair if span)
                examples[kind].setdefault(surface.casefold(), ErrorExample(doc, pair))
    order = sorted(counts, key=lambda kind: (-counts[kind], *(part or "" for part in kind)))
    return [(kind, counts[kind], list(examples[kind].values())) for kind in order[:n_kinds]]
