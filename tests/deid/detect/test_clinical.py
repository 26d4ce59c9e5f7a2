"""What rules for names and places take from clinical notes in capitals."""

import pytest

from spacy_bioclin.deid.detect.clinical import leave_out_clinical
from spacy_bioclin.deid.spans import PhiSpan

# Type, language, text in which «…» is what a rule found, and what is left of it.
FOUND = [
    ("patient_name", "es", "PACIENTE «EULOGIO VILLACAMPA HC» 66", "EULOGIO VILLACAMPA"),
    ("patient_name", "es", "«Nélida Kraglievich DNI» 12", "Nélida Kraglievich"),
    ("patient_name", "es", "PIO 24. «CAMPO VISUAL ALTERADO».", ""),
    ("patient_name", "es", "«FOTOFOBIA NAUSEAS, AURA VISUAL»", ""),
    ("patient_name", "es", "Babinski D. «Doppler» de vasos", ""),
    ("patient_name", "es", "«Marta López» acude", "Marta López"),
    ("patient_name", "es", "«BLANCA GARCIA RUIZ» ACUDE", "BLANCA GARCIA RUIZ"),
    ("staff_name", "es", "Visto por Dr. «Crohn».", "Crohn"),
    ("staff_name", "es", "DRA. «LENGUA CAMPO» COL 12", "LENGUA CAMPO"),
    ("patient_name", "es", "«Iker ZUBIA» acude", "Iker ZUBIA"),
    ("patient_name", "es", "«JUAN PARKINSON SOTO» ACUDE", "JUAN PARKINSON SOTO"),
    ("staff_name", "en", "D/w Dr «Rohan Desai CL» reg", "Rohan Desai"),
    ("staff_name", "en", "CC: «SOB» since Monday", ""),
    ("staff_name", "en", "SURGEON: «BRANNIGAN ASSISTANT»: X", "BRANNIGAN"),
    ("patient_name", "en", "Mrs «Applegate ALS», seen", "Applegate"),
    ("hospital", "en", "«MENTAL HEALTH» TREATMENT PLAN", ""),
    ("hospital", "en", "seen at «Larkmoor Clinic»", "Larkmoor Clinic"),
    ("hospital", "es", "5 ML/«H. DOLOR»", ""),
    ("hospital", "es", "EN «HOSPITAL SAN MARTIN»", "HOSPITAL SAN MARTIN"),
    ("hospital", "es", "del «Hospital General»", "Hospital General"),
    ("hospital", "es", "en el «Hospital La Fe»", "Hospital La Fe"),
    ("organization", "en", "anxiety, «Zoloft.\nDrugs»: vapes", ""),
    ("organization", "es", "afiliada a «FONASA»", "FONASA"),
    ("date", "es", "«CAMPO VISUAL»", "CAMPO VISUAL"),
]


@pytest.mark.parametrize(("phi_type", "lang", "marked", "wanted"), FOUND)
def test_clinical_words_are_no_names(phi_type: str, lang: str, marked: str, wanted: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    span = PhiSpan(marked.index("«"), marked.index("»") - 1, phi_type, 0.9, "rule")
    left = [text[phi.start : phi.end] for phi in leave_out_clinical(text, [span], (lang,))]
    assert left == [wanted] * bool(wanted)
