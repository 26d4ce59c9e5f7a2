"""The search for settings: samples, resuming, and mistakes."""

import math
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.settings import read_settings
from spacy_bioclin.sweeps.plan import Plan
from spacy_bioclin.sweeps.search import JOURNAL, Sample, read_samples, run_study

pytest.importorskip("optuna")

SEARCH = {
    "n_trials": 10,
    "settings": {
        "layer_decay": {"low": 0.5, "high": 1.0},
        "freeze_layers": {"low": 0, "high": 3},
        "training.dropout": {"choices": [0.1, 0.3]},
    },
}


def make_plan(**changes) -> Plan:
    values = {
        "tasks": ["demo"],
        "encoders": {"e": "folder"},
        "learn_rates": [1e-5, 1e-4, 1e-3],
        "seeds": [0],
        "strategies": {"plain": None, "other": None},
        "search": SEARCH,
    }
    return read_settings(Plan, {**values, **changes}, where="plan.yml")


def search(folder: Path, name: str, evaluate, *, n_trials: int = 10, at_once: int = 1) -> None:
    plan = make_plan(search={**SEARCH, "n_trials": n_trials})
    assert plan.search is not None
    run_study(plan, plan.search, folder, name, evaluate, at_once=at_once)


def score(samples: list[Sample]) -> list[float]:
    """Best at 1e-4, decay 1, dropout 0.1."""
    return [
        -abs(math.log10(sample.learn_rate) + 4)
        + sample.settings["layer_decay"]
        - sample.settings["training.dropout"]
        for sample in samples
    ]


def test_samples_lie_within_their_ranges(tmp_path: Path) -> None:
    search(tmp_path, "a", score)
    samples = read_samples(tmp_path, "a")
    assert [sample.number for sample in samples] == list(range(10))
    assert len({sample.learn_rate for sample in samples}) == 10
    for sample in samples:
        assert 1e-5 <= sample.learn_rate <= 1e-3
        assert sample.strategy in ("plain", "other")
        assert list(sample.settings) == list(SEARCH["settings"])
        assert 0.5 <= sample.settings["layer_decay"] <= 1
        assert sample.settings["freeze_layers"] in range(4)
        assert sample.settings["training.dropout"] in (0.1, 0.3)


def test_an_interrupted_search_resumes_as_if_it_had_not_been(tmp_path: Path) -> None:
    search(tmp_path / "whole", "a", score)
    tried: list[int] = []

    def stop_at_seven(samples: list[Sample]) -> list[float]:
        if samples[0].number == 7 and 7 not in tried:
            tried.append(7)
            raise KeyboardInterrupt
        tried.extend(sample.number for sample in samples)
        return score(samples)

    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "cut", "a", stop_at_seven)
    search(tmp_path / "cut", "a", stop_at_seven)
    assert tried == [*range(7), 7, *range(7, 10)]
    assert read_samples(tmp_path / "cut", "a") == read_samples(tmp_path / "whole", "a")


def test_studies_are_apart_and_can_be_lengthened(tmp_path: Path) -> None:
    sizes: list[int] = []

    def count(samples: list[Sample]) -> list[float]:
        sizes.append(len(samples))
        return score(samples)

    search(tmp_path, "a", count, at_once=2, n_trials=5)
    assert sizes == [2, 2, 1]
    search(tmp_path, "a", count, at_once=2, n_trials=6)
    assert sizes == [2, 2, 1, 1]
    assert read_samples(tmp_path, "b") == []
    search(tmp_path, "b", score, n_trials=1)
    assert len(read_samples(tmp_path, "b")) == 1 and len(read_samples(tmp_path, "a")) == 6
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL]


def test_other_ranges_need_another_folder(tmp_path: Path) -> None:
    search(tmp_path, "a", score, n_trials=1)
    plan = make_plan(strategies={"plain": None})
    with pytest.raises(BioclinError, match=r"had other ranges.*another folder"):
        run_study(plan, plan.search, tmp_path, "a", score)


def test_mistakes_in_the_section() -> None:
    rows: list[tuple[dict, str]] = [
        ({"trials": 3}, r"unknown key 'search\.trials'; did you mean n_trials\?"),
        ({}, r"search\.n_trials is missing"),
        ({"n_trials": 0}, r"search\.n_trials = 0: want greater than or equal to 1"),
        ({"n_trials": 1, "settings": {"x": [0, 1]}}, r"search\.settings\.x = \[0, 1\]: want"),
        (
            {"n_trials": 1, "settings": {"x": {"low": 2, "high": 1}}},
            r"search\.settings\.x = {'low': 2, 'high': 1}: want {low: 0\.7",
        ),
        ({"n_trials": 1, "settings": {"x": {"choices": []}}}, r"x = {'choices': \[\]}: want {low"),
        ({"n_trials": 1, "settings": {"x": {"low": 1}}}, r"x = {'low': 1}: want {low: 0\.7"),
        (
            {"n_trials": 1, "settings": {"x": {"low": 1, "high": 2, "choices": [1]}}},
            r"'choices': \[1\]}: want {low: 0\.7",
        ),
    ]
    for section, words in rows:
        with pytest.raises(BioclinError, match=words):
            make_plan(search=section)
