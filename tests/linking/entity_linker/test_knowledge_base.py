"""Our knowledge base in spaCy's `entity_linker`."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from spacy.kb import InMemoryLookupKB
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_bioclin.encoders.names import NameEncoder
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.dense.embed import embed_names
from spacy_bioclin.linking.entity_linker.hooks import (
    make_get_candidates,
    make_get_candidates_batch,
    make_knowledge_base,
)
from spacy_bioclin.linking.entity_linker.knowledge_base import STATE, SpacyKnowledgeBase
from spacy_bioclin.linking.entity_linker.vectors import trigram_vector
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Alias, Concept
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.learned import LearnedMention, LearnedNames
from spacy_bioclin.linking.ranking import Ranker

OURS = {"@misc": "spacy-bioclin.KnowledgeBase.v1"}
PARKINSON = ("Temblor y rigidez por EP, toma levodopa.", "La EP le causa temblor.")
EMBOLISM = ("Dolor brusco por EP, se da heparina.", "La EP se trata con heparina.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two diseases of one short name, and a sign."""
    path = tmp_path_factory.mktemp("kb") / "kb"
    concepts = [
        Concept("X1", "Embolia pulmonar", "es", (Alias("EP", "es"),), ("disease",)),
        Concept(
            *("X2", "Enfermedad de Parkinson", "es", (Alias("EP", "es"),), ("disease",)),
            alternative_ids=("X20",),
        ),
        Concept("X3", "Temblor", "es", (), ("sign",)),
        Concept("X4", "Temblor esencial", "es", (), ("disease",)),
    ]
    build_kb(concepts, path, meta={"name": "small"})
    return path


@pytest.fixture
def kb(folder: Path) -> SpacyKnowledgeBase:
    return make_knowledge_base(str(folder))(spacy.blank("es").vocab)


def make_doc(nlp: Language, text: str, mention: str, kb_id: str = "") -> Doc:
    doc = nlp.make_doc(text)
    start = text.index(mention)
    span = doc.char_span(start, start + len(mention), "DISEASE", kb_id=kb_id)
    assert span is not None
    doc.ents = [span]
    return doc


def mention_of(text: str, mention: str) -> Span:
    return make_doc(spacy.blank("es"), text, mention).ents[0]


def add_linker(nlp: Language, **settings: object) -> None:
    nlp.add_pipe("bioclin_sentences")
    getters = {
        "get_candidates": {"@misc": "spacy-bioclin.get_candidates.v1"},
        "get_candidates_batch": {"@misc": "spacy-bioclin.get_candidates_batch.v1"},
    }
    config = {**getters, "generate_empty_kb": OURS, "candidates_batch_size": 8, **settings}
    nlp.add_pipe("entity_linker", config=config)


def train(folder: Path, n_updates: int = 40, **settings: object) -> Language:
    """spaCy's component, trained to tell the two diseases apart."""
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("es")
    add_linker(nlp)
    examples = [
        Example(nlp.make_doc(text), make_doc(nlp, text, "EP", kb_id))
        for texts, kb_id in ((EMBOLISM, "X1"), (PARKINSON, "X2"))
        for text in texts
    ]
    sentences = nlp.get_pipe("bioclin_sentences")
    for eg in examples:
        sentences(eg.predicted)
        sentences(eg.reference)
    nlp.config["initialize"]["components"]["entity_linker"] = {
        "kb_loader": {**OURS, "kb": str(folder), **settings}
    }
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(n_updates):
        nlp.update(examples, sgd=optimizer)
    return nlp


def link(nlp: Language, text: str, mention: str = "EP") -> str:
    return nlp(make_doc(nlp, text, mention)).ents[0].kb_id_


@pytest.fixture(scope="module")
def trained(folder: Path) -> Language:
    return train(folder)


# -- candidates ----------------------------------------------------------------------------------


def test_candidates_are_ranked_with_their_priors(kb: SpacyKnowledgeBase) -> None:
    mention = mention_of("Temblor esencial desde joven.", "Temblor esencial")
    first, second = kb.get_candidates(mention)[:2]
    assert (first.entity_, second.entity_) == ("X4", "X3")
    assert first.alias_ == "Temblor esencial"
    assert 0.5 < first.prior_prob < 1 and second.prior_prob < first.prior_prob
    assert first.entity_vector == pytest.approx(kb.get_vector("X4"))
    one, other = kb.get_alias_candidates("EP")[:2]
    assert {one.entity_, other.entity_} == {"X1", "X2"}
    assert one.prior_prob == other.prior_prob


def test_batch_finds_the_same_in_order(kb: SpacyKnowledgeBase, folder: Path) -> None:
    mentions = [mention_of(f"Hay {text}.", text) for text in ("EP", "temblor", "EP", "zzz")]

    def said(found):  # type: ignore[no-untyped-def]
        return [[(c.entity_, c.prior_prob) for c in candidates] for candidates in found]

    alone = make_knowledge_base(str(folder))(spacy.blank("es").vocab)
    expected = said(alone.get_candidates(mention) for mention in mentions)
    assert said(kb.get_candidates_batch(mentions)) == expected
    assert said(kb.get_candidates_batch(mentions)) == expected  # remembered
    assert said(spacy.kb.get_candidates_batch(kb, iter(mentions))) == expected
    assert expected[3] == [] and kb.get_candidates_batch([]) == []


def test_abbreviations_of_the_note_are_written_out(kb: SpacyKnowledgeBase) -> None:
    text = "Enfermedad de Parkinson (EPK) desde 2010. La EPK progresa."
    nlp = spacy.blank("es")
    doc = nlp.make_doc(text)
    start = text.rindex("EPK")
    doc.ents = [doc.char_span(start, start + 3, "DISEASE")]
    assert kb.get_candidates(doc.ents[0])[0].entity_ == "X2"
    assert mention_of("La EPK progresa.", "EPK").text == "EPK"
    found = kb.get_candidates(mention_of("La EPK progresa.", "EPK"))
    assert all(c.prior_prob < 0.5 for c in found)


def test_types_and_least_prior(kb: SpacyKnowledgeBase) -> None:
    mention = mention_of("Temblor fino.", "Temblor")
    types = {"DISEASE": ["dis*"]}
    one = make_get_candidates(types=types, min_prior=0.0)(kb, mention)
    assert [c.entity_ for c in one] == ["X4"]
    assert [c.entity_ for c in make_get_candidates({"OTHER": ["sign"]}, 0.5)(kb, mention)] == ["X3"]
    batch = make_get_candidates_batch(min_prior=0.99999)
    assert batch(kb, [mention]) == [[]]
    with pytest.raises(BioclinError, match="no concept has the type 'drug'"):
        make_get_candidates(types={"DISEASE": ["drug"]})(kb, mention)
    with pytest.raises(BioclinError, match="min_prior = 2"):
        make_get_candidates(min_prior=2)
    with pytest.raises(BioclinError, match="is a InMemoryLookupKB"):
        make_get_candidates()(InMemoryLookupKB(spacy.blank("es").vocab, 3), mention)


def test_a_label_without_types_means_no_concept(kb: SpacyKnowledgeBase) -> None:
    """As in `bioclin_linker`."""
    mention = mention_of("Temblor fino.", "Temblor")
    for types, n in (({"DISEASE": []}, 0), ({"OTHER": []}, 2), ({}, 2), (None, 2)):
        assert len(make_get_candidates(types, 0.0)(kb, mention)) == n
        batch = make_get_candidates_batch(types, 0.0)(kb, [mention, mention])
        assert [len(candidates) for candidates in batch] == [n, n]
    assert len(kb.get_alias_candidates("Temblor")) == 2


def test_what_was_learned_changes_the_priors(folder: Path, tmp_path: Path) -> None:
    learned = LearnedNames(KnowledgeBase.open(folder), [LearnedMention("EP", "X2", 0)] * 3)
    ranker = Ranker.untrained().to_dict()
    ranker["weights"]["direct"][ranker["features"].index("same_mention")] = 5.0
    for name, content in (("ranker", ranker), ("learned", learned.to_list())):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    kb = make_knowledge_base(str(folder), model=str(tmp_path))(spacy.blank("es").vocab)
    first, second = kb.get_alias_candidates("EP")[:2]
    assert first.entity_ == "X2" and first.prior_prob > 2 * second.prior_prob
    kb.to_disk(tmp_path / "saved")
    again = make_knowledge_base()(spacy.blank("es").vocab, 7).from_disk(tmp_path / "saved")
    assert again.get_alias_candidates("EP")[0].prior_prob == first.prior_prob


# -- vectors -------------------------------------------------------------------------------------


def test_trigram_vectors_are_of_length_1_and_alike_where_names_are() -> None:
    names = ("Temblor esencial", "temblores esenciales", "Embolia pulmonar", "?", "")
    one, like, other, *odd = (trigram_vector(name, 64) for name in names)
    assert one @ like > 0.6 > 0.3 > one @ other
    assert np.allclose([np.linalg.norm(v) for v in (one, like, other, *odd)], 1)
    # "a" has one trigram, " a ".
    assert sorted(np.abs(trigram_vector("a", 8)).tolist()) == [0] * 7 + [1]


def test_trigram_vectors_are_rounded_once() -> None:
    """Counts of trigrams over the root of an integer: no processor may give another last bit."""
    for name in ("Embolia pulmonar", "Enfermedad de Parkinson", "Temblor esencial de la mano"):
        vector = trigram_vector(name, 48)
        one = min(abs(value) for value in vector.tolist() if value)  # a trigram, or a few alike
        counts = [round(value / one) for value in vector.tolist()]
        length = math.sqrt(sum(count**2 for count in counts))
        assert vector.tolist() == [float(np.float32(count / length)) for count in counts]
        assert vector.dtype == np.float32


def test_vectors_of_ids(kb: SpacyKnowledgeBase) -> None:
    assert kb.entity_vector_length == 64
    assert kb.get_vector("X1") == trigram_vector("Embolia pulmonar", 64).tolist()
    assert kb.get_vector("X20") == kb.get_vector("X2")  # an alternative id
    one, two, both = kb.get_vectors(["X1", "X2", "X1|X2"])
    middle = np.add(np.float32(one), np.float32(two)).tolist()
    length = math.sqrt(math.fsum(value * value for value in middle))
    assert both == np.float32([value / length for value in middle]).tolist()
    with pytest.warns(UserWarning, match="'Y1' is not in the knowledge base"):
        assert kb.get_vector("Y1") == [0.0] * 64


@pytest.mark.filterwarnings("error")
def test_nil_is_no_unknown_id(kb: SpacyKnowledgeBase) -> None:
    assert not any(kb.get_vector("NIL"))


@pytest.mark.slow
def test_vectors_of_an_encoder(folder: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    encoder = NameEncoder(str(tiny_encoder), precision="fp32", device="cpu")
    embed_names(KnowledgeBase.open(folder), encoder, tmp_path / "vectors")
    settings = {"meanings": str(tmp_path / "vectors"), "encoder": str(tiny_encoder)}
    kb = make_knowledge_base(str(folder), **settings)(spacy.blank("es").vocab)
    assert kb.entity_vector_length == encoder.width
    wanted = encoder.encode(["Embolia pulmonar"])[0]
    assert np.allclose(kb.get_vector("X1"), wanted, atol=1e-2)
    kb.to_disk(tmp_path / "saved")
    again = make_knowledge_base()(spacy.blank("es").vocab, 3).from_disk(tmp_path / "saved")
    assert again.get_vector("X1") == kb.get_vector("X1")
    assert again.bundle.encoder == str(tmp_path / "saved" / "encoder")
    copy = make_knowledge_base()(spacy.blank("es").vocab, 3).from_bytes(kb.to_bytes())
    assert copy.get_vector("X1") == kb.get_vector("X1")
    with pytest.raises(BioclinError, match=r"encoder = None: set both"):
        make_knowledge_base(str(folder), meanings="x")(spacy.blank("es").vocab)


# -- spaCy's component ---------------------------------------------------------------------------


def test_it_learns_what_the_sentence_says(trained: Language) -> None:
    assert link(trained, "Con EP y temblor, toma levodopa.") == "X2"
    assert link(trained, "Con EP, se da heparina.") == "X1"
    assert link(trained, "Hay zzz.", "zzz") == "NIL"


def test_it_is_saved_with_its_knowledge_base(
    trained: Language, folder: Path, tmp_path: Path
) -> None:
    trained.to_disk(tmp_path / "one")
    trained.to_disk(tmp_path / "one")  # over itself
    (tmp_path / "one").rename(tmp_path / "two")
    nlp = spacy.load(tmp_path / "two")
    kb = nlp.get_pipe("entity_linker").kb
    assert isinstance(kb, SpacyKnowledgeBase)
    assert kb.kb is not None and kb.kb.path == tmp_path / "two" / "entity_linker" / "kb" / "kb"
    nlp.to_disk(tmp_path / "two")  # over what is open
    copy = spacy.blank("es")
    add_linker(copy)
    copy.from_bytes(trained.to_bytes())
    for text in ("Con EP y temblor, toma levodopa.", "Con EP, se da heparina."):
        expected = link(trained, text)
        assert [link(n, text) for n in (nlp, spacy.load(tmp_path / "two"), copy)] == [expected] * 3


@pytest.mark.slow
def test_it_is_saved_with_the_path_of_its_knowledge_base(
    folder: Path, tmp_path: Path, concepts: list[Concept]
) -> None:
    own = shutil.copytree(folder, tmp_path / "own")
    nlp = train(own, n_updates=1, carry=False)
    nlp.to_disk(tmp_path / "nlp")
    state = tmp_path / "nlp" / "entity_linker" / "kb" / STATE
    assert not (state.parent / "kb").exists()
    again = spacy.load(tmp_path / "nlp").get_pipe("entity_linker").kb
    assert len(again) == 4 and again.bundle.kb_path == str(own.resolve())
    shutil.rmtree(own)
    with pytest.raises(BioclinError, match=r"settings\.json: kb = .* is not there"):
        spacy.load(tmp_path / "nlp")
    build_kb(concepts, own, meta={"name": "another"})
    with pytest.raises(BioclinError, match="another knowledge base"):
        spacy.load(tmp_path / "nlp")


def test_empty_and_wrong_ones_say_so(kb: SpacyKnowledgeBase, tmp_path: Path) -> None:
    vocab = spacy.blank("es").vocab
    empty = make_knowledge_base()(vocab, 5)
    assert empty.is_empty() and not kb.is_empty()
    assert (len(empty), empty.entity_vector_length) == (0, 5)
    assert not empty.contains_entity("X1") and kb.contains_entity("X1")
    empty.to_disk(tmp_path / "empty")
    assert make_knowledge_base()(vocab).from_disk(tmp_path / "empty").is_empty()
    with pytest.raises(BioclinError, match="it is empty"):
        empty.get_alias_candidates("EP")
    with pytest.raises(BioclinError, match="holds no SpacyKnowledgeBase"):
        empty.from_disk(tmp_path)
    with pytest.raises(BioclinError, match=r"n_candidates = 0"):
        make_knowledge_base(n_candidates=0)(vocab)
    assert kb.kb is not None
    with pytest.raises(BioclinError, match=kb.kb.hash):
        make_knowledge_base(str(kb.kb.path), kb_hash="0")(vocab)


def test_bytes_are_not_written_elsewhere(kb: SpacyKnowledgeBase, tmp_path: Path) -> None:
    for name in ("../evil", "kb/../../evil", str(tmp_path / "evil")):
        with pytest.raises(BioclinError, match="outside of their folder"):
            kb.from_bytes(srsly.msgpack_dumps({name: b"x"}))
    assert not (tmp_path / "evil").exists()


def test_the_old_import_path_warns() -> None:
    with pytest.warns(DeprecationWarning, match=r"linking\.entity_linker\.hooks"):
        from spacy_bioclin.linking import spacy_hooks
    assert spacy_hooks.make_knowledge_base is make_knowledge_base
