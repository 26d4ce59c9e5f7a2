"""`bioclin deid`: write notes that are safe to share."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ...parallel import show_progress
from ..language import shorten_language
from .setup import Setup, choose_pipeline, describe_setup, read_policy

if TYPE_CHECKING:
    from rich.console import Console

    from ...runner.deid import DeidJob
    from ...runner.records import Form
    from ...runner.survey import Field
    from ...runner.work import Counts

RULES_ONLY = (
    "warning: with --rules-only, only rules search: identifiers, dates, ages, contacts, addresses, "
    "and names and occupations that a label, a title, a usual first name or a set phrase shows. "
    "Other names, places and occupations are NOT found: read some of the output first"
)

Pipeline = Annotated[
    str | None,
    typer.Option(
        help="Folder or package name of a pipeline that finds PHI; without it, the installed "
        "LANG_bioclin_sm or larger"
    ),
]
PatientColumn = Annotated[
    str | None,
    typer.Option(help="Column with the patient's id, which is hashed; else each note has its own"),
]
Known = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT=COLUMN",
        help="Name, birth_date, identifier, phone, email or address of the patient; dropped",
    ),
]


def main(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help=".txt, folder of them, .jsonl, .csv, .tsv, .parquet"),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The same form as IN")],
    lang: Annotated[
        str, typer.Option(callback=shorten_language, help="Language of the notes: es or en")
    ],
    policy: Annotated[
        Path | None, typer.Option(help="YAML: what to do with which PHI; without it, mask all")
    ] = None,
    pipeline: Pipeline = None,
    rules_only: Annotated[
        bool,
        typer.Option("--rules-only", help="No pipeline: rules alone, which miss names and places"),
    ] = False,
    operating_point: Annotated[
        str | None, typer.Option(help="Thresholds of the pipeline: balanced or high_recall")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="Secret key (bioclin deid-key); else BIOCLIN_DEID_KEY")
    ] = None,
    text_column: Annotated[str, typer.Option(help="Column with the note")] = "text",
    id_column: Annotated[str | None, typer.Option(help="Column with the record's id")] = None,
    patient_column: PatientColumn = None,
    date_column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Dates, shifted as those of the patient's notes are"),
    ] = None,
    known: Known = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Leave out; may be repeated")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Write as it is; may be repeated")
    ] = None,
    rename: Annotated[
        bool, typer.Option("--rename", help="Names of files and ids of records become keyed hashes")
    ] = False,
    encoding: Annotated[
        str, typer.Option(help="Encoding of IN, such as cp1252; OUT is in UTF-8")
    ] = "utf-8",
    processes: Annotated[int, typer.Option(min=1, help="Each loads the pipeline")] = 1,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT")] = False,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Skip and count records that cannot be read or made safe"),
    ] = False,
) -> None:
    """Remove PHI from notes. OUT.audit.json beside OUT counts what was found, without any PHI."""
    from ...deid.secret import SecretKey, read_key
    from ...outputs import lock_output
    from ...runner.columns import make_columns
    from ...runner.deid import DeidJob
    from ...runner.forms import open_form
    from ...runner.paths import check_output

    inputs = [policy, key_file]
    check = partial(check_output, source, out, inputs, overwrite=overwrite, resume=resume)
    check()
    columns = make_columns(
        *(text_column, id_column, patient_column),
        *(known or (), date_column or (), drop or (), keep or ()),
    )
    pipeline = choose_pipeline(lang, pipeline, rules_only=rules_only, point=operating_point)
    key = SecretKey(read_key(key_file))
    setup = Setup(lang, pipeline, read_policy(policy, lang, pipeline), key, gpu_id, operating_point)
    with lock_output(out):
        check()  # another run may have written it since
        form = open_form(source, columns, encoding)
        job = DeidJob.for_form(form, setup.load, setup.key, out=out, rename=rename, lang=lang)
        run(form, setup, job, out, Options(processes, resume, overwrite, skip_bad, key_file))


class Options(NamedTuple):
    """How a run goes on, without influence on what it writes.

    key_file (Path | None): File of the key, which Setup has.
    """

    processes: int
    resume: bool
    overwrite: bool
    skip_bad: bool
    key_file: Path | None


def run(form: "Form", setup: "Setup", job: "DeidJob", out: Path, options: Options) -> None:
    """De-identify an input into an output that is locked."""
    from rich.console import Console

    from ...deid.secret import can_others_read
    from ...runner.engines.local import LocalEngine
    from ...runner.parts import make_output
    from ...runner.paths import find_audit
    from ...runner.survey import check_all_named, survey
    from ...runner.work import Work, is_finished

    setup.check(job.needs_key)
    fields = survey(form)
    check_all_named(form, fields, setup.lang)
    found = setup.fingerprints()
    settings = {
        "input": form.fingerprint(),
        **found,
        "columns": job.describe(),
        "encoding": form.encoding,
    }
    audit = find_audit(out)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if options.resume and not options.overwrite and is_finished(out, audit, settings):
        console.print(f"{out} is finished already; nothing was left to do", markup=False)
        return
    work = Work(out, settings, resume=options.resume, overwrite=options.overwrite)
    show_warnings(setup, form, fields, console)
    if options.key_file and can_others_read(options.key_file):
        console.print(
            f"warning: every user of this machine can read {options.key_file}, and so link notes "
            f"to patients: chmod 600 {options.key_file}",
            style="yellow",
            markup=False,
        )
    with show_progress(console, "records") as on_progress:
        counts = make_output(
            form,
            work,
            job.start,
            audit,
            lambda counts: {**job.make_audit(counts), **describe_setup(found, setup.name())},
            engine=LocalEngine(options.processes),
            skip_bad=options.skip_bad,
            on_progress=on_progress,
        )
    show_counts(counts, form, out, audit, console)
    if work.damaged:
        names = ", ".join(work.damaged[:3])
        more = f" and {len(work.damaged) - 3:,} more" if len(work.damaged) > 3 else ""
        console.print(
            f"made again, for it was not as this run had written it: {names}{more}", markup=False
        )


def show_warnings(
    setup: Setup, form: "Form", fields: dict[str, "Field"], console: "Console"
) -> None:
    """Print which pipeline is used; warn about names that rules do not find, and about columns that
    are written as they are."""
    from ...runner.survey import find_doubts

    if setup.pipeline is None:
        console.print(RULES_ONLY, style="yellow", markup=False)
    else:
        console.print(f"pipeline: {' '.join(setup.name() or ())}", markup=False)
    for path, why in find_doubts(form, fields, setup.lang):
        console.print(f"warning: --keep {path}: {why}", style="yellow", markup=False)
    if form.columns.dates and form.columns.patient is None:
        console.print(
            "warning: --date-column without --patient-column: the dates of each record move by "
            "another number of days",
            style="yellow",
            markup=False,
        )


def show_counts(counts: "Counts", form: "Form", out: Path, audit: Path, console: "Console") -> None:
    """Print the counts of a run."""
    notes = counts.get("notes", {})
    lines = [
        f"{counts['written']:,} records written to {out} ({counts.get('empty', 0):,} empty); "
        f"{notes.get('n_spans', 0):,} PHI spans, counted in {audit}"
    ]
    if counts["skipped"]:
        lines.append(
            f"skipped: {counts['skipped']:,} of {counts['read']:,} records that cannot be read or "
            "made safe; the audit says which"
        )
    if removed := counts.get("dates", {}).get("removed"):
        lines.append(
            f"warning: {removed:,} values of date columns were removed: they are not dates with "
            "a year, or stand for one that is unknown (1900, 9999)"
        )
    if notes.get("other_language"):
        lines.append(f"warning: {notes['other_language']:,} notes seem to be in another language")
    if form.left_out:
        lines.append(f"left out: {form.left_out:,} files that are not .txt")
    for line in lines:
        console.print(line, markup=False)
