"""The encoders that ship: small, complete, documented, and they know both languages."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spacy_bioclin.cli.package.package import read_license
from spacy_bioclin.encoders.loading import load_pretrained
from spacy_bioclin.pretraining.blocks import MaskedBlocks, make_blocks
from spacy_bioclin.pretraining.masked_lm import MaskedLM, open_model
from spacy_bioclin.pretraining.masking import Masking, describe_vocabulary

ASSETS = Path(__file__).parents[2] / "assets"
ENCODERS = ("bioclin-sm", "bioclin-compact")
LICENCES = {"bioclin-sm": "mit", "bioclin-compact": "apache-2.0"}
STARTS = {"bioclin-sm": "multilingual-e5-small", "bioclin-compact": "MiniLM"}


@pytest.fixture(params=ENCODERS)
def folder(request: pytest.FixtureRequest) -> Path:
    return ASSETS / "encoders" / str(request.param)


def test_it_is_small_and_carries_all_that_it_needs(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json"} <= names
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 40 * 2**20
    tokenizer, encoder = load_pretrained(str(folder), {})
    assert 5e6 <= encoder.num_parameters() <= 20e6
    assert {weight.dtype for weight in encoder.parameters()} == {torch.float32}
    assert len(tokenizer) == encoder.config.vocab_size


def test_its_card_states_licence_sources_and_rebuild(folder: Path) -> None:
    card = " ".join((folder / "README.md").read_text("utf-8").split())
    assert read_license(folder) == LICENCES[folder.name]
    assert "scripts/build_encoder.sh" in card
    texts = ("SPACCC", "CANTEMIST", "NUBes", "E3C", "CC BY-SA", "JNLPBA")
    for source in (STARTS[folder.name], *texts):
        assert source in card
    says = {
        "bioclin-sm": "has read no test document of DisTEMIST, SympTEMIST, MedProcNER and MACCRO",
        "bioclin-compact": "has read 130 of the 250 test cases of DisTEMIST, SympTEMIST and MedPro",
    }
    assert says[folder.name] in card


def test_nothing_is_unknown_to_it(folder: Path) -> None:
    tokenizer, _ = load_pretrained(str(folder), {})
    text = "Niña de 7 años: cefale\u0301a, 37,5 °C, µg/ml ≥ 5\r\n\t日本 😀 straße"
    encoded = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    assert tokenizer.unk_token_id not in encoded["input_ids"]
    covered = {i for start, end in encoded["offset_mapping"] for i in range(start, end)}
    assert {i for i, char in enumerate(text) if not char.isspace()} <= covered


@pytest.mark.slow
def test_it_predicts_masked_pieces_of_notes_that_it_has_never_read(folder: Path) -> None:
    tokenizer, _ = load_pretrained(str(folder), {})
    blocks = {}
    for lang in ("es", "en"):
        paths = sorted((ASSETS / "demo" / lang / "test").glob("*.txt"))[:5]
        documents = (path.read_text("utf-8").splitlines() for path in paths)
        blocks[lang] = np.stack(list(make_blocks(documents, tokenizer, length=128)))[:10]
    model = MaskedLM(open_model(str(folder), None, None, 0.0)).eval()
    for lang, found in blocks.items():
        # A guess among all pieces is ln 16,384 = 9.7; their frequencies alone give about 7.
        assert measure_loss(model, tokenizer, lang, found) < math.log(300), lang


def measure_loss(model: MaskedLM, tokenizer: Any, lang: str, blocks: Any) -> float:
    masking = Masking(rate=0.15, whole_words=False, seed=0)
    dataset = MaskedBlocks(
        {lang: blocks}, {lang: 1.0}, len(blocks), describe_vocabulary(tokenizer), masking
    )
    with torch.no_grad():
        losses = [
            model(**{name: values[None] for name, values in dataset[i].items()})["loss"].item()
            for i in range(len(dataset))
        ]
    return sum(losses) / len(losses)
