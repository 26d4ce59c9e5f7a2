"""Find where the sentences of a clinical text begin, in time linear in its length.

A sentence may end at a stop ("." "?" "!" "…") before white space, at a point without white space
before the next word ("hospital.Se"), or at a line break. The words before and after it decide.
"""

import re

from .rules import LanguageRules

UPPER = "A-ZÀ-ÖØ-Þ"
LOWER = "a-zßà-öø-ÿ"
LINE_BREAK = r"\r\n|[\n\r\v\f\x85\u2028\u2029]"
# A place where a sentence may end. One stop and at most three closing marks keep matching linear.
CANDIDATE = re.compile(
    r"(?P<stop>[.?!…])"
    rf"(?:[\"'»”’)\]]{{0,3}}(?P<gap>\s+)|(?=[{UPPER}¿¡]))"
    rf"|(?P<break>{LINE_BREAK})\s*"
)
BREAK = re.compile(LINE_BREAK)
LAST_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*\Z")
# The first word, or what French cuts short before it ("l'examen", "qu'il").
FIRST_WORD = re.compile(r"(?:[cdjlnsCDJLNS]|[Qq]u)['’](?=[^\W\d_])|[^\W\d_]{1,30}")
ITEM = re.compile(r"(?:[-–—•·*»>+●▪\uf000-\uf0ff]|(?:\d{1,2}|[a-zA-Z])[.)]-?|\d{1,2}(?:\.\d)+)\s")
ENUMERATOR = re.compile(r"[-–—•·*»(\s]*(?:\d{1,2}|[A-Za-z]|[IVXivx]{1,4})?[.)\s-]*")
LABEL = re.compile(rf"[{UPPER}][^\n\r:.;,]{{0,40}}:(?:\s|\Z)")
VOWEL = re.compile(r"[aeiouyà-æè-ïò-öø-ýÿœ]", re.IGNORECASE)
OPENING_MARKS = re.compile(r"[\"'«“‘(\[¿¡]{0,3}")
NEVER_OPENS = frozenset(",;:.)]}%ºª°/…!?<=&")
# Widths of hard-wrapped text, in characters.
WRAP_WIDTHS = range(40, 131)
LOOK_BACK = 40


def sentence_starts(text: str, rules: LanguageRules) -> list[int]:
    """Find where sentences begin.

    text (str): Any text. Line breaks may end sentences or wrap them.
    rules (LanguageRules): The rules of its language.
    RETURNS (list[int]): Character offsets, ascending, from the first character that is not white
        space. Empty if there is none.
    """
    start = len(text) - len(text.lstrip())
    if start == len(text):
        return []
    starts = [start]
    line_start, width = 0, _wrap_width(text)
    for match in CANDIDATE.finditer(text, start):
        end, after = match.start(), match.end()
        if after == len(text):
            break
        if match["break"]:
            has_room = _has_room(text, line_start, end, after, width)
            ends = _line_ends(text, end, after, has_room, rules)
        elif match["gap"] is None:
            ends = _glued_point_ends(text, end, rules)
        elif _breaks_paragraph(match["gap"]) or _is_item_line(text, match["gap"], after):
            ends = True
        else:
            ends = _stop_ends(text, end, after, starts[-1], rules)
        if ends:
            starts.append(after)
        if match["break"] or (match["gap"] and BREAK.search(match["gap"])):
            line_start = after
    return starts


def _stop_ends(text: str, stop: int, after: int, start: int, rules: LanguageRules) -> bool:
    """Check whether a stop ends the sentence that begins at `start`. `after` is the next word."""
    marks = OPENING_MARKS.match(text, after)
    opening = text[marks.end() : marks.end() + 1] if marks else ""
    if opening in NEVER_OPENS or _is_enumerator(text, start, stop):
        return False
    if text[stop] != "." or text[stop - 1] == ".":
        return not opening.islower()
    if not text[stop + 1].isspace():  # ".)": a parenthesis may end within a sentence
        return not (opening.islower() or opening.isdigit())
    word = _last_word(text, stop)
    key = word.lower()
    if key in rules.titles and not word.isupper():
        return False
    is_short = "." in word or key in rules.abbreviations
    if opening.islower():
        is_unit = len(word) == 1 or (word and not word.isupper() and not VOWEL.search(word))
        return not (is_short or is_unit)
    if is_short and not text[after].isupper():
        return False
    is_initial = len(word) == 1 and text[stop - 2 : stop - 1] in ("", " ", "(")
    if opening.isupper() and word.isupper() and (is_initial or "." in word or key in rules.titles):
        return _first_word(text, after) in rules.openers
    return True


def _glued_point_ends(text: str, point: int, rules: LanguageRules) -> bool:
    """Check whether a point between two words without a blank ("izquierdo.Se") ends a sentence."""
    if text[point] != ".":
        return False
    before, opening = text[point - 1 : point], _first_word(text, point + 1)
    if len(opening) < 2 or not text[point + 2].islower():
        return False
    word = _last_word(text, point)
    if not word:
        return before in ("%", ")") or (before.isdigit() and opening in rules.openers)
    if "." in word or word.lower() in rules.titles:
        return False
    is_word = len(word) > 2 and word[-1].islower() and VOWEL.search(word)  # not "www"
    return bool(is_word) or opening in rules.openers


def _line_ends(text: str, end: int, after: int, has_room: bool, rules: LanguageRules) -> bool:
    """Check whether the line break at `end` ends a sentence. `after` is the next line's text."""
    last, opening = text[end - 1], text[after]
    if _breaks_paragraph(text[end:after]) or ITEM.match(text, after) or last == ":":
        return True
    if opening.islower() or opening in NEVER_OPENS or last in ",;(/":
        return False
    if LABEL.match(text, after):
        return True
    return has_room and _last_word(text, end).lower() not in rules.unfinished


def _has_room(text: str, line_start: int, end: int, after: int, width: int) -> bool:
    """Check whether the first word of the next line would have fitted: the break is deliberate."""
    next_word = text[after : after + LOOK_BACK].split(None, 1)[0]
    return width not in WRAP_WIDTHS or end - line_start + 1 + len(next_word) <= width


def _wrap_width(text: str) -> int:
    return max((len(line) for line in text.splitlines()), default=0)


def _breaks_paragraph(gap: str) -> bool:
    return len(BREAK.findall(gap)) > 1


def _is_item_line(text: str, gap: str, after: int) -> bool:
    return ITEM.match(text, after) is not None and BREAK.search(gap) is not None


def _is_enumerator(text: str, start: int, stop: int) -> bool:
    return stop - start < 8 and ENUMERATOR.fullmatch(text, start, stop) is not None


def _last_word(text: str, end: int) -> str:
    found = LAST_WORD.search(text[max(0, end - LOOK_BACK) : end])
    return found[0] if found else ""


def _first_word(text: str, start: int) -> str:
    found = FIRST_WORD.match(text, start)
    return found[0].lower().replace("’", "'") if found else ""
