"""A compact knowledge base stores less, and answers the same."""

import json

import numpy as np
import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.faults import check_folder
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.kb.storage import ARRAYS, DERIVED
from tests.linking.fixtures import CLINIC


@pytest.fixture
def compact(tmp_path):
    return build_kb(CLINIC, tmp_path / "compact", meta={"compact": True})


def test_what_is_derived_is_not_stored_but_the_same(compact, tmp_path):
    full = build_kb(CLINIC, tmp_path / "full")
    files = {file.stem for file in compact.path.glob("*.npy")}
    assert files == ARRAYS - DERIVED
    assert set(compact.arrays) == ARRAYS
    for name, array in full.arrays.items():
        assert array.dtype == compact.arrays[name].dtype
        np.testing.assert_array_equal(array, compact.arrays[name])


def test_a_copy_is_compact_too(compact, tmp_path):
    copy = compact.write(tmp_path / "copy")
    assert copy.hash == compact.hash
    assert {file.name for file in copy.path.iterdir()} == {
        file.name for file in compact.path.iterdir()
    }
    again = KnowledgeBase.from_bytes(compact.to_bytes())
    assert set(again.arrays) == ARRAYS
    assert again.hash == compact.hash
    again.verify()


def test_damage_is_found_before_anything_is_computed(compact):
    assert check_folder(compact.path)[0] == []
    file = compact.path / "ngram.spelling_grams.npy"
    grams = np.load(file)
    grams[0] = 30_000
    np.save(file, grams)
    with pytest.raises(BioclinError, match="spelling_grams"):
        KnowledgeBase.open(compact.path)
    meta = json.loads((compact.path / "meta.json").read_text("utf-8"))
    described = meta["arrays"]["ngram.spelling_grams"]
    del described["sha256"]  # as if nobody had recorded hashes
    (compact.path / "meta.json").write_text(json.dumps(meta), "utf-8")
    with pytest.raises(BioclinError, match="does not fit the others"):
        KnowledgeBase.open(compact.path)
    assert any("spelling_grams" in fault for fault in check_folder(compact.path)[0])
