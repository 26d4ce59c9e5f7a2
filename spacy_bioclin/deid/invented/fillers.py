"""Sentences of clinical text without PHI, for `{text}`."""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ...errors import BioclinError
from ...files import find_files, open_binary
from ...text import fold_alnum
from ..detect.rules import load_rules
from ..surrogates.name_lists import load_names
from .noise import Piece
from .values import Values

MIN_LENGTH, MAX_LENGTH = 25, 300  # characters of a sentence
FROM_ONE = 8  # sentences that are taken from one document, at most
MIN_NAME = 3  # letters
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_a-z¿])")
_WORD = re.compile(r"[^\W\d_]+")
# 12/3/2019, 2019-03, 1998, 12345: numbers that may be dates or identifiers.
_NUMBER = re.compile(r"\d{1,4}[/-]\d{1,4}[/-]\d|\b(?:19|20)\d\d\b|\d{5}|@|www|\w[*#_]{3}|\[")


class Texts:
    """Sentences to draw from."""

    def __init__(self, values: Values, sentences: Sequence[str] = ()) -> None:
        """Take sentences; without any, they are made by the rule "text"."""
        self.values, self.sentences = values, sentences

    def draw(self, number: int, rng: random.Random) -> Iterator[Piece]:
        """Draw so many sentences, one after the other."""
        for i in range(number):
            if i:
                yield Piece(" ")
            if self.sentences:
                yield Piece(rng.choice(self.sentences))
            else:
                yield Piece(self.values.write("text", rng))


def read_texts(paths: Iterable[Path], values: Values, number: int) -> Texts:
    """Read sentences without PHI from files of clinical text, one document a line.

    paths (Iterable[Path]): .txt or .txt.xz files, or folders; none for the included sentences.
    number (int): Reading ends after so many sentences of each path.
    RAISES (BioclinError): A file cannot be read, or there is no sentence without PHI in it.
    """
    paths = list(paths)
    if not paths:
        return Texts(values)
    is_clean = make_check(values)
    kept: dict[str, None] = {}
    for path in paths:
        n_before = len(kept)
        for sentence in _read_sentences(path):
            if sentence not in kept and is_clean(sentence):
                kept[sentence] = None
                if len(kept) - n_before == number:
                    break
        if len(kept) == n_before:
            raise BioclinError(
                f"{path}: has no sentence that is certainly without PHI; give more clinical text, "
                "one document a line"
            )
    return Texts(values, list(kept))


def make_check(values: Values) -> Callable[[str], bool]:
    """Make what tells whether nothing in a sentence suggests PHI.

    The words are those of the list `phi_words` of the language, names of persons, and places.
    """
    rules = load_rules(values.lang)
    names = {name for name in load_names(values.lang).known if len(name) >= MIN_NAME}
    names.update(values.places())
    words = {fold_alnum(word) for word in values.lists["phi_words"]}
    words.update(map(fold_alnum, values.lists["kinship"]))
    months = {fold_alnum(month) for month in values.lists["months"]}

    def is_clean(sentence: str) -> bool:
        if not MIN_LENGTH <= len(sentence) <= MAX_LENGTH or _NUMBER.search(sentence):
            return False
        for word in _WORD.findall(sentence):
            folded = fold_alnum(word)
            if folded in words:
                return False
            # In English "may" and "march" are words too.
            is_name = not word.islower() and (folded in names or folded in months)
            if is_name or (folded in months and values.lang == "es"):
                return False
        return not rules.find(sentence)

    return is_clean


def _read_sentences(path: Path) -> Iterator[str]:
    for _, file in find_files([path], (".txt",), compressed=True):
        with open_binary(file) as (lines, _position):
            for number, line in enumerate(lines, start=1):
                try:
                    text = line.decode("utf-8-sig")
                except UnicodeDecodeError:
                    raise BioclinError(f"{file}, line {number}: not UTF-8") from None
                sentences = [" ".join(part.split()) for part in _SENTENCE_END.split(text)]
                # The middle of a document: its beginning is a title or a header.
                start = max(0, (len(sentences) - FROM_ONE) // 2)
                for sentence in sentences[start : start + FROM_ONE]:
                    if sentence[:1].isupper() and sentence[-1:] in ".!?":
                        yield sentence
