"""Whoever reads a million notes needs no more memory than for the first thousand."""

import functools
import gc
import json
import random
import sys
from threading import Barrier, Thread

import pytest
import spacy
from preshed.maps import PreshMap
from rich.console import Console
from spacy.lang.es import Spanish
from thinc.api import fix_random_seed

from spacy_bioclin.cli.run.annotate import _annotate, to_record
from spacy_bioclin.deid.pipeline import make_pipeline
from spacy_bioclin.deid.secret import SecretKey
from spacy_bioclin.linking import linker as linker_module
from spacy_bioclin.linking.entity_linker import knowledge_base
from spacy_bioclin.linking.names import ngrams
from spacy_bioclin.runner import memory
from spacy_bioclin.runner.columns import Columns
from spacy_bioclin.runner.deid import DeidJob
from spacy_bioclin.runner.memory import map_docs, memory_zone
from spacy_bioclin.runner.parts import Part
from spacy_bioclin.runner.records import Record, encode_lines

MARK = "qxz"  # in every word of the notes that no other note has
ENCODER = {"@architectures": "spacy-bioclin.Encoder.v1", "window": 32, "stride": 24}


def write_note(number: int) -> str:
    rng = random.Random(number)
    word, other, digits = (f"{MARK}{rng.getrandbits(40):010x}" for _ in range(3))
    return (
        f"Paciente: {word.title()} {other.title()}, NHC {rng.getrandbits(30)}. Acude el 3/5/2019 a "
        f"{digits} por dolor de {word}{other} (DQ{number}X). Tel. 6{rng.randrange(10**8):08}."
    )


def write_notes(first: int, n: int) -> list[str]:
    return [write_note(number) for number in range(first, first + n)]


def make_deid(request: pytest.FixtureRequest) -> spacy.language.Language:
    operators = {"default": "surrogate"}
    return make_pipeline("es", rules_only=True, policy=operators, key=b"k" * 32)


def make_linker(request: pytest.FixtureRequest) -> spacy.language.Language:
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_sentences")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "problem", "pattern": [{"TEXT": {"REGEX": MARK}}]}])
    nlp.add_pipe("bioclin_linker", config={"kb": str(request.getfixturevalue("clinic").path)})
    return nlp


def make_ner(request: pytest.FixtureRequest) -> spacy.language.Language:
    fix_random_seed(0)
    nlp = spacy.blank("es")
    model = {**ENCODER, "name": str(request.getfixturevalue("tiny_encoder"))}
    nlp.add_pipe("transformer", config={"model": model})
    nlp.add_pipe("bioclin_ner", config={"spans_key": "found"})
    nlp.config["initialize"]["components"]["bioclin_ner"] = {"labels": ["problem"]}
    nlp.initialize()
    return nlp


@pytest.fixture(params=[make_deid, make_linker, make_ner], ids=lambda make: make.__name__)
def nlp(request, monkeypatch):
    monkeypatch.setattr(memory, "MAX_KEPT", 300)
    for module in (linker_module, ngrams, knowledge_base):
        monkeypatch.setattr(module, "MAX_REMEMBERED", 20)
    return request.param(request)


def read_notes(nlp, first: int, n: int) -> list[str]:
    """Annotate, and take out what commands take out."""

    def read(doc, number):
        found = json.dumps(to_record(doc, str(number)), ensure_ascii=False)
        return found + (doc._.deid.text if "bioclin_deid" in nlp.pipe_names else "")

    nlp.batch_size = 50
    notes = ((text, number) for number, text in enumerate(write_notes(first, n)))
    return list(map_docs(nlp, notes, read))


def find_held() -> tuple[int, list]:
    """Count the strings of notes that Python objects hold, and list our caches."""
    objects = gc.get_objects()
    held = {id(each): each for each in gc.get_referents(*objects) if type(each) is str}
    texts = sum(MARK in each for each in held.values())
    kind = type(functools.lru_cache(max))
    caches = [each for each in objects if isinstance(each, kind)]
    return texts, [each for each in caches if each.__module__.startswith("spacy_bioclin")]


@pytest.mark.slow
def test_what_notes_leave_does_not_grow(nlp):
    """Neither spaCy's strings, nor those that our own objects hold."""
    read_notes(nlp, 0, 100)  # the words of the first notes stay
    strings, (texts, caches) = len(nlp.vocab.strings), find_held()
    sizes = {id(each): each.cache_info().currsize for each in caches}
    read_notes(nlp, 100, 150)
    assert len(nlp.vocab.strings) == strings
    for each in find_held()[1]:
        if each.cache_info().maxsize is None:  # those of settings and lists
            grown = each.cache_info().currsize - sizes.get(id(each), 0)
            assert grown < 10, each.__qualname__
        else:
            each.cache_clear()
    assert find_held()[0] <= texts + 75


def test_without_a_zone_strings_grow():
    """This is what the test above would see if one were missing."""
    nlp = make_pipeline("es", rules_only=True)
    for doc in nlp.pipe(write_notes(0, 20)):
        len(doc)
    strings = len(nlp.vocab.strings)
    for doc in nlp.pipe(write_notes(20, 30)):
        len(doc)
    assert len(nlp.vocab.strings) > strings + 90


@pytest.mark.parametrize("make", [make_deid, make_linker], ids=lambda make: make.__name__)
def test_results_are_those_without_a_zone(make, request):
    nlp = make(request)
    for result, text in zip(read_notes(make(request), 0, 60), write_notes(0, 60), strict=True):
        doc = nlp(text)
        if make is make_deid:
            assert result.endswith(doc._.deid.text)
        else:
            assert json.loads(result)["entities"] == to_record(doc, "")["entities"]


def test_the_runner_reads_each_part_in_a_zone(monkeypatch):
    """`bioclin deid` in each of its processes."""
    monkeypatch.setattr(memory, "MAX_KEPT", 100)
    nlp = make_pipeline("es", rules_only=True)
    job = DeidJob(lambda: nlp, Columns(), encode_lines, SecretKey(None), False, "es")
    make_part, sizes = job.start(), []
    for number in range(4):
        texts = write_notes(number * 20, 20)
        records = [Record(i, f"line {i}", {"text": text}) for i, text in enumerate(texts)]
        done = make_part(Part(number, records, []))
        assert done.counts["written"] > 15  # some have the same digits by chance
        sizes.append(len(nlp.vocab.strings))
    assert sizes[1:] == sizes[:1] * 3


def test_annotate_reads_each_batch_in_a_zone(tmp_path):
    make_pipeline("es", rules_only=True).to_disk(tmp_path / "pipeline")
    nlp = spacy.load(tmp_path / "pipeline")
    nlp.batch_size = 20
    notes = [(text, str(i)) for i, text in enumerate(write_notes(0, 60))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "MAX_KEPT", 60)
        records = list(_annotate(nlp, notes, 60, Console(stderr=True)))
    assert [record["id"] for record in records] == [name for _, name in notes]
    assert sum(f"{MARK}" in text for text in nlp.vocab.strings) < 60


def test_tables_of_strings_and_lexemes_stay_small(monkeypatch):
    """spaCy's tables double after so many strings, even if these were freed."""
    monkeypatch.setattr(memory, "MAX_CELLS", 2**10)
    nlp = spacy.blank("es")
    nlp.vocab["guardia"].is_stop = True
    before = nlp("un texto de antes")
    for start in range(0, 16_000, 1_000):
        with memory_zone(nlp):
            for number in range(start, start + 1_000):
                nlp.vocab[f"{MARK}{number}"]
    tables = [each for each in gc.get_referents(nlp.vocab) if isinstance(each, PreshMap)]
    assert len(tables) == 1  # of lexemes; another spaCy may hide it
    assert all(each.capacity <= 2**13 for each in (nlp.vocab.strings._map, *tables))
    assert nlp.vocab["guardia"].is_stop
    assert [token.text for token in before] == ["un", "texto", "de", "antes"]
    assert [token.text for token in nlp("un texto de después")][:2] == ["un", "texto"]


def test_blocks_may_be_nested_and_end_after_errors():
    nlp = spacy.blank("es")
    with memory_zone(nlp):
        outer = nlp(f"dolor de {MARK}uno")
        with pytest.raises(ValueError, match="inner"), memory_zone(nlp):
            nlp(f"dolor de {MARK}dos")
            raise ValueError("inner")
        assert outer[2].text == f"{MARK}uno"  # its words are still there
        assert nlp.vocab.in_memory_zone
    assert not nlp.vocab.in_memory_zone
    assert f"{MARK}uno" not in nlp.vocab.strings
    with nlp.memory_zone():
        with memory_zone(nlp):
            doc = nlp(f"dolor de {MARK}tres")
        assert doc[2].text == f"{MARK}tres"  # the zone is the caller's


def test_threads_share_a_zone():
    """Words of a thread stay while it reads, whatever others do; with no thread left, they go."""
    nlp, failed, barrier = make_pipeline("es", rules_only=True), [], Barrier(4)

    def work(first: int) -> None:
        barrier.wait()
        for number in range(first, first + 20):
            text = write_note(number)
            with memory_zone(nlp, [text]):
                doc = nlp(text)
                if "".join(token.text_with_ws for token in doc) != text or doc.text != text:
                    failed.append(number)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [Thread(target=work, args=(1000 * i,)) for i in range(4)]
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert not failed and not any(each.is_alive() for each in threads)
    strings = len(nlp.vocab.strings)
    assert not nlp.vocab.in_memory_zone
    with memory_zone(nlp):
        nlp(write_note(9999))
    assert len(nlp.vocab.strings) == strings


def test_threads_wait_for_the_end_of_a_full_zone(monkeypatch):
    """Else the zone of a busy service would never end."""
    monkeypatch.setattr(memory, "MAX_TRANSIENT", 50)
    monkeypatch.setattr(memory, "MAX_KEPT", 0)
    nlp, most = Spanish(), []

    def work(first: int) -> None:
        for number in range(first, first + 40):
            with memory_zone(nlp):
                nlp(write_note(number))
                most.append(len(nlp.vocab.strings))

    threads = [Thread(target=work, args=(1000 * i,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(most) == 160
    assert max(most) < len(nlp.vocab.strings) + 50 + 4 * 60
