"""Wheels: name, requirements, metadata and model card."""

import json
import shutil
import zipfile
from email.parser import HeaderParser

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.about import __version__
from spacy_bioclin.cli import app
from spacy_bioclin.encoders.names import NameEncoder
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.bundle import TrainedModel
from spacy_bioclin.linking.dense.embed import embed_names
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
from spacy_bioclin.packaging.build import build_wheel, check_name, check_version
from spacy_bioclin.packaging.card import Corpus, Provenance
from spacy_bioclin.vocab import make_requirement

FIGURES = {"tp": 8, "fp": 2, "fn": 0, "p": 0.8, "r": 1.0, "f": 8 / 9, "f_interval": [0.81, 0.95]}
STRICT = {"micro": FIGURES, "macro": {"f": 8 / 9}, "per_type": {"DISEASE": FIGURES}}
METRICS = {
    "corpus": {"name": "test.spacy", "docs": 4, "words": 90},
    "scores": {"ents_p": 0.8, "ents_r": 1.0, "ents_f": 8 / 9},
    "layers": {"ents": {"docs": 4, "strict": STRICT, "relaxed": STRICT, "confusion": []}},
    "speed": {"seconds": 1.0, "words_per_second": 90.0},
    "date": "2026-11-20T10:00:00",
    "versions": {"python": "3.11.7", "spacy": "3.8.18"},
    "commit": "abc1234",
}
PROVENANCE = Provenance(
    corpora=(Corpus("invented notes", "CC BY 4.0", cite="Nobody (2026)"),),
    encoder="tiny",
    encoder_license="MIT",
)


def read(wheel, name):
    with zipfile.ZipFile(wheel) as file:
        [found] = [entry for entry in file.namelist() if entry.endswith(name)]
        return file.read(found).decode("utf-8")


def test_wheel_is_named_as_spacy_names_it(demo_wheel):
    assert demo_wheel.name == "es_bioclin_demo-0.1-py3-none-any.whl"
    assert "es_bioclin_demo = es_bioclin_demo" in read(demo_wheel, "entry_points.txt")


def test_wheel_requires_the_library_and_what_the_pipeline_uses(demo_wheel):
    wanted = (
        HeaderParser().parsestr(read(demo_wheel, ".dist-info/METADATA")).get_all("Requires-Dist")
    )
    names = {requirement.split(">")[0].split("<")[0] for requirement in wanted}
    assert {"spacy-bioclin", "spacy-transformers"} <= names
    [ours] = [entry for entry in wanted if entry.startswith("spacy-bioclin")]
    assert set(ours.removeprefix("spacy-bioclin").split(",")) == set(
        make_requirement(__version__).removeprefix("spacy-bioclin").split(",")
    )


def test_meta_holds_scores_and_licences(demo_wheel):
    meta = json.loads(read(demo_wheel, "es_bioclin_demo-0.1/meta.json"))
    assert meta["performance"]["ents_f"] == pytest.approx(8 / 9)
    assert meta["license"] == "corpus: CC BY 4.0; encoder: MIT"
    assert (meta["labels"]["ner"], meta["labels"]["phi"]) == (["DISEASE"], ["PLACE"])
    [evaluation] = meta["bioclin"]["evaluations"]
    assert evaluation["layers"]["ents"]["strict"]["per_type"]["DISEASE"]["tp"] == 8
    assert meta["sources"][0] == {
        "name": "invented notes",
        "author": "Nobody (2026)",
        "license": "CC BY 4.0",
    }


def test_card_says_scores_licences_labels_and_limits(demo_wheel):
    card = read(demo_wheel, "MODEL_CARD.md")
    assert "| DISEASE | 8 | 10 | 80.00 | 100.00 | 88.89 | 81.00–95.00 |" in card
    assert '- `phi` (`doc.spans["phi"]`): PLACE' in card
    assert "- `ner` (`doc.ents`): DISEASE" in card
    assert "| Licence of the corpus | CC BY 4.0 |" in card
    assert "is not anonymous" in card
    assert "| components.transformer.model.window | 32 |" in card
    assert card == read(demo_wheel, "es_bioclin_demo-0.1/README.md")


@pytest.mark.usefixtures("_without_setuptools")
def test_several_corpora_with_their_scores_and_a_note(pipeline, tmp_path):
    phi = {
        "docs": 3,
        "annotated_labels": None,
        "strict": {**STRICT, "per_type": {"PLACE": FIGURES}},
    }
    clinical = {"docs": 4, "annotated_labels": ["DISEASE"], "strict": STRICT}
    scored = {
        "distemist": {**METRICS, "layers": {"ents": clinical}},
        "meddocan": {**METRICS, "layers": {"phi": phi}, "scores": {"spans_phi_f": 0.9}},
    }
    options = ["--corpus", "own notes", "--corpus-license", "of the hospital"]
    for name, metrics in scored.items():
        file = tmp_path / f"{name}.json"
        corpus = {"name": "test.spacy", "tasks": [name], "docs": 5, "words": 90}
        file.write_text(json.dumps({**metrics, "corpus": corpus}))
        options += ["--metrics", str(file), "--task", name]
    note = tmp_path / "note.md"
    note.write_text("It has read notes of {{ no }} hospital.\n", "utf-8")
    options += ["--name", "x", "--version", "1", "--note", str(note)]
    arguments = ["package", str(pipeline), str(tmp_path / "out"), *options]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    [made] = (tmp_path / "out").iterdir()
    card, meta = read(made, "MODEL_CARD.md"), json.loads(read(made, "x-1/meta.json"))
    assert "| DISEASE | doc.ents | distemist |\n" in card
    assert '| PLACE | doc.spans["phi"] | meddocan |\n' in card
    assert (
        "### `distemist`, doc.ents\n\n4 of 5 documents (90 words) are annotated for this " in card
    )
    assert "layer, for these labels: DISEASE.\n" in card
    assert "Evaluated on distemist, meddocan on 2026-11-20 with python 3.11.7" in card
    assert '### `meddocan`, doc.spans["phi"]\n\n3 of 5 documents (90' in card
    assert "| Licence of the corpus | CC BY 4.0; of the hospital |" in card
    assert "| DISEASE | 8 | 10 |" in card and "| PLACE | 8 | 10 |" in card
    assert "- Corpus: distemist. Licence: CC BY 4.0. Cite: DisTEMIST (Miranda" in card
    assert "- Corpus: own notes. Licence: of the hospital.\n- Encoder" in card
    assert card.endswith("## About this pipeline\n\nIt has read notes of {{ no }} hospital.\n")
    names = ["distemist", "meddocan", "own notes", "not stated"]
    assert [source["name"] for source in meta["sources"]] == names
    assert meta["license"].startswith("corpus distemist: CC BY 4.0; corpus meddocan: CC BY 4.0; ")
    assert meta["performance"]["distemist_ents_f"] == pytest.approx(8 / 9)
    assert meta["performance"]["meddocan_spans_phi_f"] == 0.9
    for wrong, message in (
        ([*arguments, "--corpus", "more"], "give a licence for each corpus"),
        ([*arguments, "--task", "none"], "--task is 'none'"),
        ([*arguments, "--note", str(tmp_path / "none.md")], "none.md: cannot be read"),
    ):
        done = CliRunner().invoke(app, wrong)
        assert isinstance(done.exception, BioclinError) or message in done.output
        assert message in f"{done.exception} {done.output}"


@pytest.mark.usefixtures("_without_setuptools")
def test_without_metrics_the_card_says_so(pipeline, tmp_path):
    made = build_wheel(pipeline, tmp_path, name="x", version="1.0.0", provenance=Provenance())
    assert "No scores were given" in read(made, "MODEL_CARD.md")
    assert "Licence of the corpus | not stated" in read(made, "MODEL_CARD.md")


@pytest.mark.parametrize("carry", [pytest.param(True, marks=pytest.mark.slow), False])
def test_knowledge_base_travels_with_its_licence(tmp_path, carry, request):
    if not carry:
        request.getfixturevalue("_without_setuptools")
    source = {"file": "hospital.csv", "format": "table", "licence": "CC BY 4.0"}
    meta = {"name": "own list", "version": "3", "sources": [source]}
    build_kb([Concept("K1", "neumonía", "es")], tmp_path / "kb", meta=meta)
    nlp = spacy.blank("es")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "DISEASE", "pattern": "neumonía"}])
    nlp.add_pipe("bioclin_linker", config={"kb": str(tmp_path / "kb"), "carry": carry})
    nlp.to_disk(tmp_path / "pipeline")
    made = build_wheel(
        tmp_path / "pipeline", tmp_path / "out", name="x", version="1", provenance=PROVENANCE
    )
    card, meta = read(made, "MODEL_CARD.md"), json.loads(read(made, "x-1/meta.json"))
    inside = "inside the package" if carry else "not inside the package"
    assert f"`bioclin_linker`: own list 3, 1 concepts, 1 names, {inside} (hash " in card
    assert "  - hospital.csv: CC BY 4.0\n" in card
    assert "for span in doc.ents:\n    print(span.start_char, span.end_char, span.kb_id_" in card
    assert meta["license"].endswith("; knowledge base own list: CC BY 4.0") == carry
    with zipfile.ZipFile(made) as file:
        folder = "es_bioclin_x/es_bioclin_x-1"
        assert (f"{folder}/bioclin_linker/kb/names.npy" in file.namelist()) == carry
        file.extractall(tmp_path / "installed")
        texts = [file.read(name) for name in file.namelist() if name.endswith((".cfg", ".json"))]
        assert any(str(tmp_path / "kb").encode() in text for text in texts) != carry
    if carry:  # works where the knowledge base it was made from is not
        (tmp_path / "kb").rename(tmp_path / "gone")
    doc = spacy.load(tmp_path / "installed" / folder)("Ingresa por neumonía.")
    assert [ent.kb_id_ for ent in doc.ents] == ["K1"]


@pytest.mark.usefixtures("_without_setuptools")
def test_no_path_of_what_the_linker_carries_is_in_the_package(tiny_encoder, tmp_path):
    kb = build_kb([Concept("K1", "cold"), Concept("K2", "flu")], tmp_path / "kb")
    names = NameEncoder(str(tiny_encoder), precision="fp32", device="cpu")
    embed_names(kb, names, tmp_path / "vectors")
    ranker = TrainedModel.untrained().ranker
    TrainedModel(ranker, [["cold", "K2", 0, 9]]).write(tmp_path / "model")
    parts = {"kb": "kb", "meanings": "vectors", "model": "model"}
    config = {part: str(tmp_path / folder) for part, folder in parts.items()}
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "DISEASE", "pattern": "cold"}])
    nlp.add_pipe("bioclin_linker", config={**config, "encoder": str(tiny_encoder)})
    expected = nlp("a cold").ents[0]._.candidates
    nlp.to_disk(tmp_path / "pipeline")
    made = build_wheel(
        tmp_path / "pipeline", tmp_path / "out", name="x", version="1", provenance=PROVENANCE
    )
    with zipfile.ZipFile(made) as file:
        texts = [file.read(name) for name in file.namelist()]
        for path in (tmp_path, tiny_encoder):
            assert not any(str(path).encode() in text for text in texts)
        file.extractall(tmp_path / "installed")
    for folder in parts.values():
        shutil.rmtree(tmp_path / folder)
    loaded = spacy.load(tmp_path / "installed/en_bioclin_x/en_bioclin_x-1")
    assert {candidate.kb_id for candidate in expected} == {"K1", "K2"}
    assert loaded("a cold").ents[0]._.candidates == expected


def test_mistakes_are_errors_before_anything_is_written(pipeline, tmp_path):
    with pytest.raises(BioclinError, match="not a pipeline"):
        build_wheel(tmp_path, tmp_path / "o", name="x", version="1", provenance=Provenance())
    for name in ("Demo", "a-b", "a__b", "", "ñ"):
        with pytest.raises(BioclinError, match="--name"):
            build_wheel(pipeline, tmp_path / "o", name=name, version="1", provenance=Provenance())
    assert not (tmp_path / "o").exists()


def test_names_and_versions():
    assert check_name("demo") == check_name("bioclin_demo") == "bioclin_demo"
    assert check_version("1.0.0-rc.1") == "1.0.0rc1"
    with pytest.raises(BioclinError, match="--version"):
        check_version("newest")
    assert make_requirement("0.9.3") == "spacy-bioclin>=0.9.3,<0.10"
