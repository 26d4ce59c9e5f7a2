"""What is remembered of an encoder that does not learn."""

import numpy as np
import torch

from spacy_bioclin.encoders.vectors import VectorMemory
from spacy_bioclin.encoders.windows import Windows

WIDTH = 4
BYTES = 4 * WIDTH  # of a piece


class Counter:
    """An encoder that counts windows; a vector tells its piece and its window's length."""

    def __init__(self):
        self.asked = 0

    def __call__(self, ids, windows):
        self.asked += len(windows.start)
        vectors = torch.zeros(len(ids), WIDTH)
        for start, end, low, high in zip(*windows, strict=True):
            vectors[low:high, 0] = torch.from_numpy(ids[low:high]).float()
            vectors[low:high, 1] = end - start
        return vectors


def whole(*lengths):
    """Windows without overlap."""
    ends = np.cumsum(lengths)
    starts = ends - np.array(lengths)
    return Windows(starts, ends, starts, ends)


def test_known_windows_are_not_encoded_again():
    memory, encode = VectorMemory(), Counter()
    ids = np.arange(12)
    first = memory.recall(encode, ids, whole(5, 4, 3), kind="fp32")
    assert torch.equal(first[:, 0], torch.arange(12.0))
    assert encode.asked == 3
    swapped = np.concatenate([ids[5:9], [50, 51], ids[:5]])
    second = memory.recall(encode, swapped, whole(4, 2, 5), kind="fp32")
    assert torch.equal(second[:, 0], torch.from_numpy(swapped).float())
    assert encode.asked == 4  # only the new window
    memory.recall(encode, ids, whole(5, 4, 3), kind="bf16")
    assert encode.asked == 7


def test_the_same_pieces_in_another_window_are_not_the_same():
    memory, encode = VectorMemory(), Counter()
    ids = np.arange(8)
    memory.recall(encode, ids, whole(8), kind="fp32")
    cores = Windows(*(np.array(v) for v in ([0, 2], [6, 8], [0, 4], [4, 8])))
    vectors = memory.recall(encode, ids, cores, kind="fp32")
    assert encode.asked == 3
    assert vectors[:, 1].tolist() == [6.0] * 8
    other_core = Windows(*(np.array(v) for v in ([0, 2], [6, 8], [0, 5], [5, 8])))
    memory.recall(encode, ids, other_core, kind="fp32")
    assert encode.asked == 5


def test_the_least_recently_used_goes():
    memory, encode = VectorMemory(max_bytes=6 * BYTES), Counter()
    a, b, c = np.arange(2), np.arange(10, 12), np.arange(20, 23)
    for ids in (a, b, a, c):  # c takes the place of b
        memory.recall(encode, ids, whole(len(ids)), kind="fp32")
    assert encode.asked == 3 and memory.n_bytes == 5 * BYTES
    memory.recall(encode, a, whole(2), kind="fp32")
    assert encode.asked == 3
    memory.recall(encode, b, whole(2), kind="fp32")
    assert encode.asked == 4 and memory.n_bytes <= 6 * BYTES


def test_a_batch_larger_than_the_memory():
    memory, encode = VectorMemory(max_bytes=3 * BYTES), Counter()
    ids = np.arange(12)
    for _ in range(2):
        vectors = memory.recall(encode, ids, whole(5, 4, 3), kind="fp32")
        assert torch.equal(vectors[:, 0], torch.arange(12.0))
        assert memory.n_bytes <= 3 * BYTES


def test_state():
    memory, encode, again = VectorMemory(), Counter(), VectorMemory()
    again.set_state(memory.get_state())
    memory.recall(encode, np.arange(9), whole(5, 4), kind="fp32")
    again.set_state(memory.get_state())
    vectors = again.recall(encode, np.arange(9), whole(5, 4), kind="fp32")
    assert encode.asked == 2 and torch.equal(vectors[:, 0], torch.arange(9.0))
    assert again.n_bytes == memory.n_bytes
