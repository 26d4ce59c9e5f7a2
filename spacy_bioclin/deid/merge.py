"""Merge the overlapping spans of several detectors."""

from collections.abc import Callable, Iterable, Sequence

from .spans import KNOWN_PATIENT, PhiSpan


def choose_labels(spans: Sequence[tuple[PhiSpan, frozenset[str]]]) -> list[PhiSpan]:
    """Give a span whose label may mean several the more specific label of a span that overlaps it.

    spans (Sequence[tuple[PhiSpan, frozenset[str]]]): Spans, and the labels that each may mean.
    RETURNS (list[PhiSpan]): In the same order. The most confident specific span decides: "Dra.
        Remedios Dueñas", found as a name and as one of staff, is staff.
    """
    specific = sorted(
        (span for span, meant in spans if len(meant) < 2), key=lambda span: -span.confidence
    )
    chosen = []
    for span, meant in spans:
        label = span.label
        if len(meant) > 1:
            overlapping = (
                other.label
                for other in specific
                if other.label in meant and other.start < span.end and span.start < other.end
            )
            label = next(overlapping, label)
        chosen.append(span._replace(label=label))
    return chosen


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

    merged: list[PhiSpan] = []
    for span in sorted(spans, key=rank):
        for i, winner in enumerate(merged):
            overlap = winner.start < span.end and span.start < winner.end
            is_new = span.detector not in winner.detector.split("+")
            if overlap and is_new and winner.label == span.label:
                merged[i] = winner._replace(detector=f"{winner.detector}+{span.detector}")
        for piece in subtract(span, merged):
            value = text[piece.start : piece.end]
            if any(map(str.isalnum, value)):
                start, end = piece.end - len(value.lstrip()), piece.start + len(value.rstrip())
                merged.append(piece._replace(start=start, end=end))
    return sorted(merged)


def subtract(span: PhiSpan, others: Iterable[PhiSpan | tuple[int, int]]) -> list[PhiSpan]:
    """Cut a span into the pieces that other spans, or places, do not cover."""
    pieces = [span]
    for left, right, *_ in others:
        if left < span.end and span.start < right:
            pieces = [
                piece._replace(start=start, end=end)
                for piece in pieces
                for start, end in (
                    (piece.start, min(piece.end, left)),
                    (max(piece.start, right), piece.end),
                )
                if start < end
            ]
    return pieces
