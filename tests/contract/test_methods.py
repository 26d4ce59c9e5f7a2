"""Each public method of `Language`, `Doc`, `Span` and `Token` that works on spaCy's own pipelines
works on ours."""

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy import displacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus, Example
from spacy.util import load_model_from_config

from spacy_bioclin.errors import BioclinError

from .fixtures import NAMES, OURS

TEXT = "Paciente con neumonía en la Fuente Clara. Tos y fiebre desde hace 5 días."
Trained = Callable[[str], Path]


def describe(doc: Doc) -> list[Any]:
    """List what our components write."""
    spans = [(s.start, s.end, s.label_) for layer in (doc.ents, *doc.spans.values()) for s in layer]
    return [doc.text, [token.is_sent_start for token in doc], spans]


@pytest.fixture(scope="session", params=NAMES)
def folder(request: pytest.FixtureRequest, trained: Trained) -> Path:
    """Folder of a trained pipeline."""
    return trained(request.param)


@pytest.fixture(scope="session")
def nlp(folder: Path) -> Language:
    """A trained pipeline that no test changes."""
    return spacy.load(folder)


@pytest.fixture(scope="session")
def doc(nlp: Language) -> Doc:
    """What it annotates, which no test changes."""
    return nlp(TEXT)


@pytest.fixture
def own(folder: Path) -> Language:
    """A trained pipeline for one test alone."""
    return spacy.load(folder)


def read_examples(nlp: Language, corpus: Path) -> list[Example]:
    return list(Corpus(corpus / "dev.spacy")(nlp))


# -- Doc, Span, Token ----------------------------------------------------------------------------


def test_vectors_and_memory(doc: Doc) -> None:
    """There are no vectors and nothing fails, as in en_core_web_trf; memory is freed."""
    for thing in (doc, doc[1:3], doc[2]):
        assert thing.vector.shape == (0,)
        assert not thing.has_vector and thing.vector_norm == 0 and thing.tensor.size == 0
    with pytest.warns(UserWarning, match="W007"):  # no word vectors
        for thing in (doc, doc[1:3], doc[2]):
            assert thing.similarity(doc[5]) == 0
    assert doc._.trf_data is None and doc.tensor.nbytes == 0
    assert not [key for key in doc.user_data if "trf_data" in key]


def test_sentences_as_docs(nlp: Language, doc: Doc) -> None:
    parts = [sentence.as_doc(copy_user_data=True) for sentence in doc.sents]
    assert [part.text for part in parts] == [sent.text_with_ws for sent in doc.sents]
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert Doc.from_docs(parts).text == doc.text
    assert not any("Norte" in str(warning.message) for warning in shown)  # no text in a log
    assert nlp(parts[0]).text == parts[0].text


def test_copies_of_docs(nlp: Language, doc: Doc) -> None:
    docs = DocBin(docs=[doc], store_user_data=True)
    again = [
        doc.copy(),
        Doc(nlp.vocab).from_bytes(doc.to_bytes()),
        Doc(nlp.vocab).from_dict(doc.to_dict()),
        pickle.loads(pickle.dumps(doc)),
        *docs.get_docs(nlp.vocab),
        Doc(nlp.vocab).from_json(doc.to_json(underscore=["trf_data"]), validate=True),
    ]
    for one in again:
        assert describe(one)[0::2] == describe(doc)[0::2]


def test_tokens_are_merged_and_split(own: Language) -> None:
    doc = own(TEXT)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[5:7])
        retokenizer.split(doc[0], ["Pa", "ciente"], heads=[doc[0], doc[0]])
    assert "Fuente Clara" in {token.text for token in doc}


def test_pictures_and_description(nlp: Language, doc: Doc) -> None:
    for style in ("ent", "span"):
        assert "<div" in displacy.render(doc, style=style, options={"spans_key": "phi"})
    assert not any(nlp.analyze_pipes()["problems"].values())
    assert nlp.pipe_labels["ner"] and nlp.meta["labels"]
    assert nlp.meta["performance"]


# -- annotating ----------------------------------------------------------------------------------


def test_streams(nlp: Language, doc: Doc) -> None:
    texts = [TEXT, "", "  \n"]
    expected = [describe(nlp(text)) for text in texts]
    assert [describe(one) for one in nlp.pipe(texts)] == expected
    assert [describe(one) for one in nlp.pipe(texts, n_process=2, batch_size=1)] == expected
    for one, context in nlp.pipe([(TEXT, "a")], as_tuples=True):
        assert describe(one) == describe(doc) and context == "a"
    with nlp.memory_zone():
        assert describe(nlp(TEXT)) == describe(doc)


def test_evaluate(nlp: Language, contract_corpus: Path) -> None:
    scores = nlp.evaluate(read_examples(nlp, contract_corpus))
    found = {key: scores[key] for key in ("ents_f", "spans_phi_f") if key in scores}
    assert found and min(found.values()) > 0.9
    assert nlp.evaluate(read_examples(nlp, contract_corpus), per_component=True)["ner"]


def test_components_are_selected(folder: Path) -> None:
    """What needs a missing part says so; all else runs."""
    nlp = spacy.load(folder, disable=["ner"])
    check_run(nlp, refuses=False)
    nlp.enable_pipe("ner")
    for name in nlp.pipe_names:
        with nlp.select_pipes(disable=[name]):
            check_run(nlp, refuses=name == "transformer")
        with nlp.select_pipes(enable=[name]):
            check_run(nlp, refuses=name in ("ner", "phi", "deid"))
        nlp.rename_pipe(name, "other")
        check_run(nlp, refuses=False)
        nlp.rename_pipe("other", name)
    check_run(spacy.load(folder, exclude=["ner"]), refuses=False)
    nlp.remove_pipe("transformer")
    check_run(nlp, refuses=True)


def check_run(nlp: Language, *, refuses: bool) -> None:
    if not refuses:
        assert nlp(TEXT).text == TEXT
        return
    with pytest.raises(BioclinError, match=r"has not run on the Doc|cannot hide PHI"):
        nlp(TEXT)


# -- copies --------------------------------------------------------------------------------------


def copy_by_source(nlp: Language) -> Language:
    other = spacy.blank(nlp.lang, config=OURS)
    for name in nlp.pipe_names:
        other.add_pipe(name, source=nlp)
    return other


COPIES: dict[str, Callable[[Language], Language]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda nlp: pickle.loads(pickle.dumps(nlp)),
    "bytes": lambda nlp: load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()),
    "source": copy_by_source,
}


@pytest.mark.parametrize("kind", COPIES)
def test_copies_of_pipelines(folder: Path, doc: Doc, contract_corpus: Path, kind: str) -> None:
    own = spacy.load(folder)
    own.resume_training()
    copied = COPIES[kind](own)
    before = describe(doc)
    assert describe(copied(TEXT)) == before
    examples = read_examples(copied, contract_corpus)
    for _ in range(3):
        copied.update(examples, sgd=copied.create_optimizer())
    if kind != "source":  # spaCy shares components with the source
        assert describe(own(TEXT)) == before


# -- training ------------------------------------------------------------------------------------


def test_training_methods(own: Language, contract_corpus: Path) -> None:
    examples = read_examples(own, contract_corpus)
    optimizer = own.resume_training()
    assert optimizer.learn_rate > 0
    losses: dict[str, float] = {}
    own.update(examples, sgd=optimizer, losses=losses)
    own.update(examples, sgd=False, annotates=["sentences"], losses=losses)
    assert losses["ner"] > 0
    with pytest.warns(UserWarning, match="does not rehearse"):
        own.rehearse(examples, sgd=optimizer)
    with own.use_params(optimizer.averages or {}):
        own(TEXT)
    own.initialize(lambda: examples)
    own.update(examples)
    own.initialize()
    own(TEXT)


def test_listeners_are_replaced(own: Language) -> None:
    names = [name for name in own.pipe_names if name in ("ner", "phi")]
    section = own.get_pipe_config("ner")["model"]["tok2vec"]
    path = "model.tok2vec.*.encoder" if "*" in section else "model.tok2vec"
    before = describe(own(TEXT))
    for name in names:
        own.replace_listeners("transformer", name, [path])
    own.remove_pipe("transformer")
    assert describe(own(TEXT)) == before
