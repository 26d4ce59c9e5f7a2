"""Check that each note of an input has an id of its own."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import BioclinError
from ..records import Form, Record, Unreadable
from .chosen import ID_BYTES, hash_id, holds_id
from .ids import find_id

RECENT_IDS = 100_000  # in a set, before they are sorted


class Distinct(Form):
    """Another input, in which a note without an id, or with that of an earlier one, is unreadable.

    So the run stops when it reads such a note, or `--skip-bad` leaves it out.
    """

    def __init__(self, form: Form) -> None:
        """Take the other input.

        form (Form): It has ids: its `id_column` is not None.
        """
        self.form = form
        self.path, self.columns, self.encoding = form.path, form.columns, form.encoding
        self.id_column, self.types, self.total = form.id_column, form.types, form.total
        self._follow()

    def _follow(self) -> None:
        """Copy what changes while the other input is read."""
        self.done, self.left_out, self.known = self.form.done, self.form.left_out, self.form.known

    def read(self) -> Iterator[Record | Unreadable]:
        """Read the records, in the order of the input."""
        seen = SeenIds()
        for record in self.form.read():
            self._follow()
            if isinstance(record, Record):
                id = find_id(record, self.id_column, self.columns)
                fault = "" if id else "has no id, and the output needs one"
                if id and not seen.add(id):
                    fault = "an earlier note has the same id; ids must differ, see --id-column"
                if fault:
                    error = BioclinError(f"{self.path}, {record.place}: {fault}")
                    yield Unreadable(record.number, record.place, error)
                    continue
            yield record
        self._follow()

    def identify(self, records: Sequence[Record | Unreadable]) -> str:
        """Identify records as the other input does."""
        return self.form.identify(records)

    def count(self) -> int:
        """Count the records of the other input."""
        return self.form.count()

    def fingerprint(self) -> str:
        """Fingerprint the other input."""
        return self.form.fingerprint()

    def describe(self) -> dict[str, Any]:
        """Describe the other input."""
        return self.form.describe()


class SeenIds:
    """Ids that were seen. Hashes of most are in few sorted arrays, which take less memory than a
    set: each is more than twice as long as the next."""

    def __init__(self) -> None:
        self._recent: set[bytes] = set()
        self._sorted: list[np.ndarray] = []

    def add(self, id: str) -> bool:
        """Add an id.

        RETURNS (bool): Whether it is new.
        """
        if (found := hash_id(id)) in self._recent:
            return False
        if any(holds_id(hashes, found) for hashes in self._sorted):
            return False
        self._recent.add(found)
        if len(self._recent) == RECENT_IDS:
            merged = np.array(list(self._recent), dtype=f"S{ID_BYTES}")
            self._recent.clear()
            while self._sorted and len(self._sorted[-1]) <= 2 * len(merged):
                merged = np.concatenate([self._sorted.pop(), merged])
            merged.sort()
            self._sorted.append(merged)
        return True
