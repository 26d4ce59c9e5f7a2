"""Choose the form of the output of `bioclin run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import BioclinError
from ..loading import find_name

if TYPE_CHECKING:
    from ...runner.columns import Columns
    from ...runner.notes.targets import Target
    from ...runner.records import Form

# Form of the output -> endings that a file of it may have; none for a folder.
ENDINGS: dict[str, tuple[str, ...]] = {
    "jsonl": (".jsonl",),
    "parquet": (),
    "spacy": (),
    "brat": (),
    "omop": (".csv", ".parquet"),
    "fhir": (".ndjson",),
}
STANDARDS = ("omop", "fhir")


class Choices(NamedTuple):
    """What is written, beside the form.

    entity_text (bool): The text of each entity.
    note_text (bool): The text of each note.
    snippet (bool): The text around each entity.
    concepts (Path | None): Table of concepts of OMOP.
    settings (Path | None): YAML with more settings of OMOP or FHIR.
    """

    entity_text: bool
    note_text: bool
    snippet: bool = False
    concepts: Path | None = None
    settings: Path | None = None


def choose_target(to: str | None, out: Path) -> str:
    """Choose the form of the output.

    RAISES (BioclinError): It is unknown, or the ending of the output does not say it.
    """
    chosen = out.suffix.lower().removeprefix(".") if to is None else to
    if chosen not in ENDINGS:
        what = f"--to {to}" if to is not None else f"{out}: its ending does not say the form; --to"
        raise BioclinError(f"{what}: want one of {', '.join(ENDINGS)}")
    return chosen


def find_ending(form_name: str, out: Path) -> str:
    """Find the ending that the output must have; "" for a folder."""
    endings = ENDINGS[form_name]
    return out.suffix.lower() if out.suffix.lower() in endings else next(iter(endings), "")


def check_choices(form_name: str, choices: Choices, columns: "Columns") -> None:
    """Refuse options that the form of the output does not have.

    RAISES (BioclinError): There are some.
    """
    ours = tuple(name for name in ENDINGS if name not in STANDARDS)
    given: dict[str, tuple[bool, tuple[str, ...]]] = {
        "--entity-text": (choices.entity_text, ours),
        "--note-text": (choices.note_text, (*ours, "fhir")),
        "--keep": (bool(columns.keep), ours),
        "--snippet": (choices.snippet, ("omop",)),
        "--concepts": (choices.concepts is not None, ("omop",)),
        "--patient-column": (columns.patient is not None, ("fhir",)),
        "--settings": (choices.settings is not None, STANDARDS),
    }
    for option, (is_given, forms) in given.items():
        if is_given and form_name not in forms:
            raise BioclinError(
                f"{option} with --to {form_name}: only for {', '.join(forms)}; leave it out"
            )


def make_target(
    form: "Form", form_name: str, out: Path, pipeline: str, choices: Choices
) -> "Target":
    """Make the form of the output.

    pipeline (str): Folder or package name of the pipeline.
    RAISES (BioclinError): The form cannot hold what was chosen.
    """
    from ...runner.notes.tables import ParquetTarget
    from ...runner.notes.targets import BratTarget, DocsTarget, JsonLinesTarget

    if form_name in STANDARDS:
        return make_standard(form, form_name, out, pipeline, choices)
    kept = sorted(form.columns.keep)
    options: dict[str, Any] = {
        "entity_text": choices.entity_text,
        "note_text": choices.note_text,
    }
    if form_name == "parquet":
        types = {name: form.types[name] for name in kept if name in form.types}
        return ParquetTarget(kept, **options, types=types)
    targets = {"jsonl": JsonLinesTarget, "spacy": DocsTarget, "brat": BratTarget}
    return targets[form_name](kept, **options)


def make_standard(
    form: "Form", form_name: str, out: Path, pipeline: str, choices: Choices
) -> "Target":
    """Make the table of OMOP or the bundles of FHIR."""
    from ...runner.standards.fhir import FhirSettings
    from ...runner.standards.omop import NLP_SYSTEM
    from ...runner.standards.targets import FhirTarget, OmopTarget, TableSettings, load_more

    if form_name == "omop":
        system = " ".join(filter(None, find_name(pipeline)))[:NLP_SYSTEM]
        table = load_more(TableSettings, choices.settings, nlp_system=system)
        if choices.snippet:
            table = table.model_copy(update={"snippet": True})
        return OmopTarget(
            form.id_column,
            table,
            concepts=choices.concepts,
            parquet=out.suffix.lower() == ".parquet",
        )
    bundles = load_more(FhirSettings, choices.settings)
    if choices.note_text:
        bundles = bundles.model_copy(update={"attach_text": True})
    return FhirTarget(form.id_column, bundles, patient_column=form.columns.patient)
