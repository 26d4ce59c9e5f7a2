"""Results on disk: what is done is not run again."""

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.sweeps.results import (
    CRASHED,
    DONE,
    find_missing,
    make_result,
    read_results,
    write_result,
)
from tests.sweeps.test_plan import PLAN, make_plan


def test_what_is_done_is_not_run_again_and_what_crashed_is(tmp_path):
    plan = make_plan(tmp_path)
    trials = plan.list_trials()
    write_result(tmp_path, make_result(plan, trials[0]))
    write_result(tmp_path, make_result(plan, trials[1], CRASHED))
    (tmp_path / "trials" / trials[2].name).mkdir()  # was killed
    assert find_missing(plan, tmp_path, trials) == trials[1:]
    assert [r["status"] for r in read_results(tmp_path, trials)] == [DONE, CRASHED]


def test_results_of_another_plan_are_not_taken_for_this_one(tmp_path):
    plan = make_plan(tmp_path)
    write_result(tmp_path, make_result(plan, plan.list_trials()[0]))
    other = make_plan(tmp_path, PLAN.replace("L2: 0.5", "L2: 0.1"))
    with pytest.raises(BioclinError, match=r"was run with settings = .*0\.5.*another folder"):
        find_missing(other, tmp_path, other.list_trials())
