"""One thread that owns the pipeline, and the queue of the notes that wait for it."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from itertools import islice
from threading import Condition, Thread
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import BioclinError
from ..runner.columns import Row
from ..runner.memory import quiet_zone
from ..runner.notes.annotate import MAX_RECORDS, annotate, describe_failure
from ..runner.records import Record
from .settings import Limits

TEXT = "text"
MAX_CHARS = 100_000_000  # of the notes that wait
MAX_SECONDS = 60  # that a client is told to wait before it tries again


class QueueFull(BioclinError):
    """The notes of a request have no room in the queue.

    seconds (int): When the client may try again.
    """

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many notes are waiting; send the request again in {seconds} s")
        self.seconds = seconds


class Waiting(NamedTuple):
    """A note that waits for the pipeline.

    record (Record): The note, and its position in the request.
    read (Callable): Takes the answer out of the annotated Doc.
    n_words (int): Words of the note.
    done (Future): Gets the answer, or a `BioclinError` that says how the pipeline failed.
    """

    record: Record
    read: Callable[[Doc], Row]
    n_words: int
    done: "Future[Row | BioclinError]"


class Batcher:
    """Annotate notes in batches, in a thread of its own.

    A batch ends before the note that would exceed the words of a batch. While the pipeline is busy
    notes gather in the queue; an idle one waits `limits.wait` seconds for more than one.

    nlp (Language): The pipeline. Nothing else may use it while the thread runs.
    limits (Limits): The words of a batch, the wait, and the size of the queue.
    on_batch (Callable): Called in the thread with the notes and the words of each batch.
    """

    def __init__(
        self, nlp: Language, limits: Limits, on_batch: Callable[[int, int], None] | None = None
    ) -> None:
        self.nlp, self.limits = nlp, limits
        self.on_batch = on_batch or (lambda n_notes, n_words: None)
        self.changed = Condition()
        self.waiting: deque[Waiting] = deque()
        self.n_words = self.n_chars = 0  # of the notes that wait
        self.seconds_per_word = 0.0  # of the last batches
        self.is_stopping = False
        # The device that was chosen for the pipeline belongs to the context of this thread.
        context = copy_context()
        self.thread = Thread(target=context.run, args=(self._run,), name="pipeline", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def stop(self) -> None:
        """Let the thread finish the notes that wait, and end."""
        with self.changed:
            self.is_stopping = True
            self.changed.notify()
        self.thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self.thread.is_alive()

    def __len__(self) -> int:
        return len(self.waiting)

    def submit(
        self, texts: Sequence[str], read: Callable[[Doc], Row]
    ) -> "list[Future[Row | BioclinError]]":
        """Queue the notes of a request.

        texts (Sequence[str]): The notes.
        read (Callable): Takes the answer out of an annotated Doc, in the thread.
        RETURNS (list[Future]): One for each note. A future that is cancelled before its batch
            begins takes its note out of the queue.
        RAISES (QueueFull): The notes have no room in the queue.
        """
        notes = [
            Waiting(Record(i, f"note {i}", {TEXT: text}), read, len(text.split()), Future())
            for i, text in enumerate(texts, start=1)
        ]
        with self.changed:
            is_full = len(self.waiting) + len(notes) > self.limits.max_queue
            if is_full or self.n_chars > MAX_CHARS:
                raise QueueFull(self._estimate())
            self.waiting.extend(notes)
            self.n_chars += sum(map(len, texts))
            self.n_words += sum(note.n_words for note in notes)
            self.changed.notify()
        return [note.done for note in notes]

    def _estimate(self) -> int:
        """Estimate in how many seconds half of the queue is done."""
        return max(1, min(MAX_SECONDS, round(self.n_words * self.seconds_per_word / 2)))

    def _run(self) -> None:
        while batch := self._take():
            started = time.monotonic()
            self._annotate(batch)
            n_words = sum(note.n_words for note in batch)
            seconds = (time.monotonic() - started) / max(n_words, 1)
            self.seconds_per_word = 0.8 * self.seconds_per_word + 0.2 * seconds
            self.on_batch(len(batch), n_words)

    def _take(self) -> list[Waiting]:
        """Wait for notes.

        RETURNS (list[Waiting]): A batch; empty when the thread is to end.
        """
        with self.changed:
            self.changed.wait_for(lambda: self.waiting or self.is_stopping)
            if self.limits.batch_words:
                self.changed.wait_for(self._is_full, timeout=self.limits.wait)
            batch = []
            for _ in range(self._count()):
                note = self.waiting.popleft()
                self.n_words -= note.n_words
                self.n_chars -= len(note.record.row[TEXT])
                batch.append(note)
            return batch

    def _is_full(self) -> bool:
        is_enough = self.n_words >= self.limits.batch_words or len(self.waiting) >= MAX_RECORDS
        return is_enough or self.is_stopping

    def _count(self) -> int:
        """Count the notes of the next batch: one at least, if any waits."""
        n_words = 0
        for n_notes, note in enumerate(islice(self.waiting, MAX_RECORDS)):
            n_words += note.n_words
            if n_notes and n_words > self.limits.batch_words:
                return n_notes
        return min(len(self.waiting), MAX_RECORDS)

    def _annotate(self, batch: Sequence[Waiting]) -> None:
        """Annotate a batch in one memory zone; a note that fails gets its own error."""
        batch = [note for note in batch if note.done.set_running_or_notify_cancel()]
        try:
            with quiet_zone(self.nlp, (note.record.row[TEXT] for note in batch)):
                for note, answer in zip(batch, self._read(batch), strict=True):
                    note.done.set_result(answer)
        except BaseException as error:  # the thread goes on with the next batch
            for note in batch:
                if not note.done.done():
                    note.done.set_result(describe_failure(note.record, error))

    def _read(self, batch: Sequence[Waiting]) -> "list[Row | BioclinError]":
        by_record = {id(note.record): note for note in batch}

        def read(doc: Doc, record: Record) -> Row | BioclinError:
            try:
                return by_record[id(record)].read(doc)
            except Exception as error:
                return describe_failure(record, error)

        records = [note.record for note in batch]
        try:
            return list(annotate(self.nlp, records, self._make_doc, read, batch_size=len(batch)))
        except BaseException as error:  # panics of libraries in Rust are no Exception
            if len(batch) == 1:
                return [describe_failure(records[0], error)]
        return [answer for note in batch for answer in self._read([note])]

    def _make_doc(self, record: Record) -> Doc:
        return self.nlp.make_doc(record.row[TEXT])
