"""Clean one document for language-model pretraining (Carrino et al. 2022, section 2).

These functions depend on nothing but the document, so that they can run in worker processes.
"""

import functools
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy
from datasketch import MinHash
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from ...corpora.overlap.ngrams import NGRAM, bytes_hash, is_overlap, ngram_hashes, word_hashes
from ...text import compose
from ...tokenization.rules import RULES
from ...tokenization.sentences import sentence_starts

OTHER_LANGS = ("ca", "de", "en", "es", "fr", "it", "nl", "pt")  # languages to identify
MIN_LANG_CHARS = 80  # the language of a shorter text is uncertain
MAX_LANG_CHARS = 20_000
MIN_PROBABILITY = 0.9  # of another language, for a text to be dropped

MIN_LETTERS = 4  # in a sentence
MIN_WORDS = 5  # in a document
MIN_LETTER_SHARE = 0.4  # of the characters of a sentence, blanks not counted
MIN_DOC_LETTER_SHARE = 0.5
MAX_SYMBOL_SHARE = 0.3  # neither letter nor digit
MAX_WORD_SHARE = 0.4  # of the most frequent word in a sentence of at least REPEAT_WORDS
REPEAT_WORDS = 10
REPEATED_CHARACTER = re.compile(r"([^\d\s])\1{9}")

SHINGLE = 5  # words
N_PERMUTATIONS = 128
SHINGLE_BATCH = 10_000  # limits the memory for a long document

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ue000-\uf8ff\ud800-\udfff\ufffc-\uffff]")
INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


@dataclass(frozen=True)
class Counts:
    """Numbers of documents, sentences and words (between blanks)."""

    documents: int = 0
    sentences: int = 0
    words: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.documents + other.documents,
            self.sentences + other.sentences,
            self.words + other.words,
        )


class CleanDocument(NamedTuple):
    """A document after cleaning.

    lang (str): Language; "" for a language that is not wanted.
    sentences (list[str]): The sentences that are kept.
    reason (str): Why the whole document is dropped, or "".
    read (Counts): Counts before cleaning.
    dropped (dict[str, Counts]): Counts of what was dropped, by reason.
    key (int): 64-bit hash of the words. It ignores blanks, case and punctuation.
    signature (numpy.ndarray): MinHash of the word 5-grams, (N_PERMUTATIONS,); empty for fewer than
        five words or a dropped document.
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
    langs (tuple[str, ...]): Languages to keep.
    test (numpy.ndarray): 12-grams of the test splits, from `read_test_ngrams`; may be empty.
    RETURNS (CleanDocument): The sentences that are kept, and counts of the others by reason.
    """
    text = normalize(text)
    lang = language_of(text, langs)
    kept = split_sentences(text, lang or langs[0])
    read, dropped = count(kept), defaultdict[str, Counts](Counts)
    words = word_hashes(text)
    if not lang:
        reason = "language"
    elif is_overlap(ngram_hashes(words, NGRAM), test):
        reason = "test_overlap"
    else:
        kept = _drop_noise(kept, langs, dropped)
        reason = document_noise(kept)
    if reason:
        dropped[reason] += count(kept)
        kept, words = [], words[:0]
    key = bytes_hash(words.tobytes())
    return CleanDocument(lang, kept, reason, read, dropped, key, signature(words))


def _drop_noise(
    sentences: list[str], langs: tuple[str, ...], dropped: dict[str, Counts]
) -> list[str]:
    """Keep the sentences without noise, and add the others to the counts by reason."""
    kept = []
    for sentence in sentences:
        if reason := sentence_noise(sentence, langs):
            dropped[reason] += Counts(0, 1, len(sentence.split()))
        else:
            kept.append(sentence)
    return kept


def normalize(text: str) -> str:
    """Compose accents, remove control and invisible characters, and reduce white space to blanks.

    NFC changes neither "µ" nor "²".
    """
    text = CONTROL.sub(" ", INVISIBLE.sub("", text))
    return " ".join(compose(text).split())


def language_of(text: str, langs: tuple[str, ...]) -> str:
    """Identify the language of a text.

    text (str): The text; only its first 20,000 characters are used.
    langs (tuple[str, ...]): Languages to choose from.
    RETURNS (str): The most probable of them; "" if the text is certainly in another language.
    """
    ranked = _identifier(langs).rank(text[:MAX_LANG_CHARS])
    best, probability = ranked[0]
    if best not in langs and len(text) >= MIN_LANG_CHARS and probability >= MIN_PROBABILITY:
        return ""
    return next(lang for lang, _ in ranked if lang in langs)


@functools.lru_cache(maxsize=4)
def _identifier(langs: tuple[str, ...]) -> LanguageIdentifier:
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages({*OTHER_LANGS, *langs})
    return identifier


def split_sentences(text: str, lang: str) -> list[str]:
    """Split a text into sentences by the rules of its language."""
    starts = sentence_starts(text, RULES[lang])
    return [text[start:end].strip() for start, end in pairwise([*starts, len(text)])]


def sentence_noise(sentence: str, langs: tuple[str, ...]) -> str:
    """Find out why a sentence is useless for learning a language.

    RETURNS (str): The reason; "" for a sentence to keep.
    """
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
    """Find out why a document of these sentences is useless for learning a language.

    RETURNS (str): The reason; "" for a document to keep.
    """
    if sum(len(sentence.split()) for sentence in sentences) < MIN_WORDS:
        return "short_document"
    n_letters = sum(sum(map(str.isalpha, sentence)) for sentence in sentences)
    n_characters = sum(len(sentence) - sentence.count(" ") for sentence in sentences)
    return "document_letter_share" if n_letters < MIN_DOC_LETTER_SHARE * n_characters else ""


def count(sentences: list[str]) -> Counts:
    """Count one document with these sentences."""
    return Counts(1, len(sentences), sum(len(sentence.split()) for sentence in sentences))


def signature(words: numpy.ndarray) -> numpy.ndarray:
    """Compute the MinHash of the word 5-grams.

    words (numpy.ndarray): Hashes of the words, (n_words,).
    RETURNS (numpy.ndarray): (N_PERMUTATIONS,); empty for fewer than five words.
    """
    shingles = ngram_hashes(words, SHINGLE) >> numpy.uint64(32)
    if not len(shingles):
        return shingles
    minhash = _empty_minhash().copy()
    for start in range(0, len(shingles), SHINGLE_BATCH):
        minhash.update_batch(shingles[start : start + SHINGLE_BATCH].tolist())
    return minhash.hashvalues


@functools.cache
def _empty_minhash() -> MinHash:
    # Computing its permutations takes a millisecond.
    return MinHash(num_perm=N_PERMUTATIONS, hashfunc=int)
