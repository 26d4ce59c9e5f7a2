"""How notes that wait are cut into batches, and what becomes of those that nobody waits for."""

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.serving import reading
from spacy_bioclin.serving.batching import LONG, Batcher, QueueFull
from spacy_bioclin.serving.keys import Keys
from spacy_bioclin.serving.notes import Describer
from spacy_bioclin.serving.settings import Limits
from tests.serving.util import HANGS, SLOW, wait_until


def read(doc: Doc) -> dict[str, Any]:
    return {"text": doc.text}


class Held:
    """A batcher whose pipeline waits at its first note until `go` is set."""

    def __init__(self, **limits: Any) -> None:
        self.held, self.go = threading.Event(), threading.Event()
        self.batches: list[tuple[int, int]] = []
        self.batcher = Batcher(
            spacy.blank("es"), Limits(**limits), lambda n, words: self.batches.append((n, words))
        )
        self.batcher.start()
        self.batcher.submit(["uno"], self.hold)
        assert self.held.wait(120)

    def hold(self, doc: Doc) -> dict[str, Any]:
        self.held.set()
        self.go.wait(120)
        return {}


def test_batches_are_cut_by_words() -> None:
    """One long note would make a batch too large for the memory if this fails."""
    held = Held(batch_words=5)
    texts = ["a b", "c d", "e f", "g h i j k l m", "", "n"]
    done = held.batcher.submit(texts, read)
    assert len(held.batcher) == 6 and held.batcher.n_words == 14 and held.batcher.n_chars == 23
    held.go.set()
    assert [one.result(120) for one in done] == [{"text": text} for text in texts]
    held.batcher.stop()
    assert held.batches == [(1, 1), (2, 4), (1, 2), (1, 7), (2, 1)]
    assert len(held.batcher) == held.batcher.n_words == held.batcher.n_chars == 0


def test_the_queue_is_bounded() -> None:
    held = Held(max_queue=3, max_notes=3)
    done = held.batcher.submit(["a", "b"], read)
    with pytest.raises(QueueFull, match="too many notes are waiting; send the request again"):
        held.batcher.submit(["c", "d"], read)  # all of a request, or nothing
    done += held.batcher.submit(["e"], read)
    held.go.set()
    assert [one.result(120)["text"] for one in done] == ["a", "b", "e"]
    held.batcher.stop()


def test_notes_that_nobody_waits_for_are_left_out() -> None:
    held = Held()
    first, second = held.batcher.submit(["a", "b"], read)
    assert first.cancel()
    held.go.set()
    assert second.result(120) == {"text": "b"}
    held.batcher.stop()
    assert first.cancelled()


def test_a_long_note_does_not_stop_short_ones() -> None:
    """It waits at a door in its own lane, in the same pipeline, until the short one is answered."""
    nlp = spacy.blank("es")
    batcher = Batcher(nlp, Limits())
    batcher.start()
    arrived, go = threading.Event(), threading.Event()

    def hold(doc: Doc) -> dict[str, Any]:
        arrived.set()
        go.wait(120)
        return read(doc)

    long = "tos " * LONG
    [slow] = batcher.submit([long], hold)
    assert arrived.wait(120)
    [second] = batcher.submit([long], read)
    [short] = batcher.submit(["tos"], read)
    assert short.result(120) == {"text": "tos"} and not slow.done() and len(batcher) == 1
    go.set()
    assert slow.result(120) == second.result(120) == {"text": long}
    batcher.stop()


def test_work_on_a_long_note_ends_when_nobody_waits() -> None:
    nlp = spacy.blank("es")
    arrived, go, seen = threading.Event(), threading.Event(), []

    def wait(doc: Doc) -> Doc:
        if len(doc.text) > LONG:
            arrived.set()
            go.wait(120)
        return doc

    def see(doc: Doc) -> Doc:
        seen.append(len(doc.text))
        return doc

    Language.component("tests_batching_wait", func=wait)
    Language.component("tests_batching_see", func=see)
    nlp.add_pipe("tests_batching_wait")
    nlp.add_pipe("tests_batching_see")
    batcher = Batcher(nlp, Limits())
    batcher.start()
    [slow] = batcher.submit(["a " * LONG], read)
    assert arrived.wait(120) and slow.cancel()
    go.set()
    batcher.stop()
    assert seen == [] and not batcher.is_alive


def test_requests_take_turns() -> None:
    """One of many notes would hold the others back until all of them are read."""
    held = Held(batch_words=2)
    many = held.batcher.submit(["a", "b", "c", "d"], read)
    [one] = held.batcher.submit(["e"], read)
    order: list[str] = []
    for done in (*many, one):
        done.add_done_callback(lambda it: order.append(it.result()["text"]))
    held.go.set()
    held.batcher.stop()
    assert order == ["a", "e", "b", "c", "d"]


def test_what_is_abandoned_leaves_room() -> None:
    held = Held(max_queue=2, max_notes=2)
    old = held.batcher.submit(["a", "b"], read)
    assert held.batcher.is_full
    for one in old:
        one.cancel()
    assert not held.batcher.is_full
    [new] = held.batcher.submit(["c"], read)
    held.go.set()
    assert new.result(120) == {"text": "c"}
    held.batcher.stop()


@pytest.mark.slow
def test_another_process_reads_long_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends its work when nobody waits; if that takes too long, another process replaces it."""
    monkeypatch.setattr(reading, "STUBBORN", HANGS)
    nlp = spacy.blank("es")
    describer = Describer(nlp)
    batcher = Batcher(nlp, Limits(workers=2), load=partial(load_gated, tmp_path))
    batcher.start()
    long = "tos " * LONG
    arrived, go, after = (tmp_path / name for name in ("arrived", "go", "after"))
    for stubborn in (False, True):
        go.unlink(missing_ok=True)
        arrived.unlink(missing_ok=True)
        [slow] = batcher.submit([f"{SLOW} {long}"], describer.annotate)
        wait_until(arrived.exists)
        [short] = batcher.submit(["tos"], describer.annotate)
        assert short.result(HANGS)["characters"] == 3
        if stubborn:
            monkeypatch.setattr(reading, "STUBBORN", 0.0)
        assert slow.cancel()
        if not stubborn:
            go.touch()
        [next_one] = batcher.submit([long], describer.annotate)
        assert next_one.result(5 * HANGS)["characters"] == len(long)  # a process starts before
        assert after.read_text() == f"{len(long)}\n" * (1 + stubborn)
    batcher.stop()


def load_gated(folder: Path) -> Language:
    """Load a pipeline whose slow notes wait until there is a file."""

    def wait(doc: Doc) -> Doc:
        if SLOW in doc.text:
            (folder / "arrived").touch()
            wait_until((folder / "go").exists)
        return doc

    def tell(doc: Doc) -> Doc:
        if len(doc.text) > LONG:
            with (folder / "after").open("a") as file:
                file.write(f"{len(doc.text)}\n")
        return doc

    Language.component("tests_batching_gate", func=wait)
    Language.component("tests_batching_tell", func=tell)
    nlp = spacy.blank("es")
    nlp.add_pipe("tests_batching_gate")
    nlp.add_pipe("tests_batching_tell")
    return nlp


def test_other_processes_need_a_way_to_load_the_pipeline() -> None:
    with pytest.raises(BioclinError, match="workers=2: each process loads the pipeline; give load"):
        Batcher(spacy.blank("es"), Limits(workers=2))


def test_an_answer_that_fails_is_an_error_of_its_note() -> None:
    def fail(doc: Doc) -> dict[str, Any]:
        raise KeyError(doc.text)

    held = Held()
    [bad] = held.batcher.submit(["Xabina"], fail)
    [good] = held.batcher.submit(["b"], read)
    held.go.set()
    error = bad.result(120)
    assert isinstance(error, BioclinError) and "note 1: the pipeline failed with Key" in str(error)
    assert "Xabina" not in str(error) and good.result(120) == {"text": "b"}
    held.batcher.stop()
    assert not held.batcher.is_alive


def test_limits_that_do_not_fit() -> None:
    with pytest.raises(BioclinError, match="--max-notes 5: want at most the 4 of --max-queue"):
        Limits(max_notes=5, max_queue=4).check()


def test_keys_are_not_kept() -> None:
    keys = Keys(["a-key-of-sixteen-letters"])
    assert keys.accept({b"x-api-key": b"a-key-of-sixteen-letters"})
    assert not keys.accept({}) and not keys.accept({b"x-api-key": b"a-key-of-sixteen-letterz"})
    assert "sixteen" not in repr(vars(keys))
    assert not Keys() and Keys().accept({})
