"""The queues of the notes that wait, and the threads that let pipelines read them."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Condition, Thread

from spacy.language import Language

from ..errors import BioclinError
from ..parallel.pool import leave_signals
from ..runner.notes.annotate import MAX_RECORDS
from ..runner.records import Record
from .reading import TEXT, Answer, Read, ReadingProcess, Waiting, read_alone, read_batch
from .settings import Limits

LONG = 4_000  # characters; a longer note does not stop others
MAX_CHARS = 100_000_000  # of the notes that wait
MAX_SECONDS = 60  # that a client is told to wait before it tries again
STUCK = 10.0  # seconds beyond `limits.timeout` after which a pipeline will never come back


class QueueFull(BioclinError):
    """The notes of a request have no room in the queue.

    seconds (int): When the client may try again.
    """

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many notes are waiting; send the request again in {seconds} s")
        self.seconds = seconds


class Queue:
    """Notes that wait. Requests take turns, so that one of many notes does not stop others."""

    def __init__(self) -> None:
        self.requests: deque[deque[Waiting]] = deque()

    def __iter__(self) -> Iterator[Waiting]:
        return (note for request in self.requests for note in request)

    def __len__(self) -> int:
        return sum(map(len, self.requests))

    def add(self, notes: Sequence[Waiting]) -> None:
        """Add notes of a request."""
        if notes:
            self.requests.append(deque(notes))

    def take(self, max_notes: int, max_words: int) -> list[Waiting]:
        """Take notes out; what was cancelled is left out.

        max_words (int): Words after which no more are added to the first note.
        RETURNS (list[Waiting]): At least one, if any waits.
        """
        batch: list[Waiting] = []
        n_words = 0
        while self.requests and len(batch) < max_notes:
            request = self.requests[0]
            n_words += 0 if request[0].done.cancelled() else request[0].n_words
            if batch and n_words > max_words:
                break
            note = request.popleft()
            self.requests.popleft()
            self.add(request)
            if not note.done.cancelled():
                batch.append(note)
        return batch

    def drop_cancelled(self) -> None:
        """Take out what was cancelled."""
        kept = [deque(n for n in each if not n.done.cancelled()) for each in self.requests]
        self.requests = deque(filter(None, kept))


class Lane(Thread):
    """A thread that takes notes out of queues and lets a pipeline read them.

    queues (Sequence[Queue]): The first that has notes is read from.
    process (ReadingProcess | None): What reads them; None for the pipeline of this process.
    """

    def __init__(
        self,
        run: Callable[["Lane"], None],
        queues: Sequence[Queue],
        process: ReadingProcess | None = None,
    ) -> None:
        # The device that was chosen for the pipeline belongs to the context of this thread.
        super().__init__(target=copy_context().run, args=(run, self), name="lane", daemon=True)
        self.queues, self.process = queues, process
        self.ready: Future[None] = Future()
        self.begun: float | None = None  # with the batch that it reads


class Batcher:
    """Annotate notes in batches, short ones apart from long ones.

    A batch ends before the note that would exceed the words of a batch. While the pipeline is busy
    notes gather in the queue; an idle one waits `limits.wait` seconds for more than one.

    One thread reads short notes only. Notes of more than `LONG` characters are read by a second
    thread, one at a time, with the same pipeline; or with `limits.workers` by other processes,
    which also read short ones when there is no long one.

    nlp (Language): The pipeline. Nothing else may use it while the threads run.
    limits (Limits): The words of a batch, the wait, the size of the queue, and the processes.
    on_batch (Callable): Called in a thread with the notes and the words of each batch.
    load (Callable | None): Loads the same pipeline in other processes, so it can be pickled.
    RAISES (BioclinError): There are to be other processes, and no `load`.
    """

    def __init__(
        self,
        nlp: Language,
        limits: Limits,
        on_batch: Callable[[int, int], None] | None = None,
        load: Callable[[], Language] | None = None,
    ) -> None:
        self.nlp, self.limits = nlp, limits
        self.on_batch = on_batch or (lambda n_notes, n_words: None)
        self.changed = Condition()
        self.short, self.long = Queue(), Queue()
        self.seconds_per_word = 0.0  # of the last batches
        self.is_stopping = False
        self.lanes = [Lane(self._run, [self.short])]
        if limits.workers == 1:
            self.lanes.append(Lane(self._run, [self.long]))
        elif load is None:
            raise BioclinError(
                f"workers={limits.workers}: each process loads the pipeline; give load= to Service"
            )
        else:
            for _ in range(limits.workers - 1):
                process = ReadingProcess(load, limits.workers)
                self.lanes.append(Lane(self._run, [self.long, self.short], process))

    def start(self) -> None:
        """Start the threads and processes, and wait until all of them can read notes.

        RAISES (Exception): A process cannot load the pipeline.
        """
        for lane in self.lanes:
            lane.start()
        try:
            for lane in self.lanes:
                lane.ready.result()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Let the threads finish the notes that wait, and end."""
        with self.changed:
            self.is_stopping = True
            self.changed.notify_all()
        for lane in self.lanes:
            lane.join()

    @property
    def is_alive(self) -> bool:
        """Whether all threads run."""
        return all(lane.is_alive() for lane in self.lanes)

    @property
    def is_stuck(self) -> bool:
        """Whether the pipeline does not come back from short notes that nobody waits for."""
        begun = self.lanes[0].begun
        return begun is not None and time.monotonic() - begun > self.limits.timeout + STUCK

    @property
    def is_full(self) -> bool:
        """Whether no note has room in the queue."""
        with self.changed:
            return not self._has_room(1)

    @property
    def n_words(self) -> int:
        """Words of the notes that wait."""
        return sum(note.n_words for queue in (self.short, self.long) for note in queue)

    @property
    def n_chars(self) -> int:
        """Characters of the notes that wait."""
        return sum(len(n.record.row[TEXT]) for queue in (self.short, self.long) for n in queue)

    def __len__(self) -> int:
        return len(self.short) + len(self.long)

    def submit(self, texts: Sequence[str], read: Read) -> "list[Future[Answer]]":
        """Queue the notes of a request.

        texts (Sequence[str]): The notes.
        read (Callable): Takes the answer out of an annotated Doc, in a thread. For other processes
            it is a method of `Describer`.
        RETURNS (list[Future]): One for each note. One that is cancelled takes its note out of the
            queue, or ends the work on it.
        RAISES (QueueFull): The notes have no room in the queue.
        """
        notes = [
            Waiting(Record(i, f"note {i}", {TEXT: text}), read, len(text.split()), Future())
            for i, text in enumerate(texts, start=1)
        ]
        with self.changed:
            if not self._has_room(len(notes)):
                raise QueueFull(self._estimate())
            self.short.add([note for note in notes if not is_long(note)])
            self.long.add([note for note in notes if is_long(note)])
            self.changed.notify_all()
        return [note.done for note in notes]

    def _has_room(self, n_notes: int) -> bool:
        def has_room() -> bool:
            return len(self) + n_notes <= self.limits.max_queue and self.n_chars <= MAX_CHARS

        if not has_room():
            self.short.drop_cancelled()
            self.long.drop_cancelled()
        return has_room()

    def _estimate(self) -> int:
        """Estimate in how many seconds half of the queue is done."""
        return max(1, min(MAX_SECONDS, round(self.n_words * self.seconds_per_word / 2)))

    def _run(self, lane: Lane) -> None:
        """Read notes until the service stops."""
        try:
            leave_signals()
            if lane.process is not None:
                lane.process.start()
        except BaseException as error:
            lane.ready.set_exception(error)
            return
        lane.ready.set_result(None)
        while batch := self._take(lane):
            lane.begun = started = time.monotonic()
            for note, answer in zip(batch, self._read(lane, batch), strict=True):
                with suppress(InvalidStateError):  # it was cancelled
                    note.done.set_result(answer)
            lane.begun = None
            n_words = sum(note.n_words for note in batch)
            seconds = (time.monotonic() - started) / max(n_words, 1)
            self.seconds_per_word = 0.8 * self.seconds_per_word + 0.2 * seconds
            self.on_batch(len(batch), n_words)
        if lane.process is not None:
            lane.process.close()

    def _take(self, lane: Lane) -> list[Waiting]:
        """Wait for notes.

        RETURNS (list[Waiting]): A batch; empty when the thread is to end.
        """
        with self.changed:
            while True:
                self.changed.wait_for(lambda: any(map(len, lane.queues)) or self.is_stopping)
                queue = next((each for each in lane.queues if each), None)
                if queue is None:
                    return []
                if queue is self.short and self.limits.batch_words:
                    self.changed.wait_for(self._is_full, timeout=self.limits.wait)
                max_notes = 1 if queue is self.long else MAX_RECORDS
                if batch := queue.take(max_notes, self.limits.batch_words):
                    return batch

    def _is_full(self) -> bool:
        """Check whether there is a whole batch of short notes."""
        n_words = sum(note.n_words for note in self.short)
        is_enough = n_words >= self.limits.batch_words or len(self.short) >= MAX_RECORDS
        return is_enough or self.is_stopping

    def _read(self, lane: Lane, batch: list[Waiting]) -> list[Answer]:
        if lane.process is not None:
            return lane.process.read(batch)
        if is_long(batch[0]):
            [note] = batch
            is_wanted = partial(is_pending, note)
            return [read_alone(self.nlp, note.record, note.read, is_wanted)]
        return read_batch(self.nlp, [(note.record, note.read) for note in batch])


def is_long(note: Waiting) -> bool:
    """Check whether a note is read apart from the short ones."""
    return len(note.record.row[TEXT]) > LONG


def is_pending(note: Waiting) -> bool:
    """Check whether somebody waits for a note."""
    return not note.done.cancelled()
