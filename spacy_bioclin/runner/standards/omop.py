"""Rows of NOTE_NLP, the table of OMOP's Common Data Model for what is found in notes.

Source: OMOP CDM 5.4, NOTE_NLP, https://ohdsi.github.io/CommonDataModel/cdm54.html#note_nlp, with
its conventions: `term_exists` is false with Negation = true, with another Subject than the patient,
or with Conditional = true; uncertainty leaves it true, unless it is very low, a grade that
`bioclin_context` does not have. `term_temporal` is "past" with History = true.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from pydantic import Field
from spacy.tokens import Doc

from ...context.medication.record import Medication
from ...errors import BioclinError
from ...linking.references import BROAD, EXACT
from .mapping import CodeSettings, ConceptMap, Namespaces, Target
from .mentions import Counts, Mention, find_measurement, read_mentions

# Lengths of the columns, in characters.
SNIPPET, LEXICAL_VARIANT, NLP_SYSTEM, TERM_MODIFIERS = 250, 250, 250, 2000
MAX_ID, MAX_BIG_ID = 2**31 - 1, 2**63 - 1
NO_CONCEPT = (Target(0, 0),)  # OMOP's "No matching concept"
YES, NO = "Y", "N"  # the CDM has one character for it, and does not say which
NOT_TAKEN = ("stopped", "held", "not_taken", "allergy")  # drugs that are no exposure


class OmopSettings(CodeSettings):
    """Settings of NOTE_NLP, beside those of `CodeSettings`.

    nlp_system (str): Name and version of the pipeline.
    nlp_datetime (datetime): When the notes were processed, the same for all rows of a run; without
        it, now. With a time zone, it is written in UTC.
    labels (list[str] | None): Labels that are written; None for all.
    sections (dict[str, int]): Concepts of sections by category. Where one is missing, the LOINC
        code of the category is looked up in the table of concepts.
    snippet (bool): Write the text around each mention. It is text of the note.
    bigint (bool): The database has ids of eight bytes. The CDM has four: 2,147,483,647 rows.
    """

    nlp_system: str = Field(max_length=NLP_SYSTEM)
    nlp_datetime: datetime = Field(default_factory=lambda: datetime.now(UTC))
    labels: list[str] | None = None
    sections: dict[str, int] = Field(default_factory=dict)
    snippet: bool = False
    bigint: bool = False

    @property
    def moment(self) -> datetime:
        """Convert `nlp_datetime` to UTC, in whole seconds and without a time zone."""
        moment = self.nlp_datetime
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC)
        return moment.replace(tzinfo=None, microsecond=0)


class NoteNlpRow(NamedTuple):
    """A row of NOTE_NLP; the columns in the order of the CDM."""

    note_nlp_id: int
    note_id: int
    section_concept_id: int | None
    snippet: str | None
    offset: str
    lexical_variant: str
    note_nlp_concept_id: int
    note_nlp_source_concept_id: int
    nlp_system: str
    nlp_date: date
    nlp_datetime: datetime
    term_exists: str | None
    term_temporal: str | None
    term_modifiers: str | None


def to_note_nlp(
    doc: Doc,
    *,
    note_id: int,
    first_id: int,
    settings: OmopSettings,
    concepts: ConceptMap | None = None,
    counts: Counts | None = None,
) -> list[NoteNlpRow]:
    """Make the rows of a note, one for each mention and concept.

    A mention without a concept gets one row with concept 0. `lexical_variant`, which must not be
    null, has the words of the mention, so the rows hold text of the note.

    doc (Doc): The annotated note. It is not changed.
    note_id (int): Its NOTE.note_id.
    first_id (int): The note_nlp_id of the first row; the others follow.
    concepts (ConceptMap | None): Concepts by code; None if there is no table.
    counts (Counter | None): Rows, and what was cut, left out or not mapped, are added to it.
    RETURNS (list[NoteNlpRow]): In order of the text.
    RAISES (BioclinError): An id is greater than its column.
    """
    counts = Counter() if counts is None else counts
    namespaces, concepts = Namespaces(settings), concepts or ConceptMap({})
    moment = settings.moment
    rows: list[NoteNlpRow] = []
    for mention in read_mentions(doc, settings, counts):
        if settings.labels is not None and mention.label not in settings.labels:
            counts[f"left out, label {mention.label}"] += 1
            continue
        for target in _find_concepts(mention, namespaces, concepts, counts):
            rows.append(
                NoteNlpRow(
                    note_nlp_id=first_id + len(rows),
                    note_id=note_id,
                    section_concept_id=_find_section(mention, settings, namespaces, concepts),
                    snippet=_cut_snippet(doc.text, mention, counts) if settings.snippet else None,
                    offset=str(mention.start),
                    lexical_variant=_cut(mention.text, LEXICAL_VARIANT, "lexical_variant", counts),
                    note_nlp_concept_id=target.concept_id,
                    note_nlp_source_concept_id=target.source_concept_id,
                    nlp_system=settings.nlp_system,
                    nlp_date=moment.date(),
                    nlp_datetime=moment,
                    term_exists=_find_existence(mention),
                    term_temporal=_find_time(mention),
                    term_modifiers=_join_modifiers(mention, counts),
                )
            )
    check_id("note_id", note_id, settings)
    if rows:
        check_id("note_nlp_id", rows[-1].note_nlp_id, settings)
    counts["rows"] += len(rows)
    for row in rows:
        if row.note_nlp_concept_id == 0:
            counts["rows without a concept"] += 1
        if row.section_concept_id == 0:
            counts["rows without the concept of their section"] += 1
    return rows


def check_id(name: str, value: int, settings: OmopSettings) -> None:
    """Check that a column can hold an id.

    RAISES (BioclinError): It cannot.
    """
    highest = MAX_BIG_ID if settings.bigint else MAX_ID
    if value > highest:
        raise BioclinError(
            f"{name} = {value}: the column holds at most {highest}; give smaller ids, or make "
            "the column a bigint and set bigint = true"
        )


def _find_concepts(
    mention: Mention, namespaces: Namespaces, concepts: ConceptMap, counts: Counts
) -> tuple[Target, ...]:
    if not mention.kb_id:
        counts["mentions without an id"] += 1
        return NO_CONCEPT
    found = concepts.find(namespaces.split(mention.kb_id))
    if not found:  # the first terminology whose one code the table has
        exact = [code for code in mention.codes if code.match == EXACT]
        targets = (concepts.find(namespaces.normalize(one.system, one.code)) for one in exact)
        found = next(filter(None, targets), ())
    if not found:
        counts["mentions whose id is not in the table of concepts"] += 1
    return found or NO_CONCEPT


def _find_section(
    mention: Mention, settings: OmopSettings, namespaces: Namespaces, concepts: ConceptMap
) -> int | None:
    """Find the concept of a section: None without a section, 0 if the section has no concept."""
    if mention.section is None:
        return None
    if mention.section in settings.sections:
        return settings.sections[mention.section]
    if mention.loinc is None:
        return 0
    found = concepts.find(namespaces.normalize("LOINC", mention.loinc))
    return found[0].concept_id if found else 0


def _find_existence(mention: Mention) -> str | None:
    if mention.medication is not None and mention.medication.status in NOT_TAKEN:
        return NO
    if mention.context is None:
        return None
    return NO if mention.context & {"negated", "family", "hypothetical"} else YES


def _find_time(mention: Mention) -> str | None:
    """Find whether it is "past" or "present"; what may come is neither."""
    if mention.context is None:
        return None
    if "historical" in mention.context:
        return "past"
    return None if "hypothetical" in mention.context else "present"


def _list_modifiers(mention: Mention) -> Iterator[tuple[str, Any]]:
    """List modifiers: first those that the CDM names, only where they are set."""
    context = mention.context or frozenset()
    for kind, name, value in (
        ("negated", "Negation", "true"),
        ("family", "Subject", "family"),
        ("hypothetical", "Conditional", "true"),
        ("uncertain", "Uncertain", "true"),
        ("historical", "History", "true"),
    ):
        if kind in context:
            yield name, value
    if mention.medication is not None:
        yield from _list_order(mention.medication)
    measurement = find_measurement(mention)
    if measurement is not None and not isinstance(measurement.value, tuple):
        yield "Value", measurement.value
        yield "High", measurement.high
        yield "Comparator", measurement.comparator
        yield "Unit", measurement.unit
    yield "Label", mention.label
    yield "Code", mention.kb_id
    for name, match in (("Codes", EXACT), ("BroaderCodes", BROAD)):
        codes = [f"{one.system}:{one.code}" for one in mention.codes if one.match == match]
        yield name, " ".join(code for code in codes if code != mention.kb_id)
    yield "Section", mention.section
    if mention.probability is not None:
        yield "Probability", f"{mention.probability:.4f}"


def _list_order(medication: Medication) -> Iterator[tuple[str, Any]]:
    """List what is said of a drug; not its reason, which is text of the note."""
    yield "Status", medication.status
    if medication.dose is not None:
        yield "Dose", medication.dose.value
        yield "DoseUnit", medication.dose.unit
    yield "Route", medication.route
    yield "Form", medication.form
    frequency = medication.frequency
    if frequency is not None and frequency.high is None:
        yield "Frequency", f"{frequency.value:.10g}/{frequency.unit}" if frequency.unit else None
    yield "When", " ".join(each.code for each in medication.when)
    yield "AsNeeded", "true" if medication.as_needed else None


def _join_modifiers(mention: Mention, counts: Counts) -> str | None:
    """Join modifiers as "Negation=true,Label=SYMPTOM"."""
    parts = [
        f"{name}={_quote(f'{value:.10g}' if isinstance(value, float) else value)}"
        for name, value in _list_modifiers(mention)
        if value not in (None, "")
    ]
    return _cut(",".join(parts), TERM_MODIFIERS, "term_modifiers", counts) or None


def _quote(value: str) -> str:
    """Quote what separates modifiers, as in addresses."""
    return value.replace("%", "%25").replace(",", "%2C").replace("=", "%3D")


def _cut_snippet(text: str, mention: Mention, counts: Counts) -> str:
    """Cut the text around a mention, as much of it as the column holds."""
    if mention.end - mention.start > SNIPPET:
        return _cut(mention.text, SNIPPET, "snippet", counts)
    room = SNIPPET - (mention.end - mention.start)
    start = max(0, min(mention.start - room // 2, len(text) - SNIPPET))
    return text[start : start + SNIPPET]


def _cut(text: str, length: int, column: str, counts: Counts) -> str:
    if len(text) > length:
        counts[f"{column} cut to {length} characters"] += 1
    return text[:length]
