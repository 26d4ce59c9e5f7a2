"""A pipeline that several threads use at the same time gives what one thread gets."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import fix_random_seed

import spacy_bioclin.linking.linker as linker
import spacy_bioclin.linking.names.ngrams as ngrams
from spacy_bioclin.deid import make_pipeline
from spacy_bioclin.encoders.loading import load_pretrained
from spacy_bioclin.encoders.pieces import split_into_pieces
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase

from ...linking.fixtures import CLINIC, clinic

__all__ = ["clinic"]
N_THREADS, N_NOTES, ROUNDS = 4, 8, 2
OURS = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
TAGGER = {
    "@architectures": "spacy-bioclin.CrfTagger.v1",
    "tok2vec": {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "grad_factor": 1.0,
        "pooling": {"@layers": "reduce_mean.v1"},
    },
}
NAMES = [name.text for concept in CLINIC for name in concept.aliases if name.lang == "es"]


def make_notes() -> list[str]:
    return [
        f"Paciente: Marta Gil{'abcdefgh'[i % 8]}z Prado, NHC {123456 + 7 * i}, DNI {i:08d}T. "
        f"Acude el {i % 28 + 1}/03/20{i % 10:02d} con {NAMES[i % len(NAMES)]} y dolor {'x' * i}. "
        f"Tel. 96{i:07d}, ana{i}@correo.es. Dr. Luis Soto{'ab'[i % 2]} (Hospital La Fe). " * (i % 4)
        for i in range(1, N_NOTES + 1)
    ]


@pytest.fixture(scope="module")
def nlp(tiny_encoder: Path, clinic: KnowledgeBase, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Pipeline of every room, saved and loaded: encoder, NER, linker, rules, deid."""
    fix_random_seed(0)
    made = spacy.blank("es", config=OURS)
    made.add_pipe("bioclin_sentences")
    model = {"@architectures": "spacy-bioclin.Encoder.v1", "name": str(tiny_encoder)}
    made.add_pipe("transformer", config={"model": {**model, "window": 32, "stride": 24}})
    made.add_pipe("bioclin_ner", config={"model": TAGGER})
    made.add_pipe("bioclin_ner", name="phi", config={"model": TAGGER, "spans_key": "phi"})
    text = f"Marta Prado con {NAMES[0]}."
    doc, reference = made.make_doc(text), made.make_doc(text)
    reference.set_ents([Span(reference, 3, 5, "DISEASE")], default="outside")
    reference.spans["phi"] = [Span(reference, 0, 2, "NOMBRE_SUJETO_ASISTENCIA")]
    optimizer = made.initialize(lambda: [Example(doc, reference)])
    optimizer.learn_rate = 5e-3
    for _ in range(10):
        made.update([Example(doc, reference)], sgd=optimizer)
    made.add_pipe("bioclin_linker").set_kb(clinic)
    folder = tmp_path_factory.mktemp("threads") / "model"
    made.to_disk(folder)
    return lambda: make_pipeline(spacy.load(folder), policy={"default": "surrogate"}, key=b"k" * 32)


def describe(doc: Doc) -> Any:
    """List what the components found; probabilities may differ in their last digits."""
    ents = [
        (ent.start, ent.end, ent.label_, ent.kb_id_, round(ent._.probability or 0.0, 3))
        for ent in doc.ents
    ]
    candidates = [[(c.kb_id, c.name, round(c.score, 4)) for c in e._.candidates] for e in doc.ents]
    return ents, candidates, doc._.deid.text, doc._.deid.spans and doc._.deid.audit["labels"]


def in_threads(nlp: Language, texts: list[str]) -> Iterator[Any]:
    with ThreadPoolExecutor(N_THREADS) as pool:
        yield from pool.map(lambda text: describe(nlp(text)), texts)


@pytest.mark.slow
def test_threads_get_what_one_thread_gets(nlp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linker, "MAX_REMEMBERED", 3)  # so that threads drop what others look for
    monkeypatch.setattr(ngrams, "MAX_REMEMBERED", 3)
    notes = make_notes()
    alone = nlp()
    expected = [describe(alone(text)) for text in notes]
    assert any(ents for ents, *_ in expected) and len({safe for *_, safe, _ in expected}) > 5
    shared = nlp()  # nothing is opened or cached yet: the first calls are concurrent as well
    found = list(in_threads(shared, notes * ROUNDS))
    assert found == expected * ROUNDS


def test_a_tokenizer_is_not_changed_while_it_is_used(tiny_encoder: Path) -> None:
    tokenizer, _ = load_pretrained(str(tiny_encoder), {})
    texts = ["Paciente con tos. " * 300] * 16
    expected = split_into_pieces(tokenizer, texts[:1])[0].ids.tolist()
    assert len(expected) > 400  # neither cut nor padded
    with ThreadPoolExecutor(N_THREADS) as pool:
        found = pool.map(lambda text: split_into_pieces(tokenizer, [text] * 4)[3], texts)
        assert all(pieces.ids.tolist() == expected for pieces in found)
