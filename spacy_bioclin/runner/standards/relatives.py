"""Which relative has what a note says of the family, as a code of HL7 v3 RoleCode.

Source: https://terminology.hl7.org/CodeSystem-v3-RoleCode.html, below PersonalRelationshipRoleType.
"""

import re

from spacy.tokens import Span

from ...context.rules.attributes import get_modifiers
from ...context.rules.rule_data import SECTION

UNKNOWN = "FAMMEMB"
REACH = 200  # characters before or behind a mention
# Code -> words. Without its accent, "mama" is a breast.
SPANISH = {
    "MTH": "madre mamá",
    "FTH": "padre papá",
    "PRN": "padres progenitores",
    "SIS": "hermana hermanas hna hnas",
    "BRO": "hermano hno",
    "SIB": "hermanos hnos",
    "HSIS": "hermanastra",
    "HBRO": "hermanastro",
    "DAUC": "hija hijas",
    "SONC": "hijo",
    "CHILD": "hijos",
    "GRMTH": "abuela abuelas",
    "GRFTH": "abuelo",
    "GRPRN": "abuelos",
    "AUNT": "tía tías tia tias",
    "UNCLE": "tío tio",
    "COUSN": "primo prima primos primas",
    "NIECE": "sobrina sobrinas",
    "NEPHEW": "sobrino",
    "NIENEPH": "sobrinos",
    "GRNDDAU": "nieta nietas",
    "GRNDSON": "nieto",
    "GRNDCHILD": "nietos",
    "WIFE": "esposa mujer",
    "HUSB": "marido esposo",
    "SPS": "cónyuge conyuge",
    "DOMPART": "pareja",
    "MTHINLAW": "suegra",
    "FTHINLAW": "suegro",
}
ENGLISH = {
    "MTH": "mother mom mum",
    "FTH": "father dad",
    "PRN": "parent parents",
    "SIS": "sister sisters",
    "BRO": "brother brothers",
    "SIB": "sibling siblings sib sibs",
    "HSIS": "half-sister",
    "HBRO": "half-brother",
    "DAUC": "daughter daughters",
    "SONC": "son sons",
    "CHILD": "children",
    "GRMTH": "grandmother grandmothers grandma gm",
    "GRFTH": "grandfather grandfathers grandpa gf",
    "GRPRN": "grandparent grandparents",
    "AUNT": "aunt aunts",
    "UNCLE": "uncle uncles",
    "COUSN": "cousin cousins",
    "NIECE": "niece nieces",
    "NEPHEW": "nephew nephews",
    "GRNDDAU": "granddaughter granddaughters",
    "GRNDSON": "grandson grandsons",
    "GRNDCHILD": "grandchild grandchildren",
    "WIFE": "wife",
    "HUSB": "husband",
    "SPS": "spouse",
    "DOMPART": "partner",
    "MTHINLAW": "mother-in-law",
    "FTHINLAW": "father-in-law",
    "MGRMTH": "mgm",
    "MGRFTH": "mgf",
    "PGRMTH": "pgm",
    "PGRFTH": "pgf",
}
SIDED = ("GRMTH", "GRFTH", "GRPRN", "AUNT", "UNCLE", "COUSN")  # MAUNT and PAUNT are codes too
BOTH = {frozenset({"MTH", "FTH"}): "PRN", frozenset({"SIS", "BRO"}): "SIB"}
_END = re.compile(r"[.;\n](?!\w)")
_JOIN = re.compile(r"\W*(?:(?:y|e|and|o|or|both) )?(?:su |la |el |his |her |the )?\W*")
_BESIDE = re.compile(
    r"\W*(?:(?:en|in|de|of|del|by) )?(?:su |la |el |un |una |his |her |the |a )?\W*"
)


class _Words:
    """The words for relatives of a language."""

    def __init__(self, words: dict[str, str]) -> None:
        self.codes = {word: code for code, all_ in words.items() for word in all_.split()}
        any_word = "|".join(sorted(map(re.escape, self.codes), key=len, reverse=True))
        before, after = "(?:(?P<before>mat|pat)[a-z]*\\.? )?", "(?: (?P<after>mat|pat)ern[oa]s?)?"
        self.pattern = re.compile(rf"{before}(?<![\w-])(?P<word>{any_word})(?![\w-]){after}")

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Find the relatives in a text: start, end and code of each."""
        return [(*each.span(), self._find_code(each)) for each in self.pattern.finditer(text)]

    def _find_code(self, match: "re.Match[str]") -> str:
        code, side = self.codes[match["word"]], match["before"] or match["after"]
        return f"{side[0].upper()}{code}" if side and code in SIDED else code


_WORDS = {"es": _Words(SPANISH), "en": _Words(ENGLISH)}


def find_relative(span: Span) -> str:
    """Find which relative has what a mention means.

    It is the one in the words of the cue ("madre con diabetes"); or else, as in a section of the
    family's history, the one right behind the mention ("diabetes (madre)"), or the last one before
    it in its sentence.

    span (Span): A mention that `bioclin_context` says is of the family.
    RETURNS (str): A code of RoleCode; "FAMMEMB" if the note does not say which relative it is, or
        names several for which there is no code ("madre y tía con asma").
    """
    words = _WORDS.get(span.doc.lang_)
    if words is None:
        return UNKNOWN
    text, start, end = span.doc.text, span.start_char, span.end_char
    cues = [
        each.cue for each in get_modifiers(span) if each.kind == "family" and each.rule != SECTION
    ]
    for cue in cues:
        if not words.find(cue.text.lower()):
            continue
        if cue.start_char < start:
            return _merge(_find_last(words, text[max(0, cue.end_char - REACH) : cue.end_char]))
        return _merge(_find_first(words, text[cue.start_char : cue.end_char + REACH]))
    behind = text[end : end + REACH]
    found = _find_first(words, behind)
    if found and _BESIDE.fullmatch(behind[: found[0][0]].lower()):
        return _merge(found)
    return _merge(_find_last(words, text[max(0, start - REACH) : start]))


def _find_last(words: _Words, text: str) -> list[tuple[int, int, str]]:
    """Find the last relative of a sentence, and those that are joined to it."""
    sentence = _END.split(text)[-1].lower()
    found = words.find(sentence)
    first = len(found) - 1
    while first > 0 and _JOIN.fullmatch(sentence[found[first - 1][1] : found[first][0]]):
        first -= 1
    return found[max(first, 0) :]


def _find_first(words: _Words, text: str) -> list[tuple[int, int, str]]:
    """Find the first relative of the rest of a sentence, and those that are joined to it."""
    sentence = _END.split(text)[0].lower()
    found = words.find(sentence)
    n = 1
    while n < len(found) and _JOIN.fullmatch(sentence[found[n - 1][1] : found[n][0]]):
        n += 1
    return found[:n]


def _merge(found: list[tuple[int, int, str]]) -> str:
    codes = frozenset(code for _, _, code in found)
    return next(iter(codes)) if len(codes) == 1 else BOTH.get(codes, UNKNOWN)
