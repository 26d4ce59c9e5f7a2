"""`bioclin align-encoder`: teach an encoder the synonyms of a knowledge base."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ...parallel import show_progress
from ...pretraining.settings import ALIGN_DEFAULTS as DEFAULTS


def main(
    kb: Annotated[Path, typer.Argument(help="Folder of `bioclin kb build`.")],
    encoder: Annotated[str, typer.Argument(help="Encoder to start from, folder or hub name.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for checkpoints and encoder.")],
    steps: Annotated[int, typer.Option(help="Updates.")] = DEFAULTS.steps,
    batch_pairs: Annotated[
        int, typer.Option(help="Pairs of names of an update.")
    ] = DEFAULTS.batch_pairs,
    learn_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = DEFAULTS.learn_rate,
    precision: Annotated[str, typer.Option(help="auto, bf16, fp16 or fp32.")] = DEFAULTS.precision,
    seed: Annotated[int, typer.Option(help="Of pairs, order and held-out names.")] = DEFAULTS.seed,
    max_seconds: Annotated[
        float, typer.Option(help="Stop with a checkpoint; 0: never.")
    ] = DEFAULTS.max_seconds,
    resume: Annotated[bool, typer.Option(help="Go on from the last checkpoint.")] = False,
) -> None:
    """Train an encoder until names of one concept come close (SapBERT's self-alignment), and say
    how often the nearest name is right for names that it has not seen.

    `torchrun --nproc-per-node 4 -m spacy_bioclin align-encoder …` uses four GPUs."""
    from rich.console import Console

    from ...linking.kb.knowledge_base import KnowledgeBase
    from ...pretraining.masked_lm import find_checkpoint
    from ...pretraining.settings import AlignSettings
    from ...pretraining.synonyms import align_on, similar_concepts

    find_checkpoint(out, resume=resume)
    opened = KnowledgeBase.open(kb)
    is_first = not int(os.environ.get("RANK", "0"))  # torchrun: one process speaks for all
    console = Console(stderr=True, highlight=False, quiet=not is_first)
    with show_progress(console, "concepts") as progress:
        neighbours = similar_concepts(opened, progress)
    record = align_on(
        opened,
        neighbours,
        encoder,
        out,
        settings=AlignSettings(steps, batch_pairs, learn_rate, precision, seed, max_seconds),
        resume=resume,
        is_first=is_first,
    )
    if not is_first:
        return
    if not record["finished"]:
        typer.echo(f"stopped after {max_seconds:g} s: go on with --resume")
        return
    held_out = record["held_out"]
    typer.echo(f"{out / 'encoder'}: {record['names']:,} names of {record['concepts']:,} concepts")
    if held_out["names"]:
        typer.echo(
            f"nearest of {held_out['compared_with']:,} names right for {held_out['names']} "
            f"that were held out: {held_out['before']:.1%} before, {held_out['after']:.1%} after"
        )
