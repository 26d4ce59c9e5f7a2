"""Run a pipeline on records so that one bad note does not lose the others."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ...errors import BioclinError
from ..records import Record

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

R = TypeVar("R")
MAX_RECORDS = 256  # of a batch


def annotate(
    nlp: "Language",
    records: Sequence[Record],
    make_doc: Callable[[Record], "Doc"],
    read: Callable[["Doc", Record], R],
    *,
    batch_size: int | None = None,
) -> Iterator[R | BioclinError]:
    """Run the pipeline on the notes of records.

    After an error, the records that are not done are halved until the one that fails is alone.

    make_doc (Callable): Makes the Doc that the pipeline annotates.
    read (Callable): Takes out of an annotated Doc what is wanted of it.
    batch_size (int | None): See `nlp.pipe`.
    YIELDS (R | BioclinError): For each record in order, what `read` has returned, or how the
        pipeline has failed. The error names the record, but does not repeat the pipeline's own
        message, which may quote the note.
    """
    made: list[R] = []
    failed: Exception | None = None
    try:
        docs = nlp.pipe(map(make_doc, records), batch_size=batch_size)
        for doc, record in zip(docs, records, strict=True):
            made.append(read(doc, record))
    except Exception as error:
        failed = error
    yield from made
    if failed is None:
        return
    rest = records[len(made) :]
    if len(rest) == 1:
        yield describe_failure(rest[0], failed)
        return
    half = len(rest) // 2
    for some in (rest[:half], rest[half:]):
        yield from annotate(nlp, some, make_doc, read, batch_size=batch_size)


def describe_failure(record: Record, error: BaseException) -> BioclinError:
    """Say where a pipeline failed on a record, without its own message."""
    if isinstance(error, BioclinError):  # these never quote
        return BioclinError(f"{record.place}: {error}")
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}, line {frame.lineno}"
    return BioclinError(
        f"{record.place}: the pipeline failed with {type(error).__name__} ({where}); its message "
        "is not shown, for it may hold text of the note"
    )


def describe_end(record: Record) -> BioclinError:
    """Describe that the process died that worked on a record."""
    return BioclinError(
        f"{record.place}: the process died, each time that it worked on this note alone"
    )


def cut_batches(
    records: Iterable[Record], count: Callable[[Record], int], max_words: int
) -> Iterator[list[Record]]:
    """Cut records into batches of a limited number of words, so that their vectors fit in memory.

    count (Callable): Counts the words of a record.
    max_words (int): A batch ends before the record that would exceed it. A longer record is a
        batch by itself.
    """
    batch: list[Record] = []
    n_words = 0
    for record in records:
        n = count(record)
        if batch and (n_words + n > max_words or len(batch) == MAX_RECORDS):
            yield batch
            batch, n_words = [], 0
        batch.append(record)
        n_words += n
    if batch:
        yield batch
