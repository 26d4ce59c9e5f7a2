"""Find the abbreviations that a text defines: "virus de la inmunodeficiencia humana (VIH)".

The algorithm is that of Schwartz and Hearst, "A simple algorithm for identifying abbreviation
definitions in biomedical text" (PSB 2003): it finds the letters of the short form from right to
left in the words before the bracket, the first letter at the start of a word. Additions: it tries
the initials of the words first (links such as "de" may be skipped), ignores accents, reads
"EE. UU." as two letters, and accepts the order "VIH (virus de la inmunodeficiencia humana)".
It reads at most MAX_LONG characters around a bracket, so time is linear.
"""

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..text import fold_by_char

MIN_SHORT, MAX_SHORT, MAX_LONG = 2, 12, 200

_BRACKETS = re.compile(r"\(([^()\[\]]{2,200})\)|\[([^()\[\]]{2,200})\]")
_PART = re.compile(r"[^,;]+")
_SHORT = re.compile(r"[^\W_][\w.+/'’-]*(?: [\w.+/-]+)?")
_QUOTES = " \n\"'“”«»"
_SHORT_BEFORE = re.compile(r"[^\W_][\w.+/-]*\Z")
_WORD_START = re.compile(r"(?<!\w)\S")
_PLURAL = re.compile(r"(?:['’]?s)?(?!\w)")
_OPENING, _CLOSING = ("(", "["), (")", "]")
_ROMAN = re.compile(r"I{2,3}[A-Ca-c]?|I?V[A-Ca-c]|VII{1,2}|I?X|XI{1,3}")
# A long form never contains these.
_STOP = re.compile(r"[;:?!]\s|\.\s+(?=[A-ZÁÉÍÓÚÑ¿¡]|\Z)|\n\s*\n|\n\s*[-•*]")
_TOKEN = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|[()\[\]]|(?:[^\W_]|[\u0300-\u036f])+")
_LEAD_IN = re.compile(r"(?:del|en) ingl[eé]s,? |from |for ")
_LINKS = frozenset(
    """a al ante con de del e el en la las lo los o para por sin su un una y
    an and as at by for from in of on or per the to with""".split()  # noqa: SIM905
)
_TIGHT_LINKS = frozenset(["de", "del", "el", "la", "las", "los", "of", "por", "the"])
# Letters that sound alike: "IFN-α" is "interferón alfa", "TKI" is "quinasa". Offsets stay.
_SAME_SOUND = str.maketrans("αβγδεκλμτωq", "abgdeklmtok")


class Abbreviation(NamedTuple):
    """A short form and the long form that defines it, as character offsets of the text.

    short (tuple[int, int]): Start and end of the short form.
    long (tuple[int, int]): Start and end of the long form.
    """

    short: tuple[int, int]
    long: tuple[int, int]


class _Word(NamedTuple):
    start: int  # in the window; `text` is folded
    end: int
    text: str


def find_abbreviations(text: str) -> list[Abbreviation]:
    """Find the abbreviations that a text defines with brackets, in either order.

    text (str): Text in Spanish or English.
    RETURNS (list[Abbreviation]): In the order of the brackets. A short form can occur twice.
    """
    found = []
    for bracket in _BRACKETS.finditer(text):
        if text[bracket.end() : bracket.end() + 1].isalpha():  # a formula: "[Na]o"
            continue
        inside = 1 if bracket[1] is not None else 2
        abbreviation = _short_inside(text, bracket.start(), bracket.span(inside))
        abbreviation = abbreviation or _long_inside(text, bracket.start(), bracket.span(inside))
        if abbreviation:
            found.append(abbreviation)
    return found


def find_short_forms(text: str, shorts: Iterable[str]) -> list[tuple[int, int]]:
    """Find every place of some short forms in a text.

    shorts (Iterable[str]): Short forms, case-sensitive.
    RETURNS (list[tuple[int, int]]): Offsets of whole words, the longest short form first where
        several begin, without a plural "s".
    """
    known = set(shorts)
    return [(start, end) for start, end, _ in _find_places(text, known, _lengths(known))]


def expand_abbreviations(mention: str, definitions: Mapping[str, str]) -> str:
    """Replace short forms by long forms.

    mention (str): The text of a mention: "metástasis de CDI", "PDs".
    definitions (Mapping[str, str]): Short form -> long form, case-sensitive.
    RETURNS (str): The mention. Only whole words are replaced, or those with a plural "s". A short
        form in brackets after its own long form is removed.
    """
    return expand_mentions([mention], definitions)[0]


def expand_mentions(mentions: Iterable[str], definitions: Mapping[str, str]) -> list[str]:
    """Replace short forms by long forms in many mentions, see `expand_abbreviations`."""
    lengths = _lengths(definitions)
    return [_expand(mention, definitions, lengths) for mention in mentions]


def _expand(mention: str, definitions: Mapping[str, str], lengths: Sequence[int]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, behind in _find_places(mention, definitions, lengths):
        long, new = definitions[mention[start:end]], ""
        if mention[start - 1 : start] in _OPENING and mention[behind : behind + 1] in _CLOSING:
            before = mention[done : start - 1].rstrip()
            # Lower case may have another length.
            if not mention[: done + len(before)][-3 * len(long) :].lower().endswith(long.lower()):
                before, new = mention[done:start], long + mention[end : behind + 1]
            behind += 1
        else:
            before, new = mention[done:start], long
        parts += (before, new)
        done = behind
    return "".join([*parts, mention[done:]])


def _lengths(shorts: Collection[str]) -> list[int]:
    """List how long short forms are, the longest first."""
    return sorted({len(short) for short in shorts} - {0}, reverse=True)


def _find_places(
    text: str, shorts: Container[str], lengths: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Find short forms as whole words, also with a plural "s".

    YIELDS (tuple[int, int, int]): Start and end of a short form, and its end with the "s".
    """
    at = 0
    while found := _WORD_START.search(text, at):
        start, at = found.start(), found.end()
        for end in (start + length for length in lengths):
            if end <= len(text) and text[start:end] in shorts and (s := _PLURAL.match(text, end)):
                yield start, end, s.end()
                at = s.end()
                break


def _short_inside(text: str, bracket: int, inside: tuple[int, int]) -> Abbreviation | None:
    """Read `long (short)`, also `long (short, more)` and `long word (short)`."""
    parts = [part for part in _PART.finditer(text, *inside) if _is_short(part[0].strip(_QUOTES))]
    if not parts:
        return None
    start = max(0, bracket - MAX_LONG)
    words = _words(text[start:bracket])
    for part in parts:
        short = part[0].strip(_QUOTES)
        begin = part.start() + part[0].index(short)
        for letters in _letters(short):
            long = _match(letters, words) or _match(letters, words[:-1], loose=False)
            if long:
                span = (begin, begin + len(short))
                return Abbreviation(span, (start + long[0], start + long[1]))
    return None


def _long_inside(text: str, bracket: int, inside: tuple[int, int]) -> Abbreviation | None:
    """Read `short (long)`: the long form is at the start of the bracket, or after "en inglés"."""
    end = bracket
    while end and text[end - 1] == " " and bracket - end < 2:
        end -= 1
    before = _SHORT_BEFORE.search(text, max(0, end - MAX_SHORT - 1), end)
    if not before or not _is_acronym(before[0]):
        return None
    content = text[slice(*inside)]
    lead_in = _LEAD_IN.match(content)
    first = lead_in.end() if lead_in else 0
    ends = [match.start() for match in re.finditer("[,;:]", content)]
    parts = [_words(content[first:end], cut=False) for end in (*ends, len(content)) if end > first]
    for loose in (False, True):
        for words in parts:
            for letters in _letters(before[0]):
                long = _match(letters, words, whole=True, loose=loose)
                if long:
                    offset = inside[0] + first
                    return Abbreviation(before.span(), (offset + long[0], offset + long[1]))
    return None


def _is_short(short: str) -> bool:
    """Check for a possible short form: one or two words with a capital, not a roman numeral."""
    if not MIN_SHORT <= len(short) <= MAX_SHORT or not _SHORT.fullmatch(short):
        return False
    n_capitals = sum(map(str.isupper, short))
    return n_capitals > 0 and not _ROMAN.fullmatch(short)


def _is_acronym(word: str) -> bool:
    """Check for a possible short form that is not in brackets."""
    n_capitals = sum(map(str.isupper, word))
    return n_capitals >= 2 and 2 * n_capitals >= len(word) - 2 and _is_short(word)


def _letters(short: str) -> list[str]:
    """Fold the letters and digits of a short form, with and without marks of the plural."""
    letters = "".join(filter(str.isalnum, _fold(short)))
    found = [letters]
    if len(letters) > 2 and short.endswith("s") and short[-2].isupper():
        found.insert(0, letters[:-1])
    if len(letters) >= 4 and letters[::2] == letters[1::2]:
        found.append(letters[::2])
    return found


def _fold(text: str) -> str:
    return fold_by_char(text).translate(_SAME_SOUND)


def _words(window: str, cut: bool = True) -> list[_Word]:
    """Split a text into words, without those in brackets; with `cut` only after the last stop."""
    begin = 0
    if cut:
        for stop in _STOP.finditer(window):
            begin = stop.end()
    folded = _fold(window)
    words: list[_Word] = []
    for token in _TOKEN.finditer(folded, begin):
        if token[0] in "()[]":
            words.clear()
        elif token[0][0] not in "([":
            words.append(_Word(token.start(), token.end(), token[0]))
    return words


def _match(
    letters: str, words: list[_Word], whole: bool = False, loose: bool = True
) -> tuple[int, int] | None:
    """Find the long form of a short form at the end of some words.

    letters (str): The short form, folded, without signs.
    words (list[_Word]): Words up to the end of the long form.
    whole (bool): The long form must begin with the first word, links not counted.
    loose (bool): Also use letters within words, not only initials.
    RETURNS (tuple[int, int] | None): Start and end within the window of the words.
    """
    if len(letters) < MIN_SHORT or not words:
        return None
    end = words[-1].end
    words = words[_limit(words, min(len(letters) + 5, 2 * len(letters))) :]
    first = 0
    while first < len(words) - 1 and words[first].text in _LINKS:
        first += 1
    begin = _by_initials(letters, words)
    if begin is None and loose:
        begin = _by_letters(letters, words, first if whole else None)
        if begin is None or (begin != len(words) - 1 and not whole):
            any_order = _by_initials_of_any_order(letters, words)
            begin = begin if any_order is None else any_order
    if begin is None or (whole and begin > first):
        return None
    long = words[begin:]
    # "IV (IVIG)"
    longest = 3 * len(letters) if whole else len(letters) + 1
    if any(word.text.startswith(letters) and len(word.text) < longest for word in long):
        return None
    if end - long[0].start < 2 * len(letters) or not _same_numbers(letters, long):
        return None
    return long[0].start, end


def _limit(words: list[_Word], n_max: int, links: frozenset[str] = _LINKS) -> int:
    """Find the index of the first of the last `n_max` words, links not counted."""
    index = len(words)
    while index and n_max:
        index -= 1
        n_max -= words[index].text not in links
    return index


def _same_numbers(letters: str, words: list[_Word]) -> bool:
    """Check that the number in the short form is a whole number of the long form.

    "N1" does not mean "noviembre de 2017".
    """
    wanted = "".join(filter(str.isdigit, letters))
    numbers = ["".join(filter(str.isdigit, word.text)) for word in words] if wanted else []
    ends = range(len(numbers) + 1)
    return not wanted or any(wanted == "".join(numbers[i:j]) for j in ends for i in range(j))


def _by_initials(letters: str, words: list[_Word]) -> int | None:
    """Find the word from which on the initials of the words spell the letters.

    Links may be skipped, and k matches c ("cinasa").
    """
    todo = {len(letters)}  # numbers of letters still to find, one for each way to read the links
    for index in range(len(words) - 1, -1, -1):
        text = words[index].text
        is_link = text in _LINKS and index < len(words) - 1
        alike = (text[0], "k") if text[0] == "c" and len(letters) > 2 else text[0]
        taken = {n - 1 for n in todo if letters[n - 1] in alike}
        if 0 in taken and not is_link:
            return index
        todo = taken | todo if is_link else taken
        todo.discard(0)
        if not todo:
            return None
    return None


def _by_initials_of_any_order(letters: str, words: list[_Word]) -> int | None:
    """Find the initials in any order, mostly that of English ("PET": "tomografía por emisión de
    positrones")."""
    if len(letters) < 3:
        return None
    index = _limit(words, len(letters), _TIGHT_LINKS)
    if words[index].text in _LINKS:
        return None
    initials = [word.text[0] for word in words[index:] if word.text not in _TIGHT_LINKS]
    return index if sorted(initials) == sorted(letters) else None


def _by_letters(letters: str, words: list[_Word], only: int | None) -> int | None:
    """Find the letters from right to left, as Schwartz and Hearst do.

    The first letter is at the start of a word (of the word `only`, if given). The last word has a
    letter, and at most one word, links not counted, has none.
    """
    left = len(letters)
    idle = 0
    for index in range(len(words) - 1, -1, -1):
        text = words[index].text
        before, position = left, len(text)
        while left > 1:
            position = text.rfind(letters[left - 1], 0, position)
            if position < 0:
                break
            left -= 1
        starts = left == 1 and text[0] == letters[0] and (position > 0 or before == 1)
        if starts and text not in _LINKS and only in (None, index):
            return index
        if left == before:
            idle += text not in _LINKS
            if idle > 1 or index == len(words) - 1:
                return None
    return None
