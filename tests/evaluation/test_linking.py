"""Linking scores against counts worked by hand."""

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.linking import (
    LinkedMention,
    biosyn_rank,
    canonical_id,
    covered,
    end_to_end,
    gold_ids,
    score_linking,
    split_seen,
    strict_rank,
)
from spacy_bioclin.evaluation.spans import Counts

# -- ids -------------------------------------------------------------------------------------------


CANONICAL = [
    ("D001943", "D001943"),
    ("MESH:D001943", "D001943"),
    ("mesh:D001943", "D001943"),
    ("OMIM:115470|C535918", "D9|C535918"),  # the alternative id is looked up without prefix
    ("115470+ OMIM:2", "D9+2"),
    ("HP:0000003", "HP:0000003"),  # other prefixes are part of the id
    ("8140/6/H", "8140/6/H"),
    ("", ""),
]


def test_canonical_id():
    found = {id: canonical_id(id, {"115470": "D9"}) for id, _ in CANONICAL}
    assert found == dict(CANONICAL)


GOLD_IDS = [
    (("D1", "D2"), ("D1", "D2")),
    (("D1|D2+OMIM:3",), ("D1", "D2", "3")),
    (("OLD", "D1"), ("D1",)),  # both mean D1
    (("-1",), ()),
    (("NIL",), ()),
    (("",), ()),
    ((), ()),
    (("D1|-1",), ("D1",)),
]


def test_gold_ids():
    assert {ids: gold_ids(ids, {"OLD": "D1"}) for ids, _ in GOLD_IDS} == dict(GOLD_IDS)


# -- rules -----------------------------------------------------------------------------------------

RANKS = [
    # gold, rankings, rank by BioSyn's rule, by the strict one
    (["A"], [["A", "B"]], 1, 1),
    (["A"], [["B", "C", "A"]], 3, 3),
    (["A"], [["B", "B", "B", "A"]], 2, 2),  # a repeat takes no rank
    (["A"], [["A", "B", "A"]], 1, 1),
    (["A"], [["B"]], 0, 0),
    (["A"], [[]], 0, 0),
    (["A"], [], 0, 0),
    (["A"], [["B|A", "C"]], 1, 0),  # a name that A and B share: a tie
    (["A"], [["B|A", "C", "A"]], 1, 3),
    # composite, left whole
    (["A", "B"], [["B", "C", "A"]], 1, 3),
    (["A", "B"], [["B", "C"]], 1, 0),
    # composite, split
    (["A", "B"], [["B", "C"], ["A"]], 1, 1),
    (["A", "B"], [["C", "B"], ["A"]], 2, 2),
    (["A", "B"], [["A"], ["A"]], 1, 0),  # both parts hit A
    (["A", "B"], [["A"], ["C"]], 0, 0),  # one part hits nothing
    (["A", "B"], [["A"], []], 0, 0),
    # split in vain
    (["A"], [["A"], ["A"]], 1, 1),
    (["A"], [["A"], ["C", "A"]], 2, 2),
    (["A"], [["A"], ["C"]], 0, 0),
]


def test_ranks_by_hand():
    found = [(*row[:2], biosyn_rank(*row[:2]), strict_rank(*row[:2])) for row in RANKS]
    assert found == RANKS


def test_unknown_rule():
    with pytest.raises(BioclinError, match=r"'loose': choose from biosyn, strict"):
        score_linking([], rule="loose")


# -- gold mentions ---------------------------------------------------------------------------------

MENTIONS = [
    LinkedMention("1", "Cáncer  de mama", ("A",), (["A", "B"],)),  # rank 1
    LinkedMention("1", "cáncer de mama", ("A",), (["B", "C", "A"],)),  # rank 3
    LinkedMention("1", "mama", ("A",), (["A"],), nil=True),  # rank 1, but NIL is said
    LinkedMention("2", "tos", ("A", "D"), (["C", "D"],)),  # rank 2; strict: 0
    LinkedMention("2", "tos", ("E",), (["A"],)),  # 0
    LinkedMention("2", "ruido", ("E",)),  # 0, and NIL for want of candidates
    LinkedMention("3", "algo", (), (["A"],)),  # NIL missed
    LinkedMention("3", "algo", ()),  # NIL found
    LinkedMention("3", "algo", (), (["A"],), nil=True),  # NIL found
    LinkedMention("3", "algo", (), ([],)),  # NIL found
]


def test_scores_by_hand():
    scores = score_linking(MENTIONS, ks=(1, 2, 3))
    assert (scores.n, scores.n_nil) == (10, 4)
    assert scores.accuracy == 4 / 10  # the first mention and three NIL
    assert scores.linkable_accuracy == 1 / 6
    assert scores.recall == {1: 2 / 6, 2: 3 / 6, 3: 4 / 6}
    assert scores.mrr == pytest.approx((1 + 1 / 3 + 1 + 1 / 2) / 6)
    assert scores.nil == Counts(3, 2, 1)
    assert scores.interval[0] < scores.accuracy < scores.interval[1]
    assert scores.as_dict()["r2"] == 3 / 6
    assert scores.as_dict()["nil_p"] == 3 / 5


def test_strict_scores_by_hand():
    scores = score_linking(MENTIONS, rule="strict", ks=(2, 3))
    assert scores.recall == {2: 2 / 6, 3: 3 / 6}
    assert scores.mrr == pytest.approx((1 + 1 / 3 + 1) / 6)
    assert scores.accuracy == 4 / 10


def test_nothing():
    scores = score_linking([])
    assert scores.as_dict() == {
        **dict.fromkeys(("n", "n_nil"), 0),
        **dict.fromkeys(("acc", "acc_linkable", "r1", "r5", "r25", "r64", "mrr"), 0.0),
        "acc_interval": [0.0, 0.0],
        **dict.fromkeys(("nil_p", "nil_r", "nil_f"), 0.0),
    }


def test_interval_resamples_documents():
    """Two documents, all right and all wrong: of 2 draws none, one or both are the right one."""
    mentions = [LinkedMention(doc, "x", ("A",), (["AB"[doc == "2"]],)) for doc in "1112222"]
    scores = score_linking(mentions)
    assert scores.accuracy == 3 / 7
    assert scores.interval == (0.0, 1.0)


def test_seen_and_unseen():
    parts = split_seen(MENTIONS, {"A"}, ["CÁNCER de mama", "ruido", "algo"])
    index = {key: [MENTIONS.index(m) for m in part] for key, part in parts.items()}
    assert index == {
        "seen_concept": [0, 1, 2],
        "unseen_concept": [3, 4, 5],  # 3 has A and D
        "seen_name": [0, 1, 5, 6, 7, 8, 9],
        "unseen_name": [2, 3, 4],
    }


def test_covered():
    assert covered(MENTIONS, {"A", "E"}) == [MENTIONS[i] for i in (0, 1, 2, 4, 5)]


# -- end to end ------------------------------------------------------------------------------------


def test_end_to_end_by_hand():
    scores = end_to_end(
        [
            # right; right place, wrong id; wrong place, right id; a repeat on either side
            (
                [(0, 4, "A"), (0, 4, "A"), (5, 9, "B"), (10, 14, "C")],
                [(0, 4, "A"), (5, 9, "D"), (5, 9, "D"), (10, 13, "C")],
            ),
            # a composite mention of which one id is found; the other id is found elsewhere
            ([(0, 4, "A"), (0, 4, "B")], [(0, 4, "A"), (7, 9, "B")]),
            ([], []),
            ([], [(0, 1, "A"), (2, 3, "A")]),
        ]
    )
    assert scores.mentions == [
        Counts(1, 2, 2),
        Counts(1, 1, 1),
        Counts(0, 0, 0),
        Counts(0, 2, 0),
    ]
    assert scores.documents == [
        Counts(2, 1, 1),
        Counts(2, 0, 0),
        Counts(0, 0, 0),
        Counts(0, 1, 0),
    ]
    figures = scores.as_dict()
    assert (figures["mentions"]["p"], figures["mentions"]["r"]) == (2 / 7, 2 / 5)
    assert figures["documents"]["f"] == 8 / 11
    assert figures["documents"]["f_interval"][0] <= 8 / 11 <= figures["documents"]["f_interval"][1]
