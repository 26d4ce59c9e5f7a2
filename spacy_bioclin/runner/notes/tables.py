"""Parquet output: a folder with a table of notes, one of entities and one of relations."""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from spacy.tokens import Doc

from ...context.rules.rule_data import KINDS
from ..carried import Carried
from ..columns import Row
from ..parquet import GroupWriter, encode_table, import_pyarrow
from ..stamps import as_text
from .describe import CODE_KEYS, Note
from .targets import NAMES, Target, to_json

FILE_GROUPS = 16  # row groups of a file, of 32 MB before compression
LENGTH_BYTES = 8
COUNTS = ("characters", "pieces", "windows", "outside", "without_pieces", "truncated")


class ParquetTarget(Target):
    """A folder with the tables `notes`, `entities` and `relations`, each a folder of files.

    `record` joins them. Columns that are kept have the type that they have in a Parquet input, and
    are strings otherwise.
    """

    libraries = ("pyarrow",)
    names = (*NAMES, *COUNTS)

    def __init__(
        self,
        kept: Sequence[str] = (),
        *,
        entity_text: bool,
        note_text: bool,
        types: dict[str, Any] | None = None,
    ) -> None:
        """Choose what is written.

        types (dict[str, pyarrow.DataType] | None): Types of columns that are kept.
        """
        super().__init__(kept, entity_text=entity_text, note_text=note_text)
        self.types = types or {}
        self.schemas = self._make_schemas()

    def _make_schemas(self) -> dict[str, Any]:
        pa, _ = import_pyarrow()
        text, integer, number = pa.string(), pa.int64(), pa.float64()
        key = [("record", integer), ("id", text)]
        kept = [(name, self.types.get(name, text)) for name in self.kept]
        argument = [("start", integer), ("end", integer), ("label", text), ("kb_id", text)]
        argument += [("text", text)] * self.entity_text
        measured = pa.struct([("value", number), ("high", number), ("unit", text)])
        when = pa.struct([("code", text), ("amount", number), ("unit", text)])
        medication = pa.struct(
            [
                ("status", text),
                ("action", text),
                ("dose", measured),
                ("amount", measured),
                ("form", text),
                ("route", text),
                ("frequency", measured),
                ("when", pa.list_(when)),
                ("as_needed", pa.bool_()),
                *[("reason", text)] * self.entity_text,
                ("duration", measured),
                ("taper", pa.bool_()),
            ]
        )
        category = pa.struct([("label", text), ("probability", number)])
        return {
            "notes": pa.schema(
                [
                    *key,
                    *kept,
                    *[("text", text)] * self.note_text,
                    ("categories", pa.list_(category)),
                    *((name, integer) for name in COUNTS),
                    ("language", text),
                ]
            ),
            "entities": pa.schema(
                [
                    *key,
                    ("start", integer),
                    ("end", integer),
                    ("label", text),
                    ("layer", text),
                    *[("text", text)] * self.entity_text,
                    ("kb_id", text),
                    ("codes", pa.list_(pa.struct([(key, text) for key in CODE_KEYS]))),
                    ("probability", number),
                    ("section", text),
                    *((kind, pa.bool_()) for kind in KINDS),
                    ("medication", medication),
                    ("value", text),
                    ("high", number),
                    ("comparator", text),
                    ("unit", text),
                ]
            ),
            "relations": pa.schema(
                [
                    *key,
                    ("label", text),
                    ("probability", number),
                    *((f"{role}_{n}", type) for role in ("head", "child") for n, type in argument),
                ]
            ),
        }

    def take(self, note: Note, doc: Doc) -> dict[str, list[Row]]:
        """Make the rows of a note in each table."""
        key = {"record": note.record, "id": note.id}
        categories = (note.categories or {}).items()
        coverage = note.coverage._asdict() if note.coverage else {}
        return {
            "notes": [
                {
                    **{name: self._convert(name, note.kept[name]) for name in self.kept},
                    **key,
                    "text": note.text,
                    "categories": [{"label": n, "probability": p} for n, p in categories] or None,
                    "characters": len(note.text),
                    **coverage,
                    "language": note.language,
                }
            ],
            "entities": [
                {**each, **key, "value": _write_value(each["value"])} for each in note.entities
            ],
            "relations": [
                {
                    **key,
                    "label": each["label"],
                    "probability": each["probability"],
                    **{f"{r}_{n}": v for r in ("head", "child") for n, v in each[r].items()},
                }
                for each in note.relations
            ],
        }

    def _convert(self, name: str, value: Any) -> Any:
        if name in self.types or value is None:
            return value
        is_plain = isinstance(value, str | int | float | Carried)
        return as_text(value) if is_plain else json.dumps(to_json(value), ensure_ascii=False)

    def encode(self, taken: Sequence[dict[str, list[Row]]]) -> bytes:
        """Write the rows of a part: a table after the other, each after its length."""
        content = []
        for name, schema in self.schemas.items():
            rows = [
                {column: row.get(column) for column in schema.names}
                for tables in taken
                for row in tables[name]
            ]
            table = encode_table(rows, schema=schema)
            content += [len(table).to_bytes(LENGTH_BYTES, "big"), table]
        return b"".join(content)

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Write the tables side by side, part by part."""
        with ExitStack() as stack:
            tables = {
                name: stack.enter_context(TableWriter(target / name, schema))
                for name, schema in self.schemas.items()
            }
            for part in parts:
                start = 0
                for name in self.schemas:
                    at = start + LENGTH_BYTES
                    end = at + int.from_bytes(part[start:at], "big")
                    tables[name].add(part[at:end])
                    start = end

    def describe(self) -> list[str]:
        """List the columns of each table with their types."""
        return [
            f"{name}: {', '.join(f'{field.name} {field.type}' for field in schema)}"
            for name, schema in self.schemas.items()
        ]


class TableWriter:
    """Write a table as a folder of Parquet files of limited size.

    folder (Path): Made here.
    schema (pyarrow.Schema): Of the table.
    """

    def __init__(self, folder: Path, schema: Any) -> None:
        self.folder, self.schema = folder, schema
        folder.mkdir(mode=0o700, parents=True)
        self.n_files = 0
        self._open()

    def _open(self) -> None:
        self.path = self.folder / f"{self.n_files:05}.parquet"
        self.file = self.path.open("xb")
        self.path.chmod(0o600)
        self.groups = GroupWriter(self.file, self.schema)
        self.n_files += 1

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(self, *exception: Any) -> None:
        self._close(*exception)

    def _close(self, *exception: Any) -> None:
        try:
            self.groups.__exit__(*(exception or (None, None, None)))
            self.file.flush()
            os.fsync(self.file.fileno())
        finally:
            self.file.close()

    def add(self, part: bytes) -> None:
        """Add a table that `encode_table` wrote."""
        if self.groups.n_groups >= FILE_GROUPS:
            self._close()
            self._open()
        self.groups.add(part)


def _write_value(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
