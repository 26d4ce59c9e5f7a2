"""doccano: JSON lines with entities and relations, or with label triples.

Format: the examples of doccano's own export (backend/data_export/pipeline/examples.py). Offsets are
UTF-16 units (https://github.com/doccano/doccano/issues/2290) in which CR LF counts as one, as in
medkit's reader of the same files; the option "Count grapheme clusters as one character" of a
project has to be off. doccano gives entities new ids, and has no place for concept ids, attributes
and notes.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...errors import BioclinError
from ...types import AnnotatedText
from ..files import OnError, is_offset, raise_error, skip_errors
from .exchange import (
    META,
    Link,
    Region,
    Task,
    dump_json_lines,
    read_json_lines,
    read_meta,
    read_tasks,
    to_task,
)
from .texts import count_utf16, from_utf16, show_text


def format_doccano(documents: Iterable[AnnotatedText]) -> str:
    """Write documents for a doccano project of the kind "sequence labeling" with relations.

    documents (Iterable[AnnotatedText]): The documents.
    RETURNS (str): JSON lines.
    """
    return dump_json_lines(make_doccano_task(to_task(document)) for document in documents)


def make_doccano_task(task: Task) -> dict[str, Any]:
    """Make the JSON object of a task."""
    units = count_utf16(task.text)
    numbers = {region.id: number for number, region in enumerate(task.regions, start=1)}
    return {
        "text": task.text,
        META: dict(task.meta),
        "entities": [
            {
                "id": numbers[region.id],
                "start_offset": units[region.start],
                "end_offset": units[region.end],
                "label": region.label,
            }
            for region in task.regions
        ],
        "relations": [
            {
                "id": number,
                "from_id": numbers[link.head],
                "to_id": numbers[link.child],
                "type": link.label,
            }
            for number, link in enumerate(task.links, start=1)
        ],
    }


@skip_errors
def read_doccano(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read an export of doccano, JSONL or JSONL (relation)."""
    return read_tasks(path, read_json_lines(path), _read_task, on_error)


def _read_task(item: dict[str, Any], default_id: str) -> Task:
    id, meta = read_meta(item.get(META), default_id)
    text = item["text"] if "text" in item else item["data"]
    shown = show_text(text)
    units = count_utf16(shown.text)

    def convert(offset: object) -> int:
        if not is_offset(str(offset)):
            raise BioclinError("an offset is not a whole number")
        return shown.to_original(from_utf16(units, int(str(offset))))

    regions = []
    if "entities" in item:
        for each in item["entities"]:
            place = convert(each["start_offset"]), convert(each["end_offset"])
            regions.append(Region(f"T{each['id']}", *place, each["label"]))
    else:
        triples = item["label"] if "label" in item else item["labels"]
        for number, (start, end, label) in enumerate(triples, start=1):
            regions.append(Region(f"T{number}", convert(start), convert(end), label))
    links = [
        Link(each["type"], f"T{each['from_id']}", f"T{each['to_id']}")
        for each in item.get("relations", ())
    ]
    unread = [key for key in ("cats", "Comments", "comments") for _ in item.get(key) or ()]
    return Task(id, text, meta, regions, links, unread)
