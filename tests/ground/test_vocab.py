"""What a saved pipeline holds of the notes that it has read."""

import json

import numpy as np
import spacy
from spacy.tokens import Doc

from spacy_bioclin.vocab import save_pipeline


def test_words_of_notes_are_not_saved_and_all_else_is(tmp_path):
    nlp = spacy.blank("es")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns(
        [
            {"label": "Osasuna", "pattern": "Zutabarria"},
            {"label": "PROPN|Gender=Fem", "pattern": "Itziar"},
        ]
    )
    nlp.vocab.set_vector("vectorizado", np.ones(4, dtype="float32"))
    text = "Osasuna Goikoetxea vectorizado 12345678Z Zutabarria y Fem"
    Doc(nlp.vocab, words=text.split())
    assert "Goikoetxea" in nlp.vocab.strings
    save_pipeline(nlp, tmp_path)
    strings = set(json.loads((tmp_path / "vocab" / "strings.json").read_text("utf-8")))
    assert not {"Goikoetxea", "goikoetxea", "12345678Z", "ddddX", "xea", "Zutabarria"} & strings
    assert {"Osasuna", "PROPN|Gender=Fem", "Fem", "vectorizado"} <= strings
    assert set(spacy.blank("es").vocab.strings) <= strings
    found = spacy.load(tmp_path)("La Zutabarria de hoy").ents
    assert [(ent.text, ent.label_) for ent in found] == [("Zutabarria", "Osasuna")]
