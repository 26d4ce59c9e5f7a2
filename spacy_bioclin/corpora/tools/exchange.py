"""What all annotation tools have in common: a text, labelled regions and links between them.

A tool holds less than a corpus file does. A span in several fragments becomes one region for each,
joined by links; concept ids, attributes ("A" lines of brat) and notes belong to a region.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import BioclinError
from ...types import (
    AnnotatedText,
    Annotation,
    Fragment,
    NoteAnnotation,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from ..brat import ATTRIBUTE, read_normalization, states_concept_ids
from ..files import LAYOUT, OnError, describe_damage, read_text
from .texts import ShownText, as_is, hash_text, restore_text, show_text

# Label of the link from the first fragment of a span to each other one.
CONTINUES = "continues"
# Name of the attribute that holds the probability of a predicted span.
PROBABILITY = "Probability"
# Key of our metadata in a task.
META = "bioclin"
# Id of the annotations that say what of a tool was not read; see `LossReport`.
UNREAD = f"{LAYOUT}unread"
ROLES = "Arg1", "Arg2"


class Region(NamedTuple):
    """A labelled piece of a text, with code points of the text that the tool shows.

    concepts (tuple[str, ...]): Concept ids.
    attributes (tuple[str, ...]): Names, or names and values ("Negated", "Certainty=low").
    note (str): Free text of an annotator.
    probability (float | None): Of a predicted span.
    """

    id: str
    start: int
    end: int
    label: str
    concepts: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    note: str = ""
    probability: float | None = None


class Link(NamedTuple):
    """A labelled link from one region to another, by their ids."""

    label: str
    head: str
    child: str


class Task(NamedTuple):
    """A note in an annotation tool.

    text (str): As the tool shows it.
    meta (Mapping[str, str]): Id and hash of the note, and its text if the tool shows another.
    unread (Sequence[str]): Kinds of annotation of the tool that are neither regions nor links.
    """

    id: str
    text: str
    meta: Mapping[str, str]
    regions: Sequence[Region]
    links: Sequence[Link] = ()
    unread: Sequence[str] = ()


def to_task(annotated: AnnotatedText, *, keep_line_ends: bool = False) -> Task:
    """Turn a document into a task.

    Left out are relations that are not between two spans, notes about relations, and lines of brat
    other than attributes; see `write_corpus`, which counts them.

    annotated (AnnotatedText): The document.
    keep_line_ends (bool): Leave the text as it is, for a tool that counts carriage returns.
    RETURNS (Task): The task.
    """
    shown = as_is(annotated.text) if keep_line_ends else show_text(annotated.text)
    meta = {"id": annotated.id, "sha256": hash_text(annotated.text)}
    if shown.text != annotated.text:
        meta["text"] = annotated.text
    spans = [a for a in annotated.annotations if isinstance(a, SpanAnnotation)]
    attributes, notes = _about_spans(annotated.annotations)
    regions: list[Region] = []
    links: list[Link] = []
    for span in spans:
        for number, (start, end) in enumerate(span.fragments):
            place = shown.to_shown(start), shown.to_shown(end)
            if number:
                piece = f"{span.id}+{number}"
                regions.append(Region(piece, *place, span.label))
                links.append(Link(CONTINUES, span.id, piece))
                continue
            names = [name for name in attributes[span.id] if not name.startswith(PROBABILITY)]
            regions.append(
                Region(
                    span.id,
                    *place,
                    span.label,
                    span.concept_ids,
                    tuple(names),
                    "\n".join(notes[span.id]),
                    _find_probability(attributes[span.id]),
                )
            )
    ids = {span.id for span in spans}
    for relation in annotated.annotations:
        if isinstance(relation, RelationAnnotation):
            ends = [target for _, target in relation.args if target in ids]
            if len(ends) == len(relation.args) == 2:
                links.append(Link(relation.label, *ends))
    return Task(annotated.id, shown.text, meta, regions, links)


def _about_spans(
    annotations: Iterable[Annotation],
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """List the attributes and the notes of each span, but not notes that state its concept ids."""
    attributes: dict[str, list[str]] = defaultdict(list)
    notes: dict[str, list[str]] = defaultdict(list)
    for each in annotations:
        if isinstance(each, NoteAnnotation) and not states_concept_ids(each):
            notes[each.target].append(each.text)
        elif isinstance(each, OtherAnnotation) and (match := ATTRIBUTE.fullmatch(each.raw)):
            attributes[match[2]].append(f"{match[1]}={match[3]}" if match[3] else match[1])
    return attributes, notes


def count_unread(annotations: Iterable[Annotation]) -> int:
    """Count what is neither a span, a relation nor a note: kinds of annotation that a tool's reader
    skips, attributes (but not probabilities), and brat's normalization lines of other things than
    spans."""
    annotations = list(annotations)
    spans = {a.id for a in annotations if isinstance(a, SpanAnnotation)}
    n_unread = 0
    for line in (a for a in annotations if isinstance(a, OtherAnnotation)):
        kind, concept = line.id[:1], read_normalization(line)
        attribute = ATTRIBUTE.fullmatch(line.raw)
        is_attribute = kind == "M" or (
            kind == "A" and not (attribute and attribute[1] == PROBABILITY)
        )
        is_lost = kind == "N" and (concept is None or concept[0] not in spans)
        n_unread += line.id == UNREAD or is_attribute or is_lost
    return n_unread


def _find_probability(attributes: Iterable[str]) -> float | None:
    values = (a.partition("=")[2] for a in attributes if a.startswith(f"{PROBABILITY}="))
    return next((float(value) for value in values), None)


def from_task(task: Task, source: str) -> AnnotatedText:
    """Turn a task that came back into a document; the inverse of `to_task`.

    task (Task): A task.
    source (str): Name of its file, for error messages.
    RETURNS (AnnotatedText): The document, with the text that was exported.
    RAISES (BioclinError): The tool has another text than the one that was exported.
    """
    shown, text, shift = restore_text(task.text, task.meta)
    first, others = _find_fragments(task.regions, task.links)
    annotations: list[Annotation] = []
    about: list[Annotation] = []
    for region in task.regions:
        if region.id in first:
            continue
        fragments = tuple(
            _to_fragment(piece, shown, shift) for piece in (region, *others.get(region.id, ()))
        )
        surface = " ".join(" ".join(text[start:end].split()) for start, end in fragments)
        annotations.append(
            SpanAnnotation(region.id, region.label, fragments, surface, region.concepts)
        )
        about += _describe_region(region, len(about))
    links = [link for link in task.links if link.label != CONTINUES]
    for number, link in enumerate(links, start=1):
        ends = (first.get(link.head, link.head), first.get(link.child, link.child))
        args = tuple(zip(ROLES, ends, strict=True))
        annotations.append(RelationAnnotation(f"R{number}", link.label, args))
    unread = [OtherAnnotation(UNREAD, kind) for kind in task.unread]
    return AnnotatedText(task.id, text, (*annotations, *about, *unread), source)


def _to_fragment(region: Region, shown: ShownText, shift: int) -> Fragment:
    start, end = region.start + shift, region.end + shift
    if not 0 <= start <= end < len(shown.starts):
        raise BioclinError(
            f"offsets {region.start}-{region.end} are not within the text; was it changed?"
        )
    return shown.to_original(start), shown.to_original(end)


def _describe_region(region: Region, n_before: int) -> list[Annotation]:
    """List the attributes and the note of a region, with ids that no other one has."""
    made: list[Annotation] = []
    names = list(region.attributes)
    if region.probability is not None:
        names.append(f"{PROBABILITY}={region.probability}")
    for number, attribute in enumerate(names, start=n_before + 1):
        name, _, value = attribute.partition("=")
        line = f"A{number}\t{name} {region.id}" + (f" {value}" if value else "")
        made.append(OtherAnnotation(f"A{number}", line))
    for number, text in enumerate(filter(None, region.note.split("\n")), start=1):
        made.append(
            NoteAnnotation(f"#{n_before + number}", "AnnotatorNotes", region.id, text.strip())
        )
    return made


def _find_fragments(
    regions: Iterable[Region], links: Iterable[Link]
) -> tuple[dict[str, str], dict[str, list[Region]]]:
    """Find the regions that continue another one.

    RETURNS (tuple): Id of a later fragment -> id of the first, and the later fragments of each.
    """
    by_id = {region.id: region for region in regions}
    parents: dict[str, str] = {}
    for link in links:
        if link.label == CONTINUES and link.head in by_id and link.child in by_id:
            parents.setdefault(link.child, link.head)
    first: dict[str, str] = {}
    others: dict[str, list[Region]] = defaultdict(list)
    for id in parents:
        root, seen = id, {id}
        while root in parents and parents[root] not in seen:
            root = parents[root]
            seen.add(root)
        if root not in parents:  # in a circle, nothing is the first
            first[id] = root
            others[root].append(by_id[id])
    return first, others


def read_meta(value: object, default_id: str) -> tuple[str, dict[str, str]]:
    """Read our metadata of a task.

    value (object): What the tool has under `META`; anything else than a dict of strings is ignored.
    RETURNS (tuple[str, dict[str, str]]): Id of the note, and the metadata.
    """
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        return default_id, {}
    meta = {key: value[key] for key in ("id", "sha256", "text") if key in value}
    return meta.get("id") or default_id, meta


def read_tasks(
    path: Path,
    items: Iterable[tuple[str, Any]],
    read: Callable[[Any, str], Task],
    on_error: OnError,
) -> list[AnnotatedText]:
    """Read the tasks of a file, each for itself.

    path (Path): The file.
    items (Iterable[tuple[str, Any]]): Name of each task in its file, and its content.
    read (Callable): Reads a task; it is given the content and an id for a task that has none.
    on_error (OnError): Called for each task that cannot be read.
    """
    documents = []
    for number, (name, item) in enumerate(items, start=1):
        try:
            task = read(item, f"{path.stem}-{number}")
            documents.append(from_task(task, str(path)))
        except BioclinError as error:
            on_error(path.name, BioclinError(f"{path}, {name}: {error}"))
        except Exception as error:  # a field is missing, or has a value of another type
            on_error(path.name, BioclinError(f"{path}, {name}: {describe_damage(error)}"))
    return documents


def read_json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Read the lines of a .jsonl file, each with its name."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            try:
                yield f"line {number}", json.loads(line.removeprefix("\ufeff"))
            except ValueError:
                raise BioclinError(f"{path}, line {number}: is not JSON") from None


def dump_json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Write one JSON object a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
