"""Annotate the notes of a batch, here or in a process with a pipeline of its own."""

import atexit
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import count
from multiprocessing import get_context
from threading import Lock, Timer
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import BioclinError
from ..parallel import ChildProcess, WorkerDied
from ..runner.columns import Row
from ..runner.memory import quiet_zone
from ..runner.notes.annotate import annotate, describe_end, describe_failure
from ..runner.notes.coverage import watch_coverage
from ..runner.notes.loading import lift_limit
from ..runner.records import Record
from .notes import Describer

TEXT = "text"
TRIES = 2  # a process may also be killed from outside
STUBBORN = 30.0  # seconds in which a process must end work that nobody waits for
Read = Callable[[Doc], Row]
Answer = Row | BioclinError
Notes = list[tuple[str, Record]]  # with the name of the method that reads the Doc


class Waiting(NamedTuple):
    """A note that waits for the pipeline.

    record (Record): The note, and its position in the request.
    read (Callable): Takes the answer out of the annotated Doc.
    n_words (int): Words of the note.
    done (Future): Gets the answer, or a `BioclinError` that says how the pipeline failed. It can
        be cancelled until then.
    """

    record: Record
    read: Read
    n_words: int
    done: "Future[Answer]"


def is_unwanted(batch: Sequence[Waiting]) -> bool:
    """Check whether nobody waits for any note of a batch."""
    return all(note.done.cancelled() for note in batch)


class Abandoned(Exception):
    """Nobody waits for a note any more."""


def read_batch(nlp: Language, notes: Sequence[tuple[Record, Read]]) -> list[Answer]:
    """Annotate notes together, in one memory zone.

    RETURNS (list[Row | BioclinError]): One for each; a note that fails gets its own error.
    """
    try:
        with quiet_zone(nlp, (record.row[TEXT] for record, _ in notes)):
            return _read(nlp, notes)
    except BaseException as error:  # the thread goes on with the next batch
        return [describe_failure(record, error) for record, _ in notes]


def _read(nlp: Language, notes: Sequence[tuple[Record, Read]]) -> list[Answer]:
    reads = {id(record): read for record, read in notes}

    def take(doc: Doc, record: Record) -> Answer:
        try:
            return reads[id(record)](doc)
        except Exception as error:
            return describe_failure(record, error)

    records = [record for record, _ in notes]

    def make_doc(record: Record) -> Doc:
        return nlp.make_doc(record.row[TEXT])

    try:
        return list(annotate(nlp, records, make_doc, take, batch_size=len(notes)))
    except BaseException as error:  # panics of libraries in Rust are no Exception
        if len(notes) == 1:
            return [describe_failure(records[0], error)]
    return [answer for note in notes for answer in _read(nlp, [note])]


def read_alone(nlp: Language, record: Record, read: Read, is_wanted: Callable[[], bool]) -> Answer:
    """Annotate a note by itself, component by component, as long as somebody waits for it."""
    text = record.row[TEXT]
    try:
        with quiet_zone(nlp, [text]):
            doc = nlp.make_doc(text)
            for _, component in nlp.pipeline:
                if not is_wanted():
                    raise Abandoned
                doc = component(doc)
            return read(doc)
    except BaseException as error:
        return describe_failure(record, error)


class ReadingProcess:
    """A process that has a pipeline of its own.

    When nobody waits for its notes any more, it ends its work before the next component; if it does
    not, it is killed and started again.

    load (Callable): Loads the pipeline in the process, so it can be pickled.
    n_processes (int): How many share the processor's cores, this one included.
    """

    def __init__(self, load: Callable[[], Language], n_processes: int) -> None:
        self._abandoned = get_context("spawn").RawValue("Q", 0)  # number of a batch
        self._start = partial(start_reading, load, n_processes, self._abandoned)
        self._child: ChildProcess[tuple[int, Notes], list[Answer]] | None = None
        self._reading = 0  # number of the batch; 0 for none
        self._numbers = count(1)
        self._lock = Lock()
        # Else Python would send it SIGTERM, which it ignores, and wait for its end.
        atexit.register(self.close)

    def start(self) -> None:
        """Start the process, and wait until it has loaded the pipeline.

        RAISES (BioclinError): It died meanwhile.
        RAISES (Exception): The pipeline cannot be loaded.
        """
        try:
            self._child = ChildProcess(self._start, one_thread=False)
        except WorkerDied:
            raise BioclinError(
                "a process died while it loaded the pipeline; perhaps the memory is not enough: "
                "use fewer with --workers"
            ) from None

    def read(self, batch: Sequence[Waiting]) -> list[Answer]:
        """Annotate notes.

        RETURNS (list[Row | BioclinError]): One for each.
        """
        number = next(self._numbers)
        with self._lock:
            self._reading = number
        for note in batch:
            note.done.add_done_callback(lambda _: self._end_if_unwanted(batch, number))
        try:
            for _ in range(TRIES if len(batch) == 1 else 1):
                if (answers := self._try(batch, number)) is not None:
                    return answers
        finally:
            with self._lock:
                self._reading = 0
        if len(batch) == 1:
            return [describe_end(batch[0].record)]
        return [answer for note in batch for answer in self.read([note])]

    def _try(self, batch: Sequence[Waiting], number: int) -> list[Answer] | None:
        """Annotate notes. RETURNS (list | None): None if the process died."""
        notes = [(note.read.__name__, note.record) for note in batch]
        try:
            if self._child is None:
                self.start()
            assert self._child is not None
            return self._child.work((number, notes))
        except WorkerDied:
            self.close()
        except Exception as error:
            return [describe_failure(note.record, error) for note in batch]
        if not is_unwanted(batch):
            return None
        with suppress(Exception):  # the next batch tries again
            self.start()
        return [describe_end(note.record) for note in batch]

    def _end_if_unwanted(self, batch: Sequence[Waiting], number: int) -> None:
        with self._lock:
            if self._reading != number or not is_unwanted(batch):
                return
            self._abandoned.value = number
        timer = Timer(STUBBORN, self._kill, [number])
        timer.daemon = True
        timer.start()

    def _kill(self, number: int) -> None:
        """End the process, if it still reads a batch that was abandoned."""
        with self._lock:
            if self._reading == number and self._child is not None:
                self._child.kill()

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._child is not None:
            self._child.close()
            self._child = None


def start_reading(
    load: Callable[[], Language], n_processes: int, abandoned: Any
) -> Callable[[tuple[int, Notes]], list[Answer]]:
    """Load a pipeline in a process.

    abandoned (RawValue): Number of the batch that nobody waits for any more.
    RETURNS (Callable): Reads a batch of notes, each with the name of the method of `Describer` that
        takes out its answer.
    """
    # A supervisor may send SIGTERM to all processes of a service, which finishes what it accepted.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    nlp = load()
    watch_coverage(nlp)
    lift_limit(nlp)
    describer = Describer(nlp)
    if "torch" in sys.modules:  # threads that wait for those of other processes are slow
        torch = sys.modules["torch"]
        torch.set_num_threads(max(1, torch.get_num_threads() // n_processes))

    def read(batch: tuple[int, Notes]) -> list[Answer]:
        number, given = batch
        notes = [(record, getattr(describer, name)) for name, record in given]
        if len(notes) > 1:
            return read_batch(nlp, notes)
        return [read_alone(nlp, *note, lambda: abandoned.value != number) for note in notes]

    warm_up(nlp)
    return read


def warm_up(nlp: Language) -> None:
    """Let a pipeline read a first note, which takes longer than others."""
    read_batch(nlp, [(Record(1, "note 1", {TEXT: "1"}), lambda doc: {})])
