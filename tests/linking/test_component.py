"""`bioclin_linker` in a pipeline: what it writes, keeps, saves and says."""

import pickle
import re
import shutil

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_bioclin.encoders.names import NameEncoder
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.bundle import TrainedModel
from spacy_bioclin.linking.candidates import Candidate
from spacy_bioclin.linking.dense.embed import embed_names
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.ranking import Ranker
from tests.util import replaced_extension

TEXT = "Acute kidney injury (AKI) and a cold. AKI with breast and ovarian cancer; cardboard."
PATTERNS = ("Acute kidney injury", "AKI", "cold", "breast and ovarian cancer", "cardboard")
KB_IDS = ["C2", "C2", "C7", "C2", "C3|C4", ""]


def make(kb=None, lang="en", patterns=PATTERNS, **config):
    nlp = spacy.blank(lang)
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns(
        [{"label": "PROBLEM", "pattern": pattern, "id": "r"} for pattern in patterns]
    )
    config = (
        {"kb": str(kb.path if isinstance(kb, KnowledgeBase) else kb), **config} if kb else config
    )
    nlp.add_pipe("bioclin_linker", config=config)
    return nlp


def ids(doc):
    return [ent.kb_id_ for ent in doc.ents]


def add_key(doc):
    """Spans that overlap, in no order, with scores and ids."""
    spans = [
        Span(doc, 8, 9, "B", span_id="rule"),
        Span(doc, 0, 3, "A"),
        Span(doc, 1, 2, "B"),
        Span(doc, 3, 6, "B", kb_id="MINE"),
    ]
    scores = np.array([0.5, 0.9, 0.1, 0.2], np.float32)
    doc.spans["x"] = SpanGroup(doc, name="x", attrs={"scores": scores}, spans=spans)
    return doc


@pytest.fixture(scope="module")
def nlp(clinic):
    """A pipeline that no test changes."""
    return make(clinic)


@pytest.fixture(scope="module")
def linked(nlp):
    return nlp(TEXT)


# -- what it writes ----------------------------------------------------------------------------


def test_entities_get_ids_and_candidates(linked):
    doc = linked
    assert ids(doc) == KB_IDS
    first = doc.ents[1]._.candidates[0]
    assert isinstance(first, Candidate)
    assert first[:2] == ("C2", "acute kidney injury")
    assert first.why == "same name: acute kidney injury"
    assert 0.9 < first.score <= 1
    assert len(doc.ents[1]._.candidates) > 1
    assert doc[0:1]._.candidates == []


def test_abbreviations_are_expanded_and_listed(clinic, linked):
    doc = linked
    found = [(s.text, s.start_char, s._.long_form.text) for s in doc._.abbreviations]
    places = [match.start() for match in re.finditer(r"\bAKI\b", TEXT)]
    assert found == [("AKI", start, "Acute kidney injury") for start in places]
    assert len(places) > 1
    [(*short, start, end)] = doc._.abbreviation_offsets
    assert TEXT[slice(*short)] == "AKI"
    assert TEXT[start:end] == "Acute kidney injury"
    assert doc[0:1]._.long_form is None
    without = make(clinic, expand_abbreviations=False)(TEXT)
    assert ids(without)[1] != "C2"
    assert without._.abbreviations == without._.abbreviation_offsets == []


def test_a_linker_before_what_finds_entities_is_seen(clinic, nlp):
    assert nlp.analyze_pipes()["problems"]["bioclin_linker"] == []
    nlp = spacy.blank("en")
    nlp.add_pipe("bioclin_linker", config={"kb": str(clinic.path)})
    nlp.add_pipe("entity_ruler")
    assert nlp.analyze_pipes()["problems"]["bioclin_linker"] == ["doc.ents"]


def test_entities_stay_what_they_are(nlp):
    plain = nlp(TEXT, disable=["bioclin_linker"])
    doc = nlp(TEXT)
    for ent, before in zip(doc.ents, plain.ents, strict=True):
        assert (ent.start, ent.end, ent.label_, ent.ent_id_) == (
            *(before.start, before.end, before.label_, before.ent_id_),
        )
    assert [t.ent_iob for t in doc] == [t.ent_iob for t in plain]
    doc = Doc(nlp.vocab, words=["cold", "x", "anemia"])
    doc.set_ents([Span(doc, 0, 1, "A", span_id="me")], missing=[doc[2:3]], default="outside")
    with replaced_extension(Span, "own_note", default=None):
        doc.ents[0]._.own_note = "kept"
        nlp.get_pipe("bioclin_linker")(doc)
        assert doc.ents[0]._.own_note == "kept"
    assert [t.ent_iob_ for t in doc] == ["B", "O", ""]
    assert (doc.ents[0].id_, doc.ents[0].kb_id_) == ("me", "C7")


def test_spans_of_a_key_keep_order_scores_and_ids(clinic):
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("bioclin_linker", config={"kb": str(clinic.path), "spans_key": "x"})
    doc = linker(add_key(nlp.make_doc(TEXT)))
    found = [(span.text, span.label_, span.id_, span.kb_id_) for span in doc.spans["x"]]
    assert found[:2] == [("cold", "B", "rule", "C7"), ("Acute kidney injury", "A", "", "C2")]
    assert found[3] == ("(AKI)", "B", "", "MINE")
    assert doc.spans["x"].attrs["scores"].tolist() == pytest.approx([0.5, 0.9, 0.1, 0.2])
    assert doc.spans["x"].name == "x"
    assert doc.spans["x"][1]._.candidates[0].kb_id == "C2"
    assert doc.spans["x"][3]._.candidates == []
    assert ids(doc) == []
    assert nlp("no such key").spans == {}


def test_ids_that_are_there_are_kept_unless_told(clinic, nlp):
    own = nlp.get_pipe("bioclin_linker")
    told = make(clinic, overwrite=True).get_pipe("bioclin_linker")
    for linker, wanted in ((own, "OTHER"), (told, "C7")):
        doc = Doc(nlp.vocab, words=["a", "cold"])
        doc.ents = [Span(doc, 1, 2, "A", kb_id="OTHER")]
        assert ids(linker(doc)) == [wanted]


def test_labels_and_types(clinic):
    nlp = make(clinic, labels=["B"], types={"B": ["finding"]})
    doc = Doc(nlp.vocab, words=["cold", "cold"])
    doc.ents = [Span(doc, 0, 1, "A"), Span(doc, 1, 2, "B")]
    assert ids(nlp.get_pipe("bioclin_linker")(doc)) == ["", "C8"]
    assert doc.ents[0]._.candidates == []


def test_threshold_and_n_shown(clinic):
    doc = make(clinic, threshold=0.6, n_shown=1)(TEXT)
    assert ids(doc) == ["C2", "C2", "", "C2", "C3|C4", ""]
    assert [len(ent._.candidates) for ent in doc.ents[:3]] == [1, 1, 1]


def test_spanish(clinic):
    nlp = make(clinic, "es", patterns=["cáncer de mama y ovario", "IRA", "resfriados"])
    doc = nlp("Insuficiencia renal aguda (IRA), resfriados y cáncer de mama y ovario.")
    assert ids(doc) == ["C1", "C7", "C3|C4"]


@pytest.mark.slow
def test_after_bioclin_ner(clinic, tiny_encoder):
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-bioclin.Encoder.v1", "name": str(tiny_encoder)}
    nlp.add_pipe("transformer", config={"model": encoder})
    nlp.add_pipe("bioclin_ner")
    nlp.add_pipe("bioclin_linker", config={"kb": str(clinic.path)})
    words = ["a", "cold", "and", "anemia"]
    reference = Doc(nlp.vocab, words=words)
    reference.ents = [Span(reference, 1, 2, "P"), Span(reference, 3, 4, "P")]
    example = Example(Doc(nlp.vocab, words=words), reference)
    fix_random_seed(0)
    optimizer = nlp.initialize(lambda: [example])
    optimizer.learn_rate = 5e-3
    doc = Doc(nlp.vocab, words=words)
    while [ent.text for ent in doc.ents] != ["cold", "anemia"]:
        nlp.update([example], sgd=optimizer)
        doc = nlp(Doc(nlp.vocab, words=words))
    assert ids(doc) == ["C7", "C5"]
    assert all(ent._.probability for ent in doc.ents)


# -- batches -----------------------------------------------------------------------------------


def test_all_mentions_of_a_batch_are_looked_up_at_once(clinic, monkeypatch):
    nlp = make(clinic)
    component = nlp.get_pipe("bioclin_linker")
    asked = []
    own = component.linker

    def count(mentions):
        asked.append(len(mentions))
        return own(mentions)

    component._linker = count
    docs = list(nlp.pipe([TEXT, "", "a cold", TEXT], batch_size=3))
    assert asked == [7, 6]
    assert [ids(doc) for doc in docs] == [KB_IDS, [], ["C7"], KB_IDS]


@pytest.mark.slow
def test_two_processes(clinic):
    nlp = make(clinic)
    docs = list(nlp.pipe([TEXT] * 4, n_process=2, batch_size=2))
    assert [ids(doc) for doc in docs] == [KB_IDS] * 4
    assert docs[3].ents[0]._.candidates[0].kb_id == "C2"


def test_an_error_goes_to_the_handler_without_text(clinic):
    nlp = make()
    seen = []
    nlp.set_error_handler(lambda name, proc, docs, error: seen.append((name, len(docs), error)))
    assert list(nlp.pipe([TEXT, TEXT])) == []
    [(name, n, error)] = seen
    assert (name, n) == ("bioclin_linker", 2)
    assert "AKI" not in str(error)


# -- the ways of a Doc ---------------------------------------------------------------------------


def test_docs_keep_what_was_found(clinic, nlp, tmp_path):
    linker = make(clinic, spans_key="x").get_pipe("bioclin_linker")
    doc = linker(add_key(nlp(TEXT)))
    doc.to_disk(tmp_path / "doc")
    data = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    copies = [
        Doc(nlp.vocab).from_bytes(doc.to_bytes()),
        Doc(nlp.vocab).from_disk(tmp_path / "doc"),
        pickle.loads(pickle.dumps(doc)),
        *DocBin(store_user_data=True).from_bytes(data).get_docs(nlp.vocab),
    ]
    for back in copies:
        assert ids(back) == KB_IDS
        assert list(map(str, back._.abbreviations)) == list(map(str, doc._.abbreviations)) != []
        for spans, kept in ((doc.ents, back.ents), (doc.spans["x"], back.spans["x"])):
            for span, own in zip(spans, kept, strict=True):
                assert own._.candidates == span._.candidates
                assert (own.kb_id_, own.id_) == (span.kb_id_, span.id_)


# -- saving --------------------------------------------------------------------------------------


def test_pipeline_carries_the_knowledge_base(clinic, tmp_path):
    kb = shutil.copytree(clinic.path, tmp_path / "kb")
    make(kb).to_disk(tmp_path / "pipeline")
    shutil.rmtree(kb)
    (tmp_path / "pipeline").rename(tmp_path / "moved")
    loaded = spacy.load(tmp_path / "moved")
    loaded.to_disk(tmp_path / "moved")  # onto itself
    assert ids(loaded(TEXT)) == ids(spacy.load(tmp_path / "moved")(TEXT)) == KB_IDS


@pytest.mark.slow
def test_pipeline_that_does_not_carry_it_names_path_and_hash(clinic, tmp_path):
    kb = shutil.copytree(clinic.path, tmp_path / "kb")
    pipeline = tmp_path / "pipeline"
    make(kb).to_disk(pipeline)  # a folder that held a copy before
    make(kb, carry=False).to_disk(pipeline)
    assert ids(spacy.load(pipeline)(TEXT)) == KB_IDS
    kb.rename(tmp_path / "other")
    with pytest.raises(BioclinError, match=r"bioclin_linker.*kb is not a know.*spacy\.load"):
        spacy.load(pipeline)
    config = {"components": {"bioclin_linker": {"kb": str(tmp_path / "other")}}}
    assert ids(spacy.load(pipeline, config=config)(TEXT)) == KB_IDS
    build_kb([Concept("X", "cold", "en")], kb)
    with pytest.raises(BioclinError, match="another version"):
        spacy.load(pipeline)


def test_bytes_with_and_without_the_knowledge_base(clinic):
    for carry in (True, False):
        nlp = make(clinic, carry=carry)
        content = nlp.get_pipe("bioclin_linker").to_bytes()
        assert (len(content) > 10_000) == carry
        other = make()
        other.get_pipe("bioclin_linker").from_bytes(content)
        assert ids(other(TEXT)) == KB_IDS


def test_in_memory_only_and_not_carried_is_an_error(clinic, tmp_path):
    nlp = make(carry=False)
    nlp.get_pipe("bioclin_linker").set_kb(KnowledgeBase.from_bytes(clinic.to_bytes()))
    assert ids(nlp(TEXT)) == KB_IDS
    with pytest.raises(BioclinError, match="carry = true"):
        nlp.to_disk(tmp_path / "pipeline")


def test_component_can_be_pickled_without_what_it_remembers(nlp):
    nlp(TEXT)
    content = pickle.dumps(nlp.get_pipe("bioclin_linker"))
    assert len(content) < 2_000
    assert b"cardboard" not in content
    component = pickle.loads(content)
    assert component.name == "bioclin_linker"
    assert ids(component(nlp(TEXT, disable=["bioclin_linker"]))) == KB_IDS


def test_trained_model_goes_with_the_pipeline(clinic, tmp_path):
    ranker = Ranker.untrained().to_dict()
    TrainedModel(ranker, [["boxes", "C9", 0, 3]]).write(tmp_path / "model")
    nlp = make(clinic, patterns=["boxes"], model=str(tmp_path / "model"))
    assert nlp("boxes").ents[0]._.candidates[0].kb_id == "C9"
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(tmp_path / "model")
    loaded = spacy.load(tmp_path / "pipeline")
    assert loaded("boxes").ents[0]._.candidates[0].kb_id == "C9"
    other = make(clinic, patterns=["boxes"])
    other.get_pipe("bioclin_linker").from_bytes(nlp.get_pipe("bioclin_linker").to_bytes())
    assert other("boxes").ents[0]._.candidates[0].kb_id == "C9"
    with pytest.raises(BioclinError, match="holds no trained linker"):
        make(clinic, model=str(tmp_path / "nothing"))("a cold")


@pytest.mark.slow
def test_vectors_and_encoder_go_with_the_pipeline(clinic, tiny_encoder, tmp_path):
    encoder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, encoder)
    names = NameEncoder(str(encoder), precision="fp32", device="cpu")
    embed_names(clinic, names, tmp_path / "vectors")
    for folder in (encoder, tmp_path / "vectors"):  # as if a package named a folder of the user
        (folder / "id_rsa").write_text("private")
    nlp = make(clinic, meanings=str(tmp_path / "vectors"), encoder=str(encoder))
    doc = nlp(TEXT)
    assert ids(doc)[0] == "C2"
    assert len(doc.ents[0]._.candidates) > len(make(clinic)(TEXT).ents[0]._.candidates)
    nlp.to_disk(tmp_path / "pipeline")
    assert not list((tmp_path / "pipeline").rglob("id_rsa"))
    shutil.rmtree(encoder)
    shutil.rmtree(tmp_path / "vectors")
    again = spacy.load(tmp_path / "pipeline")(TEXT)
    found = [[c.kb_id for c in ent._.candidates] for ent in again.ents]
    assert found == [[c.kb_id for c in ent._.candidates] for ent in doc.ents]


# -- settings and errors -------------------------------------------------------------------------


def test_without_a_knowledge_base_it_says_how_to_give_one(clinic, tmp_path):
    nlp = make()
    with pytest.raises(BioclinError, match=r"bioclin kb build.*kb = .*set_kb"):
        nlp(TEXT)
    nlp.to_disk(tmp_path / "bare")
    loaded = spacy.load(tmp_path / "bare")
    loaded.get_pipe("bioclin_linker").set_kb(clinic.path)
    assert ids(loaded(TEXT)) == KB_IDS
    component = nlp.get_pipe("bioclin_linker")
    component.initialize(lambda: [], nlp=nlp, kb=str(clinic.path))
    assert ids(nlp(TEXT)) == KB_IDS
    with pytest.raises(BioclinError, match="has no knowledge base"):
        make().initialize()


def test_another_knowledge_base_takes_effect(clinic, tmp_path):
    linked = make(clinic)
    linked(TEXT)
    other = build_kb([Concept("X", "cold", "en")], tmp_path / "kb")
    linked.get_pipe("bioclin_linker").set_kb(other)
    assert ids(linked(TEXT))[2] == "X"
    same = make(clinic, kb_hash=clinic.hash)
    assert ids(same(TEXT)) == KB_IDS
    with pytest.raises(BioclinError, match=f"{other.hash}, wanted is {clinic.hash}"):
        same.get_pipe("bioclin_linker").set_kb(other)
    with pytest.raises(BioclinError, match=f"{clinic.hash}, wanted is abc"):
        make(clinic, kb_hash="abc")(TEXT)


IMPOSSIBLE = [
    ({"threshold": 1.5}, "threshold = 1.5"),
    ({"n_shown": 0}, "n_shown = 0"),
    ({"n_candidates": 0}, "n_candidates = 0"),
    ({"meanings": "x"}, "set both"),
    ({"encoder": "x"}, "set both"),
]


def test_settings_that_cannot_be(clinic):
    nlp = spacy.blank("en")
    for config, message in IMPOSSIBLE:
        with pytest.raises(BioclinError, match=message):
            nlp.add_pipe("bioclin_linker", config=config)
    with pytest.raises(BioclinError, match=r"types of 'PROBLEM': no concept has the type 'T999'"):
        make(clinic, types={"PROBLEM": ["T999"]})(TEXT)


def test_scores(clinic, nlp):
    reference = nlp(TEXT)
    for token in reference.ents[2]:
        token.ent_kb_id_ = "C8"
    scores = nlp.evaluate([Example(nlp.make_doc(TEXT), reference)])
    # Of 6 mentions one, NIL, is rightly so, and one is another concept, whose candidate is second.
    assert scores["link_acc"] == pytest.approx(5 / 6)
    assert scores["link_r5"] == 1
    reference = nlp(TEXT)
    for token in reference.ents[0]:
        token.ent_kb_id_ = "C20"  # merged into C2: any id of a concept is right
    assert nlp.evaluate([Example(nlp.make_doc(TEXT), reference)])["link_acc"] == 1
    linker = make(clinic, spans_key="x").get_pipe("bioclin_linker")
    doc = add_key(nlp.make_doc(TEXT))
    assert linker.score([Example(linker(doc), doc.copy())])["spans_x_link_acc"] == 1


def test_a_changed_setting_takes_effect_and_is_saved(clinic, tmp_path):
    nlp = make(clinic, types={"PROBLEM": ["T999"]})
    linker = nlp.get_pipe("bioclin_linker")
    linker.types = {}
    assert ids(nlp(TEXT)) == KB_IDS
    linker.threshold = 1.0
    assert ids(nlp(TEXT)) == [""] * 6
    linker.threshold, linker.types["PROBLEM"] = 0.0, ["problem.kidney"]
    kidney = ["C2", "C2", "", "C2", "", ""]
    assert ids(nlp(TEXT)) == kidney
    nlp.to_disk(tmp_path / "nlp")
    again = spacy.load(tmp_path / "nlp")
    assert ids(again(TEXT)) == kidney
    again.to_disk(tmp_path / "nlp")
    config = {"components": {"bioclin_linker": {"threshold": 1.0}}}
    assert ids(spacy.load(tmp_path / "nlp", config=config)(TEXT)) == [""] * 6
    again.get_pipe("bioclin_linker").from_bytes(linker.to_bytes())
    assert ids(again(TEXT)) == kidney


def test_letters_that_keys_leave_out_tell_concepts_apart(tmp_path):
    names = ("Hepatitis A", "Hepatitis E", "Haemophilia", "Haemophilia A")
    concepts = [Concept(str(i), name, "en") for i, name in enumerate(names)]
    patterns = ("hepatitis E", "hepatitis A", "haemophilia A", "haemophilia")
    nlp = make(build_kb(concepts, tmp_path / "kb"), patterns=patterns, threshold=0.6)
    assert ids(nlp("No hepatitis E , hepatitis A , haemophilia A or haemophilia")) == [*"1032"]
