"""Merge the overlapping spans of several detectors.

A text is cut where spans begin and end, so that every span is a range of segments, and a segment is
in all of a span or in none of it. Each segment is given away once: the time depends on the number
of spans, not on how many of them overlap.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from .spans import KNOWN_PATIENT, PhiSpan


class Segments:
    """A text, cut where spans begin and end. Segment i is from cuts[i] to cuts[i + 1].

    spans (Iterable[PhiSpan]): Spans of one text.
    """

    def __init__(self, spans: Iterable[PhiSpan]) -> None:
        self.cuts = sorted({offset for start, end, *_ in spans for offset in (start, end)})
        self._number = {cut: i for i, cut in enumerate(self.cuts)}

    def range(self, span: PhiSpan) -> tuple[int, int]:
        """Get the first segment of a span, and the one behind its last."""
        return self._number[span.start], self._number[span.end]


def left(taken: dict[int, int], first: int, behind: int) -> Iterator[int]:
    """List what is left of a range of numbers.

    taken (dict[int, int]): Each number that was taken, and the next one. It is changed, so that the
        next search is short.
    first, behind (int): The range.
    YIELDS (int): The numbers that were not taken, in order. Each may be taken while it is listed.
    """
    at = first
    while at < behind:
        if at in taken:
            passed = [at]
            while (at := taken[at]) in taken:
                passed.append(at)
            if len(passed) > 1:
                taken.update(dict.fromkeys(passed, at))
        else:
            yield at
            at += 1


def choose_labels(spans: Sequence[tuple[PhiSpan, frozenset[str]]]) -> list[PhiSpan]:
    """Give a span whose label may mean several the more specific label of a span that overlaps it.

    spans (Sequence[tuple[PhiSpan, frozenset[str]]]): Spans, and the labels that each may mean.
    RETURNS (list[PhiSpan]): In the same order. The most confident specific span decides: "Dra.
        Remedios Dueñas", found as a name and as one of staff, is staff.
    """
    if all(len(meant) < 2 for _, meant in spans):
        return [span for span, _ in spans]
    segments = Segments(span for span, _ in spans)
    specific = sorted(
        (span for span, meant in spans if len(meant) < 2), key=lambda span: -span.confidence
    )
    least: dict[frozenset[str], _Least] = {}
    chosen = []
    for span, meant in spans:
        label = span.label
        if len(meant) > 1:
            if meant not in least:
                least[meant] = _rank_segments(segments, specific, meant)
            rank = least[meant](*segments.range(span))
            label = specific[rank].label if rank < len(specific) else label
        chosen.append(span._replace(label=label))
    return chosen


def _rank_segments(
    segments: Segments, specific: Sequence[PhiSpan], labels: frozenset[str]
) -> "_Least":
    """Find for each segment the first span that has it and one of some labels."""
    ranks = [len(specific)] * len(segments.cuts)
    taken: dict[int, int] = {}
    for rank, span in enumerate(specific):
        if span.label in labels:
            for i in left(taken, *segments.range(span)):
                taken[i], ranks[i] = i + 1, rank
    return _Least(ranks)


class _Least:
    """Find the least number of any range of a list, in constant time."""

    def __init__(self, values: list[int]) -> None:
        # Row k has the least of every 2**k neighbours.
        self._rows, width = [values], 1
        while 2 * width <= len(values):
            row = self._rows[-1]
            self._rows.append(list(map(min, row, row[width:])))
            width *= 2

    def __call__(self, first: int, behind: int) -> int:
        k = (behind - first).bit_length() - 1
        return min(self._rows[k][first], self._rows[k][behind - (1 << k)])


def merge_spans(
    spans: Iterable[PhiSpan],
    text: str,
    *,
    overlaps: str,
    keeps: Callable[[PhiSpan], bool],
) -> list[PhiSpan]:
    """Merge overlapping PHI spans: one wins, and what it does not cover of the others stays.

    Recall comes first: every character of every span remains in some span. What is hidden wins over
    what is kept, and the patient's own data over what a detector found.
    spans (Iterable[PhiSpan]): Of one text, in any order.
    text (str): Their text. A span without letters and digits is dropped.
    overlaps (str): What wins: the most "confident" span, or the "longest". Ties are decided by the
        other criterion, then by the order in the text.
    keeps (Callable): Whether the policy keeps a span.
    RETURNS (list[PhiSpan]): Sorted, not overlapping. Detectors that agree with the winner on its
        label and overlap it are joined by "+".
    """

    def rank(span: PhiSpan) -> tuple[float, ...]:
        criteria = -span.confidence, span.start - span.end
        first = keeps(span), span.detector != KNOWN_PATIENT
        return (*first, *(criteria if overlaps == "confident" else criteria[::-1]), span.start)

    ranked = sorted((span for span in spans if span.start < span.end), key=rank)
    segments = Segments(ranked)
    taken: dict[int, int] = {}
    # Of each label and detector: the segments whose winners it has joined.
    joined: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    winners: list[PhiSpan] = []
    winner_of: dict[int, int] = {}  # by segment
    for span in ranked:
        first, behind = segments.range(span)
        done = joined[span.label, span.detector]
        for i in left(done, first, behind):
            if i in taken:
                done[i] = i + 1
                at = winner_of.get(i)
                if at is not None:
                    winners[at] = _join(winners[at], span)
        for piece, numbers in _pieces(span, segments, list(left(taken, first, behind))):
            value = text[piece.start : piece.end]
            has_letter = any(map(str.isalnum, value))
            if has_letter or span.start < piece.start < piece.end < span.end:
                taken.update((i, i + 1) for i in numbers)
            if has_letter:
                start, end = piece.end - len(value.lstrip()), piece.start + len(value.rstrip())
                winner_of.update(dict.fromkeys(numbers, len(winners)))
                winners.append(PhiSpan(start, end, *piece[2:]))
    return sorted(winners)


def _join(winner: PhiSpan, span: PhiSpan) -> PhiSpan:
    """Name the detectors of a span in the winner, if they agree on the label and overlap."""
    if winner.label != span.label or winner.start >= span.end or span.start >= winner.end:
        return winner
    known = winner.detector.split("+")
    new = [name for name in span.detector.split("+") if name not in known]
    return winner._replace(detector="+".join([*known, *new])) if new else winner


def _pieces(
    span: PhiSpan, segments: Segments, numbers: Sequence[int]
) -> Iterator[tuple[PhiSpan, Sequence[int]]]:
    """Join neighbouring segments of a span to pieces.

    YIELDS (tuple[PhiSpan, Sequence[int]]): A piece and its segments.
    """
    begin = 0
    for i, number in enumerate(numbers, 1):
        if i == len(numbers) or numbers[i] > number + 1:
            start, end = segments.cuts[numbers[begin]], segments.cuts[number + 1]
            yield PhiSpan(start, end, *span[2:]), numbers[begin:i]
            begin = i


class Places:
    """Places of a text that do not overlap.

    places (Iterable): Start and end of each, and perhaps more, in any order.
    """

    def __init__(self, places: Iterable[PhiSpan | tuple[int, int] | tuple[int, int, str]]) -> None:
        bounds = sorted((start, end) for start, end, *_ in places if start < end)
        self._starts, self._ends = [start for start, _ in bounds], [end for _, end in bounds]

    def _range(self, start: int, end: int) -> tuple[int, int]:
        """Find the first place that overlaps, and the one behind the last; no place if equal."""
        return bisect_right(self._ends, start), bisect_left(self._starts, end)

    def touch(self, start: int, end: int) -> bool:
        """Check whether one of the places overlaps with another."""
        first, behind = self._range(start, end)
        return first < behind

    def cut(self, span: PhiSpan) -> list[PhiSpan]:
        """Cut a span into the pieces that the places do not cover."""
        first, behind = self._range(span.start, span.end)
        if first >= behind:
            return [span]
        starts = [span.start, *self._ends[first:behind]]
        ends = [*self._starts[first:behind], span.end]
        pairs = zip(starts, ends, strict=True)
        return [span._replace(start=start, end=end) for start, end in pairs if start < end]
