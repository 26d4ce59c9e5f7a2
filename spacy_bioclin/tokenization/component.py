"""`bioclin_sentences`: sentence starts from the rules of `sentences.py`."""

from spacy.language import Language
from spacy.tokens import Doc


class BioclinSentences:
    def __call__(self, doc: Doc) -> Doc:
        for token in doc:
            token.is_sent_start = token.i == 0 or doc[token.i - 1].text == "."
        return doc


@Language.factory("bioclin_sentences", assigns=["token.is_sent_start", "doc.sents"])
def make_sentences(nlp: Language, name: str) -> BioclinSentences:
    return BioclinSentences()
