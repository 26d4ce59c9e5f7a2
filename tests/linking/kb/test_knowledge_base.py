"""A knowledge base in a folder, as bytes, in another process; whatever is wrong with the folder."""

import json
import pickle
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.kb.storage import ARRAYS, FORMAT
from spacy_bioclin.linking.names.columns import StringBuffer, pack_strings, starts
from spacy_bioclin.linking.names.normalize import name_key


@settings(max_examples=40)
@given(st.lists(st.text()))
def test_strings_round_trip(texts):
    packed = pack_strings(texts)
    assert list(packed) == texts == packed[:]
    assert [packed[i] for i in range(-len(texts), 0)] == texts
    ordered = pack_strings(sorted(set(texts)))
    for i, text in enumerate(ordered):
        assert ordered.find(text) == i
    assert ordered.find("\ud800") is None


@settings(max_examples=40)
@given(st.lists(st.text(max_size=4), min_size=1), st.data())
def test_strings_take(texts, data):
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1)))
    taken = pack_strings(texts).take(np.array(rows, np.int64))
    assert list(taken) == [texts[i] for i in rows]


def test_strings_take_in_blocks(monkeypatch):
    monkeypatch.setattr("spacy_bioclin.linking.names.columns.BLOCK", 2)
    texts = ["a", "", "cé", "dd", "e"]
    assert list(pack_strings(texts)) == texts
    assert list(pack_strings(texts).take(np.array([4, 2, 2, 1, 0]))) == ["e", "cé", "cé", "", "a"]


def test_strings_outside():
    with pytest.raises(IndexError):
        pack_strings(["a"])[1]
    assert list(StringBuffer().strings()) == []
    assert starts([]).tolist() == [0]


def test_concepts_come_back_whole_and_sorted(kb, concepts):
    assert list(kb.ids) == ["D1", "D10", "D2", "D3"]
    assert list(kb) == sorted(concepts, key=lambda concept: concept.id)
    assert len(kb) == 4 and "D10" in kb and "D4" not in kb and "" not in kb


def test_alternative_ids(kb):
    assert kb.concept("D31") == kb.concept("D3")
    assert kb.concept("D3").alternative_ids == ("D30", "D31")
    assert kb.concept("D32") is None and kb.number("D30") == 3


def test_names_are_found(kb):
    for row, name in enumerate(kb.names):
        assert row in kb.exact([name.upper()])[0]
    (found,) = kb.same_key([name_key("de mamas, neoplasias")])
    assert "Neoplasia de mama" in [kb.names[row] for row in found]
    assert [len(rows) for rows in kb.exact(["neoplasia", "", "no such name"])] == [1, 0, 0]
    assert kb.exact([]) == []


def test_names_that_share_a_key(tmp_path):
    kb = build_kb([Concept("a", "Fiebre de Malta"), Concept("b", "malta, fiebre")], tmp_path / "kb")
    key = name_key("la fiebre de malta")
    (found,) = kb.same_key([key])
    assert sorted(kb.name_concept[found].tolist()) == [0, 1]
    # The two have one row in the index of similar names.
    rows, _ = kb.similar.search([key], 2)
    assert rows.tolist() == [[0, -1]] and kb.names_of_key(0).tolist() == [0, 1]


def test_opening_reads_what_was_written(kb, tmp_path):
    again = KnowledgeBase.open(str(tmp_path / "kb"), hash=kb.hash)
    again.verify()
    assert list(again) == list(kb) and again.meta == kb.meta
    assert set(again.arrays) == ARRAYS


def test_bytes_and_pickle(kb):
    for other in (KnowledgeBase.from_bytes(kb.to_bytes()), pickle.loads(pickle.dumps(kb))):
        other.verify()
        assert list(other) == list(kb) and other.hash == kb.hash
        np.testing.assert_array_equal(
            other.similar.search(["depresion"], 2)[0], kb.similar.search(["depresion"], 2)[0]
        )
    assert len(pickle.dumps(kb)) < 1000, "another process maps the files"
    assert pickle.loads(pickle.dumps(KnowledgeBase.from_bytes(kb.to_bytes()))).hash == kb.hash


def test_a_large_one_is_mapped_and_searched(tmp_path):
    concepts = (Concept(f"C{i}", f"name{i} of {i % 97}") for i in range(12_000))
    kb = build_kb(concepts, tmp_path / "kb")
    assert isinstance(kb.arrays["ngram.word_names"].base, np.memmap)
    for one in (kb, KnowledgeBase.from_bytes(kb.to_bytes())):
        found, _ = one.similar.search(["77 name77"], 1)
        assert one.names[one.names_of_key(found[0, 0])[0]] == "name77 of 77"


def test_pickle_of_one_that_was_built_anew(kb, tmp_path):
    pickled = pickle.dumps(kb)
    build_kb([Concept("x", "another")], tmp_path / "kb")
    with pytest.raises(BioclinError, match="hash"):
        pickle.loads(pickled)


def test_writing_over_another(kb, concepts, tmp_path):
    before = kb.hash
    newer = build_kb(concepts[:2], tmp_path / "kb")
    assert len(KnowledgeBase.open(tmp_path / "kb")) == 2 and newer.hash != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kb"]
    assert list(kb.ids) == ["D1", "D10", "D2", "D3"], "who had opened the old one keeps it"


def test_writing_after_a_run_that_was_killed(kb, concepts, tmp_path, monkeypatch):
    partial = tmp_path / ".kb.x.partial"
    partial.mkdir()
    (tmp_path / "kb").rename(partial / "kb.old")
    (partial / "names.npy").write_bytes(b"half")
    assert len(build_kb(concepts, tmp_path / "kb")) == len(kb)
    assert {path.name for path in tmp_path.iterdir()} == {"kb", partial.name}
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(BioclinError, match="current folder"):
        build_kb(concepts, ".")


def test_what_is_no_knowledge_base_stays(tmp_path):
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("x")
    for name, message in (("kb", "not an output"), ("file", "is a file")):
        with pytest.raises(BioclinError, match=message):
            build_kb([Concept("a", "name")], tmp_path / name)
    assert (tmp_path / "kb" / "thesis.txt").read_text() == "years of work"


def test_a_write_that_fails_leaves_the_old_one(kb, concepts, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="disk is full"):
        build_kb(concepts[:1], tmp_path / "kb")
    assert KnowledgeBase.open(tmp_path / "kb").hash == kb.hash
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kb"]


def test_hash_tells_knowledge_bases_apart(concepts, tmp_path):
    hashes = {
        build_kb(concepts[:n], tmp_path / "kb", meta=meta).hash
        for n in (2, 3)
        for meta in ({"name": "a"}, {"name": "b"})
    }
    assert len(hashes) == 4
    assert build_kb(concepts[:2], tmp_path / "other", meta={"name": "a"}).hash in hashes


def edit_meta(folder, **changes):
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    (folder / "meta.json").write_text(json.dumps({**meta, **changes}), "utf-8")


def truncate(path):
    path.write_bytes(path.read_bytes()[:-9])


DAMAGE = [
    (lambda folder: (folder / "meta.json").unlink(), "is not a knowledge base"),
    (lambda folder: (folder / "meta.json").write_text("{"), "is damaged"),
    (lambda folder: (folder / "meta.json").write_text("[]"), "names no format"),
    (lambda folder: edit_meta(folder, format=FORMAT + 1), f"reads {FORMAT}: build it again"),
    (lambda folder: edit_meta(folder, arrays={}), "is damaged"),
    (lambda folder: edit_meta(folder, types=None), "is damaged .types"),
    (lambda folder: (folder / "names.npy").unlink(), "names.npy is missing, cut off"),
    (lambda folder: truncate(folder / "names.npy"), "names.npy is missing, cut off"),
    (lambda folder: (folder / "ids.npy").write_bytes(b""), "ids.npy is missing, cut off"),
    (lambda folder: np.save(folder / "ids.npy", np.zeros(3)), "of another knowledge base"),
    (lambda folder: np.save(folder / "name_lang.npy", np.ones(8, np.uint8)), "it was changed"),
]


def test_damaged_folders(kb, tmp_path):
    for i, (damage, message) in enumerate(DAMAGE):
        folder = shutil.copytree(kb.path, tmp_path / str(i))
        damage(folder)
        with pytest.raises(BioclinError, match=message):
            KnowledgeBase.open(folder)


def test_verify_finds_a_change(kb, tmp_path):
    edit_meta(tmp_path / "kb", name="another")
    changed = KnowledgeBase.open(tmp_path / "kb")
    with pytest.raises(BioclinError, match="it was changed"):
        changed.verify()


def test_another_hash_than_the_pipeline_has(kb, tmp_path):
    with pytest.raises(BioclinError, match="kb_hash"):
        KnowledgeBase.open(tmp_path / "kb", hash="0" * 64)


def test_bytes_that_are_something_else():
    for data in (b"", b"\x80", b"nonsense", b"\x81\xa4meta\x01"):
        with pytest.raises(BioclinError, match="no knowledge base"):
            KnowledgeBase.from_bytes(data)
