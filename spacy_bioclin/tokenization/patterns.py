"""What a token is, as data: one ordered list of patterns per language.

A token ends wherever the class of character changes (letter, digit, other), because clinical
annotations do: "5|mg", "Edad:|63", "izquierdo|.|Se", "5-HT|6". Everything above that rule only
merges what annotators never split; a merge was taken if it cost no gold span of the train and dev
splits of MEDDOCAN, PharmaCoNER, CANTEMIST, BC5CDR and NCBI-disease. Merges that did cost spans and
were left out: e-mail addresses ("E-mail-[ana@…]"), signed numbers, "D.", "Ca.", doubled points.

Every pattern matches in linear time: repeated parts never overlap.
"""

from .rules import RULES, LanguageRules

LETTER = r"[^\W\d_]"
LOWER = "a-zßà-öø-ÿºª"
UPPER = "A-ZÀ-ÖØ-Þ"
# Marks that belong to the character before them: accents, emoji variation and joiners.
MARK = r"\u0300-\u036f\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff"
WORD_END = r"(?![^\W_])"

# Tried in this order at each position.
BLANKS = r"\s+"
DOTTED = rf"(?:{LETTER}\.){{2,}}"  # "i.v.", "J.A.", "p.m."
DATE = (
    r"\d{1,2}/\d{1,2}/\d{2,4}(?!\d)"
    r"|\d{1,2}-\d{1,2}-(?:19|20)\d{2}(?!\d)"
    r"|(?:19|20)\d{2}-\d{2}-\d{2}(?!\d)"
)
TIME = r"\d{1,2}:\d{2}(?!\d)"
# "CD20", "T4", "B12", but "5-HT|6" and "DA|1": the chemical, then the number of its receptor.
CODE = rf"(?<![-\d])(?!HT\d|DA\d)[A-Z]{{1,4}}\d+{WORD_END}"
# "MartínezNºCol" is two words, "HbA1c", "IgG" and "NaCl" have no such long lower-case run.
GLUED_WORD = rf"[{UPPER}]?[{LOWER}]{{3,}}(?=[{UPPER}][{LOWER}])"
WORD = rf"{LETTER}+(?:[{MARK}]+{LETTER}*)*"
NUMBER = r"\d+(?:[.,]\d+)*"  # "1,5", "3.2", "1.250,5"
RULER = r"([^\w\s])\1{2,}"  # "-----", "...", but not "..": "Calle Mayor 3, D.." ends in "D."
OTHER = rf".(?:[{MARK}]|(?<=\u200d)[^\w\s])*"  # one sign, or one emoji of several characters


def _titles(rules: LanguageRules) -> str:
    longest_first = sorted(rules.titles, key=lambda item: (-len(item), item))
    return "(?i:" + "|".join(item.replace(".", r"\.") for item in longest_first) + r")\."


def token_pattern(lang: str) -> str:
    """A regular expression whose successive matches are the tokens of a text.

    lang (str): Code of a language in `RULES`.
    RETURNS (str): The pattern; flags inline, so that spaCy can save it as a string.
    """
    rules = RULES[lang]
    parts = [BLANKS, DOTTED, _titles(rules), DATE, TIME, CODE, *rules.contractions]
    parts += [GLUED_WORD, WORD, NUMBER, RULER, OTHER]
    return "(?s)" + "|".join(parts)
