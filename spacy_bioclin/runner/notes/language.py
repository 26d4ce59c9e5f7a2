"""Guess the language of a note, so that notes of other languages can be found in an output."""

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

LIBRARY = "py3langid"
LANGUAGES = ("ca", "de", "en", "es", "eu", "fr", "it", "nl", "pt")
MIN_CHARS = 80  # the language of a shorter text is uncertain
MAX_CHARS = 2000
MIN_PROBABILITY = 0.5


def guess_language(text: str) -> str | None:
    """Guess the language of a text from its first characters.

    RETURNS (str | None): One of `LANGUAGES`; None if the text is too short, no language is likelier
        than all others together, or py3langid is not installed.
    """
    start = text[:MAX_CHARS]
    if len(start) < MIN_CHARS or (identifier := _load()) is None:
        return None
    language, probability = identifier.classify(start)
    return str(language) if probability >= MIN_PROBABILITY else None


@lru_cache(maxsize=1)
def _load() -> "LanguageIdentifier | None":
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ModuleNotFoundError:
        return None
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(set(LANGUAGES))
    return identifier
