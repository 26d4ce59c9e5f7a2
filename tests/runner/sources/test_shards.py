"""A folder of tables: order, partitions, files that differ from the others, bad rows."""

import json

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner.columns import Columns
from spacy_bioclin.runner.records import Record, TextFiles, Unreadable
from spacy_bioclin.runner.sources.opening import open_notes
from spacy_bioclin.runner.sources.shards import Shards
from tests.runner.fixtures import write_rows

KEEP_N = Columns(id="id", keep=frozenset(["n"]))


def make_rows(*numbers):
    return [{"id": f"a{n}", "text": f"Nota {n}.", "n": n} for n in numbers]


@pytest.fixture(params=[".jsonl", ".csv", ".tsv", ".parquet"])
def ending(request):
    return request.param


def test_files_are_read_in_the_order_of_their_paths(ending, tmp_path):
    """Not in that of the disk; a folder is sorted among the files, by the whole path."""
    for n, name in enumerate(("c", "b/2", "a", "b/10")):
        path = tmp_path / f"{name}{ending}"
        path.parent.mkdir(exist_ok=True)
        write_rows(path, make_rows(n, n + 10))
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part.crc").touch()
    (tmp_path / "readme.md").touch()
    (tmp_path / "_delta_log").mkdir()
    write_rows(tmp_path / "_delta_log" / f"0{ending}", [{"x": 1}])
    form = open_notes(tmp_path, KEEP_N)
    assert isinstance(form, Shards) and form.left_out == 1  # readme.md
    found = list(form.read())
    order = [(2, "a"), (12, "a"), (3, "b/10"), (13, "b/10"), (1, "b/2"), (11, "b/2")]
    wanted = [*order, (0, "c"), (10, "c")]
    assert [(int(record.row["n"]), record.place.split(ending)[0]) for record in found] == wanted
    assert [record.number for record in found] == list(range(1, 9))
    assert found[0].place.startswith(f"a{ending}, ")
    assert form.done == form.total
    assert [record.row["text"] for record in found] == [f"Nota {n}." for n, _ in wanted]
    assert list(form.read()) == found


def test_folders_give_columns(ending, tmp_path):
    for ward, n in (("UCI", 1), ("3%2C norte", 2), ("__HIVE_DEFAULT_PARTITION__", 3)):
        path = tmp_path / "year=2026" / f"ward={ward}" / f"part{ending}"
        path.parent.mkdir(parents=True)
        write_rows(path, make_rows(n))
    columns = Columns(id="id", keep=frozenset(["ward", "n"]))
    found = [(int(r.row["n"]), r.row["ward"]) for r in open_notes(tmp_path, columns).read()]
    assert sorted(found) == [(1, "UCI"), (2, "3, norte"), (3, None)]
    if ending != ".jsonl":  # whose lines may differ
        with pytest.raises(BioclinError, match="no column 'month'"):
            open_notes(tmp_path, Columns(keep=frozenset(["month"])))


def test_a_file_with_other_columns_is_found_before_the_run(tmp_path):
    for ending in (".csv", ".parquet"):
        folder = tmp_path / ending[1:]
        folder.mkdir()
        write_rows(folder / f"1{ending}", make_rows(1))
        write_rows(folder / f"2{ending}", [{"id": "a2", "note": "Nota.", "n": 2}])
        with pytest.raises(BioclinError, match=rf"2{ending}: no column 'text'; it has id, note, n"):
            open_notes(folder, KEEP_N)
    folder = tmp_path / "parquet"
    for n in (2.5, "2"):
        write_rows(folder / "2.parquet", [{"id": "a2", "text": "Nota.", "n": n}])
        with pytest.raises(
            BioclinError, match=r"2.parquet: column 'n' has type .*, but int64 in 1"
        ):
            open_notes(folder, KEEP_N)
        assert len(list(open_notes(folder, Columns(id="id")).read())) == 2  # it is not written
    write_rows(folder / "2.parquet", [{"id": "a2", "text": 5, "n": 2}])
    with pytest.raises(BioclinError, match=r"2.parquet: column 'text' has type int64, not string"):
        open_notes(folder, KEEP_N)
    (folder / "2.parquet").write_bytes(b"PAR1 Prado")
    with pytest.raises(BioclinError, match=r"2.parquet: cannot be read as Parquet") as error:
        open_notes(folder, KEEP_N)
    assert "Prado" not in str(error.value)


def test_lines_with_other_fields_are_named_one_by_one(tmp_path):
    write_rows(tmp_path / "1.jsonl", make_rows(1))
    rows = [{"id": "a2", "note": "Prado"}, {"id": "a3", "text": ["Prado"]}, *make_rows(4)]
    write_rows(tmp_path / "2.jsonl", rows)
    with (tmp_path / "2.jsonl").open("ab") as file:
        file.write('{"id": "a5", "text": "Pradó"}\n'.encode("latin-1") + b'{"id": "a6"\n')
        file.write(json.dumps({"id": "a7", "text": "x" * 2_000_000}).encode() + b"\n")
    found = list(open_notes(tmp_path, Columns(id="id")).read())
    assert [(each.number, type(each).__name__, each.place) for each in found] == [
        (1, "Record", "1.jsonl, line 1"),
        (2, "Unreadable", "2.jsonl, line 1"),
        (3, "Unreadable", "2.jsonl, line 2"),
        (4, "Record", "2.jsonl, line 3"),
        (5, "Unreadable", "2.jsonl, line 4"),
        (6, "Unreadable", "2.jsonl, line 5"),
        (7, "Record", "2.jsonl, line 6"),
    ]
    errors = [str(each.error) for each in found if isinstance(each, Unreadable)]
    assert "no 'text'; it has id, note" in errors[0] and "2.jsonl, line 1" in errors[0]
    assert "'text' is not a string" in errors[1] and "not UTF-8" in errors[2]
    assert "Prad" not in "".join(errors)


def test_what_a_folder_holds_decides(tmp_path):
    write_rows(tmp_path / "notes", make_rows(1))
    (tmp_path / "notes" / "a1.ann").touch()  # of brat
    form = open_notes(tmp_path / "notes", Columns())
    assert isinstance(form, TextFiles) and form.left_out == 1
    assert [record.row["file"] for record in form.read()] == ["a1.txt"]

    mixed = tmp_path / "mixed"
    mixed.mkdir()
    write_rows(mixed / "1.jsonl", make_rows(1))
    write_rows(mixed / "1.csv", make_rows(1))
    with pytest.raises(BioclinError, match=r"has \.csv and \.jsonl files; put each kind in a"):
        open_notes(mixed, Columns())
    (tmp_path / "empty").mkdir()
    with pytest.raises(BioclinError, match=r"no \.txt file in this folder, nor \.jsonl, \.csv"):
        open_notes(tmp_path / "empty", Columns())
    (tmp_path / "docs.spacy").mkdir()
    with pytest.raises(BioclinError, match=r"no \.spacy file"):
        open_notes(tmp_path / "docs.spacy", Columns())
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "1.jsonl").symlink_to(tmp_path / "none")
    with pytest.raises(BioclinError, match=r"1.jsonl: is a link that cannot be followed"):
        open_notes(tmp_path / "link", Columns())


def test_a_changed_file_changes_the_fingerprint(tmp_path):
    write_rows(tmp_path / "1.jsonl", make_rows(1))
    write_rows(tmp_path / "2.jsonl", make_rows(2))
    before = open_notes(tmp_path, Columns()).fingerprint()
    assert open_notes(tmp_path, Columns()).fingerprint() == before
    write_rows(tmp_path / "3.jsonl", make_rows(3))
    assert open_notes(tmp_path, Columns()).fingerprint() != before


def test_records_are_rows_of_python(tmp_path):
    """What is read can be sent to another process."""
    write_rows(tmp_path / "1.parquet", make_rows(1, 2))
    record = next(iter(open_notes(tmp_path, KEEP_N).read()))
    row = {"id": "a1", "text": "Nota 1.", "n": 1}
    assert record == Record(1, "1.parquet, row 1", row)
