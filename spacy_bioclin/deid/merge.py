"""Merge the overlapping spans of several detectors."""

from collections.abc import Iterable, Mapping

from .spans import PhiSpan


def merge_spans(
    spans: Iterable[PhiSpan],
    text: str,
    *,
    overlaps: str,
    thresholds: Mapping[str, float],
) -> list[PhiSpan]:
    """Merge overlapping PHI spans: one wins, and what it does not cover of the others stays.

    Recall comes first: every character of every span remains in some span.
    spans (Iterable[PhiSpan]): Of one text, in any order.
    text (str): Their text. A span without letters and digits is dropped.
    overlaps (str): What wins: the most "confident" span, or the "longest". Ties are decided by the
        other criterion, then by the order in the text.
    thresholds (Mapping[str, float]): Least confidence by label; other labels have none.
    RETURNS (list[PhiSpan]): Sorted, not overlapping. Detectors that agree with the winner on its
        label and overlap it are joined by "+".
    """
    kept = [span for span in spans if span.confidence >= thresholds.get(span.label, 0.0)]

    def rank(span: PhiSpan) -> tuple[float, ...]:
        criteria = -span.confidence, span.start - span.end
        return (*(criteria if overlaps == "confident" else criteria[::-1]), span.start)

    merged: list[PhiSpan] = []
    for span in sorted(kept, key=rank):
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


def subtract(span: PhiSpan, others: Iterable[PhiSpan]) -> list[PhiSpan]:
    """Cut a span into the pieces that other spans do not cover."""
    pieces = [span]
    for other in others:
        if other.start < span.end and span.start < other.end:
            pieces = [
                piece._replace(start=start, end=end)
                for piece in pieces
                for start, end in (
                    (piece.start, min(piece.end, other.start)),
                    (max(piece.start, other.end), piece.end),
                )
                if start < end
            ]
    return pieces
