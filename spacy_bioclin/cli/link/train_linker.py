"""`bioclin train-linker`: learn names and ranking from linked mentions."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import srsly
import typer

from ...errors import BioclinError
from ..language import LANG

if TYPE_CHECKING:
    from ...linking.kb.concepts import Concept

REPORT = "report.json"
UNKNOWN = "unknown_concepts.jsonl"


def main(
    kb: Annotated[Path, typer.Argument(help="Knowledge base of `bioclin kb build`")],
    train: Annotated[Path, typer.Argument(help="Gold Docs with ids of its concepts (.spacy)")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model")],
    dev: Annotated[
        Path | None, typer.Option(help="Gold Docs to measure it on, before and after")
    ] = None,
    lang: Annotated[str, LANG] = "es",
    spans_key: Annotated[
        str | None, typer.Option(help="Key of doc.spans; without it, doc.ents")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="Only spans of this label; may be given again")
    ] = None,
    meanings: Annotated[Path | None, typer.Option(help="Folder of `bioclin embed-kb`")] = None,
    encoder: Annotated[str | None, typer.Option(help="Encoder that it was made with")] = None,
    seed: Annotated[int, typer.Option(help="Random seed for weights and order")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Train the ranker of bioclin_linker; set `model` of the component to OUTPUT.

    The model holds the texts of the mentions of TRAIN, with how often each meant what. Concepts
    that KB lacks are listed in OUTPUT/unknown_concepts.jsonl, which `bioclin kb build` reads."""
    import spacy
    from rich.console import Console

    from ...corpora.docbin import read_docs
    from ...evaluation.linking import score_linking
    from ...linking.train.docs import (
        Layer,
        find_unknown_concepts,
        gather_mentions,
        link_gold,
        train_linker,
    )
    from ...linking.train.ranker import RankerSettings
    from ...outputs import Output

    inputs = [path for path in (kb, train, dev, meanings) if path is not None]
    out = Output(output, inputs=inputs, overwrite=overwrite, marker=REPORT, private=True)
    if (meanings is None) != (encoder is None):
        raise BioclinError("--meanings and --encoder: give both or none")
    nlp = spacy.blank(lang)
    config = {
        "kb": str(kb),
        "meanings": meanings and str(meanings),
        "encoder": encoder,
    }
    linker = nlp.add_pipe("bioclin_linker", config=config).linker  # type: ignore[attr-defined]
    layer = Layer(spans_key, label)
    mentions = gather_mentions(read_docs(train, nlp.vocab), linker, layer)
    dev_docs = list(read_docs(dev, nlp.vocab)) if dev else []
    before = score_linking(link_gold(dev_docs, linker, layer)) if dev else None
    model, report = train_linker(linker, mentions, RankerSettings(seed=seed))
    console = Console(highlight=False)
    console.print(
        f"{report['mentions']:,} mentions, {report['different']:,} different; the concept of "
        f"{report['found']:,} is among the candidates; {report['unknown_ids']:,} have unknown "
        "ids"
    )
    if before is not None:
        after = score_linking(link_gold(dev_docs, linker, layer))
        report["dev"] = {"before": before.as_dict(), "after": after.as_dict()}
        console.print(
            f"{after.n:,} dev mentions: accuracy {before.accuracy:.3f} before, "
            f"{after.accuracy:.3f} after; recall@25 {after.recall[25]:.3f}"
        )
    unknown = find_unknown_concepts(mentions, linker.generator.kb, lang)
    with out.open_folder() as folder:
        model.write(folder)
        write_concepts(folder / UNKNOWN, unknown)
        (folder / REPORT).write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    console.print(f"{output} written", markup=False)
    if unknown:
        console.print(
            f"Concepts that the knowledge base lacks: {len(unknown):,}. To link them, too, build "
            f"it again with {output / UNKNOWN} as a further source, and train again.",
            markup=False,
        )


def write_concepts(path: Path, concepts: Sequence["Concept"]) -> None:
    """Write concepts for `bioclin kb build`, if there are any."""
    rows = [{"id": one.id, "name": one.name, "lang": one.lang} for one in concepts]
    if rows:
        srsly.write_jsonl(path, rows)
