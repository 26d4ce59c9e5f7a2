"""`bioclin encoders export`: transformers and a training read what a pipeline has learned."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import Result
from spacy.language import Language
from transformers import AutoModel, AutoTokenizer
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from tests.trained import blank
from tests.util import TEXTS, make_encoder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["encoders", "export", *map(str, arguments)])


def make_pipeline(encoder: Path, *names: str, **strategy: object) -> Language:
    nlp = blank("es")
    for name in names or ("transformer",):
        model = {"@architectures": "spacy-bioclin.Encoder.v1", "name": str(encoder)}
        config = {"model": {**model, "precision": "fp32", "strategy": strategy}}
        nlp.add_pipe("transformer", name=name, config=config)
    nlp.initialize()
    return nlp


def find_encoder(nlp: Language, name: str = "transformer") -> Any:
    pipe: Any = nlp.get_pipe(name)
    return pipe.model


def train_and_save(nlp: Language, folder: Path) -> None:
    """Give the encoders other weights, each its own."""
    torch.manual_seed(0)
    for i, name in enumerate(nlp.component_names, start=1):
        with torch.no_grad():
            for weights in find_encoder(nlp, name).transformer.parameters():
                weights += 0.01 * i * torch.randn_like(weights)
    nlp.to_disk(folder)


def encode(nlp: Language) -> torch.Tensor:
    batch = find_encoder(nlp).predict([nlp.make_doc(TEXTS[0])])
    vectors = batch.model_output.last_hidden_state
    return vectors.reshape(-1, vectors.shape[-1])


@pytest.mark.parametrize(
    ("model_type", "kind", "strategy"),
    [("bert", "wordpiece", {}), ("roberta", "bytes", {"lora_rank": 2})],
)
def test_a_training_and_transformers_read_it(
    tmp_path: Path, model_type: str, kind: str, strategy: dict[str, int]
) -> None:
    nlp = make_pipeline(make_encoder(tmp_path / "bioclin-sm", model_type, kind), **strategy)
    first = encode(nlp)
    train_and_save(nlp, tmp_path / "model")
    done = run(tmp_path / "model", "-o", tmp_path / "out")
    assert done.exit_code == 0 and f"--paths.encoder {tmp_path / 'out'}" in done.stdout
    learned = encode(nlp)
    assert torch.allclose(learned, encode(make_pipeline(tmp_path / "out")), atol=1e-5)
    assert not torch.allclose(first, learned, atol=1e-2)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    model = AutoModel.from_pretrained(tmp_path / "out").eval()
    with torch.no_grad():
        vectors = model(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0]
    assert torch.allclose(vectors[1:-1], learned, atol=1e-5)  # without special pieces
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["_name_or_path"] == "bioclin-sm"  # its name in the catalogue
    assert str(tmp_path) not in json.dumps(config)


def test_one_of_several_is_named(tiny_encoder: Path, tmp_path: Path) -> None:
    nlp = make_pipeline(tiny_encoder, "first", "second")
    train_and_save(nlp, tmp_path / "model")
    done = run(tmp_path / "model", "-o", tmp_path / "out")
    assert done.exit_code == 1 and "first, second; give --component" in done.output
    done = run(tmp_path / "model", "-o", tmp_path / "out", "--component", "third")
    assert done.exit_code == 1 and "--component third: has no encoder" in done.output
    assert not (tmp_path / "out").exists()
    done = run(tmp_path / "model", "-o", tmp_path / "out", "--component", "second")
    assert done.exit_code == 0
    weights = AutoModel.from_pretrained(tmp_path / "out").state_dict()
    own = find_encoder(nlp, "second").transformer.state_dict()
    assert all(torch.equal(weights[name], own[name]) for name in own)


def test_there_is_none(tmp_path: Path) -> None:
    blank("es").to_disk(tmp_path / "model")
    done = run(tmp_path / "model", "-o", tmp_path / "out")
    assert done.exit_code == 1 and "components with an encoder: none" in done.output
