"""Tiny trained pipelines that the tests share: folders to load, never to change."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam, fix_random_seed

from tests.util import make_encoder

WORDS = ["Paciente", "con", "neumonía", "en", "el", "Hospital", "General", "."]
TOK2VEC = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": {"@layers": "reduce_mean.v1"},
}
HEAD = {
    "@architectures": "spacy-bioclin.CrfTagger.v1",
    "dropout": 0.0,
    "learn_rate_scale": 10.0,
    "tok2vec": TOK2VEC,
}


def blank(lang: str) -> Language:
    """Make a blank pipeline with our own tokenizer. It is made and loaded in a third of the time:
    spaCy's own have hundreds of exceptions."""
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    return spacy.blank(lang, config={"nlp": {"tokenizer": tokenizer}})


@pytest.fixture(scope="session")
def encoder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes an encoder of an architecture and a kind of tokenizer once. RETURNS: Its folder."""

    @functools.cache
    def make(model_type: str = "bert", kind: str = "wordpiece") -> Path:
        return make_encoder(tmp_path_factory.mktemp("encoders") / model_type, model_type, kind)

    return make


@pytest.fixture(scope="session")
def pipeline(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an es pipeline that tags DISEASE in doc.ents and PLACE in doc.spans["phi"].

    It is trained until it finds both in the text of WORDS.
    """
    fix_random_seed(0)
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    nlp = spacy.blank("es", config={"nlp": {"tokenizer": tokenizer}})
    nlp.add_pipe("bioclin_sentences", name="sentences")
    encoder = {
        "@architectures": "spacy-bioclin.Encoder.v1",
        "name": str(tiny_encoder),
        "window": 32,
        "stride": 24,
        "precision": "fp32",
    }
    nlp.add_pipe("transformer", config={"model": encoder})
    nlp.add_pipe("bioclin_ner", name="ner", config={"model": HEAD})
    nlp.add_pipe("bioclin_ner", name="phi", config={"model": HEAD, "spans_key": "phi"})
    words = Doc(nlp.vocab, words=WORDS)
    reference = words.copy()
    reference.set_ents([Span(reference, 2, 3, "DISEASE")], default="outside")
    reference.spans["phi"] = [Span(reference, 5, 7, "PLACE")]
    example = Example(words, reference)
    optimizer = nlp.initialize(lambda: [example])
    optimizer.learn_rate = 5e-3
    for _ in range(15):
        nlp.update([example], sgd=optimizer)
    while not _finds(nlp, reference):
        nlp.update([example], sgd=optimizer)
    folder = tmp_path_factory.mktemp("training") / "model-best"
    nlp.to_disk(folder)
    return folder


def _finds(nlp: spacy.language.Language, reference: Doc) -> bool:
    doc = nlp(Doc(nlp.vocab, words=WORDS))
    layers = [(one.ents, one.spans["phi"]) for one in (doc, reference)]
    found, gold = ([[(s.start, s.end, s.label_) for s in part] for part in one] for one in layers)
    return found == gold


def train_on(nlp: Language, examples: list[Example], found: Callable[[], bool]) -> None:
    """Train on until something is found: how many updates that takes differs between processors
    and releases of torch."""
    optimizer = Adam(2e-3)
    for _ in range(300):
        if found():
            return
        nlp.update(examples, sgd=optimizer)
    raise AssertionError("it does not learn")
