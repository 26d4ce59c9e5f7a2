"""The leaderboard and the cards of pipelines, on a pipeline of rules and invented notes."""

import json
import sys

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_bioclin.deid.labels import scheme_labels
from spacy_bioclin.types import GOLD_KEY
from tests.markdown import ROOT

pytestmark = pytest.mark.slow
NOTE = "Ingresa Rosalinda Etxeberria con asma y fiebre. Tel. 600 123 456.\n"
OURS = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}


def make_doc(vocab, task, layer, spans, annotated):
    layers = {layer: [[NOTE.index(s), NOTE.index(s) + len(s), label, ""] for s, label in spans]}
    doc = spacy.blank("es", config=OURS, vocab=vocab).make_doc(NOTE)
    doc.spans[layer] = [doc.char_span(*span[:3]) for span in layers[layer]]
    gold = {"id": task, "task": task, "layers": layers}
    doc.user_data[GOLD_KEY] = gold | ({"annotated": {layer: annotated}} if annotated else {})
    return doc


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    nlp = spacy.blank("es", config=OURS)
    nlp.add_pipe("bioclin_sentences")
    found = [("DISEASE", "asma"), ("DISEASE", "fiebre"), ("SYMPTOM", "fiebre")]
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": "clinical"})
    ruler.add_patterns([{"label": label, "pattern": pattern} for label, pattern in found])
    nlp.add_pipe("bioclin_phi_rules")
    nlp.add_pipe("bioclin_ents", config={"spans_keys": ["clinical"]})
    deid = nlp.add_pipe("bioclin_deid")
    deid.operating_points = {
        "balanced": dict.fromkeys(scheme_labels("meddocan"), 1.1),
        "high_recall": {},
    }
    deid.operating_point = "balanced"
    folder = tmp_path_factory.mktemp("pipelines") / "rules"
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def corpora(tmp_path):
    vocab = spacy.blank("es", config=OURS).vocab
    corpora = {
        "distemist": ("clinical", [("asma", "DISEASE")], ["DISEASE"]),
        "cantemist": ("clinical", [("asma", "TUMOR_MORPHOLOGY")], ["TUMOR_MORPHOLOGY"]),
        "meddocan": (
            *("phi", [("600 123 456", "NUMERO_TELEFONO"), ("fiebre", "PROFESION")]),
            None,
        ),
    }
    for name, (layer, spans, annotated) in corpora.items():
        folder = tmp_path / "corpora" / name
        folder.mkdir(parents=True)
        docs = [make_doc(vocab, name, layer, spans, annotated)]
        DocBin(docs=docs, store_user_data=True).to_disk(folder / "test.spacy")
    return tmp_path / "corpora"


def run(monkeypatch, pipeline, corpora, out, name, *options):
    from benchmarks import leaderboard

    wanted = ["--corpora", corpora, "--name", name, "--output", out, *options]
    monkeypatch.setattr(sys, "argv", ["leaderboard", str(pipeline), *map(str, wanted)])
    leaderboard.main()
    return json.loads(out.read_text("utf-8"))["entries"]


def test_entry_of_a_pipeline(pipeline, corpora, tmp_path, monkeypatch, capsys):
    from benchmarks.deid import hard_notes

    (tmp_path / "es_dev.txt").write_text("##### triage\nTel. [[600 123 456|phone]], asma.\n")
    monkeypatch.setattr(hard_notes, "FOLDER", tmp_path)
    out = tmp_path / "leaderboard.json"
    entry = run(monkeypatch, pipeline, corpora, out, "mine", "--skip-speed")["mine"]
    scores = entry["corpora"]["distemist"]["layers"]["clinical"]["per_type"]
    assert (scores["DISEASE"]["tp"], scores["DISEASE"]["fp"], list(scores)) == (1, 1, ["DISEASE"])
    assert entry["corpora"]["cantemist"]["layers"] == {}  # a label that the pipeline does not know
    phi = entry["corpora"]["meddocan"]["phi"]
    assert phi["balanced"]["span_recall"] == 0 and phi["high_recall"]["span_recall"] == 0.5
    assert phi["balanced"]["official"]["ner"]["leak"] == 2.0  # two missed in one sentence
    error = entry["corpora"]["meddocan"]["layers"]["phi"]
    assert error["calibration_error"] is None and error["spans_with_probability"] == 0
    points = entry["hard_notes"]["dev"]["points"]
    assert points["high_recall"]["all"]["notes_wholly_hidden"] == 1
    assert not {"Rosalinda", "asma", "600"} & set(out.read_text("utf-8").replace('"', " ").split())

    capsys.readouterr()
    entries = run(monkeypatch, pipeline, corpora, out, "other", "--skip-speed")
    assert entries["mine"] == entry and "measured before" not in capsys.readouterr().out
    run(monkeypatch, pipeline, corpora, out, "mine", "--skip-speed")
    assert capsys.readouterr().out.count("measured before") == 4
    run(monkeypatch, pipeline, corpora, out, "mine", "--skip-speed", "--again")
    assert "measured before" not in capsys.readouterr().out


def test_fingerprint_is_that_of_what_decides(pipeline, tmp_path):
    from benchmarks import leaderboard

    first = leaderboard.find_fingerprint(pipeline)
    folder = spacy.load(pipeline)
    folder.meta["version"] = "9.9"
    folder.to_disk(tmp_path / "copy")
    assert leaderboard.find_fingerprint(tmp_path / "copy") == first
    (tmp_path / "copy" / "config.cfg").write_text("changed")
    assert leaderboard.find_fingerprint(tmp_path / "copy") != first


def test_probabilities_and_their_calibration():
    from benchmarks import leaderboard

    doc = Doc(spacy.blank("es").vocab, words=["asma", "tos"])
    doc.spans["clinical"] = [spacy.tokens.Span(doc, i, i + 1, "DISEASE") for i in (0, 1)]
    doc.spans["clinical"].attrs["scores"] = [1.0, 0.5]
    found = leaderboard.read_probabilities(doc)
    spans = {(0, 4, "DISEASE"), (5, 8, "DISEASE")}
    layer = leaderboard.LayerDoc("x", doc.text, {(0, 4, "DISEASE")}, spans)
    error = leaderboard.find_calibration_error("clinical", [layer], [found])
    assert error == {"calibration_error": 0.25, "spans_with_probability": 2}


def test_speed_with_and_without_parts(pipeline, corpora, monkeypatch):
    from benchmarks import leaderboard_speed

    monkeypatch.setattr(leaderboard_speed, "ROUNDS", 1)
    vocab = spacy.blank("es").vocab
    texts = leaderboard_speed.choose_texts(sorted(corpora.glob("*/test.spacy")), vocab)
    assert texts == [NOTE]  # the same text once
    parts = ["ner", "rules", "deid"]
    assert [*leaderboard_speed.find_parts(spacy.load(pipeline))] == parts
    found = leaderboard_speed.run(str(pipeline), texts, parts)
    assert [*found["seconds"]] == ["all", *parts]
    seconds = {"all": 4.0, "ner": 1.0, "encoder": 2.0}
    one = {"seconds": {k: {"wall": [v], "cpu": [v]} for k, v in seconds.items()}}
    two = {"seconds": {"all": {"wall": [2.0], "cpu": [4.0]}}}
    memory = {1: {**one, "peak_memory_mb": 1}, 2: {**two, "peak_memory_mb": 2}}
    both = {n: {**each, "load": {"load_seconds": n, "process_mb": 9}} for n, each in memory.items()}
    row = leaderboard_speed.summarize(both, 1_000_000)
    assert row["load"]["load_seconds"] == 1
    assert row["words_per_second"] == {"1": 250_000, "2": 500_000}
    assert row["microseconds_per_word"] == {"all": 4.0, "encoder": 2.0, "ner": 3.0}
    assert row["words_per_second_without"] == {"ner": 1_000_000}


def test_card_of_a_pipeline(pipeline, corpora, tmp_path, monkeypatch):
    from benchmarks import readme, readme_models
    from benchmarks.deid import hard_notes

    monkeypatch.setattr(hard_notes, "FOLDER", tmp_path)
    out = tmp_path / "leaderboard.json"
    entry = run(monkeypatch, pipeline, corpora, out, "es_bioclin_sm", "--skip-speed")
    monkeypatch.setattr(readme_models, "RESULTS", tmp_path)
    section = readme.PAGES["docs/models.md"]()
    assert "| `DISEASE` | distemist | 1 | 50.0 | 100.0 | 66.7 | 66.7–66.7 |" in section
    assert "| meddocan | high recall | 0.500, 1.000 | 50.0 % (" in section
    assert "| distemist | 1 | CC BY 4.0 | DisTEMIST (Miranda-Escalada et al., 2022) |" in section
    assert "`en_bioclin_sm` has not been measured yet" in section and "### Speed" not in section
    speed = {
        "measured": {"date": "2026-11-23", "cpu": "one", "cores": 2, "commit": "abc"},
        "words": 12000,
        "words_per_second": {"1": 1000, "2": 2000},
        "peak_memory_mb": {"1": 500, "2": 600},
        "words_per_second_without": {"ner": 1500},
        "microseconds_per_word": {"all": 900.0, "encoder": 400.0, "ner": 100.0},
        "load": {"load_seconds": 1.25, "process_mb": 450},
    }
    measured = {**entry["es_bioclin_sm"], "speed": {"all": speed}}
    card = readme_models.make_card("es_bioclin_sm", measured)
    assert "| clinical entities (`ner`, `ents`) | 100 | 1,500 |" in card
    assert "| words/s, two threads | 2,000 |" in card
    for name in readme_models.PIPELINES:
        assert (ROOT / "assets" / "cards" / f"{name}.md").read_text("utf-8").startswith("###")
