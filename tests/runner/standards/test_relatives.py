"""Which relative has what a note says of the family."""

import pytest
import spacy

from spacy_bioclin.runner.standards.relatives import find_relative

SPANISH = (
    ("AF: madre con diabetes, padre con infarto.", {"diabetes": "MTH", "infarto": "FTH"}),
    ("Antecedentes familiares: cáncer de mama (madre), ictus.", {"cáncer de mama": "MTH"}),
    ("Antecedentes familiares de cáncer de mama y ovario.", {"ovario": "FAMMEMB"}),
    ("AF: lupus (abuelo), asma en un primo. Ictus, padre.", {"lupus": "GRFTH", "asma": "COUSN"}),
    ("Padre y madre con asma.", {"asma": "PRN"}),
    ("Madre y tía con asma.", {"asma": "FAMMEMB"}),
    ("Abuela materna con demencia.", {"demencia": "MGRMTH"}),
    ("Su tío paterno falleció por ictus.", {"ictus": "PUNCLE"}),
    ("Hijo de madre con asma.", {"asma": "MTH"}),
    ("Sus padres son hipertensos, con ictus.", {"ictus": "PRN"}),
    ("Diabetes en su hermana.", {"Diabetes": "SIS"}),
)
ENGLISH = (
    ("Mother had diabetes, father died of stroke.", {"diabetes": "MTH", "stroke": "FTH"}),
    ("Family history: lupus (mother, aunt), stroke in maternal aunt.", {"stroke": "MAUNT"}),
    ("Family history: lupus (mother, aunt), stroke in maternal aunt.", {"lupus": "FAMMEMB"}),
    ("Her sister and brother have asthma.", {"asthma": "SIB"}),
    ("Diabetes in her mother.", {"Diabetes": "MTH"}),
    ("Family history of diabetes.", {"diabetes": "FAMMEMB"}),
)


@pytest.mark.parametrize(("lang", "rows"), [("es", SPANISH), ("en", ENGLISH)])
def test_relatives(lang, rows):
    nlp = spacy.blank(lang)
    for name in ("bioclin_sentences", "bioclin_sections", "bioclin_context"):
        nlp.add_pipe(name)
    wrong = []
    for text, wanted in rows:
        doc = nlp(text)
        for words, code in wanted.items():
            start = text.index(words)
            found = find_relative(doc.char_span(start, start + len(words)))
            if found != code:
                wrong.append((text, words, found, code))
    assert wrong == []


def test_a_language_without_words_for_relatives():
    doc = spacy.blank("fr")("Mère diabétique")
    assert find_relative(doc[1:2]) == "FAMMEMB"
