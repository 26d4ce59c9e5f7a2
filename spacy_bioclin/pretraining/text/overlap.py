"""Keep the test splits out of what a language model is trained on.

A document is dropped if it shares too many word 12-grams with the test splits. Words are runs of
letters and digits in lower case, so that tokenised and plain copies of a text compare equal.
"""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy

from ...errors import BioclinError
from ...files import find_files, open_binary
from ...text import compose

NGRAM = 12
MAX_SHARED = 30  # shared 12-grams from which a document is dropped
MAX_SHARE = 0.15  # share of its own 12-grams from which a document is dropped
SUFFIXES = (".txt", ".tsv", ".csv", ".xml", ".iob", ".bio", ".conll", ".pubtator")
WORD = re.compile(r"[^\W_]+")
TAG = re.compile(r"(?:O|[BIESLU](?:-\S+)?)\Z")
PUBTATOR_TEXT = re.compile(r"[^|\s]+\|[ta]\|")
MULTIPLIER = numpy.uint64(0x9E3779B97F4A7C15)  # odd, so that no bit of a word is lost
COLUMN_LINES = 200


def word_hashes(text: str) -> numpy.ndarray:
    """Hash the words of a text. The hashes are the same on every machine and in every run.

    RETURNS (numpy.ndarray): 64-bit hashes, uint64 of shape (n_words,).
    """
    words = WORD.findall(compose(text).casefold())
    return numpy.fromiter(map(_word_hash, words), dtype=numpy.uint64, count=len(words))


@functools.lru_cache(maxsize=2**18)
def _word_hash(word: str) -> int:
    return bytes_hash(word.encode("utf-8", "surrogatepass"))


def bytes_hash(data: bytes) -> int:
    """Compute a 64-bit hash that is the same on every machine and in every run."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def ngram_hashes(words: numpy.ndarray, n: int) -> numpy.ndarray:
    """Hash every run of `n` words.

    words (numpy.ndarray): From `word_hashes`, shape (n_words,).
    n (int): Length of a run, in words.
    RETURNS (numpy.ndarray): The distinct hashes, uint64, ascending; empty for fewer words than `n`.
    """
    n_runs = max(0, len(words) - n + 1)
    hashes = numpy.zeros(n_runs, dtype=numpy.uint64)
    for start in range(min(n, len(words))):
        hashes *= MULTIPLIER
        hashes += words[start : start + n_runs]
    return numpy.unique(hashes)


def is_overlap(ngrams: numpy.ndarray, test: numpy.ndarray) -> bool:
    """Check whether a document shares too much with the test splits.

    ngrams (numpy.ndarray): The distinct 12-grams of the document, from `ngram_hashes`.
    test (numpy.ndarray): The 12-grams of the test splits, from `read_test_ngrams`.
    RETURNS (bool): True if it shares at least 30 of them, or at least 15 % of its own.
    """
    if not len(ngrams) or not len(test):
        return False
    places = numpy.minimum(numpy.searchsorted(test, ngrams), len(test) - 1)
    n_shared = int((test[places] == ngrams).sum())
    return n_shared >= MAX_SHARED or n_shared >= MAX_SHARE * len(ngrams)


def read_test_ngrams(paths: Iterable[Path]) -> numpy.ndarray:
    """Read the 12-grams of test splits.

    paths (Iterable[Path]): Files, and folders, which are searched at any depth. They have plain
        text, brat texts, token columns (IOB), PubTator, tables or XML, compressed or not.
    RETURNS (numpy.ndarray): The distinct hashes, uint64, ascending.
    RAISES (BioclinError): A path does not exist, a folder has no such file, or the files have no
        12-gram.
    """
    paths = list(paths)
    found = [
        ngram_hashes(word_hashes(text), NGRAM)
        for _, file in find_files(paths, SUFFIXES, compressed=True)
        for text in _texts(file)
    ]
    hashes = numpy.unique(numpy.concatenate([numpy.empty(0, numpy.uint64), *found]))
    if paths and not len(hashes):
        raise BioclinError(
            f"{paths[0]}: no test split with {NGRAM} words; give the files or folders with its text"
        )
    return hashes


def _texts(path: Path) -> Iterator[str]:
    """Read the text of a file, without tags, ids and annotations."""
    with open_binary(path) as (file, _):
        data = file.read()
    if ".xml" in path.suffixes:
        yield from _xml_texts(data, path)
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # as in old corpora
    lines = text.splitlines()
    if _is_columns(lines):
        yield " ".join(line.split(None, 1)[0] for line in lines if line.strip())
    elif any(PUBTATOR_TEXT.match(line) for line in lines[:5]):
        yield "\n".join(
            line[match.end() :] for line in lines if (match := PUBTATOR_TEXT.match(line))
        )
    else:
        yield text


def _is_columns(lines: list[str]) -> bool:
    """Check whether nearly all lines are a token, perhaps more columns, and a tag."""
    rows = [line.split() for line in lines[:COLUMN_LINES] if line.strip()]
    tagged = sum(1 for row in rows if len(row) > 1 and TAG.match(row[-1]))
    return bool(rows) and tagged >= 0.9 * len(rows)


def _xml_texts(data: bytes, path: Path) -> Iterator[str]:
    """Read the text between the tags, and the attributes `text` (DDI corpus)."""
    from lxml import etree

    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        raise BioclinError(f"{path}: not XML; repair it, or leave it out of the test splits")
    yield " ".join(root.itertext())
    yield from (element.get("text") for element in root.iter() if element.get("text"))
