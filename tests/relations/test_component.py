"""`bioclin_relations` in a pipeline: learning, scopes, concepts, markers, storing, bad input."""

import warnings

import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import Adam, fix_random_seed

from spacy_bioclin.annotations.relations import get_relations
from spacy_bioclin.errors import BioclinError, BioclinWarning
from tests.trained import blank, train_on

# Text, entities, and relations as label, head and child.
NOTES = [
    (
        "aspirin relieves pain. ibuprofen causes ulcers.",
        {"aspirin": "DRUG", "pain": "PROBLEM", "ibuprofen": "DRUG", "ulcers": "PROBLEM"},
        [("TREATS", "aspirin", "pain"), ("CAUSES", "ibuprofen", "ulcers")],
    ),
    (
        "enalapril causes cough. metformin relieves thirst.",
        {"enalapril": "DRUG", "cough": "PROBLEM", "metformin": "DRUG", "thirst": "PROBLEM"},
        [("CAUSES", "enalapril", "cough"), ("TREATS", "metformin", "thirst")],
    ),
    ("pain without aspirin.", {"pain": "PROBLEM", "aspirin": "DRUG"}, []),
    ("No drugs.", {}, []),
]
ENCODER = {"@architectures": "spacy-bioclin.Encoder.v1", "window": 32, "precision": "fp32"}
POOLING = {"@layers": "reduce_mean.v1"}


def make_nlp(encoder, **settings):
    nlp = blank("en")
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("transformer", config={"model": {**ENCODER, "name": str(encoder)}})
    nlp.add_pipe("bioclin_relations", name="relations", config=settings)
    return nlp


def make_marked(encoder, kind, encoder_config=None, **settings):
    model = {
        "@architectures": "spacy-bioclin.RelationClassifier.v1",
        "context": False,
        "feature_width": 0,
        "hidden_width": 0,
        "dropout": 0.0,
        "learn_rate_scale": 10.0,
        "tok2vec": {
            "@architectures": "spacy-bioclin.Tok2VecEncoder.v1",
            "name": str(encoder),
            "window": 32,
            "precision": "fp32",
            "pooling": POOLING,
            "transformer_config": encoder_config or {},
        },
    }
    nlp = blank("en")
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe(
        "bioclin_relations", name="relations", config={"model": model, "input": kind, **settings}
    )
    return nlp


def find_offsets(text, word, label):
    start = text.index(word)
    return [start, start + len(word), label]


def make_reference(nlp, text, entities, relations, *, concepts=False, annotated=True):
    doc = nlp.make_doc(text)
    offsets = {word: find_offsets(text, word, label) for word, label in entities.items()}
    ids = {word: f"C-{word}" for word in entities}
    doc.set_ents(
        [
            doc.char_span(start, end, label=label, kb_id=ids[word])
            for word, (start, end, label) in offsets.items()
        ]
    )
    gold = {"id": text[:5], "task": "", "layers": {}}
    gold["layers"]["ents"] = [[*own, ids[word]] for word, own in offsets.items()]
    if annotated and concepts:
        gold["concept_relations"] = [[label, ids[h], ids[c]] for label, h, c in relations]
    elif annotated:
        gold["relations"] = [[label, offsets[h], offsets[c]] for label, h, c in relations]
    doc.user_data["bioclin_gold"] = gold
    return doc


def make_examples(nlp, notes=NOTES, **options):
    """Examples whose predicted Docs have the gold entities and sentences."""
    examples = []
    for note in notes:
        reference = make_reference(nlp, *note, **options)
        predicted = nlp.make_doc(note[0])
        predicted.set_ents(
            [Span(predicted, e.start, e.end, e.label, kb_id=e.kb_id) for e in reference.ents]
        )
        predicted.user_data["bioclin_given"] = True
        nlp.get_pipe("bioclin_sentences")(predicted)
        examples.append(Example(predicted, reference))
    return examples


def train(nlp, examples, steps=16):
    fix_random_seed(0)
    nlp.initialize(lambda: examples)
    optimizer = Adam(2e-3)
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)
    return nlp


def describe(doc):
    return [(r.label, r.head.text, r.child.text) for r in doc._.relations]


def annotate(nlp, text, entities):
    doc = nlp.make_doc(text)
    spans = [find_offsets(text, word, label) for word, label in entities.items()]
    doc.set_ents([doc.char_span(start, end, label=label) for start, end, label in spans])
    return nlp(doc)


@pytest.fixture(scope="module")
def trained(finder):
    return spacy.load(finder)


def test_learns_and_scores(trained):
    scores = trained.evaluate(make_examples(trained))
    assert scores["rels_f"] == 1.0
    assert set(scores["rels_per_type"]) == {"CAUSES", "TREATS"}
    doc = annotate(trained, *NOTES[0][:2])
    assert describe(doc) == NOTES[0][2]
    [first, _] = doc._.relations
    assert 0.5 < first.probability <= 1
    assert first.head.label_ == "DRUG"
    assert describe(annotate(trained, *NOTES[3][:2])) == []


def test_stores_and_loads(trained, tiny_encoder, tmp_path):
    doc = annotate(trained, *NOTES[0][:2])
    trained.to_disk(tmp_path / "pipeline")
    copied = make_nlp(tiny_encoder).from_bytes(trained.to_bytes())
    for other in (spacy.load(tmp_path / "pipeline"), copied):
        again = annotate(other, *NOTES[0][:2])
        assert describe(again) == describe(doc)
        assert [r.probability for r in again._.relations] == [
            r.probability for r in doc._.relations
        ]
    packed = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    [stored] = DocBin().from_bytes(packed).get_docs(trained.vocab)
    assert describe(stored) == describe(doc)
    assert describe(Doc(trained.vocab).from_bytes(doc.to_bytes())) == describe(doc)


def test_a_config_of_other_types_is_refused_when_loading(finder):
    for settings, message in (
        ({"level": "concept"}, "was trained with another value"),
        ({"thresholds": {"TREAT": 0.5}}, r"thresholds\] TREAT: the component has no such"),
    ):
        with pytest.raises(BioclinError, match=message):
            spacy.load(finder, config={"components": {"relations": settings}})
    low = {"components.relations.thresholds": {"TREATS": 0.0, "CAUSES": 0.0}}
    other = spacy.load(finder, config=low)
    assert len(describe(annotate(other, *NOTES[0][:2]))) == 4  # both labels of both candidates


@pytest.mark.parametrize("kind", ["markers", "masked"])
def test_learns_from_marked_texts(tiny_encoder, kind):
    nlp = make_marked(tiny_encoder, kind)
    examples = make_examples(nlp)
    train(nlp, examples)
    train_on(nlp, examples, lambda: nlp.evaluate(examples)["rels_f"] == 1)
    assert describe(annotate(nlp, *NOTES[0][:2])) == NOTES[0][2]


def test_marked_texts_in_small_batches_have_the_same_relations(tiny_encoder, monkeypatch):
    nlp = make_marked(tiny_encoder, "markers")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("relations")
    docs = [eg.predicted for eg in examples]
    once = pipe.predict(docs)
    monkeypatch.setattr("spacy_bioclin.relations.component.MAX_TOKENS", 5)
    assert [[f[:3] for f in own] for own in pipe.predict(docs)] == [
        [f[:3] for f in own] for own in once
    ]


def test_small_parts_of_an_update_teach_the_same(tiny_encoder, monkeypatch):
    weights, losses = [], []
    for n_tokens in (5, 10_000):
        monkeypatch.setattr("spacy_bioclin.relations.component.MAX_TRAINING_TOKENS", n_tokens)
        fix_random_seed(0)
        no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        nlp = make_marked(tiny_encoder, "markers", encoder_config=no_dropout)
        examples = make_examples(nlp)
        optimizer = nlp.initialize(lambda examples=examples: examples)
        losses.append(nlp.update(examples, sgd=optimizer)["relations"])
        head = nlp.get_pipe("relations").model.get_ref("head").shims[0]
        weights.append(head.module.state_dict())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name, value in weights[0].items():
        assert torch.allclose(value, weights[1][name], atol=1e-5), name


def test_concepts_across_sentences(tiny_encoder):
    notes = [
        (
            "aspirin helped. It was given for pain and for ulcers.",
            {"aspirin": "DRUG", "pain": "PROBLEM", "ulcers": "PROBLEM"},
            [("TREATS", "aspirin", "pain")],
        ),
        ("aspirin and ulcers.", {"aspirin": "DRUG", "ulcers": "PROBLEM"}, []),
    ]
    nlp = make_nlp(tiny_encoder, level="concept", scope="document")
    examples = make_examples(nlp, notes, concepts=True)
    train(nlp, examples)
    train_on(nlp, examples, lambda: nlp.evaluate(examples)["rels_f"] == 1)
    [relation] = nlp(examples[0].predicted)._.relations
    assert relation.concepts == ("C-aspirin", "C-pain")
    assert (relation.head.text, relation.head.kb_id_) == ("aspirin", "C-aspirin")


def test_an_encoder_of_its_own_and_another_pipeline(finder, tmp_path):
    nlp = spacy.load(finder)
    found = describe(annotate(nlp, *NOTES[0][:2]))
    assert found == NOTES[0][2]
    nlp.replace_listeners("transformer", "relations", ["model.tok2vec"])
    nlp.remove_pipe("transformer")
    nlp.to_disk(tmp_path / "pipeline")
    other = blank("en")
    other.add_pipe("bioclin_sentences")
    other.add_pipe("relations", source=spacy.load(tmp_path / "pipeline"))
    assert describe(annotate(other, *NOTES[0][:2])) == found


@pytest.mark.slow
def test_two_components_write_side_by_side(tiny_encoder):
    nlp = make_nlp(tiny_encoder, types={"TREATS": [["DRUG", "PROBLEM"]]})
    types = {"CAUSES": [["DRUG", "PROBLEM"]]}
    settings = {"types": types, "relations_key": "harm"}
    nlp.add_pipe("bioclin_relations", name="harm", config=settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BioclinWarning)  # each leaves out what the other learns
        train(nlp, make_examples(nlp))

        def find():
            doc = annotate(nlp, *NOTES[0][:2])
            return [[r.label for r in get_relations(doc, key)] for key in ("relations", "harm")]

        train_on(nlp, make_examples(nlp), lambda: find() == [["TREATS"], ["CAUSES"]])
    assert len(annotate(nlp, *NOTES[0][:2])._.relations) == 2


def test_docs_that_were_not_annotated_teach_nothing(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    unknown = make_examples(nlp, annotated=False)
    before = nlp.get_pipe("relations").model.get_ref("head").shims[0].to_bytes()
    losses = {}
    nlp.update(unknown, sgd=Adam(1e-2, L2=0.0), losses=losses)
    assert losses["relations"] == 0
    assert nlp.get_pipe("relations").model.get_ref("head").shims[0].to_bytes() == before
    assert nlp.evaluate(unknown)["rels_f"] is None


def test_a_batch_without_candidates(trained):
    losses = {}
    trained.update(make_examples(trained, NOTES[3:]), sgd=Adam(0.0), losses=losses)
    assert losses["relations"] == 0


def test_no_relations_in_the_corpus(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    with pytest.raises(BioclinError, match="no training example has a relation between entities"):
        nlp.initialize(lambda: make_examples(nlp, annotated=False))
    nlp = make_nlp(tiny_encoder, level="concept")
    with pytest.raises(BioclinError, match="between concepts"):
        nlp.initialize(lambda: make_examples(nlp))


def test_a_label_that_never_occurs(tiny_encoder):
    nlp = make_nlp(tiny_encoder, types={"PREVENTS": [["DRUG", "PROBLEM"]]})
    with pytest.raises(BioclinError, match=r"PREVENTS: no training example .* CAUSES, TREATS"):
        nlp.initialize(lambda: make_examples(nlp))


def test_given_labels_may_be_missing_in_the_first_examples(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    labels = {"PREVENTS": [["DRUG", "PROBLEM"]], "TREATS": [["DRUG", "PROBLEM"]]}
    nlp.config["initialize"]["components"]["relations"] = {"labels": labels}
    with pytest.warns(BioclinWarning, match="which types leaves out: CAUSES 2"):
        nlp.initialize(lambda: make_examples(nlp))
    assert nlp.get_pipe("relations").labels == ("PREVENTS", "TREATS")


def test_a_relation_between_entities_that_nobody_annotates(tiny_encoder):
    nlp = make_nlp(tiny_encoder, spans_key="clinical")
    with pytest.raises(BioclinError, match=r"cannot learn CAUSES: none of its 2 .*clinical"):
        nlp.initialize(lambda: make_examples(nlp))
    nlp = make_nlp(tiny_encoder, types={"CAUSES": [["DRUG", "DISEASE"]]})
    with pytest.raises(BioclinError, match=r"cannot learn CAUSES.*DRUG → DISEASE"):
        nlp.initialize(lambda: make_examples(nlp))


def test_warns_of_relations_out_of_scope(tiny_encoder):
    far = (
        "aspirin was given. The pain went.",
        {"aspirin": "DRUG", "pain": "PROBLEM"},
        [("TREATS", "aspirin", "pain")],
    )
    nlp = make_nlp(tiny_encoder)
    with pytest.warns(
        BioclinWarning, match=r"cannot learn 1 of 5 annotated relations \(TREATS 1\)"
    ):
        nlp.initialize(lambda: make_examples(nlp, [*NOTES, far]))


def test_a_doc_without_sentences_or_vectors(trained):
    for left_out, message in (
        ("bioclin_sentences", "put bioclin_sentences before it"),
        ("transformer", "cannot find relations: its encoder"),
    ):
        refused = pytest.raises(BioclinError, match=message)
        with trained.select_pipes(disable=[left_out]), refused:
            annotate(trained, *NOTES[0][:2])


WRONG = [
    ({"input": "marker"}, "markers"),
    ({"scope": "paragraph"}, "sentence"),
    ({"window": -1}, "window"),
    ({"thresholds": {"TREATS": 2}}, "want 0 to 1"),
    ({"types": {"TREATS": [["DRUG"]]}}, "types"),
    # It could be trained and saved, but its config could not be read again.
    ({"types": {"CPR:3": [["DRUG", "PROBLEM"]]}}, "a config cannot have 'CPR:3' as a key"),
    ({"thresholds": {"CPR:3": 0.5}}, "bioclin calibrate"),
]


def test_wrong_settings(tiny_encoder):
    nlp = blank("en")
    for settings, message in WRONG:
        with pytest.raises(BioclinError, match=message):
            nlp.add_pipe("bioclin_relations", config=settings)
    nlp = make_nlp(tiny_encoder, symmetric=["WITH"])
    with pytest.raises(BioclinError, match="symmetric has 'WITH'"):
        nlp.initialize(lambda: make_examples(nlp))
