"""Cues and scopes are counted as worked out by hand."""

from spacy_bioclin.evaluation.context import Cue, score_cues

TEXT = "No fiebre ni tos. Afebril. Posible TEP, sin edema."


def cue(kind, words, *scopes):
    """Make a cue from its words and those of its scopes."""
    places = [(TEXT.index(scope), TEXT.index(scope) + len(scope)) for scope in scopes]
    start = TEXT.index(words)
    return Cue(kind, start, start + len(words), frozenset(places))


GOLD = [
    cue("negated", "No", "fiebre", "tos"),
    cue("negated", "Afebril"),
    cue("uncertain", "Posible", "TEP"),
    cue("negated", "sin", "edema"),
]


def count(found, gold=GOLD):
    """Count true positives, false positives and false negatives by way and kind."""
    return {
        way: {kind: tuple(counts) for kind, counts in scores.per_label.items()}
        for way, scores in score_cues([(TEXT, gold, found)]).items()
    }


def test_gold_against_gold_is_perfect():
    assert count(GOLD) == {
        "cues": {"negated": (3, 0, 0), "uncertain": (1, 0, 0)},
        "scopes": {"negated": (3, 0, 0), "uncertain": (1, 0, 0)},
        "tokens": {"negated": (3, 0, 0), "uncertain": (1, 0, 0)},
        "cue_and_scope": {"negated": (3, 0, 0), "uncertain": (1, 0, 0)},
    }


def test_a_scope_counts_only_with_its_cue_and_all_its_parts():
    found = [
        cue("negated", "No", "fiebre"),  # a part is missed
        cue("negated", "Afebril"),
        cue("uncertain", "Posible TEP", "TEP"),  # the scope is right, the cue is not
        cue("uncertain", "sin", "edema"),  # another kind
    ]
    assert count(found) == {
        "cues": {"negated": (2, 0, 1), "uncertain": (0, 2, 1)},
        "scopes": {"negated": (1, 0, 2), "uncertain": (1, 1, 0)},
        "tokens": {"negated": (1, 0, 2), "uncertain": (1, 1, 0)},
        "cue_and_scope": {"negated": (1, 1, 2), "uncertain": (0, 2, 1)},
    }


def test_scopes_that_belong_to_other_cues_are_wrong():
    swapped = [
        cue("negated", "No", "edema"),
        cue("negated", "sin", "fiebre", "tos"),
    ]
    gold = [GOLD[0], GOLD[3]]
    counts = count(swapped, gold)
    assert counts["cues"] == {"negated": (2, 0, 0)}
    assert counts["scopes"] == {"negated": (3, 0, 0)}
    assert counts["cue_and_scope"] == {"negated": (0, 2, 2)}


def test_marks_at_the_ends_of_a_scope_do_not_count():
    found = [cue("uncertain", "Posible", " TEP, ")]
    assert count(found, [GOLD[2]])["scopes"] == {"uncertain": (1, 0, 0)}
    assert count(found, [GOLD[2]])["cue_and_scope"] == {"uncertain": (1, 0, 0)}


def test_half_a_scope_counts_by_its_words():
    gold = [cue("negated", "No", "fiebre ni tos")]
    found = [cue("negated", "No", "fiebre"), cue("negated", "sin", "edema")]
    counts = count(found, gold)
    assert counts["tokens"] == {"negated": (1, 1, 2)}
    assert counts["scopes"] == {"negated": (0, 2, 1)}


def test_documents_are_counted_apart():
    scores = score_cues([(TEXT, GOLD, GOLD), (TEXT, GOLD, [])])
    assert tuple(scores["cue_and_scope"].per_label["negated"]) == (3, 0, 3)
    assert len(scores["cue_and_scope"].per_doc) == 2
    assert score_cues([])["cues"].per_doc == []
