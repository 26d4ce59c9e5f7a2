"""`bioclin_sentences`: set the sentence starts of a Doc by the rules of its language."""

from typing import Any

import numpy
from spacy.language import Language
from spacy.tokens import Doc

from ..errors import BioclinError
from .rules import RULES, LanguageRules
from .sentences import sentence_starts


class BioclinSentences:
    """Set `token.is_sent_start` of every token, replacing earlier values. It has no state.

    name (str): The component's name in the pipeline.
    rules (LanguageRules): The rules of the pipeline's language.
    """

    def __init__(self, name: str, rules: LanguageRules) -> None:
        self.name = name
        self.rules = rules

    def __call__(self, doc: Doc) -> Doc:
        """Set the sentence starts of a Doc.

        White-space tokens belong to the sentence before them. A start within a token is ignored.

        doc (Doc): The Doc.
        RETURNS (Doc): The same Doc.
        """
        if len(doc):
            starts = sentence_starts(doc.text, self.rules)
            is_start = numpy.isin(doc.to_array("IDX"), starts[1:])
            is_start[0] = True
            values: Any = numpy.where(is_start, 1, -1).astype("uint64")
            doc.from_array(["SENT_START"], values)
        return doc


@Language.factory("bioclin_sentences", assigns=["token.is_sent_start", "doc.sents"])
def make_sentences(nlp: Language, name: str) -> BioclinSentences:
    """Make the clinical sentence splitter of the pipeline's language.

    nlp (Language): The pipeline. Its `lang` selects the rules.
    name (str): The component's name in the pipeline.
    RETURNS (BioclinSentences): The component.
    RAISES (BioclinError): There are no rules for the pipeline's language.
    """
    if nlp.lang not in RULES:
        raise BioclinError(
            f"{name}: no rules for language '{nlp.lang}'. Set [nlp] lang to one of"
            f" {', '.join(sorted(RULES))}, or use spaCy's component 'sentencizer'."
        )
    return BioclinSentences(name, RULES[nlp.lang])
