"""Training what finds composed codes, of which few are in the training notes."""

import json
from collections import Counter
from itertools import groupby

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.linking.candidates import COLUMN, CandidateGenerator
from spacy_bioclin.linking.codes import CODES, CodeClassifier
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
from spacy_bioclin.linking.learned import N_FOLDS, LearnedMention
from spacy_bioclin.linking.linker import Linker, Mention
from spacy_bioclin.linking.ranking import Ranker
from spacy_bioclin.linking.train import codes
from spacy_bioclin.linking.train.docs import train_linker
from spacy_bioclin.linking.train.ranker import RankerSettings, TrainMention

TUMOURS = {
    "8140": "adenocarcinoma",
    "8500": "carcinoma ductal",
    "8070": "carcinoma escamoso",
    "8720": "melanoma",
    "9120": "angiosarcoma",
}
QUALIFIERS = {"3": "{}", "6": "metástasis de {}", "32": "{} moderadamente diferenciado"}
# No training note has these, and the names of the terminology do not help.
UNSEEN = {"metástasis de melanoma": "8720/6", "angiosarcoma moderadamente diferenciado": "9120/32"}
SETTINGS = RankerSettings(epochs=20, batch=32)


def mentions():
    """Names of tumours in all notes, other codes in one note each."""
    for note in range(2 * N_FOLDS):
        for i, (stem, name) in enumerate(TUMOURS.items()):
            for qualifier, written in QUALIFIERS.items():
                id = f"{stem}/{qualifier}"
                if id not in UNSEEN.values() and (qualifier == "3" or note % N_FOLDS == i):
                    yield TrainMention(written.format(name), (id,), note)


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    ids = [f"{stem}/{qualifier}" for stem in TUMOURS for qualifier in QUALIFIERS]
    concepts = [Concept(id, f"código {id}", "es") for id in ids]
    return build_kb(concepts, tmp_path_factory.mktemp("codes") / "kb")


@pytest.fixture(scope="module")
def counts():
    found = (LearnedMention(m.text, m.ids[0], m.fold) for m in mentions())
    return Counter(found)


def make_linker(kb):
    generator = CandidateGenerator(kb, n_candidates=8, lang="es")
    return Linker(generator, Ranker.untrained(), lang="es", types={}, n_shown=5, threshold=0.0)


@pytest.fixture(scope="module")
def trained(kb):
    linker = make_linker(kb)
    with pytest.MonkeyPatch.context() as few:
        few.setattr(codes, "MIN_STEPS", 50)
        return linker, *train_linker(linker, list(mentions()), SETTINGS)


def test_unseen_codes_are_found(kb, trained):
    wanted = list(UNSEEN.values())
    before = make_linker(kb)([Mention(text, note=i) for i, text in enumerate(UNSEEN)])
    assert not {link.kb_id for link in before} & set(wanted)
    linker, model, report = trained
    links = linker([Mention(text, note=i) for i, text in enumerate(UNSEEN)])
    assert [link.kb_id for link in links] == wanted
    assert links[0].candidates[0].why == "words of training mentions"
    assert model.codes and report["found"] == report["mentions"]


def test_links_do_not_depend_on_the_batch(trained):
    linker, _, _ = trained
    texts = [*(m.text for m in mentions()), *UNSEEN, "otra cosa", "x"]
    together = linker([Mention(text, note=i) for i, text in enumerate(texts)])
    linker.forget()
    assert [linker([Mention(text)])[0] for text in texts] == together


def test_the_same_mentions_give_the_same_classifiers(kb, counts, monkeypatch):
    monkeypatch.setattr(codes, "MIN_STEPS", 5)
    first, second = codes.train_codes(counts, kb), codes.train_codes(counts, kb)
    assert list(first) == [None, *range(N_FOLDS)]
    assert {fold: c.to_bytes() for fold, c in first.items()} == {
        fold: c.to_bytes() for fold, c in second.items()
    }
    # Mentions of codes that the terminology lacks are left out.
    more = counts + Counter({LearnedMention("sarcoma", "8800/3", 0): 5})
    assert codes.train_codes(more, kb)[None].to_bytes() == first[None].to_bytes()


def test_a_fold_is_read_without_its_mentions(kb, counts, monkeypatch):
    monkeypatch.setattr(codes, "MIN_STEPS", 50)
    own = Counter({LearnedMention("zzz", "8720/32", 2): 5})
    classifiers = codes.train_codes(counts + own, kb)
    row = classifiers[None].stems.index("8720")
    assert np.exp(classifiers[None]("zzz").stems[row]) > 0.5
    assert np.exp(classifiers[2]("zzz").stems[row]) < 0.5


def test_ids_that_are_no_codes_have_no_classifiers(clinic):
    assert codes.train_codes(Counter({LearnedMention("cold", "C8", 0): 3}), clinic) == {}


def write_docs(path):
    nlp = spacy.blank("es")
    docs = DocBin()
    for _, found in groupby(mentions(), key=lambda mention: mention.note):
        spans, words = [], []
        for mention in found:
            own = [token.text for token in nlp.make_doc(mention.text)]
            spans.append((len(words), len(words) + len(own), mention.ids[0]))
            words += [*own, "."]
        doc = Doc(nlp.vocab, words)
        doc.ents = [Span(doc, start, end, "TUMOR", kb_id=id) for start, end, id in spans]
        docs.add(doc)
    docs.to_disk(path)


@pytest.mark.slow
def test_a_trained_folder_and_a_saved_pipeline(kb, tmp_path):
    write_docs(tmp_path / "train.spacy")
    model = tmp_path / "model"
    args = ["train-linker", kb.path, tmp_path / "train.spacy", "-o", model]
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == 0, done.output
    assert (model / CODES).is_file() and json.loads((model / "learned.json").read_text())

    patterns = [{"label": "TUMOR", "pattern": text} for text in UNSEEN]
    trained = spacy.blank("es")
    trained.add_pipe("entity_ruler").add_patterns(patterns)
    trained.add_pipe("bioclin_linker", config={"kb": str(kb.path), "model": str(model)})
    trained.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    copy = spacy.blank("es")
    copy.add_pipe("entity_ruler").add_patterns(patterns)
    copy.add_pipe("bioclin_linker").from_bytes(trained.get_pipe("bioclin_linker").to_bytes())
    for one in (trained, loaded, copy):
        links = {doc.text: doc.ents[0].kb_id_ for doc in one.pipe(UNSEEN)}
        assert links == UNSEEN
    file = tmp_path / "saved" / "bioclin_linker" / "model" / CODES
    assert CodeClassifier.from_bytes(file.read_bytes()).stems == sorted(TUMOURS)


def test_features_of_codes_are_zero_without_codes(clinic):
    generator = CandidateGenerator(clinic, n_candidates=8, lang="en")
    (pool,) = generator(["kidney failure"])
    columns = [COLUMN[name] for name in COLUMN if name.startswith(("stem", "qualifier"))]
    assert len(columns) >= 4 and not pool.features[:, columns].any()
