"""`bioclin package`: make a wheel from a trained pipeline."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from ...packaging.card import Provenance


def main(
    pipeline: Annotated[Path, typer.Argument(help="Folder of the trained pipeline")],
    out: Annotated[Path, typer.Argument(help="Folder for the wheel")],
    name: Annotated[str, typer.Option(help="The package is called LANG_bioclin_NAME")],
    version: Annotated[str, typer.Option(help="Version of the package, e.g. 0.1.0")],
    metrics: Annotated[
        Path | None, typer.Option(help="Scores for the card, from `bioclin evaluate`")
    ] = None,
    task: Annotated[
        str, typer.Option(help="Task of the catalogue; gives name and licence of the corpus")
    ] = "",
    corpus: Annotated[str, typer.Option(help="Name of the corpus")] = "",
    corpus_license: Annotated[str, typer.Option(help="Licence of the corpus")] = "",
    encoder: Annotated[str, typer.Option(help="Folder or name of the pretrained encoder")] = "",
    encoder_license: Annotated[
        str, typer.Option(help="Licence of the encoder; else what README.md in its folder says")
    ] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the wheel")] = False,
) -> None:
    """Package a pipeline with its model card, scores and licences. Needs no network."""
    from ...packaging.build import build_wheel
    from ...packaging.metrics import read_metrics

    provenance = _provenance(
        task,
        corpus=corpus,
        corpus_license=corpus_license,
        encoder=Path(encoder).name if Path(encoder).is_dir() else encoder,
        encoder_license=encoder_license or read_license(Path(encoder)),
    )
    wheel = build_wheel(
        pipeline,
        out,
        name=name,
        version=version,
        provenance=provenance,
        metrics=read_metrics(metrics) if metrics else None,
        overwrite=overwrite,
    )
    typer.echo(f"Written: {wheel}", err=True)


def _provenance(task: str, **stated: str) -> "Provenance":
    """Combine the options of the command line with the catalogue; the options win."""
    from ...catalog.tasks import load_tasks
    from ...packaging.card import Provenance

    tasks = load_tasks()
    known = tasks.get(task)
    if known:
        provenance = Provenance(
            corpus=task,
            corpus_license=known.licence,
            corpus_url=known.source,
            corpus_cite=known.cite,
        )
    elif task:
        raise BioclinError(f"--task is {task!r}, want one of {', '.join(tasks)}; or give --corpus")
    else:
        provenance = Provenance()
    return provenance._replace(**{key: value for key, value in stated.items() if value})


def read_license(encoder: Path) -> str:
    """Read the licence in the front matter of the model card of an encoder.

    encoder (Path): Folder of the encoder.
    RETURNS (str): Name of the licence, or "".
    """
    import srsly

    from ...settings import check_size

    card = encoder / "README.md"
    if not card.is_file():
        return ""
    parts = card.read_text(encoding="utf-8", errors="replace").split("---\n")
    if len(parts) < 3 or parts[0].strip():
        return ""
    try:
        header = srsly.yaml_loads(parts[1])
        check_size(header, str(card))
    except (ValueError, RecursionError):  # it belongs to somebody else
        return ""
    return str(header.get("license") or "") if isinstance(header, dict) else ""
