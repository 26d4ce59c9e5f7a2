"""What merges, searches and matches did in quadratic time: the reference of the linear code."""

from collections.abc import Callable, Iterable, Sequence

from spacy_bioclin.deid.spans import KNOWN_PATIENT, PhiSpan
from spacy_bioclin.text import (
    MIN_CHARS,
    MIN_CHARS_SPLIT,
    MIN_DIGITS,
    FoldedText,
    TextSpan,
    fold_alnum,
    fold_plain,
)
from spacy_bioclin.types import CharSpan


def choose_labels(spans: Sequence[tuple[PhiSpan, frozenset[str]]]) -> list[PhiSpan]:
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
    spans: Iterable[PhiSpan], text: str, *, overlaps: str, keeps: Callable[[PhiSpan], bool]
) -> list[PhiSpan]:
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


def subtract(span: PhiSpan, others: Iterable[PhiSpan]) -> list[PhiSpan]:
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


def find_values(values: Iterable[tuple[str, str]], text: str) -> list[TextSpan]:
    searched = FoldedText(text)
    return sorted(
        {(start, end, kind) for kind, value in values for start, end in find(searched, value)}
    )


def find(searched: FoldedText, value: str) -> Iterable[tuple[int, int]]:
    key, plain = fold_alnum(value), searched.plain
    if len(key) < (MIN_DIGITS if key.isdigit() else MIN_CHARS):
        return
    parts = [fold_alnum(char) for char in plain]
    folded, places = "".join(parts), [i for i, part in enumerate(parts) for _ in part]
    n_words = len(fold_plain(value).split())
    at = folded.find(key)
    while at >= 0:
        start, end = places[at], places[at + len(key) - 1] + 1
        whole = not (plain[start - 1 : start].isalnum() or plain[end : end + 1].isalnum())
        if whole and (len(key) >= MIN_CHARS_SPLIT or len(plain[start:end].split()) == n_words):
            yield searched.place(start, end)
            at = folded.find(key, at + len(key))
        else:
            at = folded.find(key, at + 1)


def relaxed_match(reference: set[CharSpan], predicted: set[CharSpan]) -> int:
    waiting: tuple[list[CharSpan], list[CharSpan]] = ([], [])
    for side, spans in enumerate((reference, predicted)):
        waiting[side].extend(sorted(spans, key=lambda span: (span[1], span[0])))
    matched = 0
    while all(waiting):
        side = int(waiting[1][0][1] < waiting[0][0][1])
        start, end, _ = waiting[side].pop(0)
        others = waiting[1 - side]
        partner = next((i for i, other in enumerate(others) if other[0] < end), None)
        if partner is not None and start < end:
            matched += 1
            del others[partner]
    return matched
