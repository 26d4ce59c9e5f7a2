"""Raw text into a clean corpus for language-model pretraining (Carrino et al. 2022, section 2):
sentences of known language, without noise, repeats and test splits, in their documents.

Documents are cleaned in worker processes and come back in their order; what needs all of them
(repeats) is done here, one by one. Only hashes stay in memory.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy

from ...about import __version__
from ...errors import BioclinError
from ...tokenization.rules import RULES
from .corpus import SPLITS
from .documents import CleanDocument, Counts, clean_document, count
from .files import find_files, open_binary
from .overlap import read_test_ngrams
from .repeats import Repeats
from .report import Report

BATCH_BYTES = 200_000
BATCHES_AHEAD = 4  # per worker; bounds the text in memory

# Called with the share of the bytes read, and the documents done.
OnProgress = Callable[[float, int], None]


class Batch(NamedTuple):
    """Documents of one file.

    source (str): Name of the file.
    share (float): How much of all files is read with it.
    texts (list[str]): One per document.
    """

    source: str
    share: float
    texts: list[str]


class Outputs:
    """The files of the corpus, under other names until `finish`; without it they are removed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[Path, IO[str]] = {}

    def __enter__(self) -> "Outputs":
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *error: object) -> None:
        for path, file in self.files.items():
            file.close()
            _partial(path).unlink(missing_ok=True)

    def write(self, lang: str, split: str, sentences: list[str]) -> None:
        """Add a document to LANG.SPLIT.txt. Both splits of a language are made, be one empty."""
        for name in (f"{lang}.{each}.txt" for each in SPLITS):
            self._open(self.folder / name)
        text = "".join(f"{sentence}\n" for sentence in sentences)
        self.files[self.folder / f"{lang}.{split}.txt"].write(text + "\n")

    def finish(self, report: dict[str, Any]) -> None:
        """Add report.json and give all files their names."""
        self._open(self.folder / "report.json")
        text = json.dumps(report, indent=2, ensure_ascii=False)
        self.files[self.folder / "report.json"].write(text + "\n")
        for path, file in self.files.items():
            file.close()
            _partial(path).replace(path)

    def _open(self, path: Path) -> None:
        if path not in self.files:
            self.files[path] = _partial(path).open("w", encoding="utf-8", newline="\n")


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def clean_texts(
    paths: Iterable[Path],
    out: Path,
    *,
    langs: tuple[str, ...],
    held_out: float,
    against: Iterable[Path] = (),
    workers: int = 1,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Clean raw text. The result depends on neither the number of workers nor the machine.

    paths (Iterable[Path]): Files with one document a line, plain or .xz, .gz, .bz2, and folders of
        such files (.txt). Of two repeats the one that comes first is kept.
    out (Path): Folder for LANG.train.txt and LANG.held-out.txt (one sentence a line, an empty line
        after each document) and report.json. They change only once all is written.
    langs (tuple[str, ...]): The languages wanted; the text decides which one a document is in.
    held_out (float): Share of the documents held out, chosen by a hash of their words.
    against (Iterable[Path]): Test splits to keep out, see `read_test_ngrams`.
    workers (int): Number of processes.
    on_progress (OnProgress | None): Called after each batch of documents.
    RETURNS (dict[str, Any]): The report.
    RAISES (BioclinError): A setting or a file is bad, or no document is left.
    """
    _check_settings(langs, held_out, workers)
    files = find_files(paths, (".txt",))
    for path in files.values():
        if path.resolve().parent == out.resolve():
            raise BioclinError(f"{path}: lies in the output folder; write to another folder")
    test = read_test_ngrams(against)
    report, repeats, n_docs = Report(), Repeats(), 0
    with Outputs(out) as outputs:
        for batch, documents in _clean_batches(read_batches(files), langs, test, workers):
            for document in documents:
                report.add_read(batch.source, document.read)
                sentences, dropped = _drop_repeats(document, repeats)
                for reason, n in dropped.items():
                    report.add_dropped(batch.source, reason, n)
                if sentences:
                    split = "held-out" if document.key < held_out * 2**64 else "train"
                    outputs.write(document.lang, split, sentences)
                    report.add_kept(batch.source, f"{document.lang}.{split}", count(sentences))
            n_docs += len(documents)
            if on_progress:
                on_progress(batch.share, n_docs)
        settings = {"languages": list(langs), "held_out": held_out, "test_ngrams": len(test)}
        summary = {"version": __version__, **settings, **report.to_dict()}
        _check_left(summary, n_docs)
        outputs.finish(summary)
    return summary


def _check_settings(langs: tuple[str, ...], held_out: float, workers: int) -> None:
    for lang in langs:
        if lang not in RULES:
            raise BioclinError(f"language is {lang!r}, want some of {', '.join(sorted(RULES))}")
    if not langs:
        raise BioclinError(f"no language is wanted: name some of {', '.join(sorted(RULES))}")
    if not 0 <= held_out < 1:
        raise BioclinError(f"held-out is {held_out}, want a share from 0 up to below 1, as 0.01")
    if workers < 1:
        raise BioclinError(f"workers is {workers}, want 1 or more")


def _check_left(summary: dict[str, Any], n_docs: int) -> None:
    if summary["kept"]:
        return
    reasons = {key: n["documents"] for key, n in summary["dropped"].items() if n["documents"]}
    listed = ", ".join(f"{key} {n}" for key, n in reasons.items()) or "no document in the files"
    raise BioclinError(
        f"no document is left of {n_docs} ({listed}); nothing was written. Check that the files"
        " have one document a line, and the wanted languages"
    )


def _drop_repeats(document: CleanDocument, repeats: Repeats) -> tuple[list[str], dict[str, Counts]]:
    """RETURNS (tuple): The sentences left of a document, and all that was dropped of it."""
    dropped, sentences = dict(document.dropped), document.sentences
    if document.reason:
        return [], dropped
    reason = repeats.document_reason(document)
    if not reason:
        sentences, repeated = repeats.drop_sentences(sentences)
        dropped.update(repeated)
        if not sentences:
            reason = "nothing_new"
    if reason:
        dropped[reason] = count(sentences)
        sentences = []
    return sentences, dropped


def read_batches(files: dict[str, Path]) -> Iterator[Batch]:
    """Read files with one document a line; empty lines are no documents.

    files (dict[str, Path]): From `find_files`.
    YIELDS (Batch): Documents of one file, some 200,000 bytes of them, or one longer document.
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


def _clean_batches(
    batches: Iterator[Batch], langs: tuple[str, ...], test: numpy.ndarray, workers: int
) -> Iterator[tuple[Batch, list[CleanDocument]]]:
    """YIELDS (tuple): Each batch with its documents, in order, cleaned by `workers` processes."""
    if workers == 1:
        for batch in batches:
            yield batch, [clean_document(text, langs, test) for text in batch.texts]
        return
    # Not "fork": the progress bar runs in a thread, and a fork may copy a lock that it holds.
    context = get_context("spawn")
    waiting: deque[tuple[Batch, Future[list[CleanDocument]]]] = deque()
    with ProcessPoolExecutor(workers, context, _start_worker, (langs, test)) as pool:
        try:
            for batch in batches:
                waiting.append((batch, pool.submit(_clean_in_worker, batch.texts)))
                if len(waiting) > BATCHES_AHEAD * workers:
                    done, future = waiting.popleft()
                    yield done, future.result()
            for done, future in waiting:
                yield done, future.result()
        except BrokenProcessPool:
            raise BioclinError(
                f"a worker process of {workers} was killed, perhaps for want of memory; use fewer"
                " with --workers"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


_WORKER: dict[str, Any] = {}  # what every batch needs, sent once to each worker


def _start_worker(langs: tuple[str, ...], test: numpy.ndarray) -> None:
    _WORKER.update(langs=langs, test=test)


def _clean_in_worker(texts: list[str]) -> list[CleanDocument]:
    return [clean_document(text, _WORKER["langs"], _WORKER["test"]) for text in texts]
