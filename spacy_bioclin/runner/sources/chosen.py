"""Choose some records of an input: a random sample, those that are new, or both."""

import csv
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from ...errors import BioclinError, without_context
from ..parquet import import_pyarrow
from ..records import Form, Record, Unreadable, fingerprint_files
from .ids import find_id

ID_BYTES = 16  # of the hash of an id, so that no two ids are taken for one
FILES = (".jsonl", ".csv", ".parquet")
NOTE_ID = "note_id"  # of OMOP's table, which has only the notes in which something was found
NO_OUTPUT = "want an output of `bioclin run` in jsonl, parquet or omop"


class Chosen(Form):
    """Some records of another input, with the numbers that they have there."""

    def __init__(
        self, form: Form, *, sample: int | None, seed: int, since: Sequence[Path] = ()
    ) -> None:
        """Choose the records.

        form (Form): The other input.
        sample (int | None): Number of records to choose at random; None for all.
        seed (int): Random seed for the sample.
        since (Sequence[Path]): Earlier outputs. Records whose id is in one of them are left out.
        RAISES (BioclinError): The records have no ids, or an earlier output cannot be read.
        """
        self.form, self.sample, self.seed, self.since = form, sample, seed, since
        self.path, self.columns, self.encoding = form.path, form.columns, form.encoding
        self.id_column, self.types, self.left_out = form.id_column, form.types, form.left_out
        self.done, self.total = 0, form.total
        if since and self.id_column is None:
            raise BioclinError("--since tells notes by their ids: give --id-column")
        self.earlier = read_earlier_ids(since) if since else None
        self.known = 0 if since else None
        self.chosen: set[int] | None = None
        if sample is not None:
            n_records = form.count() if self.earlier is None else sum(1 for _ in self._read_new())
            self.total = min(sample, n_records)
            self.chosen = set(Random(seed).sample(range(n_records), self.total))

    def read(self) -> Iterator[Record | Unreadable]:
        """Read the chosen records, in the order of the input."""
        n = 0
        for position, record in enumerate(self._read_new()):
            if self.chosen is None:
                self.done = self.form.done
            elif position not in self.chosen:
                continue
            else:
                n += 1
                self.done = n
            yield record
            if self.chosen is not None and n == len(self.chosen) and self.earlier is None:
                return

    def _read_new(self) -> Iterator[Record | Unreadable]:
        """Read the records that no earlier output has, and count the others."""
        if self.earlier is None:
            yield from self.form.read()
            return
        self.known = 0
        for record in self.form.read():
            if isinstance(record, Record):
                id = find_id(record, self.id_column, self.columns)
                if not id:
                    error = BioclinError(
                        f"{self.path}, {record.place}: has no id, so that --since cannot tell "
                        "whether it is new"
                    )
                    yield Unreadable(record.number, record.place, error)
                    continue
                if holds_id(self.earlier, hash_id(id)):
                    self.known += 1
                    continue
            yield record

    def identify(self, records: Sequence[Record | Unreadable]) -> str:
        """Identify records as the other input does."""
        return self.form.identify(records)

    def count(self) -> int:
        """Count the chosen records."""
        return self.total if self.chosen is not None else sum(1 for _ in self._read_new())

    def fingerprint(self) -> str:
        """Fingerprint the other input."""
        return self.form.fingerprint()

    def describe(self) -> dict[str, Any]:
        """Describe the other input, and what was chosen."""
        about = self.form.describe()
        if self.sample is not None:
            about |= {"sample": self.sample, "seed": self.seed}
        if self.since:
            about["since"] = fingerprint_files(_list_files(self.since))
        return about


@without_context()
def read_earlier_ids(outputs: Sequence[Path]) -> np.ndarray:
    """Read the ids of the notes in earlier outputs.

    RETURNS (numpy.ndarray): Hashes of the ids, sorted: 16 bytes for each.
    RAISES (BioclinError): One is not an output that has ids.
    """
    hashes = bytearray()
    for path in _list_files(outputs):
        for id in _read_ids(path):
            hashes += hash_id(id)
    ids = np.frombuffer(hashes, dtype=f"S{ID_BYTES}")
    ids.sort()  # in place: there may be many
    return ids


def hash_id(id: str) -> bytes:
    """Hash an id."""
    return hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=ID_BYTES).digest()


def holds_id(hashes: np.ndarray, hashed: bytes) -> bool:
    """Check whether the hash of an id is among others, which are sorted."""
    wanted = np.frombuffer(hashed, dtype=hashes.dtype)[0]
    at = int(np.searchsorted(hashes, wanted))
    return at < len(hashes) and bool(hashes[at] == wanted)


def _list_files(outputs: Sequence[Path]) -> list[Path]:
    """List the files of earlier outputs that have ids."""
    files: list[Path] = []
    for output in outputs:
        if output.is_file() and output.suffix.lower() in FILES:
            files.append(output)
        elif found := sorted((output / "notes").glob("*.parquet")):
            files += found
        else:
            what = "is none" if output.exists() else "no such file or folder"
            raise BioclinError(f"--since {output}: {what}; {NO_OUTPUT}")
    return files


def _read_ids(path: Path) -> Iterator[str]:
    """Read the ids of the notes in a file of an output."""
    read = {".jsonl": _read_lines, ".csv": _read_rows, ".parquet": _read_table}
    try:
        yield from read[path.suffix.lower()](path)
    except Exception as error:  # the message may quote a note
        kind = type(error).__name__
        raise BioclinError(f"--since {path}: cannot be read ({kind}); {NO_OUTPUT}") from None


def _read_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield str(json.loads(line)["id"])


def _read_rows(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield row[NOTE_ID]


def _read_table(path: Path) -> Iterator[str]:
    _, pq = import_pyarrow()
    with pq.ParquetFile(path) as table:
        column = NOTE_ID if NOTE_ID in table.schema_arrow.names else "id"
        for batch in table.iter_batches(columns=[column]):
            yield from map(str, batch.column(0).to_pylist())
