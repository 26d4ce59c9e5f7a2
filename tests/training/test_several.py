"""Training on several tasks: what is learned, scored, written and resumed."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
import torch
from spacy.language import Language
from typer.testing import CliRunner

from spacy_bioclin.cli import app
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


@spacy.registry.callbacks("tests.kill_several.v1")
def make_kill(step: int) -> Any:
    def kill(nlp: Language, state: dict[str, Any]) -> None:
        assert isinstance(nlp, Language)
        if state["step"] == step:
            raise Killed

    return kill


@pytest.mark.parametrize(
    ("heads", "settings", "batcher"),
    [
        # Of spaCy's ner, because it draws random numbers during its updates.
        ({"signs": SPACY_NER, "drugs": make_ner("drugs")}, {}, {}),
        pytest.param(
            *(HEADS, {"corpora.train.balance": "dwa"}, {"draw": "round_robin", "step": "round"}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(HEADS, {"training.accumulate_gradient": 2}, {"draw": "temperature"}),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_resumed_run_equals_one_that_was_not_stopped(
    tiny_encoder: Path, tmp_path: Path, heads: Any, settings: Any, batcher: Any
) -> None:
    paths = write_two(tmp_path)
    layer = None if heads["signs"] is SPACY_NER else "signs"
    write_docs(make_docs(NOTES * 2, SIGNS, "SIGN", layer), Path(paths["signs"]))
    tasks: Tasks = {
        name: {"path": path, "heads": [name], "weight": 0.5} for name, path in paths.items()
    }
    settings = {**settings, "training.max_steps": 12, "training.dropout": 0.1}
    config = make_config(tiny_encoder, heads, tasks, settings, **batcher)
    run(config, tmp_path / "whole")
    kill = {"@callbacks": "tests.kill_several.v1", "step": 11}
    killed = make_config(
        tiny_encoder, heads, tasks, {**settings, "training.before_update": kill}, **batcher
    )
    with pytest.raises(Killed):
        run(killed, tmp_path / "killed")
    assert len(srsly.read_json(tmp_path / "killed" / "tasks.json")["evaluations"]) == 4
    run(config, tmp_path / "killed", resume=True)
    for name in (LAST, BEST):
        expected = weights(spacy.load(tmp_path / "whole" / name))
        found = weights(spacy.load(tmp_path / "killed" / name))
        assert expected.keys() == found.keys()
        assert all(torch.equal(tensor, found[key]) for key, tensor in expected.items()), name
    for name in ("tasks.json", "tasks.svg"):
        whole, resumed = ((tmp_path / run / name).read_text() for run in ("whole", "killed"))
        assert whole == resumed
    assert len(json.loads((tmp_path / "whole" / "tasks.json").read_text())["evaluations"]) == 5


def test_each_head_learns_from_its_own_corpus(
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
    nlp, printed = run(
        make_config(tiny_encoder, heads, tasks, {"training.max_steps": 30}), tmp_path / "out"
    )
    labels = {name: set(nlp.get_pipe(name).labels) for name in heads}  # type: ignore[attr-defined]
    assert labels == {"signs": {"SIGN"}, "drugs": {"DRUG"}, "length": {"LONG", "SHORT"}}
    last = srsly.read_json(tmp_path / "out" / "tasks.json")["evaluations"][-1]
    assert last["tasks"].keys() == heads.keys()
    assert all(set(row) == {"score", "p", "r", "f", "loss"} for row in last["tasks"].values())
    assert last["tasks"]["signs"]["score"] > 0.5
    assert all(row["loss"] is not None for row in last["tasks"].values())
    assert printed.count("at step") == 11
    doc = spacy.load(tmp_path / "out" / LAST)(NOTES[0])
    assert "signs" in doc.spans and set(doc.cats) == {"LONG", "SHORT"}


def test_scores_of_tasks(tiny_encoder: Path, tmp_path: Path, tasks: Tasks) -> None:
    """A task is scored on its own Docs: by hand from what the pipeline finds there."""
    formula = {"signs_spans_signs_f": 3.0, "tasks_min": 1.0, "signs_spans_signs_p": 0.0}
    settings = {"training.max_steps": 15, "training.eval_frequency": 15}
    config = make_config(tiny_encoder, HEADS, tasks, settings, weights=formula)
    nlp, printed = run(config, tmp_path / "out")
    found = {}
    for name, notes, words in (("signs", NOTES, SIGNS), ("drugs", DRUGS, DRUG)):
        docs = [nlp(note) for note in notes]
        spans = [span.text for doc in docs for span in doc.spans[name]]
        tp = sum(text in words for text in spans)
        n_gold = sum(token.text in words for doc in docs for token in doc)
        found[name] = 2 * tp / (len(spans) + n_gold)
    report = srsly.read_json(tmp_path / "out" / "tasks.json")
    last = report["evaluations"][-1]
    assert {name: row["score"] for name, row in last["tasks"].items()} == pytest.approx(found)
    assert last["score"] == pytest.approx(0.75 * found["signs"] + 0.25 * min(found.values()))
    performance = spacy.load(tmp_path / "out" / LAST).meta["performance"]
    assert performance["drugs_spans_drugs_f"] == pytest.approx(found["drugs"])
    assert performance["tasks_min"] == pytest.approx(min(found.values()))
    assert "ents_f" not in performance and "ENTS_F" not in printed
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


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ({"tasks_means": 1.0}, "tasks_means: there is no such score; did you mean tasks_mean"),
        ({"signs_spans_sign_f": 1.0}, "did you mean signs_spans_signs_f"),
        ({"drug_spans_drugs_f": 1.0}, "did you mean drugs_spans_drugs_f"),
        ({"ents_f": 1.0}, "no score of a task with a weight: set tasks_mean = 1.0"),
        ({"tasks_mean": 0.0}, "no score of a task with a weight"),
    ],
)
def test_names_of_scores_are_checked_first(
    tiny_encoder: Path, tmp_path: Path, tasks: Tasks, formula: Any, message: str
) -> None:
    config = make_config(tiny_encoder, HEADS, tasks, weights=formula)
    with pytest.raises(BioclinError, match=message):
        run(config, tmp_path / "out")
    assert not (tmp_path / "out" / LAST).exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"drugs": {"path": "signs"}}, r'drugs: no document of .* has doc.spans\["drugs"\]'),
        ({"drugs": {"metric": "ents_g"}}, "metric = 'ents_g': .* did you mean spans_drugs_f|want"),
        ({"drugs": {"heads": ["drugz"]}}, "'drugz', which is not in the pipeline; did you mean dr"),
        ({"drugs": {"heads": ["signs"]}}, r"\[components.drugs\] learns from no corpus"),
    ],
)
def test_tasks_that_do_not_fit(
    tiny_encoder: Path, tmp_path: Path, tasks: Tasks, changes: Any, message: str
) -> None:
    for name, values in changes.items():
        tasks[name] |= values
        if values.get("path"):
            tasks[name]["path"] = tasks[values["path"]]["path"]
    settings = {"initialize.components": {"drugs": {"labels": ["DRUG"]}}}
    with pytest.raises(BioclinError, match=message):
        run(make_config(tiny_encoder, HEADS, tasks, settings), tmp_path / "out")


def test_an_empty_corpus(tiny_encoder: Path, tmp_path: Path, tasks: Tasks) -> None:
    write_docs([], Path(tasks["drugs"]["path"]))
    with pytest.raises(BioclinError, match=r"drugs.spacy: holds no Docs"):
        run(make_config(tiny_encoder, HEADS, tasks), tmp_path / "out")


def test_labels_that_differ_only_in_case(tiny_encoder: Path, tmp_path: Path) -> None:
    paths = write_two(tmp_path)
    write_docs(make_docs(NOTES, {"Sin"}, "Sign", "signs"), Path(paths["drugs"]))
    tasks: Tasks = {name: {"path": path, "heads": ["signs"]} for name, path in paths.items()}
    with pytest.raises(BioclinError, match="SIGN from task signs and Sign from task drugs"):
        run(make_config(tiny_encoder, {"signs": HEADS["signs"]}, tasks), tmp_path / "out")


def test_two_heads_on_one_layer(tiny_encoder: Path, tmp_path: Path, tasks: Tasks) -> None:
    heads = {"signs": make_ner("signs"), "drugs": make_ner("signs")}
    tasks["drugs"]["path"] = tasks["signs"]["path"]
    with pytest.raises(BioclinError, match=r"and \[components.drugs\] both write doc.spans"):
        run(make_config(tiny_encoder, heads, tasks), tmp_path / "out")


def test_dev_with_other_tasks(tiny_encoder: Path, tmp_path: Path, tasks: Tasks) -> None:
    """Dev may have fewer tasks than train, and tasks of its own, for corpora to be only judged."""
    other = {"reader": {**tasks["signs"], "metric": "spans_signs_r"}}
    config = make_config(tiny_encoder, HEADS, tasks, {"corpora.dev.tasks": other})
    run(config, tmp_path / "out")
    last = srsly.read_json(tmp_path / "out" / "tasks.json")["evaluations"][-1]
    assert last["tasks"]["reader"]["loss"] is None
    assert last["tasks"]["reader"]["score"] == last["tasks"]["reader"]["r"]


def test_dev_without_tasks(tiny_encoder: Path, tmp_path: Path, tasks: Tasks) -> None:
    plain = {"@readers": "spacy-bioclin.Corpus.v1", "path": tasks["signs"]["path"], "max_tokens": 0}
    config = make_config(tiny_encoder, HEADS, tasks, {"corpora.dev": plain})
    with pytest.raises(BioclinError, match=r"so dev has to be a spacy-bioclin.TaskCorpora.v1 too"):
        run(config, tmp_path / "out")


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
    together = make_config(tiny_encoder, HEADS, tasks, epochs, draw="round_robin", step="round")
    assert count_updates(init_pipeline(together)) == alone["signs"]


def test_an_older_report_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text("{}")
    with pytest.raises(BioclinError, match=r"tasks\.json"):
        check_new(tmp_path, overwrite=False)
    check_new(tmp_path, overwrite=True)


def test_a_moved_corpus_can_be_resumed_and_another_cannot(
    tiny_encoder: Path, tmp_path: Path, tasks: Tasks
) -> None:
    run(make_config(tiny_encoder, HEADS, tasks), tmp_path / "out")
    moved = tmp_path / "moved.spacy"
    Path(tasks["signs"]["path"]).rename(moved)
    tasks["signs"]["path"] = str(moved)
    run(make_config(tiny_encoder, HEADS, tasks), tmp_path / "out", resume=True)
    write_docs(make_docs(NOTES[1:], SIGNS, "SIGN", "signs"), moved)
    with pytest.raises(BioclinError, match=r"corpora.*signs"):
        run(make_config(tiny_encoder, HEADS, tasks), tmp_path / "out", resume=True)


def test_command(tiny_encoder: Path, tmp_path: Path, tasks: Tasks) -> None:
    path = tmp_path / "several.cfg"
    make_config(tiny_encoder, HEADS, tasks, {"corpora.dev.tasks.signs.path": None}).to_disk(path)
    dev = tasks["signs"]["path"]
    arguments = ["train", str(path), "-o", str(tmp_path / "out"), "--corpora.dev.tasks.signs.path"]
    done = CliRunner().invoke(app, [*arguments, dev])
    assert done.exit_code == 0, done.output
    assert "at step" in done.output
    arguments = ["train", str(path), "-o", str(tmp_path / "new"), "--corpora.dev.tasks.sings.path"]
    wrong = CliRunner().invoke(app, [*arguments, dev])
    assert wrong.exit_code == 1
    assert "did you mean --corpora.dev.tasks.signs.path" in wrong.output.replace("\n", " ")


def test_a_silent_logger(tiny_encoder: Path, tmp_path: Path, tasks: Tasks) -> None:
    settings = {"training.logger.console_output": False}
    nlp = init_pipeline(make_config(tiny_encoder, HEADS, tasks, settings))
    out = io.StringIO()
    train(nlp, tmp_path / "out", stdout=out, stderr=out)
    assert out.getvalue() == ""
