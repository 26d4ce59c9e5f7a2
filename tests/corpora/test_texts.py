"""Tables of texts and pairs -> Docs; errors name line and column and quote no text."""

import json
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_bioclin.annotations.pairs import get_boundary, split_pair
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.texts import Columns, convert_table, read_table
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import GOLD_KEY

TEXT = Columns("text", label="kind")
PAIR = Columns("a", "b", label="kind")


def write(folder: Path, content: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode("utf-8"))
    return path


def convert(path: Path, columns: Columns, **settings: Any) -> list[Doc]:
    out = path.with_suffix(".spacy")
    convert_table(path, out, columns, lang="en", **settings)
    return list(read_docs(out, Vocab()))


def get_error(path: Path, columns: Columns, **settings: Any) -> str:
    out = path.with_suffix(".spacy")
    with pytest.raises(BioclinError) as raised:
        convert_table(path, out, columns, lang="en", **settings)
    assert not out.exists()
    return str(raised.value).replace(f"{path}, ", "").replace(f"{path}: ", "")


def test_one_label_per_row(tmp_path: Path) -> None:
    content = '\ufeffkind,text,other\r\nB,"Cough, dry.\r\nFever.\t",1\r\n\r\nA, Pain? ,2\r\n'
    docs = convert(write(tmp_path, content), TEXT, task="mine")
    assert [doc.text for doc in docs] == ["Cough, dry.\r\nFever.\t", " Pain? "]
    assert [doc.cats for doc in docs] == [{"A": 0.0, "B": 1.0}, {"A": 1.0, "B": 0.0}]
    assert [doc.user_data[GOLD_KEY] for doc in docs] == [
        {"id": "table-1", "task": "mine", "layers": {}},
        {"id": "table-2", "task": "mine", "layers": {}},
    ]
    assert [sent.text.strip() for sent in docs[0].sents] == ["Cough, dry.", "Fever."]
    assert not docs[0].has_annotation("ENT_IOB") and not docs[0].spans


def test_several_labels_per_row(tmp_path: Path) -> None:
    path = write(tmp_path, "text\tkind\tn\nx\tA | B\t7\ny\t\t8\nz\tB|B\t9\n", "t.tsv")
    columns = TEXT._replace(id="n")
    docs = convert(path, columns, separator="|", labels=["C", "B", "A"])
    assert [doc.cats for doc in docs] == [
        {"C": 0.0, "B": 1.0, "A": 1.0},
        {"C": 0.0, "B": 0.0, "A": 0.0},
        {"C": 0.0, "B": 1.0, "A": 0.0},
    ]
    assert list(docs[0].cats) == ["C", "B", "A"]  # the components' labels have this order
    assert [doc.user_data[GOLD_KEY]["id"] for doc in docs] == ["7", "8", "9"]
    summary = convert_table(
        path, tmp_path / "u.spacy", columns, lang="en", separator="|", labels=["C", "B", "A"]
    )
    assert summary == (3, 0, {"C": 0, "B": 2, "A": 1}, 1, None)


def test_json_lines(tmp_path: Path) -> None:
    rows = [
        {"text": "x\u2028y", "kind": ["A", "B|C"], "id": 1},
        {"text": "z", "kind": [], "id": 2},
        {"text": "z", "kind": None, "id": 3},
        {"text": "z", "kind": "A|D", "id": 4},
    ]
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path = write(tmp_path, f"{lines}\n\n", "t.jsonl")
    docs = convert(path, TEXT._replace(id="id"), separator="|")
    positive = [{label for label, value in doc.cats.items() if value} for doc in docs]
    assert positive == [{"A", "B|C"}, set(), set(), {"A", "D"}]
    assert docs[0].text == "x\u2028y"
    assert [doc.user_data[GOLD_KEY]["id"] for doc in docs] == ["1", "2", "3", "4"]
    path = write(tmp_path, '{"text": "x", "kind": 1}\n{"text": "y", "kind": ["0"]}\n', "u.jsonl")
    assert [doc.cats for doc in convert(path, TEXT)] == [{"0": 0, "1": 1}, {"0": 1, "1": 0}]


def test_pairs_with_scores(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,s\nDry cough.,A cough,3.5\nPain.,None,-1e1\n")
    docs = convert(path, Columns("a", "b", score="s"))
    assert [doc.cats for doc in docs] == [{"score": 3.5}, {"score": -10.0}]
    assert docs[0].text == "Dry cough.\nA cough"
    assert get_boundary(docs[0]) == 3
    assert [span.text for span in split_pair(docs[1])] == ["Pain.", "None"]
    summary = convert_table(path, tmp_path / "u.spacy", Columns("a", "b", score="s"), lang="en")
    assert summary == (2, 0, {}, 0, (-10.0, 3.5))


def test_long_cells_and_plain_quotes(tmp_path: Path) -> None:
    path = write(tmp_path, f"text,kind\n{'cough ' * 30_000},A\n")
    assert len(convert(path, TEXT)[0].text) == 180_000
    path = write(tmp_path, 'text\tkind\n"Left" lung\tA\n5" scar\tB\n', "t.tsv")
    assert get_error(path, TEXT).startswith("line 2: a quotation mark that is not closed")
    docs = convert(path, TEXT, plain_quotes=True)
    assert [doc.text for doc in docs] == ['"Left" lung', '5" scar']


def test_bad_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "text,kind,n\nx,A,1\n,A,2\ny,B,1\nz,B,3\nz\n")
    columns = TEXT._replace(id="n")
    errors: list[BioclinError] = []
    out = tmp_path / "o.spacy"
    summary = convert_table(path, out, columns, lang="en", skip_bad=True, on_skip=errors.append)
    assert summary == (2, 3, {"A": 1, "B": 1}, 0, None)
    assert [str(error) for error in errors] == [
        f"{path}, line 3, column text: empty",
        f"{path}, line 4, column n: the row at line 2 has the same id; ids must differ",
        f"{path}, line 6, 1 columns, but the header has 3",
    ]
    docs = list(read_docs(out, Vocab()))
    assert [doc.user_data[GOLD_KEY]["id"] for doc in docs] == ["1", "3"]


SECRET = "Xabina Uribe"  # stands for a text


def test_errors_name_line_and_column(tmp_path: Path) -> None:
    rows: list[tuple[str, Columns, Any, str]] = [
        ("", TEXT, {}, "empty; want a row with the names"),
        ("text,kind\n", TEXT, {}, "no rows to convert"),
        ("txt,kind\nx,A\n", TEXT, {}, "no column 'text'; did you mean txt? there are txt, kind"),
        (f"{SECRET} 1961-02-03,A\n", TEXT, {}, "no column 'text'; want a first row"),
        (f"{SECRET} came in with a dry cough,A\n", TEXT, {}, "it seems to be data"),
        ("text,text,kind\nx,y,A\n", TEXT, {}, "2 columns are named 'text'"),
        (f"text,kind\n{SECRET}, it,A\n", TEXT, {}, "line 2, 3 columns, but the header has 2"),
        ('text,kind\n"x\ny",A\n" ",A\n', TEXT, {}, "line 4, column text: empty"),
        (f"text,kind\n{SECRET},\n", TEXT, {}, "line 2, column kind: empty; --skip-bad"),
        (f"text,kind\n{SECRET},A||B\n", TEXT, {"separator": "|"}, "line 2, column kind: empty"),
        (
            f"text,kind\nx,{SECRET}\n",
            TEXT,
            {"labels": ["A", "B"]},
            "line 2, column kind: a label that is not in --labels; want A, B",
        ),
        (
            "text,kind\nx,cardiac\n",
            TEXT,
            {"labels": ["cardiac_", "lung"]},
            "did you mean cardiac_? want cardiac_, lung",
        ),
        (f"text,kind\nx,{SECRET * 9}\n", TEXT, {}, "line 2, column kind: longer than 100"),
        ("text,kind\nx,score\n", TEXT, {}, "line 2, column kind: a label cannot be 'score'"),
        (f"a,b,kind\n{SECRET},y,A\n{SECRET},,A\n", PAIR, {}, "line 3, column b: a pair with one"),
        (f"a,b,kind\n ,{SECRET},A\n", PAIR, {}, "line 2, column a: a pair with one text"),
        ("a,b,kind\n,,A\n", PAIR, {}, "line 2, column a: empty"),
        (f"text,s\nx,{SECRET}\n", Columns("text", score="s"), {}, "column s: not a finite number"),
        ("text,s\nx,nan\n", Columns("text", score="s"), {}, "line 2, column s: not a finite"),
        ("text,s\nx,\n", Columns("text", score="s"), {}, "line 2, column s: not a finite"),
        ("text,s\nx,1_000\n", Columns("text", score="s"), {}, "column s: not a finite number"),
        (
            "text,kind,n\nx,A,1\ny,A,1\n",
            TEXT._replace(id="n"),
            {},
            "line 3, column n: the row at line 2 has the same id",
        ),
        ('text,kind\n"x', TEXT, {}, "line 2: a quotation mark"),
    ]
    wrong: list[object] = []
    for content, columns, settings, message in rows:
        error = get_error(write(tmp_path, content), columns, **settings)
        if message not in error or SECRET in error:
            wrong.append((content, error))
    assert not wrong


def test_errors_of_json_lines(tmp_path: Path) -> None:
    rows = [
        (f'{{"text": "{SECRET}"', "line 1, not a JSON object"),
        (f'["{SECRET}"]', "line 1, not a JSON object"),
        ('{"text": 7, "kind": "A"}', "line 1, column text: not a string"),
        ('{"text": "x", "kinds": "A"}', "line 1, no column 'kind'; did you mean kinds?"),
        ('{"text": "x", "kind": ["A", "B"]}', "column kind: 2 labels; with --separator"),
        ('{"text": "x", "kind": []}', "column kind: 0 labels; with --separator"),
        ('{"text": "x", "kind": [["A"]]}', "line 1, column kind: not a string"),
        ('{"text": "x", "kind": 1.5}', "line 1, column kind: not a string"),
        ('{"text": "x", "kind": null}', "line 1, column kind: empty"),
        ('{"text": "\\ud800", "kind": "A"}', "line 1, column text: has half a surrogate pair"),
        ('{"text": null, "kind": "A"}', "line 1, column text: empty"),
    ]
    wrong: list[object] = []
    for line, message in rows:
        error = get_error(write(tmp_path, line, "t.jsonl"), TEXT)
        if message not in error or SECRET in error:
            wrong.append((line, error))
    assert not wrong


def test_other_files_are_refused(tmp_path: Path) -> None:
    assert "has to end in .csv, .tsv or .jsonl" in get_error(write(tmp_path, "x", "t.txt"), TEXT)
    assert "no such file" in get_error(tmp_path / "nothing.csv", TEXT)
    path = tmp_path / "latin.csv"
    path.write_bytes("text,kind\nTos y fiebre de 38 ºC,A\n".encode("latin-1"))
    with pytest.raises(BioclinError, match="line 2: not UTF-8") as raised:
        read_table(path, TEXT, on_bad=lambda error: None)
    assert raised.value.__cause__ is raised.value.__context__ is None
