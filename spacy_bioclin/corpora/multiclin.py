"""MultiClinNER (2026) in columns: cases one after the other, each annotated for one kind of entity.

Words are split at blanks only, so that "problems." has its full stop; it is no part of a mention.
Nothing says what a case was annotated for but its mentions. One without mentions belongs to the
kind of its neighbours, if both have the same, and is left out if not.
"""

import lzma
from collections.abc import Callable
from pathlib import Path

from ..errors import BioclinError
from ..types import AnnotatedText, SpanAnnotation
from .columns import parse_columns
from .files import OnError, decode, raise_error, skip_errors

KINDS = ("DIS", "SYM", "PRO")
MARKS = ".,;:"


def make_reader(kind: str) -> Callable[[Path, OnError], list[AnnotatedText]]:
    """Make the reader of the cases of a .conll.xz file that were annotated for a kind of entity.

    kind (str): "DIS", "SYM" or "PRO".
    RETURNS (Callable): The reader. The ids of its documents are the name of the file and their
        number in it. It raises BioclinError if the file cannot be read.
    """

    @skip_errors
    def read(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
        try:
            data = lzma.decompress(path.read_bytes())
        except (OSError, lzma.LZMAError) as error:
            raise BioclinError(f"{path}: cannot be read ({type(error).__name__})") from None
        content = decode(data, "utf-8", str(path))
        if content.endswith(("\t", "\t\n")):  # test ends within a line
            content = content.rstrip().rpartition("\n")[0]
        cases = parse_columns(content, str(path), on_error)
        kinds = _find_kinds(cases)
        return [_trim(case) for case, found in zip(cases, kinds, strict=True) if found == kind]

    return read


def _find_kinds(cases: list[AnnotatedText]) -> list[str]:
    """Find what each case was annotated for; "" if nothing says it."""
    kinds = [
        next((a.label for a in case.annotations if isinstance(a, SpanAnnotation)), "")
        for case in cases
    ]
    before, known = "", []
    for kind in kinds:
        before = kind or before
        known.append(before)
    after = ""
    for i in range(len(kinds) - 1, -1, -1):
        after = kinds[i] or after
        known[i] = kinds[i] or (after if after == known[i] else "")
    return known


def _trim(case: AnnotatedText) -> AnnotatedText:
    """Leave punctuation and open brackets at the ends of mentions out of them."""
    trimmed = []
    for each in case.annotations:
        if isinstance(each, SpanAnnotation):
            (start, end), *_ = each.fragments
            surface = case.text[start:end].rstrip(MARKS)
            if surface.startswith("(") and ")" not in surface:
                start, surface = start + 1, surface[1:]
            if surface.endswith(")") and "(" not in surface:
                surface = surface[:-1]
            end = start + len(surface)
            each = each._replace(fragments=((start, end),), surface=surface)
        trimmed.append(each)
    return case._replace(annotations=tuple(trimmed))


READERS = {kind.lower(): make_reader(kind) for kind in KINDS}
