"""Read the cleaned corpus that `bioclin clean-text` writes.

Each language has LANG.train.txt and LANG.held-out.txt with one sentence per line and an empty line
after each document.
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import BioclinError

SPLITS = ("train", "held-out")


def find_files(corpus: Path, split: str) -> dict[str, Path]:
    """Find the files of a split.

    RETURNS (dict[str, Path]): Language -> file.
    RAISES (BioclinError): There is no training text at all.
    """
    suffix = f".{split}.txt"
    files = {path.name.removesuffix(suffix): path for path in sorted(corpus.glob(f"*{suffix}"))}
    if not files and split == "train":
        raise BioclinError(f"{corpus} holds no LANG.train.txt: make it with `bioclin clean-text`")
    return files


def find_all_files(corpus: Path) -> dict[tuple[str, str], Path]:
    """Find the files of both splits of every language.

    RETURNS (dict[tuple[str, str], Path]): (language, split) -> file.
    RAISES (BioclinError): A language has no text in one of the splits.
    """
    languages = find_files(corpus, "train")
    files = {(x, s): corpus / f"{x}.{s}.txt" for x, s in itertools.product(languages, SPLITS)}
    for path in files.values():
        if not path.is_file() or not path.stat().st_size:
            raise BioclinError(f"{path} is missing or empty: clean more text of that language")
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


def check_shares(shares: Mapping[str, float], languages: Mapping[str, object]) -> dict[str, float]:
    """Check the shares of the languages in the training text; the default is equal shares.

    RETURNS (dict[str, float]): Language -> share.
    RAISES (BioclinError): The shares do not name all languages, or one is not above 0.
    """
    shares = dict(shares) or dict.fromkeys(languages, 1.0)
    if set(shares) != set(languages) or min(shares.values()) <= 0:
        raise BioclinError(
            f"--share is given as {shares}: name each language of the corpus, "
            f"{sorted(languages)}, with a share above 0"
        )
    return shares


def read_in_shares(files: Mapping[str, Path], shares: Mapping[str, float]) -> Iterator[str]:
    """Read the training text so that each language has its share of the words.

    All text is read. A language with too little text is repeated from its start.

    files (Mapping[str, Path]): Language -> file with one sentence per line.
    shares (Mapping[str, float]): Language -> share; empty for equal shares.
    YIELDS (str): Sentences, one language after the other.
    RAISES (BioclinError): The shares do not name all languages, or a file has no words.
    """
    shares = check_shares(shares, files)
    words = {lang: sum(len(s.split()) for s in read_sentences(files[lang])) for lang in files}
    if empty := [str(files[lang]) for lang, n in words.items() if not n]:
        raise BioclinError(f"No words in {', '.join(empty)}")
    whole = max(words[lang] / shares[lang] for lang in files)
    for lang, path in files.items():
        missing = round(whole * shares[lang])
        while missing > 0:
            for sentence in read_sentences(path):
                yield sentence
                missing -= len(sentence.split())
                if missing <= 0:
                    break
