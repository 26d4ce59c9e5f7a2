"""Prodigy: JSON lines with tokens, spans and relations.

Format: https://prodi.gy/docs/api-interfaces. Offsets are code points of the text, as in spaCy; a
relation is between the last tokens of its spans.
"""

import re
from collections.abc import Collection, Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...errors import BioclinError
from ...types import AnnotatedText
from ..files import OnError, check_offsets, raise_error, skip_errors
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

# Words with their combining accents, and every other character by itself.
TOKEN = re.compile(r"[\w\u0300-\u036f]+|[^\w\u0300-\u036f]")


def format_prodigy(documents: Iterable[AnnotatedText]) -> str:
    """Write documents for Prodigy's recipes, such as `ner.manual` and `rel.manual`.

    documents (Iterable[AnnotatedText]): The documents.
    RETURNS (str): JSON lines.
    """
    return dump_json_lines(make_prodigy_task(to_task(document)) for document in documents)


def make_prodigy_task(task: Task) -> dict[str, Any]:
    """Make the JSON object of a task."""
    starts = {region.start for region in task.regions}
    tokens = make_tokens(task.text, starts, {region.end for region in task.regions})
    first = {token["start"]: token["id"] for token in tokens}
    last = {token["end"]: token["id"] for token in tokens}
    spans: dict[str, dict[str, Any]] = {}
    for region in task.regions:
        place: dict[str, Any] = {"start": region.start, "end": region.end}
        if region.start < region.end:
            place |= {"token_start": first[region.start], "token_end": last[region.end]}
        spans[region.id] = {**place, "label": region.label, "id": region.id}
        for key, value in (
            ("concepts", list(region.concepts)),
            ("attributes", list(region.attributes)),
            ("note", region.note),
            ("score", region.probability),
        ):
            if value or value == 0:
                spans[region.id][key] = value
    relations = []
    for link in task.links:
        head, child = spans[link.head], spans[link.child]
        relations.append(
            {
                "head": head.get("token_end"),
                "child": child.get("token_end"),
                "head_span": head,
                "child_span": child,
                "label": link.label,
            }
        )
    return {
        "text": task.text,
        META: dict(task.meta),
        "tokens": tokens,
        "spans": list(spans.values()),
        "relations": relations,
    }


def make_tokens(
    text: str, starts: Collection[int] = (), ends: Collection[int] = ()
) -> list[dict[str, Any]]:
    """Cut a text into tokens so that spans begin and end where tokens do.

    starts, ends (Collection[int]): Where spans begin and end.
    RETURNS (list[dict]): Tokens as Prodigy has them. Put together, each with a blank behind it
        where "ws" is true, they are the text.
    """
    edges = {0, len(text), *starts, *ends}
    for match in TOKEN.finditer(text):
        edges.update(match.span())
    tokens: list[dict[str, Any]] = []
    for start, end in pairwise(sorted(edges)):
        word, before = text[start:end], tokens[-1] if tokens else None
        is_free = word == " " and start not in starts and end not in ends
        if is_free and before and not before["ws"] and before["end"] == start:
            before["ws"] = True
            continue
        place = {"start": start, "end": end, "id": len(tokens)}
        tokens.append({"text": word, **place, "ws": False})
    return tokens


@skip_errors
def read_prodigy(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read what `prodigy db-out` writes.

    A task that was not accepted is an error of this task.
    """
    return read_tasks(path, read_json_lines(path), partial(_read_task, answered=True), on_error)


@skip_errors
def read_prodigy_tasks(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read tasks that nobody has answered, such as those of `format_prodigy`."""
    return read_tasks(path, read_json_lines(path), partial(_read_task, answered=False), on_error)


def _read_task(item: dict[str, Any], default_id: str, *, answered: bool) -> Task:
    if answered and item.get("answer") != "accept":
        raise BioclinError("was not accepted in Prodigy")
    id, meta = read_meta(item.get(META), default_id)
    text = item["text"]
    regions: list[Region] = []
    by_place: dict[tuple[int, int, str], str] = {}
    for number, each in enumerate(item.get("spans") or (), start=1):
        place = check_offsets(each["start"], each["end"], len(text), "a span")
        region = Region(
            str(each.get("id", f"T{number}")),
            *place,
            each["label"],
            tuple(each.get("concepts", ())),
            tuple(each.get("attributes", ())),
            each.get("note", ""),
            None if answered else each.get("score"),
        )
        regions.append(region)
        by_place.setdefault((*place, region.label), region.id)
    ids = {region.id for region in regions}
    links = []
    for each in item.get("relations") or ():
        spans = (each["head_span"], each["child_span"])
        ends = [
            span["id"]
            if span.get("id") in ids
            else by_place.get((span["start"], span["end"], span["label"]), "")
            for span in spans
        ]
        links.append(Link(each["label"], *ends))
    return Task(id, text, meta, regions, links)
