"""The teacher's tags as a loss: against enumeration, against finite differences, at its zero."""

import itertools

import numpy as np
import pytest
import torch
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_bioclin.corpora.readers import TEACHER_KEY, cut_doc
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.ner import crf
from spacy_bioclin.ner.distill.targets import (
    DistillationTargets,
    mix_losses,
    pack_layer,
    read_targets,
    tag_marginals,
    teacher_loss,
)
from spacy_bioclin.ner.inference import MISSING, crf_loss, make_batches
from spacy_bioclin.ner.model import TagScores
from spacy_bioclin.ner.tags import TagSet
from tests.ner.test_crf import LENGTHS, SETTINGS, all_paths, check_gradients, setting
from tests.trained import blank

TAG_SETS = [TagSet("BIO", ("A", "B"))]


def divided(scores: TagScores, temperature: float) -> TagScores:
    return TagScores(*(score / temperature for score in scores[:4]), scores.lengths)


def random_marginals(scores: TagScores, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.randn_like(scores.emissions).softmax(dim=-1)


def test_marginals_equal_enumeration():
    for (scheme, nested), temperature in itertools.product(SETTINGS, (1.0, 2.5)):
        tag_sets, scores, grammar = setting(scheme, nested)
        found = tag_marginals(scores, grammar, temperature=temperature)
        assert [len(marginals) for marginals in found] == LENGTHS
        for doc, layer in itertools.product(range(len(LENGTHS)), range(len(tag_sets))):
            paths = list(all_paths(divided(scores, temperature), grammar, doc, layer))
            weights = torch.tensor([w for _, w in paths], dtype=torch.float64).softmax(0)
            expected = np.zeros((LENGTHS[doc], tag_sets[layer].n_tags))
            for (path, _), weight in zip(paths, weights.tolist(), strict=True):
                expected[range(len(path)), path] += weight
            assert found[doc].dtype == np.float16
            assert np.abs(found[doc][:, layer] - expected).max(initial=0) < 1e-3


def test_traced_marginals_equal_those_of_the_recurrence():
    for scheme, nested in SETTINGS:
        _, scores, grammar = setting(scheme, nested)
        (batch,) = make_batches(scores, grammar)
        fb = crf.forward_backward(batch.potentials, batch.packing)
        traced = crf.tag_marginals(batch.potentials, batch.packing)
        assert torch.allclose(traced, fb.alpha * fb.beta, atol=1e-12)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_a_student_that_is_its_teacher_has_nothing_to_learn(temperature):
    _, scores, grammar = setting("BILUO", False)
    teacher = np.concatenate(tag_marginals(scores, grammar, temperature=temperature))
    marginals = torch.from_numpy(teacher.astype(np.float64))
    marginals /= marginals.sum(dim=-1, keepdim=True)
    weights = torch.ones(marginals.shape[:2], dtype=torch.float64)
    loss, gradient = teacher_loss(scores, marginals, weights, grammar, temperature=temperature)
    assert loss == pytest.approx(0.0, abs=1e-5)  # the teacher's are float16
    assert all(float(field.abs().max()) < 3e-3 for field in gradient[:4])
    other, _ = teacher_loss(
        scores._replace(emissions=-scores.emissions),
        marginals,
        weights,
        grammar,
        temperature=temperature,
    )
    assert other > 1.0


@pytest.mark.parametrize(
    ("part", "temperature"), [("teacher", 2.0), ("mixed", 1.0), ("mixed", 2.0)]
)
def test_gradients_equal_finite_differences(part, temperature):
    _, scores, grammar = setting("BIO", True)
    marginals = random_marginals(scores)
    marginals[4] = 0  # the teacher says nothing of this token
    gold = torch.zeros(marginals.shape[:2], dtype=torch.int64)
    gold[1] = 1
    gold[[3, 6], 1] = MISSING

    def loss(s: TagScores):
        if part == "teacher":
            weights = torch.rand(gold.shape, generator=torch.Generator().manual_seed(0))
            return teacher_loss(s, marginals, weights, grammar, temperature=temperature)
        targets = DistillationTargets(marginals, np.zeros(len(gold), dtype=bool), temperature)
        hard = crf_loss(s, gold, grammar)
        return mix_losses(hard, s, gold, targets, grammar, teacher_weight=0.3)

    gradients = check_gradients(loss, scores)
    assert all(bool(field.any()) for field in gradients[:4])


def test_gradients_stay_finite_far_from_the_teacher():
    _, scores, grammar = setting("BILUO", False)
    scores = TagScores(scores.emissions * 60, *scores[1:])
    marginals = random_marginals(scores)
    weights = torch.ones(marginals.shape[:2])
    loss, gradients = teacher_loss(scores, marginals, weights, grammar, temperature=1.0)
    assert np.isfinite(loss)
    assert all(bool(field.isfinite().all()) for field in gradients[:4])


def test_weights_of_gold_and_teacher():
    """By hand: of 4 tokens, 3 have a gold tag, 3 a teacher."""
    _, scores, grammar = setting("BIO", False)
    scores = TagScores(scores.emissions[:4], *scores[1:4], [4])
    marginals = random_marginals(scores)
    marginals[1] = 0
    gold = torch.tensor([[0], [1], [MISSING], [0]])
    hard = crf_loss(scores, gold, grammar)
    targets = DistillationTargets(marginals, np.zeros(4, dtype=bool), 1.0)

    def soft(*tokens: int) -> float:
        weights = torch.zeros(4, 1)
        weights[list(tokens)] = 1
        return teacher_loss(scores, marginals, weights, grammar, temperature=1.0)[0]

    found, _ = mix_losses(hard, scores, gold, targets, grammar, teacher_weight=0.3)
    assert found == pytest.approx((0.7 * 3 * hard[0] + 0.3 * soft(0, 3) + soft(2)) / 4)
    alone, _ = mix_losses(hard, scores, gold, targets, grammar, teacher_weight=0.0)
    assert alone == pytest.approx((3 * hard[0] + soft(2)) / 4)


def taught_doc(nlp, words, *, temperature=1.0, tag_sets=TAG_SETS) -> Doc:
    """A Doc whose teacher is sure that token i has tag i modulo 5."""
    doc = Doc(nlp.vocab, words=words)
    marginals = np.zeros((len(words), 1, 5), dtype=np.float16)
    marginals[range(len(words)), 0, np.arange(len(words)) % 5] = 1
    layers = {"ents": pack_layer(marginals, tag_sets)}
    stored = {"silver": True, "temperature": temperature, "layers": layers}
    doc.user_data[TEACHER_KEY] = stored
    return doc


def test_targets_survive_disk_and_cutting():
    nlp = blank("es")
    doc = taught_doc(nlp, ["a", "b", "c\n", "d", "e", "f", "g"])
    doc.set_ents([Span(doc, 3, 5, "A")], default="outside")
    kept = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (stored,) = DocBin().from_bytes(kept).get_docs(nlp.vocab)
    parts = cut_doc(stored, 3)
    assert [len(part) for part in parts] == [3, 3, 1]
    empty = Doc(nlp.vocab, words=["x"])
    examples = [
        Example(Doc(nlp.vocab, words=[t.text for t in part]), part) for part in (*parts, empty)
    ]
    targets = read_targets(examples, "ents", TAG_SETS, "ner")
    assert targets is not None
    assert targets.marginals.argmax(dim=-1)[:7, 0].tolist() == [0, 1, 2, 3, 4, 0, 1]
    assert targets.marginals.sum(dim=(1, 2)).tolist() == [1.0] * 7 + [0.0]
    assert targets.silver.tolist() == [True] * 7 + [False]
    assert read_targets(examples, "phi", TAG_SETS, "ner") is None


def test_tokens_that_the_reference_does_not_have_are_left_out():
    nlp = blank("es")
    reference = taught_doc(nlp, ["tos", "y", "fiebre"])
    predicted = Doc(nlp.vocab, words=["tos", "y", "fie", "bre"], spaces=[True, True, False, True])
    targets = read_targets([Example(predicted, reference)], "ents", TAG_SETS, "ner")
    assert targets is not None
    assert targets.marginals.sum(dim=(1, 2)).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_other_tags_and_mixed_temperatures_are_errors():
    nlp = blank("es")
    docs = [taught_doc(nlp, ["a"]), taught_doc(nlp, ["a"], temperature=2.0)]
    examples = [Example(Doc(nlp.vocab, words=["a"]), doc) for doc in docs]
    with pytest.raises(BioclinError, match=r"several temperatures, \[1.0, 2.0\]"):
        read_targets(examples, "ents", TAG_SETS, "ner")
    for other in (TagSet("BIO", ("A", "C")), TagSet("BILUO", ("A", "B"))):
        with pytest.raises(BioclinError, match="BIO tags for A, B"):
            read_targets(examples[:1], "ents", [other], "ner")
