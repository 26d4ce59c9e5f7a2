"""Scopes of a tagger find their cues, and become attributes."""

import pytest
import spacy
from spacy.tokens import Span

from spacy_bioclin.context.trained import add_rules, join_scopes
from spacy_bioclin.errors import BioclinError


def test_a_scope_belongs_to_the_nearest_cue_of_its_sentence():
    for cues, scopes, sentences, expected in [
        ([(0, 1)], [(1, 4)], [0], [((0, 1), (1, 4))]),
        ([(4, 5)], [(0, 4)], [0], [((4, 5), (0, 4))]),  # "fiebre: no"
        # Items of an enumeration; the second cue is nearer to the last one.
        (
            [(0, 1), (5, 6)],
            [(1, 2), (3, 4), (6, 8)],
            [0],
            [((0, 1), (1, 2)), ((5, 6), (3, 4)), ((5, 6), (6, 8))],
        ),
        # Of equally near cues the first.
        ([(0, 1), (4, 5)], [(2, 3)], [0], [((0, 1), (2, 3)), ((4, 5), (4, 5))]),
        ([(3, 4)], [], [0], [((3, 4), (3, 4))]),  # "afebril"
        # A scope does not leave its sentence, and is left out without a cue.
        ([(0, 1)], [(2, 3)], [0, 2], [((0, 1), (0, 1))]),
        ([], [(2, 3)], [0], []),
    ]:
        assert list(join_scopes(cues, scopes, sentences)) == expected
        assert list(join_scopes(cues[::-1], scopes[::-1], sentences)) == expected


def make_nlp(source, tagged=()):
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_sentences")
    context = nlp.add_pipe("bioclin_context", config={"source": source})

    def annotate(text):
        doc = nlp.get_pipe("bioclin_sentences")(nlp.make_doc(text))
        doc.spans["cues"] = [Span(doc, *tokens, label=label) for *tokens, label in tagged]
        return context(doc)

    return annotate


TEXT = "Niega fiebre. Madre con asma. Tos escasa. Acianótico."
TAGGED = [(7, 8, "uncertain_scope"), (8, 9, "uncertain_cue")]


def describe(doc):
    return [
        (token.text, modifier.kind, modifier.source)
        for token in doc
        for modifier in doc[token.i : token.i + 1]._.context
    ]


def test_negation_and_uncertainty_come_from_the_source_and_the_rest_from_rules():
    fever, asthma = ("fiebre", "negated", "rules"), ("asma", "family", "rules")
    cough = ("Tos", "uncertain", "trained")
    for source, expected in {
        "rules": [fever, asthma],
        "trained": [asthma, cough],
        "both": [fever, asthma, cough],
    }.items():
        assert describe(make_nlp(source, TAGGED)(TEXT)) == expected, source


def test_a_tagger_that_did_not_run_is_named():
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("bioclin_context", config={"source": "trained"})
    with pytest.raises(BioclinError, match=r"doc.spans\['cues'\].*bioclin_ner"):
        nlp("Niega fiebre.")


def test_a_tagger_of_assertions_decides_its_kinds():
    nlp = spacy.blank("es")
    sentences = nlp.add_pipe("bioclin_sentences")
    tagged = {"historical": "trained", "family": "both"}
    context = nlp.add_pipe("bioclin_context", config={"tagged": tagged})
    doc = sentences(nlp.make_doc(TEXT))
    with pytest.raises(BioclinError, match=r"tagged = .*doc.spans\['assertions'\]"):
        context(doc)
    doc.spans["assertions"] = [
        Span(doc, 7, 8, label="historical"),
        Span(doc, 0, 2, label="uncertain"),  # rules decide this kind
    ]
    fever, cough = ("fiebre", "negated", "rules"), ("Tos", "historical", "trained")
    asthma = ("asma", "family", "rules")
    assert describe(context(doc)) == [fever, asthma, cough]
    assert [*doc.spans] == ["context"]
    with pytest.raises(BioclinError, match="tagged = 'pasado'"):
        nlp.create_pipe("bioclin_context", config={"tagged": {"pasado": "both"}})


def test_other_labels_are_an_error():
    with pytest.raises(BioclinError, match=r"'NegSynMarker'.*negated_cue"):
        make_nlp("both", [(0, 1, "NegSynMarker")])(TEXT)


NO, SCOPE, LONG = (0, 1), (1, 3), (1, 6)


def test_rules_add_to_the_tagger():
    for tagged, by_rules, expected in [
        # Both found the cue: the tagger's scope.
        (
            [("negated", "trained", NO, SCOPE)],
            [("negated", "no", NO, LONG)],
            [("negated", "trained", NO, SCOPE)],
        ),
        # The tagger found no scope on the right: that of the rule.
        (
            [("negated", "trained", NO, NO)],
            [("negated", "no", NO, LONG)],
            [("negated", "trained", NO, LONG)],
        ),
        # "afebril" is its own scope; a lone cue that no rule knows is left out.
        (
            [("negated", "trained", NO, NO), ("negated", "trained", (4, 5), (4, 5))],
            [("negated", "afebril", NO, NO)],
            [("negated", "trained", NO, NO)],
        ),
        # "balance negativo" is no cue.
        ([("negated", "trained", (4, 5), (2, 4))], [("pseudo", "", (3, 5), None)], []),
        # Rules alone.
        (
            [],
            [
                ("negated", "no", NO, SCOPE),
                ("negated", "acianotico", (7, 8), (7, 8)),
                ("uncertain", "posible", (4, 5), (5, 6)),
                ("family", "madre con", (8, 9), (9, 10)),
            ],
            [
                ("negated", "no", NO, SCOPE),
                ("negated", "acianotico", (7, 8), (7, 8)),
                ("uncertain", "posible", (4, 5), (5, 6)),
            ],
        ),
        # "sin signos sugestivos de TEP" is negated only.
        (
            [("negated", "trained", NO, LONG)],
            [("uncertain", "sugestivos de", (2, 4), (4, 6))],
            [("negated", "trained", NO, LONG)],
        ),
    ]:
        assert list(add_rules(tagged, by_rules)) == expected
