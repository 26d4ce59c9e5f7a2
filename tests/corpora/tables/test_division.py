"""Splits and folds by the SHA-256 of a key: the same wherever and whenever they are made."""

import hashlib

from spacy_bioclin.corpora.tables.division import (
    divide_shares,
    divide_tenths,
    get_key,
    is_in_tenth,
    leave_out_unlabeled,
)
from spacy_bioclin.corpora.texts import LabeledText

# The last decimal digit of the output of `printf a | sha256sum`, read as a hexadecimal number.
TENTHS = {"a": 9, "b": 5, "c": 8, "d": 0, "e": 0, "f": 7, "g": 7}


def make(*texts: str, labels: tuple[str, ...] = ("x",)) -> list[LabeledText]:
    return [LabeledText(f"{text}-{n}", (text,), labels, None) for n, text in enumerate(texts)]


def list_texts(splits: dict[str, list[LabeledText]]) -> dict[str, str]:
    return {split: "".join(row.texts[0] for row in rows) for split, rows in splits.items()}


def test_tenths_of_letters() -> None:
    for letter, tenth in TENTHS.items():
        assert [t for t in range(10) if is_in_tenth(letter, t)] == [tenth]


def test_keys() -> None:
    row = LabeledText("12-34-5", ("first", "second"), (), None)
    assert [get_key(row, by) for by in ("text", "id", "document")] == ["first", "12-34-5", "12-34"]


def test_dev_is_a_tenth_of_train() -> None:
    train, test = make("b", "a", "c", "b"), make("b", "z")
    found = list_texts(divide_tenths(train, test, by="text", dev_tenth=5))
    assert found == {"train": "ac", "dev": "bb", "test": "bz"}


def test_folds_are_tenths_of_all() -> None:
    train, test = make("a", "b", "c", "d"), make("e", "g")
    found = list_texts(divide_tenths(train, test, by="text", dev_tenth=9, fold="0"))
    assert found == {"train": "acg", "dev": "b", "test": "de"}  # dev is tenth 0 + 5
    found = list_texts(divide_tenths(train, test, by="text", dev_tenth=9, fold="5"))
    assert found == {"train": "acg", "dev": "de", "test": "b"}


def test_every_row_is_in_test_once() -> None:
    rows = make(*(f"text {n}" for n in range(200)))
    tests = [
        row
        for fold in range(10)
        for row in divide_tenths(rows, [], by="text", dev_tenth=0, fold=str(fold))["test"]
    ]
    assert sorted(tests) == sorted(rows)
    for fold in range(10):
        splits = divide_tenths(rows, [], by="text", dev_tenth=0, fold=str(fold))
        assert sorted(row for part in splits.values() for row in part) == sorted(rows)


def test_shares_of_documents() -> None:
    ids = ["p-0", "p-1", "q-0", "r-0", "r-1", "s-0"]
    rows = [LabeledText(id, (id,), (), None) for id in ids]
    ranked = sorted("pqrs", key=lambda key: hashlib.sha256(key.encode()).hexdigest())
    splits = divide_shares(rows, by="document", shares=[0.5, 0.25])
    found = {split: [row.id for row in part] for split, part in splits.items()}
    of = {letter: [id for id in ids if id[0] == letter] for letter in "pqrs"}
    assert found == {
        "train": of[ranked[0]] + of[ranked[1]],
        "dev": of[ranked[2]],
        "test": of[ranked[3]],
    }
    # Another fold has another order; the order of the rows does not matter.
    backwards = divide_shares(rows[::-1], by="document", shares=[0.5, 0.25])
    assert {row.id for row in backwards["test"]} == {row.id for row in splits["test"]}
    orders = {
        tuple(row.id for part in divided.values() for row in part)
        for divided in (
            divide_shares(rows, by="id", shares=[0.5, 0.25], fold=str(fold)) for fold in range(10)
        )
    }
    assert len(orders) == 10


def test_documents_without_labels() -> None:
    rows = [
        LabeledText("1-0", ("a",), (), None),
        LabeledText("1-1", ("b",), ("x",), None),
        LabeledText("2-0", ("c",), (), None),
    ]
    for by, kept in (("document", ["1-0", "1-1"]), ("id", ["1-1"])):
        assert [row.id for row in leave_out_unlabeled(rows, by=by)] == kept
