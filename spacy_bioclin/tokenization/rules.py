"""What differs between the languages, as data."""

from typing import NamedTuple


class LanguageRules(NamedTuple):
    """The rules of one language.

    title_abbreviations (frozenset[str]): Lower case, without the final point: the point belongs to
        the token, and a sentence goes on after it.
    contractions (tuple[str, ...]): Patterns of tokens that the shared rules would cut elsewhere.
    """

    title_abbreviations: frozenset[str]
    contractions: tuple[str, ...] = ()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SPANISH = LanguageRules(
    title_abbreviations=_words(
        "dr dra drs dras sr sra sres srta prof lic fdo p.ej etc aprox núm vs"
        " av avda ctra hosp sta sto tel tfno fig figs pág"
    ),
)

ENGLISH = LanguageRules(
    title_abbreviations=_words("dr drs mr mrs ms prof jr sr vs etc al approx fig figs dept resp"),
    contractions=(
        r"(?<=[^\W\d_])['’](?:s|re|ve|ll|d|m)(?![^\W_])",  # patient|'s
        r"[A-Za-z]{2,}(?=n['’]t(?![^\W_]))|n['’]t(?![^\W_])",  # does|n't, as spaCy has it
    ),
)

RULES = {"es": SPANISH, "en": ENGLISH}
