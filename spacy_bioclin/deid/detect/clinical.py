"""Tell names of people and places that rules found from clinical words in capitals.

In a note in capitals a rule for names sees "CAMPO VISUAL ALTERADO" and "EULOGIO VILLACAMPA HC".
Words behind a name that are short forms ("HC", "ENT") are no part of it, and what consists of
clinical words is no name. What is a clinical word or short form, the lexicon says
(tokenization/short_forms.py).
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache

from ...text import fold_alnum
from ...tokenization.short_forms import fold_short, load_short_forms
from ..spans import PhiSpan
from ..surrogates.name_lists import PARTICLES, TITLES
from .allow_list import usual_names

PEOPLE = frozenset({"patient_name", "staff_name"})
PLACES = frozenset({"hospital", "health_centre", "organization"})
MAX_SHORT = 6  # letters of a short form behind a name
MIN_WORD = 4  # letters of a clinical word
# What stands behind a name in headers, beside short forms, and words of places that name none.
BEHIND = frozenset(
    fold_alnum(word)
    for word in """HC RUT RUN DNI CC TI CE COP CMP CEP RNE RM MP MN CED PROF COL WSP TEL CEL EDAD
    SEXO NHC NSS FOLIO CAMA HAB EL LA LOS CHI HRN MRN DOB NHS SS SSN ACCT CLAIM ASST ASSISTANT
    ANESTHESIA ANAES ACCESS PGY CIRC SCRUB BED ROOM DEAR LETTER M""".split()  # noqa: SIM905
)
GENERIC = frozenset(
    """clinic clinica unit unidad ward service servicio surgery surgical medical medicine regional
    health mental hospital result results department outpatient inpatient emergency general center
    centre college lab labs laboratory drugs eye joint care home rehab rehabilitation discharge
    treatment plan summary team office group consulta consultas planta urgencias""".split()  # noqa: SIM905
)
HEADS = frozenset(("hospital", "clinica", "instituto", "sanatorio", "maternidad", "policlinica"))
_WORD = re.compile(r"[^\W\d_]+")
_BREAK = re.compile(r"[.:]\s+|\n\s*")
# What stands before a name whatever it looks like.
_TITLE = re.compile(
    r"(?<![^\W_])(?:dra?|doctora?|sra?|srta|señora?|mrs|miss|prof)\b[.ªa]*\s*\Z", re.IGNORECASE
)
# The title "D.", which is "derecha" and the vitamin too.
_DON = re.compile(r"(?<![^\W_])D\.\s?\Z")


@cache
def _load_words(langs: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Load short forms, and the words of their long forms that are no usual names."""
    forms = [form for lang in langs for of in load_short_forms(lang).values() for form in of]
    short = frozenset(fold_short(form.short) for form in forms)
    words = {
        fold_alnum(word)
        for form in forms
        for text in form.long
        for word in _WORD.findall(text)
        if len(word) >= MIN_WORD and word.islower()  # "Crohn" is the name of a person, too
    }
    return short, frozenset(words - usual_names())


def leave_out_clinical(
    text: str, found: Iterable[PhiSpan], langs: tuple[str, ...]
) -> Iterator[PhiSpan]:
    """Leave out clinical words that rules took for names, and cut them from the ends of names.

    found (Iterable[PhiSpan]): What rules found; labels are types of PHI.
    langs (tuple[str, ...]): Languages of the rules.
    YIELDS (PhiSpan): What is left.
    """
    for phi in found:
        if phi.label in PEOPLE:
            phi = _cut(text, phi, langs)
            if not _is_clinical_person(text, phi, langs):
                yield phi
        elif phi.label not in PLACES or not _is_clinical_place(text, phi, langs):
            yield phi


def _words(text: str, phi: PhiSpan) -> list[re.Match[str]]:
    return list(_WORD.finditer(text, phi.start, phi.end))


def _cut(text: str, phi: PhiSpan, langs: tuple[str, ...]) -> PhiSpan:
    """Cut the short forms behind a name: "Rohan Desai CL", "GARCIA DNI"."""
    short, _ = _load_words(langs)
    words = _words(text, phi)
    while len(words) > 1:
        last = words[-1][0]
        folded = fold_alnum(last)
        is_short = last.isupper() and 1 < len(last) <= MAX_SHORT and folded in short
        is_degree = last == "M" and text.startswith(".D", words[-1].end())
        is_behind = is_short or is_degree or (len(last) > 1 and folded in BEHIND)
        if is_behind and folded not in usual_names():
            words.pop()
        else:
            break
    end = words[-1].end() if words else phi.end
    # What is no word at the end stays if no word was cut: "García (2º)".
    return phi if not words or end == _words(text, phi)[-1].end() else phi._replace(end=end)


def _is_clinical_person(text: str, phi: PhiSpan, langs: tuple[str, ...]) -> bool:
    short, clinical = _load_words(langs)
    words = [word[0] for word in _words(text, phi)]
    named = [word for word in words if fold_alnum(word) not in PARTICLES | TITLES and len(word) > 1]
    if not named or _TITLE.search(text, max(0, phi.start - 12), phi.start):
        return False
    folded = [fold_alnum(word) for word in named]
    if len(named) == 1 and named[0].isupper() and folded[0] in short - usual_names():
        return True
    if phi.detector.endswith("_label"):
        return False
    if len(named) > 1 and all(word.isupper() for word in named):
        return any(word in clinical for word in folded)
    known = clinical if len(named) == 1 else clinical | short
    return all(word in known for word in folded) or _is_right_side(text, phi, named[0])


def _is_right_side(text: str, phi: PhiSpan, first: str) -> bool:
    """Check for "Babinski D. Retiro": "D." is no title of what is no given name."""
    return bool(_DON.search(text, max(0, phi.start - 3), phi.start)) and (
        fold_alnum(first) not in usual_names()
    )


def _is_clinical_place(text: str, phi: PhiSpan, langs: tuple[str, ...]) -> bool:
    """Check whether a place is named by clinical and general words only, or across sentences."""
    short, clinical = _load_words(langs)
    value = text[phi.start : phi.end]
    words = [fold_alnum(word) for word in _WORD.findall(_BREAK.split(value)[-1])]
    own = [word for word in words if word not in PARTICLES and len(word) > 1]
    if HEADS.intersection(own):  # "Hospital General" names one
        return False
    known = GENERIC | clinical if phi.label == "organization" else GENERIC | clinical | short
    if all(word in known for word in own):
        return True
    is_hour = value.startswith("H.") and value.isupper()  # "5 ML/H. BALANCE"
    return is_hour and any(word in clinical or word in short for word in own)
