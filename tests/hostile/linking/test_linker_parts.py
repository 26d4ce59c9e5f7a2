"""Damaged parts of a linker in a package: trained model, description, vectors of names."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Span

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.bundle import TrainedModel
from spacy_bioclin.linking.dense.index import load_numbers
from spacy_bioclin.linking.entity_linker.hooks import make_knowledge_base
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept

ROW = ["asthma", "A", 0, 2]
LEARNED = {
    "endless count": [["asthma", "A", 0, 10**12]],
    "no count": [["asthma", "A", 0, 0]],
    "negative fold": [["asthma", "A", -1, 1]],
    "fold beyond": [["asthma", "A", 99, 1]],
    "short": [["asthma"]],
    "numbers": [[1, 2, 0, 1]],
    "not a number": [["asthma", "A", 0, float("nan")]],
    "nothing": [None],
    "an object": {"a": 1},
}


def model(folder, learned=(ROW,), **weights):
    made = TrainedModel.untrained()
    made.ranker["weights"] |= weights
    made.ranker["weights"] = {k: v for k, v in made.ranker["weights"].items() if v != "missing"}
    TrainedModel(made.ranker, learned).write(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("parts") / "made"
    build_kb([Concept("A", "asthma", "en"), Concept("B", "flu", "en")], tmp_path / "kb")
    model(tmp_path / "model")
    return tmp_path


@pytest.fixture
def folder(made, tmp_path):
    """A copy, to be damaged."""
    return Path(shutil.copytree(made, tmp_path / "copy"))


def refused(act, match, name):
    """Check that there is an error of one line with some words, and return it."""
    with pytest.raises(BioclinError) as caught:
        act()
    shown = str(caught.value)
    assert re.search(match, shown) and "\n" not in shown, (name, shown)
    return shown


def link(folder):
    nlp = spacy.blank("en")
    settings = {"kb": str(folder / "kb"), "model": str(folder / "model")}
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "X", "pattern": "asthma"}])
    nlp.add_pipe("bioclin_linker", config=settings)
    assert [ent.kb_id_ for ent in nlp("asthma").ents] == ["A"]
    return nlp


@pytest.fixture(scope="module")
def use():
    """Use a linker in a pipeline that is made once: with the parts of a folder, or a saved one."""
    nlp = spacy.blank("en")

    def use(folder=None, *, saved=None):
        parts = {"kb": str(folder / "kb"), "model": str(folder / "model")} if folder else {}
        linker = nlp.create_pipe("bioclin_linker", config=parts)
        if saved:
            linker.from_disk(saved)
        doc = nlp("asthma")
        doc.set_ents([Span(doc, 0, 1, "X")])
        assert [ent.kb_id_ for ent in linker(doc).ents] == ["A"]

    return use


def test_whole_parts(folder):
    link(folder)


def test_damaged_mentions(folder, use):
    use(folder)
    for name, learned in LEARNED.items():
        model(folder / "model", learned)
        match = r"learned\.json|holds no trained linker"
        assert "asthma" not in refused(lambda: use(folder), match, name)


WEIGHTS = [
    {"direct": [float("nan")] * 14},
    {"direct": [float("inf")] * 14},
    {"direct": [1e300] * 14},
    {"direct": [1.0]},
    {"hidden": []},
    {"hidden_bias": 1.0},
    {"nil": "high"},
    {"out": "missing"},
    {"scale": [[1.0], [1.0, 2.0]]},
]


def test_damaged_rankers(folder, use):
    for weights in WEIGHTS:
        model(folder / "model", **weights)
        refused(lambda: use(folder), r"ranker\.json", weights)


def test_damaged_codes(folder, use):
    untrained = TrainedModel.untrained()
    for codes in (b"x", b"x" * 20, b"\xff" * 100, bytes(8)):
        TrainedModel(untrained.ranker, [ROW], codes).write(folder / "model")
        refused(lambda: use(folder), r"codes\.safetensors is damaged", codes)
    untrained.write(folder / "model")  # the file of another model does not stay
    use(folder)


CONTENTS = ["", "[]", "{", "[" * 10**5, '{"carried": 1}', "\0", "null"]
MESSAGES = {
    "linker.json": r"linker\.json is damaged",
    "model/ranker.json": "holds no trained linker|is damaged",
    "model/learned.json": "holds no trained linker|is damaged",
}


def test_damaged_descriptions(folder, use):
    link(folder).to_disk(folder / "pipeline")
    saved = folder / "pipeline" / "bioclin_linker"
    use(saved=saved)
    for name, message in MESSAGES.items():
        file = saved / name
        whole = file.read_bytes()
        for content in CONTENTS:
            if (name, content) == ("model/learned.json", "[]"):
                continue  # nothing was learned
            file.write_text(content)
            refused(lambda: use(saved=saved), message, (name, content[:20]))
        if name == "linker.json":
            refused(lambda: spacy.load(folder / "pipeline"), message, "a whole pipeline")
        file.write_bytes(whole)


def test_a_damaged_knowledge_base_in_a_pipeline(folder):
    """It is an error when the pipeline is loaded, before any note."""
    link(folder).to_disk(folder / "pipeline")
    file = folder / "pipeline" / "bioclin_linker" / "kb" / "name_concept.npy"
    np.save(file, np.array([1, 0], np.int32))
    with pytest.raises(BioclinError, match=r"name_concept\.npy"):
        spacy.load(folder / "pipeline")


def test_damaged_bytes(folder):
    nlp = spacy.blank("en")
    data = link(folder).get_pipe("bioclin_linker").to_bytes()
    for broken in (b"", data[:50], b"\x91\x01", b"\x80", b"\xc6\xff\xff\xff\xff"):
        with pytest.raises(BioclinError):
            nlp.create_pipe("bioclin_linker").from_bytes(broken)


ARRAYS = {
    "names.npy": np.array([0, 2, 1], np.int32),
    "start.npy": np.array([0, 2, 3], np.int64),
    "row_of_name.npy": np.array([0, 1, 0], np.int32),
}
DAMAGE = {
    "cut off": lambda file, array: os.truncate(file, file.stat().st_size - 1),
    "empty": lambda file, array: file.write_bytes(b""),
    "large": lambda file, array: np.save(file, np.full_like(array, 2**30)),
    "negative": lambda file, array: np.save(file, np.full_like(array, -1)),
    "floats": lambda file, array: np.save(file, array.astype(np.float32)),
    "objects": lambda file, array: np.save(file, array.astype(object), allow_pickle=True),
    "longer": lambda file, array: np.save(file, np.append(array, array)),
    "matrix": lambda file, array: np.save(file, array[None]),
    "device": lambda file, array: (file.unlink(), file.symlink_to("/dev/zero")),
    "pipe": lambda file, array: (file.unlink(), os.mkfifo(file)),
}


def test_damaged_numbers_of_vectors(tmp_path):
    for name, array in ARRAYS.items():
        np.save(tmp_path / name, array)
    load_numbers(tmp_path, 3, 2)
    for how, damage in DAMAGE.items():
        for name, array in ARRAYS.items():
            damage(tmp_path / name, array)
            refused(lambda: load_numbers(tmp_path, 3, 2), f"{name} is damaged", how)
            (tmp_path / name).unlink()
            np.save(tmp_path / name, array)


def test_json_of_the_model_is_plain(folder):
    assert json.loads((folder / "model" / "learned.json").read_text()) == [ROW]


SETTINGS = {
    "a list": [],
    "a number": 1,
    "nothing": {},
    "a number for the folder": {"kb": 7},
    "a list for the encoder": {"encoder": ["x"]},
    "a text for yes": {"carry": "yes"},
    "yes for a number": {"width": True},
    "a fraction": {"n_candidates": 2.5},
    "no candidates": {"n_candidates": 0},
    "candidates without end": {"n_candidates": 10**30},
    "a width without end": {"width": 10**12},
    "one that is unknown": {"import": "os"},
    "NUL": {"kb": "kb\0"},
    "a folder that is not there": {"kb": "x" * 5000},
    "no model": {"model": "nowhere"},
    "deep": "[" * 10**5,
    "endless": '{"width": 1e999}',
}


def test_damaged_settings_of_spacys_linker(folder):
    vocab = spacy.blank("en").vocab
    saved = folder / "saved"
    make_knowledge_base(str(folder / "kb"))(vocab).to_disk(saved)
    file = saved / "settings.json"
    whole = json.loads(file.read_text())

    def load():
        make_knowledge_base()(vocab).from_disk(saved)

    load()
    for name, change in SETTINGS.items():
        if isinstance(change, dict):
            change = {**whole, **change} if change else change
        file.write_text(change if isinstance(change, str) else json.dumps(change))
        assert len(refused(load, "", name).replace("x" * 5000, "")) < 400
    for key in whole:
        file.write_text(json.dumps({k: v for k, v in whole.items() if k != key}))
        refused(load, rf"settings\.json is damaged \('{key}'", key)


def test_damaged_bytes_of_spacys_linker(folder):
    vocab = spacy.blank("en").vocab
    kb = make_knowledge_base()(vocab).from_bytes(
        make_knowledge_base(str(folder / "kb"))(vocab).to_bytes()
    )
    for data in (b"", b"\x91\x01", b"\x81\x01\x01", b"\x80", b"\xc6\xff\xff\xff\xff"):
        with pytest.raises(BioclinError):
            kb.from_bytes(data)
        assert len(kb.get_alias_candidates("asthma")) > 0  # as it was
