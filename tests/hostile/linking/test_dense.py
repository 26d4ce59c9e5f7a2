"""Damaged vectors of names, and folders of them that somebody else has prepared."""

import itertools
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.encoders.names import NameEncoder
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.dense import sealing
from spacy_bioclin.linking.dense.embed import embed_names
from spacy_bioclin.linking.dense.index import GRAPH, META, VECTORS, DenseIndex
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Alias, Concept
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase

WORDS = ("rash", "spot", "lesion", "nodule", "patch", "scar", "mark", "vein", "eye", "nail")


def concepts():
    for i, one in enumerate(WORDS):
        yield Concept(f"C{i}", one, "en", tuple(Alias(f"{one} of {two}", "en") for two in WORDS))


@pytest.fixture(scope="module")
def encoder(tiny_encoder):
    return NameEncoder(str(tiny_encoder), precision="fp32", device="cpu")


@pytest.fixture(scope="module")
def made(encoder, tmp_path_factory):
    pytest.importorskip("faiss")
    folder = tmp_path_factory.mktemp("dense")
    embed_names(build_kb(concepts(), folder / "kb"), encoder, folder / "vectors", exact_limit=10)
    return folder


@pytest.fixture
def folder(fresh):
    return fresh()


@pytest.fixture
def fresh(made, tmp_path):
    """Copy the folder, as often as it is called."""
    numbers = itertools.count()
    return lambda: Path(shutil.copytree(made, tmp_path / f"copy{next(numbers)}"))


def search(folder, encoder):
    index = DenseIndex.open(folder / "vectors", KnowledgeBase.open(folder / "kb"), encoder)
    return index.search(encoder.encode(["rash", "nail of eye"]), 5)


def check(folder):
    command = ["kb", "check", str(folder / "kb"), "--vectors", str(folder / "vectors")]
    done = CliRunner().invoke(app, command)
    assert "Traceback" not in done.output
    return done


def reseal(path, **changes):
    """Write a description that fits the files: an attacker can, too."""
    meta = json.loads((path / META).read_text())
    plan = {key: value for key, value in meta.items() if key not in ("files", "sha256", "samples")}
    sealed = sealing.seal_files([path / name for name in meta["files"]], {**plan, **changes})
    (path / META).write_text(json.dumps(sealed))


def without_hashes(path):
    meta = json.loads((path / META).read_text())
    for key in ("hash", "sha256", "samples"):
        del meta[key]
    (path / META).write_text(json.dumps(meta))


def change(file, at, content):
    with file.open("r+b") as opened:
        opened.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        opened.write(content)


def test_every_file_has_a_hash(folder, encoder):
    meta = json.loads((folder / "vectors" / META).read_text())
    names = {file.name for file in (folder / "vectors").iterdir()} - {META}
    assert set(meta["sha256"]) == set(meta["files"]) == names and len(meta["hash"]) == 64
    done = check(folder)
    assert done.exit_code == 0 and "hashes" not in done.output, done.output


def test_a_changed_file_is_found(fresh, encoder, monkeypatch):
    for name in (VECTORS, GRAPH, "names.npy", "start.npy", "row_of_name.npy"):
        folder = fresh()
        file = folder / "vectors" / name
        change(file, -1, bytes([file.read_bytes()[-1] ^ 1]))  # the last byte of a graph is any
        with pytest.raises(BioclinError, match=rf"vectors/{name}: its SHA-256 is not the one"):
            search(folder, encoder)
        # Of a large file, a few pieces are read when it is opened, and all by the check.
        with monkeypatch.context() as patch:
            patch.setattr(sealing, "MIN_MAPPED", 16)
            done = check(folder)
        assert done.exit_code == 1 and f"vectors/{name}" in done.output, done.output


def test_pieces_of_a_large_file(folder, encoder, monkeypatch):
    """Zeros at the end, as a crash leaves them."""
    monkeypatch.setattr(sealing, "MIN_MAPPED", 16)
    reseal(folder / "vectors")
    search(folder, encoder)
    change(folder / "vectors" / VECTORS, -4, b"\0" * 4)
    with pytest.raises(BioclinError, match=rf"{VECTORS}: its SHA-256"):
        search(folder, encoder)


def test_a_changed_description_is_found(fresh, encoder):
    for key in ("encoder", "pooling", "sha256", "files"):
        folder = fresh()
        file = folder / "vectors" / META
        meta = json.loads(file.read_text())
        other = {} if key == "sha256" else {**meta["files"], "more": 1} if key == "files" else "cls"
        file.write_text(json.dumps({**meta, key: other}))
        with pytest.raises(BioclinError, match=r"meta\.json: its SHA-256|more is missing"):
            search(folder, encoder)


@pytest.mark.parametrize(("value", "graph"), [(np.nan, True), (np.inf, False)])
def test_what_is_not_a_number_never_links(folder, encoder, value, graph):
    path = folder / "vectors"
    vectors = np.fromfile(path / VECTORS, np.float16)
    vectors[3::16] = value
    vectors.tofile(path / VECTORS)
    if not graph:
        meta = json.loads((path / META).read_text())
        del meta["files"][GRAPH]
        (path / META).write_text(json.dumps(meta))
    reseal(path)
    with pytest.raises(BioclinError, match=r"vectors\.f16 has vectors that are not finite"):
        search(folder, encoder)
    index = DenseIndex.open(path, KnowledgeBase.open(folder / "kb"), encoder)
    with pytest.raises(BioclinError, match="not finite"):
        index.vectors_of([0])
    done = check(folder)
    assert done.exit_code == 1 and "vector 0 has not length 1" in done.output, done.output


def test_an_index_without_hashes(folder, encoder):
    found, _ = search(folder, encoder)
    without_hashes(folder / "vectors")
    assert np.array_equal(search(folder, encoder)[0], found)
    done = check(folder)
    assert done.exit_code == 0 and "no hashes recorded" in done.output, done.output


GRAPHS = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "another kind": lambda data: b"IxFI" + data[4:],
    "of other vectors": lambda data: data[:8] + b"\1" + data[9:],
    "another width": lambda data: data[:4] + b"\7" + data[5:],
    "rows beyond": lambda data: data.replace(b"\x05\0\0\0", b"\x05\0\0\x7f"),
    "negative rows": lambda data: data.replace(b"\x05\0\0\0", b"\x05\0\0\x80"),
    "endless lists": lambda data: data[:37] + b"\xff" * 8 + data[45:],
    "all ones": lambda data: data[:4] + b"\xff" * (len(data) - 4),
    "zeros": lambda data: data[:4] + bytes(len(data) - 4),
}


def test_a_damaged_graph_is_not_searched(fresh, encoder):
    """Even if its hash fits, or none is recorded: the exact search gives the same names."""
    for how, damage in GRAPHS.items():
        folder = fresh()
        path = folder / "vectors"
        exact = DenseIndex.open(path, KnowledgeBase.open(folder / "kb"), encoder)
        exact.meta["files"].pop(GRAPH)
        wanted = exact.search(encoder.encode(["rash", "nail of eye"]), 5)
        (path / GRAPH).write_bytes(damage((path / GRAPH).read_bytes()))
        reseal(path)
        with pytest.warns(UserWarning, match=r"graph\.faiss .*: all vectors are") as caught:
            found = search(folder, encoder)
        assert len(caught) == 1 and "\n" not in str(caught[0].message), how
        assert all(np.array_equal(*pair) for pair in zip(found, wanted, strict=True)), how


def test_random_damage_of_a_graph(folder, encoder):
    """faiss reads without looking; no change of a byte leads a search out of the graph."""
    path = folder / "vectors"
    data = (path / GRAPH).read_bytes()
    without_hashes(path)
    rng = np.random.default_rng(0)
    for _ in range(15):
        damaged = bytearray(data)
        for at in rng.integers(4, len(data), 3).tolist():
            damaged[at] = int(rng.integers(256))
        (path / GRAPH).write_bytes(damaged)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *args, **kwargs: None)
            names, _ = search(folder, encoder)
        assert (names >= 0).all()


CHANGES = {
    "width 0": {"width": 0},
    "no vectors": {"n_vectors": 0},
    "width of another": {"width": 8, "n_vectors": 220},
    "a list": {"kb": []},
    "endless": {"n_vectors": 10**30},
}


def test_damaged_description(fresh, encoder):
    for changes in CHANGES.values():
        folder = fresh()
        reseal(folder / "vectors", **changes)
        with pytest.raises(BioclinError, match=r"meta\.json is damaged|is damaged: copy"):
            search(folder, encoder)


def test_an_index_inside_its_knowledge_base_is_checked(folder):
    shutil.move(folder / "vectors", folder / "kb" / "vectors")
    command = ["kb", "check", str(folder / "kb")]
    assert CliRunner().invoke(app, command).exit_code == 0
    change(folder / "kb" / "vectors" / VECTORS, 0, b"\1\2")
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1 and f"vectors/{VECTORS}: its SHA-256" in done.output
    change(folder / "kb" / "vectors" / META, 0, b"[")
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1 and "not an index of vectors" in done.output


# -- where a run keeps what it has made -----------------------------------------------------------


def kill(_, n_done):
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["d.partial", ".d.vectors"])
def test_a_link_is_not_followed(made, encoder, tmp_path, name):
    own = tmp_path / "own"
    own.mkdir()
    (own / "plan.json").write_text("{}")
    (own / VECTORS).write_text("mine")
    (tmp_path / name).symlink_to(own)
    kb = KnowledgeBase.open(made / "kb")
    if name == "d.partial":
        embed_names(kb, encoder, tmp_path / "d")
    else:
        with pytest.raises(BioclinError, match=r"is not a folder of your own"):
            embed_names(kb, encoder, tmp_path / "d")
    assert {file.name for file in own.iterdir()} == {"plan.json", VECTORS}
    assert (own / VECTORS).read_text() == "mine"


def test_a_link_inside_is_not_followed(made, encoder, tmp_path):
    kb = KnowledgeBase.open(made / "kb")
    with pytest.raises(KeyboardInterrupt):
        embed_names(kb, encoder, tmp_path / "d", progress=kill)
    file = tmp_path / ".d.vectors" / "index" / VECTORS
    file.unlink()
    (tmp_path / "mine").write_text("mine")
    file.symlink_to(tmp_path / "mine")
    embed_names(kb, encoder, tmp_path / "d")
    assert (tmp_path / "mine").read_text() == "mine" and not (tmp_path / "d").is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["d", "mine"]


def test_what_is_not_its_own_is_kept(made, encoder, tmp_path):
    kb = KnowledgeBase.open(made / "kb")
    (tmp_path / ".d.vectors").mkdir()
    (tmp_path / ".d.vectors" / "thesis.txt").write_text("mine")
    with pytest.raises(BioclinError, match="is not what an interrupted run has left"):
        embed_names(kb, encoder, tmp_path / "d")
    assert (tmp_path / ".d.vectors" / "thesis.txt").read_text() == "mine"


def test_a_pipeline_is_not_replaced(made, encoder, tmp_path):
    """It has a meta.json too."""
    (tmp_path / "nlp").mkdir()
    for name in ("meta.json", "config.cfg"):
        (tmp_path / "nlp" / name).write_text("{}")
    command = ["embed-kb", made / "kb", "--encoder", encoder.folder, "-o", tmp_path / "nlp"]
    done = CliRunner().invoke(app, [*map(str, command), "--overwrite"])
    assert done.exit_code == 1 and "not an output of this command" in done.output
    assert sorted(each.name for each in (tmp_path / "nlp").iterdir()) == ["config.cfg", "meta.json"]


def test_vectors_that_are_not_finite_are_not_written(made, encoder, tmp_path, monkeypatch):
    kb = KnowledgeBase.open(made / "kb")
    with monkeypatch.context() as patch:
        patch.setattr(encoder, "encode", lambda names: np.full((len(names), 16), np.nan, "f4"))
        with pytest.raises(BioclinError, match=r"has not length 1.*another --precision"):
            embed_names(kb, encoder, tmp_path / "d")
    assert not (tmp_path / "d").exists()
    embed_names(kb, encoder, tmp_path / "d")
