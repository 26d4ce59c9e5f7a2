"""The lexicon of clinical short forms: "HTA" is "hipertensión arterial".

`short_forms_es.tsv` and `short_forms_en.tsv` have a row for each meaning of a short form. Of an
ambiguous one, the first row is right without a cue near it.
"""

import csv
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..errors import BioclinError

KINDS = (
    *("disease", "symptom", "procedure", "test", "drug", "anatomy", "device", "unit", "route"),
    *("frequency", "dose", "person", "place", "time", "heading", "other"),
)
FIELDS = ["short", "long", "kind", "variety", "english", "cues"]
LANGS = ("es", "en")
_MARKS = re.compile(r"[.\s]+")


class ShortForm(NamedTuple):
    """A meaning of a short form.

    short (str): As it is mostly written.
    long (tuple[str, ...]): Long forms, the usual one first.
    kind (str): One of `KINDS`.
    varieties (tuple[str, ...]): Countries that it is limited to; empty if it is used everywhere.
    english (str): English name of the concept; "" if it is the long form, or there is none.
    cues (tuple[str, ...]): What stands near it if it has this meaning: parts of words in lower
        case, "@labs" (the section), ">number" (what follows).
    """

    short: str
    long: tuple[str, ...]
    kind: str
    varieties: tuple[str, ...]
    english: str
    cues: tuple[str, ...]


def fold_short(text: str) -> str:
    """Fold the spellings of a short form: "T.A.", "ta" and "TA" are equal."""
    return _MARKS.sub("", text).lower()


@cache
def load_short_forms(lang: str) -> dict[str, tuple[ShortForm, ...]]:
    """Load the lexicon of a language.

    lang (str): "es" or "en"; another language has none.
    RETURNS (dict[str, tuple[ShortForm, ...]]): Folded short form -> its meanings.
    RAISES (BioclinError): A row is malformed; it names the line.
    """
    forms: dict[str, list[ShortForm]] = defaultdict(list)
    if lang not in LANGS:
        return {}
    path = Path(__file__).with_name(f"short_forms_{lang}.tsv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        if next(rows) != FIELDS:
            raise BioclinError(f"{path.name}, line 1: want the columns {', '.join(FIELDS)}")
        for number, row in enumerate(rows, start=2):
            if len(row) != len(FIELDS) or row[2] not in KINDS or not row[0] or not row[1]:
                raise BioclinError(f"{path.name}, line {number}: want {', '.join(FIELDS)}")
            short, long, kind, varieties, english, cues = row
            form = ShortForm(
                short,
                tuple(one.strip() for one in long.split("|")),
                kind,
                tuple(varieties.split()),
                english,
                tuple(cue.strip() for cue in cues.split(",") if cue.strip()),
            )
            forms[fold_short(short)].append(form)
    return {key: tuple(meanings) for key, meanings in forms.items()}
