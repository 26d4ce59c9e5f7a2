"""Every form comes back as it was; what cannot be read is named by its place alone."""

import builtins
import datetime
import errno
import json
import os
from itertools import product
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner.forms import open_form
from spacy_bioclin.runner.records import Columns, Record, Unreadable

FORMS = ("notes", "notes.jsonl", "notes.csv", "notes.tsv", "notes.parquet")


def copy(source, target, columns=Columns()):  # noqa: B008
    form = open_form(source, columns)
    records = list(form.read())
    assert all(isinstance(record, Record) for record in records), records
    dropped = [
        {name: value for name, value in record.row.items() if name not in columns.drop}
        for record in records
    ]
    parts = [form.encode(dropped[:2]), form.encode(dropped[2:]), form.encode([])]
    form.join(iter(parts), target)
    assert form.done == form.total
    return form


@pytest.mark.parametrize("name", FORMS)
def test_round_trip(name, rows, write, read, tmp_path):
    source = write(tmp_path / name, rows)
    target = tmp_path / f"out-{name}"
    copy(source, target)
    assert read(target) == read(source)
    wanted = [row["text"] for row in rows]
    assert [row["text"] for row in read(target)] == wanted


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.csv", "notes.parquet"])
def test_an_empty_id_is_no_id(name, write, tmp_path):
    """The number of the record, in its place, may be the id of another note."""
    rows = [{"id": id, "text": "Tos."} for id in ("2", "", " ", "0")]
    found = list(open_form(write(tmp_path / name, rows), Columns(id="id")).read())
    assert [type(each) for each in found] == [Record, Unreadable, Unreadable, Record]
    assert all(str(each.error).endswith(": no 'id' (empty)") for each in found[1:3])


def test_a_folder_keeps_its_tree_and_every_byte(tmp_path):
    source = tmp_path / "notes"
    (source / "b" / "c").mkdir(parents=True)
    (source / "b" / "c" / "x.txt").write_bytes("\ufeffuno\r\ndos\r".encode())
    (source / "a.txt").write_bytes(b"")
    (source / "scan.pdf").write_bytes(b"%PDF")
    form = copy(source, tmp_path / "out")
    assert (tmp_path / "out/b/c/x.txt").read_bytes() == (source / "b/c/x.txt").read_bytes()
    assert (tmp_path / "out/a.txt").read_bytes() == b""
    assert not (tmp_path / "out/scan.pdf").exists()
    assert (form.total, form.left_out) == (2, 1)


def test_one_text_file(tmp_path):
    source = tmp_path / "note.txt"
    source.write_bytes("señor\r\n".encode())
    copy(source, tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_bytes() == source.read_bytes()


def test_csv_keeps_its_separator_and_line_ends(tmp_path):
    for delimiter, end in ((";", "\r\n"), ("|", "\n"), ("\t", "\n")):
        lines = ["\ufeffid", "text"], ["1", '"uno\rdos"'], ["2", ""]
        content = "".join(delimiter.join(line) + end for line in lines)
        source = tmp_path / "notes.csv"
        source.write_bytes(content.encode())
        copy(source, tmp_path / "out.csv")
        assert (tmp_path / "out.csv").read_bytes().decode() == content.removeprefix("\ufeff")


def test_a_note_longer_than_the_csv_module_allows(tmp_path, write, read):
    rows = [{"id": "1", "text": "x" * 200_000}]
    copy(write(tmp_path / "notes.csv", rows), tmp_path / "out.csv")
    assert read(tmp_path / "out.csv") == rows


def test_parquet_keeps_types_and_drops_metadata(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    schema = pa.schema(
        [
            pa.field("text", pa.large_string(), nullable=False),
            pa.field("seen", pa.timestamp("ns", "UTC")),
            pa.field("codes", pa.list_(pa.struct([("code", pa.string()), ("n", pa.int16())]))),
            pa.field("ward", pa.dictionary(pa.int32(), pa.string())),
            pa.field("name", pa.string()),
        ],
        metadata={"made for": "somebody"},
    )
    seen = datetime.datetime(2020, 2, 29, 12, tzinfo=datetime.UTC)
    row = {"text": "uno", "seen": seen, "codes": [{"code": "J18", "n": 2}], "ward": "a"}
    rows = [{**row, "name": "x"}, {"text": "dos"}, {**row, "codes": []}]
    source = tmp_path / "notes.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), source)
    copy(source, tmp_path / "out.parquet", Columns(drop=frozenset({"name"})))
    out, wanted = pq.read_table(tmp_path / "out.parquet"), pq.read_table(source)
    assert out.equals(wanted.drop_columns(["name"]))
    assert wanted.schema.metadata and not out.schema.metadata
    assert b"somebody" not in (tmp_path / "out.parquet").read_bytes()


SECRET = "Confidencial"
BAD_LINES = {
    "half JSON": (b'{"id": "x", "text": "Confidencial', "not JSON"),
    "a list": (b'["Confidencial"]', "not a JSON object"),
    "no text": (b'{"id": "x", "nota": "Confidencial"}', "no 'text'"),
    "null text": (b'{"id": "Confidencial", "text": null}', "no 'text'"),
    "a number": (b'{"id": "Confidencial", "text": 1}', "'text' is not a string"),
    "no id": (b'{"text": "Confidencial"}', "no 'id'"),
    "latin-1": ('{"id": "x", "text": "Confidencial señora"}'.encode("latin-1"), "not UTF-8"),
    "half a pair": (b'{"id": "x", "text": "Confidencial \\ud83d"}', "not UTF-8"),
    "deep": (b"[" * 100_000, "not JSON"),
}
BAD_ROWS = {
    "too many": (b"3,Confidencial,Confidencial", "3 columns, but the header has 2"),
    "too few": (b"Confidencial", "1 columns, but the header has 2"),
    "latin-1": ("3,Confidencial señora".encode("latin-1"), "not UTF-8"),
    "quotes": (b'3,"Confidencial" dijo', "not CSV"),
}


def check(records, wanted):
    first, bad, last = records
    assert isinstance(bad, Unreadable)
    assert wanted in str(bad.error)
    assert bad.place in str(bad.error)
    assert SECRET not in str(bad.error)
    assert [first.number, bad.number, last.number] == [1, 2, 3]
    assert (first.row["id"], last.row["id"]) == ("1", "2")


def test_bad_lines_of_json(tmp_path):
    for line, wanted in BAD_LINES.values():
        source = tmp_path / "notes.jsonl"
        good = [json.dumps({"id": str(i), "text": "x"}).encode() for i in (1, 2)]
        source.write_bytes(b"\n".join([good[0], b"", line, good[1]]))
        records = list(open_form(source, Columns(id="id")).read())
        check(records, wanted)
        assert records[1].place == "line 3"


def test_bad_rows_of_csv(tmp_path):
    for line, wanted in BAD_ROWS.values():
        source = tmp_path / "notes.csv"
        source.write_bytes(b'id,text\n1,"dos\nlineas"\n\n' + line + b"\n2,x\n")
        records = list(open_form(source, Columns()).read())
        check(records, wanted)


def test_a_quote_that_is_never_closed(tmp_path):
    source = tmp_path / "notes.csv"
    source.write_bytes(b'id,text\n1,a\n2,"Confidencial\n3,b\n')
    records = list(open_form(source, Columns()).read())
    assert [type(record) for record in records] == [Record, Unreadable, Record]
    assert [record.place for record in records] == ["line 2", "line 3", "line 4"]
    assert SECRET not in str(records[1].error)


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        # The rest of a note is not a record, though it has as many columns.
        ('1,a\n2,"Dijo "no" y\nVive en Madrid, calle Mayor"\n3,b\n', "R--R"),
        ('1,a\n2,"abc\nVive en Madrid, calle Mayor\n3,b\n4,"d\ne"\n', "R--RR"),
        # Nothing before it says how a record looks.
        ('1,"abc\n2,b\n3,c\n', "---"),
        # One too many columns in several lines: the quotation mark closed a later one.
        ('1,a\n2,"abc\n3,",x\n4,b\n', "R--R"),
        # A bad byte, or a column too many in one line, hides nothing.
        ('1,a\n2,"se\udcf1or\nb, c"\n3,b\n', "R-R"),
        ("1,a\n2,b,c\n3,b\n", "R-R"),
    ],
)
def test_after_a_broken_quote_every_record_is_counted(rows, wanted, tmp_path):
    source = tmp_path / "notes.csv"
    source.write_bytes(f"id,text\n{rows}".encode("utf-8", "surrogateescape"))
    records = list(open_form(source, Columns(id="id")).read())
    found = "".join("R" if isinstance(record, Record) else "-" for record in records)
    assert found == wanted, [getattr(record, "error", record) for record in records]
    assert [record.number for record in records] == list(range(1, len(wanted) + 1))
    ids = [record.row["id"] for record in records if isinstance(record, Record)]
    assert all(id.isdigit() for id in ids)


def test_encodings(tmp_path):
    contents = {
        "n.txt": "señor €",
        "n.csv": "id,text\n1,señor €\n",
        "n.jsonl": '{"id": "1", "text": "señor €"}\n',
    }
    for (name, text), encoding in product(contents.items(), ("cp1252", "utf-16", "utf-16-le")):
        (tmp_path / name).write_bytes(text.encode(encoding))
        [record] = open_form(tmp_path / name, Columns(), encoding).read()
        assert record.row["text"].removeprefix("\ufeff") == "señor €", (name, encoding)
        with pytest.raises(BioclinError, match="no such encoding"):
            open_form(tmp_path / name, Columns(), "rot13")


@pytest.mark.parametrize("name", ["n.txt", "n.jsonl"])
def test_utf_16_is_not_taken_for_utf_8(name, tmp_path):
    text = '{"id": "1", "text": "Confidencial"}'
    (tmp_path / name).write_bytes(text.encode("utf-16-le"))
    [bad] = open_form(tmp_path / name, Columns()).read()
    assert "NUL characters, as UTF-16 has" in str(bad.error)
    (tmp_path / "escaped.jsonl").write_text('{"text": "a\\u0000b"}')
    [bad] = open_form(tmp_path / "escaped.jsonl", Columns()).read()
    assert "NUL characters" in str(bad.error)


def test_links_pipes_and_closed_folders(tmp_path):
    top, beside = tmp_path / "notes", tmp_path / "beside"
    for folder in (top, beside):
        folder.mkdir()
    (top / "a.txt").write_text("uno")
    (beside / "b.txt").write_text("dos")
    (top / "linked").symlink_to(beside)
    (beside / "back").symlink_to(top)  # a circle
    (top / "lost.txt").symlink_to(tmp_path / "nowhere")
    (top / "gone").symlink_to(tmp_path / "nowhere")
    os.mkfifo(top / "pipe.txt")
    os.mkfifo(top / "pipe")
    form = open_form(top, Columns())
    records = list(form.read())
    good = [record.row["file"] for record in records if isinstance(record, Record)]
    assert good == ["a.txt", "linked/b.txt"]
    bad = [str(record.error).split("notes/")[1] for record in records if record.number in (2, 3, 4)]
    assert bad == [
        "gone: is a link that cannot be followed (No such file or directory)",
        "lost.txt: is a link that cannot be followed (No such file or directory)",
        "pipe.txt: is a pipe, socket or device, not a file",
    ]
    assert (form.total, form.left_out) == (5, 1)
    assert form.fingerprint()
    for name, wanted in (("pipe.txt", "is a pipe"), ("lost.txt", "a link to a file that is not")):
        with pytest.raises(BioclinError, match=wanted):
            open_form(top / name, Columns())


def test_a_folder_that_cannot_be_listed_is_named_and_counted(tmp_path, monkeypatch):
    top = tmp_path / "notes"
    (top / "closed").mkdir(parents=True)
    (top / "a.txt").write_text("uno")
    listed = Path.iterdir

    def refuse(path):
        if path.name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refuse)  # root may list everything
    good, bad = open_form(top, Columns()).read()
    assert good.row["file"] == "a.txt"
    assert str(bad.error).endswith("notes/closed: cannot be read (Permission denied)")


def test_bad_rows_of_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    source = tmp_path / "notes.parquet"
    latin = pa.array(["Confidencial señora".encode("latin-1")], pa.binary())
    broken = pa.StringArray.from_buffers(1, *latin.buffers()[1:])
    text = pa.chunked_array([pa.array(["x", None]), broken, pa.array(["y"])])
    pq.write_table(pa.table({"text": text}), source)
    records = list(open_form(source, Columns()).read())
    assert [type(record) for record in records] == [Record, Unreadable, Unreadable, Record]
    assert [record.place for record in records] == ["row 1", "row 2", "row 3", "row 4"]
    assert not any(SECRET in str(record.error) for record in records[1:3])


def test_bad_files_of_a_folder(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "1.txt").write_bytes(b"x")
    (folder / "2.txt").write_bytes("una\nConfidencial señora".encode("latin-1"))
    (folder / "3.txt").write_bytes(b"y")
    _, bad, last = open_form(folder, Columns()).read()
    assert "2.txt, line 2: not UTF-8" in str(bad.error)
    assert (bad.place, last.place) == ("file 2", "file 3")


BAD_INPUTS = {
    "notes.docx": (b"x", "ending '.docx'"),
    "empty.csv": (b"", "no header"),
    "latin.csv": ("Ñandú,text\n".encode("latin-1"), "line 1: not UTF-8; --encoding"),
    "no-header.csv": (b"Juan Confidencial,12\n", "no column 'text'; its first line seems to be"),
    "no-text.csv": (b"id,Fecha de alta\n", "no column 'text'; it has id, Fecha de alta;"),
    "utf-16.csv": ("id,text\n".encode("utf-16-le"), "NUL characters, as UTF-16 has"),
    "twice.csv": (b"text,text\n", "two columns have the same name"),
    "broken.parquet": (b"Confidencial", "cannot be read as Parquet"),
    "missing.jsonl": (None, "no such file"),
}


def test_inputs_that_cannot_be_read_at_all(tmp_path):
    for name, (content, wanted) in BAD_INPUTS.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(BioclinError, match=wanted) as raised:
            open_form(tmp_path / name, Columns())
        assert SECRET not in str(raised.value)


def test_text_of_another_type_and_a_folder_without_notes(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"text": [1]}), tmp_path / "n.parquet")
    with pytest.raises(BioclinError, match="type int64, not string"):
        open_form(tmp_path / "n.parquet", Columns())
    with pytest.raises(BioclinError, match=r"no \.txt file"):
        (tmp_path / "none").mkdir()
        open_form(tmp_path / "none", Columns())
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(BioclinError, match="has no columns"):
        open_form(tmp_path / "a.txt", Columns(id="id"))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ModuleNotFoundError(name=name)
        return real(name, *args, **kwargs)

    (tmp_path / "n.parquet").write_bytes(b"")
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(BioclinError, match=r"spacy-bioclin\[parquet\]"):
        open_form(tmp_path / "n.parquet", Columns())
