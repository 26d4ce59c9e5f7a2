"""`spacy-bioclin.Tokenizer.v1`: spaCy's own Tokenizer with a clinical pattern."""

import re
from collections.abc import Callable

from spacy.language import Language
from spacy.tokenizer import Tokenizer

from ..errors import BioclinError
from ..vocab import check_requirement
from .patterns import token_pattern
from .rules import RULES


def make_tokenizer() -> Callable[[Language], Tokenizer]:
    """Make the clinical tokenizer of the pipeline's language.

    It is spaCy's Tokenizer (cache, serialization, `explain`) with one infix pattern for all tokens.
    The matches cover the whole text, so no prefix, suffix or special case is needed.

    RETURNS (Callable[[Language], Tokenizer]): Function that makes the tokenizer of a pipeline.
    RAISES (BioclinError): There are no rules for the pipeline's language, or the pipeline is a
        package for a newer version of spacy-bioclin.
    """

    def create_tokenizer(nlp: Language) -> Tokenizer:
        check_requirement(nlp._meta)  # `nlp.meta` needs the components, which are made later
        if nlp.lang not in RULES:
            raise BioclinError(
                f"spacy-bioclin.Tokenizer.v1 has no rules for language '{nlp.lang}'. Set [nlp] lang"
                f" to one of {', '.join(sorted(RULES))}, or use spacy.Tokenizer.v1 as tokenizer."
            )
        return Tokenizer(nlp.vocab, infix_finditer=re.compile(token_pattern(nlp.lang)).finditer)

    return create_tokenizer
