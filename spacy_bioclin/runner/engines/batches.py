"""Annotate batches of Arrow: what Spark, Ray Data and pyarrow give a function."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from spacy.tokens import Doc

from ...errors import BioclinError
from ..columns import Columns, Row
from ..notes.describe import Note
from ..notes.job import PART_RECORDS, AnnotateJob
from ..notes.loading import load_pipeline
from ..notes.tables import ParquetTarget
from ..notes.targets import Target
from ..parquet import encode_table, import_pyarrow
from ..parts import Part
from ..records import Record, Unreadable, find_fault

B = TypeVar("B")  # pyarrow.RecordBatch or pyarrow.Table
COUNTS = ("pieces", "windows", "outside", "truncated")


class BatchAnnotator:
    """Annotate batches of notes: one row of the result for each row of a batch, in order.

    It can be pickled. The pipeline is loaded in the process that annotates, at its first batch. A
    batch is annotated as a part of `bioclin run` is: in pieces of limited size, and what spaCy has
    stored for it is freed at its end.
    """

    def __init__(
        self,
        pipeline: str | Path,
        *,
        text_column: str = "text",
        keep: Sequence[str] = (),
        entity_text: bool = False,
        gpu_id: int = -1,
        precision: str | None = None,
    ) -> None:
        """Choose the pipeline and the columns.

        pipeline (str | Path): Folder or package name of the pipeline.
        text_column (str): Column with the note, of strings.
        keep (Sequence[str]): Columns that the result has too, such as the id.
        entity_text (bool): Include the text of each entity.
        gpu_id (int): GPU; -1 for the CPU.
        precision (str | None): Number format of the encoder; None for that of the pipeline.
        RAISES (BioclinError): A column has the name of one of the result.
        """
        load = partial(load_pipeline, str(pipeline), gpu_id=gpu_id, precision=precision)
        target = _RowsTarget(entity_text)
        self.keep = tuple(keep)
        if taken := sorted({*self.keep} & {*target.schema.names, "error"}):
            raise BioclinError(
                f"keep={taken[0]!r}: the result has a column of this name; rename it in the batch"
            )
        self._job = AnnotateJob(load, Columns(text=text_column), None, target)
        self._make_part: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the pipeline out of a pickle."""
        return {**self.__dict__, "_make_part": None}

    def schema(self, schema: Any) -> Any:
        """Describe the result.

        schema (pyarrow.Schema): Schema of the batches.
        RETURNS (pyarrow.Schema): The columns of `keep`; `entities` and `relations`, lists of
            objects; `categories`; `pieces`, `windows`, `outside` and `truncated`, see `Coverage`;
            `language`, a guess; and `error`, which says why a note was not annotated.
        """
        return self._extend([schema.field(name) for name in self.keep])

    def _extend(self, kept: list[Any]) -> Any:
        pa, _ = import_pyarrow()
        made = self._job.target.schema  # type: ignore[attr-defined]
        return pa.schema([*kept, *list(made)[1:], pa.field("error", pa.string())])

    def __call__(self, batch: B) -> B:
        """Annotate a batch.

        batch (pyarrow.RecordBatch | pyarrow.Table): The notes, and other columns.
        RETURNS (pyarrow.RecordBatch | pyarrow.Table): See `schema`.
        RAISES (BioclinError): A column is missing, or the pipeline cannot be loaded.
        """
        result: B = self._annotate(batch, self.keep)
        return result

    def _annotate(self, given: Any, keep: Sequence[str]) -> Any:
        pa, _ = import_pyarrow()
        columns = self._job.columns
        for name in (columns.text, *keep):
            if name not in given.schema.names:
                raise BioclinError(
                    f"no column {name!r} in the batch; it has {', '.join(given.schema.names)}"
                )
        if self._make_part is None:
            self._make_part = self._job.start()
        part = Part(0, [], [])
        for number, text in enumerate(given[columns.text].to_pylist(), start=1):
            row, place = {columns.text: text}, f"row {number:,}"
            if fault := find_fault(row, columns):
                part.unreadable.append(Unreadable(number, place, BioclinError(f"{place}: {fault}")))
            else:
                part.records.append(Record(number, place, row))
        done = self._make_part(part)
        made = pa.ipc.open_file(done.data).read_all()
        at: list[int | None] = [None] * given.num_rows
        for position, number in enumerate(made["record"].to_pylist()):
            at[number - 1] = position
        errors: list[str | None] = [None] * given.num_rows
        for row in done.quarantined:
            errors[row["record"] - 1] = row["reason"]
        found = made.drop_columns(["record"]).take(pa.array(at, pa.int64())).combine_chunks()
        values = [given[name] for name in keep]
        values += [_to_array(column) for column in found.columns]
        values.append(pa.array(errors, pa.string()))
        schema = self._extend([given.schema.field(name) for name in keep])
        return type(given).from_arrays(values, schema=schema)

    def map(self, batches: Iterable[B]) -> Iterator[B]:
        """Annotate batches, for `DataFrame.mapInArrow` of Spark among others."""
        return map(self, batches)

    def notes(self, texts: Iterable[str]) -> Iterator[Row]:
        """Annotate texts from any iterator, about 500 at a time.

        YIELDS (dict[str, Any]): For each text in order, the fields that `schema` describes, but for
            those of `keep`.
        """
        pa, _ = import_pyarrow()
        stream = iter(texts)
        while some := list(islice(stream, PART_RECORDS)):
            columns = {self._job.columns.text: pa.array(some, pa.string())}
            yield from self._annotate(pa.RecordBatch.from_pydict(columns), ()).to_pylist()


class _RowsTarget(Target):
    """A table with one row for each note, and what was found in lists.

    entity_text (bool): Include the text of each entity.
    """

    def __init__(self, entity_text: bool) -> None:
        super().__init__(entity_text=entity_text, note_text=False)
        pa, _ = import_pyarrow()
        self._tables = ParquetTarget(entity_text=entity_text, note_text=False)
        schemas = self._tables.schemas
        lists = [
            (name, pa.list_(pa.struct([field for field in schemas[name] if field.name not in KEY])))
            for name in ("entities", "relations")
        ]
        categories, language = (schemas["notes"].field(n) for n in ("categories", "language"))
        counts = [(name, pa.int64()) for name in COUNTS]
        self.schema = pa.schema([("record", pa.int64()), *lists, categories, *counts, language])

    def take(self, note: Note, doc: Doc) -> Row:
        """Make the row of a note."""
        tables = self._tables.take(note, doc)
        [row] = tables["notes"]
        return {
            "record": note.record,
            "entities": tables["entities"],
            "relations": tables["relations"],
            "categories": row["categories"],
            **{name: row.get(name) for name in (*COUNTS, "language")},
        }

    def encode(self, taken: Sequence[Row]) -> bytes:
        """Write the rows as an Arrow file."""
        return encode_table(taken, schema=self.schema)


KEY = ("record", "id")


def _to_array(column: Any) -> Any:
    """Make one array of a column of a table."""
    pa, _ = import_pyarrow()
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
