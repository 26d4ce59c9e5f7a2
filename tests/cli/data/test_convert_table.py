"""`bioclin convert-table` as a user types it."""

from pathlib import Path

import pytest
from spacy.vocab import Vocab
from typer.testing import CliRunner, Result

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import read_docs


def convert(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["convert-table", *map(str, args)])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    path.write_text("text,kind,s\nDry cough.,lung,1\nChest pain.,heart|pain,2.5\nWell.,,-3\n")
    return path


def test_labels(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "corpus" / "train.spacy"
    args = [table, out, "--lang", "en", "--text", "text", "--label", "kind", "--separator", "|"]
    result = convert(*args, "--labels", "heart, lung,pain,skin")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stderr.splitlines() if line.strip()]
    assert lines[0][:4] == ["3", "texts", "written", "to"]
    first = lines.index(["Label", "Rows"]) + 2  # below the heading and its rule
    counts = {" ".join(line[:-1]): line[-1] for line in lines[first : first + 5]}
    assert counts == {"heart": "1", "lung": "1", "pain": "1", "skin": "0", "(without label)": "1"}
    assert "warning: no row has the label 'skin' of --labels" in result.stderr
    docs = list(read_docs(out, Vocab()))
    assert docs[1].cats == {"heart": 1.0, "lung": 0.0, "pain": 1.0, "skin": 0.0}

    again = convert(*args)
    assert again.exit_code == 1 and "exists already" in again.stderr
    assert convert(*args, "--overwrite").exit_code == 0
    assert list(next(read_docs(out, Vocab())).cats) == ["heart", "lung", "pain"]


def test_scores(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "train.spacy"
    result = convert(table, out, "--lang", "en", "--text", "text", "--score", "s", "--task", "x")
    assert result.exit_code == 0, result.output
    assert "scores from -3 to 2.5" in result.stderr
    assert [doc.cats["score"] for doc in read_docs(out, Vocab())] == [1.0, 2.5, -3.0]


def test_a_bad_row_leaves_the_output_as_it_was(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "train.spacy"
    out.write_text("older")
    args = [table, out, "--lang", "en", "--text", "text", "--label", "kind", "--overwrite"]
    result = convert(*args)
    assert result.exit_code == 1
    assert "line 4, column kind: empty; --skip-bad" in result.stderr
    assert out.read_text() == "older"
    result = convert(*args, "--skip-bad")
    assert result.exit_code == 0
    shown = " ".join(result.stderr.split())
    assert "skipped: " in shown and "1 rows skipped" in shown
    assert len(list(read_docs(out, Vocab()))) == 2


WRONG: list[tuple[list[str], str]] = [
    ([], "give either --label or --score"),
    (["--label", "kind", "--score", "s"], "give either --label or --score"),
    (["--label", "text"], "--label and --text are the same column 'text'"),
    (["--score", "s", "--separator", "|"], "--separator is for --label"),
    (["--score", "s", "--labels", "A"], "--labels is for --label"),
    (["--label", "kind", "--labels", "A,,B"], "--labels wants different names"),
    (["--label", "kind", "--labels", "A,A"], "--labels wants different names"),
    (["--label", "kind", "--separator", ""], "--separator wants what is between labels"),
    (["--label", "kin"], "no column 'kin'; did you mean kind? there are text, kind, s"),
    (["--label", "kind", "--lang", "zz"], "--lang is 'zz'"),
]


def test_options_that_do_not_fit(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.spacy"
    for options, message in WRONG:
        lang = [] if "--lang" in options else ["--lang", "en"]
        result = convert(table, out, "--text", "text", *lang, *options)
        assert result.exit_code == 1 and message in result.stderr, (options, result.output)
        assert not out.exists()
    assert convert(table, table, "--text", "text", "--lang", "en", "--label", "s").exit_code == 1
