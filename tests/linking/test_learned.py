"""What mentions of the training notes meant."""

import json

import numpy as np
import pytest

from spacy_bioclin.linking.learned import LearnedMention, LearnedNames
from spacy_bioclin.linking.names.normalize import name_key


def find(learned, clinic, text, fold=None, n=5):
    rows, concepts, shares, counts, cosines = learned.find([text], [name_key(text)], [fold], n)
    assert rows.tolist() == [0] * len(rows)
    assert [share > 0 for share in shares] == [count > 0 for count in counts]
    return {
        clinic.ids[int(concept)]: (pytest.approx(share), pytest.approx(cosine, abs=1e-4))
        for concept, share, cosine in zip(concepts, shares, cosines, strict=True)
    }


@pytest.fixture
def learned(clinic):
    mentions = [("AKI", "C2", 0), ("AKI", "C2", 1), ("AKI", "C1", 1), ("renal failures", "C1", 2)]
    return LearnedNames(clinic, [LearnedMention(*mention) for mention in mentions])


def test_shares_of_a_text(learned, clinic):
    assert find(learned, clinic, "aki") == {"C1": (1 / 3.5, 1), "C2": (2 / 3.5, 1)}


def test_own_fold_does_not_count(learned, clinic):
    assert find(learned, clinic, "AKI", fold=1) == {"C2": (1 / 1.5, 1)}
    assert find(learned, clinic, "renal failure", fold=2) == {}


def test_same_stems_count_where_the_text_is_new(learned, clinic):
    assert find(learned, clinic, "failure, renal") == {"C1": (1 / 1.5, 1)}


def test_similar_mentions_have_a_cosine_and_no_share(learned, clinic):
    [(concept, (share, cosine))] = find(learned, clinic, "renal failing").items()
    assert (concept, share) == ("C1", 0)
    assert 0.2 < cosine.expected < 1


def test_frequency_is_that_outside_the_fold(learned, clinic):
    rows = np.array([clinic.number(id) for id in ("C1", "C2", "C3", "C1")])
    assert learned.frequency(rows, np.array([-1, -1, -1, 1])).tolist() == [2, 2, 0, 1]


def test_unknown_concepts_are_counted_and_alternative_ids_are_known(clinic):
    mentions = [LearnedMention("x", "nowhere", 0)] * 2 + [LearnedMention("injury", "C20", 0)]
    learned = LearnedNames(clinic, mentions)
    assert learned.n_unknown == 2
    assert find(learned, clinic, "injury") == {"C2": (1 / 1.5, 1)}


def test_nothing_learned_finds_nothing(clinic):
    learned = LearnedNames(clinic, [])
    assert find(learned, clinic, "anemia") == {}
    assert learned.frequency(np.array([0]), np.array([-1])).tolist() == [0]


def test_round_trip_as_json(learned, clinic):
    rows = json.loads(json.dumps(learned.to_list()))
    again = LearnedNames.from_list(clinic, rows)
    assert again.counts == learned.counts
    assert find(again, clinic, "aki") == find(learned, clinic, "aki")
