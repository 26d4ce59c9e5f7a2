"""`bioclin_ents`: which spans become entities, and what they keep."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spacy_bioclin.errors import BioclinError, BioclinWarning
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
from spacy_bioclin.ner.ents import choose_spans
from spacy_bioclin.spans import set_spans
from tests.trained import blank

TEXT = "Acute kidney injury after breast cancer and sepsis"  # 8 tokens
Rows = list[tuple[int, int, str, float | None]]


def make_nlp(**config: object) -> Language:
    nlp = blank("en")
    nlp.add_pipe("bioclin_ents", config=config)
    return nlp


@pytest.fixture(scope="module")
def nlp() -> Language:
    return make_nlp()


def make_doc(nlp: Language, rows: Rows, key: str = "clinical") -> Doc:
    """Make a Doc with a span group: start, end, label and probability of each span."""
    doc = nlp.make_doc(TEXT)
    spans = [Span(doc, start, end, label) for start, end, label, _ in rows]
    set_spans(doc, key, spans, [probability for *_, probability in rows])
    return doc


def ents(doc: Doc) -> list[tuple[int, int, str]]:
    return [(ent.start, ent.end, ent.label_) for ent in doc.ents]


# -- the rule ------------------------------------------------------------------------------------


CHOSEN: list[tuple[Rows, list[tuple[int, int, str]]]] = [
    # The most probable one, though it is shorter and later.
    ([(0, 3, "A", 0.5), (1, 2, "B", 0.75)], [(1, 2, "B")]),
    # Equally probable: the longest, then the first, then the label.
    ([(1, 2, "A", 0.5), (0, 3, "B", 0.5)], [(0, 3, "B")]),
    ([(1, 3, "A", 0.5), (0, 2, "B", 0.5)], [(0, 2, "B")]),
    ([(0, 2, "B", 0.5), (0, 2, "A", 0.5)], [(0, 2, "A")]),
    # What a lost span kept from others is free again.
    ([(0, 1, "A", 0.5), (0, 3, "B", 0.6), (2, 5, "C", 0.7)], [(0, 1, "A"), (2, 5, "C")]),
    # Without probabilities: the longest.
    ([(1, 2, "A", None), (0, 3, "B", None)], [(0, 3, "B")]),
    # Neighbours do not overlap; the order is that of the text.
    ([(3, 5, "A", 0.5), (1, 3, "A", 0.4)], [(1, 3, "A"), (3, 5, "A")]),
    ([(0, 3, "A", float("nan")), (1, 2, "B", 0.1)], [(1, 2, "B")]),
    ([(0, 3, "", 0.9), (1, 2, "B", 0.1), (4, 4, "C", 0.9)], [(1, 2, "B")]),
    ([], []),
]


def test_a_span_with_a_concept_wins_over_what_is_in_it(nlp: Language) -> None:
    doc = nlp.make_doc(TEXT)
    breast = Span(doc, 4, 6, "A", kb_id="C1")
    # "breast cancer" has a concept; "injury after breast cancer" is as probable as "cancer".
    group = [(Span(doc, 5, 6, "B", kb_id="C2"), 0.9), (breast, 0.4), (Span(doc, 2, 6, "A"), 0.8)]
    set_spans(doc, "clinical", [span for span, _ in group], [p for _, p in group])
    assert ents(nlp(doc)) == [(4, 6, "A")]
    assert doc.ents[0]._.probability == pytest.approx(0.4)
    # The longest of two with concepts; the other of two on the same tokens by its probability.
    spans = [breast, Span(doc, 2, 6, "A", kb_id="C3"), Span(doc, 2, 6, "B", kb_id="C3")]
    set_spans(doc, "clinical", spans, [0.9, 0.4, 0.5])
    assert ents(nlp(doc)) == [(2, 6, "B")]


def test_parts_stay_within_longer_spans_of_another_label() -> None:
    rows: Rows = [(4, 6, "DISEASE", 0.4), (4, 5, "ANATOMY", 0.9), (1, 2, "ANATOMY", 0.5)]
    nlp = make_nlp(parts=["ANATOMY"])
    assert ents(nlp(make_doc(nlp, rows))) == [(1, 2, "ANATOMY"), (4, 6, "DISEASE")]
    nlp = make_nlp()
    assert ents(nlp(make_doc(nlp, rows)))[-1] == (4, 5, "ANATOMY")


def test_the_best_spans_that_do_not_overlap(nlp: Language) -> None:
    found = [(rows, ents(nlp(make_doc(nlp, rows)))) for rows, _ in CHOSEN]
    assert [one for one, (_, right) in zip(found, CHOSEN, strict=True) if one[1] != right] == []


def test_preferred_labels_win_on_the_same_tokens_only() -> None:
    nlp = make_nlp(prefer=["B", "C"])
    rows: Rows = [(0, 2, "A", 0.9), (0, 2, "B", 0.1), (0, 2, "C", 0.5)]
    assert ents(nlp(make_doc(nlp, rows))) == [(0, 2, "B")]
    rows = [(0, 2, "A", 0.9), (0, 2, "C", 0.1), (1, 3, "B", 0.5), (4, 5, "A", 0.5)]
    assert ents(nlp(make_doc(nlp, rows))) == [(0, 2, "C"), (4, 5, "A")]


spans = st.tuples(st.integers(0, 11), st.integers(0, 5)).map(lambda at: (at[0], at[0] + at[1]))
cases = st.lists(st.tuples(spans, st.sampled_from([0.1, 0.5, 1.0]), st.sampled_from("AB")))


@given(cases)
@settings(max_examples=40)
def test_the_choice_is_greedy(rows: list[tuple[tuple[int, int], float, str]]) -> None:
    """Take the best of all, drop what overlaps it, and so on."""
    left = [(-p, start - end, start, label, i) for i, ((start, end), p, label) in enumerate(rows)]
    left = [row for row in left if row[1]]
    expected = []
    while left:
        best = min(left)
        expected.append(best[-1])
        tokens = set(range(*rows[best[-1]][0]))
        left = [row for row in left if not tokens & set(range(*rows[row[-1]][0]))]
    bounds, probabilities, labels = zip(*rows, strict=True) if rows else ((), (), ())
    found = choose_spans(bounds, probabilities, labels)
    assert found == sorted(expected, key=lambda i: rows[i][0])
    for a, b in combinations(found, 2):
        assert bounds[a][1] <= bounds[b][0]


def test_a_rule_wins_over_a_prediction() -> None:
    """A span without a probability counts as certain, and its entity has none."""
    nlp = make_nlp(spans_keys=["clinical", "rules"])
    doc = make_doc(nlp, [(0, 3, "DISEASE", 0.99), (4, 6, "DISEASE", 0.9)])
    doc.spans["rules"] = [Span(doc, 1, 2, "ANATOMY")]
    nlp(doc)
    assert ents(doc) == [(1, 2, "ANATOMY"), (4, 6, "DISEASE")]
    assert doc.ents[0]._.probability is None
    assert doc.ents[1]._.probability == pytest.approx(0.9)


def test_doubtful_spans_stay_in_their_group(nlp: Language) -> None:
    doc = make_doc(nlp, [])
    doubtful = [Span(doc, 0, 3, "A", span_id="doubtful"), Span(doc, 1, 2, "A")]
    set_spans(doc, "clinical", doubtful, [0.9, 0.6])
    assert ents(nlp(doc)) == [(1, 2, "A")] and len(doc.spans["clinical"]) == 2


# -- what entities keep --------------------------------------------------------------------------


def test_ids_and_probabilities_survive(nlp: Language) -> None:
    doc = nlp.make_doc(TEXT)
    group = [
        Span(doc, 4, 6, "DISEASE", kb_id="C3", span_id="rule"),
        Span(doc, 5, 6, "DISEASE", kb_id="C9"),
        Span(doc, 0, 3, "SYMPTOM"),
    ]
    set_spans(doc, "clinical", group, [0.875, 0.5, 0.25])
    before = doc.spans["clinical"].to_bytes()
    nlp(doc)
    found = [(e.text, e.label_, e.kb_id_, e.id_, e._.probability) for e in doc.ents]
    assert found == [
        ("Acute kidney injury", "SYMPTOM", "", "", 0.25),
        ("breast cancer", "DISEASE", "C3", "rule", 0.875),
    ]
    assert doc.spans["clinical"].to_bytes() == before
    [stored] = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
    assert [ent._.probability for ent in stored.ents] == [0.25, 0.875]
    assert np.allclose(stored.spans["clinical"].attrs["scores"], [0.875, 0.5, 0.25])


def test_earlier_entities_are_replaced(nlp: Language) -> None:
    doc = make_doc(nlp, [(0, 3, "A", 0.5)])
    doc.set_ents([Span(doc, 7, 8, "OLD")])
    assert ents(nlp(doc)) == [(0, 3, "A")]
    assert doc.has_annotation("ENT_IOB") and doc[7].ent_iob_ == "O"


def test_the_linker_links_them(tmp_path) -> None:
    """Before or after the linker, an entity has the id of its concept."""
    concepts = [Concept("C1", "breast cancer"), Concept("C2", "acute kidney injury")]
    build_kb(concepts, tmp_path / "kb")
    for first, spans_key in (("bioclin_ents", None), ("bioclin_linker", "clinical")):
        nlp = make_nlp()
        doc = make_doc(nlp, [(0, 3, "A", 0.5), (4, 6, "B", 0.75), (5, 6, "B", 0.5)])
        where = {"first": True} if first == "bioclin_linker" else {"last": True}
        config = {"kb": str(tmp_path / "kb"), "spans_key": spans_key}
        nlp.add_pipe("bioclin_linker", config=config, **where)
        nlp(doc)
        assert nlp.pipe_names[0] == first
        assert [ent.kb_id_ for ent in doc.ents] == ["C2", "C1"]
        assert [candidate.kb_id for candidate in doc.ents[1]._.candidates][:1] == ["C1"]
        assert [ent._.probability for ent in doc.ents] == [0.5, 0.75]


def test_deid_moves_them() -> None:
    """The safe Doc has the entities, at their new offsets, and no PHI among them."""
    nlp = blank("en")
    nlp.add_pipe("bioclin_ents")
    nlp.add_pipe("bioclin_deid")
    doc = nlp.make_doc("Jonathan Appleseed has breast cancer")
    set_spans(doc, "clinical", [Span(doc, 3, 5, "DISEASE", kb_id="C1")], [0.75])
    set_spans(doc, "phi", [Span(doc, 0, 2, "PATIENT")], [1.0])
    safe = nlp(doc)._.deid.doc
    assert [(e.text, e.label_, e.kb_id_, e._.probability) for e in safe.ents] == [
        ("breast cancer", "DISEASE", "C1", 0.75)
    ]
    assert "Jonathan" not in safe.text and len(safe.spans["phi"]) == 1


# -- in a pipeline -------------------------------------------------------------------------------


def test_streams_and_files_are_the_same(tmp_path) -> None:
    nlp = make_nlp(spans_keys=["clinical", "other"])
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    assert loaded.get_pipe("bioclin_ents").spans_keys == ["clinical", "other"]
    rows: Rows = [(0, 3, "A", 0.5), (1, 2, "B", 0.75), (4, 6, "A", 0.5)]

    def docs() -> list[Doc]:
        made = [make_doc(nlp, rows[:n]) for n in range(4)]
        for doc in made:
            doc.spans["other"] = []
        return made

    expected = [[], [(0, 3, "A")], [(1, 2, "B")], [(1, 2, "B"), (4, 6, "A")]]
    assert [ents(nlp(doc)) for doc in docs()] == expected
    assert [ents(doc) for doc in nlp.pipe(docs())] == expected
    assert [ents(doc) for doc in loaded.pipe(docs())] == expected


def test_a_group_that_nothing_writes_is_named_once() -> None:
    nlp = make_nlp()
    with pytest.warns(BioclinWarning, match=r'no span group "clinical" .*groups: "phi"') as shown:
        for _ in range(3):
            assert ents(nlp(make_doc(nlp, [(0, 3, "A", 0.5)], key="phi"))) == []
    assert len(shown) == 1 and "kidney" not in str(shown[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ents(make_nlp()(make_doc(nlp, []))) == []


def test_phi_is_refused() -> None:
    nlp = blank("en")
    with pytest.raises(BioclinError, match=r'the group "phi" is PHI, and .* leave it out'):
        nlp.add_pipe("bioclin_ents", config={"spans_keys": ["clinical", "phi"]})
    with pytest.raises(BioclinError, match="name one span group"):
        nlp.add_pipe("bioclin_ents", config={"spans_keys": []})
    for factory in ("bioclin_phi_rules", "bioclin_deid"):
        nlp = blank("en")
        nlp.add_pipe(factory, name="finder", config={"spans_key": "clinical"})
        with pytest.raises(BioclinError, match=r"is PHI, which \[components.finder\] writes"):
            nlp.add_pipe("bioclin_ents")
