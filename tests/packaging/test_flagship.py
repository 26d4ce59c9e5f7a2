"""The script that makes the pipelines that ship, on the demo's notes and invented ones."""

import json
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
import spacy
from thinc.api import Config
from typer.testing import CliRunner

from scripts import flagship, notes
from scripts.terminology import linker_settings
from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import read_docs, read_texts, write_docs
from spacy_bioclin.corpora.docs import make_gold_doc
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
from spacy_bioclin.types import GOLD_KEY, AnnotatedText, SpanAnnotation

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RECIPE = {
    "labels": ["PROBLEM", "DRUG"],
    "corpora": {"demo": ["PROBLEM", "DRUG"]},
    "merged": [],
    "quoted": ["demo"],
    "phi": [],
    "scheme": "meddocan",
    "notes": 20,
    "texts": [],
    "not_drugs": ["creatinina"],
    "copies": 1,
    "updates": 1,
    "turns": {"invented": 2},
    "tagged": {"family": "both"},
}


def run(*words: object) -> str:
    result = CliRunner().invoke(flagship.app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


def run_here(*command: str) -> None:
    """Run what the script would run in a process of its own."""
    assert command[:2] == ("-m", "spacy_bioclin")
    result = CliRunner().invoke(app, list(command[2:]))
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flagship")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr(flagship, "read_yaml", lambda path: {"es": RECIPE})
        patch.setattr(flagship, "run", run_here)
        patch.setattr(notes, "list_files", list_first_notes)
        run("corpora", "es", folder / "corpora")
    return folder / "corpora"


def list_first_notes(langs: list[str]) -> Iterator[tuple[str, str, Path]]:
    """List the first files of train and dev."""
    for split in ("train", "dev"):
        yield langs[0], split, min((notes.NOTES / langs[0] / split).glob("*.txt"))


def list_ids(path: Path) -> set[str]:
    return {id for id, _ in read_texts(path)}


def test_splits_share_no_document(corpora: Path) -> None:
    splits = [list_ids(corpora / "demo" / f"{split}.spacy") for split in ("train", "dev", "test")]
    assert all(splits)
    assert not splits[0] & splits[1] and not splits[0] & splits[2] and not splits[1] & splits[2]
    assert all(flagship.is_dev(id) for id in splits[1])
    assert len(list_ids(corpora / "invented" / "train.spacy")) == RECIPE["notes"]


def test_config_has_the_corpora_of_the_recipe(corpora: Path) -> None:
    config = Config().from_disk(corpora / "config.cfg", interpolate=False)
    for split in ("train", "dev"):
        tasks = config["corpora"][split]["tasks"]
        assert {name: task["heads"] for name, task in tasks.items()} == {
            "demo": ["ner"],
            "invented": ["phi"],
            "notes": ["ner", "phi", "assertions"],
            "kinds": ["assertions"],
        }
        assert not tasks["invented"]["augment"] and tasks["notes"]["augment"]
        assert config["corpora"][split]["held_out"] == [str(corpora / "demo" / "test.spacy")]
    assert config["corpora"]["train"]["augmenter"]["copies"] == 1
    assert config["corpora"]["dev"]["augmenter"] is None
    assert config["training"]["max_steps"] == 5


def test_notes_have_their_labels_and_imaging_is_a_procedure_too(corpora: Path) -> None:
    docs = list(read_docs(corpora / "notes" / "train.spacy", spacy.blank("es").vocab))
    clinical = {(span.label_, span.text) for doc in docs for span in doc.spans["clinical"]}
    assert {label for label, _ in clinical} >= {"DISEASE", "SYMPTOM", "TEST", "DRUG", "DOSE"}
    imaging = {text for label, text in clinical if label == "TEST"}
    imaging &= {text for label, text in clinical if label == "PROCEDURE"}
    assert imaging and not {"TA", "FC", "Cr"} & imaging
    phi = {span.label_ for doc in docs for span in doc.spans["phi"]}
    assert phi >= {"FECHAS", "EDAD_SUJETO_ASISTENCIA"}
    assertions = {span.label_ for doc in docs for span in doc.spans["assertions"]}
    assert assertions == set(notes.ASSERTIONS)


def test_analytes_are_no_drugs_and_insulin_is_one(tmp_path: Path) -> None:
    nlp, text = spacy.blank("es"), "insulina, furosemida y creatinina"
    words = (("PROTEIN", "insulina"), ("DRUG", "furosemida"), ("DRUG", "creatinina"))
    spans = tuple(
        SpanAnnotation(f"T{n}", label, ((at := text.index(word), at + len(word)),), word)
        for n, (label, word) in enumerate(words)
    )
    doc = make_gold_doc(nlp, AnnotatedText("n", text, spans), layers={"*": "clinical"})
    write_docs([doc], tmp_path / "a.spacy")
    flagship.mend_drugs(tmp_path / "a.spacy", ["creatinina"])
    [mended] = read_docs(tmp_path / "a.spacy", nlp.vocab)
    found = [(span.text, span.label_) for span in mended.spans["clinical"]]
    assert found == [("insulina", "DRUG"), ("furosemida", "DRUG")]
    assert [item[2] for item in mended.user_data[GOLD_KEY]["layers"]["clinical"]] == ["DRUG"] * 2


def test_documents_that_share_text_with_held_out_ones_become_test(
    corpora: Path, tmp_path: Path
) -> None:
    """What a corpus annotates in the held-out cases of another is its test split."""
    vocab = spacy.blank("es").vocab
    train = list(read_docs(corpora / "demo" / "train.spacy", vocab))
    other = tmp_path / "other"
    write_docs(train[1:], flagship.find_file(tmp_path, "other", "train"))
    write_docs(train[:1], flagship.find_file(tmp_path, "other", "dev"))
    write_docs(train[:2], tmp_path / "tests.spacy")
    flagship.write_unseen(tmp_path, "other", [tmp_path / "tests.spacy"])
    expected = {doc.user_data[GOLD_KEY]["id"] for doc in train[:2]}
    assert list_ids(other / "test.spacy") == expected
    flagship.leave_out([other / "train.spacy"], [other / "test.spacy"], tmp_path / "list.txt")
    listed = (tmp_path / "list.txt").read_text("utf-8").splitlines()
    assert {line for line in listed if not line.startswith("#")} == expected - {
        train[0].user_data[GOLD_KEY]["id"]
    }


def test_unknown_languages_and_corpora(tmp_path: Path) -> None:
    result = CliRunner().invoke(flagship.app, ["corpora", "fr", str(tmp_path / "corpora")])
    assert result.exit_code == 1
    assert "language 'fr': recipes.yml has es, en" in result.output
    result = CliRunner().invoke(flagship.app, ["corpora", "es", str(tmp_path), "--quoted", "ncbi"])
    assert result.exit_code == 1
    assert "--quoted ncbi: choose from distemist," in result.output


def test_training_assembly_and_scores(
    corpora: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(flagship, "read_yaml", lambda path: {"es": RECIPE})
    monkeypatch.setattr(flagship, "run", run_here)
    of_labels = linker_settings("es")["types"].values()
    types = tuple({type.rstrip("*") for types in of_labels for type in types})
    concept = Concept("C1", "neumonía", "es", types=types)
    build_kb([concept], tmp_path / "kb")
    run("train", corpora, tmp_path / "training", "--encoder", tiny_encoder)
    trained = tmp_path / "training" / "model-last"
    whole, metrics = tmp_path / "whole", tmp_path / "metrics"
    run("assemble", trained, corpora, whole, "--kb", tmp_path / "kb")
    nlp = spacy.load(whole)
    assert nlp.pipe_names == [
            *("sentences", "sections", "transformer", "ner", "phi", "rules", "assertions"),
            *("linker", "ents", "context", "measurements", "deid", "cleaner"),
        ]
    sizes = [(each / "transformer" / "model").stat().st_size for each in (whole, trained)]
    assert sizes[0] < 0.7 * sizes[1]
    doc = nlp("Dra. Marta Olmedo, teléfono 600 123 456. TA 120/80.")
    assert "600" not in doc._.deid.text
    run("evaluate", whole, corpora, metrics)
    scores = json.loads((metrics / "demo.json").read_text("utf-8"))
    assert "clinical" in scores["layers"]
    package = tmp_path / "packages"
    run("package", whole, metrics, package, "--version", "0.0.1", "--encoder", tiny_encoder)
    with ZipFile(package / "es_bioclin_sm-0.0.1-py3-none-any.whl") as wheel:
        [card] = [name for name in wheel.namelist() if name.endswith("MODEL_CARD.md")]
        assert "### What it has seen" in wheel.read(card).decode()
