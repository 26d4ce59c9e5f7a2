"""The plans of the papers: their published rows, and their small versions for a few updates."""

import statistics
from pathlib import Path

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
PLANS = sorted(path.stem for path in FOLDER.glob("*.yml"))
# Tasks of published rows that have no entry in the catalogue; and a row that is over several tasks.
NOT_AVAILABLE: set[str] = set()
NO_TASK = {"all ten tasks"}
# Table 2 of Lewis et al. (2020): means over sequence labelling, classification and all tasks.
MEANS = {
    "RoBERTa-base": (82.7, 79.0, 81.3),
    "SciBERT": (85.6, 78.2, 82.7),
    "BioBERT": (85.9, 80.5, 83.8),
    "ClinicalBERT": (84.8, 78.9, 82.5),
    "BioMed-RoBERTa": (84.5, 81.4, 83.3),
    "Bio-LM base (PM-M3-Voc)": (86.6, 81.7, 84.7),
    "RoBERTa-large": (85.8, 79.2, 83.2),
    "Bio-LM large (PM-M3-Voc)": (87.9, 82.6, 85.8),
}
FEW_UPDATES = {"training.max_steps": 2, "training.eval_frequency": 2}


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def load(name: str, *, small: bool = False) -> Plan:
    return read_plan(FOLDER / f"{name}.yml", small=small)


@pytest.mark.parametrize("name", PLANS)
def test_every_task_is_in_the_catalogue_or_known_to_be_missing(name: str) -> None:
    plan, known = load(name), set(load_tasks())
    named = {row.task for row in plan.published} - NO_TASK
    named |= {task for tasks in plan.groups.values() for task in tasks}
    assert named <= known | NOT_AVAILABLE
    own = {name for name, corpus in plan.tasks.items() if not corpus.path and not corpus.joint}
    assert own <= known
    assert {inner for corpus in plan.tasks.values() for inner in corpus.joint} <= known


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("small", [False, True])
def test_every_trial_has_a_config(name: str, small: bool, tmp_path: Path) -> None:
    plan = load(name, small=small)
    first = {trial.task: trial for trial in plan.list_trials()}
    assert list(first) == list(plan.tasks)
    for trial in first.values():
        config = make_config(plan, trial, tmp_path)
        assert config["training"]["max_epochs"] > 0
        assert config["paths"]["encoder"] == plan.encoders[trial.encoder].path


def test_lewis_has_every_open_task_of_the_paper() -> None:
    plan = load("lewis-2020")
    tasks = {name: task for name, task in load_tasks().items() if "lewis-2020" in task.papers}
    assert set(plan.tasks) == {name for name, task in tasks.items() if task.access == "open"}
    assert set(tasks) <= {task for group in plan.groups.values() for task in group}


def test_rows_of_lewis_have_the_means_that_the_paper_prints() -> None:
    plan = load("lewis-2020")
    sequence, classes = plan.groups["Seq. lab."], plan.groups["Classif."]
    assert (len(sequence), len(classes)) == (11, 7)
    assert sorted(plan.groups["PubMed"] + plan.groups["Clinical"]) == sorted(sequence + classes)
    for model, printed in MEANS.items():
        rows = [row for row in plan.published if row.model == model]
        medians = {row.task: row.median for row in rows if row.median is not None}
        for tasks, mean in zip((sequence, classes, sequence + classes), printed, strict=True):
            found = 100 * statistics.fmean(medians[task] for task in tasks)
            assert found == pytest.approx(mean, abs=0.051)
    best = [row for row in plan.published if row.score is not None]
    assert len(best) == 2 * 18 and len(plan.published_means) == 8 + 5


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
    """Run a plan and write its tables."""
    for trial in plan.list_trials():  # in this process: a process for each takes seconds to start
        run_trial(plan, out, -1, 1, trial)
    results = read_results(out, plan.list_trials())
    assert [one["error"] for one in results] == [None] * len(results)
    assert {one["status"] for one in results} == {DONE}
    tables = write_report("small", out, plan, results, against=None)
    # The table of Lewis et al. leaves out tasks of which one fold was run: it chooses.
    shown = {cell for table in tables.values() for row in (table.head, *table.rows) for cell in row}
    tasks = [name for name, corpus in plan.tasks.items() if not corpus.joint]
    assert set(tasks) <= shown


def with_invented(plan: Plan, folder: Path) -> Plan:
    """Put invented corpora in the place of those of the catalogue."""
    tasks = {}
    for name, corpus in plan.tasks.items():
        if corpus.joint:
            tasks[name] = corpus
            continue
        setup = plan.find_setup(name)
        path = write_corpus(folder / name, setup.kind, graded=setup.graded)
        own = {"path": str(path), "lang": "es", "kind": setup.kind, "score": setup.score}
        own |= {"exclusive": setup.exclusive, "graded": setup.graded}
        tasks[name] = corpus.model_copy(update=own)
    settings = {**plan.settings, **FEW_UPDATES}
    return plan.model_copy(update={"tasks": tasks, "settings": settings})


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_small_plans_run_on_invented_corpora(name: str, tmp_path: Path) -> None:
    run_small(with_invented(load(name, small=True), tmp_path), tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_small_plans_run_on_the_real_corpora(
    name: str, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One seed with a tiny encoder: whether the corpora fit the plan is what counts here."""
    plan = load(name, small=True)
    known = load_tasks()
    folders = {known[task].folder for task in plan.tasks if task in known}
    missing = [folder for folder in sorted(folders) if not (data_dir / folder).is_dir()]
    if missing:
        pytest.skip(f"{data_dir} has no {', '.join(missing)}")
    monkeypatch.setenv("BIOCLIN_DATA", str(data_dir.resolve()))
    folder = tmp_path / "encoder"
    build_compact_encoder(TEXTS * 10, folder, layers=1, width=64, vocab_size=300, seed=0)
    encoders = {
        encoder: each.model_copy(update={"path": str(folder)})
        for encoder, each in plan.encoders.items()
    }
    fewer = {
        "encoders": encoders,
        "seeds": plan.seeds[:1],
        "settings": {**plan.settings, **FEW_UPDATES},
        "dev_notes": 4,
        "test_notes": 4,
    }
    run_small(plan.model_copy(update=fewer), tmp_path / "out")
