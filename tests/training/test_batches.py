"""Which task the next batch is from."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import spacy
from spacy.training import Example
from spacy.training.batchers import configure_minibatch

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.batches import count_turns, make_batch_by_task
from spacy_bioclin.types import TASK_KEY

SIZES = {"a": 12, "b": 3, "c": 1}  # examples; with batches of 2: 6, 2 and 1 batches


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    nlp = spacy.blank("es")
    found = []
    for task, size in SIZES.items():
        for i in range(size):
            doc = nlp.make_doc(f"{task}{i}")
            doc.user_data[TASK_KEY] = task
            found.append(Example(nlp.make_doc(doc.text), doc))
    return found


def draw(examples: list[Example], **settings: Any) -> Iterator[list[str]]:
    random.seed(0)
    batcher = make_batch_by_task(configure_minibatch(2), **settings)
    return ([eg.reference.text for eg in batch] for batch in batcher(examples))


def tasks_of(batch: list[str]) -> set[str]:
    return {text[0] for text in batch}


def test_proportional_has_every_example_once(examples: list[Example]) -> None:
    batches = list(draw(examples))
    assert len(batches) == 6 + 2 + 1
    assert all(len(tasks_of(batch)) == 1 for batch in batches)
    texts = [text for batch in batches for text in batch]
    assert sorted(texts) == sorted(eg.reference.text for eg in examples)
    order = [batch[0][0] for batch in batches]
    assert order != sorted(order)  # in random order


def test_round_robin_repeats_small_tasks(examples: list[Example]) -> None:
    batches = list(draw(examples, draw="round_robin"))
    assert [batch[0][0] for batch in batches] == ["a", "b", "c"] * 6
    texts = Counter(text for batch in batches for text in batch)
    assert all(texts[f"a{i}"] == 1 for i in range(12))
    assert [texts[f"b{i}"] for i in range(3)] == [3, 3, 3]
    assert texts["c0"] == 6
    small = [text for batch in batches for text in batch if text[0] == "b"]
    assert len({tuple(small[start : start + 3]) for start in (0, 3, 6)}) > 1  # shuffled each time


def test_a_task_with_more_turns(examples: list[Example]) -> None:
    settings: dict[str, Any] = {"draw": "round_robin", "turns": {"a": 3}}
    batches = list(draw(examples, **settings))
    assert [batch[0][0] for batch in batches] == ["a", "a", "a", "b", "c"] * 2
    texts = Counter(text for batch in batches for text in batch)
    assert all(texts[f"a{i}"] == 1 for i in range(12))
    rounds = list(draw(examples, **settings, step="round"))
    assert [Counter(text[0] for text in batch)["a"] for batch in rounds] == [6, 6]


def test_turns_of_an_unknown_task(examples: list[Example]) -> None:
    with pytest.raises(BioclinError, match=r"turns\.d: no such task; .*want one of a, b, c"):
        list(draw(examples, draw="round_robin", turns={"d": 2}))


def test_a_round_has_a_batch_of_each_task(examples: list[Example]) -> None:
    rounds = list(draw(examples, draw="round_robin", step="round"))
    assert len(rounds) == 6
    assert all(tasks_of(batch) == {"a", "b", "c"} for batch in rounds)
    assert sum(map(len, rounds)) == 12 + 9 + 6


def test_temperature(examples: list[Example]) -> None:
    for temperature, counts in (
        (1.0, {"a": 6, "b": 2, "c": 1}),
        # Shares √6, √2 and 1 of 9 batches: 4.53, 2.62, 1.85.
        (2.0, {"a": 5, "b": 3, "c": 2}),
        (1e9, {"a": 3, "b": 3, "c": 3}),
    ):
        batches = list(draw(examples, draw="temperature", temperature=temperature))
        assert Counter(batch[0][0] for batch in batches) == counts


def test_a_small_task_is_never_left_out() -> None:
    assert count_turns({"big": 1000, "small": 1}, "temperature", 1.0) == {"big": 1000, "small": 1}
    assert count_turns({"big": 999_000, "small": 1}, "temperature", 1.01)["small"] >= 1


def test_the_seed_decides(examples: list[Example]) -> None:
    for name in ("proportional", "temperature", "round_robin"):
        assert list(draw(examples, draw=name)) == list(draw(examples, draw=name))


def test_bad_settings() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"draw": "roundrobin"}, "draw = 'roundrobin': .*did you mean round_robin"),
        ({"step": "rounds"}, "step = 'rounds': .*did you mean round"),
        ({"temperature": 0.5}, "temperature = 0.5: want a number of 1 or more"),
        ({"temperature": float("nan")}, "temperature = nan"),
        ({"step": "round"}, 'set draw to "round_robin"'),
        ({"turns": {"a": 2}}, 'set draw to "round_robin"'),
        ({"turns": {"a": 0}, "draw": "round_robin"}, r"turns\.a = 0: want 1 or more"),
    ]
    for settings, message in rows:
        with pytest.raises(BioclinError, match=message):
            make_batch_by_task(configure_minibatch(2), **settings)


def test_examples_without_a_task() -> None:
    doc = spacy.blank("es").make_doc("a")
    with pytest.raises(BioclinError, match=r"has to be a spacy-bioclin.TaskCorpora.v1"):
        make_batch_by_task(configure_minibatch(2))([Example(doc, doc)])


def test_a_task_whose_examples_are_all_discarded(examples: list[Example]) -> None:
    with pytest.raises(BioclinError, match=r"discards all 12 examples.*discard_oversize"):
        make_batch_by_task(lambda _: [])(examples)


def test_a_task_may_have_a_batcher_of_its_own(examples: list[Example]) -> None:
    own = {"a": configure_minibatch(5), "c": configure_minibatch(7)}
    batches = list(draw(examples, draw="round_robin", batchers=own))
    # a has 5, 5 and 2 of its 12 examples; b goes on with 2 and 1 of its 3; c has its one
    sizes = [(batch[0][0], len(batch)) for batch in batches]
    rounds = [5, 2, 1], [5, 1, 1], [2, 2, 1]
    assert sizes == [pair for each in rounds for pair in zip("abc", each, strict=True)]
    with pytest.raises(BioclinError, match=r"batchers\.d: no such task; want one of a, b, c"):
        list(draw(examples, batchers={"d": configure_minibatch(2)}))
