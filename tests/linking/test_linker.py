"""From mentions to concepts: choice, NIL, composites, types, memory."""

import pytest

from spacy_bioclin.linking import linker as module
from spacy_bioclin.linking.candidates import CandidateGenerator
from spacy_bioclin.linking.linker import Linker, Mention
from spacy_bioclin.linking.ranking import Ranker


class Counting(CandidateGenerator):
    """Remembers what it was asked for."""

    def __call__(self, texts, folds=None):
        self.asked = [*getattr(self, "asked", []), *texts]
        return super().__call__(texts, folds)


@pytest.fixture
def make(clinic):
    def build(lang="en", types=None, n_shown=3, threshold=0.0):
        generator = Counting(clinic, n_candidates=5, lang=lang)
        return Linker(
            generator,
            Ranker.untrained(),
            lang=lang,
            types=types or {},
            n_shown=n_shown,
            threshold=threshold,
        )

    return build


def test_best_candidate_is_the_link_and_says_why(make):
    [link] = make()([Mention("Acute renal failure")])
    assert link.kb_id == link.candidates[0].kb_id == "C2"
    assert link.candidates[0].name == "acute kidney injury"
    assert link.candidates[0].why == "same name: acute renal failure"
    scores = [candidate.score for candidate in link.candidates]
    assert scores == sorted(scores, reverse=True)
    assert 0.9 < scores[0] <= 1
    assert sum(scores) <= 1 + 1e-6


def test_what_is_unlike_everything_is_nil(make):
    link, other = make()([Mention("cardboard"), Mention("qqqq")])
    assert link.kb_id == other.kb_id == ""
    assert other.candidates == ()


def test_threshold_makes_unsure_links_nil(make):
    # One name of two concepts: neither is surer than a half.
    [link] = make()([Mention("cold")])
    assert link.kb_id in ("C7", "C8")
    [unsure] = make(threshold=0.6)([Mention("cold")])
    assert unsure.kb_id == ""
    assert unsure.candidates == link.candidates


@pytest.mark.parametrize(
    ("lang", "text"), [("en", "breast and ovarian cancer"), ("es", "cáncer de mama y ovario")]
)
def test_parts_of_a_composite_mention_are_linked(make, lang, text):
    [link] = make(lang=lang, n_shown=2)([Mention(text)])
    assert link.kb_id == "C3|C4"
    ids = [candidate.kb_id for candidate in link.candidates]
    assert ids.index("C3") < ids.index("C4")
    assert len(ids) <= 4
    first, second = make(lang=lang).parts([text])[0]
    found = [(candidate.kb_id, candidate.part) for candidate in link.candidates]
    assert found[0] == ("C3", first) and ("C4", second) in found
    assert {part for _, part in found} == {first, second}
    [single] = make(lang=lang)([Mention(first)])
    assert {candidate.part for candidate in single.candidates} == {""}


def test_names_are_in_the_language_of_the_pipeline(make, clinic):
    for lang, name in (("en", "kidney failure"), ("es", "insuficiencia renal")):
        [link] = make(lang=lang)([Mention("insuficiencia renal")])
        assert (link.candidates[0].kb_id, link.candidates[0].name) == ("C1", name)
    assert clinic.name_of(clinic.number("C1"), "fr") == "kidney failure"  # it has none in French


def test_composite_with_an_unknown_part_is_nil(make):
    [link] = make()([Mention("breast cancer and qqqqqq")])
    assert link.kb_id == ""
    assert "C3" in [candidate.kb_id for candidate in link.candidates]


def test_name_of_the_knowledge_base_is_not_split(make):
    linker = make()
    assert linker.parts(["breast and ovarian cancer", "iron deficiency anemia"]) == [
        ("breast cancer", "ovarian cancer"),
        ("iron deficiency anemia",),
    ]


def test_types_of_a_label(make):
    linker = make(types={"FINDING": ["finding"], "KIDNEY": ["problem.k*"]})
    links = linker([Mention("cold", "FINDING"), Mention("cold"), Mention("anemia", "KIDNEY")])
    assert [candidate.kb_id for candidate in links[0].candidates] == ["C8"]
    assert {candidate.kb_id for candidate in links[1].candidates} >= {"C7", "C8"}
    assert all(candidate.kb_id in ("C1", "C2") for candidate in links[2].candidates)
    assert links[2].kb_id == ""


def test_ties_go_to_the_concept_that_comes_first(make):
    [link] = make()([Mention("cold")])
    assert [candidate.kb_id for candidate in link.candidates[:2]] == ["C7", "C8"]


def test_repeated_texts_are_looked_up_once(make):
    linker = make()
    first = linker([Mention("anemia", "A"), Mention("anemia", "B"), Mention("anemia", "A")])
    assert linker.generator.asked == ["anemia"]
    assert linker([Mention("anemia", "A")]) == first[:1]
    assert linker.generator.asked == ["anemia"]
    linker.forget()
    linker([Mention("anemia", "A")])
    assert linker.generator.asked == ["anemia", "anemia"]


def test_memory_is_bounded(make, monkeypatch):
    monkeypatch.setattr(module, "MAX_REMEMBERED", 2)
    linker = make()
    linker([Mention("anemia"), Mention("cold")])
    linker([Mention("anemia")])
    linker([Mention("breast cancer")])
    linker.generator.asked.clear()
    linker([Mention("anemia"), Mention("breast cancer")])
    assert linker.generator.asked == []
    linker([Mention("cold")])
    assert linker.generator.asked == ["cold"]


def test_more_mentions_than_the_memory_holds(make, monkeypatch):
    monkeypatch.setattr(module, "MAX_REMEMBERED", 1)
    texts = ["anemia", "cold", "breast cancer", "anemia"]
    links = make()([Mention(text) for text in texts])
    assert links[0] == links[3]
    assert links[2].kb_id == "C3"
