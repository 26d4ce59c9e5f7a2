"""Each command of `spacy` works on the shipped configs and on the pipelines that they train."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
import spacy
from spacy.tokens import DocBin
from spacy.util import load_config

from .fixtures import CONFIG_NAMES, CONFIGS, NAMES, spacy_cli

Trained = Callable[[str], Path]
each_pipeline = pytest.mark.parametrize("name", NAMES)


def test_debug_config(contract_options: list[object]) -> None:
    for name in CONFIG_NAMES:
        spacy_cli("debug", "config", CONFIGS / f"{name}.cfg")
        spacy_cli("debug", "config", CONFIGS / f"{name}.cfg", *contract_options)


def test_fill_config_finds_every_setting(tmp_path: Path) -> None:
    """A component passes its own `spans_key` to its scorer, so the scorer's is not listed."""
    for name in CONFIG_NAMES:
        path = tmp_path / f"{name}.cfg"
        spacy_cli("init", "fill-config", CONFIGS / f"{name}.cfg", path)
        ours = load_config(CONFIGS / f"{name}.cfg")
        filled = load_config(path)
        for component in filled["components"].values():
            if "scorer" in component:
                assert component["scorer"].pop("spans_key") is None, name
        assert filled == ours, name
        spacy_cli("debug", "config", path)


@each_pipeline
def test_debug_data(name: str, contract_options: list[object], contract_corpus: Path) -> None:
    enough = ("--paths.train", contract_corpus / "enough.spacy")
    shown = spacy_cli("debug", "data", CONFIGS / f"{name}.cfg", *contract_options, *enough)
    assert "Pipeline can be initialized with data" in shown


@pytest.mark.parametrize(
    ("name", "component"),
    [
        *(("deid", "transformer"), ("deid", "ner")),
        pytest.param("demo", "phi", marks=pytest.mark.slow),
        pytest.param("ner-lexical", "ner", marks=pytest.mark.slow),
    ],
)
def test_debug_model(name: str, component: str, contract_options: list[object]) -> None:
    config = CONFIGS / f"{name}.cfg"
    spacy_cli("debug", "model", config, component, "-P0", "-P1", *contract_options)


def test_diff_config() -> None:
    """Without a second file it compares with spaCy's config of components that have the names of
    factories, which ours have not."""
    ner = ("--compare-to", CONFIGS / "ner.cfg")
    assert "configs are identical" in spacy_cli("debug", "diff-config", CONFIGS / "ner.cfg", *ner)
    shown = spacy_cli("debug", "diff-config", CONFIGS / "demo.cfg", *ner)
    assert "configs are identical" not in shown


def test_init_labels(contract_options: list[object], tmp_path: Path) -> None:
    for name, labels in (("deid", ["HOSPITAL"]), ("demo", ["DISEASE"])):
        spacy_cli("init", "labels", CONFIGS / f"{name}.cfg", tmp_path / name, *contract_options)
        assert json.loads((tmp_path / name / "ner.json").read_text()) == labels


@each_pipeline
def test_evaluate_prints_layers_and_phi(
    name: str, trained: Trained, contract_corpus: Path, tmp_path: Path
) -> None:
    arguments = (trained(name), contract_corpus / "dev.spacy", "-o", tmp_path / "scores.json")
    shown = spacy_cli("evaluate", *arguments, "--spans-key", "phi", "-dp", tmp_path)
    layers = {"deid": ["SPAN"], "demo": ["NER", "SPAN"]}.get(name, ["NER"])
    for layer in layers:
        assert float(re.search(rf"{layer} F +([\d.]+)", shown)[1]) > 90  # type: ignore[index]
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert ("spans_phi_per_type" in scores) == ("SPAN" in layers)
    spacy_cli("evaluate", *arguments, "--per-component")
    assert "ner" in json.loads((tmp_path / "scores.json").read_text())


@each_pipeline
def test_find_threshold(name: str, trained: Trained, contract_corpus: Path) -> None:
    """The middle is worse than the best, so that the setting is not ignored."""
    # The rules find most, so that recall does not depend on the tagger.
    key = "spans_phi_f" if name == "deid" else "ents_r"
    find = ("find-threshold", trained(name), contract_corpus / "dev.spacy")
    shown = spacy_cli(*find, "ner", "threshold", key, "-n", 2)
    assert re.search(r"Best threshold: 0.0 with", shown), shown


@pytest.mark.slow
def test_other_thresholds_are_found(trained: Trained, contract_corpus: Path) -> None:
    find = ("find-threshold", trained("deid"), contract_corpus / "dev.spacy")
    spacy_cli(*find, "ner", "doubtful_from", "spans_phi_f", "-n", 2)
    spacy_cli(*find, "rules", "threshold", "spans_phi_f", "-n", 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deid", "ner-lexical"])
def test_info_package_apply(
    name: str, trained: Trained, contract_corpus: Path, tmp_path: Path
) -> None:
    folder = trained(name)
    assert "bioclin" in spacy_cli("info", folder, "--markdown") or "ner" in spacy_cli(
        "info", folder
    )
    spacy_cli("package", folder, tmp_path, "--build", "none", "--name", "clinical")
    [package] = tmp_path.glob("*/es_clinical/es_clinical-*/config.cfg")
    assert spacy.load(package.parent).pipe_names
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("Paciente con neumonía en la Fuente Clara.\n")
    spacy_cli("apply", folder, tmp_path / "notes", tmp_path / "out.spacy", "--n-process", 2)
    [doc] = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("es").vocab)
    assert doc.ents or doc.spans["phi"]
    speed = ("benchmark", "speed", folder, contract_corpus / "dev.spacy")
    assert "Mean" in spacy_cli(*speed, "--batches", 30, "--warmup", 0)


@each_pipeline
def test_assemble_from_a_trained_pipeline(name: str, trained: Trained, tmp_path: Path) -> None:
    source = trained(name)
    text = f"""
    [nlp]
    lang = "es"
    pipeline = ["sentences", "transformer", "ner"]
    tokenizer = {{"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}

    [components]

    [components.sentences]
    factory = "bioclin_sentences"

    [components.transformer]
    source = "{source}"

    [components.ner]
    source = "{source}"
    """
    (tmp_path / "assemble.cfg").write_text("\n".join(map(str.strip, text.splitlines())))
    spacy_cli("assemble", tmp_path / "assemble.cfg", tmp_path / "assembled")
    doc = spacy.load(tmp_path / "assembled")("Paciente con neumonía en la Fuente Clara.")
    assert doc.ents or doc.spans["phi"]


def test_converted_by_spacy(contract_options: list[object], tmp_path: Path) -> None:
    """A corpus of `spacy convert` trains what learns doc.ents."""
    lines = "Paciente|O con|O neumonía|B-DISEASE grave|I-DISEASE .|O\n" * 10
    (tmp_path / "train.iob").write_text(lines)
    spacy_cli("convert", tmp_path / "train.iob", tmp_path, "-l", "es", "-n", 1)
    paths = [
        part
        for split in ("train", "dev")
        for part in (f"--paths.{split}", tmp_path / "train.spacy")
    ]
    few = ("--training.max_steps", 2, "--training.eval_frequency", 2)
    spacy_cli("train", CONFIGS / "ner.cfg", "-o", tmp_path / "nlp", *contract_options, *paths, *few)
    assert spacy.load(tmp_path / "nlp/model-last").get_pipe("ner").labels == ("DISEASE",)


def test_find_function_and_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    sections = (load_config(CONFIGS / f"{name}.cfg")["components"] for name in CONFIG_NAMES)
    models = (part.get("model", {}) for section in sections for part in section.values())
    found = {model["@architectures"] for model in models if "@architectures" in model}
    assert len(found) > 1
    for architecture in found:
        spacy_cli("find-function", architecture)

    class Response:
        status_code = 200

        def json(self) -> dict[str, object]:
            return {"spacy": {spacy.about.__version__: {}}}

    monkeypatch.setattr(requests, "get", lambda url: Response())  # there is no network
    spacy_cli("validate")
