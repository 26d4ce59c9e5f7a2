"""`bioclin overlap` as a user types it, and on the cases that five Spanish corpora annotate."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab
from typer.testing import CliRunner, Result

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import read_docs, write_docs
from spacy_bioclin.corpora.overlap.docs import find_overlaps
from spacy_bioclin.corpora.overlap.lists import read_id_list
from spacy_bioclin.corpora.readers import make_corpus
from spacy_bioclin.errors import BioclinWarning
from spacy_bioclin.types import GOLD_KEY
from tests.corpora.overlap.test_docs import SECRET, get_nlp, write_cases


def overlap(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["overlap", *map(str, args)])


def test_the_list_makes_a_corpus_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train = write_cases(Path("train.spacy"), range(6))
    more = write_cases(Path("more.spacy"), (7, 8))
    test = write_cases(Path("test.spacy"), (4, 7))
    other = write_cases(Path("other.spacy"), (1, 4))
    listed = Path("list.txt")
    arguments = [train, more, "--held-out", test, "--held-out", other, "-o", listed]
    result = overlap(*arguments)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines() if "spacy" in line]
    assert rows == [
        ["train.spacy", "6", "test.spacy", "1"],
        ["train.spacy", "6", "other.spacy", "2"],
        ["more.spacy", "2", "test.spacy", "1"],
        ["more.spacy", "2", "other.spacy", "0"],
    ]
    assert "3 ids of documents" in result.stdout and SECRET not in result.output
    assert read_id_list(listed) == {"case-1", "case-4", "case-7"}
    with pytest.warns(BioclinWarning, match="2 of 6 documents"):
        left = [eg.reference for eg in make_corpus(train, leave_out=listed)(get_nlp())]
    write_docs(left, tmp_path / "left.spacy")
    assert not any(
        find_overlaps([tmp_path / "left.spacy"], [test, other])[
            tmp_path / "left.spacy"
        ].ids.values()
    )
    again = overlap(*arguments)
    assert again.exit_code == 1 and "exists already" in again.stderr
    assert overlap(*arguments, "--overwrite").exit_code == 0
    assert "is the input" in overlap(train, "--held-out", test, "-o", train).stderr


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    train = write_cases(tmp_path / "train.spacy", range(2))
    (tmp_path / "note.spacy").write_text(f"{SECRET} ingresa")
    for arguments, message in (
        ([train, "--held-out", tmp_path / "no.spacy"], "no such file or folder"),
        ([tmp_path / "no.spacy", "--held-out", train], "no such file or folder"),
        ([train, "--held-out", tmp_path / "note.spacy"], "not a DocBin file"),
        ([train], "--held-out"),
    ):
        result = overlap(*arguments)
        assert result.exit_code and message in result.stderr and SECRET not in result.stderr
    plain = [get_nlp()(doc.text) for doc in read_docs(train, Vocab())]
    write_docs(plain, tmp_path / "plain.spacy")
    listed = tmp_path / "list.txt"
    result = overlap(tmp_path / "plain.spacy", "--held-out", train, "-o", listed)
    assert result.exit_code == 1 and "without an id cannot be listed" in result.stderr
    assert not listed.exists()


@pytest.mark.corpora
@pytest.mark.slow
def test_the_cases_of_five_corpora(data_dir: Path, tmp_path: Path) -> None:
    """The same overlaps as in the table of the splits, found by text alone: 419 of the 1,000 cases
    are in no test split."""
    with (data_dir / "spaccc-case-splits.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    folders = {"pharmaconer": "pharmaconer", "meddocan": "meddocan", "temist": "distemist"}
    cases = {}
    for corpus, folder in folders.items():
        splits = defaultdict(list)
        for row in rows:
            splits[row[f"{corpus}_split"]].append(row["case_id"])
        for split in ("train", "dev", "test"):
            docs = []
            for id in splits[split]:
                text = data_dir / folder / split / "brat" / f"{id}.txt"
                # A Doc of one token has the same text, and is made at once.
                doc = Doc(Vocab(), words=[text.read_bytes().decode("utf-8")], spaces=[False])
                doc.user_data[GOLD_KEY] = {"id": id, "task": "", "layers": {}}
                docs.append(doc)
            if docs:
                cases[corpus, split] = tmp_path / f"{corpus}-{split}.spacy"
                write_docs(docs, cases[corpus, split])
    trained = [path for (_, split), path in cases.items() if split != "test"]
    tests = [path for (_, split), path in cases.items() if split == "test"]
    found = find_overlaps(trained, tests)
    for (corpus, split), path in cases.items():
        for other in folders if split != "test" else ():
            expected = [
                row["case_id"]
                for row in rows
                if row[f"{corpus}_split"] == split and row[f"{other}_split"] == "test"
            ]
            assert found[path].ids[cases[other, "test"]] == expected
    listed = {id for overlap in found.values() for ids in overlap.ids.values() for id in ids}
    in_all = sum(all(row[f"{corpus}_split"] == "test" for corpus in folders) for row in rows)
    assert len(rows) - len(listed) - in_all == 419
