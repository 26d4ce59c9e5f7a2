import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.encoders.names import NameEncoder
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.dense import embed
from spacy_bioclin.linking.dense.embed import embed_names
from spacy_bioclin.linking.dense.index import META, VECTORS, DenseIndex
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from tests.util import make_encoder

COLOURS = ("red", "green", "blue", "grey", "white", "black")
THINGS = ("rash", "spot", "lesion", "nodule", "patch", "scar", "mark", "vein", "eye", "nail")


def make_kb(folder: Path) -> KnowledgeBase:
    concepts = [
        Concept(f"{colour}-{thing}", f"{thing.title()}, {colour}", "en", (
            Alias(f"{colour} {thing}s", "en"),
            Alias(f"{thing} that is all {colour}", "en"),
        ))
        for colour in COLOURS
        for thing in THINGS
    ]  # fmt: skip
    # Two concepts share a name.
    concepts.append(Concept("other", "Another red rash", "en", (Alias("red rashs", "en"),)))
    return build_kb(iter(concepts), folder, report=SkipReport())


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    return make_kb(tmp_path_factory.mktemp("kb") / "kb")


@pytest.fixture(scope="module")
def encoder(tiny_encoder: Path) -> NameEncoder:
    return NameEncoder(str(tiny_encoder), precision="fp32", device="cpu")


@pytest.fixture(scope="module")
def index(
    kb: KnowledgeBase, encoder: NameEncoder, tmp_path_factory: pytest.TempPathFactory
) -> DenseIndex:
    return embed_names(kb, encoder, tmp_path_factory.mktemp("dense") / "dense")


def test_names_that_differ_in_case_share_a_vector(encoder: NameEncoder, tmp_path: Path) -> None:
    concept = Concept("A", "Red rash", "en", (Alias("RED RASH", "en"), Alias("rash", "en")))
    kb = build_kb([concept], tmp_path / "kb", report=SkipReport())
    index = embed_names(kb, encoder, tmp_path / "dense")
    assert (len(kb.names), len(index)) == (3, 2)
    assert np.array_equal(*index.vectors_of([0, 1]))


def test_each_way_to_write_a_name_has_a_vector(
    kb: KnowledgeBase, encoder: NameEncoder, index: DenseIndex
) -> None:
    names = list(kb.names)
    assert len(index) == len(set(names)) < len(names)
    assert np.allclose(index.vectors_of(range(len(names))), encoder.encode(names), atol=1e-3)


def test_search_finds_what_comparing_with_all_names_finds(
    kb: KnowledgeBase, index: DenseIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spacy_bioclin.linking.dense.index.ROWS", 7)
    monkeypatch.setattr("spacy_bioclin.linking.dense.index.QUERIES", 3)
    queries = index.encode(["red rashs", "spot", "the blue nail", "white", "?"])
    names, cosines = index.search(queries, 12)
    assert names.dtype == np.int32
    assert cosines.dtype == np.float32
    vectors = index.vectors_of(range(len(kb.names)))
    for query, found, cosine in zip(queries, names, cosines, strict=True):
        expected = vectors @ query
        assert np.allclose(cosine, np.sort(expected)[::-1][:12], atol=1e-6)
        assert np.allclose(index.vectors_of(found) @ query, cosine, atol=1e-6)
        assert len(set(found.tolist())) == 12
    both = {kb.ids[kb.name_concept[name]] for name in names[0][:2]}
    assert both == {"red-rash", "other"}  # they share the nearest vector
    assert cosines[0, 0] == cosines[0, 1]


def test_more_than_all_names_are_padded(kb: KnowledgeBase, index: DenseIndex) -> None:
    names, cosines = index.search(index.encode(["red rash", "eye"]), 500)
    assert (np.sort(names)[:, -len(kb.names) :] == np.arange(len(kb.names))).all()
    assert (names[:, len(kb.names) :] == -1).all()
    assert (cosines[:, len(kb.names) :] == 0).all()
    assert index.search(np.zeros((0, 16), np.float32), 5)[0].shape == (0, 5)


def test_graph_gives_the_names_of_the_exact_search(
    kb: KnowledgeBase, encoder: NameEncoder, index: DenseIndex, tmp_path: Path
) -> None:
    pytest.importorskip("faiss")
    graph = embed_names(kb, encoder, tmp_path / "graph", exact_limit=10)
    assert graph._graph is not None
    assert index._graph is None
    queries = encoder.encode(["red rash", "spot", "the blue nail", "white"])
    exact, approximate = index.search(queries, 10), graph.search(queries, 10)
    common = [len(set(a) & set(b)) for a, b in zip(exact[0], approximate[0], strict=True)]
    assert sum(common) >= 0.9 * exact[0].size
    for query, names, cosines in zip(queries, *approximate, strict=True):
        assert np.allclose(graph.vectors_of(names) @ query, cosines, atol=1e-6)
        assert (np.diff(cosines) <= 0).all()


def test_faiss_that_is_missing_is_named(
    kb: KnowledgeBase, encoder: NameEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(BioclinError, match=r"spacy-bioclin\[dense\]"):
        embed_names(kb, encoder, tmp_path / "graph", exact_limit=10)
    assert not list(tmp_path.iterdir())


def test_killed_run_goes_on_and_gives_the_same_vectors(
    kb: KnowledgeBase,
    encoder: NameEncoder,
    index: DenseIndex,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embed, "BLOCK", 16)
    whole = embed_names(kb, encoder, tmp_path / "whole")

    def kill(_: float, n_done: int) -> None:
        if n_done == 48:
            raise KeyboardInterrupt

    folder = tmp_path / "dense"
    with pytest.raises(KeyboardInterrupt):
        embed_names(kb, encoder, folder, progress=kill)
    assert not folder.exists()
    work = tmp_path / ".dense.vectors"
    assert work.stat().st_mode & 0o777 == 0o700
    with (work / "index" / VECTORS).open("ab") as file:
        file.write(b"half a block")
    told: list[int] = []
    resumed = embed_names(kb, encoder, folder, progress=lambda _, n: told.append(n))
    assert told[0] == 64
    assert told[-1] == len(resumed) == len(index)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["dense", "whole"]
    assert (folder / VECTORS).read_bytes() == (whole.path / VECTORS).read_bytes()


def test_what_another_encoder_left_is_not_used(
    kb: KnowledgeBase, encoder: NameEncoder, tmp_path: Path
) -> None:
    work = tmp_path / ".dense.vectors"
    (work / "index").mkdir(parents=True)
    (work / "index" / VECTORS).write_bytes(bytes(16 * 2 * len(kb.names)))
    (work / "plan.json").write_text('{"encoder": "another"}')
    index = embed_names(kb, encoder, tmp_path / "dense")
    assert np.abs(index.vectors_of([0])).max() > 0


def test_folder_is_of_its_knowledge_base_and_encoder(
    kb: KnowledgeBase, encoder: NameEncoder, index: DenseIndex, tmp_path: Path
) -> None:
    again = DenseIndex.open(index.path, kb, encoder)
    assert np.array_equal(again.vectors_of([3]), index.vectors_of([3]))
    smaller = build_kb([Concept("a", "red rash")], tmp_path / "kb", report=SkipReport())
    with pytest.raises(BioclinError, match="belongs to the knowledge base"):
        DenseIndex.open(index.path, smaller)
    other = NameEncoder(str(make_encoder(tmp_path / "electra", "electra")), device="cpu")
    with pytest.raises(BioclinError, match="was built with the encoder"):
        DenseIndex.open(index.path, kb, other)
    pooled = NameEncoder(encoder.folder, pooling="cls", device="cpu")
    with pytest.raises(BioclinError, match='pooling = "mean"'):
        DenseIndex.open(index.path, kb, pooled)
    with pytest.raises(BioclinError, match="without its encoder"):
        DenseIndex.open(index.path, kb).encode(["a"])


def test_folders_that_are_no_index_are_refused(
    kb: KnowledgeBase, encoder: NameEncoder, tmp_path: Path
) -> None:
    with pytest.raises(BioclinError, match=r"meta.json cannot be read.*embed-kb"):
        DenseIndex.open(tmp_path, kb)
    index = embed_names(kb, encoder, tmp_path / "dense")
    meta = json.loads((index.path / META).read_text())
    (index.path / META).write_text(json.dumps({**meta, "format": 0}))
    with pytest.raises(BioclinError, match="format 0"):
        DenseIndex.open(index.path, kb)
    (index.path / META).write_text(json.dumps(meta))
    with (index.path / VECTORS).open("ab") as file:
        file.truncate(100)
    with pytest.raises(BioclinError, match="missing or cut off"):
        DenseIndex.open(index.path, kb)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("mine")
    with pytest.raises(BioclinError, match="not an output of this command"):
        embed_names(kb, encoder, tmp_path / "own")
    assert (tmp_path / "own" / "thesis.txt").exists()


def test_command_writes_an_index_twice(
    kb: KnowledgeBase, encoder: NameEncoder, tmp_path: Path
) -> None:
    command = ["embed-kb", str(kb.path), "--encoder", encoder.folder, "-o", str(tmp_path / "d")]
    command.append("--overwrite")
    for _ in range(2):
        done = CliRunner().invoke(app, [*command, "--precision", "fp32"])
        assert done.exit_code == 0, done.output
        assert f"vectors for {len(kb.names)} names" in done.output
    assert len(DenseIndex.open(tmp_path / "d", kb, encoder)) > 100
