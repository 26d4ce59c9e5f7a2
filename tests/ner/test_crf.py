"""The CRF against the sum over all paths, and its gradients against finite differences."""

import itertools
import math

import pytest
import torch

from spacy_bioclin.ner import crf
from spacy_bioclin.ner.inference import (
    MISSING,
    TagScores,
    crf_loss,
    find_entities,
    make_grammar,
    token_loss,
)
from spacy_bioclin.ner.tags import make_tag_sets
from tests.util import read_spans

LENGTHS = [3, 0, 4, 1]


def random_scores(n_layers: int, n_tags: int, lengths: list[int], seed: int = 0) -> TagScores:
    torch.manual_seed(seed)
    return TagScores(
        torch.randn(sum(lengths), n_layers, n_tags, dtype=torch.float64),
        torch.randn(n_layers, n_tags, n_tags, dtype=torch.float64),
        torch.randn(n_layers, n_tags, dtype=torch.float64),
        torch.randn(n_layers, n_tags, dtype=torch.float64),
        lengths,
    )


def all_paths(scores, grammar, doc, layer):
    """YIELDS (path, log weight) of each legal path of a Doc, by definition."""
    start = sum(scores.lengths[:doc])
    n = scores.lengths[doc]
    if not n:
        yield (), 0.0
        return
    emissions = scores.emissions[start : start + n, layer].tolist()
    moves = (scores.transitions[layer] + grammar.transitions[layer]).tolist()
    first = (scores.start[layer] + grammar.start[layer]).tolist()
    last = (scores.end[layer] + grammar.end[layer]).tolist()
    for path in itertools.product(range(len(first)), repeat=n):
        weight = first[path[0]] + last[path[-1]]
        weight += sum(emissions[t][tag] for t, tag in enumerate(path))
        weight += sum(moves[a][b] for a, b in itertools.pairwise(path))
        if weight > -math.inf:
            yield path, weight


SETTINGS = [("BIO", False), ("BILUO", False), ("BIO", True), ("BILUO", True)]


def setting(scheme, nested):
    tag_sets = make_tag_sets(
        "A" if scheme == "BILUO" and not nested else "AB", scheme=scheme, nested=nested
    )
    scores = random_scores(len(tag_sets), tag_sets[0].n_tags, LENGTHS)
    return tag_sets, scores, make_grammar(tag_sets, torch.device("cpu"))


def test_tags_and_span_probabilities_equal_enumeration():
    """Of all legal paths, the one with the largest product of marginals, which are those of the
    members on average."""
    for (scheme, nested), n_members in itertools.product(SETTINGS, (1, 3)):
        tag_sets, scores, grammar = setting(scheme, nested)
        others = [
            random_scores(len(tag_sets), tag_sets[0].n_tags, LENGTHS, seed=seed)
            for seed in range(1, n_members)
        ]
        members = [scores, *others]
        found = find_entities(members if others else scores, tag_sets, grammar)
        for doc in range(len(LENGTHS)):
            expected = []
            for layer, tag_set in enumerate(tag_sets):
                each = [list(all_paths(member, grammar, doc, layer)) for member in members]
                paths = each[0]
                sums = torch.tensor([[w for _, w in found] for found in each], dtype=torch.float64)
                weights = sums.softmax(1).mean(0).tolist()
                marginals = torch.zeros(LENGTHS[doc], tag_set.n_tags, dtype=torch.float64)
                for (path, _), weight in zip(paths, weights, strict=True):
                    marginals[range(len(path)), path] += weight
                best = max(
                    (path for path, _ in paths),
                    key=lambda path: float(marginals[range(len(path)), path].log().sum()),
                )
                spans = [set(read_spans(p, tag_set)) for p, _ in paths]
                for span in read_spans(best, tag_set):
                    p = sum(w for w, held in zip(weights, spans, strict=True) if span in held)
                    expected.append((*span, p))
            assert [tuple(e[:3]) for e in found[doc]] == [e[:3] for e in sorted(expected)]
            for entity, wanted in zip(found[doc], sorted(expected), strict=True):
                assert entity.probability == pytest.approx(wanted[3], abs=1e-9)
        assert sum(map(len, found)) > 2 // n_members


def test_loss_equals_enumeration():
    for (scheme, nested), missing in itertools.product(SETTINGS, (False, True)):
        tag_sets, scores, grammar = setting(scheme, nested)
        gold = torch.zeros(sum(LENGTHS), len(tag_sets), dtype=torch.int64)
        first = 3 if scheme == "BILUO" else 1
        gold[[1, 5]] = 4 if scheme == "BILUO" else first  # single-token entities
        if missing:
            gold[[2, 5, 7]] = MISSING
        loss, _ = crf_loss(scores, gold, grammar)
        expected, starts = 0.0, [0, 3, 3, 7]
        for doc, layer in itertools.product(range(len(LENGTHS)), range(len(tag_sets))):
            known = gold[starts[doc] : starts[doc] + LENGTHS[doc], layer].tolist()
            paths = list(all_paths(scores, grammar, doc, layer))
            agree = [
                weight
                for path, weight in paths
                if all(k in (MISSING, tag) for k, tag in zip(known, path, strict=True))
            ]
            every = torch.tensor([w for _, w in paths]).logsumexp(0)
            expected += float(every - torch.tensor(agree).logsumexp(0))
        n_known = int((gold != MISSING).sum())
        assert loss == pytest.approx(expected / n_known, abs=1e-6)


def check_gradients(loss, scores, *, step=1e-5, tolerance=1e-6, every=2):
    """Compare gradients of a loss of scores with finite differences, in some places."""
    _, gradients = loss(scores)
    for field, gradient in list(zip(scores, gradients, strict=True))[:4]:
        flat, d_flat = field.view(-1), gradient.reshape(-1)
        for i in range(0, len(flat), every):
            before = float(flat[i])
            flat[i] = before + step
            above = loss(scores)[0]
            flat[i] = before - step
            slope = (above - loss(scores)[0]) / (2 * step)
            flat[i] = before
            assert float(d_flat[i]) == pytest.approx(slope, abs=tolerance)
    return gradients


# The token loss works in single precision.
SINGLE = {"step": 1e-2, "tolerance": 1e-3}


def test_gradients_equal_finite_differences():
    tag_sets, scores, grammar = setting("BIO", True)
    gold = torch.zeros(sum(LENGTHS), len(tag_sets), dtype=torch.int64)
    gold[1] = 1
    gold[2, 0] = 2
    for missing in (False, True):
        if missing:
            gold[[3, 6], 1] = MISSING
        check_gradients(lambda s: crf_loss(s, gold, grammar), scores, every=3)
        gradients = check_gradients(lambda s: token_loss(s, gold), scores, every=3, **SINGLE)
        assert gradients.emissions.any() and not any(field.any() for field in gradients[1:4])


def test_long_sequences_stay_finite():
    tag_sets = make_tag_sets("AB", scheme="BILUO", nested=False)
    scores = random_scores(1, tag_sets[0].n_tags, [3_000, 3])
    scores = TagScores(scores.emissions * 30, *scores[1:])
    grammar = make_grammar(tag_sets, torch.device("cpu"))
    entities = find_entities(scores, tag_sets, grammar)[0]
    assert len(entities) > 150
    assert all(0.0 <= e.probability <= 1.0 for e in entities)


def test_batches_do_not_change_results(monkeypatch):
    tag_sets, scores, grammar = setting("BIO", False)
    together = find_entities(scores, tag_sets, grammar)
    monkeypatch.setattr("spacy_bioclin.ner.inference.MAX_BATCH_SCORES", 1)
    alone = find_entities(scores, tag_sets, grammar)
    assert [[e[:3] for e in d] for d in together] == [[e[:3] for e in d] for d in alone]


def test_expected_counts_of_uniform_model():
    """With all scores zero every one of 3 tags has probability 1/3 at each of 2 steps."""
    potentials = crf.Potentials(
        torch.zeros(1, 2, 3, dtype=torch.float64),
        torch.zeros(1, 3, 3, dtype=torch.float64),
        torch.zeros(1, 3, dtype=torch.float64),
        torch.zeros(1, 3, dtype=torch.float64),
    )
    packing = crf.pack([2], torch.device("cpu"))
    fb = crf.forward_backward(potentials, packing)
    counts = crf.expected_counts(potentials, packing, fb)
    assert float(fb.log_z) == pytest.approx(torch.log(torch.tensor(9.0)).item(), abs=1e-6)
    assert torch.allclose(counts.emissions, torch.full_like(counts.emissions, 1 / 3))
    assert torch.allclose(counts.transitions, torch.full_like(counts.transitions, 1 / 9))


def test_packing_puts_step_after_step():
    packing = crf.pack([3, 0, 1, 2], torch.device("cpu"))
    assert packing.rows.tolist() == [0, 4, 3, 1, 5, 2]
    assert packing.active == [3, 2, 1]
    assert packing.seqs.tolist() == [0, 1, 2, 0, 1, 0]
    assert packing.later.tolist() == [3, 4, 5]
    assert packing.previous.tolist() == [0, 1, 3]
    assert packing.last.tolist() == [5, 4, 2]


def test_tags_follow_the_grammar_where_the_best_one_by_one_do_not():
    """Random marginals, so that most paths must be mended, beside enumeration."""
    for scheme, nested in SETTINGS:
        tag_sets, scores, grammar = setting(scheme, nested)
        packing = crf.pack(LENGTHS, torch.device("cpu"))
        shape = (len(tag_sets), sum(LENGTHS), tag_sets[0].n_tags)
        marginals = torch.rand(shape, dtype=torch.float64)
        fb = crf.ForwardBackward(marginals, torch.ones(shape), *(torch.zeros(1),) * 3)
        legal = crf.Legal(*(potential[0] > -torch.inf for potential in grammar[:3]))
        tags = torch.empty(shape[:2], dtype=torch.int64)
        tags[:, packing.rows] = crf.most_probable_tags(fb.alpha * fb.beta, packing, legal)
        flat = torch.empty(shape, dtype=torch.float64)
        flat[:, packing.rows] = marginals
        mended = 0
        for doc, layer in itertools.product(range(len(LENGTHS)), range(len(tag_sets))):
            rows = slice(sum(LENGTHS[:doc]), sum(LENGTHS[: doc + 1]))
            found = tuple(tags[layer, rows].tolist())
            logs = flat[layer, rows].log()
            paths = [path for path, _ in all_paths(scores, grammar, doc, layer)]
            best = max(paths, key=lambda path: float(logs[range(len(path)), path].sum()))
            assert found == best
            mended += found != tuple(logs.argmax(dim=1).tolist())
        assert mended
