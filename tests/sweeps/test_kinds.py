"""Trials of every kind of task, alone and together, of a few updates on invented corpora."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.published import METRICS
from spacy_bioclin.sweeps.plan import Plan, read_plan
from spacy_bioclin.sweeps.report import write_report
from spacy_bioclin.sweeps.results import DONE, read_results
from spacy_bioclin.sweeps.tasks import CONFIGS, HEADS, SCORES
from spacy_bioclin.sweeps.trial import make_config, run_trial
from tests.sweeps.invented import NOTES, write_corpus

ROOT = Path(__file__).parents[2]
TASKS: dict[str, dict[str, Any]] = {
    "spans": {},
    "positions": {"score": "blue_entities_f", "layer": "signs"},
    "links": {"kind": "relations"},
    "macro": {"kind": "relations", "score": "relations_macro_f"},
    "same": {"kind": "pairs"},
    "likeness": {"kind": "pairs", "graded": True},
    "one": {"kind": "texts", "score": "texts_positive_f", "classes": ["no", "yes"]},
    "many": {"kind": "texts", "score": "hoc_example_f", "exclusive": False},
}


@pytest.fixture
def make_plan(tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a plan with corpora for some of TASKS."""
    monkeypatch.chdir(ROOT)

    def make(*names: str, **changes: Any) -> Plan:
        tasks: dict[str, Any] = {}
        for name in names:
            entry = TASKS[name]
            options = {"graded": entry.get("graded", False), "layer": entry.get("layer", "ents")}
            folder = write_corpus(tmp_path / name, entry.get("kind", "entities"), **options)
            tasks[name] = {"path": str(folder), "lang": "es", **entry}
        values = {
            "tasks": {**tasks, **changes.pop("more", {})},
            "encoders": {"tiny": str(tiny_encoder)},
            "learn_rates": [1e-3],
            "seeds": [0],
            "failed_below": 0,
            "settings": {
                "components.transformer.model.window": 32,
                "training.max_steps": 2,
                "training.eval_frequency": 2,
            },
            **changes,
        }
        (tmp_path / "plan.yml").write_text(yaml.safe_dump(values, sort_keys=False), "utf-8")
        return read_plan(tmp_path / "plan.yml")

    return make


def run_all(plan: Plan, out: Path, *names: str) -> list[dict[str, Any]]:
    """Run the trials of some tasks; of all, if none is named."""
    trials = [one for one in plan.list_trials() if not names or one.task in names]
    for trial in trials:
        run_trial(plan, out, -1, 1, trial)
    results = read_results(out, trials)
    assert [(one["status"], one["error"]) for one in results] == [(DONE, None)] * len(results)
    return results


# Of spans, see test_trial.py.
NAMES = [name if name == "macro" else pytest.param(name, marks=pytest.mark.slow) for name in TASKS]


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_is_trained_and_scored_by_its_metric(
    make_plan: Any, tmp_path: Path, name: str
) -> None:
    plan = make_plan(name)
    [result] = run_all(plan, tmp_path / "out")
    setup = plan.find_setup(name)
    assert result["settings"]["score"] == setup.score
    assert result["settings"]["config"] == CONFIGS[setup.kind]
    if setup.score == "entities_strict_f":
        assert set(result["test"]) == {"value", "p", "r", "f", "per_doc"}
        assert len(result["test"]["per_doc"]) == len(NOTES)
    else:
        assert set(result["test"]) == {"value", "details"}
        assert result["test"]["details"]["docs"] == len(NOTES)
    assert -1 <= result["test"]["value"] <= 1
    tables = write_report("", tmp_path, plan, [result], against=None)
    shown = tables["lewis"].rows
    assert shown == [[name, f"{100 * result['test']['value']:.1f}"]]
    is_named = METRICS[setup.score].title in tables["lewis"].note
    assert is_named == (setup.score != "entities_strict_f")


def test_settings_follow_from_what_a_task_learns(make_plan: Any, tmp_path: Path) -> None:
    plan = make_plan("likeness", "one", "many", "positions")
    configs = {
        trial.task: make_config(plan, trial, tmp_path / trial.task) for trial in plan.list_trials()
    }
    pairs = configs["likeness"]
    assert pairs["components"]["pairs"]["objective"] == "regression"
    weights = pairs["training"]["score_weights"]
    assert (weights["pairs_pearson"], weights["pairs_acc"]) == (1.0, 0.0)
    assert configs["one"]["components"]["textcat"]["factory"] == "textcat"
    assert configs["many"]["components"]["textcat"]["factory"] == "textcat_multilabel"
    assert configs["positions"]["components"]["ner"]["spans_key"] == "signs"


def test_what_a_task_of_the_catalogue_needs_reaches_its_config(
    make_plan: Any, tmp_path: Path
) -> None:
    more = {"bc5cdr-cid": {}, "ddi2013": {}, "chemprot": {"score": "relations_macro_f"}}
    recipes = {"relations": "lewis-2020-cls", "entities": "lewis-2020-seq"}
    rates = {"entities": [1e-5], "relations": [2e-5]}
    plan = make_plan("spans", more=more, settings={}, recipe=recipes, learn_rates=rates)
    found = {t.task: make_config(plan, t, tmp_path) for t in plan.list_trials()}
    cid = found["bc5cdr-cid"]
    assert cid["components"]["relations"]["level"] == "concept"
    assert cid["components"]["relations"]["scope"] == "document"
    assert cid["corpora"]["train"]["max_tokens"] == 0  # though the recipe wants parts
    assert found["ddi2013"]["components"]["relations"]["symmetric"] == [
        *("mechanism", "effect", "advise", "int")
    ]
    assert plan.find_setup("chemprot").score == "relations_macro_f"
    assert found["spans"]["training"]["max_epochs"] == 20  # of lewis-2020-seq
    assert found["ddi2013"]["training"]["max_epochs"] == 10  # of lewis-2020-cls
    assert [trial.learn_rate for trial in plan.list_trials()] == [1e-5, 2e-5, 2e-5, 2e-5]


@pytest.mark.slow
def test_tasks_of_all_kinds_are_trained_together(make_plan: Any, tmp_path: Path) -> None:
    """One pipeline with a head for each task, whose scores stand beside those of single ones."""
    names = ["spans", "positions", "links", "same", "likeness", "one"]
    plan = make_plan(*names, more={"together": {"joint": names}})
    spans, together = results = run_all(plan, tmp_path / "out", "spans", "together")
    config = make_config(plan, plan.list_trials()[-1], tmp_path / "out" / "corpora" / "together")
    assert config["nlp"]["pipeline"] == ["sentences", "transformer", *names, "cleaner"]
    assert config["training"]["batcher"]["draw"] == "round_robin"
    for split in ("dev", "test"):
        scores = {name: together[split]["tasks"][name]["value"] for name in names}
        assert together[split]["value"] == pytest.approx(sum(scores.values()) / len(names))
    table = write_report("", tmp_path, plan, results, against=None)["mulyar"]
    assert [row[0] for row in table.rows] == names
    task, model, source, joint, single, difference = table.rows[0]
    assert (task, model, source) == ("spans", "tiny", "ours")
    assert joint == f"{100 * together['test']['tasks']['spans']['value']:.1f}"
    assert single == f"{100 * spans['test']['value']:.1f}"
    assert difference != "–" and table.rows[1][4:] == ["–", "–"]  # no trial of its own


@pytest.mark.slow
def test_classes_of_the_same_name_cannot_be_trained_together(
    make_plan: Any, tmp_path: Path
) -> None:
    plan = make_plan("one", "many", more={"together": {"joint": ["one", "many"]}})
    trial = plan.list_trials()[-1]
    run_trial(plan, tmp_path / "out", -1, 1, trial)
    [result] = read_results(tmp_path / "out", [trial])
    assert "both write doc.cats" in result["error"]


def test_mistakes_in_tasks(make_plan: Any) -> None:
    of_ones_own: list[tuple[dict[str, Any], str]] = [
        ({"score": "pairs_acc"}, r"score = 'pairs_acc': unknown; did you mean pairs_accuracy\?"),
        ({"score": "pairs_accuracy"}, "is one of pairs, and the task has entities"),
        ({"kind": "text"}, r"kind = 'text': did you mean texts\?"),
        ({"lang": "en-GB"}, "want a code such as es or en"),
    ]
    of_the_catalogue: list[tuple[dict[str, Any], str]] = [
        ({"two": {"joint": ["rqe", "rqe"]}}, "want two or more different tasks"),
        ({"two": {"joint": ["rqe", "gad"], "layer": "x"}}, "layer belongs to the entries of"),
        ({"two": {"joint": ["rqe", "two"]}}, "joint has 'two', which is joint itself"),
        ({"rqe": {"kind": "texts"}}, "kind = 'texts': the catalogue has pairs"),
        ({"nothing": {}}, "task 'nothing' is unknown"),
    ]
    mine = {"path": "corpus", "lang": "es"}
    rows = [({"mine": {**mine, **entry}}, message) for entry, message in of_ones_own]
    for tasks, message in [*rows, *of_the_catalogue]:
        with pytest.raises(BioclinError, match=message):
            plan = make_plan(more=tasks)
            plan.get_settings(plan.list_trials()[0])


def test_every_kind_has_a_config_a_head_and_a_score() -> None:
    assert set(CONFIGS) == set(HEADS) == set(SCORES)
    for kind, path in CONFIGS.items():
        assert f"[components.{HEADS[kind]}]" in (ROOT / path).read_text("utf-8")
        assert METRICS[SCORES[kind]].kind == kind
