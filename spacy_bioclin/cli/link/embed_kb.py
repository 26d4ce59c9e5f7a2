"""`bioclin embed-kb`: the vectors of a knowledge base's names, for candidates by meaning."""

from pathlib import Path
from typing import Annotated

import typer

from ...outputs import check_output
from ...parallel import show_progress


def main(
    kb: Annotated[Path, typer.Argument(help="Folder of `bioclin kb build`")],
    encoder: Annotated[
        str, typer.Option(help="Folder of `bioclin align-encoder` or SapBERT, or a hub name")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the vectors")],
    pooling: Annotated[
        str, typer.Option(help="mean (align-encoder), or cls (SapBERT's own weights)")
    ] = "mean",
    precision: Annotated[str, typer.Option(help="auto, bf16, fp16, int8 or fp32")] = "auto",
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Encode the names of KB. A run that was interrupted resumes."""
    from rich.console import Console

    from ...encoders.names import NameEncoder
    from ...linking.dense.embed import embed_names
    from ...linking.dense.index import FILES, VECTORS
    from ...linking.kb.knowledge_base import KnowledgeBase

    inputs = [kb, Path(encoder)]
    check_output(output, inputs=inputs, overwrite=overwrite, marker=VECTORS, only=FILES)
    opened = KnowledgeBase.open(kb)
    device = "cpu" if gpu_id < 0 else f"cuda:{gpu_id}"
    names = NameEncoder(encoder, pooling=pooling, precision=precision, device=device)
    with show_progress(Console(stderr=True, highlight=False), "names") as progress:
        index = embed_names(opened, names, output, progress=progress, overwrite=overwrite)
    typer.echo(f"{output}: {len(index):,} vectors for {len(opened.names):,} names")
