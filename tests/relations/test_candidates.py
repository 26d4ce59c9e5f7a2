"""Candidates: which pairs, in which direction, and what is between them."""

import numpy as np
from spacy.training import Example

from spacy_bioclin.relations.candidates import Mention, find_candidates, make_types
from spacy_bioclin.relations.gold import make_target
from spacy_bioclin.relations.network import DISTANCES, N_DISTANCES, find_between, find_distances
from tests.trained import blank

#            0      1        2       3      4     5      6       7
# Tokens:  aspirin relieves pain   .      it   causes ulcers   .
DRUG, PAIN, ULCER = Mention(0, 1, "DRUG"), Mention(2, 3, "PROBLEM"), Mention(6, 7, "PROBLEM")
SENTENCES = np.array([0, 0, 0, 0, 1, 1, 1, 1])
TREATS = {"TREATS": [("DRUG", "PROBLEM")]}


def find(mentions, table, symmetric=(), *, scope="document", window=0, by_concept=False):
    types = make_types(table, symmetric)
    found = find_candidates(
        mentions,
        types,
        by_concept=by_concept,
        scope=scope,
        window=window,
        sentence_of=SENTENCES,
    )
    names = [a.concept or found.mentions[a.mentions[0]][:2] for a in found.arguments]
    return [(names[head], names[child]) for head, child in found.pairs.tolist()], found


def test_scope():
    for scope, window, expected in (
        ("sentence", 0, [((0, 1), (2, 3))]),
        ("window", 1, [((0, 1), (2, 3))]),
        ("window", 4, [((0, 1), (2, 3))]),
        ("window", 5, [((0, 1), (2, 3)), ((0, 1), (6, 7))]),
        ("document", 0, [((0, 1), (2, 3)), ((0, 1), (6, 7))]),
    ):
        pairs, _ = find([ULCER, DRUG, PAIN], TREATS, scope=scope, window=window)
        assert sorted(pairs) == expected


def test_the_table_gives_the_direction():
    caused = {"CAUSED_BY": [("PROBLEM", "DRUG")]}
    pairs, _ = find([DRUG, PAIN], caused)
    assert pairs == [((2, 3), (0, 1))]


def test_equal_types_have_both_directions_unless_all_are_symmetric():
    table = {"LEADS_TO": [("PROBLEM", "PROBLEM")], "WITH": [("PROBLEM", "PROBLEM")]}
    assert len(find([PAIN, ULCER], table)[0]) == 2
    assert len(find([PAIN, ULCER], table, ["WITH"])[0]) == 2
    assert find([ULCER, PAIN], table, ["WITH", "LEADS_TO"])[0] == [((2, 3), (6, 7))]


def test_a_symmetric_label_allows_both_orders_of_its_types():
    pairs, _ = find([PAIN, Mention(6, 7, "DRUG")], {"WITH": [("DRUG", "PROBLEM")]}, ["WITH"])
    assert pairs == [((2, 3), (6, 7))]


def test_other_types_and_repeated_spans_are_no_candidates():
    pairs, found = find([DRUG, DRUG, PAIN, Mention(4, 5, "DATE")], TREATS)
    assert pairs == [((0, 1), (2, 3))]
    assert found.mentions == [DRUG, PAIN]


def test_nested_spans_are_candidates():
    outer = Mention(0, 3, "PROBLEM")
    assert find([DRUG, outer], TREATS, scope="sentence")[0] == [((0, 1), (0, 3))]


def test_concepts_pair_once_by_their_nearest_mentions():
    mentions = [
        Mention(0, 1, "DRUG", ("D1",)),
        Mention(2, 3, "PROBLEM", ("P1", "P2")),
        Mention(4, 5, "DRUG", ("D1",)),
        Mention(6, 7, "PROBLEM", ("P1",)),
        Mention(7, 8, "PROBLEM", ("-1",)),  # has no concept
        Mention(5, 6, "PROBLEM", ("",)),
    ]
    pairs, found = find(mentions, TREATS, by_concept=True)
    assert sorted(pairs) == [("D1", "P1"), ("D1", "P2")]
    for (_, child), (a, b) in zip(pairs, found.nearest.tolist(), strict=True):
        # 0–2 and 4–6 are equally near for P1, and the first is kept; P2 has one mention.
        assert (found.mentions[a].start, found.mentions[b].start) == (0, 2), child


def test_no_mentions():
    pairs, found = find([], TREATS, scope="sentence")
    assert pairs == []
    assert found.pairs.shape == found.nearest.shape == (0, 2)


def test_work_grows_with_the_pairs_in_scope():
    n = 20_000
    mentions = [Mention(i, i + 1, "DRUG" if i % 2 else "PROBLEM") for i in range(n)]
    found = find_candidates(
        mentions,
        make_types(TREATS, ()),
        by_concept=False,
        scope="window",
        window=1,
        sentence_of=np.zeros(n, dtype=np.int64),
    )
    assert len(found.pairs) == n - 1  # of 200 million pairs


def test_distances_and_what_is_between():
    head = np.array([[0, 1], [0, 1], [5, 6], [0, 4], [0, 1]])
    child = np.array([[1, 2], [3, 4], [0, 2], [2, 3], [200, 201]])
    assert find_between(head, child).tolist() == [[1, 1], [1, 3], [2, 5], [3, 3], [1, 200]]
    n = len(DISTANCES) + 1
    assert find_distances(head, child).tolist() == [0, 2, n + 3, N_DISTANCES - 1, n - 1]


def test_targets_and_missed_relations():
    nlp = blank("en")
    text = "aspirin relieves pain . it causes ulcers ."
    gold = nlp.make_doc(text)
    spans = [[0, 7, "DRUG", ""], [17, 21, "PROBLEM", ""], [34, 40, "PROBLEM", ""]]
    gold.user_data["bioclin_gold"] = {
        "id": "1",
        "task": "",
        "layers": {"ents": spans},
        "relations": [
            ["TREATS", [0, 7, "DRUG"], [17, 21, "PROBLEM"]],
            ["TREATS", [0, 7, "DRUG"], [34, 40, "PROBLEM"]],
            ["OTHER", [0, 7, "DRUG"], [34, 40, "PROBLEM"]],
        ],
    }
    eg = Example(nlp.make_doc(text), gold)
    _, found = find([DRUG, PAIN, ULCER], TREATS, scope="sentence")
    target = make_target(eg, found, make_types(TREATS, ()), by_concept=False)
    assert target.labels.tolist() == [[True]]
    assert target.known
    assert target.missed == ["TREATS"]
    del gold.user_data["bioclin_gold"]["relations"]
    assert not make_target(eg, found, make_types(TREATS, ()), by_concept=False).known
