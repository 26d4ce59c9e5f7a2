"""`bioclin package`: make a wheel from a trained pipeline."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from ...packaging.card import Corpus


def main(
    pipeline: Annotated[Path, typer.Argument(help="Folder of the trained pipeline")],
    out: Annotated[Path, typer.Argument(help="Folder for the wheel")],
    name: Annotated[str, typer.Option(help="The package is called LANG_bioclin_NAME")],
    version: Annotated[str, typer.Option(help="Version of the package, e.g. 0.1.0")],
    metrics: Annotated[
        list[Path] | None, typer.Option(help="Scores for the card, from `bioclin evaluate`")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="Task of the catalogue that the pipeline learned from")
    ] = None,
    corpus: Annotated[
        list[str] | None, typer.Option(help="Name of a corpus that is not in the catalogue")
    ] = None,
    corpus_license: Annotated[
        list[str] | None, typer.Option(help="Licence of each --corpus, in the same order")
    ] = None,
    encoder: Annotated[str, typer.Option(help="Folder or name of the pretrained encoder")] = "",
    encoder_license: Annotated[
        str, typer.Option(help="Licence of the encoder; else what README.md in its folder says")
    ] = "",
    note: Annotated[
        Path | None, typer.Option(help="Markdown for the last section of the card")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the wheel")] = False,
) -> None:
    """Package a pipeline with its model card, scores and licences. Needs no network.

    --metrics, --task, --corpus and --corpus-license may be given several times.
    """
    from ...packaging.build import build_wheel
    from ...packaging.card import NOT_STATED, Provenance
    from ...packaging.metrics import read_metrics

    provenance = Provenance(
        _find_corpora(task or [], corpus or [], corpus_license or []),
        (Path(encoder).name if Path(encoder).is_dir() else encoder) or NOT_STATED,
        encoder_license or read_license(Path(encoder)) or NOT_STATED,
    )
    wheel = build_wheel(
        pipeline,
        out,
        name=name,
        version=version,
        provenance=provenance,
        metrics=[read_metrics(path) for path in metrics or ()],
        note=read_note(note) if note else "",
        overwrite=overwrite,
    )
    typer.echo(f"Written: {wheel}", err=True)


def _find_corpora(tasks: list[str], names: list[str], licences: list[str]) -> tuple["Corpus", ...]:
    """Look up tasks in the catalogue, and pair the names and licences of other corpora.

    RAISES (BioclinError): A task is unknown, or the licences are not as many as the corpora.
    """
    from ...catalog.tasks import load_tasks
    from ...packaging.card import NOT_STATED, Corpus

    known = load_tasks()
    if unknown := [task for task in tasks if task not in known]:
        raise BioclinError(
            f"--task is {unknown[0]!r}, want one of {', '.join(known)}; or give --corpus"
        )
    if licences and len(licences) != len(names):
        raise BioclinError(
            f"--corpus is given {len(names)} times and --corpus-license {len(licences)} times: "
            f"give a licence for each corpus, {NOT_STATED!r} where there is none"
        )
    found = [(task, known[task]) for task in dict.fromkeys(tasks)]
    others = zip(names, licences or [NOT_STATED] * len(names), strict=True)
    corpora = (
        *(Corpus(name, task.licence, task.source, task.cite) for name, task in found),
        *(Corpus(name, licence) for name, licence in others),
    )
    return corpora or (Corpus(),)


def read_note(path: Path) -> str:
    """Read a Markdown file.

    RAISES (BioclinError): It cannot be read as UTF-8, or is empty.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        kind = type(error).__name__
        raise BioclinError(f"--note {path}: cannot be read as UTF-8 ({kind})") from None
    if not text.strip():
        raise BioclinError(
            f"--note {path}: is empty; write what the card should say, or leave it out"
        )
    return text


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
