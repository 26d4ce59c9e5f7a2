"""The plans of the papers: their published rows, and their small versions for a few updates."""

from pathlib import Path
from typing import Any

import pytest

from spacy_bioclin.catalog.tasks import load_tasks
from spacy_bioclin.pretraining.compact import build_compact_encoder
from spacy_bioclin.sweeps.plan import Plan, read_plan
from spacy_bioclin.sweeps.report import write_report
from spacy_bioclin.sweeps.results import DONE, read_results
from spacy_bioclin.sweeps.trial import make_config, run_trial
from tests.sweeps.invented import write_corpus
from tests.util import TEXTS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "configs" / "sweeps"
PAPERS = ("lewis-2020", "blue", "mulyar-2020")
NO_TASK = {"all ten tasks"}  # a published row that is over several tasks
FEW_UPDATES = {"training.max_steps": 2, "training.eval_frequency": 2}


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def load(name: str, *, small: bool = False) -> Plan:
    return read_plan(FOLDER / f"{name}.yml", small=small)


def test_every_task_is_in_the_catalogue() -> None:
    known = set(load_tasks())
    for path in FOLDER.glob("*.yml"):
        plan = load(path.stem)
        named = {row.task for row in plan.published} - NO_TASK
        named |= {task for tasks in plan.groups.values() for task in tasks}
        named |= {name for name, corpus in plan.tasks.items() if not (corpus.path or corpus.joint)}
        named |= {inner for corpus in plan.tasks.values() for inner in corpus.joint}
        assert named <= known, path.stem


@pytest.mark.parametrize(
    "name",
    ["blue", *(pytest.param(one, marks=pytest.mark.slow) for one in PAPERS if one != "blue")],
)
def test_every_trial_has_a_config(name: str, tmp_path: Path) -> None:
    for small in (False, True):
        plan = load(name, small=small)
        first = {trial.task: trial for trial in plan.list_trials()}
        assert list(first) == list(plan.tasks)
        # The tasks of both are the same: of the small plan, the last one stands for all.
        for trial in list(first.values())[-1 if small else 0 :]:
            config = make_config(plan, trial, tmp_path)
            assert config["training"]["max_epochs"] > 0
            assert config["paths"]["encoder"] == plan.encoders[trial.encoder].path


def test_lewis_has_every_open_task_of_the_paper() -> None:
    plan = load("lewis-2020")
    tasks = {name: task for name, task in load_tasks().items() if "lewis-2020" in task.papers}
    assert set(plan.tasks) == {name for name, task in tasks.items() if task.access == "open"}
    assert set(tasks) <= {task for group in plan.groups.values() for task in group}


@pytest.mark.parametrize("name", PAPERS)
def test_rows_are_those_of_the_catalogue(name: str) -> None:
    """A row of the paper that the catalogue has, too, has the same figure in both."""
    sources = {
        "lewis-2020": "Lewis 2020, table 2",
        "blue": "ouBioBERT, BLUE",
        "mulyar-2020": "Mulyar 2020, table 2",
    }
    found = set()
    for row in load(name).published:
        for value in (row.median, row.mean and row.mean[0], row.joint, row.single):
            if value is not None:
                found.add((row.task, round(100 * value, 1)))
    known = {
        (task, row.value)
        for task, entry in load_tasks().items()
        for row in entry.published
        if row.source == sources[name]
    }
    assert known and known <= found


def test_small_plans_change_only_what_they_name() -> None:
    whole, small = load("blue"), load("blue", small=True)
    assert small.tasks == whole.tasks and small.recipe == whole.recipe
    assert list(small.encoders) == ["bioclin-sm"]
    assert isinstance(small.epochs, dict) and small.epochs["biosses"] == 5
    assert len(small.list_trials()) < len(whole.list_trials())


def run_small(plan: Plan, out: Path) -> None:
    """Run the first trial of each task of a plan, and write the tables."""
    trials = list({trial.task: trial for trial in reversed(plan.list_trials())}.values())
    for trial in trials:  # in this process: a process for each takes seconds to start
        run_trial(plan, out, -1, 1, trial)
    results = read_results(out, trials)
    assert [one["error"] for one in results] == [None] * len(results)
    assert {one["status"] for one in results} == {DONE}
    tables = write_report("small", out, plan, results, against=None)
    # The table of Lewis et al. leaves out tasks of which one fold was run: it chooses.
    shown = {cell for table in tables.values() for row in (table.head, *table.rows) for cell in row}
    tasks = [name for name, corpus in plan.tasks.items() if not corpus.joint]
    assert set(tasks) <= shown


def with_tiny_encoders(plan: Plan, folder: Path) -> Plan:
    path = folder / "encoder"
    build_compact_encoder(TEXTS * 10, path, layers=1, width=64, vocab_size=300, seed=0)
    encoders = {
        name: encoder.model_copy(update={"path": str(path)})
        for name, encoder in plan.encoders.items()
    }
    return plan.model_copy(update={"encoders": encoders})


def with_invented(plan: Plan, folder: Path) -> Plan:
    """Put invented corpora in the place of those of the catalogue; of the tasks that nothing joins,
    one with each score stays."""
    tasks: dict[str, Any] = {}
    joined = {inner for corpus in plan.tasks.values() for inner in corpus.joint}
    scores = set()
    for name, corpus in plan.tasks.items():
        if corpus.joint:
            tasks[name] = corpus
            continue
        setup = plan.find_setup(name)
        if name not in joined and setup.score in scores:
            continue
        scores.add(setup.score)
        path = write_corpus(folder / name, setup.kind, graded=setup.graded)
        own = {"path": str(path), "lang": "es", "kind": setup.kind, "score": setup.score}
        own |= {"exclusive": setup.exclusive, "graded": setup.graded}
        tasks[name] = corpus.model_copy(update=own)
    settings = {**plan.settings, **FEW_UPDATES}
    return plan.model_copy(update={"tasks": tasks, "settings": settings})


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_small_plans_run_on_invented_corpora(name: str, tmp_path: Path) -> None:
    plan = with_tiny_encoders(load(name, small=True), tmp_path)
    run_small(with_invented(plan, tmp_path), tmp_path / "out")


@pytest.mark.full
@pytest.mark.corpora
@pytest.mark.parametrize("name", PAPERS)
def test_small_plans_run_on_the_real_corpora(
    name: str, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One seed with a tiny encoder: whether the corpora fit the plan is what counts here."""
    plan = with_tiny_encoders(load(name, small=True), tmp_path)
    known = load_tasks()
    folders = {known[task].folder for task in plan.tasks if task in known}
    missing = [folder for folder in sorted(folders) if not (data_dir / folder).is_dir()]
    if missing:
        pytest.skip(f"{data_dir} has no {', '.join(missing)}")
    monkeypatch.setenv("BIOCLIN_DATA", str(data_dir.resolve()))
    fewer = {
        "seeds": plan.seeds[:1],
        "settings": {**plan.settings, **FEW_UPDATES},
        "dev_notes": 4,
        "test_notes": 4,
    }
    run_small(plan.model_copy(update=fewer), tmp_path / "out")
