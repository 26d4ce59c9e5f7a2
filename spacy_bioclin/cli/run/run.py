"""`bioclin run`: annotate many notes, from files or tables, exactly once."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ...errors import BioclinError
from ...parallel import show_progress
from ..loading import list_pipeline, load_pipeline

if TYPE_CHECKING:
    from rich.console import Console

    from ...runner.notes.job import AnnotateJob
    from ...runner.records import Form
    from ...runner.work import Counts, Done

TARGETS = ("jsonl", "parquet", "spacy", "brat")
SAMPLE_SECONDS = 10.0


class Options(NamedTuple):
    """How much is read, and how the run goes on."""

    limit: int | None
    processes: int
    resume: bool
    overwrite: bool
    skip_bad: bool


def main(
    pipeline: Annotated[str, typer.Argument(help="Folder or package name of the pipeline")],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help=".txt, folder of them, .jsonl, .csv, .tsv, .parquet, .spacy"
        ),
    ],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="File for jsonl; else a folder, made anew")
    ],
    to: Annotated[
        str | None,
        typer.Option(help="jsonl, parquet, spacy or brat; without it, the ending of OUT"),
    ] = None,
    text_column: Annotated[str, typer.Option(help="Column with the note")] = "text",
    id_column: Annotated[str | None, typer.Option(help="Column with the note's id")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Write as it is; may be repeated")
    ] = None,
    entity_text: Annotated[
        bool, typer.Option("--entity-text", help="Write the text of each entity")
    ] = False,
    note_text: Annotated[
        bool, typer.Option("--note-text", help="Write the text of each note")
    ] = False,
    encoding: Annotated[
        str, typer.Option(help="Encoding of IN, such as cp1252; OUT is in UTF-8")
    ] = "utf-8",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Read only the first notes of IN")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing: columns, first note, hours")
    ] = False,
    processes: Annotated[int, typer.Option(min=1, help="Each loads the pipeline")] = 1,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
    precision: Annotated[
        str | None, typer.Option("--precision", help="auto, fp32, bf16, fp16 (GPU) or int8 (CPU)")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT")] = False,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Put notes that fail into OUT.quarantine.jsonl, and go on"),
    ] = False,
) -> None:
    """Annotate many notes. OUT.run.json beside OUT counts them, and says what made it."""
    from rich.console import Console

    from ...outputs import lock_output
    from ...runner.columns import make_columns
    from ...runner.notes.sources import open_notes
    from ...runner.paths import check_output

    form_name = choose_target(to, out)
    places: dict[str, Any] = {
        "suffix": ".jsonl" if form_name == "jsonl" else "",
        "record": beside(out, "run.json"),
        "beside": [beside(out, "quarantine.jsonl")],
    }
    check = partial(check_output, source, out, list_pipeline(pipeline), **places)
    check(overwrite=overwrite, resume=resume)
    columns = make_columns(text_column, id_column, None, (), (), (), keep or ())
    load = partial(load_pipeline, pipeline, gpu_id=gpu_id, precision=precision)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    options = Options(limit, processes, resume, overwrite, skip_bad)
    texts = {"entity_text": entity_text, "note_text": note_text}

    def prepare() -> tuple["Form", "AnnotateJob"]:
        form = open_notes(source, columns, encoding)
        return form, make_job(form, form_name, load, **texts)

    if dry_run:
        show_estimate(*prepare(), options)
        return
    with lock_output(out):
        check(overwrite=overwrite, resume=resume)  # another run may have written it since
        form, job = prepare()
        run(form, job, out, options, describe_run(pipeline, form, job, form_name, options), console)


def beside(out: Path, ending: str) -> Path:
    """Name a file that is beside the output."""
    return out.with_name(f"{out.name}.{ending}")


def choose_target(to: str | None, out: Path) -> str:
    """Choose the form of the output.

    RAISES (BioclinError): It is unknown, or the ending of the output does not say it.
    """
    chosen = out.suffix.lower().removeprefix(".") if to is None else to
    if chosen not in TARGETS:
        what = f"--to {to}" if to is not None else f"{out}: its ending does not say the form; --to"
        raise BioclinError(f"{what}: want one of {', '.join(TARGETS)}")
    return chosen


def make_job(
    form: "Form", form_name: str, load: Any, *, entity_text: bool, note_text: bool
) -> "AnnotateJob":
    """Make what every process does."""
    from ...runner.notes.job import AnnotateJob
    from ...runner.notes.sources import find_id_column
    from ...runner.notes.tables import ParquetTarget
    from ...runner.notes.targets import BratTarget, DocsTarget, JsonLinesTarget
    from ...runner.parquet import Parquet

    kept = sorted(form.columns.keep)
    options: dict[str, Any] = {"entity_text": entity_text, "note_text": note_text}
    if form_name == "parquet":
        schema = form.schema if isinstance(form, Parquet) else None
        named = [name for name in kept if schema is not None and name in schema.names]
        options["types"] = {name: schema.field(name).type for name in named if schema is not None}
        target: Any = ParquetTarget(kept, **options)
    else:
        targets = {"jsonl": JsonLinesTarget, "spacy": DocsTarget, "brat": BratTarget}
        target = targets[form_name](kept, **options)
    return AnnotateJob(load, form.columns, find_id_column(form), target)


def describe_run(
    pipeline: str, form: "Form", job: "AnnotateJob", form_name: str, options: Options
) -> dict[str, Any]:
    """Describe all that the output depends on; no path, and no text of a note."""
    from ...files import hash_files
    from ...machine import find_versions
    from ...vocab import find_folder
    from ..loading import find_name

    name, version = find_name(pipeline)
    keywords = getattr(job.load, "keywords", {})
    return {
        "pipeline": {
            "name": name,
            "version": version,
            "sha256": hash_files(find_folder(pipeline)),
            "precision": keywords.get("precision") or "of the pipeline",
            "gpu": keywords.get("gpu_id", -1) >= 0,
        },
        "input": {"fingerprint": form.fingerprint(), "encoding": form.encoding},
        "columns": {
            "text": form.columns.text,
            "id": form.columns.id,
            "keep": list(job.target.kept),
        },
        "output": {
            "format": form_name,
            "entity_text": job.target.entity_text,
            "note_text": job.target.note_text,
        },
        "limit": options.limit,
        "versions": {**find_versions(), **find_pyarrow(form_name)},
    }


def find_pyarrow(form_name: str) -> dict[str, str]:
    """Find the version of pyarrow, if it writes the output."""
    from importlib.metadata import version

    return {"pyarrow": version("pyarrow")} if form_name == "parquet" else {}


def run(
    form: "Form",
    job: "AnnotateJob",
    out: Path,
    options: Options,
    about: dict[str, Any],
    console: "Console",
) -> None:
    """Annotate an input into an output that is locked."""
    import json

    from ...runner.notes.job import PART_RECORDS, describe_counts
    from ...runner.parts import Portion, make_output
    from ...runner.work import Work

    settings = {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for name, value in about.items()
    }
    work = Work(out, settings, resume=options.resume, overwrite=options.overwrite)
    words = 0

    def count(done: "Done") -> None:
        nonlocal words
        words += done.counts.get("words", 0)

    with show_progress(console, "notes") as on_progress:
        counts = make_output(
            form,
            work,
            job.start,
            beside(out, "run.json"),
            lambda counts: {**about, **describe_counts(counts)},
            processes=options.processes,
            skip_bad=options.skip_bad,
            on_progress=lambda share, n: on_progress(share, n, words),
            on_done=count,
            portion=Portion(options.limit, PART_RECORDS),
            target=job.target,
            quarantine=beside(out, "quarantine.jsonl"),
        )
    show_counts(counts, form, out, console)
    if work.damaged:
        console.print(
            f"made again, for they were not as this run had written them: {len(work.damaged):,} "
            "files of the earlier run",
            markup=False,
        )


def show_counts(counts: "Counts", form: "Form", out: Path, console: "Console") -> None:
    """Print the counts of a run."""
    n_entities = sum(sum(labels.values()) for labels in counts.get("entities", {}).values())
    lines = [
        f"{counts['written']:,} notes written to {out} ({counts.get('empty', 0):,} empty); "
        f"{n_entities:,} entities, counted in {beside(out, 'run.json')}"
    ]
    if counts["skipped"]:
        lines.append(
            f"skipped: {counts['skipped']:,} of {counts['read']:,} notes; "
            f"{beside(out, 'quarantine.jsonl')} says which, and why"
        )
    if (coverage := counts.get("coverage")) and coverage["outside"]:
        lines.append(
            f"warning: {coverage['outside']:,} characters of {coverage['partial']:,} notes are in "
            "no window of the encoder, and were not read"
        )
    if form.left_out:
        lines.append(f"left out: {form.left_out:,} files that are not .txt")
    for line in lines:
        console.print(line, markup=False)


def show_estimate(form: "Form", job: "AnnotateJob", options: Options) -> None:
    """Print the columns of the output, the counts of the first note, and how long all take."""
    from ...runner.notes.estimate import estimate

    for line in job.target.describe():
        typer.echo(line)
    found = estimate(form, job.start, seconds=SAMPLE_SECONDS, limit=options.limit)
    if found.first.get("written"):
        first = found.first
        labels = [
            f"{layer} {label} {n:,}"
            for layer, counts in first.get("entities", {}).items()
            for label, n in counts.items()
        ]
        typer.echo(
            f"first note ({first['place']}): {first.get('characters', 0):,} characters, "
            f"{first.get('words', 0):,} words; {', '.join(labels) or 'no entities'}"
        )
    n, words, seconds = found.counts["written"], found.counts["words"], found.seconds
    typer.echo(
        f"sample: {n:,} notes, {words:,} words in {seconds:,.1f} s in one process: "
        f"{found.rate:,.1f} notes/s, {words / max(seconds, 1e-9):,.0f} words/s"
    )
    if found.refused:
        typer.echo(f"of the sample, {len(found.refused):,} notes fail: {found.refused[0]}")
    if found.total is None or found.hours is None:
        reason = "no note was annotated" if n == 0 else "it is not known how many notes there are"
        typer.echo(f"estimate: none, because {reason}")
        return
    about = "" if found.is_all else "about "
    shared = f", {found.hours / options.processes:,.2f} h in {options.processes} processes"
    typer.echo(
        f"estimate: {about}{found.total:,.0f} notes; {found.hours:,.2f} h in one process"
        f"{shared if options.processes > 1 else ''}"
    )
