"""One JSON object a line, or a list of objects: our own records, and the knowledge bases of
scispaCy.

scispaCy's keys (`concept_id`, `canonical_name`, `aliases`, `types`, `definition`):
https://github.com/allenai/scispacy/blob/main/scispacy/linking_utils.py
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import BioclinError
from ..kb.concepts import Alias, Concept, SkipReport
from .lines import open_bytes, read_head
from .rows import SkipError, filled_lines, parse_rows
from .values import clean, language_code

SCISPACY_KEYS = {"concept_id": "id", "canonical_name": "name"}
# A whole document takes several times its size in memory.
MAX_BYTES = 2 * 2**30
LISTS = ("types", "parents", "xrefs", "alternative_ids")
WRONG_TYPE = "value that is no text, or no list of texts"


def read_jsonl(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read concepts as JSON objects with the fields of `Concept` or scispaCy's keys.

    An alias is a string, [text, lang] or {"text": …, "lang": …}; other keys are ignored.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts lines that are not a JSON object, lack an id, hold nothing but an
        id, or have values of the wrong type.
    YIELDS (Concept): One for each line.
    RAISES (BioclinError): The file cannot be read, or holds a list that is broken JSON.
    """
    if read_head(path, 100).lstrip().startswith("["):
        yield from parse_rows(enumerate(load_json(path), 1), _to_concept, path, report)
    else:
        yield from parse_rows(filled_lines(path, report), _parse, path, report)


def load_json(path: Path) -> Any:
    """Read a JSON document as a whole.

    RAISES (BioclinError): The file cannot be read, is over `MAX_BYTES`, or is not JSON.
    """
    with open_bytes(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise BioclinError(f"{path}: over {MAX_BYTES:,} bytes, which are held in memory; split it")
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise BioclinError(f"{path}, line {error.lineno}: broken JSON ({error.msg})") from None
    except (ValueError, RecursionError):
        raise BioclinError(f"{path}: broken JSON, or not in UTF-8") from None


def _parse(line: str) -> Concept:
    try:
        return _to_concept(json.loads(line))
    except (ValueError, RecursionError):
        raise SkipError("broken JSON") from None


def _to_concept(record: object) -> Concept:
    if not isinstance(record, dict):
        raise SkipError("no JSON object")
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
        raise SkipError(WRONG_TYPE)
    text = (value or "").strip()
    try:
        text.encode()  # JSON can hold half a surrogate pair, which cannot be written to a file
    except UnicodeError:
        raise SkipError(WRONG_TYPE) from None
    return text


def _list(value: object) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise SkipError(WRONG_TYPE)
    return value or []
