"""Write annotated texts as people in a hurry do: in capitals, without accents, in short forms.

Published cases are edited prose; notes are not. A tagger that learns from noisy copies of the
corpora finds "NEUMONIA BASAL DCHA" as well as "neumonía basal derecha". Every function makes
replacements of a text, so that the offsets of its spans follow. All are pure functions of the text,
its spans and a random number generator.
"""

import random
import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import filter_spans

from ..errors import BioclinError
from ..rewrite import rewrite
from ..types import GOLD_KEY
from .short_forms import load_short_forms

Edit = tuple[int, int, str]  # start, end and the new text, in characters
Bounds = Sequence[tuple[int, int]]
TILDE = "\u0303"  # of ñ, which is a letter
# Kinds of short forms that stand for the same thing as their long form in a sentence.
SHORTENED = frozenset(
    "disease symptom procedure test drug anatomy device route frequency other".split()  # noqa: SIM905
)
MIN_LONG = 6  # letters of a long form that is shortened
MIN_TYPO = 4  # letters of a word that gets a typo
_WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(r"[^\W_]+")
_MARK = re.compile(r"[.,;:](?=\s|$)")
_BLANK = re.compile(r"(?<=\S) (?=\S)")
_GLUE = re.compile(r"(?<=[.,;:]) (?=\S)")
_UNIT = re.compile(r"(?<=\d) (?=(?:mg|ml|g|mcg|ui|kg|cm|mm|l|h|%|años|a|días|d)\b)", re.IGNORECASE)
_LINE_END = re.compile(r"[ \t]*\n\s*")
_HEADING = re.compile(r"^[^\n:]{3,40}:", re.MULTILINE)
# Words that hurried people leave out.
FILLERS = {
    lang: frozenset(words.split())
    for lang, words in {
        "es": "el la los las un una unos unas de del es son fue que se ha al con presenta "
        "presentaba refiere paciente le y",
        "en": "the a an is was were are has had of that he she his her patient there with and been",
    }.items()
}
# How words are misspelt by ear.
BY_EAR = {
    "es": (
        *(("v", "b"), ("b", "v"), ("ll", "y"), ("y", "ll"), ("h", ""), ("ce", "se"), ("ci", "si")),
        *(
            ("z", "s"),
            ("ge", "je"),
            ("gi", "ji"),
            ("cc", "c"),
            ("x", "cs"),
            ("rr", "r"),
            ("s", "z"),
        ),
        *(("qu", "k"), ("ps", "s"), ("ción", "sion"), ("mp", "np"), ("mb", "nb")),
    ),
    "en": (
        *(("ie", "ei"), ("ei", "ie"), ("ph", "f"), ("ll", "l"), ("ss", "s"), ("rrh", "rh")),
        *(("ae", "e"), ("oe", "e"), ("tion", "sion"), ("ea", "ee"), ("mm", "m"), ("pp", "p")),
        *(("y", "i"), ("ence", "ance"), ("able", "ible"), ("cc", "c"), ("gh", "g")),
    ),
}
NEAR = {  # letters beside each other on a keyboard
    char: near
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for i, char in enumerate(row)
    for near in [row[max(0, i - 1) : i] + row[i + 1 : i + 2]]
}


class Noisy(NamedTuple):
    """A text and the spans of it, whose offsets follow.

    bounds (Bounds): Start and end of each span.
    """

    text: str
    bounds: Bounds


Noise = Callable[[Noisy, str, random.Random], Iterator[Edit]]


def apply(noisy: Noisy, edits: Sequence[Edit]) -> Noisy:
    """Make replacements; a span follows what is left of its text."""
    text, offsets = rewrite(noisy.text, edits)
    moved = []
    for bounds in noisy.bounds:
        start, end = offsets.to_safe(*bounds)
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        moved.append((start, end))
    return Noisy(text, moved)


def _spell(noisy: Noisy, change: Callable[[str], str], pattern: re.Pattern[str]) -> Iterator[Edit]:
    """Respell what a pattern finds, character by character."""
    for found in pattern.finditer(noisy.text):
        for i, char in enumerate(found[0], start=found.start()):
            if (new := change(char)) != char:
                yield i, i + 1, new


def _upper(char: str) -> str:
    return char if char == "ß" else char.upper()


_ALL = re.compile(r".+")


def write_capitals(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Write all in capitals."""
    return _spell(noisy, _upper, _ALL)


def write_some_capitals(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Write some lines in capitals."""
    lines = [found.span() for found in _ALL.finditer(noisy.text) if rng.random() < 0.4]
    for start, end in lines:
        for i in range(start, end):
            if (new := _upper(noisy.text[i])) != noisy.text[i]:
                yield i, i + 1, new


def write_headings(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Write headings in capitals."""
    return _spell(noisy, _upper, _HEADING)


def write_lower(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Write all in lower case."""
    return _spell(noisy, str.lower, _ALL)


def drop_accents(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Leave out accents; half of the texts keep the ñ."""
    kept = TILDE if rng.random() < 0.5 else ""

    def strip(char: str) -> str:
        if char.isascii() or not char.isalpha():
            return char
        marks = unicodedata.normalize("NFD", char)
        plain = "".join(one for one in marks if not unicodedata.combining(one) or one == kept)
        return unicodedata.normalize("NFC", plain) or char

    return _spell(noisy, strip, _ALL)


def misspell(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Misspell some words, as fingers or ears do."""
    share = rng.choice((0.02, 0.05, 0.1))
    for found in _WORD.finditer(noisy.text):
        word = found[0]
        if len(word) < MIN_TYPO or word.isupper() or rng.random() >= share:
            continue
        yield *found.span(), _misspell_word(word, lang, rng)


def _misspell_word(word: str, lang: str, rng: random.Random) -> str:
    if rng.random() < 0.5:
        fits = [pair for pair in BY_EAR.get(lang, ()) if pair[0] in word]
        if fits:
            old, new = rng.choice(fits)
            return word.replace(old, new, 1) or word
    at = rng.randrange(1, len(word) - 1)
    before, char, after = word[:at], word[at], word[at + 1 :]
    return rng.choice(
        (
            before + after[0] + char + after[1:],
            before + char + char + after,
            before + after,
            before + rng.choice(NEAR.get(char.lower(), "e") or "e") + after,
        )
    )


def drop_marks(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Leave out punctuation, or most of it."""
    share = rng.choice((0.6, 1.0))
    for found in _MARK.finditer(noisy.text):
        if rng.random() < share:
            yield *found.span(), ""


def glue(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Leave out blanks behind punctuation and before units: "ERC4.HTA", "40mg"."""
    share = rng.choice((0.3, 0.8))
    edges = {edge for bounds in noisy.bounds for edge in bounds}
    for pattern in (_GLUE, _UNIT):
        for found in pattern.finditer(noisy.text):
            # Never within a span: the tokenizer could not part it from its neighbour.
            if rng.random() < share and (pattern is _UNIT or found.start() - 1 in edges):
                yield *found.span(), ""


def widen_blanks(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Double some blanks, or make tabs of them."""
    share, wide = rng.choice((0.03, 0.15)), rng.choice(("  ", "  ", "   ", "\t"))
    for found in _BLANK.finditer(noisy.text):
        if rng.random() < share:
            yield *found.span(), wide


def wrap_lines(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Break lines at a width, also within sentences and spans."""
    width, start, blank = rng.choice((45, 60, 72, 80)), 0, 0
    for i, char in enumerate(noisy.text):
        if char == "\n":
            start = i + 1
        elif char == " ":
            blank = i
        if i - start >= width and blank > start:
            yield blank, blank + 1, "\n"
            start = blank + 1


def join_lines(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Make one line of the text."""
    between = rng.choice((" ", " ", "  ", ". "))
    for found in _LINE_END.finditer(noisy.text):
        yield *found.span(), " " if noisy.text[found.start() - 1] in ".,;:" else between


def drop_fillers(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Leave out articles and empty verbs, as in a telegram, but none within a span."""
    share, fillers = rng.choice((0.3, 0.7, 1.0)), FILLERS.get(lang, frozenset())
    inside = _Cover(noisy.bounds)
    for found in re.finditer(r"[^\W\d_]+[ \t]+", noisy.text):
        word = found[0].rstrip()
        if word.lower() in fillers and rng.random() < share and not inside.touches(*found.span()):
            yield *found.span(), ""


def shorten(noisy: Noisy, lang: str, rng: random.Random) -> Iterator[Edit]:
    """Write short forms of the lexicon instead of their long forms."""
    share = rng.choice((0.3, 0.6, 1.0))
    for start, end, shorts in find_long_forms(noisy.text, lang):
        crosses = any(
            start < b and a < end and not (a <= start and end <= b) for a, b in noisy.bounds
        )
        if not crosses and rng.random() < share:
            yield start, end, rng.choice(shorts)


@cache
def _load_long_forms(lang: str) -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    """Load the long forms by their first word, the longest first."""
    found: dict[str, dict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for meanings in load_short_forms(lang).values():
        for form in meanings:
            for long in form.long:
                words = tuple(word.lower() for word in _TOKEN.findall(long))
                is_long = len("".join(words)) >= MIN_LONG and len(form.short) < len(long)
                if form.kind in SHORTENED and is_long:
                    found[words[0]][words].append(form.short)
    return {
        first: sorted(((w, tuple(s)) for w, s in forms.items()), key=lambda one: -len(one[0]))
        for first, forms in found.items()
    }


def find_long_forms(text: str, lang: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Find long forms that have a short one, from left to right, the longest first.

    YIELDS (tuple): Start, end, and the short forms.
    """
    forms = _load_long_forms(lang)
    tokens = [(found[0].lower(), *found.span()) for found in _TOKEN.finditer(text)]
    at = 0
    while at < len(tokens):
        step = 1
        for words, shorts in forms.get(tokens[at][0], ()):
            part = tokens[at : at + len(words)]
            start, end = part[0][1], part[-1][2]
            if tuple(word for word, _, _ in part) == words and "\n" not in text[start:end]:
                yield start, end, shorts
                step = len(words)
                break
        at += step


class _Cover:
    """Spans, sorted, to ask what lies in one."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = sorted(bounds)
        self._starts = [start for start, _ in self._bounds]
        self._longest = max((end - start for start, end in bounds), default=0)

    def touches(self, start: int, end: int) -> bool:
        """Check whether a part of the text overlaps a span."""
        at = bisect_right(self._starts, end - 1)
        low = bisect_right(self._starts, start - self._longest - 1)
        return any(start < b and a < end for a, b in self._bounds[low:at])


# Groups of which a text gets one noise at most, in this order, with the share of texts that get it.
GROUPS: Sequence[tuple[tuple[Noise, float], ...]] = (
    ((drop_fillers, 0.25),),
    ((shorten, 0.5),),
    ((misspell, 0.3),),
    ((drop_accents, 0.4),),
    ((write_capitals, 0.25), (write_lower, 0.2), (write_some_capitals, 0.1), (write_headings, 0.1)),
    ((drop_marks, 0.15), (glue, 0.2)),
    ((join_lines, 0.1), (wrap_lines, 0.15)),
    ((widen_blanks, 0.1),),
)


def add_noise(noisy: Noisy, lang: str, rng: random.Random) -> Noisy:
    """Add noise of several kinds.

    noisy (Noisy): A text and its spans.
    lang (str): Its language.
    RETURNS (Noisy): The noisy text; spans keep their order, and one that has lost all of its text
        is empty.
    """
    for group in GROUPS:
        drawn = rng.random()
        for noise, share in group:
            if drawn < share:
                noisy = apply(noisy, sorted(noise(noisy, lang, rng)))
                break
            drawn -= share
    return noisy


def make_noise_augmenter(
    copies: int = 1, keep: bool = True, seed: int = 0
) -> Callable[[Language, Example], Iterator[Example]]:
    """Make an augmenter that adds noisy copies (registered as `spacy-bioclin.noise.v1`).

    copies (int): Noisy copies of each example.
    keep (bool): Also yield the example as it is.
    seed (int): Random seed; the same seed and text give the same copies.
    RETURNS (Callable): The augmenter, for `augmenter` of a corpus.
    RAISES (BioclinError): There would be no example.
    """
    if copies < 0 or not (copies or keep):
        raise BioclinError(
            f"spacy-bioclin.noise.v1: copies = {copies} and keep = {keep} leave no example"
        )

    def augment(nlp: Language, eg: Example) -> Iterator[Example]:
        if keep:
            yield eg
        for copy in range(copies):
            rng = random.Random(f"{seed} {copy} {eg.reference.text}")
            yield copy_with_noise(nlp, eg, rng)

    return augment


def copy_with_noise(nlp: Language, eg: Example, rng: random.Random) -> Example:
    """Copy an example with noise; one with annotation beyond spans is left as it is."""
    doc = eg.reference
    gold: dict[str, Any] = doc.user_data.get(GOLD_KEY, {})
    layers = gold.get("layers", {})
    if doc.cats or "relations" in gold or not layers:
        return eg
    items = [(layer, item) for layer, own in layers.items() for item in own]
    noisy = add_noise(
        Noisy(doc.text, [(item[0], item[1]) for _, item in items]), nlp.lang or "", rng
    )
    new = nlp.make_doc(noisy.text)
    moved: dict[str, list[list[Any]]] = {layer: [] for layer in layers}
    spans: dict[str, list[Span]] = {layer: [] for layer in layers}
    for (layer, item), (start, end) in zip(items, noisy.bounds, strict=True):
        span = new.char_span(start, end, label=item[2], alignment_mode="expand")
        if span is not None and start < end:
            moved[layer].append([start, end, *item[2:]])
            spans[layer].append(span)
    _fill(new, spans)
    new.user_data.update({**doc.user_data, GOLD_KEY: {**gold, "layers": moved}})
    return Example(nlp.make_doc(noisy.text), new)


def _fill(doc: Doc, spans: dict[str, list[Span]]) -> None:
    for layer, own in spans.items():
        doc.spans[layer] = own
        if layer == "ents":
            doc.set_ents(filter_spans(own), default="outside")
