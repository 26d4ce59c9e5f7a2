"""R-drop: the divergence by hand, its gradient, its pairs, and where it is refused."""

import io
import itertools

import numpy as np
import pytest
import torch
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.ner.distill.targets import tag_marginals
from spacy_bioclin.ner.model import TagScores
from spacy_bioclin.ner.rdrop import add_divergence, divergence, pair_tokens
from spacy_bioclin.training.loop import LAST, train
from spacy_bioclin.training.repeats import RepeatedUpdates
from tests.ner.test_component import make_examples, make_nlp
from tests.ner.test_crf import SETTINGS, check_gradients, setting
from tests.training.test_resume import ROOT, run, settings, weights  # noqa: F401

# Of two sequences of three tokens: the first with the second.
ONE, OTHER = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5])


def make_pair(scheme, nested):
    """Scores of two passes over one text of three tokens."""
    tag_sets, scores, grammar = setting(scheme, nested)
    generator = torch.Generator().manual_seed(3)
    emissions = torch.randn((6, *scores.emissions.shape[1:]), generator=generator).double()
    return TagScores(emissions, *scores[1:4], [3, 3]), grammar, torch.ones(6, len(tag_sets)).bool()


def kl(p, q):
    used = p > 0
    return float((p[used] * np.log(p[used] / q[used])).sum())


def test_divergence_is_that_of_the_probabilities_in_both_directions():
    for (scheme, nested), chain in itertools.product(SETTINGS, (True, False)):
        scores, grammar, known = make_pair(scheme, nested)
        if chain:
            p, q = (p.astype(float) for p in tag_marginals(scores, grammar, temperature=1.0))
        else:
            p, q = scores.emissions.softmax(-1).numpy().reshape(2, 3, *scores.emissions.shape[1:])
        found, _ = divergence(scores, ONE, OTHER, known, grammar, chain=chain)
        assert found == pytest.approx(kl(p, q) + kl(q, p), rel=2e-2)  # marginals of float16
        known[1] = False  # a token that is not annotated has no divergence
        left = [0, 2]
        found, _ = divergence(scores, ONE, OTHER, known, grammar, chain=chain)
        assert found == pytest.approx(kl(p[left], q[left]) + kl(q[left], p[left]), rel=2e-2)


@pytest.mark.parametrize("chain", [True, False])
def test_gradient_equals_finite_differences(chain):
    scores, grammar, known = make_pair("BIO", True)
    known[2, 0] = False
    gradients = check_gradients(
        lambda s: divergence(s, ONE, OTHER, known, grammar, chain=chain), scores
    )
    assert [bool(field.any()) for field in gradients[:4]] == [True, chain, chain, chain]


def test_gradient_stays_finite_for_opposite_passes():
    scores, grammar, known = make_pair("BILUO", False)
    scores.emissions[3:] = -scores.emissions[:3]
    scores = scores._replace(emissions=scores.emissions * 100)
    loss, gradients = divergence(scores, ONE, OTHER, known, grammar, chain=True)
    assert np.isfinite(loss) and all(bool(field.isfinite().all()) for field in gradients[:4])


def test_equal_passes_add_nothing():
    scores, grammar, known = make_pair("BIO", False)
    scores.emissions[3:] = scores.emissions[:3]
    zero = 0.7, scores.map(torch.zeros_like)
    pairs = np.stack([ONE.numpy(), OTHER.numpy()])
    loss, gradients = add_divergence(zero, scores, pairs, known, grammar, alpha=5.0, chain=True)
    assert loss == pytest.approx(0.7) and not any(bool(field.any()) for field in gradients[:4])


def test_loss_is_half_of_that_of_the_paper():
    """Of 3 tokens, 2 are annotated: alpha / 4 of both divergences of each, over 2."""
    scores, grammar, known = make_pair("BIO", False)
    known[[1, 4]] = False
    part, d_part = divergence(scores, ONE, OTHER, known, grammar, chain=True)
    gold = 0.7, scores.map(torch.ones_like)
    pairs = np.stack([ONE.numpy(), OTHER.numpy()])
    loss, gradients = add_divergence(gold, scores, pairs, known, grammar, alpha=3.0, chain=True)
    assert loss == pytest.approx(0.7 + 3.0 / 4 * part / 2)
    torch.testing.assert_close(gradients.emissions, 1 + 3.0 / 8 * d_part.emissions)


def test_pairs_are_found_in_any_order(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    one, other = make_examples(nlp)[:2]
    n, m = len(one.predicted), len(other.predicted)
    copies = [Example(eg.predicted.copy(), eg.reference) for eg in (one, other, other, one)]
    pairs = pair_tokens(copies, name="ner", alpha=1.0)
    expected = [[n + i, n + m + i] for i in range(m)] + [[i, n + 2 * m + i] for i in range(n)]
    assert pairs.T.tolist() == expected
    with pytest.raises(BioclinError, match=r"rdrop = 1\.0: runs every batch .*bioclin train"):
        pair_tokens(copies[:3], name="ner", alpha=1.0)


@pytest.mark.slow
def test_training(tmp_path, settings):  # noqa: F811
    """It changes what is learned, a resumed run is the same, and other loops refuse it."""
    overrides = {**settings, "components.ner.rdrop": 5.0}
    run(settings, tmp_path / "plain")
    run(overrides, tmp_path / "whole")
    run(overrides, tmp_path / "killed", kill_at=4)
    run(overrides, tmp_path / "killed", resume=True)
    plain, expected, got = (
        weights(tmp_path / name / LAST) for name in ("plain", "whole", "killed")
    )
    assert all(torch.equal(tensor, got[key]) for key, tensor in expected.items())
    assert not all(torch.equal(tensor, plain[key]) for key, tensor in expected.items())
    nlp = init_nlp(load_config(ROOT / "configs" / "ner.cfg", overrides, interpolate=True))
    doc = nlp.make_doc("Sufre tos.")
    with pytest.raises(BioclinError, match="bioclin train"):
        nlp.update([Example(doc, doc.copy())])


@pytest.mark.slow
def test_with_adversarial_embeddings(tmp_path, settings):  # noqa: F811
    key = "components.transformer.model.strategy.adversarial"
    overrides = {**settings, "components.ner.rdrop": 1.0, key: 1.0, "training.max_steps": 2}
    nlp, out = init_nlp(load_config(ROOT / "configs" / "ner.cfg", overrides)), io.StringIO()
    train(nlp, tmp_path, stdout=out, stderr=out)
    assert (tmp_path / LAST).is_dir()


def test_a_frozen_head_doubles_nothing(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    nlp.get_pipe("ner").rdrop = 1.0
    assert RepeatedUpdates(nlp, nlp, [])._doubles
    assert not RepeatedUpdates(nlp, nlp, ["ner"])._doubles
