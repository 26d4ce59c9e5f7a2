"""Pairs of corpora that need an agreement, in files invented from their documentation."""

import json
from pathlib import Path
from typing import Any

import pytest

from spacy_bioclin.corpora.tables.agreement import read_mednli, read_sts
from spacy_bioclin.corpora.tables.formats import TABLE_FORMATS, read_texts
from spacy_bioclin.corpora.texts import LabeledText
from spacy_bioclin.errors import BioclinError
from tests.corpora.errors import error_of, is_wrong

PAIR = {
    "sentence1": "Temp of 39 .",
    "sentence2": "He has a fever",
    "gold_label": "entailment",
    "pairID": "0a-1",
    "sentence1_parse": "(ROOT)",
}
STS = "Take 1 tablet daily.\t Take one pill.\t3.5 \nNo pain.\tWalks well.\t0\n"


def write_pairs(path: Path, *pairs: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), "utf-8")
    return path


def test_mednli(tmp_path: Path) -> None:
    path = write_pairs(
        tmp_path / "mli_dev_v1.jsonl",
        PAIR,
        {**PAIR, "gold_label": "neutral", "pairID": ""},
        {key: value for key, value in PAIR.items() if key != "pairID"},
    )
    assert read_mednli(path) == [
        LabeledText("0a-1", ("Temp of 39 .", "He has a fever"), ("entailment",), None),
        LabeledText("mli_dev_v1-1", ("Temp of 39 .", "He has a fever"), ("neutral",), None),
        LabeledText("mli_dev_v1-2", ("Temp of 39 .", "He has a fever"), ("entailment",), None),
    ]


def test_malformed_mednli(tmp_path: Path) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"gold_label": "-"}, "line 2: gold_label is not one of contradiction, entailment, neut"),
        ({"gold_label": None}, "line 2: gold_label is not one of"),
        ({"sentence2": 7}, "line 2: sentence1 or sentence2 is not a string"),
        ({"sentence2": ...}, "line 2: no column 'sentence2'"),
    ]
    wrong: list[object] = []
    for values, message in rows:
        bad = {key: value for key, value in {**PAIR, **values}.items() if value is not ...}
        found = error_of(read_mednli, write_pairs(tmp_path / "x.jsonl", PAIR, bad))
        if is_wrong(found, f"x.jsonl.*{message}", "fever"):
            wrong.append((values, found))
    assert not wrong


@pytest.mark.parametrize("format", ["medsts", "n2c2-sts"])
def test_scores_beside_the_sentences(tmp_path: Path, format: str) -> None:
    path = tmp_path / "x.train.txt"
    path.write_text("\ufeff" + STS.replace("\n", "\r\n"), "utf-8")
    assert read_sts(path) == [
        LabeledText("x.train-0", ("Take 1 tablet daily.", "Take one pill."), (), 3.5),
        LabeledText("x.train-1", ("No pain.", "Walks well."), (), 0.0),
    ]
    rows, n_empty = read_texts(format, [tmp_path])
    assert (len(rows), n_empty) == (2, 0)


@pytest.mark.parametrize("end", [".gs.sim.txt", ".labels.txt"])
def test_scores_in_a_file_of_their_own(tmp_path: Path, end: str) -> None:
    path = tmp_path / "x.test.txt"
    path.write_text("a\tb\nc\td\n", "utf-8")
    with pytest.raises(BioclinError, match=r"neither x\.test\.gs\.sim\.txt nor x\.test\.labels"):
        read_sts(path)
    (tmp_path / f"x.test{end}").write_text("4.5\n0\n", "utf-8")
    assert [row.score for row in read_sts(path)] == [4.5, 0.0]
    rows, _ = read_texts("n2c2-sts", [tmp_path])  # the folder also has the scores
    assert [row.id for row in rows] == ["x.test-0", "x.test-1"]
    (tmp_path / f"x.test{end}").write_text("4.5\n", "utf-8")
    with pytest.raises(BioclinError, match=r"has 1 scores, but x\.test\.txt has 2 pairs"):
        read_sts(path)


def test_malformed_scores(tmp_path: Path) -> None:
    rows = [
        ("a\tb\tc\t1", "line 3: want two sentences and a score.*found 4 columns"),
        ("a\tb", "line 3: want two sentences and a score.*found 2 columns"),
        ("Walks well", "found 1 columns"),
        ("a\tb\t5.1", "line 3: the score is not a number from 0 to 5"),
        ("a\tb\tnan", "line 3: the score is not a number"),
        ("a\tb\t1_0", "line 3: the score is not a number"),
        ("a\tb\tWalks", "line 3: the score is not a number"),
    ]
    wrong: list[object] = []
    for line, message in rows:
        (tmp_path / "x.tsv").write_text(STS + line + "\n", "utf-8")
        found = error_of(read_sts, tmp_path / "x.tsv")
        if is_wrong(found, f"x.tsv.*{message}", "Walks"):
            wrong.append((line, found))
    assert not wrong


def test_formats() -> None:
    assert {"mednli", "medsts", "n2c2-sts"} <= set(TABLE_FORMATS)
    assert TABLE_FORMATS["mednli"].suffixes == (".jsonl",)
