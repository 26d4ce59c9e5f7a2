"""`bioclin fetch`: Download an encoder or a fine-tuned checkpoint. Uses the network."""

from pathlib import Path
from typing import Annotated

import typer


def main(
    name: Annotated[str, typer.Argument(help="Encoder or checkpoint; see `bioclin encoders list`")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder; default: encoders/NAME or checkpoints/NAME"),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Commit or branch on the hub; default: the catalogue's")
    ] = None,
    accept_licence: Annotated[
        bool, typer.Option("--accept-license", help="Accept a licence that forbids commercial use")
    ] = False,
) -> None:
    """Download an encoder, or a fine-tuned checkpoint for `bioclin import-hf`, at a pinned revision
    and record the hash of every file. Run again, it compares the files with their hashes."""
    from rich.console import Console

    from ...catalog.checkpoints import load_checkpoints, match_checkpoint
    from ...catalog.encoders import find_encoder
    from ...encoders.hub.download import MANIFEST, fetch_encoder
    from ...encoders.hub.inspection import inspect_encoder
    from ...parallel import show_progress
    from .encoders import print_inspection, warn_of_licence

    checkpoint = load_checkpoints()[key] if (key := match_checkpoint(name)) else None
    name, encoder = (str(key), checkpoint.to_encoder()) if checkpoint else find_encoder(name)
    folder = output or Path("checkpoints" if checkpoint else "encoders") / name
    console = Console(stderr=True, highlight=False, markup=False)
    warn_of_licence(encoder.licence_warning)
    with show_progress(console, "MB") as show:
        manifest = fetch_encoder(
            name,
            encoder,
            folder,
            revision=revision,
            accept_licence=accept_licence,
            progress=show,
        )
    size = sum(file["bytes"] for file in manifest["files"].values())
    revision = manifest["revision"] or "an archive"
    console.print(
        f"{len(manifest['files'])} files, {size / 1e6:,.1f} MB, of {manifest['source']} "
        f"({revision}); hashes: {folder / MANIFEST}",
        soft_wrap=True,
    )
    for file in manifest["added"]:
        console.print(f"Written because the source lacks it: {folder / file}", soft_wrap=True)
    if checkpoint is None:
        print_inspection(inspect_encoder(folder, name))
    else:
        typer.echo(f"Import it: bioclin import-hf {folder} -o PIPELINE {checkpoint.import_options}")
