"""`bioclin align-encoder`: teach an encoder the synonyms of a knowledge base."""

from pathlib import Path
from typing import Annotated

import typer

from ...parallel import show_progress
from ...pretraining.settings import AlignSettings
from ..pretrain.options import Output, Resume, add_options, has_result


@add_options(AlignSettings)
def main(
    kb: Annotated[Path, typer.Argument(help="Folder made by `bioclin kb build`")],
    encoder: Annotated[str, typer.Argument(help="Encoder to start from, folder or hub name")],
    output: Output,
    settings: AlignSettings,
    resume: Resume = False,
) -> None:
    """Train an encoder so that names of the same concept have similar vectors (SapBERT).

    It prints how often the nearest name is right for names that were held out.
    `torchrun --nproc-per-node 4 -m spacy_bioclin align-encoder …` uses four GPUs."""
    from rich.console import Console

    from ...linking.kb.knowledge_base import KnowledgeBase
    from ...pretraining.synonyms import align_on, similar_concepts
    from ...runs import check_new_run, is_first_process

    check_new_run(output, resume=resume)
    opened = KnowledgeBase.open(kb)
    console = Console(stderr=True, highlight=False, quiet=not is_first_process())
    with show_progress(console, "concepts") as progress:
        neighbours = similar_concepts(opened, progress)
    record = align_on(
        opened,
        neighbours,
        encoder,
        output,
        settings=settings,
        resume=resume,
        is_first=is_first_process(),
    )
    if not has_result(record):
        return
    held_out = record["held_out"]
    typer.echo(
        f"{output / 'encoder'}: {record['names']:,} names of {record['concepts']:,} concepts"
    )
    if held_out["names"]:
        typer.echo(
            f"nearest of {held_out['compared_with']:,} names right for {held_out['names']} "
            f"that were held out: {held_out['before']:.1%} before, {held_out['after']:.1%} after"
        )
