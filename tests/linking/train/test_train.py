"""Learning names and ranking from linked mentions."""

import json

import numpy as np
import pytest
import spacy
import srsly
import torch
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.candidates import N_FEATURES, CandidateGenerator, Pool
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
from spacy_bioclin.linking.linker import Linker, Mention
from spacy_bioclin.linking.ranking import Ranker
from spacy_bioclin.linking.train.docs import (
    Layer,
    find_unknown_concepts,
    gather_mentions,
    link_gold,
    pair_parts,
    train_linker,
)
from spacy_bioclin.linking.train.ranker import (
    RankerSettings,
    TrainMention,
    _pad,
    _train,
    fit_ranker,
)

SETTINGS = RankerSettings(epochs=30, batch=16)
# "cold" is a sensation in these notes, "AKI" an injury, and "fatigue" no concept.
NOTES = [("cold", ("C8",)), ("AKI", ("C2",)), ("anaemia", ("C5",)), ("fatigue", ())] * 5


@pytest.fixture
def linker(clinic):
    generator = CandidateGenerator(clinic, n_candidates=8, lang="en")
    return Linker(generator, Ranker.untrained(), lang="en", types={}, n_shown=5, threshold=0.0)


def train_mentions():
    return [TrainMention(text, ids, note) for note, (text, ids) in enumerate(NOTES)]


def test_training_learns_names_priors_and_nil(linker):
    texts = ("cold", "AKI", "anaemia", "fatigue")
    before = [link.kb_id for link in linker([Mention(text) for text in texts])]
    assert before[1] != "C2"
    _, report = train_linker(linker, train_mentions(), SETTINGS)
    after = [link.kb_id for link in linker([Mention(text) for text in texts])]
    assert after == ["C8", "C2", "C5", ""]
    assert report["mentions"] == report["learned"] + 5 == 20
    assert report["loss"][1] < report["loss"][0]


def test_a_short_form_is_learned_with_its_definition(linker):
    """Notes define "AKI", and another note has it without a definition."""
    mentions = [TrainMention("acute kidney injury", ("C2",), note, "AKI") for note in range(5)]
    _, report = train_linker(linker, mentions, SETTINGS)
    assert [link.kb_id for link in linker([Mention("AKI"), Mention("aki")])] == ["C2", "C2"]
    assert (report["mentions"], report["found"], report["learned"]) == (5, 5, 10)


def test_same_seed_same_ranker(linker):
    first, _ = train_linker(linker, train_mentions(), SETTINGS)
    linker.generator.learned = None
    second, _ = train_linker(linker, train_mentions(), SETTINGS)
    assert first == second


def test_a_mention_does_not_help_itself(clinic):
    """One mention of a name that no terminology has teaches nothing: its own fold is left out."""
    generator = CandidateGenerator(clinic, n_candidates=8, lang="en")
    alone = [TrainMention("zzz", ("C2",), 0)]
    with pytest.raises(BioclinError, match="none has its concept among the candidates"):
        fit_ranker(generator, alone, SETTINGS)
    linker = Linker(generator, Ranker.untrained(), lang="en", types={}, n_shown=5, threshold=0.0)
    with pytest.raises(BioclinError, match="of 1 mentions"):
        train_linker(linker, alone, SETTINGS)


def test_pad_marks_what_is_right_and_what_is_there():
    pools = [
        Pool(np.array([4, 7]), np.array([0, 0]), np.ones((2, N_FEATURES), np.float32)),
        Pool(np.array([], np.int64), np.array([], np.int64), np.zeros((0, N_FEATURES), np.float32)),
    ]
    features, gold, real = _pad(pools, [{7}, {3}])
    assert features.shape == (2, 2, N_FEATURES)
    assert gold.tolist() == [[False, True, False], [False, False, True]]
    assert real.tolist() == [[True, True, True], [False, False, True]]


def test_loss_of_the_first_update_is_the_listwise_one():
    """All scores equal: the chance of one right candidate among two and NIL is a third."""
    features = torch.zeros(1, 2, N_FEATURES)
    gold = torch.tensor([[True, False, False]])
    real = torch.ones(1, 3, dtype=torch.bool)
    torch.manual_seed(0)
    weights, losses = _train(features, gold, real, torch.ones(1), RankerSettings(epochs=1))
    hidden = np.maximum(weights["hidden_bias"], 0) @ weights["out"]
    # The update is small beside the start, where candidates score `hidden` and NIL 0.
    expected = np.log(2 * np.exp(hidden) + 1) - hidden
    assert losses[0] == pytest.approx(expected, abs=0.1)


PARTS = [
    (("a", "b"), ("1", "2"), [("a", ("1",)), ("b", ("2",))]),
    (("a", "b"), ("1",), [("a and b", ("1",))]),
    (("a", "b"), ("1", "2", "3"), [("a", ("1", "2", "3")), ("b", ("1", "2", "3"))]),
    (("a and b",), ("1", "2"), [("a and b", ("1", "2"))]),
    (("a and b",), (), [("a and b", ())]),
]


def test_parts_and_ids():
    for parts, ids, expected in PARTS:
        assert [m[:2] for m in pair_parts("a and b", parts, ids, 3, "a and b")] == expected


def test_mention_learned_whole_is_not_taken_apart(linker):
    composite = "breast and ovarian cancer"
    assert linker.parts([composite]) == [("breast cancer", "ovarian cancer")]
    train_linker(linker, [TrainMention(composite, ("C3",), note) for note in range(5)], SETTINGS)
    assert linker.parts([composite]) == [(composite,)]
    assert linker([Mention(composite)])[0].kb_id == "C3"


def make_doc(nlp, text, *spans):
    doc = nlp.make_doc(text)
    doc.set_ents([doc.char_span(*span[:2], label="P", kb_id=span[2]) for span in spans])
    return doc


def test_gold_docs_expand_abbreviations_and_alternative_ids(linker):
    nlp = spacy.blank("en")
    text = "Acute kidney injury (AKI). Later AKI was gone."
    doc = make_doc(nlp, text, (33, 36, "C20"))
    assert gather_mentions([doc], linker, Layer(None, None)) == [
        TrainMention("Acute kidney injury", ("C2",), 0, "AKI")
    ]
    assert gather_mentions([doc], linker, Layer(None, ["OTHER"])) == []
    [linked] = link_gold([doc], linker, Layer(None, None))
    assert (linked.text, linked.gold, linked.rankings[0][0]) == ("AKI", ("C2",), "C2")


def test_gold_ids_are_found_as_the_knowledge_base_has_them(tmp_path):
    names = {"MESH:D006973": "hypertension", "A17.0+": "meningitis", "OMIM:1": "one", "D2": "two"}
    kb = build_kb([Concept(id, name, "en") for id, name in names.items()], tmp_path / "kb")
    generator = CandidateGenerator(kb, n_candidates=8, lang="en")
    linker = Linker(generator, Ranker.untrained(), lang="en", types={}, n_shown=5, threshold=0.0)
    doc = Doc(spacy.blank("en").vocab, words=["a"])
    found = {}
    for id in ("MESH:D006973", "D006973", "A17.0+", "1", "MESH:D2", "D2+1", "D2|X9", "NIL", ""):
        doc.set_ents([Span(doc, 0, 1, "L", kb_id=id)])
        [mention] = link_gold([doc], linker, Layer(None, None))
        found[id] = mention.gold
    assert found == {
        "MESH:D006973": ("MESH:D006973",),
        "D006973": ("MESH:D006973",),
        "A17.0+": ("A17.0+",),
        "1": ("OMIM:1",),
        "MESH:D2": ("D2",),
        "D2+1": ("D2", "OMIM:1"),
        "D2|X9": ("D2", "X9"),
        "NIL": (),
        "": (),
    }


def test_command_writes_a_model_that_the_component_uses(clinic, tmp_path):
    nlp = spacy.blank("en")
    docs = [make_doc(nlp, f"He has {t}.", (7, 7 + len(t), "|".join(i))) for t, i in NOTES]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    arguments = [str(clinic.path), str(tmp_path / "train.spacy"), "--lang", "en"]
    arguments += ["--dev", str(tmp_path / "train.spacy"), "-o", str(tmp_path / "model")]
    done = CliRunner().invoke(app, ["train-linker", *arguments])
    assert done.exit_code == 0, done.output
    assert "fatigue" not in done.output
    report = json.loads((tmp_path / "model" / "report.json").read_text("utf-8"))
    assert report["dev"]["after"]["acc"] > report["dev"]["before"]["acc"]
    config = {"kb": str(clinic.path), "model": str(tmp_path / "model")}
    nlp.add_pipe("bioclin_linker", config=config)
    doc = nlp.get_pipe("bioclin_linker")(make_doc(nlp, "AKI", (0, 3, "")))
    assert isinstance(doc, Doc)
    assert [(type(ent), ent.kb_id_) for ent in doc.ents] == [(Span, "C2")]
    again = CliRunner().invoke(app, ["train-linker", *arguments])
    assert again.exit_code == 1
    assert "exists already" in again.output


def test_unknown_concepts_are_named_by_their_most_frequent_text(clinic):
    mentions = [
        *(TrainMention(text, ("OWN:1",), 0) for text in ("off  colour", "unwell", "unwell")),
        TrainMention("off colour", ("OWN:2", "OWN:3"), 0),  # does not show which it means
        TrainMention("AKI", ("C2",), 0),
        TrainMention("kidneys", ("C20",), 1),  # an alternative id
        TrainMention("broken", (" OWN:4",), 1),
        TrainMention("fatigue", (), 1),
        TrainMention("off  colour", ("OWN:5",), 1),
    ]
    assert find_unknown_concepts(mentions, clinic, "en") == [
        Concept("OWN:1", "unwell", "en"),
        Concept("OWN:5", "off colour", "en"),
    ]


@pytest.mark.slow
def test_unknown_concepts_can_be_built_in_and_linked(clinic, tmp_path):
    """What the command writes and says is enough to link a hospital's own codes."""
    terminology, corpus = tmp_path / "clinic.jsonl", tmp_path / "train.spacy"
    rows = [{"id": one.id, "name": one.name, "lang": one.lang} for one in clinic]
    srsly.write_jsonl(terminology, rows)
    nlp = spacy.blank("en")
    notes = [*NOTES, *[("frailty", ("OWN:1",))] * 5]
    docs = [make_doc(nlp, f"He has {t}.", (7, 7 + len(t), "|".join(i))) for t, i in notes]
    DocBin(docs=docs).to_disk(corpus)

    def invoke(*arguments):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert done.exit_code == 0, done.output
        assert "frailty" not in done.output
        return " ".join(done.output.split())

    for kb, model, more in (("kb", "model", []), ("kb-2", "model-2", ["unknown_concepts.jsonl"])):
        sources = [terminology, *(tmp_path / "model" / name for name in more)]
        invoke("kb", "build", *sources, "-o", tmp_path / kb, "--license", "own", "--name", kb)
        output = invoke(
            *("train-linker", tmp_path / kb, corpus, "--lang", "en", "-o", tmp_path / model)
        )
        assert ("Concepts that the knowledge base lacks: 1." in output) == (not more)
        assert (tmp_path / model / "unknown_concepts.jsonl").exists() == (not more)
    config = {"kb": str(tmp_path / "kb-2"), "model": str(tmp_path / "model-2")}
    nlp.add_pipe("bioclin_linker", config=config)
    doc = nlp.get_pipe("bioclin_linker")(make_doc(nlp, "Frailty", (0, 7, "")))
    assert doc.ents[0].kb_id_ == "OWN:1"
