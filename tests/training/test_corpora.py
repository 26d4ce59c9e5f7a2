"""The corpora of the catalogue's tasks, converted split by split and fold by fold."""

from pathlib import Path

import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_bioclin.annotations.pairs import SCORE, split_pair
from spacy_bioclin.catalog.tasks import SPLITS, find_task
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.corpora import convert_task, divide_texts
from spacy_bioclin.types import GOLD_KEY


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of corpora."""
    monkeypatch.setenv("BIOCLIN_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")


def convert(name: str, folder: Path, fold: str = "") -> dict[str, list[Doc]]:
    convert_task(name, find_task(name), folder, fold)
    return {split: list(read_docs(folder / f"{split}.spacy", Vocab())) for split in SPLITS}


def list_ids(docs: dict[str, list[Doc]]) -> dict[str, list[str]]:
    return {
        split: [doc.user_data[GOLD_KEY]["id"] for doc in found] for split, found in docs.items()
    }


def write_gad(data: Path) -> None:
    """Write sentences whose SHA-256 is in the tenths 9, 5, 8, 0, 0, 7 and 7, see test_division."""
    write(data / "gad" / "train.tsv", "a\t1\nb\t0\nc\t1\nd\t0\n")
    write(data / "gad" / "test.tsv", "index\tsentence\tlabel\n0\te\t1\n1\tf\t0\n2\tg\t0\n")


def test_texts_and_their_folds(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_gad(data)
    docs = convert("gad", tmp_path / "out")
    assert list_ids(docs) == {
        "train": ["train-1", "train-2", "train-3"],
        "dev": ["train-0"],  # tenth 9
        "test": ["test-0", "test-1", "test-2"],
    }
    assert docs["train"][0].cats == {"no": 1.0, "yes": 0.0}
    assert docs["dev"][0].cats == {"no": 0.0, "yes": 1.0}
    assert docs["dev"][0].user_data[GOLD_KEY] == {"id": "train-0", "task": "gad", "layers": {}}
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert ["all", "3", "1", "3"] in lines and ["yes", "1", "1", "1"] in lines

    assert list_ids(convert("gad", tmp_path / "out", "0")) == {
        "train": ["train-0", "train-2", "test-1", "test-2"],
        "dev": ["train-1"],  # tenth 5
        "test": ["train-3", "test-0"],
    }


def test_a_fold_without_texts(data: Path, tmp_path: Path) -> None:
    write_gad(data)
    with pytest.raises(BioclinError, match="task gad has no texts for test: is the corpus compl"):
        convert_task("gad", find_task("gad"), tmp_path / "out", "3")
    with pytest.raises(BioclinError, match="task gad has no fold '10'"):
        convert_task("gad", find_task("gad"), tmp_path / "out", "10")


def test_pairs_with_scores(data: Path, tmp_path: Path) -> None:
    rows = "".join(f"{n}\tA {n}.\tB {n}.\t{n / 5}\n" for n in range(20))
    write(data / "biosses" / "biosses.tsv", f"pair_id\tsentence1\tsentence2\tmean_score\n{rows}")
    folds = [convert("biosses", tmp_path / fold, fold) for fold in ("0", "1")]
    for docs in folds:
        assert [len(docs[split]) for split in SPLITS] == [13, 3, 4]
        for doc in (doc for split in SPLITS for doc in docs[split]):
            n = int(doc.user_data[GOLD_KEY]["id"])
            assert [part.text for part in split_pair(doc)] == [f"A {n}.", f"B {n}."]
            assert doc.cats == {SCORE: n / 5}
    first, second = map(list_ids, folds)
    assert set(first["test"]) != set(second["test"])
    with pytest.raises(BioclinError, match="has no split of its own; choose one of its folds"):
        convert_task("biosses", find_task("biosses"), tmp_path / "out")


def test_pairs_with_classes(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def make(*questions: str) -> str:
        pairs = (
            f'<pair pid="{n}" value="{str(n % 2 == 0).lower()}"><chq>{chq}</chq><faq>Why?</faq>'
            "</pair>"
            for n, chq in enumerate(questions)
        )
        return f"<a>{''.join(pairs)}</a>"

    write(data / "rqe" / "RQE_Train_8588_AMIA2016.xml", make("a", "d", "b", "d", "  "))
    write(data / "rqe" / "RQE_Test_302_pairs_AMIA2016.xml", make("d"))
    docs = convert("rqe", tmp_path / "out")
    assert list_ids(docs) == {
        "train": ["train-0", "train-2"],
        "dev": ["train-1", "train-3"],  # the same question, in tenth 0
        "test": ["test-0"],
    }
    assert docs["dev"][0].cats == {"false": 1.0, "true": 0.0}
    assert "left out: 1 without text or label" in capsys.readouterr().err


def test_texts_with_several_classes(data: Path, tmp_path: Path) -> None:
    for n in range(10):
        write(data / "hoc" / "text" / f"{n}.txt", "One .\nTwo .\n")
        write(data / "hoc" / "labels" / f"{n}.txt", "< <Cellular energetics--Glycolysis")
    write(data / "hoc" / "text" / "none.txt", "One .\n")
    write(data / "hoc" / "labels" / "none.txt", "<NULL")
    docs = convert("hoc", tmp_path / "out")
    assert [len(docs[split]) for split in SPLITS] == [14, 2, 4]
    ids = list_ids(docs)
    documents = [{id.rpartition("-")[0] for id in ids[split]} for split in SPLITS]
    assert sum(map(len, documents)) == len(set.union(*documents)) == 10
    cats = [doc.cats for doc in docs["test"]]
    assert all(len(found) == 10 for found in cats)
    labels = [{label for label, value in found.items() if value} for found in cats]
    assert labels == [set(), {"Cellular energetics"}] * 2
    write(data / "hoc" / "labels" / "3.txt", "< <Zyxwin")
    with pytest.raises(BioclinError, match="a text has a label that is not one of the task") as no:
        convert("hoc", tmp_path / "out")
    assert "Zyxwin" not in str(no.value)


def test_a_class_each(data: Path, tmp_path: Path) -> None:
    task = find_task("hoc").model_copy(update={"exclusive": True})
    for n in range(10):
        write(data / "hoc" / "text" / f"{n}.txt", "One .\nTwo .\n")
        write(data / "hoc" / "labels" / f"{n}.txt", "< <Cellular energetics")
    with pytest.raises(BioclinError, match="task hoc, train: a text has not exactly one label"):
        convert_task("hoc", task, tmp_path / "out")


def test_notes_have_no_folds(data: Path, tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match="task bc2gm has no fold '0'; it has one split"):
        convert_task("bc2gm", find_task("bc2gm"), tmp_path, "0")
    part = find_task("bc2gm").model_copy(update={"splits": {"train": ["bc2gm/iob/train.tsv"]}})
    with pytest.raises(BioclinError, match="task bc2gm has no dev split"):
        convert_task("bc2gm", part, tmp_path)


@pytest.mark.corpora
@pytest.mark.slow
def test_real_corpora(data_dir: Path) -> None:
    rows = [
        ("rqe", "", [7732, 855, 302]),
        ("biosses", "3", [64, 16, 20]),
        ("gad", "", [4279, 517, 534]),
        ("gad", "1", [4306, 490, 534]),
        ("euadr", "0", [284, 34, 37]),
    ]
    wrong = []
    for name, fold, sizes in rows:
        splits, _ = divide_texts(name, find_task(name), data_dir, fold)
        found = [len(splits[split]) for split in SPLITS]
        wrong += [(name, fold, found)] if found != sizes else []
    assert not wrong


@pytest.mark.corpora
def test_abstracts_of_hoc(data_dir: Path) -> None:
    splits, n_left_out = divide_texts("hoc", find_task("hoc"), data_dir)
    ids = [{row.id.rpartition("-")[0] for row in splits[split]} for split in SPLITS]
    # 70, 10 and 20 % of the 1,580 abstracts with a label, as many as in BLUE.
    assert list(map(len, ids)) == [1106, 158, 316] and len(set.union(*ids)) == 1580
    assert n_left_out == 2545 and sum(map(len, splits.values())) == 17464 - 2545
