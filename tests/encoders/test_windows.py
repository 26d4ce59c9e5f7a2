"""Windows cover every piece once, end where they should, and keep tokens central."""

import numpy as np
import pytest

from spacy_bioclin.encoders.network import batch_windows
from spacy_bioclin.encoders.windows import concat_windows, cut_windows


def array(*values):
    return np.array(values, dtype=np.int64)


CASES = [
    # n, sentence starts, token starts, size, overlap → windows (start, end), core ends
    (0, [], [], 8, 2, [], []),
    (5, [0], [0, 2, 4], 8, 2, [(0, 5)], [5]),
    # the window ends with the sentence at 6, not in the middle of the next one
    (12, [0, 6], range(12), 8, 0, [(0, 6), (6, 12)], [6, 12]),
    # a sentence end in the first half of a window would waste it: cut between tokens
    (12, [0, 3], range(12), 8, 0, [(0, 8), (8, 12)], [8, 12]),
    # never through a token: 7, 8 and 9 are one
    (12, [0], [0, 1, 2, 3, 4, 5, 6, 7, 10, 11], 8, 0, [(0, 7), (7, 12)], [7, 12]),
    # a token longer than the window is cut, and nothing is lost
    (20, [0], [0], 8, 0, [(0, 8), (8, 16), (16, 20)], [8, 16, 20]),
    # overlap of 4: pieces 4–7 are in both; the middle is at 6
    (12, [0], range(12), 8, 4, [(0, 8), (4, 12)], [6, 12]),
    # the cut moves to the token boundary next to the middle
    (12, [0], [0, 1, 2, 3, 4, 5, 8, 9, 10, 11], 8, 4, [(0, 8), (4, 12)], [5, 12]),
]


def test_by_hand():
    for n, sentences, tokens, size, overlap, bounds, cuts in CASES:
        windows = cut_windows(n, array(*sentences), array(*tokens), size=size, overlap=overlap)
        assert list(zip(windows.start.tolist(), windows.end.tolist(), strict=True)) == bounds
        assert windows.core_end.tolist() == cuts


def test_any_text():
    for seed in range(60):
        random = np.random.default_rng(seed)
        n = int(random.integers(1, 400))
        tokens = np.flatnonzero(random.random(n) < random.choice([0.02, 0.3, 1.0]))
        tokens = np.unique(np.append(tokens, 0))
        sentences = tokens[random.random(len(tokens)) < 0.1]
        size = int(random.integers(8, 64))
        overlap = int(random.integers(0, size // 2))
        windows = cut_windows(n, sentences, tokens, size=size, overlap=overlap)
        covered = np.concatenate(
            [np.arange(s, e) for s, e in zip(windows.core_start, windows.core_end, strict=True)]
        )
        assert covered.tolist() == list(range(n))  # each piece in one core
        assert (windows.end - windows.start <= size).all()
        assert (windows.start <= windows.core_start).all() and (
            windows.core_end <= windows.end
        ).all()
        assert (np.diff(windows.start) > 0).all()
        if len(tokens) == n:  # every piece a token: compare with centrality by definition
            for i in range(len(windows.start) - 1):
                for piece in range(int(windows.start[i + 1]), int(windows.end[i])):
                    right = int(windows.end[i]) - 1 - piece
                    left = piece - int(windows.start[i + 1])
                    if abs(right - left) > 1:
                        assert (piece < windows.core_end[i]) == (right > left)


def test_concat_shifts_indices():
    one = cut_windows(3, array(0), array(0, 1, 2), size=8, overlap=0)
    joined = concat_windows([one, one], [3, 3])
    assert joined.start.tolist() == [0, 3] and joined.core_end.tolist() == [3, 6]


@pytest.mark.parametrize(
    ("min_padding", "expected"),
    [(0, [[49, 50], [6, 7], [5], [1]]), (256, [[49, 50], [1, 5, 6, 7]])],
)
def test_batches_hold_every_window_and_respect_the_budget(monkeypatch, min_padding, expected):
    monkeypatch.setattr("spacy_bioclin.encoders.network.MIN_PADDING", min_padding)
    lengths = [5, 50, 7, 49, 6, 1]
    cut = [cut_windows(n, array(0), np.arange(n), size=64, overlap=0) for n in lengths]
    windows = concat_windows(cut, lengths)
    groups = list(batch_windows(windows, max_batch_pieces=100))
    sizes = windows.end - windows.start
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(lengths)))
    assert all(len(group) * sizes[group].max() <= 100 for group in groups)
    assert [sorted(sizes[group].tolist()) for group in groups] == expected
