"""Training on several tasks: what is learned, scored, written and resumed."""

import io
import shutil
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
import torch
from spacy.language import Language

from spacy_bioclin.cli.train.overrides import read_config
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.epochs import count_updates, set_updates
from spacy_bioclin.training.initialize import init_pipeline
from spacy_bioclin.training.loop import BEST, LAST, check_new, train
from spacy_bioclin.training.several import average_weights
from spacy_bioclin.training.task_report import describe_evaluations
from tests.training.several import (
    DRUG,
    DRUGS,
    LISTENER,
    NOTES,
    SIGNS,
    add_cats,
    make_config,
    make_docs,
    make_ner,
    run,
    write_two,
)

SPACY_NER = {
    "factory": "ner",
    "model": {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "ner",
        "extra_state_tokens": False,
        "hidden_width": 8,
        "maxout_pieces": 2,
        "use_upper": False,
        "nO": None,
        "tok2vec": LISTENER,
    },
}
SPANCAT = {
    "factory": "spancat",
    "spans_key": "drugs",
    "threshold": 0.5,
    "max_positive": None,
    "suggester": {"@misc": "spacy.ngram_suggester.v1", "sizes": [1]},
    "model": {
        "@architectures": "spacy.SpanCategorizer.v1",
        "reducer": {"@layers": "spacy.mean_max_reducer.v1", "hidden_size": 8},
        "scorer": {"@layers": "spacy.LinearLogistic.v1", "nO": None, "nI": None},
        "tok2vec": LISTENER,
    },
}
TEXTCAT = {
    "factory": "textcat_multilabel",
    "model": {
        "@architectures": "spacy.TextCatReduce.v1",
        "exclusive_classes": False,
        "use_reduce_first": False,
        "use_reduce_last": False,
        "use_reduce_max": False,
        "use_reduce_mean": True,
        "tok2vec": LISTENER,
    },
}
Tasks = dict[str, dict[str, Any]]


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    return {name: {"path": path, "heads": [name]} for name, path in write_two(tmp_path).items()}


HEADS = {"signs": make_ner("signs"), "drugs": make_ner("drugs")}


def weights(nlp: Language) -> dict[str, torch.Tensor]:
    found = {}
    for pipe, component in nlp.components:
        model: Any = getattr(component, "model", None)
        for i, node in enumerate(model.walk() if hasattr(model, "walk") else ()):
            for shim in node.shims:
                for name, tensor in shim.module.state_dict().items():
                    found[f"{pipe}.{i}.{name}"] = tensor
            for name in node.param_names:
                found[f"{pipe}.{i}.{name}"] = torch.from_numpy(node.get_param(name).copy())
    return found


class Killed(BaseException):
    pass


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a callback, to be put before updates, that ends the run before an update."""

    def make_kill(step: int) -> Any:
        def before_update(nlp: Language, state: dict[str, Any]) -> None:
            assert isinstance(nlp, Language)
            if state["step"] == step:
                raise Killed

        return before_update

    spacy.registry.callbacks("tests.kill_several.v1", func=make_kill)
    return "tests.kill_several.v1"


# Heads (spaCy's ner draws random numbers during its updates), other settings, those of the batcher,
# how many updates there are, and before which one the run is killed.
RESUMED: list[Any] = [
    ({"signs": SPACY_NER, "drugs": make_ner("drugs")}, {}, {}, 2, 1),
    pytest.param(
        *(HEADS, {"corpora.train.balance": "dwa"}, {"draw": "round_robin", "step": "round"}, 4, 3),
        marks=pytest.mark.slow,
    ),
    pytest.param(
        *(HEADS, {"training.accumulate_gradient": 2}, {"draw": "temperature"}, 6, 5),
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("heads", "settings", "batcher", "steps", "kill_at"), RESUMED)
def test_a_resumed_run_equals_one_that_was_not_stopped(
    tiny_encoder: Path,
    tmp_path: Path,
    kill: str,
    heads: Any,
    settings: Any,
    batcher: Any,
    steps: int,
    kill_at: int,
) -> None:
    paths = write_two(tmp_path)
    layer = None if heads["signs"] is SPACY_NER else "signs"
    write_docs(make_docs(NOTES * 2, SIGNS, "SIGN", layer), Path(paths["signs"]))
    tasks: Tasks = {
        name: {"path": path, "heads": [name], "weight": 0.5} for name, path in paths.items()
    }
    settings = {
        **settings,
        "training.max_steps": steps,
        "training.eval_frequency": 2,
        "training.dropout": 0.1,
        "training.logger.console_output": False,
    }
    config = make_config(tiny_encoder, heads, tasks, settings, **batcher)
    assert run(config, tmp_path / "whole")[1] == ""  # a silent logger
    before = {"training.before_update": {"@callbacks": kill, "step": kill_at}}
    killed = make_config(tiny_encoder, heads, tasks, {**settings, **before}, **batcher)
    with pytest.raises(Killed):
        run(killed, tmp_path / "killed")
    assert len(srsly.read_json(tmp_path / "killed" / "tasks.json")["evaluations"]) == steps // 2
    run(config, tmp_path / "killed", resume=True)
    for name in (LAST, BEST):
        expected = weights(spacy.load(tmp_path / "whole" / name))
        found = weights(spacy.load(tmp_path / "killed" / name))
        assert expected.keys() == found.keys()
        assert all(torch.equal(tensor, found[key]) for key, tensor in expected.items()), name
    for name in ("tasks.json", "tasks.svg"):
        whole, resumed = ((tmp_path / run / name).read_text() for run in ("whole", "killed"))
        assert whole == resumed
    assert len(srsly.read_json(tmp_path / "whole" / "tasks.json")["evaluations"]) == steps // 2 + 1


def find_f(nlp: Language, layer: str, notes: list[str], words: set[str]) -> float:
    """F1 of what the pipeline finds in notes, by hand."""
    docs = [nlp(note) for note in notes]
    spans = [span.text for doc in docs for span in doc.spans[layer]]
    n_gold = sum(token.text in words for doc in docs for token in doc)
    return 2 * sum(text in words for text in spans) / (len(spans) + n_gold)


def test_each_head_learns_and_is_scored_on_its_own_corpus(
    tiny_encoder: Path, tmp_path: Path, tasks: Tasks
) -> None:
    """Also where the other corpus has the same layer with other labels."""
    docs = make_docs(DRUGS, DRUG, "DRUG", "drugs")
    for doc, other in zip(docs, make_docs(DRUGS, {"Se", "Con"}, "OTHER", "signs"), strict=True):
        doc.spans["signs"] = [doc[s.start : s.end] for s in other.spans["signs"]]
        for span in doc.spans["signs"]:
            span.label_ = "OTHER"
        doc.cats = {"NOT_LEARNED": 1.0}
    write_docs(docs, Path(tasks["drugs"]["path"]))
    cats = tmp_path / "cats.spacy"
    write_docs(add_cats(make_docs([*NOTES, *DRUGS], set(), "X", None)), cats)
    tasks["length"] = {"path": str(cats), "heads": ["length"]}
    heads = {"signs": make_ner("signs", nested=True), "drugs": SPANCAT, "length": TEXTCAT}
    formula = {"signs_spans_signs_f": 3.0, "tasks_min": 1.0, "signs_spans_signs_p": 0.0}
    settings = {
        "training.max_steps": 16,
        "training.eval_frequency": 8,
        "training.optimizer.learn_rate": 0.005,
    }
    config = make_config(tiny_encoder, heads, tasks, settings, weights=formula)
    nlp, printed = run(config, tmp_path / "out")
    labels = {name: set(nlp.get_pipe(name).labels) for name in heads}  # type: ignore[attr-defined]
    assert labels == {"signs": {"SIGN"}, "drugs": {"DRUG"}, "length": {"LONG", "SHORT"}}
    assert printed.count("at step") == 3 and "ENTS_F" not in printed
    last = srsly.read_json(tmp_path / "out" / "tasks.json")["evaluations"][-1]
    assert last["tasks"].keys() == heads.keys()
    assert all(set(row) == {"score", "p", "r", "f", "loss"} for row in last["tasks"].values())
    assert all(row["loss"] is not None for row in last["tasks"].values())
    scores = {name: row["score"] for name, row in last["tasks"].items()}
    by_hand = {
        "signs": find_f(nlp, "signs", NOTES, SIGNS),
        "drugs": find_f(nlp, "drugs", DRUGS, DRUG),
    }
    assert by_hand["signs"] > 0.5
    assert {name: scores[name] for name in by_hand} == pytest.approx(by_hand)
    # spaCy rounds the shares of the scores.
    score = 0.75 * scores["signs"] + 0.25 * min(scores.values())
    assert last["score"] == pytest.approx(score, abs=2e-3)
    trained = spacy.load(tmp_path / "out" / LAST)
    doc = trained(NOTES[0])
    assert "signs" in doc.spans and set(doc.cats) == {"LONG", "SHORT"}
    performance = trained.meta["performance"]
    assert performance["drugs_spans_drugs_f"] == pytest.approx(by_hand["drugs"])
    assert performance["tasks_min"] == pytest.approx(min(scores.values()))
    assert "ents_f" not in performance
    curves = (tmp_path / "out" / "tasks.svg").read_text()
    assert "signs" in curves and "drugs" in curves


def test_the_best_of_each_task_is_the_earliest() -> None:
    def make(score: float, a: float, b: float) -> tuple[float, dict[str, Any]]:
        return score, {"tasks": {"a": {"score": a, "loss": 1.0}, "b": {"score": b, "loss": None}}}

    report = describe_evaluations([make(0.1, 0, 0.2), make(0.4, 0.5, 0.3), make(0.4, 0.5, 0.1)], 20)
    assert report["best"] == {"a": {"score": 0.5, "step": 20}, "b": {"score": 0.3, "step": 20}}


def test_dynamic_weight_average() -> None:
    """By hand: rates 0.5 and 1.0, over T = 2: e^0.25 = 1.2840, e^0.5 = 1.6487."""
    first, second = {"a": 4.0, "b": 2.0}, {"a": 2.0, "b": 2.0}
    one = {"a": 1.0, "b": 1.0}
    assert average_weights("ab", []) == one
    assert average_weights("ab", [{"a": 9.0}, first]) == one
    found = average_weights("ab", [{"a": 9.0}, first, second])
    assert found == pytest.approx({"a": 2 * 1.2840 / 2.9327, "b": 2 * 1.6487 / 2.9327}, abs=1e-4)
    # A task without a batch in an interval keeps its last rate.
    assert average_weights("ab", [{}, first, second, {"b": 2.0}]) == pytest.approx(found)


def test_names_of_scores_are_checked_first(
    tiny_encoder: Path, tmp_path: Path, tasks: Tasks
) -> None:
    nlp = init_pipeline(make_config(tiny_encoder, HEADS, tasks))
    for formula, message in (
        ({"tasks_means": 1.0}, "tasks_means: .*did you mean tasks_mean"),
        ({"signs_spans_sign_f": 1.0}, "did you mean signs_spans_signs_f"),
        ({"drug_spans_drugs_f": 1.0}, "did you mean drugs_spans_drugs_f"),
        ({"ents_f": 1.0}, "no score of a task with a weight: set tasks_mean = 1.0"),
        ({"tasks_mean": 0.0}, "no score of a task with a weight"),
    ):
        nlp.config["training"]["score_weights"] = formula
        with pytest.raises(BioclinError, match=message):
            train(nlp, tmp_path / "out", stdout=io.StringIO(), stderr=io.StringIO())
    assert not (tmp_path / "out" / LAST).exists()


def test_tasks_that_do_not_fit(tiny_encoder: Path, tmp_path: Path, tasks: Tasks) -> None:
    signs, drugs = tasks["signs"]["path"], tasks["drugs"]["path"]
    empty, case = str(tmp_path / "empty.spacy"), str(tmp_path / "case.spacy")
    write_docs([], Path(empty))
    write_docs(make_docs(NOTES, {"Sin"}, "Sign", "signs"), Path(case))
    plain = {"@readers": "spacy-bioclin.Corpus.v1", "path": signs, "max_tokens": 0}
    alone = {"signs": HEADS["signs"]}
    same_layer = {**HEADS, "drugs": make_ner("signs")}
    given = {"initialize.components": {"drugs": {"labels": ["DRUG"]}}}
    rows: list[tuple[Any, dict[str, Any], dict[str, Any], str]] = [
        (HEADS, {"path": signs}, given, r'drugs: no document of .* has doc.spans\["drugs"\]'),
        (HEADS, {"metric": "ents_g"}, given, "metric = 'ents_g': .*want one of .*spans_drugs_f"),
        (HEADS, {"heads": ["drugz"]}, given, "'drugz', .*did you mean drugs"),
        (HEADS, {"heads": ["signs"]}, given, r"\[components.drugs\] learns from no corpus"),
        (HEADS, {"path": empty}, {}, r"empty.spacy: holds no Docs"),
        (alone, {"path": case, "heads": ["signs"]}, {}, "SIGN from task signs and Sign from "),
        (same_layer, {"path": signs}, {}, r"\[components.drugs\] both write doc.spans"),
        (HEADS, {"path": drugs}, {"corpora.dev": plain}, "spacy-bioclin.TaskCorpora.v1 too"),
    ]
    for heads, changes, settings, message in rows:
        changed = {**tasks, "drugs": {**tasks["drugs"], **changes}}
        with pytest.raises(BioclinError, match=message):
            run(make_config(tiny_encoder, heads, changed, settings), tmp_path / "out")


def test_a_finished_run_on_other_tasks(tiny_encoder: Path, tmp_path: Path, tasks: Tasks) -> None:
    """Dev may have fewer tasks than train, and tasks of its own, for corpora to be only judged.

    A moved corpus can be resumed, and another one cannot.
    """
    dev = {"reader": {**tasks["signs"], "metric": "spans_signs_r"}}

    def make() -> Any:
        settings = {"training.max_steps": 1, "corpora.dev.tasks": dev}
        return make_config(tiny_encoder, HEADS, tasks, settings)

    run(make(), tmp_path / "out")
    last = srsly.read_json(tmp_path / "out" / "tasks.json")["evaluations"][-1]
    assert list(last["tasks"]) == ["reader"]
    assert last["tasks"]["reader"]["loss"] is None
    assert last["tasks"]["reader"]["score"] == last["tasks"]["reader"]["r"]
    moved = tmp_path / "moved.spacy"
    shutil.move(tasks["signs"]["path"], moved)
    tasks["signs"]["path"] = dev["reader"]["path"] = str(moved)
    run(make(), tmp_path / "out", resume=True)
    write_docs(make_docs(NOTES[1:], SIGNS, "SIGN", "signs"), moved)
    with pytest.raises(BioclinError, match=r"corpora.*signs"):
        run(make(), tmp_path / "out", resume=True)


def test_updates_of_epochs(tiny_encoder: Path, tasks: Tasks) -> None:
    """Updates of an epoch are the sum over the tasks; of rounds, those of the largest task."""
    epochs = {"training.max_steps": 0, "training.max_epochs": 3, "training.eval_frequency": 0}
    alone = {
        task: count_updates(init_pipeline(make_config(tiny_encoder, {task: HEADS[task]}, own)))
        for task, own in ((task, {task: tasks[task]}) for task in tasks)
    }
    assert alone["signs"] > alone["drugs"] > 0
    nlp = init_pipeline(make_config(tiny_encoder, HEADS, tasks, epochs))
    assert count_updates(nlp) == sum(alone.values())
    assert set_updates(nlp) == sum(alone.values())
    assert nlp.config["training"]["max_steps"] == 3 * sum(alone.values())
    assert nlp.config["training"]["eval_frequency"] == sum(alone.values())
    nlp.config["training"].update({"max_steps": 1, "eval_frequency": 0})
    set_updates(nlp)
    assert nlp.config["training"]["eval_frequency"] == 1  # and not after training has ended
    together = make_config(tiny_encoder, HEADS, tasks, epochs, draw="round_robin", step="round")
    assert count_updates(init_pipeline(together)) == alone["signs"]


def test_an_older_report_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text("{}")
    with pytest.raises(BioclinError, match=r"tasks\.json"):
        check_new(tmp_path, overwrite=False)
    check_new(tmp_path, overwrite=True)


def test_tasks_are_set_on_the_command_line(
    tiny_encoder: Path, tmp_path: Path, tasks: Tasks
) -> None:
    path = tmp_path / "several.cfg"
    settings = {"corpora.dev.tasks.signs.path": None}
    make_config(tiny_encoder, HEADS, tasks, settings).to_disk(path)
    config, _ = read_config(path, ["--corpora.dev.tasks.signs.path", "other.spacy"])
    assert config["corpora"]["dev"]["tasks"]["signs"]["path"] == "other.spacy"
    with pytest.raises(BioclinError, match=r"did you mean --corpora\.dev\.tasks\.signs\.path"):
        read_config(path, ["--corpora.dev.tasks.sings.path", "other.spacy"])
