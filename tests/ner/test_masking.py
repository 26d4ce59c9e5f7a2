"""Labels that a document was not annotated for: what `bioclin_ner` learns from such documents."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_bioclin.errors import BioclinError, BioclinWarning
from spacy_bioclin.ner.component import ClinicalNer, NerSettings
from spacy_bioclin.ner.gold import make_gold_tags, make_open_tags
from spacy_bioclin.ner.inference import crf_loss, make_grammar, token_loss
from spacy_bioclin.ner.model import TagScores, build_crf_tagger, build_linear_tagger
from spacy_bioclin.ner.tags import MISSING, make_tag_sets
from spacy_bioclin.types import GOLD_KEY
from tests.ner.test_component import NOTES, make_examples, make_nlp, train
from tests.ner.test_crf import SINGLE, all_paths, check_gradients, random_scores
from tests.trained import train_on
from tests.util import read_spans

VOCAB = Vocab()
LABELS = "ABC"


def make_ner(*, nested, crf=True, scheme="BIO"):
    tok2vec = Model("zeros", lambda model, docs, is_train: ([], lambda d: []))
    build = build_crf_tagger if crf else build_linear_tagger
    chosen = NerSettings(
        spans_key="x",
        nested=nested,
        scheme=scheme,
        threshold=0.0,
        doubtful_from=None,
        word_smoothing=0.0,
        teacher_weight=0.5,
        rdrop=0.0,
    )
    model = build(tok2vec, 0.0, 1.0)
    ner = ClinicalNer(VOCAB, model, name="ner", settings=chosen, scorer=None)
    ner.cfg["labels"] = list(LABELS)
    return ner


def make_example(n_tokens, spans, annotated=None):
    words = [f"w{i}" for i in range(n_tokens)]
    doc = Doc(VOCAB, words=words)
    doc.spans["x"] = [Span(doc, start, end, label=label) for start, end, label in spans]
    gold = {"id": "d", "task": "t", "layers": {}}
    if annotated is not None:
        gold["annotated"] = {"x": list(annotated)}
    doc.user_data[GOLD_KEY] = gold
    return Example(Doc(VOCAB, words=words), doc)


def scores_for(ner, examples):
    lengths = [len(eg.predicted) for eg in examples]
    return random_scores(len(ner.tag_sets), ner.tag_sets[0].n_tags, lengths)


@st.composite
def notes(draw):
    """Up to three documents, with spans of all labels and the labels they are annotated for."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        n_tokens = draw(st.integers(0, 5))
        starts = st.integers(0, max(0, n_tokens - 1))
        spans = draw(st.lists(st.tuples(starts, st.integers(1, 3), st.sampled_from(LABELS))))
        whole = [(s, min(s + n, n_tokens), label) for s, n, label in spans if n_tokens]
        annotated = draw(st.none() | st.sets(st.sampled_from(LABELS)))
        found.append((n_tokens, whole, annotated))
    return found


MODES = st.tuples(st.booleans(), st.booleans(), st.sampled_from(["BIO", "BILUO"]))


@given(notes(), MODES)
@settings(max_examples=20, deadline=None)
def test_spans_of_labels_that_are_not_annotated_teach_nothing(docs, mode):
    nested, crf, scheme = mode
    ner = make_ner(nested=nested, crf=crf, scheme=scheme)
    with_all = [make_example(n, spans, annotated) for n, spans, annotated in docs]
    without = [
        make_example(n, [s for s in spans if annotated is None or s[2] in annotated], annotated)
        for n, spans, annotated in docs
    ]
    scores = scores_for(ner, with_all)
    (loss, found), (other, expected) = (ner.get_loss(egs, scores) for egs in (with_all, without))
    assert loss == other and loss >= -1e-12
    for one, two in zip(found[:4], expected[:4], strict=True):
        assert torch.equal(one, two)


@given(notes(), MODES)
@settings(max_examples=20, deadline=None)
def test_a_document_annotated_for_every_label_is_as_one_without_the_list(docs, mode):
    nested, crf, scheme = mode
    ner = make_ner(nested=nested, crf=crf, scheme=scheme)
    plain = [make_example(n, spans) for n, spans, _ in docs]
    listed = [make_example(n, spans, LABELS) for n, spans, _ in docs]
    scores = scores_for(ner, plain)
    (loss, found), (other, expected) = (ner.get_loss(egs, scores) for egs in (plain, listed))
    assert loss == other
    for one, two in zip(found[:4], expected[:4], strict=True):
        assert torch.equal(one, two)


@given(notes(), st.booleans())
@settings(max_examples=20, deadline=None)
def test_nested_layers_without_annotation_have_no_gradient(docs, crf):
    ner = make_ner(nested=True, crf=crf)
    examples = [make_example(n, spans, annotated) for n, spans, annotated in docs]
    scores = scores_for(ner, examples)
    loss, gradient = ner.get_loss(examples, scores)
    start = 0
    for n, _, annotated in docs:
        for layer, label in enumerate(LABELS):
            masked = annotated is not None and label not in annotated
            here = gradient.emissions[start : start + n, layer]
            total = float(here.abs().sum())
            assert total < 1e-12 if masked else total > 0 or not n
            scores.emissions[start : start + n, layer] += 3.0 * masked
        start += n
    assert ner.get_loss(examples, scores)[0] == pytest.approx(loss, abs=1e-6)


FLAT = [
    # tokens, spans, annotated labels: "O" may be A or C in the first, C in the second
    (3, [(1, 2, "B")], "B"),
    (4, [(0, 2, "A")], "AB"),
    (2, [(0, 1, "C")], None),
    (2, [(0, 1, "C")], "X"),  # nothing is known
]


def agrees(path, tag_set, spans, annotated):
    """Whether a path has exactly the spans of the annotated labels, and any of the others."""
    found = set(read_spans(path, tag_set))
    return {s for s in found if s[2] in annotated} == {s for s in spans if s[2] in annotated}


@pytest.mark.parametrize("scheme", ["BIO", pytest.param("BILUO", marks=pytest.mark.slow)])
def test_flat_loss_is_that_of_all_paths_that_agree(scheme):
    ner = make_ner(nested=False, scheme=scheme)
    examples = [make_example(*note) for note in FLAT]
    scores = scores_for(ner, examples)
    grammar = make_grammar(ner.tag_sets, torch.device("cpu"))
    loss, _ = ner.get_loss(examples, scores)
    expected = 0.0
    for doc, (_, spans, annotated) in enumerate(FLAT):
        paths = list(all_paths(scores, grammar, doc, 0))
        known = set(LABELS if annotated is None else annotated)
        right = [w for path, w in paths if agrees(path, ner.tag_sets[0], spans, known)]
        every = torch.tensor([w for _, w in paths]).logsumexp(0)
        expected += float(every - torch.tensor(right).logsumexp(0))
    n_known = sum(n for n, _, annotated in FLAT if annotated != "X")
    assert loss == pytest.approx(expected / n_known, abs=1e-6)


def test_flat_loss_of_tokens_is_that_of_the_tags_they_may_have():
    ner = make_ner(nested=False, crf=False)
    examples = [make_example(*note) for note in FLAT]
    scores = scores_for(ner, examples)
    loss, _ = ner.get_loss(examples, scores)
    p = scores.emissions[:, 0].softmax(-1)  # O, B-A, I-A, B-B, I-B, B-C, I-C
    other_than_b, o_or_c = [0, 1, 2, 5, 6], [0, 5, 6]
    allowed = [other_than_b, [3], other_than_b, [1], [2], o_or_c, o_or_c, [5], [0]]
    expected = -sum(float(p[i, tags].sum().log()) for i, tags in enumerate(allowed)) / 9
    assert loss == pytest.approx(expected, abs=1e-5)


def test_gradients_equal_finite_differences():
    [tag_set] = make_tag_sets("ABC", scheme="BIO", nested=False)
    lengths = [4, 3]
    scores = random_scores(1, tag_set.n_tags, lengths)
    grammar = make_grammar([tag_set], torch.device("cpu"))
    tags = torch.tensor([[0], [1], [2], [0], [0], [MISSING], [3]])
    open_tags = torch.zeros(7, 1, tag_set.n_tags, dtype=torch.bool)
    open_tags[[0, 3], :, 5:] = True
    open_tags[4, :, 1:3] = True
    check_gradients(lambda s: crf_loss(s, tags, grammar, open_tags), scores, every=1)
    check_gradients(lambda s: token_loss(s, tags, open_tags), scores, every=1, **SINGLE)


def test_tags_by_hand():
    def tags(nested, *note):
        ner = make_ner(nested=nested)
        eg = make_example(*note)
        found = make_gold_tags(eg, ner.tag_sets, "x")
        several = make_open_tags([eg], found, ner.tag_sets, "x")
        return found.tolist(), None if several is None else several[:, 0].astype(int).tolist()

    note = 3, [(0, 1, "A"), (0, 2, "B")]
    assert tags(True, *note) == ([[1, 1, 0], [0, 2, 0], [0, 0, 0]], None)
    assert tags(True, *note, "AC") == ([[1, MISSING, 0], [0, MISSING, 0], [0, MISSING, 0]], None)
    assert tags(True, *note, "X") == ([[MISSING] * 3] * 3, None)
    assert tags(False, *note) == ([[3], [4], [0]], None)
    open_b = [0, 0, 0, 1, 1, 0, 0]
    assert tags(False, *note, "AC") == ([[1], [0], [0]], [[0] * 7, open_b, open_b])
    assert tags(False, *note, "X") == ([[MISSING]] * 3, [[0] * 7] * 3)


def test_a_batch_of_documents_for_few_of_many_labels_costs_what_these_cost():
    """Layers that no document of a batch is annotated for are left out of the recurrences."""
    ner = make_ner(nested=True)
    examples = [make_example(5, [(0, 2, "B")], "B") for _ in range(3)]
    scores = scores_for(ner, examples)
    loss, gradient = ner.get_loss(examples, scores)
    alone = make_ner(nested=True)
    alone.cfg["labels"] = ["B"]
    part = TagScores(scores.emissions[:, 1:2], *(s[1:2] for s in scores[1:4]), scores.lengths)
    expected, d_part = alone.get_loss(examples, part)
    assert loss == expected
    for whole, one in zip(gradient[1:4], d_part[1:4], strict=True):
        assert torch.equal(whole[1:2], one) and not whole[[0, 2]].any()
    assert torch.equal(gradient.emissions[:, 1:2], d_part.emissions)
    assert not gradient.emissions[:, [0, 2]].any()


@pytest.mark.parametrize("nested", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_two_corpora_of_different_labels_are_learned_together(tiny_encoder, nested):
    """Each note has both labels, but is annotated for one: both are found everywhere."""
    nlp = make_nlp(tiny_encoder, spans_key="x", nested=nested)
    examples = []
    for label in ("PROBLEM", "DRUG"):
        for eg in make_examples(nlp, "x"):
            doc = eg.reference
            doc.spans["x"] = [span for span in doc.spans["x"] if span.label_ == label]
            gold = {"id": label, "task": "", "layers": {}, "annotated": {"x": [label]}}
            doc.user_data[GOLD_KEY] = gold
            examples.append(eg)
    train(nlp, examples)
    whole = make_examples(nlp, "x")
    train_on(nlp, examples, lambda: nlp.evaluate(whole)["spans_x_f"] == 1)
    for text, spans in NOTES:
        doc = nlp(text)
        found = {(s.start_char, s.end_char, s.label_) for s in doc.spans["x"]}
        assert found == set(spans)


def test_labels_that_nothing_can_be_learned_of(tiny_encoder):
    nlp = make_nlp(tiny_encoder, spans_key="x", nested=True)
    examples = make_examples(nlp, "x")
    for eg in examples:
        gold = {"id": "", "task": "", "layers": {}, "annotated": {"x": ["DRUG", "PROBLME"]}}
        eg.reference.user_data[GOLD_KEY] = gold
    ner = nlp.get_pipe("ner")
    with pytest.warns(BioclinWarning, match=r"\[components.ner\] does not learn PROBLME"):
        nlp.initialize(lambda: examples)
    assert ner.labels == ("DRUG",)
    for label in ("PROBLEM", "PROBLME"):
        with pytest.raises(BioclinError, match=f"labels: no training example has.* {label}: corr"):
            ner.initialize(lambda: examples, nlp=nlp, labels=["DRUG", label])
    ner.initialize(lambda: examples, nlp=nlp, labels=["DRUG"])
    ner.initialize(lambda: [], nlp=nlp, labels=["A", "B"])  # before there is a corpus
    assert ner.labels == ("A", "B")


def test_every_combination_is_finite():
    for nested, crf, scheme in itertools.product((True, False), (True, False), ("BIO", "BILUO")):
        ner = make_ner(nested=nested, crf=crf, scheme=scheme)
        examples = [make_example(*note) for note in FLAT]
        scores = scores_for(ner, examples).map(lambda s: s * 30)
        loss, gradient = ner.get_loss(examples, scores)
        assert np.isfinite(loss) and all(g.isfinite().all() for g in gradient[:4])
