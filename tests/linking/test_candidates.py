"""Which concepts a text may mean, and what is said of each."""

import numpy as np
import pytest

from spacy_bioclin.linking.candidates import COLUMN, GAPS, CandidateGenerator
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
from spacy_bioclin.linking.learned import LearnedMention, LearnedNames


class Toy:
    """Vectors of letter counts: names of the same letters mean the same."""

    def __init__(self, kb):
        self._all = self.encode(list(kb.names))

    def encode(self, texts):
        counts = [[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts]
        vectors = np.array(counts, np.float32) + 1e-3
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def search(self, vectors, k):
        cosines = vectors @ self._all.T
        rows = np.argsort(-cosines, axis=1, kind="stable")[:, :k].astype(np.int32)
        return rows, np.take_along_axis(cosines, rows, 1).astype(np.float32)

    def vectors_of(self, names):
        return self._all[np.asarray(names)]


@pytest.fixture
def find(clinic):
    """text -> {id: {feature: value}}, all that is not 0; also the shown names."""

    def run(text, lang="en", fold=None, **options):
        generator = CandidateGenerator(clinic, n_candidates=5, lang=lang, **options)
        [pool] = generator([text], [fold])
        return {
            clinic.ids[int(concept)]: {
                **{name: float(row[i]) for name, i in COLUMN.items() if row[i]},
                "name": clinic.names[name] if name >= 0 else None,
            }
            for concept, name, row in zip(pool.concepts, pool.names, pool.features, strict=True)
        }

    return run


def test_same_name_but_for_case_accents_and_signs(find):
    found = find("CANCER DE MAMA", lang="es")["C3"]
    assert found["exact"] == found["key"] == found["core"] == found["language"] == 1
    assert found["similar"] == pytest.approx(1, abs=1e-4)
    assert found["name"] == "cáncer de mama"
    assert "preferred" not in found


def test_names_of_other_letters_have_another_key(tmp_path):
    kb = build_kb([Concept("E", "Hepatitis E", "en")], tmp_path / "kb")
    for text, has_key in (("hepatitis, e", 1), ("hepatitis A", 0)):
        [pool] = CandidateGenerator(kb, n_candidates=5, lang="en")([text], [None])
        assert pool.features[0][COLUMN["key"]] == has_key, text


def test_same_stems_in_another_order_and_number(find):
    found = find("cancers, breast")["C3"]
    assert found["key"] == 1
    assert found["preferred"] == 1
    assert "exact" not in found


def test_modifiers_are_left_out(find):
    found = find("severe anemia")
    assert found["C5"]["core"] == 1
    assert "key" not in found["C5"]
    assert "core" not in found["C6"]


def test_similar_name_and_language_of_the_note(find):
    found = find("anemia feropenica", lang="es")["C6"]
    assert 0.5 < found["similar"] < 1
    assert found["language"] == 1
    assert "language" not in find("anemia feropenica", lang="en")["C6"]


def test_a_name_of_two_concepts_finds_both(find):
    found = find("Cold")
    assert found["C7"]["exact"] == found["C8"]["exact"] == 1
    assert [concept for concept in found if found[concept].get("exact")] == ["C7", "C8"]


def test_nothing_alike_is_an_empty_pool(clinic):
    generator = CandidateGenerator(clinic, n_candidates=5, lang="en")
    pools = generator(["qqqq", "", "anemia"])
    assert [len(pool.concepts) for pool in pools[:2]] == [0, 0]
    assert len(pools[2].concepts)
    assert generator([]) == []


def test_a_batch_gives_what_single_texts_give(clinic):
    generator = CandidateGenerator(clinic, n_candidates=5, lang="en")
    texts = ["cold", "acute renal failures", "zz", "hemoglobins", "cold"]
    for text, pool in zip(texts, generator(texts), strict=True):
        [alone] = generator([text])
        order, own = np.argsort(pool.concepts), np.argsort(alone.concepts)
        assert pool.concepts[order].tolist() == alone.concepts[own].tolist()
        assert np.allclose(pool.features[order], alone.features[own])
        assert pool.names[order].tolist() == alone.names[own].tolist()


def test_meaning_brings_names_that_look_otherwise(clinic, find):
    assert "C7" not in find("ldcoo")
    found = find("ldcoo", meanings=Toy(clinic))
    assert found["C7"]["meaning"] == found["C8"]["meaning"]
    assert found["C7"]["meaning"] > found["C10"]["meaning"]
    # Also compared for what another way of looking found.
    assert find("anemia", meanings=Toy(clinic))["C5"]["meaning"] == pytest.approx(1, abs=1e-3)


def test_training_mentions_bring_concepts_and_their_frequency(clinic, find):
    mentions = [LearnedMention("low hb", "C5", fold) for fold in (0, 0, 1)]
    learned = LearnedNames(clinic, [*mentions, LearnedMention("low hb", "C10", 2)])
    found = find("Low Hb", learned=learned)
    # 3 of 4 mentions, and half a mention for the doubt.
    assert found["C5"]["same_mention"] == pytest.approx(3 / 4.5)
    assert found["C10"]["same_mention"] == pytest.approx(1 / 4.5)
    assert found["C5"]["same_count"] == pytest.approx(np.log(4))
    assert found["C5"]["frequency"] == pytest.approx(np.log(4))
    assert found["C5"]["seen"] == 1
    assert found["C5"]["name"] is None
    without = find("low hb", fold=0, learned=learned)
    assert without["C5"]["same_mention"] == pytest.approx(1 / 2.5)
    assert without["C5"]["frequency"] == pytest.approx(np.log(2))


@pytest.mark.parametrize("n_empty", [0, 2])
def test_gaps_are_those_to_the_best_candidate_of_the_text(clinic, n_empty):
    learned = LearnedNames(clinic, [LearnedMention("renal failures", "C1", 0)])
    meanings = None if n_empty else Toy(clinic)
    generator = CandidateGenerator(
        clinic, n_candidates=5, lang="en", meanings=meanings, learned=learned
    )
    pools = generator(["renal failure", "qqqq", "cold", ""])
    assert [len(pool.concepts) for pool in pools].count(0) == n_empty
    for pool in pools:
        for gap, name in GAPS.items():
            column = pool.features[:, COLUMN[name]]
            assert pool.features[:, COLUMN[gap]] == pytest.approx(column.max(initial=0) - column)


def test_short_texts_are_marked(find):
    assert all(found["short"] == 1 for found in find("col").values())
    assert "short" not in find("cold")["C7"]
