"""Read the cleaned corpus that `bioclin clean-text` writes.

Each part of the corpus has PART.train.txt and PART.held-out.txt with one sentence per line and an
empty line after each document. A part is a language ("es"), or a source of text of a language
("wikipedia.es").
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import BioclinError

SPLITS = ("train", "held-out")


def find_files(corpus: Path, split: str) -> dict[str, Path]:
    """Find the files of a split.

    RETURNS (dict[str, Path]): Part -> file.
    RAISES (BioclinError): There is no training text at all.
    """
    suffix = f".{split}.txt"
    files = {path.name.removesuffix(suffix): path for path in sorted(corpus.glob(f"*{suffix}"))}
    if not files and split == "train":
        raise BioclinError(f"{corpus} holds no LANG.train.txt: make it with `bioclin clean-text`")
    return files


def find_all_files(corpus: Path) -> dict[tuple[str, str], Path]:
    """Find the files of both splits of every part.

    RETURNS (dict[tuple[str, str], Path]): (part, split) -> file.
    RAISES (BioclinError): A part has no text in one of the splits.
    """
    parts = find_files(corpus, "train")
    files = {(x, s): corpus / f"{x}.{s}.txt" for x, s in itertools.product(parts, SPLITS)}
    for (part, _), path in files.items():
        if not path.is_file() or not path.stat().st_size:
            what = "source" if language_of(part) != part else "language"
            raise BioclinError(f"{path} is missing or empty: clean more text of that {what}")
    return files


def read_documents(path: Path) -> Iterator[list[str]]:
    """Read a file document by document.

    YIELDS (list[str]): The sentences of one document.
    """
    with path.open(encoding="utf-8", newline="\n") as lines:
        stripped = (line.rstrip("\n") for line in lines)
        for is_text, group in itertools.groupby(stripped, key=bool):
            if is_text:
                yield list(group)


def read_sentences(path: Path) -> Iterator[str]:
    """Read the sentences of a file, ignoring document boundaries."""
    return itertools.chain.from_iterable(read_documents(path))


def language_of(part: str) -> str:
    """Find the language of a part: "es" for "es" and for "wikipedia.es"."""
    return part.rpartition(".")[2]


def resolve_shares(
    shares: Mapping[str, float], sizes: Mapping[str, int], *, balance: bool = False
) -> dict[str, float]:
    """Find the share of each part in the training text.

    The languages have equal shares, or those that are given. The sources of a language divide its
    share by their size, as if their text were in one file, unless each has its own share.

    shares (Mapping[str, float]): Language or part -> share; may be empty.
    sizes (Mapping[str, int]): Part -> words or blocks of its training text.
    balance (bool): Give every part the same share.
    RETURNS (dict[str, float]): Part -> share.
    RAISES (BioclinError): The shares do not name all languages or all parts, or one is not above 0.
    """
    if balance and shares:
        raise BioclinError("--balance and --share: give only one of them")
    if balance:
        return dict.fromkeys(sizes, 1.0)
    languages = sorted({language_of(part) for part in sizes})
    if set(shares) == set(sizes) and min(shares.values()) > 0:
        return dict(shares)
    by_lang = dict(shares) or dict.fromkeys(languages, 1.0)
    if set(by_lang) != set(languages) or min(by_lang.values()) <= 0:
        each = f"name each language of the corpus, {languages}"
        if set(languages) != set(sizes):
            each += f", or each of its parts, {sorted(sizes)}"
        raise BioclinError(f"--share is given as {dict(shares)}: {each}, with a share above 0")
    wholes = {
        lang: sum(size for part, size in sizes.items() if language_of(part) == lang)
        for lang in languages
    }
    return {
        part: by_lang[language_of(part)] * size / max(wholes[language_of(part)], 1)
        for part, size in sizes.items()
    }


def read_in_shares(
    files: Mapping[str, Path], shares: Mapping[str, float], *, balance: bool = False
) -> Iterator[str]:
    """Read the training text so that each part has its share of the words.

    All text is read. A part with too little text is repeated from its start, as the small corpus of
    a balanced vocabulary is (Wada et al. 2020).

    files (Mapping[str, Path]): Part -> file with one sentence per line.
    shares, balance: See `resolve_shares`.
    YIELDS (str): Sentences, one part after the other.
    RAISES (BioclinError): The shares do not name all parts, or a file has no words.
    """
    words = {part: sum(len(s.split()) for s in read_sentences(files[part])) for part in files}
    shares = resolve_shares(shares, words, balance=balance)
    if empty := [str(files[part]) for part, n in words.items() if not n]:
        raise BioclinError(f"No words in {', '.join(empty)}")
    whole = max(words[part] / shares[part] for part in files)
    for part, path in files.items():
        missing = round(whole * shares[part])
        while missing > 0:
            for sentence in read_sentences(path):
                yield sentence
                missing -= len(sentence.split())
                if missing <= 0:
                    break
