"""All layers and Docs decoded at once, beside one layer of one Doc after the other."""

import itertools

import numpy as np
import pytest
import torch

from spacy_bioclin.ner import crf
from spacy_bioclin.ner.inference import TagScores, find_entities, make_grammar
from spacy_bioclin.ner.tags import legal_transitions, make_tag_sets

LENGTHS = [40, 0, 7, 1, 25, 3]


def make_scores(tag_sets, noise):
    """Entities here and there, with noise that breaks the best tags one by one."""
    generator = torch.Generator().manual_seed(0)
    n_tags = tag_sets[0].n_tags
    shape = (sum(LENGTHS), len(tag_sets), n_tags)
    emissions = torch.randn(shape, generator=generator) * noise
    emissions[..., 0] += noise
    begins = torch.rand(shape[:2], generator=generator) < 0.2
    emissions[..., 1] += 6 * begins
    emissions[1:, :, 2] += 6 * begins[:-1]
    moves = [torch.randn(size, generator=generator) for size in (shape[1:], shape[1:])]
    transitions = torch.randn((*shape[1:], n_tags), generator=generator)
    return TagScores(emissions, transitions, *moves, LENGTHS)


def best_legal_path(marginals, legal):
    """Viterbi's algorithm over all tokens and pairs of tags."""
    with np.errstate(divide="ignore"):
        scores, start, end, moves = map(
            np.log, (marginals, legal.start, legal.end, legal.transitions)
        )
    best, sources = scores[0] + start, []
    for row in scores[1:]:
        through = best[:, None] + moves
        sources.append(through.argmax(axis=0))
        best = through.max(axis=0) + row
    path = [int((best + end).argmax())]
    for source in sources[::-1]:
        path.append(int(source[path[-1]]))
    return path[::-1]


def find_one_by_one(scores, tag_sets, grammar):
    """Find the entities of each layer of each Doc, and sum over the paths that hold each."""
    found, begin = [], 0
    for n in scores.lengths:
        entities = []
        for layer, tag_set in enumerate(tag_sets):
            rows = scores.emissions[begin : begin + n, layer].double()
            if not n:
                continue
            weights = [
                s[layer].double() + g[layer] for s, g in zip(scores[1:4], grammar, strict=False)
            ]
            potentials = crf.Potentials(rows[None], *(w[None] for w in weights))
            packing = crf.pack([n], torch.device("cpu"))
            fb = crf.forward_backward(potentials, packing)
            marginals = (fb.alpha * fb.beta)[0].numpy()
            path = best_legal_path(marginals, legal_transitions(tag_set))
            names = [tag_set.tags[tag] for tag in path]
            for i, name in enumerate(names):
                if name[0] not in "BU":
                    continue
                j = i + 1
                while j < n and names[j][0] in "IL":
                    j += 1
                allowed = torch.ones(1, n, tag_set.n_tags, dtype=torch.bool)
                allowed[0, i:j] = False
                allowed[0, range(i, j), path[i:j]] = True
                if j < n:
                    goes_on = [tag[0] in "IL" for tag in tag_set.tags]
                    allowed[0, j, goes_on] = False
                part = crf.forward_backward(potentials, packing, allowed)
                p = float((part.log_z - fb.log_z).exp())
                entities.append((i, j, name[2:], p))
        found.append(sorted(entities))
        begin += n
    return found


def test_all_at_once_equals_one_by_one():
    for scheme, labels, nested, noise in (
        ("BIO", "A", False, 2.0),
        ("BILUO", "ABC", False, 0.5),
        ("BIO", "ABC", True, 0.5),
        ("BILUO", "ABC", True, 2.0),
    ):
        tag_sets = make_tag_sets(labels, scheme=scheme, nested=nested)
        scores, grammar = make_scores(tag_sets, noise), make_grammar(tag_sets, torch.device("cpu"))
        expected = find_one_by_one(scores, tag_sets, grammar)
        found = find_entities(scores, tag_sets, grammar)
        assert [[e[:3] for e in doc] for doc in found] == [[e[:3] for e in doc] for doc in expected]
        for entities, wanted in zip(found, expected, strict=True):
            assert [e.probability for e in entities] == pytest.approx(
                [e[3] for e in wanted], abs=1e-9
            )
        assert sum(map(len, found)) > 10


def test_docs_of_one_token():
    for lengths, nested in itertools.product(([1], [0, 1], [1, 1]), (True, False)):
        tag_sets = make_tag_sets("ABC", scheme="BILUO", nested=nested)
        shape = sum(lengths), len(tag_sets), tag_sets[0].n_tags
        emissions = torch.randn(shape, generator=torch.manual_seed(0))
        zeros = [
            torch.zeros(shape[1:]),
            torch.zeros(shape[1:]),
            torch.zeros((*shape[1:], shape[2])),
        ]
        scores = TagScores(emissions, zeros[2], zeros[0], zeros[1], lengths)
        grammar = make_grammar(tag_sets, torch.device("cpu"))
        expected = find_one_by_one(scores, tag_sets, grammar)
        found = find_entities(scores, tag_sets, grammar, doubtful_from=1.0)
        assert [[e[:3] for e in doc] for doc in found] == [[e[:3] for e in doc] for doc in expected]


def test_mended_tags_are_the_best_legal_ones():
    """Marginals that do not follow the grammar, most of them, half or few of them "O"."""
    lengths = [40, 0, 7, 1, 90, 25, 3]
    for nested, scheme, outside in itertools.product(
        (True, False), ("BIO", "BILUO"), (0.0, 3.0, 6.0)
    ):
        tag_sets = make_tag_sets("ABC", scheme=scheme, nested=nested)
        shape = (len(tag_sets), sum(lengths), tag_sets[0].n_tags)
        logits = 2 * torch.randn(shape, generator=torch.Generator().manual_seed(0)).double()
        logits[..., 0] += outside
        marginals = logits.softmax(dim=-1)
        marginals[0, 50:60, 0] = 0.0
        packing = crf.pack(lengths, torch.device("cpu"))
        rules = legal_transitions(tag_sets[0])
        legal = crf.Legal(*map(torch.from_numpy, rules))
        packed = marginals[:, packing.rows]
        fb = crf.ForwardBackward(packed, torch.ones_like(packed), *(torch.zeros(1),) * 3)
        tags = torch.empty(shape[:2], dtype=torch.int64)
        tags[:, packing.rows] = crf.most_probable_tags(fb.alpha * fb.beta, packing, legal)
        for layer in range(len(tag_sets)):
            begin = 0
            for n in lengths:
                rows = slice(begin, begin + n)
                if n:
                    expected = best_legal_path(marginals[layer, rows].numpy(), rules)
                    assert tags[layer, rows].tolist() == expected
                begin += n
        assert (tags != marginals.argmax(dim=-1)).sum() > 3


def test_threshold_leaves_out_what_is_less_probable():
    tag_sets = make_tag_sets("AB", scheme="BILUO", nested=True)
    scores, grammar = make_scores(tag_sets, 2.0), make_grammar(tag_sets, torch.device("cpu"))
    everything = find_entities(scores, tag_sets, grammar)
    found = find_entities(scores, tag_sets, grammar, threshold=0.5)
    assert found == [[e for e in entities if e.probability >= 0.5] for entities in everything]
    assert 0 < sum(map(len, found)) < sum(map(len, everything))
