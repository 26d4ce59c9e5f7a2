"""`bioclin suggest`: the notes to annotate next, or the gold spans that look wrong."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import BioclinError
from . import notes as given

if TYPE_CHECKING:
    from spacy.language import Language

    from ...suggestions.gold import Doubt
    from ...suggestions.suggest import Suggestion

SHOWN = 10  # rows of the table in the terminal


def main(
    pipeline: Annotated[str, typer.Argument(help="Folder or package name of the pipeline")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The list as JSON lines, no note text")
    ],
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[IN]", help="Notes: .txt, .jsonl, .csv, .tsv, .parquet, .spacy, or a folder"
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Length of the list")] = 50,
    gold: Annotated[
        Path | None, typer.Option(help="Find wrong spans in gold Docs (.spacy), in place of IN")
    ] = None,
    annotated: Annotated[
        Path | None, typer.Option(help="Gold Docs (.spacy) of notes that need not be suggested")
    ] = None,
    layer: given.Layers = None,
    per_word: Annotated[
        bool, typer.Option("--per-word", help="Give long notes no advantage over short ones")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with the places in doubt")] = None,
    no_text: Annotated[bool, typer.Option("--no-text", help="Page without note text")] = False,
    text_column: given.TextColumn = "text",
    id_column: given.IdColumn = None,
    encoding: given.Encoding = "utf-8",
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
    precision: Annotated[
        str | None, typer.Option("--precision", help="auto, fp32, bf16, fp16 (GPU) or int8 (CPU)")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT and HTML")] = False,
) -> None:
    """Suggest the notes of IN to annotate next: those of which PIPELINE is least sure, and that
    differ from each other.

    With --gold, find the gold spans that look wrong to a PIPELINE that was not trained on them.
    """
    from ...outputs import Output
    from ...suggestions.page import render_doubts, render_notes
    from ..loading import list_pipeline, load_pipeline

    _check_options(source, gold, annotated=annotated, per_word=per_word)
    inputs = [*list_pipeline(pipeline), *filter(None, (source, gold, annotated))]
    rules: Any = {"inputs": inputs, "overwrite": overwrite, "private": True}
    out = Output(output, **rules)
    page = html and Output(html, others=[output], **rules)
    notes = given.read_notes(source, text_column, id_column, encoding) if source else []
    nlp = load_pipeline(pipeline, gpu_id=gpu_id, precision=precision)
    content = ""
    if gold is not None:
        doubts = _check(nlp, gold, layer or [])
        rows = [_describe_doubt(rank, each) for rank, each in enumerate(doubts[:n], start=1)]
        if page:
            content = render_doubts(doubts[:n], with_text=not no_text)
        _print_doubts(doubts, n)
    else:
        found = _suggest(nlp, notes, n, annotated, layer or [], per_word=per_word)
        rows = [_describe_note(rank, each) for rank, each in enumerate(found, start=1)]
        if page:
            content = render_notes(found, with_text=not no_text)
        _print_notes(found)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    out.write("".join(lines))
    if page:
        page.write(content)
    for path in filter(None, (output, html)):
        typer.echo(f"Written: {path}", err=True)


def _check_options(
    source: Path | None, gold: Path | None, *, annotated: Path | None, per_word: bool
) -> None:
    """Check that there are notes or gold Docs, and no options of the other.

    RAISES (BioclinError): There are both or neither, or such an option.
    """
    if (source is None) == (gold is None):
        raise BioclinError("give either notes (IN) to choose from, or gold Docs (--gold) to check")
    for option, is_given in (("--annotated", annotated is not None), ("--per-word", per_word)):
        if gold is not None and is_given:
            raise BioclinError(f"{option}: only for notes to choose from; leave it out with --gold")


def _suggest(
    nlp: "Language",
    notes: list[tuple[str, str]],
    n: int,
    annotated: Path | None,
    layers: Sequence[str],
    *,
    per_word: bool,
) -> "list[Suggestion]":
    from rich.console import Console

    from ...corpora.docbin import read_texts
    from ...parallel import show_progress
    from ...suggestions.suggest import suggest_notes

    texts = [text for _, text in read_texts(annotated)] if annotated else []
    n_notes = len(notes) + len(texts)
    with show_progress(Console(stderr=True), "notes") as show:
        return suggest_notes(
            nlp,
            notes,
            n,
            annotated=texts,
            layers=layers,
            per_word=per_word,
            on_note=lambda n_done: show(min(n_done / n_notes, 1.0), n_done),
        )


def _check(nlp: "Language", gold: Path, layers: Sequence[str]) -> "list[Doubt]":
    from rich.console import Console

    from ...corpora.docbin import read_docs
    from ...parallel import show_progress
    from ...suggestions.suggest import check_gold

    docs = list(read_docs(gold, nlp.vocab))
    with show_progress(Console(stderr=True), "notes") as show:
        return check_gold(
            nlp,
            docs,
            layers=layers,
            on_note=lambda n_done: show(n_done / len(docs), n_done),
        )


def _describe_note(rank: int, each: "Suggestion") -> dict[str, Any]:
    return {
        "rank": rank,
        "id": each.id,
        "uncertainty": round(each.uncertainty, 4),
        "distance": round(each.distance, 4),
        "words": each.n_words,
    }


def _describe_doubt(rank: int, doubt: "Doubt") -> dict[str, Any]:
    gold, predicted = (
        {"start": span[0], "end": span[1], "label": span[2]} if span else None
        for span in doubt.example.pair
    )
    return {
        "rank": rank,
        "id": doubt.example.doc.id,
        "layer": doubt.layer,
        "kind": doubt.kind,
        "confidence": round(doubt.confidence, 4),
        "gold": gold,
        "predicted": predicted,
    }


def _print_notes(found: "Sequence[Suggestion]") -> None:
    from ..tables import print_table

    rows = [
        (each.id, f"{each.uncertainty:.3f}", f"{each.distance:.3f}", f"{each.n_words:,}")
        for each in found[:SHOWN]
    ]
    head = ("note", "uncertainty", "distance", "words")
    print_table(rows, head, right=head[1:], title=f"{len(found):,} notes to annotate next")


def _print_doubts(doubts: "Sequence[Doubt]", n: int) -> None:
    from ...suggestions.gold import MEANINGS
    from ..tables import print_table

    kept = doubts[:n]
    rows = []
    for kind, meaning in MEANINGS.items():
        of_kind = [doubt.confidence for doubt in kept if doubt.kind == kind]
        if of_kind:
            rows.append((kind, f"{len(of_kind):,}", f"{max(of_kind):.3f}", meaning))
    head = ("kind", "places", "confidence", "meaning")
    title = f"{len(kept):,} of {len(doubts):,} places where gold spans look wrong"
    print_table(rows, head, right=("places", "confidence"), title=title)
