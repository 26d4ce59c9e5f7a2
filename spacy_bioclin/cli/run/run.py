"""`bioclin run`: annotate many notes, from files or tables, exactly once."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...parallel import show_progress
from ..loading import list_pipeline, load_pipeline
from . import options as given
from .engines import choose_engine, make_start, name_for_workers
from .estimate import show_estimate
from .sources import Choice, check_price, describe_left_out, open_source
from .targets import Choices, check_choices, choose_target, find_ending, make_target

if TYPE_CHECKING:
    from rich.console import Console

    from ...runner.notes.job import AnnotateJob
    from ...runner.parts import Engine, Part
    from ...runner.records import Form
    from ...runner.work import Counts, Done


class Options(NamedTuple):
    """How much is read, and how the run goes on."""

    limit: int | None
    engine: "Engine"
    resume: bool
    overwrite: bool
    skip_bad: bool


def main(
    pipeline: given.Pipeline,
    source: given.Source,
    out: given.Out,
    to: given.To = None,
    text_column: given.TextColumn = "text",
    id_column: given.IdColumn = None,
    keep: given.Keep = None,
    entity_text: given.EntityText = False,
    note_text: given.NoteText = False,
    encoding: given.Encoding = "utf-8",
    database: given.Database = None,
    key: given.Key = None,
    concepts: given.Concepts = None,
    snippet: given.Snippet = False,
    patient_column: given.PatientColumn = None,
    settings: given.SettingsFile = None,
    limit: given.Limit = None,
    sample: given.Sample = None,
    seed: given.Seed = None,
    since: given.Since = None,
    dry_run: given.DryRun = False,
    price: given.Price = None,
    engine: given.Engine = "local",
    processes: given.Processes = 1,
    gpu_id: given.GpuId = -1,
    precision: given.Precision = None,
    resume: given.Resume = False,
    overwrite: given.Overwrite = False,
    skip_bad: given.SkipBad = False,
) -> None:
    """Annotate many notes. OUT.run.json beside OUT counts them, and says what made it."""
    from rich.console import Console

    from ...outputs import lock_output
    from ...runner.columns import make_columns
    from ...runner.notes.job import AnnotateJob
    from ...runner.paths import check_output
    from ...runner.sources.distinct import Distinct

    form_name = choose_target(to, out)
    places: dict[str, Any] = {
        "suffix": find_ending(form_name, out),
        "record": beside(out, "run.json"),
        "beside": [beside(out, "quarantine.jsonl")],
    }
    inputs = [*list_pipeline(pipeline), concepts, settings, *(since or ())]
    check = partial(check_output, source, out, inputs, **places)
    check(overwrite=overwrite, resume=resume)
    columns = make_columns(text_column, id_column, patient_column, (), (), (), keep or ())
    chosen = choose_engine(engine, processes, gpu_id, skip_bad=skip_bad)
    if engine != "local":
        pipeline = name_for_workers(pipeline)
    load = partial(load_pipeline, pipeline, gpu_id=gpu_id, precision=precision)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    options = Options(limit, chosen, resume, overwrite, skip_bad)
    choices = Choices(entity_text, note_text, snippet, concepts, settings)
    check_choices(form_name, choices, columns)

    choice = Choice(database, key, sample, seed, since or ())
    check_price(price, dry_run=dry_run)

    def prepare() -> tuple["Form", "AnnotateJob"]:
        form = open_source(source, columns, encoding, choice)
        target = make_target(form, form_name, out, pipeline, choices)
        if target.distinct_ids:
            form = Distinct(form)
        return form, AnnotateJob(load, form.columns, form.id_column, target)

    if dry_run:
        show_estimate(*prepare(), limit=limit, processes=processes, price=price)
        return
    with lock_output(out):
        check(overwrite=overwrite, resume=resume)  # another run may have written it since
        form, job = prepare()
        about = describe_run(pipeline, form, job, form_name, options)
        run(form, job, make_start(chosen, job, pipeline, about), out, options, about, console)


def beside(out: Path, ending: str) -> Path:
    """Name a file that is beside the output."""
    return out.with_name(f"{out.name}.{ending}")


def describe_run(
    pipeline: str, form: "Form", job: "AnnotateJob", form_name: str, options: Options
) -> dict[str, Any]:
    """Describe all that the output depends on; no path, and no text of a note."""
    from ...files import hash_files
    from ...machine import find_versions
    from ...runner.notes.language import LIBRARY
    from ...vocab import find_folder
    from ..loading import find_name

    name, version = find_name(pipeline)
    keywords = getattr(job.load, "keywords", {})
    libraries = (*job.target.libraries, LIBRARY)
    return {
        "pipeline": {
            "name": name,
            "version": version,
            "sha256": hash_files(find_folder(pipeline)),
            "precision": keywords.get("precision") or "of the pipeline",
            "gpu": keywords.get("gpu_id", -1) >= 0,
        },
        "input": form.describe(),
        "columns": {
            "text": form.columns.text,
            "id": form.columns.id,
            "keep": sorted(form.columns.keep),
        },
        "output": {"format": form_name, **job.target.options()},
        "limit": options.limit,
        "versions": {**find_versions(), **find_installed(libraries)},
    }


def find_installed(libraries: Sequence[str]) -> dict[str, str]:
    """Find the versions of those libraries that are installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in libraries:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def run(
    form: "Form",
    job: "AnnotateJob",
    start: "Callable[[], Callable[[Part], Done]]",
    out: Path,
    options: Options,
    about: dict[str, Any],
    console: "Console",
) -> None:
    """Annotate an input into an output that is locked."""
    import json

    from ...runner.notes.job import PART_RECORDS, describe_counts
    from ...runner.parts import Portion, make_output
    from ...runner.work import Work, is_finished

    settings = {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for name, value in about.items()
    }
    resumes = options.resume and not options.overwrite
    if resumes and is_finished(out, beside(out, "run.json"), settings):
        console.print(f"{out} is finished already; nothing was left to do", markup=False)
        return
    work = Work(out, settings, resume=options.resume, overwrite=options.overwrite)
    words = 0

    def count(done: "Done") -> None:
        nonlocal words
        words += done.counts.get("words", 0)

    with show_progress(console, "notes") as on_progress:
        counts = make_output(
            form,
            work,
            start,
            beside(out, "run.json"),
            lambda counts: {
                **about,
                "engine": options.engine.describe(),
                **describe_counts(counts),
                **describe_left_out(form),
            },
            engine=options.engine,
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
            "made again, for they or their notes were not as this run had left them: "
            f"{len(work.damaged):,} files of the earlier run",
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
        lines.append(f"left out: {form.left_out:,} files with another ending")
    if form.known:
        lines.append(f"left out: {form.known:,} notes that earlier outputs have")
    for line in lines:
        console.print(line, markup=False)
