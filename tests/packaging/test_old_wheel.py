"""What the code of 0.1.0 wrote is read and annotates as it did then: see make_old_pipeline.py."""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import spacy
import torch
from spacy import registry
from spacy.language import Language
from spacy.util import load_config

from .make_old_pipeline import KEY, MENTIONS, OURS, describe, describe_gold, describe_links

ASSETS = Path(__file__).parent / "assets"
OLD = json.loads((ASSETS / "old_pipeline.json").read_text("utf-8"))
# Processors round differently.
TOLERANCE = 2e-3


def assert_same(found: Any, old: Any, where: str) -> None:
    """Compare JSON values; numbers may differ by TOLERANCE, a message says which value differs."""
    if isinstance(old, float):
        assert found == pytest.approx(old, abs=TOLERANCE), where
    elif isinstance(old, dict):
        assert found.keys() == old.keys(), where
        for key in old:
            assert_same(found[key], old[key], f"{where}.{key}")
    elif isinstance(old, list):
        assert len(found) == len(old), where
        for i, value in enumerate(old):
            assert_same(found[i], value, f"{where}[{i}]")
    else:
        assert found == old, where


def as_json(value: Any) -> Any:
    """Tuples become lists, as in the file."""
    return json.loads(json.dumps(value))


@pytest.fixture(scope="module", autouse=True)
def _fp32() -> Iterator[None]:
    """Make precision = "auto" mean fp32, as it did where the file was made."""
    with pytest.MonkeyPatch.context() as patch:
        for probe in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
            patch.setattr(torch.cpu, probe, lambda: False, raising=False)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the pipeline inside the unpacked wheel."""
    installed = tmp_path_factory.mktemp("installed")
    [wheel] = ASSETS.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(installed)
    return installed / "es_bioclin_old" / "es_bioclin_old-0.1.0"


def load(folder: Path) -> Language:
    nlp = spacy.load(folder)
    nlp.get_pipe("deid").key = KEY  # type: ignore[attr-defined]
    return nlp


def annotate(nlp: Language) -> list[dict[str, Any]]:
    return [as_json(describe(doc)) for doc in nlp.pipe(doc["text"] for doc in OLD["docs"])]


@pytest.fixture(scope="module")
def found(folder: Path) -> list[dict[str, Any]]:
    """What this code annotates on the notes."""
    return annotate(load(folder))


def test_annotates_the_same(found: list[dict[str, Any]]) -> None:
    for what in [key for key in OLD["docs"][0] if key not in ("deid", "spans")]:
        assert_same([doc[what] for doc in found], [doc[what] for doc in OLD["docs"]], what)


def test_layers_are_the_same(found: list[dict[str, Any]]) -> None:
    """PHI excepted: rules of today find more, and never less."""
    for layer in OLD["docs"][0]["spans"]:
        new, old = ([doc["spans"][layer] for doc in docs] for docs in (found, OLD["docs"]))
        if layer != "phi":
            assert_same(new, old, layer)
            continue
        for new_spans, old_spans in zip(new, old, strict=True):
            covered = {i for start, end, *_ in new_spans for i in range(start, end)}
            for start, end, label, *_ in old_spans:
                assert covered.issuperset(range(start, end)), f"{label} at {start}"


def test_deidentified_notes_hold_nothing_that_they_lacked(found: list[dict[str, Any]]) -> None:
    for new, old in zip(found, OLD["docs"], strict=True):
        left = new["deid"]["text"]
        for label, value in old["deid"]["phi_values"]:
            assert not re.search(rf"(?<!\w){re.escape(value)}(?!\w)", left), label
        assert new["deid"].keys() == old["deid"].keys()
        assert len(new["deid"]["ents"]) == len(old["deid"]["ents"])


def test_saved_again_it_annotates_the_same(
    folder: Path, found: list[dict[str, Any]], tmp_path: Path
) -> None:
    load(folder).to_disk(tmp_path / "again")
    assert annotate(load(tmp_path / "again")) == found


def test_registered_names_of_its_config_resolve(folder: Path) -> None:
    config = load_config(folder / "config.cfg")
    names = re.findall(r'^@(\w+) = "(.+)"$', config.to_str(), re.MULTILINE)
    assert ("tokenizers", "spacy-bioclin.Tokenizer.v1") in names
    for kind, name in names:
        assert registry.get(kind, name), name
    nlp = spacy.blank(config["nlp"]["lang"])
    factories = [settings["factory"] for settings in config["components"].values()]
    assert len(factories) == 8
    for factory in factories:
        assert nlp.has_factory(factory), factory


def test_knowledge_base_links_the_same(folder: Path) -> None:
    nlp = spacy.blank("es", config=OURS)
    nlp.add_pipe("bioclin_linker", config={"kb": str(folder / "linker" / "kb")})
    assert set(OLD["kb"]) == set(MENTIONS)
    assert as_json(describe_links(nlp)) == OLD["kb"]


def test_gold_docs_are_read_the_same() -> None:
    old = json.loads((ASSETS / "old_gold.json").read_text("utf-8"))
    assert len(old["0"]) == 2 < len(old["40"])
    assert as_json(describe_gold(ASSETS / "old_gold.spacy")) == old
