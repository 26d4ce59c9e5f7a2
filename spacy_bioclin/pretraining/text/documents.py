"""Cleaning of one document for language-model pretraining (Carrino et al. 2022, section 2). Pure
functions of its text: they run in worker processes, and nothing in them depends on other documents.
"""

import functools
import re
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import numpy
from datasketch import MinHash
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from ...tokenization.rules import RULES
from ...tokenization.sentences import sentence_starts
from .overlap import NGRAM, bytes_hash, is_overlap, ngram_hashes, word_hashes

OTHER_LANGS = ("ca", "de", "en", "es", "fr", "it", "nl", "pt")  # what is told apart
MIN_LANG_CHARS = 80  # a shorter text says too little about its language
MAX_LANG_CHARS = 20_000
SURE = 0.9  # probability from which a text counts as of no wanted language

MIN_LETTERS = 4  # of a sentence
MIN_WORDS = 5  # of a document
MIN_LETTER_SHARE = 0.4  # of the characters of a sentence that are no blanks
MIN_DOC_LETTER_SHARE = 0.5
MAX_SYMBOL_SHARE = 0.3  # neither letter nor digit
MAX_WORD_SHARE = 0.4  # of the commonest word, in a sentence of REPEAT_WORDS or more
REPEAT_WORDS = 10
REPEATED_CHARACTER = re.compile(r"([^\d\s])\1{9}")

SHINGLE = 5  # words
N_PERMUTATIONS = 128
SHINGLE_BATCH = 10_000  # bounds the memory for a long document

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ue000-\uf8ff\ud800-\udfff\ufffc-\uffff]")
INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


class Counts(NamedTuple):
    """How many documents, sentences and words (between blanks)."""

    documents: int = 0
    sentences: int = 0
    words: int = 0

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*(mine + its for mine, its in zip(self, other, strict=True)))


class CleanDocument(NamedTuple):
    """What is left of one document.

    lang (str): Its language.
    sentences (list[str]): The sentences that are left.
    reason (str): Why the whole document is dropped, or "".
    read (Counts): What it had.
    dropped (dict[str, Counts]): What was dropped of it, per reason.
    key (int): 64-bit hash of its words, the same for copies that differ in blanks, case and marks.
    signature (numpy.ndarray): MinHash of its word 5-grams, shape (N_PERMUTATIONS,), empty if it has
        fewer words or is dropped.
    """

    lang: str
    sentences: list[str]
    reason: str
    read: Counts
    dropped: dict[str, Counts]
    key: int
    signature: numpy.ndarray


def clean_document(text: str, langs: tuple[str, ...], test: numpy.ndarray) -> CleanDocument:
    """Clean one document.

    text (str): Its text.
    langs (tuple[str, ...]): The languages wanted.
    test (numpy.ndarray): 12-grams of the test splits, from `read_test_ngrams`; may be empty.
    RETURNS (CleanDocument): Its sentences, with what was dropped and why.
    """
    text = normalize(text)
    lang = language_of(text, langs)
    kept = split_sentences(text, lang or langs[0])
    read, dropped = count(kept), dict[str, Counts]()
    words = word_hashes(text)
    if not lang:
        reason = "language"
    elif is_overlap(ngram_hashes(words, NGRAM), test):
        reason = "test_overlap"
    else:
        kept, dropped = _drop_noise(kept, langs)
        reason = document_noise(kept)
    if reason:
        dropped[reason] = dropped.get(reason, Counts()).plus(count(kept))
        kept, words = [], words[:0]
    key = bytes_hash(words.tobytes())
    return CleanDocument(lang, kept, reason, read, dropped, key, signature(words))


def _drop_noise(
    sentences: list[str], langs: tuple[str, ...]
) -> tuple[list[str], dict[str, Counts]]:
    """RETURNS (tuple): The sentences without noise, and what was dropped per reason."""
    kept, dropped = [], dict[str, Counts]()
    for sentence in sentences:
        if reason := sentence_noise(sentence, langs):
            lost = Counts(0, 1, len(sentence.split()))
            dropped[reason] = dropped.get(reason, Counts()).plus(lost)
        else:
            kept.append(sentence)
    return kept, dropped


def normalize(text: str) -> str:
    """Compose accents (NFC, which changes neither "µ" nor "²"), take out control and invisible
    characters, and make every run of blanks one blank."""
    text = CONTROL.sub(" ", INVISIBLE.sub("", text))
    return " ".join(unicodedata.normalize("NFC", text).split())


def language_of(text: str, langs: tuple[str, ...]) -> str:
    """Tell the language of a text.

    text (str): The text; its first 20,000 characters are looked at.
    langs (tuple[str, ...]): The languages wanted.
    RETURNS (str): The likeliest of them; "" if the text is long enough to tell and surely of none.
    """
    ranked = _identifier(langs).rank(text[:MAX_LANG_CHARS])
    best, probability = ranked[0]
    if best not in langs and len(text) >= MIN_LANG_CHARS and probability >= SURE:
        return ""
    return next(lang for lang, _ in ranked if lang in langs)


@functools.lru_cache(maxsize=4)
def _identifier(langs: tuple[str, ...]) -> LanguageIdentifier:
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages({*OTHER_LANGS, *langs})
    return identifier


def split_sentences(text: str, lang: str) -> list[str]:
    """RETURNS (list[str]): The sentences of a text, by the rules of its language."""
    starts = sentence_starts(text, RULES[lang])
    return [text[start:end].strip() for start, end in pairwise([*starts, len(text)])]


def sentence_noise(sentence: str, langs: tuple[str, ...]) -> str:
    """RETURNS (str): Why a sentence is no use for learning a language, or ""."""
    n_letters = sum(map(str.isalpha, sentence))
    if n_letters < MIN_LETTERS:
        return "few_letters"
    n_blanks = sentence.count(" ")
    n_characters = len(sentence) - n_blanks
    if n_letters < MIN_LETTER_SHARE * n_characters:
        return "letter_share"
    n_symbols = n_characters - sum(map(str.isalnum, sentence))
    if n_symbols > MAX_SYMBOL_SHARE * n_characters:
        return "symbol_share"
    if REPEATED_CHARACTER.search(sentence) or _repeats_word(sentence, n_blanks + 1):
        return "repetition"
    if len(sentence) >= MIN_LANG_CHARS and not language_of(sentence, langs):
        return "sentence_language"
    return ""


def _repeats_word(sentence: str, n_words: int) -> bool:
    if n_words < REPEAT_WORDS:
        return False
    return Counter(sentence.split()).most_common(1)[0][1] > MAX_WORD_SHARE * n_words


def document_noise(sentences: list[str]) -> str:
    """RETURNS (str): Why a document of these sentences is no use, or ""."""
    if sum(len(sentence.split()) for sentence in sentences) < MIN_WORDS:
        return "short_document"
    n_letters = sum(sum(map(str.isalpha, sentence)) for sentence in sentences)
    n_characters = sum(len(sentence) - sentence.count(" ") for sentence in sentences)
    return "document_letter_share" if n_letters < MIN_DOC_LETTER_SHARE * n_characters else ""


def count(sentences: list[str]) -> Counts:
    """RETURNS (Counts): Of one document with these sentences."""
    return Counts(1, len(sentences), sum(len(sentence.split()) for sentence in sentences))


def signature(words: numpy.ndarray) -> numpy.ndarray:
    """RETURNS (numpy.ndarray): MinHash of the word 5-grams, shape (N_PERMUTATIONS,); empty if it
    has fewer than five words."""
    shingles = ngram_hashes(words, SHINGLE) >> numpy.uint64(32)
    if not len(shingles):
        return shingles
    minhash = _empty_minhash().copy()
    for start in range(0, len(shingles), SHINGLE_BATCH):
        minhash.update_batch(shingles[start : start + SHINGLE_BATCH].tolist())
    return minhash.hashvalues


@functools.cache
def _empty_minhash() -> MinHash:
    return MinHash(num_perm=N_PERMUTATIONS, hashfunc=int)  # its permutations take a millisecond
