"""Keep the memory of a pipeline the same, however many notes it reads.

spaCy keeps every word that it has ever seen, and notes never run out of new ones: numbers, names,
typing errors. What is seen in a memory zone is freed at its end.
"""

import gc
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from threading import Condition, Lock, get_ident
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from preshed.maps import PreshMap

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

C = TypeVar("C")
R = TypeVar("R")
MAX_KEPT = 30_000  # words of the first notes that stay, so that tokenizing is quick
MAX_CACHED = 10_000  # of these in the tokenizer's cache, which is its size
MAX_CHARS = 100_000  # of a note from which words are learned
MAX_TRANSIENT = 500_000  # strings in a zone after which threads wait for its end
MAX_CELLS = 2**18  # of a table of spaCy's that is not made anew; 16 bytes each


@contextmanager
def memory_zone(nlp: "Language", texts: Iterable[str] = ()) -> Iterator[None]:
    """Free at the end what spaCy has allocated since the beginning.

    A Doc that was made in the block, its tokens and spans must not be used after it: take out
    strings, numbers or bytes before. Unlike `nlp.memory_zone()`, blocks may be nested, and several
    threads may have one at the same time; everything is freed when the last one ends. If threads
    share a pipeline, each of them must use it in such a block.

    nlp (Language): The pipeline.
    texts (Iterable[str]): The notes that are about to be read. In a zone, spaCy's tokenizer does
        not fill its cache; so words of the first ones are learned before it begins.
    """
    zone, thread = _ZONES.setdefault(nlp, _Zone()), get_ident()
    zone.enter(nlp, texts, thread)
    try:
        yield
    finally:
        zone.leave(nlp, thread)


@contextmanager
def quiet_zone(nlp: "Language", texts: Iterable[str]) -> Iterator[None]:
    """Free memory as `memory_zone` does, and show no warnings: one of a library may quote a note.

    nlp, texts: See `memory_zone`.
    """
    with _QUIET, memory_zone(nlp, texts):
        yield


def map_docs(
    nlp: "Language", notes: Iterable[tuple[str, C]], read: Callable[["Doc", C], R]
) -> Iterator[R]:
    """Annotate notes batch by batch, each batch in a memory zone.

    nlp (Language): The pipeline; its `batch_size` is the number of notes in a batch.
    notes (Iterable[tuple[str, C]]): Texts, each with something of the caller's.
    read (Callable): Takes out of a Doc what is wanted of it, and nothing that belongs to spaCy.
    YIELDS (R): What `read` has returned for each note, in order.
    """
    stream = iter(notes)
    while batch := list(islice(stream, nlp.batch_size)):
        with memory_zone(nlp, (text for text, _ in batch)):
            made = [read(doc, context) for doc, context in nlp.pipe(batch, as_tuples=True)]
        yield from made


class _Quiet:
    """Show no warnings while any thread is in the block: their filters belong to the process."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.n_inside = 0
        self.filters = ExitStack()

    def __enter__(self) -> None:
        with self.lock:
            if not self.n_inside:
                self.filters.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
            self.n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.n_inside -= 1
            if not self.n_inside:
                self.filters.close()


class _Zone:
    """The zone of a pipeline, which all threads share."""

    def __init__(self) -> None:
        self.changed = Condition()
        self.inside: Counter[int] = Counter()  # thread -> number of its blocks
        self.opened = ExitStack()
        self.n_lexemes = self.n_strings = -1  # at the beginning, unknown
        self.is_warm = False
        self.words: set[str] = set()  # that the tokenizer has learned until then
        self.limits: dict[bool, int] = {}  # is the table of strings -> cells

    def enter(self, nlp: "Language", texts: Iterable[str], thread: int) -> None:
        with self.changed:
            if thread not in self.inside:  # or else it would wait for itself
                self.changed.wait_for(lambda: not (self.inside and self._is_full(nlp.vocab)))
            if not self.inside and not _is_open(nlp):
                self._warm(nlp, texts)
                self.n_strings = len(nlp.vocab.strings)
                self.opened.enter_context(nlp.memory_zone())
            self.inside[thread] += 1

    def leave(self, nlp: "Language", thread: int) -> None:
        with self.changed:
            self.inside[thread] -= 1
            if not self.inside[thread]:
                del self.inside[thread]
            if not self.inside:
                self.opened.close()
                if not _is_open(nlp):  # else it is the caller's own
                    self._shrink(nlp.vocab)
                self.changed.notify_all()

    def _is_full(self, vocab: "Vocab") -> bool:
        return len(vocab.strings) - self.n_strings > MAX_TRANSIENT

    def _warm(self, nlp: "Language", texts: Iterable[str]) -> None:
        """Fill the cache of the tokenizer, until enough words are known."""
        if self.is_warm:
            return
        if self.n_lexemes < 0:
            self.n_lexemes = len(nlp.vocab)
        for text in texts:
            self.is_warm = len(nlp.vocab) - self.n_lexemes >= MAX_KEPT
            if self.is_warm:
                self.words.clear()
                return
            new = {*text[:MAX_CHARS].split()} - self.words
            with suppress(Exception):  # the pipeline will raise it again
                if len(self.words) < MAX_CACHED:
                    nlp.tokenizer(" ".join(new))
                else:
                    for word in filter(str.isalpha, new):
                        nlp.vocab[word]  # adds it
            self.words |= new

    def _shrink(self, vocab: "Vocab") -> None:
        """Make large tables of spaCy's anew: they double whenever there have been as many strings
        as they have cells, whether these are still there or not."""
        strings: Any = vocab.strings
        # The table of lexemes is not an attribute that Python knows.
        tables = [each for each in gc.get_referents(vocab) if isinstance(each, PreshMap)]
        for table in (strings._map, *tables):
            is_strings = table is strings._map
            if table.capacity > self.limits.setdefault(is_strings, MAX_CELLS):
                cells = list(table.items())
                table.__init__()
                for key, value in cells:
                    table[key] = value
                self.limits[is_strings] = max(MAX_CELLS, 2 * table.capacity)


def _is_open(nlp: "Language") -> bool:
    vocab: Any = nlp.vocab  # its stubs do not have the attribute
    return vocab.in_memory_zone


_QUIET = _Quiet()
_ZONES: "WeakKeyDictionary[Language, _Zone]" = WeakKeyDictionary()
