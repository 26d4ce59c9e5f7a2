"""One JSON object a line: our own records, and the knowledge bases of scispaCy.

scispaCy's keys (`concept_id`, `canonical_name`, `aliases`, `types`, `definition`):
https://github.com/allenai/scispacy/blob/main/scispacy/linking_utils.py
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..kb.concepts import Alias, Concept, SkipReport
from .lines import read_lines
from .values import clean, language_code

SCISPACY_KEYS = {"concept_id": "id", "canonical_name": "name"}
LISTS = ("types", "parents", "xrefs", "alternative_ids")


def read_jsonl(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read concepts as JSON objects with the fields of `Concept` or scispaCy's keys.

    An alias is a string, [text, lang] or {"text": …, "lang": …}; other keys are not read.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts lines that are no JSON object, that lack an id, that say nothing
        but an id, and whose values are not of the right type.
    YIELDS (Concept): One for each line.
    RAISES (BioclinError): The file cannot be read.
    """
    for number, line in read_lines(path, report):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            report.skip("broken JSON", place)
            continue
        if not isinstance(record, dict):
            report.skip("no JSON object", place)
            continue
        try:
            concept = _to_concept(record)
        except (TypeError, UnicodeError):
            report.skip("value that is no text, or no list of texts", place)
            continue
        if not concept.id:
            report.skip("no id", place)
        elif concept == Concept(concept.id):
            report.skip("no name", place)
        else:
            yield concept


def _to_concept(record: dict[str, Any]) -> Concept:
    """RAISES (TypeError, UnicodeError): A value is no valid text, or no list of such."""
    values = {SCISPACY_KEYS.get(key, key): value for key, value in record.items()}
    name = clean(_string(values.get("name")))
    lists = {key: tuple(map(_string, _list(values.get(key)))) for key in LISTS}
    return Concept(
        _string(values.get("id")),
        name,
        language_code(_string(values.get("lang"))) if name else "",
        aliases=tuple(filter(lambda alias: alias.text, map(_alias, _list(values.get("aliases"))))),
        definition=clean(_string(values.get("definition"))),
        **lists,
    )


def _alias(value: object) -> Alias:
    if isinstance(value, dict):
        value = [value.get("text"), value.get("lang")]
    text, lang = value if isinstance(value, list) and len(value) == 2 else (value, "")
    return Alias(clean(_string(text)), language_code(_string(lang)))


def _string(value: object) -> str:
    if value is not None and not isinstance(value, str):
        raise TypeError(type(value))
    text = (value or "").strip()
    text.encode()  # half a surrogate pair, which JSON can hold, could never be written
    return text


def _list(value: object) -> list[object]:
    if value is not None and not isinstance(value, list):
        raise TypeError(type(value))
    return value or []
