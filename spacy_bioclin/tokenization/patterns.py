"""Define tokens by one ordered list of patterns per language.

A token ends wherever the class of character changes (letter, digit, other), because clinical
annotations do: "5|mg", "Edad:|63", "izquierdo|.|Se", "HT|6". All other patterns merge what
annotators never split. A merge was accepted only if it cost no gold span of the train and dev
splits of MEDDOCAN, PharmaCoNER, CANTEMIST, BC5CDR and NCBI-disease. Merges that would cost spans,
and are not made: letters with digits ("CD20", because of "5-[HT]6", "[DA]1"), e-mail addresses
("E-mail-[ana@…]"), signed numbers, "D.", "Ca.", double points.

Every pattern matches in linear time, since repeated parts never overlap.
"""

from .rules import RULES, LanguageRules

LETTER = r"[^\W\d_]"
LOWER = "a-zßà-öø-ÿºª"
UPPER = "A-ZÀ-ÖØ-Þ"
# Marks that belong to the character before them: accents, emoji variation and joiners.
MARK = r"\u0300-\u036f\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff"

# The patterns are tried in this order at each position.
BLANKS = r"\s+"
# "i.v.", "p.m."; not "P.S.A." or "J.A.": capitals may be an entity, and the last point may not.
DOTTED = rf"(?:[{LOWER}]\.){{2,}}"
DATE = (
    r"\d{1,2}/\d{1,2}/\d{2,4}(?!\d)"
    r"|\d{1,2}-\d{1,2}-(?:19|20)\d{2}(?!\d)"
    r"|(?:19|20)\d{2}-\d{2}-\d{2}(?!\d)"
)
TIME = r"\d{1,2}:\d{2}(?!\d)"
# Words, acronyms and prefixes joined: "Martínez|NºCol", "angio|TAC", "anti|DNA", "MI|carcinoma",
# "yp|Tis", "a|Agosto", "c|CD3"; but "HbA1c", "IgG", "NaCl", "RNAm", "pH", "McLeod" stay whole.
JOINED = (
    rf"[{UPPER}]?[{LOWER}]{{3,}}(?=[{UPPER}])|[{LOWER}]{{1,2}}(?=[{UPPER}][{LOWER}]{{2}})"
    rf"|[{UPPER}]{{2,}}(?=[{LOWER}]{{4}})|c(?=CD\d)"
)
ORDINAL = r"(?<=\d)[ºª]"  # "2|º|B"
WORD = rf"{LETTER}+(?:[{MARK}]+{LETTER}*)*"
# "1,5", "3.2", "1.250,5"; but in "1|,|25-dihydroxy" and "1|,|25(OH)D" the commas separate a list.
NUMBER = r"\d+(?:\.\d+|,\d+(?![\d,]{0,12}[-(][^\W\d_]))*"
RULER = r"([^\w\s])\1{2,}"  # "-----", "...", but not "..": "Calle Mayor 3, D.." ends in "D."
OTHER = rf".(?:[{MARK}]|(?<=\u200d)[^\w\s])*"  # one sign, or one emoji of several characters


def _titles(rules: LanguageRules) -> str:
    """Match "Dr." and "dr.", but not "DR.", which may be a receptor (and "MR." a resonance)."""
    longest_first = sorted(rules.titles, key=lambda item: (-len(item), item))
    either_case = (f"[{title[0].upper()}{title[0]}]{title[1:]}" for title in longest_first)
    return "(?:" + "|".join(title.replace(".", r"\.") for title in either_case) + r")\."


def token_pattern(lang: str) -> str:
    """Build a regular expression whose successive matches are the tokens of a text.

    lang (str): Code of a language in `RULES`.
    RETURNS (str): The pattern. It has its flags inline, so that spaCy can save it as a string.
    """
    rules = RULES[lang]
    parts = [BLANKS, DOTTED, _titles(rules), DATE, TIME, *rules.tokens]
    parts += [ORDINAL, JOINED, WORD, NUMBER, RULER, OTHER]
    return "(?s)" + "|".join(parts)
