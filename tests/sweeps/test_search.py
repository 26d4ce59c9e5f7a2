import math
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.sweeps.search import JOURNAL, Sample, read_samples, read_space, search

pytest.importorskip("optuna")

SAID = {
    "n_trials": 10,
    "settings": {
        "layer_decay": {"low": 0.5, "high": 1.0},
        "freeze_layers": {"low": 0, "high": 3},
        "training.dropout": {"choices": [0.1, 0.3]},
    },
}
SPACE = read_space(SAID, [1e-5, 1e-4, 1e-3], ["plain", "other"])


def score(samples: list[Sample]) -> list[float]:
    """Best at 1e-4, decay 1, dropout 0.1."""
    return [
        -abs(math.log10(sample.learn_rate) + 4)
        + sample.settings["layer_decay"]
        - sample.settings["training.dropout"]
        for sample in samples
    ]


def test_samples_lie_within_their_ranges(tmp_path: Path) -> None:
    search(SPACE, tmp_path, "a", score)
    samples = read_samples(tmp_path, "a")
    assert [sample.number for sample in samples] == list(range(10))
    assert len({sample.learn_rate for sample in samples}) == 10
    for sample in samples:
        assert 1e-5 <= sample.learn_rate <= 1e-3
        assert sample.strategy in ("plain", "other")
        assert list(sample.settings) == list(SAID["settings"])
        assert 0.5 <= sample.settings["layer_decay"] <= 1
        assert sample.settings["freeze_layers"] in range(4)
        assert sample.settings["training.dropout"] in (0.1, 0.3)


def test_a_search_that_was_killed_goes_on_as_if_it_had_not(tmp_path: Path) -> None:
    search(SPACE, tmp_path / "whole", "a", score)
    tried: list[int] = []

    def stop_at_seven(samples: list[Sample]) -> list[float]:
        if samples[0].number == 7 and 7 not in tried:
            tried.append(7)
            raise KeyboardInterrupt
        tried.extend(sample.number for sample in samples)
        return score(samples)

    with pytest.raises(KeyboardInterrupt):
        search(SPACE, tmp_path / "cut", "a", stop_at_seven)
    search(SPACE, tmp_path / "cut", "a", stop_at_seven)
    assert tried == [*range(7), 7, *range(7, 10)]
    assert read_samples(tmp_path / "cut", "a") == read_samples(tmp_path / "whole", "a")


def test_studies_are_apart_and_can_be_lengthened(tmp_path: Path) -> None:
    sizes: list[int] = []

    def count(samples: list[Sample]) -> list[float]:
        sizes.append(len(samples))
        return score(samples)

    search(SPACE._replace(n_trials=5), tmp_path, "a", count, at_once=2)
    assert sizes == [2, 2, 1]
    search(SPACE._replace(n_trials=6), tmp_path, "a", count, at_once=2)
    assert sizes == [2, 2, 1, 1]
    assert read_samples(tmp_path, "b") == []
    search(SPACE._replace(n_trials=1), tmp_path, "b", score)
    assert len(read_samples(tmp_path, "b")) == 1 and len(read_samples(tmp_path, "a")) == 6
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL]


def test_other_ranges_need_another_folder(tmp_path: Path) -> None:
    search(SPACE._replace(n_trials=1), tmp_path, "a", score)
    with pytest.raises(BioclinError, match=r"had other ranges.*another folder"):
        search(SPACE._replace(strategies=["plain"]), tmp_path, "a", score)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"trials": 3}, r"search\.trials is unknown; a search has n_trials, seed, settings"),
        ({}, r"search\.n_trials is None, want a number"),
        ({"n_trials": 0}, r"search\.n_trials is 0"),
        ({"n_trials": 1, "settings": {"x": [0, 1]}}, r"search\.settings\.x is .* want {low"),
        ({"n_trials": 1, "settings": {"x": {"low": 2, "high": 1}}}, r"settings\.x is {'low': 2"),
        ({"n_trials": 1, "settings": {"x": {"choices": []}}}, r"settings\.x is {'choices': \[\]}"),
    ],
)
def test_mistakes_in_the_section(said: dict, words: str) -> None:
    with pytest.raises(BioclinError, match=words):
        read_space(said, [1e-5], ["plain"])
