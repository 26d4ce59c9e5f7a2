"""The benchmark of assertions reads sets and counts mentions as worked out by hand."""

import json

from spacy_bioclin.types import AnnotatedText, RelationAnnotation, SpanAnnotation


def test_sets_are_read_and_mentions_counted_by_attribute(tmp_path):
    from benchmarks.context.assertions import Case, read_cases, score

    mention = {"start": 3, "end": 8, "negated": True, "family": True}
    path = tmp_path / "set.jsonl"
    sent = {"text": "No fever, cough", "mentions": [mention, {"start": 10, "end": 15}]}
    path.write_text(json.dumps(sent) + "\n", encoding="utf-8")
    [case] = read_cases(path)
    assert case == Case("No fever, cough", [(3, 8), (10, 15)], [{"negated", "family"}, set()])
    cases = [
        Case("one", [(0, 1), (1, 2)], [{"negated"}, {"negated", "uncertain"}]),
        Case("two", [(0, 1)], [set()]),
    ]
    found = [[{"negated"}, {"uncertain"}], [{"negated"}]]
    scores = score(cases, found, ("negated", "uncertain"))
    assert scores["negated"] == {"p": 0.5, "r": 0.5, "f": 0.5, "n_gold": 2, "n_found": 2}
    assert scores["uncertain"] == {"p": 1.0, "r": 1.0, "f": 1.0, "n_gold": 1, "n_found": 1}


def test_the_cues_of_nubes_keep_their_scopes():
    from benchmarks.context.nubes import to_gold

    text = "no tos ni fiebre, afebril"
    gold = to_gold(
        AnnotatedText(
            "note",
            text,
            (
                SpanAnnotation("T1", "NegSynMarker", ((0, 2),)),
                SpanAnnotation("T2", "DISO", ((3, 6),)),
                SpanAnnotation("T3", "DISO", ((10, 16),)),
                SpanAnnotation("T4", "NegLexMarker", ((18, 25),)),
                RelationAnnotation("R1", "DiscScope", (("Arg1", "T1"), ("Arg2", "T2"))),
                RelationAnnotation("R2", "DiscScope", (("Arg1", "T1"), ("Arg2", "T3"))),
            ),
        )
    )
    assert [tuple(cue) for cue in gold.linked] == [
        ("negated", 0, 2, frozenset({(3, 6), (10, 16)})),
        ("negated", 18, 25, frozenset()),
    ]
    assert gold.ents == {(3, 6): {"negated"}, (10, 16): {"negated"}}
