"""Find the Docs of training corpora that hold text of test splits, and leave documents out."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from spacy.tokens import Doc

from ...errors import BioclinError, BioclinWarning
from ...types import GOLD_KEY
from ..docbin import list_shards, read_texts
from .lists import read_id_list, show_ids
from .ngrams import NGRAM, is_overlap, ngram_hashes, word_hashes

# What was checked in this process: spaCy makes a reader several times for one training.
_CHECKED: set[tuple[Any, ...]] = set()


class CorpusOverlap(NamedTuple):
    """What a training corpus has in common with test splits.

    n_docs (int): Number of its documents, without those that are left out.
    left_out (list[str]): Ids of its documents that are left out.
    ids (dict[Path, list[str]]): File of a test split -> ids of the documents that overlap with it.
    """

    n_docs: int
    left_out: list[str]
    ids: dict[Path, list[str]]


def find_overlaps(
    paths: Iterable[Path], held_out: Iterable[Path], *, leave_out: Collection[str] = ()
) -> dict[Path, CorpusOverlap]:
    """Find the documents of training corpora that overlap with test splits, see `is_overlap`.

    paths (Iterable[Path]): Training corpora: .spacy files or folders of them.
    held_out (Iterable[Path]): Test splits, likewise.
    leave_out (Collection[str]): Ids of documents that are not compared.
    RETURNS (dict[Path, CorpusOverlap]): One for each training corpus.
    RAISES (BioclinError): A file cannot be read, or a test split has no text of 12 words.
    """
    tests = {path: _read_ngrams(path) for path in held_out}
    found = {}
    for path in dict.fromkeys(paths):
        overlap = CorpusOverlap(0, [], {test: [] for test in tests})
        n_docs = 0
        for id, text in read_texts(path):
            if id in leave_out:
                overlap.left_out.append(id)
                continue
            n_docs += 1
            if tests:
                ngrams = ngram_hashes(word_hashes(text), NGRAM)
                for test, known in tests.items():
                    if is_overlap(ngrams, known):
                        overlap.ids[test].append(id)
        found[path] = overlap._replace(n_docs=n_docs)
    return found


def _read_ngrams(path: Path) -> numpy.ndarray:
    """Read the distinct 12-grams of a file of Docs, sorted."""
    found = [ngram_hashes(word_hashes(text), NGRAM) for _, text in read_texts(path)]
    hashes = numpy.unique(numpy.concatenate(found))
    if not len(hashes):
        raise BioclinError(
            f"{path}: has no document of {NGRAM} words, so nothing can be compared with it; leave "
            "it out of the test splits"
        )
    return hashes


class DocumentChoice:
    """Choose the documents that a reader reads, and refuse to read text of test splits.

    reader (str): Its registered name, for messages.
    leave_out (str | Path | None): List of documents to leave out, see `read_id_list`.
    held_out (Sequence[str | Path]): .spacy files of test splits, or folders of them.
    allow_overlap (bool): Do not compare with the test splits.
    """

    def __init__(
        self,
        reader: str,
        *,
        leave_out: str | Path | None,
        held_out: Sequence[str | Path] = (),
        allow_overlap: bool = False,
    ) -> None:
        self.reader = reader
        self.leave_out = None if leave_out is None else Path(leave_out)
        self.held_out = [] if allow_overlap else [Path(path) for path in held_out]
        self._ids: frozenset[str] | None = None

    def check(self, paths: Iterable[Path]) -> None:
        """Read the list, and check all corpora of the reader before the first one is used.

        A warning says how many documents are left out.

        paths (Iterable[Path]): The corpora.
        RAISES (BioclinError): The list has nothing of the corpora, or all of one of them; or a
            document that is not left out overlaps with a test split.
        """
        if self._ids is not None:
            return
        ids = frozenset() if self.leave_out is None else read_id_list(self.leave_out)
        if ids or self.held_out:
            paths = list(paths)
            files = [*map(_describe, paths), "held out", *map(_describe, self.held_out)]
            if (what := (self.leave_out, ids, *files)) not in _CHECKED:
                found = find_overlaps(paths, self.held_out, leave_out=ids)
                self._check_left_out(found, ids)
                self._check_overlaps(found)
                _CHECKED.add(what)
        self._ids = ids

    def keeps(self, doc: Doc) -> bool:
        """Check whether a gold Doc, or a part of one, is read. Call `check` first."""
        gold = doc.user_data.get(GOLD_KEY) if self._ids else None
        return gold is None or gold["id"] not in (self._ids or ())

    def _check_left_out(self, found: Mapping[Path, CorpusOverlap], ids: Collection[str]) -> None:
        if not ids:
            return
        corpora = ", ".join(map(str, found))
        matched = {id for overlap in found.values() for id in overlap.left_out}
        if not matched:
            raise BioclinError(
                f"{self.leave_out}: none of its {len(ids):,} ids is a document of {corpora}; want "
                "ids as `bioclin overlap -o` writes them, or set leave_out to null"
            )
        for path, overlap in found.items():
            if not overlap.n_docs:
                raise BioclinError(
                    f"{path}: all of its documents are in {self.leave_out}, so that nothing is "
                    "left; shorten the list, or leave the corpus out"
                )
        counts = ", ".join(
            f"{len(overlap.left_out):,} of {overlap.n_docs + len(overlap.left_out):,} documents of "
            f"{path}"
            for path, overlap in found.items()
        )
        rest = len(ids) - len(matched)
        unknown = f"; {rest:,} of its {len(ids):,} ids match no document" if rest else ""
        warnings.warn(
            f"left out, as {self.leave_out} says: {counts}{unknown}", BioclinWarning, stacklevel=2
        )

    def _check_overlaps(self, found: Mapping[Path, CorpusOverlap]) -> None:
        faults = [
            f"{len(ids):,} of {path} with {test} ({show_ids(ids)})"
            for path, overlap in found.items()
            for test, ids in overlap.ids.items()
            if ids
        ]
        if faults:
            paths = " ".join(map(str, found))
            tests = " ".join(f"--held-out {path}" for path in self.held_out)
            raise BioclinError(
                f"{self.reader}: training documents hold text of the test splits in held_out: "
                f"{'; '.join(faults)}. Leave them out: `bioclin overlap {paths} {tests} -o "
                'leave-out.txt` and leave_out = "leave-out.txt"; or set allow_overlap = true'
            )


def _describe(path: Path) -> tuple[Any, ...]:
    """Describe the state of files, to find out whether they have changed."""
    stats = ((file, file.stat()) for file in list_shards(path))
    return tuple((str(file), stat.st_mtime_ns, stat.st_size) for file, stat in stats)
