"""From what several detectors found to spans that do not overlap."""

from collections.abc import Iterable, Mapping

from .spans import PhiSpan


def merge_spans(
    spans: Iterable[PhiSpan],
    text: str,
    *,
    overlaps: str,
    thresholds: Mapping[str, float],
) -> list[PhiSpan]:
    """Join the detectors' spans. Recall comes first: of overlapping spans one wins and keeps its
    offsets, and what it does not cover of the others stays a span of its own.

    spans (Iterable[PhiSpan]): Of one text, in any order.
    text (str): Their text. What holds no letter and no digit is no span.
    overlaps (str): Who wins: the most "confident" span, or the "longest". Ties go to the other
        criterion, then to the first in the text.
    thresholds (Mapping[str, float]): Least confidence by label; labels that it does not name are
        all taken.
    RETURNS (list[PhiSpan]): Sorted, not overlapping. Detectors that agree with the winner on its
        label and overlap it are joined by "+".
    """
    kept = [span for span in spans if span.confidence >= thresholds.get(span.label, 0.0)]

    def rank(span: PhiSpan) -> tuple[float, ...]:
        by_length, by_confidence = span.start - span.end, -span.confidence
        first = (
            (by_confidence, by_length) if overlaps == "confident" else (by_length, by_confidence)
        )
        return (*first, span.start)

    merged: list[PhiSpan] = []
    for span in sorted(kept, key=rank):
        pieces = [(span.start, span.end)]
        for i, winner in enumerate(merged):
            if winner.start < span.end and span.start < winner.end:
                pieces = [part for piece in pieces for part in _without(piece, winner)]
                if winner.label == span.label and span.detector not in winner.detector.split("+"):
                    merged[i] = winner._replace(detector=f"{winner.detector}+{span.detector}")
        for piece in pieces:
            start, end = _trim(text, *piece)
            if start < end:
                merged.append(span._replace(start=start, end=end))
    return sorted(merged)


def _without(piece: tuple[int, int], span: PhiSpan) -> list[tuple[int, int]]:
    """RETURNS (list[tuple[int, int]]): What a span leaves of a piece."""
    start, end = piece
    if span.end <= start or end <= span.start:
        return [piece]
    return [(a, b) for a, b in ((start, span.start), (span.end, end)) if a < b]


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Take blanks off the edges. RETURNS (tuple[int, int]): Empty if nothing is left to hide."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if any(char.isalnum() for char in text[start:end]) else (start, start)
