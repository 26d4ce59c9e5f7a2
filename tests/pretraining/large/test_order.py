"""The order of blocks, whole or in chunks."""

import numpy as np
import pytest

from spacy_bioclin.pretraining.large import order
from spacy_bioclin.pretraining.large.order import ChunkedOrder, draw_order


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "CHUNK", 40)


def read(drawn: ChunkedOrder) -> np.ndarray:
    return np.stack([drawn[i] for i in range(len(drawn))])


@pytest.mark.usefixtures("small_chunks")
def test_chunks_have_the_shares_and_repeat_nothing_before_all_was_read() -> None:
    drawn = read(ChunkedOrder([50, 7], [0.75, 0.25], 200, seed=0))
    for start in range(0, 200, 40):
        assert (drawn[start : start + 40, 0] == 0).sum() == 30
    first, second = (drawn[drawn[:, 0] == part, 1] for part in (0, 1))
    assert np.bincount(first).tolist() == [3] * 50
    # 50 positions in passes of 7: seven times all, and once more the first one of the next pass.
    assert sorted(np.bincount(second).tolist()) == [7] * 6 + [8]


@pytest.mark.usefixtures("small_chunks")
def test_an_order_in_chunks_can_be_read_from_anywhere() -> None:
    whole = read(ChunkedOrder([50, 7], [0.75, 0.25], 190, seed=3))
    again = ChunkedOrder([50, 7], [0.75, 0.25], 190, seed=3)
    for i in (170, 0, 189, 45, 46):
        assert (again[i] == whole[i]).all()
    other = read(ChunkedOrder([50, 7], [0.75, 0.25], 190, seed=4))
    assert (other != whole).any()
    with pytest.raises(IndexError):
        again[190]


def test_billions_of_blocks_take_no_memory_until_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order, "CHUNK", 100_000)
    drawn = draw_order([1000, 10], [0.5, 0.5], 500_000 * 8192, seed=0)
    assert len(drawn) == 4_096_000_000
    part, block = drawn[4_000_000_000]
    assert 0 <= block < (1000, 10)[part]


def test_fewer_blocks_are_one_array() -> None:
    assert isinstance(draw_order([5], [1.0], 12, seed=0), np.ndarray)
