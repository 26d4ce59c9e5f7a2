"""A result of a test, and `doc._.results`."""

from typing import NamedTuple


class Result(NamedTuple):
    """A result: of a laboratory test, a vital sign, a measured finding, a score or a stage.

    name (str): The words of its name, as the text has them; "TNM" of a tumour's stage, whose name
        is not written.
    kind (str): "quantity", "range", "blood_pressure", "list" (the numbers of an Apgar score) or
        "text" (a class such as "III", a titre such as "1/320", "positive", "negative", "normal").
    value (float | tuple[float, ...] | str): The number, not converted; of a "list" all numbers.
    high (float | None): The second number of a range, the diastolic one of a blood pressure.
    comparator (str | None): "<", "<=", ">", ">=" or "~" (about).
    unit (str | None): In UCUM: as written, or the only one that a vital sign has. None if unknown.
    out_of (float | None): The greatest value of a score, if written: 10 of "EVA 8/10".
    low_limit (float | None): Lower end of the reference range, if written.
    high_limit (float | None): Its upper end.
    flag (str | None): What the text says of it, in codes of HL7: "H", "L", "HH", "LL", "N", "A" (an
        asterisk) or "AA".
    date (str | None): ISO 8601, if the text has it.
    name_start (int): Code points of the untouched text; the end is exclusive.
    name_end (int): See there.
    start_char (int): First character of the value, or of its comparator.
    end_char (int): End of the value with its unit, exclusive.
    """

    name: str
    kind: str
    value: float | tuple[float, ...] | str
    high: float | None
    comparator: str | None
    unit: str | None
    out_of: float | None
    low_limit: float | None
    high_limit: float | None
    flag: str | None
    date: str | None
    name_start: int
    name_end: int
    start_char: int
    end_char: int
