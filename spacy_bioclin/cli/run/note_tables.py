"""Print what `bioclin annotate` has found as tables."""

from typing import TYPE_CHECKING, Any

from ..tables import print_table

if TYPE_CHECKING:
    from rich.console import Console


def print_record(record: dict[str, Any], console: "Console") -> None:
    """Print the spans, relations and categories of a note.

    record (dict[str, Any]): What `bioclin annotate` writes of it.
    console (Console): Where to print.
    """
    layers = {"ents": record["entities"], **record["spans"]}
    found = [(span["start"], layer, span) for layer, spans in layers.items() for span in spans]
    relations, categories = record.get("relations"), record.get("categories")
    if not found and not relations and not categories:
        console.print(f"{record['id']}: nothing found", markup=False)
        return
    if found:
        _print_spans(record["id"], found, console)
    if relations:
        _print_relations(record["id"], relations, console)
    if categories:
        rows = sorted(categories.items(), key=lambda item: -item[1])
        print_table(
            [[label, f"{p:.2f}"] for label, p in rows],
            ("Category", "Score"),
            title=f"{record['id']}: categories",
            right=("Score",),
            console=console,
        )


def _print_spans(
    doc_id: str, found: list[tuple[int, str, dict[str, Any]]], console: "Console"
) -> None:
    has_context = any("context" in span for _, _, span in found)
    rows = []
    for start, layer, span in sorted(found, key=lambda row: row[:2]):
        text = _join_lines(span["text"])
        row = [str(start), str(span["end"]), span["label"], text, _show(span), layer]
        if has_context:
            kinds = dict.fromkeys(cue["kind"] for cue in span.get("context", ()))
            row.insert(4, ", ".join(kinds))
        rows.append(row)
    head = ["Start", "End", "Label", "Text", "Probability", "Layer"]
    if has_context:
        head.insert(4, "Context")
    print_table(rows, head, title=doc_id, right=head[:2], console=console)


def _print_relations(doc_id: str, relations: list[dict[str, Any]], console: "Console") -> None:
    rows = [
        [
            one["label"],
            _join_lines(one["head"]["text"]),
            one["head"]["label"],
            _join_lines(one["child"]["text"]),
            one["child"]["label"],
            _show(one),
        ]
        for one in relations
    ]
    head = ("Relation", "Head", "Label of head", "Child", "Label of child", "Probability")
    print_table(rows, head, title=f"{doc_id}: relations", console=console)


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _show(record: dict[str, Any]) -> str:
    return "" if record["probability"] is None else f"{record['probability']:.2f}"
