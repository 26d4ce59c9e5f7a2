"""The other mentions of a note decide between concepts with the same name."""

import random

import numpy as np
import pytest

from spacy_bioclin.linking.candidates import COLUMN, CandidateGenerator
from spacy_bioclin.linking.linker import Linker, Mention
from spacy_bioclin.linking.notes import Evidence, NoteConcepts, add_support
from spacy_bioclin.linking.ranking import Ranker
from spacy_bioclin.linking.train.docs import train_linker
from spacy_bioclin.linking.train.ranker import RankerSettings, TrainMention
from tests.linking.test_component import make

# A name of one concept, and what "cold" means in notes with it.
DECIDES = {"resfriado": "C7", "sensación de frío": "C8"}


@pytest.fixture
def generator(clinic):
    return CandidateGenerator(clinic, n_candidates=8, lang="en")


@pytest.fixture
def linker(generator):
    """Has learned from 20 notes that "cold" means what the other name in the note means."""
    linker = Linker(generator, Ranker.untrained(), lang="en", types={}, n_shown=5, threshold=0.0)
    mentions = []
    for note in range(20):
        name, kb_id = list(DECIDES.items())[note // 5 % 2]
        mentions += [TrainMention(text, (kb_id,), note) for text in (name, "cold")]
    train_linker(linker, mentions, RankerSettings(epochs=60, batch=16))
    return linker


def evidence(generator, text, *forms):
    return Evidence.of(generator([text])[0], text, *forms)


def test_only_another_text_supports_a_candidate(generator):
    number = generator.kb.number
    notes = NoteConcepts()
    for text in ("cold", "Cold", "resfriado", "resfriado agudo"):
        notes.add(1, evidence(generator, text))
    notes.add(2, evidence(generator, "sensación de frío"))
    assert notes.support(1, evidence(generator, "cold")) == (number("C7"),)
    assert notes.support(2, evidence(generator, "cold")) == (number("C8"),)
    assert notes.support(3, evidence(generator, "cold")) == ()
    assert notes.support(1, evidence(generator, "resfriado")) == (number("C7"),)
    assert notes.support(2, evidence(generator, "sensación de frío")) == ()
    # Another form of the same mention is not another text.
    assert notes.support(2, evidence(generator, "cold", "sensación de frío")) == ()


def test_support_is_a_feature_of_a_copy(generator):
    [pool] = generator(["cold"])
    c7 = generator.kb.number("C7")
    column = COLUMN["in_note"]
    told = add_support(pool, (c7,))
    assert told.features[:, column].tolist() == (pool.concepts == c7).astype(float).tolist()
    assert not pool.features[:, column].any()
    np.testing.assert_array_equal(
        np.delete(told.features, column, 1), np.delete(pool.features, column, 1)
    )
    assert add_support(pool, ()) is pool


def test_the_note_decides(linker):
    assert linker.ranker.reads_notes
    mentions = [
        *(Mention("cold", note=note) for note in (0, 1)),
        *(Mention(name, note=note) for note, name in enumerate(DECIDES)),
    ]
    assert [link.kb_id for link in linker(mentions)] == ["C7", "C8", "C7", "C8"]
    # Neither the other notes of a batch nor what was linked before matters.
    for name, kb_id in reversed(DECIDES.items()):
        cold, _ = linker([Mention("cold"), Mention(name)])
        assert cold.kb_id == kb_id
    rankings = linker.rankings(mentions)
    assert [ids[0] for (ids,), _ in rankings] == ["C7", "C8", "C7", "C8"]


def test_batches_order_and_memory_do_not_matter(linker):
    texts = ("cold", *DECIDES, "anemia", "cold and anemia", "zzz")
    rng = random.Random(0)
    mentions = [Mention(rng.choice(texts), note=rng.randrange(12)) for _ in range(60)]
    notes = {m.note: [one for one in mentions if one.note == m.note] for m in mentions}
    together = dict(zip(mentions, linker(mentions), strict=True))
    for note in notes.values():
        linker.forget()
        assert dict(zip(note, linker(note), strict=True)) == {m: together[m] for m in note}
    shuffled = rng.sample(mentions, len(mentions))
    assert dict(zip(shuffled, linker(shuffled), strict=True)) == together


def test_texts_are_looked_up_once(linker, monkeypatch):
    asked = []
    call = CandidateGenerator.__call__

    def count(self, texts, folds=None):
        asked.extend(texts)
        return call(self, texts, folds)

    monkeypatch.setattr(CandidateGenerator, "__call__", count)
    mentions = [Mention(text, note=note) for note in range(3) for text in ("cold", "resfriado")]
    links = linker(mentions)
    assert sorted(asked) == ["cold", "resfriado"]
    assert linker(mentions) == links
    assert len(asked) == 2


def test_a_ranker_without_the_feature_does_not_look_at_notes(generator):
    untrained = Ranker.untrained()
    assert not untrained.reads_notes
    linker = Linker(generator, untrained, lang="en", types={}, n_shown=5, threshold=0.0)
    links = linker([Mention("cold", note=0), Mention("resfriado", note=0), Mention("cold", note=1)])
    assert links[0] is links[2]


def test_docs_are_notes(clinic, linker):
    """A component gives the same links in a batch and for each note alone."""
    nlp = make(clinic, patterns=("cold", *DECIDES))
    nlp.get_pipe("bioclin_linker")._linker = linker
    texts = [f"A cold: {name}." for name in DECIDES]
    expected = [[kb_id] * 2 for kb_id in DECIDES.values()]
    found = [[ent.kb_id_ for ent in doc.ents] for doc in nlp.pipe(texts, batch_size=2)]
    assert found == expected
    assert [[ent.kb_id_ for ent in nlp(text).ents] for text in texts] == expected
