"""Invented results; every expected figure is worked by hand."""

import json
import math
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.sweeps.entries import Published
from spacy_bioclin.sweeps.report import render_page
from spacy_bioclin.sweeps.summary.selection import describe, find_best_runs, has_failed, summarize
from spacy_bioclin.sweeps.tables import (
    format_rate,
    make_blue_table,
    make_carrino_table,
    make_comparison_table,
    make_failure_table,
    make_lewis_table,
    make_rate_table,
    make_search_table,
    make_spread_table,
    to_markdown,
)


def result(
    rate: float,
    seed: int,
    dev: float | None,
    test: float | None,
    *,
    task: str = "pharmaconer",
    strategy: str = "plain",
    status: str = "done",
    epoch: float = 1.0,
) -> dict[str, Any]:
    """A trial; precision is 0.1 below F1, recall 0.1 above."""
    dev_scores, test_scores = (
        None if f is None else {"p": f - 0.1, "r": f + 0.1, "f": f, "per_doc": [[1, 0, seed]]}
        for f in (dev, test)
    )
    trial = {"task": task, "encoder": "tiny", "strategy": strategy, "learn_rate": rate}
    return {
        "trial": {**trial, "seed": seed},
        **{"status": status, "error": None if status == "done" else "loss is nan"},
        **{"best_step": int(100 * epoch), "best_epoch": epoch},
        **{"dev": dev_scores, "test": test_scores, "settings": {"learn_rate": 10 * rate}},
    }


# Best run on dev: 5e-5 (0.86). Best median on dev: 3e-5 (0.85). Best mean on dev: 3e-5 too
# (0.83 against 0.81). None of these is what test would choose: 1e-5.
GRID = [
    *(result(1e-5, seed, dev, 0.90) for seed, dev in enumerate((0.60, 0.60, 0.60))),
    result(3e-5, 0, 0.79, 0.70, epoch=2),
    result(3e-5, 1, 0.85, 0.72, epoch=3),
    result(3e-5, 2, 0.85, 0.77, epoch=4),
    result(5e-5, 0, 0.86, 0.60, epoch=7.5),
    result(5e-5, 1, 0.77, 0.64, epoch=9),
    result(5e-5, 2, 0.80, 0.65, epoch=9),
]


def only(found: dict[str, Any]) -> dict[str, Any]:
    [group] = found["groups"]
    return group


def test_statistics_of_a_sample() -> None:
    assert describe([1, 2, 3, 6]) == {
        **{"n": 4, "mean": 3, "sd": pytest.approx(math.sqrt(14 / 3)), "median": 2.5},
        **{"min": 1, "max": 6},
    }
    assert describe([0.5]) == {
        "n": 1,
        "mean": 0.5,
        "sd": None,
        "median": 0.5,
        "min": 0.5,
        "max": 0.5,
    }
    assert describe([])["n"] == 0 and describe([])["mean"] is None


def test_choice_is_by_dev_only() -> None:
    best = only(summarize(GRID, 0.05))["best"]
    assert [best[by]["learn_rate"] for by in ("by_run", "by_median", "by_mean")] == [
        5e-5,
        3e-5,
        3e-5,
    ]
    assert best["by_run"]["test"]["f"]["mean"] == pytest.approx(0.63)
    assert best["by_run"]["run"]["epoch"] == 7.5 and best["by_run"]["run"]["seed"] == 0
    assert best["by_run"]["run"]["test"]["f"] == 0.60
    # Test scores do not move it, whatever they are.
    turned = [{**one, "test": {key: 1 - one["test"][key] for key in "prf"}} for one in GRID]
    again = only(summarize(turned, 0.05))["best"]
    assert {by: one["learn_rate"] for by, one in again.items()} == {
        by: one["learn_rate"] for by, one in best.items()
    }


def test_median_and_mean_can_choose_differently() -> None:
    runs = [result(1e-5, s, dev, 0.1) for s, dev in enumerate((0.8, 0.8, 0.2))]
    runs += [result(2e-5, s, dev, 0.2) for s, dev in enumerate((0.7, 0.7, 0.7))]
    best = only(summarize(runs, 0.05))["best"]
    assert best["by_median"]["learn_rate"] == 1e-5
    assert best["by_mean"]["learn_rate"] == 2e-5


def test_failed_runs_are_counted_and_named() -> None:
    runs = [
        result(1e-3, 0, None, None, status="diverged"),
        result(1e-3, 1, 0.04, 0.02),
        result(1e-5, 0, 0.05, 0.06),
        result(1e-5, 1, None, None, status="crashed"),
    ]
    assert [has_failed(run, 0.05) for run in runs] == [True, True, False, True]
    group = only(summarize(runs, failed_below=0.05))
    assert group["trials"] == 4 and group["test"]["f"]["n"] == 2
    assert group["test"]["f"]["mean"] == pytest.approx(0.04)  # the collapsed run counts
    assert [(one["learn_rate"], one["seed"], one["status"]) for one in group["failed"]] == [
        (1e-3, 0, "diverged"),
        (1e-3, 1, "done"),
        (1e-5, 1, "crashed"),
    ]
    assert [one["failed"] for one in group["configurations"]] == [2, 1]
    table = make_failure_table(summarize(runs, 0.05))
    assert table is not None
    assert table.rows[0] == ["pharmaconer", "tiny", "1e-3", "0", "diverged", "–", "loss is nan"]
    assert table.rows[1] == ["pharmaconer", "tiny", "1e-3", "1", "done", "0.0400", ""]
    assert make_failure_table(summarize(GRID, 0.05)) is None


def test_a_group_without_a_score_has_no_best() -> None:
    found = summarize([result(1e-3, seed, None, None, status="diverged") for seed in (0, 1)], 0.05)
    assert only(found)["best"] == {"by_run": None, "by_median": None, "by_mean": None}
    [row] = make_carrino_table(found).rows
    assert row == ["pharmaconer", "tiny", "ours", *["–"] * 6, "0", "2"]
    assert make_lewis_table(found).rows == make_blue_table(found).rows == []
    assert make_spread_table(found).rows[0][-1] == "2 of 2"
    assert find_best_runs(GRID, only(found)) == []
    json.dumps(found, allow_nan=False)


def test_no_results() -> None:
    with pytest.raises(BioclinError, match="no results"):
        summarize([], 0.05)


PUBLISHED = [
    Published(
        task="pharmaconer",
        model="bsc-bio-ehr-es",
        source="the paper",
        f=[0.8913, 0.01],
        p=[0.8758, 0.01],
        r=[0.9073, 0.01],
        best=[0.8954, 0.0],
        learn_rate=3e-5,
        epoch=10,
        median=0.8913,
        mean=[0.89, 0.012],
    ),
    Published(task="ictusnet", model="bsc-bio-es", source="the paper", f=[0.8727, 0.01]),
]


def test_table_of_carrino() -> None:
    table = make_carrino_table(summarize(GRID, 0.05), PUBLISHED)
    paper, ours, other = table.rows
    assert paper[:9] == [
        *("pharmaconer", "bsc-bio-ehr-es", "the paper", "0.8913±0.01", "0.8758±0.01"),
        *("0.9073±0.01", "0.8954±0.00", "3e-5", "10"),
    ]
    # All nine: (3 · 0.9 + 0.7 + 0.72 + 0.77 + 0.6 + 0.64 + 0.65) / 9 = 6.78 / 9 = 0.7533; the
    # squares of the distances sum to 0.1158, / 8 = 0.014475, root 0.1203.
    # At 5e-5: mean 0.63, squares 0.0009 + 0.0001 + 0.0004, / 2 = 0.0007, root 0.0265.
    assert ours == [
        *("pharmaconer", "tiny", "ours", "0.7533±0.120", "0.6533±0.120", "0.8533±0.120"),
        *("0.6300±0.026", "5e-4", "7.5", "9", "0"),  # the rate as used: ten times the grid's
    ]
    assert other[:5] == ["ictusnet", "bsc-bio-es", "the paper", "0.8727±0.01", "–"]


def test_strategies_have_rows_of_their_own() -> None:
    runs = [result(1e-5, 0, 0.5, 0.5), result(1e-5, 0, 0.6, 0.4, strategy="frozen")]
    rows = make_carrino_table(summarize(runs, 0.05)).rows
    assert [row[1] for row in rows] == ["tiny, plain", "tiny, frozen"]
    assert rows[0][3] == "0.5000"  # one run has no deviation


def test_table_of_lewis_and_of_blue() -> None:
    runs = [*GRID, *(result(3e-5, s, 0.5, f, task="cantemist") for s, f in enumerate((0.4, 0.9)))]
    published = [*PUBLISHED, PUBLISHED[0].model_copy(update={"task": "cantemist", "median": 0.84})]
    lewis = make_lewis_table(summarize(runs, 0.05), published)
    assert lewis.head == ["Task", "bsc-bio-ehr-es (the paper)", "tiny (ours)"]
    assert lewis.rows == [
        ["pharmaconer", "89.1", "72.0"],
        ["cantemist", "84.0", "65.0"],
        ["Mean of 2 tasks", "86.6", "68.5"],  # (89.13 + 84) / 2, (72 + 65) / 2
    ]
    blue = make_blue_table(summarize(runs, 0.05), PUBLISHED)
    # 3e-5: mean 0.73, squares 0.0009 + 0.0001 + 0.0016, / 2 = 0.0013, root 0.0361.
    assert blue.rows == [
        ["pharmaconer", "89.0 (1.2)", "73.0 (3.6)"],
        ["cantemist", "–", "65.0 (35.4)"],
        # Seed 0: (70 + 40) / 2 = 55, seed 1: (72 + 90) / 2 = 81; the paper has one of the two.
        ["Mean of 2 tasks", "–", "68.0 (18.4)"],
    ]


def test_tables_of_spread_and_rates() -> None:
    found = summarize(GRID, 0.05)
    expected = ["9", "0.7533", "0.1203", "0.7200", "0.6000", "0.9000", "0 of 9"]
    assert make_spread_table(found).rows == [["pharmaconer", "tiny", *expected]]
    rates = make_rate_table(found)
    assert rates.head[2:] == ["1e-5", "3e-5", "5e-5"]
    assert rates.rows[0][2:] == ["0.9000±0.000", "0.7300±0.036", "0.6300±0.026"]


def test_runs_to_compare_are_those_of_the_best_mean() -> None:
    runs = [*GRID, result(3e-5, 3, None, None, status="diverged")]
    found = find_best_runs(runs, only(summarize(runs, 0.05)))
    assert [(one["trial"]["learn_rate"], one["trial"]["seed"]) for one in found] == [
        (3e-5, seed) for seed in range(3)
    ]


def test_table_of_a_search_has_the_best_on_dev_first() -> None:
    runs = []
    for sample, (rate, dev, decay) in enumerate([(1e-5, 0.6, 0.91234567), (2.5e-5, 0.7, 0.8)]):
        for seed in (0, 1):
            run = result(rate, seed, dev, dev - 0.1, strategy="search")
            run["trial"].update({"sample": sample, "from": "plain", "layer_decay": decay})
            runs.append(run)
    runs[3]["dev"]["f"] = 0.72
    first, second = make_search_table(summarize(runs, 0.05)).rows
    shown = ["1", "from plain, layer_decay 0.8", "2.5e-4", "0.7100±0.014", "0.6000±0.000"]
    assert first == ["pharmaconer", "tiny", *shown]
    shown = ["0", "from plain, layer_decay 0.9123", "1e-4", "0.6000±0.000", "0.5000±0.000"]
    assert second == ["pharmaconer", "tiny", *shown]


def test_table_of_comparisons() -> None:
    figures = {"difference": 0.0123, "low": -0.001, "high": 0.0256, "p": 0.0712}
    one = {"task": "t", "model": "m", "baseline": "b", "difference": 0.0123, "documents": figures}
    one["seeds"] = None
    table = make_comparison_table([{**one, "documents_and_seeds": {**figures, "p": 0.2}}])
    assert table is not None
    interval = "-0.10 to +2.56"
    assert table.rows == [["t", "m", "b", "+1.23", interval, "0.0712", interval, "0.2000"]]
    table = make_comparison_table([{**one, "documents_and_seeds": None}])
    assert table is not None and table.rows[0][-2:] == ["–", "–"]
    assert make_comparison_table([]) is None


def test_rates_are_shown_as_papers_do() -> None:
    shown = ["8e-6", "1e-5", "2.5e-4", "1e-1"]
    assert [format_rate(rate) for rate in (8e-6, 1e-5, 2.5e-4, 0.1)] == shown


def test_markdown_and_page() -> None:
    table = make_carrino_table(summarize(GRID, 0.05), PUBLISHED)._replace(note="a < b")
    table.rows[1][1] = "a|b <i>"
    markdown = to_markdown(table)
    assert "| pharmaconer | a\\|b <i> | ours |" in markdown
    assert len({line.replace("\\|", "").count("|") for line in markdown.splitlines()[2:6]}) == 1
    page = render_page("Sweep of <x>", {"Trials": "9"}, ["<svg></svg>"], [table])
    assert "Sweep of &lt;x&gt;" in page and "<svg></svg>" in page and "a|b &lt;i&gt;" in page
    assert page.count('<tr class="ours">') == 1
    assert re.findall(r"(?:src|href)=|<script|url\(", page) == []
    ElementTree.fromstring(page[page.index("<body>") : page.index("</html>")])
