"""Values that are written as they came, although Python would write them in another way."""

import json
import secrets
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
MAX_DEPTH = 100  # of objects and lists in a row; every one is a call of a function or two
TOO_DEEP = f"not JSON that can be read: nested deeper than {MAX_DEPTH}"
# Above this, Python takes long to read a number, or refuses it.
MAX_DIGITS = 1000
# Stands for a number until the rest is JSON. No input can hold it.
_MARK = secrets.token_hex(16)


class Carried:
    """A value of which only a text is known.

    text (str): What is searched for PHI.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class Number(Carried):
    """A number of JSON such as 1.10, 1e400 or one of 20 decimals, with all its characters."""

    __slots__ = ()

    def __float__(self) -> float:
        return float(self.text)


class BadRow(ValueError):
    """The message says what is wrong with a line, without anything of it."""


def parse_row(line: str) -> Row:
    """Parse the JSON object of a line.

    RETURNS (Row): Its fields. A number that Python would write in another way is a `Number`.
    RAISES (BadRow): It is not a JSON object, has a field twice, or is nested too deep.
    """
    try:
        row = json.loads(
            line, object_pairs_hook=_make_object, parse_int=_read_int, parse_float=_read_float
        )
    except BadRow as error:
        reason = str(error)
    except RecursionError:
        reason = TOO_DEEP
    except ValueError:
        reason = "not JSON"
    else:
        if not isinstance(row, dict):
            reason = "not a JSON object"
        elif line.count("[") + line.count("{") > MAX_DEPTH and _is_deep(row):
            reason = TOO_DEEP
        else:
            return row
    raise BadRow(reason)


def _make_object(pairs: list[tuple[str, Any]]) -> Row:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise BadRow("two fields of an object have the same name")
    return made


def _read_int(text: str) -> int | Number:
    return Number(text) if len(text) > MAX_DIGITS or text == "-0" else int(text)


def _read_float(text: str) -> float | Number:
    value = float(text)
    return value if repr(value) == text else Number(text)


def _is_deep(value: Any) -> bool:
    """Check whether lists and objects are nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [each for each in level if isinstance(each, dict | list)]
        level = [x for each in inner for x in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return False
    return True


def encode_lines(rows: Sequence[Row]) -> bytes:
    """Write rows as one JSON object per line."""
    numbers: list[str] = []

    def mark(value: Any) -> str:
        if not isinstance(value, Number):
            raise TypeError(f"{type(value).__name__} is not of JSON")
        numbers.append(value.text)
        return _MARK

    lines = [json.dumps(row, ensure_ascii=False, default=mark) + "\n" for row in rows]
    pieces = "".join(lines).split(f'"{_MARK}"')
    numbers.append("")
    text = "".join(piece + number for piece, number in zip(pieces, numbers, strict=True))
    return text.encode("utf-8")
