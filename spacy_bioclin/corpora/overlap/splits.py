"""Read the text of test splits, in whatever form they are."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy

from ...errors import BioclinError
from ...files import find_files, open_binary
from .ngrams import NGRAM, ngram_hashes, word_hashes

SUFFIXES = (".txt", ".tsv", ".csv", ".xml", ".iob", ".bio", ".conll", ".pubtator")
TAG = re.compile(r"(?:O|[BIESLU](?:-\S+)?)\Z")
PUBTATOR_TEXT = re.compile(r"[^|\s]+\|[ta]\|")
COLUMN_LINES = 200


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
