"""Clean raw text for language-model pretraining (Carrino et al. 2022, section 2).

The result has sentences of known language, in their documents, without noise, repeats and test
splits. Documents are cleaned in worker processes. What depends on all documents (repeats) is done
here, one document at a time, and only hashes stay in memory.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy

from ...about import __version__
from ...corpora.overlap.splits import read_test_ngrams
from ...errors import BioclinError
from ...files import find_files, open_binary
from ...outputs import grow_folder, open_atomic, write_atomic
from ...parallel import map_parts
from ...tokenization.rules import RULES
from ...types import Progress
from .corpus import SPLITS
from .documents import CleanDocument, clean_document, count
from .repeats import Repeats
from .report import Report

BATCH_BYTES = 200_000
SOURCE = re.compile(r"[\w-]+")  # its name is the first part of a file name

# Called with the share of the bytes that are read, and the number of documents that are done.


class Batch(NamedTuple):
    """Documents of one file.

    source (str): Name of the file.
    share (float): Share of all bytes that is read after this batch.
    texts (list[str]): One text per document.
    """

    source: str
    share: float
    texts: list[str]


class CorpusWriter(ExitStack):
    """Write files that replace older ones only when the block ends without an error.

    A part is a language, or a source of a language, see `corpus`.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.files: dict[str, IO[str]] = {}

    def write(self, part: str, split: str, sentences: list[str]) -> None:
        """Add a document to PART.SPLIT.txt, and make the file of the other split too."""
        for name in (f"{part}.{each}.txt" for each in SPLITS):
            if name not in self.files:
                self.files[name] = self.enter_context(open_atomic(self.folder / name, private=True))
        text = "".join(f"{sentence}\n" for sentence in sentences)
        self.files[f"{part}.{split}.txt"].write(text + "\n")


def clean_texts(
    paths: Iterable[Path],
    out: Path,
    *,
    langs: tuple[str, ...],
    held_out: float,
    sources: Mapping[Path, str] | None = None,
    against: Iterable[Path] = (),
    workers: int = 1,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Clean raw text. The result depends on neither the number of workers nor the machine.

    paths (Iterable[Path]): Files with one document per line, plain or .xz, .gz, .bz2, and folders
        of such files (.txt). Of two repeats the first is kept.
    out (Path): Folder for LANG.train.txt and LANG.held-out.txt (one sentence per line, an empty
        line after each document), or SOURCE.LANG.train.txt and so on, and report.json. They change
        only once all text is cleaned.
    langs (tuple[str, ...]): Languages to keep. The language of a document is identified from its
        text.
    held_out (float): Share of the documents to hold out, chosen by a hash of their words.
    sources (Mapping[Path, str] | None): Path -> name of the source of its text, for all paths; None
        to write the text of all paths together.
    against (Iterable[Path]): Test splits to keep out, see `read_test_ngrams`.
    workers (int): Number of processes.
    on_progress (Progress | None): Called after each batch of documents.
    RETURNS (dict[str, Any]): The report.
    RAISES (BioclinError): A setting or a file is invalid, or no document is left.
    """
    _check_settings(langs, held_out, workers)
    paths = list(paths)
    files = _name_files(paths)
    source_of = _name_sources(paths, sources or {})
    for path in files.values():
        if path.resolve().parent == out.resolve():
            raise BioclinError(f"{path}: lies in the output folder; write to another folder")
    test = read_test_ngrams(against)
    reports: dict[str, Report] = defaultdict(Report)
    total, repeats, n_docs = Report(), Repeats(), 0
    with grow_folder(out, private=True), CorpusWriter(out) as writer:
        start = partial(_make_cleaner, langs, test)
        batches = map_parts(start, read_batches(files), workers, option="--workers")
        for batch, documents in batches:
            for document in documents:
                report = reports[batch.source]
                report.read += document.read
                for reason, counts in document.dropped.items():
                    report.dropped[reason] += counts
                sentences = repeats.drop(document, report.dropped)
                if sentences:
                    split = "held-out" if document.key < held_out * 2**64 else "train"
                    source = source_of.get(files[batch.source])
                    part = f"{source}.{document.lang}" if source else document.lang
                    writer.write(part, split, sentences)
                    report.kept[f"{part}.{split}"] += count(sentences)
            n_docs += len(documents)
            if on_progress:
                on_progress(batch.share, n_docs)
        for report in reports.values():
            total.add(report)
        _check_left(total, n_docs)
    summary = {
        "version": __version__,
        "languages": list(langs),
        "held_out": held_out,
        "test_ngrams": len(test),
        **total.to_dict(),
        "files": {name: report.to_dict() for name, report in reports.items()},
    }
    write_atomic(out / "report.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    return summary


def _name_files(paths: Iterable[Path]) -> dict[str, Path]:
    """Find files: path relative to the given folder, or the whole path if ambiguous -> file."""
    files: dict[str, Path] = {}
    for name, file in find_files(paths, (".txt",), compressed=True):
        files[name if files.get(name, file) == file else file.as_posix()] = file
    return files


def _name_sources(paths: list[Path], sources: Mapping[Path, str]) -> dict[Path, str]:
    """Find the source of each file: file -> name; empty if none is named."""
    if not sources:
        return {}
    if unnamed := [str(path) for path in paths if path not in sources]:
        raise BioclinError(
            f"{unnamed[0]}: has no source; name the sources of all inputs, or of none"
        )
    for name in sources.values():
        if not SOURCE.fullmatch(name):
            raise BioclinError(
                f"source is {name!r}, want letters, digits, - and _, as in wikipedia=FILE"
            )
    return {
        file: sources[path]
        for path in paths
        for _, file in find_files([path], (".txt",), compressed=True)
    }


def _make_cleaner(
    langs: tuple[str, ...], test: numpy.ndarray
) -> Callable[[Batch], list[CleanDocument]]:
    return lambda batch: [clean_document(text, langs, test) for text in batch.texts]


def _check_settings(langs: tuple[str, ...], held_out: float, workers: int) -> None:
    for lang in langs:
        if lang not in RULES:
            raise BioclinError(f"language is {lang!r}, want some of {', '.join(sorted(RULES))}")
    if not langs:
        raise BioclinError(f"no language is given: use some of {', '.join(sorted(RULES))}")
    if not 0 <= held_out < 1:
        raise BioclinError(f"held-out is {held_out}, want a share from 0 up to below 1, as 0.01")
    if workers < 1:
        raise BioclinError(f"workers is {workers}, want 1 or more")


def _check_left(total: Report, n_docs: int) -> None:
    if total.kept:
        return
    reasons = sorted((reason, n.documents) for reason, n in total.dropped.items() if n.documents)
    listed = ", ".join(f"{reason} {n}" for reason, n in reasons) or "no document in the files"
    raise BioclinError(
        f"no document is left of {n_docs} ({listed}); nothing was written. Check that the files"
        " have one document per line, and check the languages"
    )


def read_batches(files: dict[str, Path]) -> Iterator[Batch]:
    """Read files with one document per line. Empty lines are skipped.

    files (dict[str, Path]): Name -> file.
    YIELDS (Batch): Documents of one file, about 200,000 bytes.
    RAISES (BioclinError): A file cannot be read or is not UTF-8.
    """
    sizes = {name: path.stat().st_size for name, path in files.items()}
    total, done = max(1, sum(sizes.values())), 0
    for name, path in files.items():
        with open_binary(path) as (file, position):
            texts, size = [], 0
            for number, line in enumerate(file, start=1):
                text = _decode(line, path, number).strip()
                if not text:
                    continue
                texts.append(text)
                size += len(line)
                if size >= BATCH_BYTES:
                    yield Batch(name, (done + position()) / total, texts)
                    texts, size = [], 0
        done += sizes[name]
        yield Batch(name, done / total, texts)


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise BioclinError(
            f"{path}, line {number}: not UTF-8 (byte {error.start} of the line); convert the file"
            " to UTF-8 first"
        ) from None
