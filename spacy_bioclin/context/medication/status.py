"""Tell whether a drug is taken, stopped, held, or an allergy."""

import re
from collections.abc import Collection, Sequence

from spacy.tokens import Span

from ..rules.attributes import SPANS_KEY, get_modifiers
from ..sections.result import get_section, get_sections
from .actions import Action, Drug
from .words import Words

MAX_ALLERGIES = 25  # words of a section of allergies: what follows may be without a heading
_GIVEN = re.compile(r"(?i)profil|prophyl|ppx|prevenci|prevention")
_ALLERGY_AFTER = re.compile(r"(?i)[\s-]?(?:allerg(?:y|ies|ic)|intoleran|alergia)")
_UNORDERED = ("tolerate", "take", "start", "continue", "change", "past", "stop", "hold", "avoid")


def is_allergy(
    ent: Span,
    text: str,
    start: int,
    drugs: Sequence[Drug],
    at: int,
    done: str | None,
    sections: Collection[str],
    words: Words,
) -> bool:
    """Check whether a drug is named as one that the patient does not bear."""
    drug = drugs[at]
    if _ALLERGY_AFTER.match(text, drug.end):
        return True
    cues = list(words.allergy.finditer(text, start, drug.start))
    if cues and not any(one.start >= cues[-1].end() for one in _list_verbs(drugs, at)):
        between = text[cues[-1].end() : drug.start]
        for other in drugs[:at]:
            between = between.replace(text[other.start : other.end], "")
        between = re.sub(r"\([^()]*\)", "", between)
        if not re.search(r"[;]|\.\s", between) and not re.search(
            r"\w", words.small_words.sub("", between)
        ):
            return True
    if get_section(ent) not in sections or done in _UNORDERED:
        return False
    if drug.has("dose", "bare", "frequency", "when", "schedule", "needed"):
        return False
    body = next(
        (
            each.body
            for each in reversed(get_sections(ent.doc))
            if each.body.start_char <= drug.start
        ),
        None,
    )
    if body is None:
        return False
    before = text[body.start_char : drug.start]
    if len(before.split()) > MAX_ALLERGIES:
        return False
    denied = list(words.no_allergy.finditer(before))
    is_new = any(re.search(r"[.;,\n]", before[one.end() :]) for one in denied)
    return not is_new


def _list_verbs(drugs: Sequence[Drug], at: int) -> list[Action]:
    return [one for drug in drugs[: at + 1] for one in drug.verbs]


def find_status(
    ent: Span, done: str | None, *, as_needed: bool, is_ordered: bool, is_active: bool
) -> str:
    """Find whether a drug is taken: by its verb, its context, its order and its section.

    done (str | None): See `find_done`.
    as_needed (bool): A condition says when it is taken, so it is not hypothetical.
    is_ordered (bool): It has an order with times.
    is_active (bool): It is in a section of current medication.
    RETURNS (str): A status of `Medication`.
    """
    modifiers = get_modifiers(ent)
    kinds = {each.kind for each in modifiers}
    if done in ("stop", "hold") and "family" not in kinds:
        return "stopped" if done == "stop" else "held"
    if done in ("maybe", "if") or kinds & {"uncertain", "family"}:
        return "unknown"
    if done == "avoid" or ("negated" in kinds and done not in ("continue", "change", "until")):
        return "not_taken"
    if not as_needed and any(
        each.kind == "hypothetical" and not _GIVEN.search(each.cue.text) for each in modifiers
    ):
        return "unknown"
    if done in ("start", "change", "continue"):
        return "taking"
    if "historical" in kinds:
        return "past"
    if done in ("past", "tolerate") or SPANS_KEY not in ent.doc.spans:
        return "unknown"  # without `bioclin_context` it may be negated
    if done == "take":
        return "taking"
    return "taking" if is_ordered or is_active else "unknown"
