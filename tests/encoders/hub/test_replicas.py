"""A tiny replica of every architecture and tokenizer of the catalogue, and of a few others: train,
package, load what the wheel holds where the encoder is gone, same predictions."""

import json
import zipfile
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import fix_random_seed
from transformers import AutoTokenizer

from spacy_bioclin.catalog.encoders import load_encoders
from spacy_bioclin.encoders.hub.inspection import inspect_encoder, lost_letters, tokenizer_kind
from spacy_bioclin.packaging.build import build_wheel
from spacy_bioclin.packaging.card import Provenance
from tests.trained import HEAD, WORDS, blank, train_on
from tests.util import TEXTS, make_encoder

# architecture, tokenizer, cased
REPLICAS = [
    ("bert", "wordpiece", True),
    ("bert", "wordpiece", False),
    ("bert", "bytes", True),
    ("roberta", "bytes", True),
    ("longformer", "bytes", True),
    ("xlm-roberta", "unigram", True),
    ("modernbert", "bpe", True),
    ("electra", "wordpiece", False),
    ("deberta-v2", "unigram", True),
    ("distilbert", "wordpiece", True),
]


def make_replica(folder: Path, architecture: str, tokenizer: str, cased: bool) -> Path:
    """As `make_encoder`, with two kinds of tokenizer more."""
    make_encoder(folder, architecture, "unigram" if tokenizer == "bpe" else tokenizer)
    path = folder / "tokenizer.json"
    if tokenizer == "bpe":
        turn_into_bpe(path)
    if not cased:
        spec = json.loads(path.read_text("utf-8"))
        spec["normalizer"]["lowercase"] = True
        path.write_text(json.dumps(spec), "utf-8")
    return folder


def turn_into_bpe(path: Path) -> None:
    """Give a unigram tokenizer.json a SentencePiece BPE with as many pieces at most."""
    import tokenizers as tk
    from tokenizers import models, normalizers, pre_tokenizers, trainers

    old = tk.Tokenizer.from_file(str(path))
    new = tk.Tokenizer(models.BPE(unk_token="<unk>"))
    new.normalizer, new.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    special = [old.id_to_token(i) for i in range(4)]
    trainer = trainers.BpeTrainer(vocab_size=old.get_vocab_size(), special_tokens=special)
    new.train_from_iterator(TEXTS, trainer)
    new.post_processor = old.post_processor
    new.save(str(path))


def train(encoder: Path) -> spacy.language.Language:
    """A few updates on one sentence, enough for a head that finds something."""
    fix_random_seed(0)
    nlp = blank("es")
    model = {
        "@architectures": "spacy-bioclin.Encoder.v1",
        "name": str(encoder),
        "window": 32,
        "precision": "fp32",
    }
    nlp.add_pipe("transformer", config={"model": model})
    nlp.add_pipe("bioclin_ner", name="ner", config={"model": HEAD})
    words = Doc(nlp.vocab, words=WORDS)
    reference = words.copy()
    reference.set_ents([Span(reference, 2, 3, "DISEASE")], default="outside")
    example = Example(words, reference)
    optimizer = nlp.initialize(lambda: [example])
    optimizer.learn_rate = 1e-2
    for _ in range(6):
        nlp.update([example], sgd=optimizer)
    train_on(nlp, [example], lambda: any(label == "DISEASE" for *_, label in predictions(nlp)))
    return nlp


def predictions(nlp: spacy.language.Language) -> list[tuple[str, int, int, str]]:
    return [
        (text, ent.start_char, ent.end_char, ent.label_)
        for text in (" ".join(WORDS), *TEXTS)
        for ent in nlp(text).ents
    ]


@pytest.mark.parametrize(("architecture", "tokenizer", "cased"), REPLICAS)
def test_inspection(tmp_path, architecture, tokenizer, cased):
    encoder = make_replica(tmp_path / "encoder", architecture, tokenizer, cased)
    inspection = inspect_encoder(encoder)
    assert inspection.usable, inspection.findings
    own = AutoTokenizer.from_pretrained(encoder)
    assert (tokenizer_kind(own), not lost_letters(own)) == (tokenizer, cased)


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "tokenizer", "cased"), REPLICAS)
def test_train_package_load(tmp_path, architecture, tokenizer, cased):
    encoder = make_replica(tmp_path / "encoder", architecture, tokenizer, cased)
    nlp = train(encoder)
    assert nlp.get_pipe("transformer").model.transformer.config.model_type == architecture
    own = nlp.get_pipe("transformer").model.tokenizer
    assert (tokenizer_kind(own), not lost_letters(own)) == (tokenizer, cased)
    found = predictions(nlp)
    nlp.to_disk(tmp_path / "pipeline")
    wheel = build_wheel(
        tmp_path / "pipeline", tmp_path, name="tiny", version="0.1.0", provenance=Provenance()
    )
    encoder.rename(tmp_path / "gone")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "installed")
    loaded = spacy.load(tmp_path / "installed" / "es_bioclin_tiny" / "es_bioclin_tiny-0.1.0")
    assert predictions(loaded) == found


def test_every_combination_of_the_catalogue_has_a_replica():
    encoders = load_encoders().values()
    assert {(one.architecture, one.tokenizer, one.cased) for one in encoders} <= set(REPLICAS)
