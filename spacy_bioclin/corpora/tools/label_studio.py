"""Label Studio: JSON tasks with predictions and annotations, and the labelling configuration.

Format: https://labelstud.io/guide/task_format. Offsets are code points of the text, in which every
character counts, CR LF as two (https://labelstud.io/tags/text). Versions of 2021 and earlier
counted UTF-16 units (https://github.com/HumanSignal/label-studio/issues/1347); which it was is seen
by the text that results hold.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from ...errors import BioclinError
from ...pages import COLOURS
from ...types import AnnotatedText
from ..files import OnError, check_offsets, raise_error, read_text, skip_errors
from .exchange import (
    META,
    Link,
    Region,
    Task,
    read_meta,
    read_tasks,
    to_task,
)
from .texts import count_utf16, from_utf16, show_text

# Names of the controls in the labelling configuration.
LABEL, ATTRIBUTES, CONCEPTS, NOTE, TEXT = "label", "attributes", "concepts", "note", "text"
CONFIG = "labels.xml"


def format_label_studio(documents: Iterable[AnnotatedText]) -> str:
    """Write documents as tasks; their annotations are predictions, which an annotator corrects.

    documents (Iterable[AnnotatedText]): The documents.
    RETURNS (str): A JSON list.
    """
    tasks = [make_label_studio_task(to_task(document)) for document in documents]
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


def make_label_studio_task(task: Task) -> dict[str, Any]:
    """Make the JSON object of a task."""
    results: list[dict[str, Any]] = []
    scores = []
    for region in task.regions:
        text = task.text[region.start : region.end]
        value: dict[str, Any] = {"start": region.start, "end": region.end, "text": text}
        labels = _make_result(region.id, LABEL, "labels", {**value, "labels": [region.label]})
        if region.probability is not None:
            labels["score"] = region.probability
            scores.append(region.probability)
        results.append(labels)
        if region.attributes:
            chosen = {**value, "choices": list(region.attributes)}
            results.append(_make_result(region.id, ATTRIBUTES, "choices", chosen))
        if region.concepts:
            lines = {**value, "text": list(region.concepts)}
            results.append(_make_result(region.id, CONCEPTS, "textarea", lines))
        if region.note:
            lines = {**value, "text": region.note.split("\n")}
            results.append(_make_result(region.id, NOTE, "textarea", lines))
    for link in task.links:
        results.append(
            {
                "type": "relation",
                "from_id": link.head,
                "to_id": link.child,
                "direction": "right",
                "labels": [link.label],
            }
        )
    prediction: dict[str, Any] = {"model_version": "spacy-bioclin", "result": results}
    if scores:  # the least certain span: Label Studio can sort tasks by it
        prediction["score"] = min(scores)
    return {"data": {"text": task.text, META: dict(task.meta)}, "predictions": [prediction]}


def _make_result(id: str, name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "from_name": name, "to_name": TEXT, "type": kind, "value": value}


def format_label_config(documents: Iterable[AnnotatedText]) -> str:
    """Write the labelling configuration for the labels of some documents.

    RETURNS (str): The XML that Label Studio wants under Settings, Labeling Interface, Code.
    """
    labels: set[str] = set()
    attributes: set[str] = set()
    relations: set[str] = set()
    for task in map(to_task, documents):
        labels.update(region.label for region in task.regions)
        attributes.update(name for region in task.regions for name in region.attributes)
        relations.update(link.label for link in task.links)
    return make_label_config(labels, attributes, relations)


def make_label_config(
    labels: Iterable[str], attributes: Iterable[str], relations: Iterable[str]
) -> str:
    """Make the labelling configuration, see `format_label_config`."""
    lines = ["<View>", f'  <Labels name="{LABEL}" toName="{TEXT}">']
    for label, colour in zip(sorted(labels), cycle(COLOURS), strict=False):
        lines.append(f'    <Label value={quoteattr(label)} background="{colour}"/>')
    lines += ["  </Labels>", "  <Relations>"]
    lines += [f"    <Relation value={quoteattr(label)}/>" for label in sorted(relations)]
    lines += [
        "  </Relations>",
        "  <Style>.htx-text { white-space: pre-wrap; }</Style>",
        f'  <Text name="{TEXT}" value="$text" granularity="symbol"/>',
        f'  <Choices name="{ATTRIBUTES}" toName="{TEXT}" perRegion="true" choice="multiple">',
    ]
    lines += [f"    <Choice value={quoteattr(name)}/>" for name in sorted(attributes)]
    lines.append("  </Choices>")
    for name, hint in ((CONCEPTS, "Concept ids"), (NOTE, "Note")):
        lines.append(
            f'  <TextArea name="{name}" toName="{TEXT}" perRegion="true" editable="true" '
            f'placeholder="{hint}"/>'
        )
    return "\n".join([*lines, "</View>", ""])


@skip_errors
def read_label_studio(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read an export of annotated tasks (JSON, not JSON-MIN).

    A task without an annotation is an error of this task: a prediction that nobody has looked at is
    not gold. So is a task with several annotations of which not one is marked as ground truth.
    """
    return _read(path, on_error, _choose_annotation, scored=False)


@skip_errors
def read_label_studio_predictions(
    path: Path, on_error: OnError = raise_error
) -> list[AnnotatedText]:
    """Read the predictions of tasks, such as those of `format_label_studio`."""
    return _read(path, on_error, lambda item: item["predictions"][0], scored=True)


def _read(
    path: Path,
    on_error: OnError,
    choose: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    scored: bool,
) -> list[AnnotatedText]:
    try:
        content = json.loads(read_text(path).removeprefix("\ufeff"))
    except ValueError as error:
        if isinstance(error, BioclinError):
            raise
        raise BioclinError(f"{path}: is not JSON") from None
    if not isinstance(content, list):
        raise BioclinError(f"{path}: is not a list of tasks; export the project as JSON")
    items = ((f"task {number}", item) for number, item in enumerate(content, start=1))
    read = partial(_read_task, choose=choose, scored=scored)
    return read_tasks(path, items, read, on_error)


def _choose_annotation(item: dict[str, Any]) -> dict[str, Any]:
    """Choose the annotation of a task.

    RAISES (BioclinError): There is none, or several of which not one is the ground truth.
    """
    done = [each for each in item.get("annotations", ()) if not each.get("was_cancelled")]
    if not done:
        raise BioclinError("is not annotated yet")
    marked = [each for each in done if each.get("ground_truth")]
    chosen = marked if marked else done
    if len(chosen) > 1:
        raise BioclinError(
            f"has {len(done)} annotations; mark one of them as ground truth in Label Studio"
        )
    return dict(chosen[0])


def _read_task(
    item: dict[str, Any],
    default_id: str,
    *,
    choose: Callable[[dict[str, Any]], dict[str, Any]],
    scored: bool,
) -> Task:
    data = item["data"]
    id, meta = read_meta(data.get(META), default_id)
    text = data["text"]
    results = choose(item)["result"]
    convert = _choose_counting(text, [each.get("value", {}) for each in results])
    regions: dict[str, Region] = {}
    links: list[Link] = []
    about: dict[str, dict[str, Any]] = defaultdict(dict)
    unread: list[str] = []
    for each in results:
        kind, value = each["type"], each.get("value", {})
        name = (kind, each.get("from_name"))
        if kind == "relation":
            labels = each.get("labels") or [""]
            ends = each["from_id"], each["to_id"]
            if each.get("direction") == "left":
                ends = ends[::-1]
            links += [Link(label, *ends) for label in labels]
        elif kind == "labels" and "start" in value:
            start, end = convert(value["start"]), convert(value["end"])
            for number, label in enumerate(value["labels"]):
                region_id = f"{each['id']}/{number + 1}" if number else each["id"]
                score = each.get("score") if scored else None
                regions[region_id] = Region(region_id, start, end, label, probability=score)
        elif name == ("choices", ATTRIBUTES):
            about[each["id"]]["attributes"] = tuple(value["choices"])
        elif name == ("textarea", CONCEPTS):
            lines = " ".join(value["text"]).replace("|", " ")
            about[each["id"]]["concepts"] = tuple(lines.split())
        elif name == ("textarea", NOTE):
            about[each["id"]]["note"] = "\n".join(value["text"])
        else:
            unread.append(kind)
    for region_id, fields in about.items():
        if region_id in regions:
            regions[region_id] = regions[region_id]._replace(**fields)
        else:
            unread += fields
    return Task(id, text, meta, list(regions.values()), links, unread)


def _choose_counting(text: str, values: Sequence[dict[str, Any]]) -> Callable[[object], int]:
    """Find out how offsets are counted: so that most results cover the text that they hold.

    RETURNS (Callable): Converts an offset of the tool to code points of the text.
    """
    shown = show_text(text)
    units, shown_units = count_utf16(text), count_utf16(shown.text)
    countings: list[Callable[[int], int]] = [
        lambda offset: offset,
        lambda offset: from_utf16(units, offset),
        shown.to_original,
        lambda offset: shown.to_original(from_utf16(shown_units, offset)),
    ]
    if "\r" not in text:
        countings = countings[:2] if units[-1] != len(text) else countings[:1]
    right: Counter[int] = Counter()
    if len(countings) > 1:
        for value in values:
            if isinstance(value.get("text"), str) and "start" in value:
                wanted = "".join(value["text"].replace("\\n", "\n").split())
                for number, counting in enumerate(countings):
                    right[number] += _covers(text, value, counting, wanted)
    best = max(range(len(countings)), key=lambda number: (right[number], -number))

    def convert(offset: object) -> int:
        _, number = check_offsets(0, offset, 2 * len(text), "a result")
        return countings[best](number)

    return convert


def _covers(text: str, value: dict[str, Any], counting: Callable[[int], int], wanted: str) -> bool:
    try:
        start, end = counting(int(value["start"])), counting(int(value["end"]))
    except (BioclinError, ValueError, IndexError):
        return False
    return "".join(text[start:end].split()) == wanted
