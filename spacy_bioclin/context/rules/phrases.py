"""Cut a text into words and find phrases of words in it, in time linear in its length."""

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ...text import fold_by_char

# "gram-negative" and "r/o": a hyphen joins words, a slash is a word of its own.
WORD = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
# The only pair of words that an accent tells apart and the rules need: "sí" is not "si".
YES = re.compile(r"\bs[íÍ]\b", re.IGNORECASE)
CHOICE = re.compile(r"\{([^{}]*)\}")
MAX_VARIANTS = 2_000

# "Fever? No.": the answer belongs to the question, wherever the sentence splitter ends it.
ANSWER = re.compile(
    r"\?\s*(?=(?:a ?: ?)?(?:no|nope|nah|n|none|never|nil|denies|yes|yep|yeah|y|s[ií]|niega|"
    r"ningun[oa]s?)\b ?(?:[.,;/¿(]|$))",
    re.IGNORECASE | re.MULTILINE,
)
# What begins a block of its own, wherever the sentence splitter ends its sentences.
BLOCK = re.compile(r"\n[^\S\n]*(?:\n\s*|(?=(?:[-–—•·*>+▪]|\d{1,2}[.)]-?|[a-z]\))[^\S\n]))")
# A short line is not wrapped: what it says ends with it.
LINE = re.compile(r"^[^\n]{1,45}\n", re.MULTILINE)
# "SIN MEJORIA.DM2", a sentence glued to the next, but not "p.ej" or "E.coli".
GLUED = re.compile(r"(?:(?<=\w\w)|(?<=\d))\.(?=[^\W\d_][^\W_]{2})|(?<=\w\w\w)\.(?=[^\W\d_][^\W_])")


class Words(NamedTuple):
    """The words and marks of a text.

    folded (str): The text in lower case without accents, of the same length.
    words (list[str]): The folded words.
    starts, ends (list[int]): Their character offsets.
    blocks (list[int]): Words with which a sentence or another block begins, ascending, and the
        number of words.
    """

    folded: str
    words: list[str]
    starts: list[int]
    ends: list[int]
    blocks: list[int]


def fold(text: str) -> str:
    """Convert a text to lower case without accents, except the one of "sí"; ’ becomes '."""
    folded = fold_by_char(text).replace("’", "'")
    if "í" in text or "Í" in text:
        for found in YES.finditer(text):
            folded = f"{folded[: found.start()]}{found[0].lower()}{folded[found.end() :]}"
    return folded


def cut_words(text: str, borders: Iterable[int]) -> Words:
    """Cut a text into words.

    text (str): Any text.
    borders (Iterable[int]): Character offsets that no phrase and no scope crosses: where sentences
        and sections begin. Blank lines and list items are added to them, answers are taken out.
    RETURNS (Words): Its words.
    """
    folded = fold(text)
    places = [found.span() for found in WORD.finditer(folded)]
    words = [folded[start:end] for start, end in places]
    starts = [start for start, _ in places]
    ends = [end for _, end in places]
    ends_of_blocks = (found.end() for one in (BLOCK, GLUED, LINE) for found in one.finditer(text))
    offsets = {*borders, *ends_of_blocks}
    offsets -= {found.end() for found in ANSWER.finditer(folded)}
    offsets.add(0)
    blocks = {bisect_left(starts, offset) for offset in offsets}
    return Words(folded, words, starts, ends, sorted(blocks | {len(words)}))


def expand_choices(phrase: str) -> Iterator[str]:
    """Write out the choices of a phrase: "negativ{o|a}" is "negativo" and "negativa".

    phrase (str): The phrase. A choice may be empty: "{se |}descarta".
    YIELDS (str): Its variants.
    RAISES (ValueError): It has more than MAX_VARIANTS variants, or a brace without its other half.
    """
    fixed = CHOICE.split(phrase)
    choices = [part.split("|") if i % 2 else [part] for i, part in enumerate(fixed)]
    n_variants = 1
    for choice in choices:
        n_variants *= len(choice)
    if n_variants > MAX_VARIANTS:
        raise ValueError(f"the choices make more than {MAX_VARIANTS:,} phrases; write fewer")
    for parts in itertools.product(*choices):
        variant = "".join(parts)
        if "{" in variant or "}" in variant:
            raise ValueError("want choices as {a|b}, not one in the other, each brace closed")
        yield variant


def fold_phrase(phrase: str) -> tuple[str, ...]:
    """Cut a phrase into folded words, as `cut_words` does with a text."""
    return tuple(WORD.findall(fold(phrase)))


class PhraseTable:
    """Phrases in a tree of words, each with a value for each of some slots.

    A slot is one use of a phrase, such as "cue" and "terminator": the longest phrase of each slot
    is found apart.
    """

    def __init__(self) -> None:
        self.root: dict[str | None, Any] = {}

    def add(self, phrase: Sequence[str], slot: int, value: Any) -> None:
        """Add a phrase, replacing an earlier value.

        phrase (Sequence[str]): Folded words, at least one.
        slot (int): 0 or 1.
        value (Any): What `longest` gives for the phrase.
        """
        node = self.root
        for word in phrase:
            node = node.setdefault(word, {})
        node.setdefault(None, [None, None])[slot] = value

    def get(self, phrase: Sequence[str], slot: int) -> Any:
        """Get the value of a phrase, or None."""
        node: Any = self.root
        for word in phrase:
            node = node.get(word, {})
        return node.get(None, (None, None))[slot]

    def longest(self, words: Sequence[str], at: int, end: int) -> list[tuple[int, Any]]:
        """Find the longest phrase of each slot that begins with a word.

        words (Sequence[str]): Folded words.
        at (int): The word.
        end (int): The phrases end here at the latest.
        RETURNS (list[tuple[int, Any]]): For each slot the end of the phrase and its value; (at,
            None) if there is no phrase.
        """
        found: list[tuple[int, Any]] = [(at, None), (at, None)]
        node = self.root.get(words[at])
        while node is not None:
            at += 1
            if None in node:
                for slot, value in enumerate(node[None]):
                    if value is not None:
                        found[slot] = at, value
            if at >= end:
                break
            node = node.get(words[at])
        return found
