"""`bioclin_measurements`: find quantities, times and dates, and normalise them."""

from collections.abc import Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ...errors import BioclinError
from ...settings import Settings, read_settings
from ..medication.record import install_extensions as install_medication
from . import store
from .relative import find_relative_dates, read_note_date
from .results import doc as results
from .rules.lexicon import LANGS
from .rules.units import check_code, check_form

# What the corpora of the catalogue call drugs and chemicals; compared without case.
DRUG_LABELS = [
    "NORMALIZABLES",
    "NO_NORMALIZABLES",
    "CHEMICAL",
    "FARMACO",
    "DRUG",
    "MEDICATION",
    "MEDICAMENTO",
    "CHEM",
]
DEFAULT_CONFIG: dict[str, Any] = {
    "langs": None,
    "spans_key": "measurements",
    "drug_labels": DRUG_LABELS,
    "units": {},
    "note_date": None,
}


class MeasurementSettings(Settings):
    """The settings of the component. See `make_measurements`."""

    langs: list[str] | None
    spans_key: str
    drug_labels: list[str]
    units: dict[str, str]
    note_date: str | None


class MeasurementFinder:
    """Write the measurements of a Doc to a span group. See `make_measurements`.

    name (str): The component's name in the pipeline.
    settings (MeasurementSettings): Its settings; `langs` are given.
    """

    def __init__(self, name: str, settings: MeasurementSettings) -> None:
        self.name, self.settings = name, settings
        self._note_date = read_note_date(
            settings.note_date, f"[components.{name}] note_date = {settings.note_date!r}"
        )
        self._stored = {
            "langs": settings.langs,
            "units": settings.units,
            "drug_labels": [label.lower() for label in settings.drug_labels],
        }
        store.install_extensions()
        install_medication()
        results.install_extensions()

    def __call__(self, doc: Doc) -> Doc:
        """Find the measurements of a Doc, replacing those that an earlier run found.

        RAISES (BioclinError): `doc._.note_date` is not a date.
        """
        store.install_extensions()  # lost when a worker process starts
        install_medication()
        results.install_extensions()
        langs = self.settings.langs or []
        text = doc.text
        found = store.find_in(text, langs, self.settings.units)
        given = read_note_date(doc._.note_date, f"{self.name}: doc._.note_date")
        if day := given or self._note_date:
            dates = [one for lang in langs for one in find_relative_dates(text, found, lang, day)]
            found = sorted(found + dates, key=lambda one: (one.start_char, one.end_char))
        store.set_measurements(doc, self.settings.spans_key, found, self._stored)
        return doc


@Language.factory(
    "bioclin_measurements",
    assigns=[
        "doc.spans",
        "doc._.measurements",
        "doc._.results",
        "span._.measurement",
        "span._.medication",
    ],
    default_config=DEFAULT_CONFIG,
    retokenizes=False,
)
def make_measurements(
    nlp: Language,
    name: str,
    langs: Sequence[str] | None,
    spans_key: str,
    drug_labels: Sequence[str],
    units: dict[str, str],
    note_date: str | None,
) -> MeasurementFinder:
    """Make the component.

    nlp (Language): The pipeline.
    name (str): The component's name in the pipeline.
    langs (Sequence[str] | None): Languages of the rules, "es" and "en": the first decides how
        numbers and dates are read. None for the pipeline's language.
    spans_key (str): Measurements are written to `doc.spans[spans_key]`, labelled by their kind.
    drug_labels (Sequence[str]): Labels of drugs, in any case: `ent._.medication` is for them.
    units (dict[str, str]): Further written forms of units, with their UCUM codes.
    note_date (str | None): ISO date of the notes, from which "hace 3 días" counts; a note's own
        date, `doc._.note_date`, comes first.
    RETURNS (MeasurementFinder): The component.
    RAISES (BioclinError): There are no rules for a language, or a setting is wrong.
    """
    where = f"[components.{name}]"
    if langs is None:
        langs = [str(nlp.lang)]
    values = {
        "langs": list(langs),
        "spans_key": spans_key,
        "drug_labels": list(drug_labels),
        "units": dict(units),
        "note_date": note_date,
    }
    settings = read_settings(MeasurementSettings, values, where=where)
    for lang in settings.langs or [""]:
        if lang not in LANGS:
            raise BioclinError(
                f"{where} langs: there are no rules for the language {lang!r}; set langs to some of"
                f" {', '.join(LANGS)}"
            )
    for form, code in settings.units.items():
        check_form(form, f"{where} units")
        check_code(code, f"{where} units.{form}")
    return MeasurementFinder(name, settings)
