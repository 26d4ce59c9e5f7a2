"""Which weights learn from a batch, and by how much."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from spacy.language import Language
from spacy.training import Example

from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.corpora.task_corpora import TaskCorpora, make_task_corpora
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.heads import TaskUpdates, find_heads, find_task_heads
from spacy_bioclin.training.initialize import init_pipeline
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
    write_two,
)

Gradients = dict[str, np.ndarray]
Pair = tuple[Language, TaskCorpora]
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture(scope="module")
def made(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A pipeline of two heads, without dropout, and its corpora: the same notes for both heads.

    Its weights must not be changed.
    """
    docs = make_docs(NOTES, SIGNS, "SIGN", "signs")
    for doc, other in zip(docs, make_docs(NOTES, {"Sufre", "Sin"}, "VERB", "verbs"), strict=True):
        doc.spans["verbs"] = [doc[s.start : s.end] for s in other.spans["verbs"]]
        for span in doc.spans["verbs"]:
            span.label_ = "VERB"
    path = tmp_path_factory.mktemp("heads") / "notes.spacy"
    write_docs(docs, path)
    tasks = {
        name: {"path": str(path), "heads": heads}
        for name, heads in (("both", ["signs", "verbs"]), ("one", ["signs"]), ("two", ["verbs"]))
    }
    settings = {
        "components.transformer.model.transformer_config": NO_DROPOUT,
        "components.signs.model.dropout": 0.0,
        "components.verbs.model.dropout": 0.0,
        "components.transformer.model.precision": "fp32",
    }
    heads = {"signs": make_ner("signs"), "verbs": make_ner("verbs")}
    nlp = init_pipeline(make_config(tiny_encoder, heads, tasks, settings))
    return nlp, make_task_corpora(tasks)


@pytest.fixture
def pair(made: Pair) -> Pair:
    """The same without gradients."""
    for pipe in ("transformer", "signs", "verbs"):
        gradients_of(made[0], pipe)
    return made


def make_updates(nlp: Language, corpus: TaskCorpora, frozen: Iterable[str] = ()) -> TaskUpdates:
    weights = {name: task.weight for name, task in corpus.tasks.items()}
    return TaskUpdates(nlp, find_task_heads(nlp, corpus.tasks, list(frozen)), lambda: weights)


def of_tasks(nlp: Language, corpus: TaskCorpora, *tasks: str) -> list[Example]:
    return [eg for eg in corpus.read(nlp) if eg.reference.user_data["bioclin_task"] in tasks]


def update(updates: TaskUpdates, examples: list[Example], exclude: Iterable[str] = ()) -> None:
    updates.update(
        examples, losses={}, exclude=exclude, drop=0.0, sgd=False, annotates=["sentences"]
    )


def weights_of(nlp: Language, pipe: str) -> Gradients:
    component: Any = nlp.get_pipe(pipe)
    found = {}
    for i, node in enumerate(component.model.walk()):
        for shim in node.shims:
            for name, weight in shim.module.named_parameters():
                found[f"{i}.{name}"] = weight.detach().clone().numpy()
        for name in node.param_names:
            found[f"{i}.{name}"] = np.array(node.get_param(name))
    return found


def gradients_of(nlp: Language, pipe: str) -> Gradients:
    """Gradients of a component's weights; they are cleared."""
    component: Any = nlp.get_pipe(pipe)
    found = {}
    for i, node in enumerate(component.model.walk()):
        for shim in node.shims:
            for name, weight in shim.module.named_parameters():
                if weight.grad is not None:
                    found[f"{i}.{name}"] = weight.grad.clone().numpy()
                    weight.grad = None
        for name in node.grad_names:
            found[f"{i}.{name}"] = np.array(node.get_grad(name))
            node.get_grad(name)[...] = 0
    return found


def test_the_gradient_of_the_encoder_is_the_sum_of_its_heads(pair: Pair) -> None:
    nlp, corpus = pair
    updates = make_updates(nlp, corpus)
    found = {}
    for task in ("both", "one", "two"):
        update(updates, of_tasks(nlp, corpus, task))
        found[task] = {pipe: gradients_of(nlp, pipe) for pipe in ("transformer", "signs", "verbs")}
    both, one, two = found["both"], found["one"], found["two"]
    assert np.abs(np.concatenate([g.ravel() for g in both["transformer"].values()])).max() > 1e-3
    for key, gradient in both["transformer"].items():
        parts = one["transformer"][key] + two["transformer"][key]
        np.testing.assert_allclose(gradient, parts, rtol=1e-4, atol=1e-7)
    # A head has the same gradient with another one beside it, and none from tasks of the other.
    assert one["verbs"] == {} and two["signs"] == {}
    for pipe, alone in (("signs", one), ("verbs", two)):
        for key, gradient in both[pipe].items():
            np.testing.assert_array_equal(gradient, alone[pipe][key])


def test_the_encoder_runs_once_for_each_task(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp, corpus = pair
    updates = make_updates(nlp, corpus)
    shim = nlp.get_pipe("transformer").model.shim  # type: ignore[attr-defined]
    begun = []
    begin = shim.begin_update
    counted = lambda inputs: (begun.append(inputs), begin(inputs))[1]  # noqa: E731
    monkeypatch.setattr(shim, "begin_update", counted)
    for tasks, times in ((["both"], 1), (["one"], 1), (["one", "two"], 2)):
        begun.clear()
        update(updates, of_tasks(nlp, corpus, *tasks))
        assert len(begun) == times
    begun.clear()
    update(updates, of_tasks(nlp, corpus, "one"), exclude=["signs"])
    assert begun == []  # nothing learns, so the encoder does not run


def test_what_a_task_excludes_does_not_move(tiny_encoder: Path, tmp_path: Path) -> None:
    """Not by weight decay, nor by the moments of earlier updates; in torch and in thinc."""
    paths = write_two(tmp_path)
    write_docs(add_cats(make_docs(NOTES, SIGNS, "SIGN", None)), tmp_path / "cats.spacy")
    textcat = {
        "factory": "textcat",
        "model": {
            "@architectures": "spacy.TextCatReduce.v1",
            "exclusive_classes": True,
            "use_reduce_first": False,
            "use_reduce_last": False,
            "use_reduce_max": False,
            "use_reduce_mean": True,
            "tok2vec": LISTENER,
        },
    }
    heads = {"signs": make_ner("signs"), "drugs": make_ner("drugs"), "textcat": textcat}
    paths["textcat"] = str(tmp_path / "cats.spacy")
    tasks: Any = {name: {"path": paths[name], "heads": [name]} for name in heads}
    config = make_config(tiny_encoder, heads, tasks)
    nlp = init_pipeline(config)
    optimizer = nlp.create_optimizer()
    corpus = make_task_corpora(tasks)
    updates = make_updates(nlp, corpus)
    before = {name: weights_of(nlp, name) for name in ("transformer", *heads)}
    for task in [*heads, *heads, "signs", "textcat", "drugs"]:
        updates.begin_batch(None, updates, {})
        update(updates, of_tasks(nlp, corpus, task))
        assert [name for name, _ in updates.pipeline] == ["transformer", task]
        for _, pipe in updates.pipeline:
            pipe.finish_update(optimizer)
        for name, old in before.items():
            now = weights_of(nlp, name)
            moved = any(not np.array_equal(now[key], weight) for key, weight in old.items())
            assert moved == (name in ("transformer", task)), (task, name)
            before[name] = now


def test_a_weight_scales_gradients(pair: Pair) -> None:
    weight = 0.3
    nlp, corpus = pair
    plain = make_updates(nlp, corpus)
    tasks = dict(corpus.tasks)
    tasks["one"] = tasks["one"].model_copy(update={"weight": weight})
    scaled = make_updates(
        nlp, TaskCorpora(tasks, max_tokens=0, balance="none", choice=corpus.choice)
    )
    update(plain, of_tasks(nlp, corpus, "one"))
    expected = gradients_of(nlp, "transformer"), gradients_of(nlp, "signs")
    update(scaled, of_tasks(nlp, corpus, "one"))
    found = gradients_of(nlp, "transformer"), gradients_of(nlp, "signs")
    for old, new in zip(expected, found, strict=True):
        assert old.keys() == new.keys()
        for key, gradient in old.items():
            np.testing.assert_allclose(new[key], np.float32(weight) * gradient, rtol=1e-6)
    # What was there before stays as it is.
    update(plain, of_tasks(nlp, corpus, "one"))
    update(scaled, of_tasks(nlp, corpus, "one"))
    for key, gradient in gradients_of(nlp, "transformer").items():
        np.testing.assert_allclose(gradient, (1 + weight) * expected[0][key], rtol=1e-4, atol=1e-7)


def test_frozen_heads_get_nothing(pair: Pair) -> None:
    """The last listener is frozen: the encoder still gets the gradient of the other head."""
    nlp, corpus = pair
    updates = make_updates(nlp, corpus)
    update(updates, of_tasks(nlp, corpus, "one"))
    expected = gradients_of(nlp, "transformer")
    gradients_of(nlp, "signs")
    update(updates, of_tasks(nlp, corpus, "both"), exclude=["verbs"])
    found = gradients_of(nlp, "transformer")
    assert gradients_of(nlp, "verbs") == {}
    for key, gradient in expected.items():
        np.testing.assert_array_equal(found[key], gradient)


def test_the_last_head_has_nothing_to_learn(tiny_encoder: Path, tmp_path: Path) -> None:
    """spaCy's ner stops before it reads the encoder if no example is annotated; the gradient of the
    other head has to reach the encoder all the same."""
    docs = [*make_docs(DRUGS, DRUG, "DRUG", None), *make_docs(NOTES, SIGNS, "SIGN", "signs")]
    write_docs(docs, tmp_path / "mixed.spacy")
    ner = {
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
    tasks: Any = {"mixed": {"path": str(tmp_path / "mixed.spacy"), "heads": ["signs", "ner"]}}
    config = make_config(tiny_encoder, {"signs": make_ner("signs"), "ner": ner}, tasks)
    nlp = init_pipeline(config)
    corpus = make_task_corpora(tasks)
    updates = make_updates(nlp, corpus)
    unannotated = [eg for eg in corpus.read(nlp) if not eg.reference.has_annotation("ENT_IOB")]
    assert len(unannotated) == len(NOTES)
    for _ in range(2):
        update(updates, unannotated)
        gradients = gradients_of(nlp, "transformer")
        assert max(np.abs(gradient).max() for gradient in gradients.values()) > 1e-4


def test_heads_are_what_learns_from_annotation(pair: Pair) -> None:
    nlp, _ = pair
    assert find_heads(nlp) == ["signs", "verbs"]
    every = make_task_corpora({"all": {"path": "x"}})
    assert find_task_heads(nlp, every.tasks, ["verbs"]) == {"all": {"signs"}}


def test_heads_that_do_not_fit(pair: Pair) -> None:
    nlp, _ = pair
    rows: list[tuple[list[str], list[str], str]] = [
        (["signs"], [], r"\[components.verbs\] learns from no corpus: put it into heads"),
        (["signs", "verb"], [], "'verb', which is not in the pipeline; did you mean verbs"),
        (["signs", "verbs"], ["verbs"], "'verbs', which is in .* frozen_components"),
        (["signs", "transformer"], ["verbs"], "'transformer', an encoder, which learns"),
        (["signs", "sentences"], ["verbs"], "'sentences', which learns nothing; want some of sig"),
    ]
    for heads, frozen, message in rows:
        corpus = make_task_corpora({"a": {"path": "x", "heads": heads}})
        with pytest.raises(BioclinError, match=message):
            find_task_heads(nlp, corpus.tasks, frozen)


def test_losses_are_means_over_batches(pair: Pair) -> None:
    nlp, corpus = pair
    updates = make_updates(nlp, corpus)
    for task in ("both", "one", "one", "two"):
        update(updates, of_tasks(nlp, corpus, task))
    losses = updates.take_losses()
    assert losses["both"] == pytest.approx(losses["one"] + losses["two"])
    assert updates.take_losses() == {}
    assert torch.is_grad_enabled()
