"""Find headings in a text, in time linear in its length.

Every word that begins a title is a candidate. Where it is (at the beginning of a line, after the
end of a sentence, or elsewhere) and what follows (a colon, the end of the line, a dash, a point, or
text) decide together with its capitals whether it is a heading. Each check looks at a bounded
number of characters.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ...text import FoldedText
from .patterns import (
    BLANK_LINE,
    BRACKETS,
    CLAUSE_WORDS,
    COLON,
    DASH,
    FUNCTION_WORDS,
    GAP,
    JOIN,
    LINE_END,
    LINKING_WORDS,
    LOOK_BACK,
    MEASURES,
    NEXT,
    PARENTHESIS,
    POINT,
    PREFIX,
    QUALIFIER,
    SENTENCE_END,
    UNKNOWN,
    WORD,
)
from .rules import (
    CONNECTOR,
    JOINING_WORDS,
    MAX_TITLE_WORDS,
    OPENED_AFTER,
    OTHER,
    PATTERN_CHARS,
    Entry,
    Node,
    SectionRules,
    is_title,
)


class Heading(NamedTuple):
    """A heading, in characters of the untouched text.

    begin (int): Where its section ends the one before: before number and bullet.
    start (int): Start of the title.
    end (int): End of the title, exclusive, before colon and closing marks.
    """

    category: str
    begin: int
    start: int
    end: int


class SectionSpan(NamedTuple):
    """A section, in characters of the untouched text, from its title to its last character.

    start (int): Start of the title.
    title_end (int): End of the title.
    end (int): End of the section, without white space at its end.
    """

    category: str
    start: int
    title_end: int
    end: int


class _Words(NamedTuple):
    """A folded text and its words."""

    plain: str
    lower: str
    words: list[str]
    starts: list[int]
    ends: list[int]


def find_sections(text: str, rules: SectionRules) -> list[SectionSpan]:
    """Find the sections of a note.

    text (str): Any text.
    rules (SectionRules): The titles.
    RETURNS (list[SectionSpan]): In order, without gaps or overlaps but for white space, numbers and
        bullets before headings. Text before the first heading is in none.
    """
    headings = find_headings(text, rules)
    ends = [*(heading.begin for heading in headings), len(text)][1:]
    sections = []
    for heading, end in zip(headings, ends, strict=True):
        last = len(text[heading.end : end].rstrip()) + heading.end
        sections.append(SectionSpan(heading.category, heading.start, heading.end, last))
    return sections


def find_headings(text: str, rules: SectionRules) -> list[Heading]:
    """Find the headings of a note. See `find_sections`."""
    # A carriage return ends a line, and a tab begins a column; the fold would make them blanks.
    folded = FoldedText(text.replace("\r", "\n").replace("\t", "|"))
    found = list(_find_known(folded, rules))
    single = {folded.lower[start:end] for _, _, start, end in found if end - start == 1}
    if len(single) < 3:  # "S:", "O:", "P:" are a plan's letters only together
        found = [heading for heading in found if heading.end - heading.start > 1]
    taken = {heading.start for heading in found}
    for match in UNKNOWN.finditer(folded.plain):
        start, end = match.start(1), match.end(1)
        is_known = any(at in taken for at in range(match.start(), end))
        if not is_known and _is_unknown_heading(match[1], rules):
            found.append(Heading(OTHER, match.start(), start, end))
    found.sort(key=lambda heading: heading.start)
    return [_place(heading, folded) for heading in found]


def _place(heading: Heading, folded: FoldedText) -> Heading:
    start, end = folded.place(heading.start, heading.end)
    begin = folded.place(heading.begin, heading.begin + 1)[0]
    return Heading(heading.category, begin, start, end)


def _is_unknown_heading(title: str, rules: SectionRules) -> bool:
    words = WORD.findall(title)
    if is_title(title, rules):
        return False  # it was looked at, or is a part
    return len(words) <= 8 and any(len(word) > 3 and word.isalpha() for word in words)


def _find_known(folded: FoldedText, rules: SectionRules) -> Iterator[Heading]:
    """Find the headings with known titles, in characters of the folded text."""
    lower = folded.lower
    found = WORD.findall(lower)
    starts = [match.start() for match in WORD.finditer(lower)]
    ends = [start + len(word) for start, word in zip(starts, found, strict=True)]
    words = _Words(folded.plain, lower, found, starts, ends)
    first, done, current = rules.root.next, 0, ""
    for i, word in enumerate(words.words):
        if i < done or word not in first:
            continue
        place = _Place(words, i)
        for category, entry, last in _choices(words, i, rules.root):
            end = _heading_end(place, entry, last)
            if end is None:
                continue
            if entry.part and current not in OPENED_AFTER.get(entry.category, ()):
                break
            current = category
            while done <= last or (done < len(words.starts) and words.starts[done] < end):
                done = max(done, last) + 1
            yield Heading(current, place.begin, words.starts[i], end)
            break


def _choices(words: _Words, i: int, root: Node) -> Iterator[tuple[str, Entry, int]]:
    """List the titles that begin with a word, also two that are joined, the longest first.

    YIELDS (tuple): The category, the title, and the index of its last word.
    """
    for entry, last in _titles_at(words, i, root):
        at = last + 1
        joined = False
        if at + 1 < len(words.words) and not entry.part:
            joined = JOIN.fullmatch(words.lower[words.ends[last] : words.starts[at]]) is not None
            if words.words[at] in JOINING_WORDS and not joined:
                joined, at = True, at + 1
        for second, end in _titles_at(words, at, root) if joined else ():
            if not (second.part or second.abbreviation or entry.abbreviation):
                is_mixed = {entry.category, second.category} == {"past_history", "family_history"}
                yield ("past_history" if is_mixed else entry.category), entry, end
        yield entry.category, entry, last


def _titles_at(words: _Words, i: int, root: Node) -> list[tuple[Entry, int]]:
    """List the titles that begin with a word, the longest first, with the index of their end."""
    found: list[tuple[Entry, int]] = []
    node: Node | None = root.next.get(words.words[i])
    at = i
    for _ in range(2 * MAX_TITLE_WORDS):
        if node is None:
            break
        found += [
            (entry, at) for entry in node.entries if not entry.dotted or _has_points(words, i, at)
        ]
        if at + 1 >= len(words.words):
            break
        gap = words.lower[words.ends[at] : words.starts[at + 1]]
        following = words.words[at + 1]
        if JOIN.fullmatch(gap):
            node = node.next.get(CONNECTOR)
            node = node and node.next.get(following)
        elif not GAP.fullmatch(gap):
            break
        elif following in JOINING_WORDS and CONNECTOR in node.next and following not in node.next:
            node = node.next[CONNECTOR]
        else:
            node = node.next.get(following)
        at += 1
    return found[::-1]


def _has_points(words: _Words, i: int, last: int) -> bool:
    return all(
        words.lower[words.ends[at] : words.starts[at + 1]].strip() == "." for at in range(i, last)
    )


class _Place:
    """Where a candidate begins.

    begin (int): Start of the heading with number and bullet.
    on_line (bool): It begins a line. `after_end`: it follows the end of a sentence.
    """

    def __init__(self, words: _Words, i: int) -> None:
        self.words, self.i = words, i
        start = words.starts[i]
        before = words.plain[max(0, start - LOOK_BACK) : start]
        line = before.rpartition("\n")[2]
        is_whole = len(line) < len(before) or start <= LOOK_BACK
        self.on_line = is_whole and PREFIX.fullmatch(line) is not None
        self.after_end = not self.on_line and SENTENCE_END.search(before) is not None
        self.begin = start - len(line.lstrip()) if self.on_line else start
        self.inside = not self.on_line and not self.after_end and before[-1:].isspace()
        self.after_break = BLANK_LINE.search(before[: len(before) - len(line)]) is not None

    @property
    def in_phrase(self) -> bool:
        """Whether the word before makes the title part of a phrase ("en la exploración")."""
        return self.i == 0 or self.words.words[self.i - 1] in FUNCTION_WORDS

    @property
    def in_label(self) -> bool:
        """Whether the word before begins a label ("- Medical Treatment:")."""
        at = self.i - 1
        start, end = self.words.starts[at], self.words.ends[at]
        before = self.words.plain[max(0, start - 4) : start].rstrip()
        return at >= 0 and self.words.plain[start:end].istitle() and before[-1:] in ("", *"-*.\n")

    @property
    def after_capitals(self) -> bool:
        """Whether the word before is in capitals ("SE REALIZA EXPLORACIÓN:")."""
        at = self.i - 1
        word = self.words.plain[self.words.starts[at] : self.words.ends[at]]
        return at >= 0 and len(word) > 1 and word.isupper()


def _heading_end(place: _Place, entry: Entry, last: int) -> int | None:
    """Check whether a title at a place is a heading.

    RETURNS (int | None): End of the title with its qualifier ("Tratamiento (02/08/14)"); None if it
        is no heading.
    """
    words = place.words
    plain, start, end = words.plain, words.starts[place.i], words.ends[last]
    if not (place.on_line or place.after_end or place.inside):
        return None
    title = plain[start:end]
    is_upper, is_capital = title.isupper(), title[0].isupper()
    single = end - start == 1
    found: int | None = None
    if COLON.match(plain, end):
        found = end if _allows_colon(place, entry, is_upper, is_capital, single) else None
    elif single or entry.part:
        found = None
    elif _is_in_brackets(place, plain, start, end):
        found = end if is_capital else None
    elif match := PARENTHESIS.match(plain, end):
        found = match.end() if is_capital and not place.inside else None
    elif match := LINE_END.match(plain, end):
        if place.on_line:
            found = end if _allows_line(place, entry, is_upper, is_capital) else None
        elif place.after_end:
            found = end if is_upper and not entry.abbreviation else None
    elif match := DASH.match(plain, end):
        is_clear = is_upper or (is_capital and place.on_line)
        found = end if is_clear and (place.on_line or place.after_end) else None
    elif match := POINT.match(plain, end):
        is_clear = is_capital if place.on_line else is_upper and place.after_end
        found = end if is_clear and not entry.abbreviation else None
    elif is_upper and not place.inside and _opens_text(place, entry, plain, end):
        found = end
    elif is_capital and not entry.abbreviation:
        found = _qualified_end(place, plain, end, is_upper)
    return found if found is not None and not _is_barred(entry, words, start, found) else None


def _is_in_brackets(place: _Place, plain: str, start: int, end: int) -> bool:
    closing = BRACKETS.get(plain[start - 1 : start])
    if closing is None or plain[end : end + 1] != closing:
        return False
    return place.on_line or (place.after_end and closing != ")")


def _allows_colon(
    place: _Place, entry: Entry, is_upper: bool, is_capital: bool, single: bool
) -> bool:
    if place.on_line:
        return is_upper if single else True
    if single:
        return False
    if place.after_end:
        return is_capital or not entry.abbreviation
    if not is_capital or place.in_phrase or (place.in_label and not entry.abbreviation):
        return False
    return not (is_upper and not entry.abbreviation and place.after_capitals)


def _allows_line(place: _Place, entry: Entry, is_upper: bool, is_capital: bool) -> bool:
    if entry.abbreviation:
        return is_upper
    return is_capital or place.after_break


def _opens_text(place: _Place, entry: Entry, plain: str, end: int) -> bool:
    """Check whether text in small letters follows a title in capitals ("RESULTS The scan …")."""
    match = NEXT.match(plain, end)
    following = match[1] if match else ""
    if plain[end : end + 1] != " " or _is_function_word(following):
        return False
    if entry.abbreviation and (not place.on_line or end - place.words.starts[place.i] < 3):
        return False
    if len(following) > 4 and following.isupper():
        return False
    return any(char.islower() for char in plain[end : end + 30])


def _is_function_word(word: str) -> bool:
    """Check for a word that goes on a phrase: "de", "OF", but not the "The" of a new sentence."""
    return (word.islower() or (word.isupper() and len(word) > 1)) and word.lower() in FUNCTION_WORDS


def _qualified_end(place: _Place, plain: str, end: int, is_upper: bool) -> int | None:
    """Find the end of a title with further words before its colon."""
    match = QUALIFIER.match(plain, end)
    if match is None or place.inside:
        return None
    words = WORD.findall(match[0].lower())
    if place.after_end and not is_upper and len(words) > 2:
        return None
    is_clause = words[-1] in LINKING_WORDS or words[-1] in MEASURES
    return None if is_clause or CLAUSE_WORDS.intersection(words) else match.end()


def _is_barred(entry: Entry, words: _Words, start: int, end: int) -> bool:
    """Check the patterns of a title against the text around it."""
    if entry.not_before is not None:
        colon = COLON.match(words.lower, end)
        at = colon.end() if colon else end
        if entry.not_before.match(words.lower[at : at + PATTERN_CHARS]):
            return True
    if entry.not_after is not None:
        before = words.lower[max(0, start - PATTERN_CHARS) : start]
        return entry.not_after.search(before) is not None
    return False
