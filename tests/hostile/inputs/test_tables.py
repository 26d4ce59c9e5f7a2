"""Tables of any content: what is only carried comes out as it went in, what is bad is counted."""

import csv
import errno
import io
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner import records as records_module
from spacy_bioclin.runner.columns import Columns
from spacy_bioclin.runner.forms import open_form
from spacy_bioclin.runner.records import Record
from spacy_bioclin.runner.work import Work
from tests.hostile.inputs.files import CANARY
from tests.hostile.strategies import JSON_NUMBERS, QUICK, Rows, json_values, notes, tables


def through(path: Path, columns: Columns) -> Path:
    """Read a table and write it again, in parts, as commands do."""
    form = open_form(path, columns)
    rows = []
    for record in form.read():
        assert isinstance(record, Record), str(record.error)
        rows.append(record.row)
    target = path.with_name(f"out{path.suffix}")
    form.join([form.encode(rows[at : at + 2]) for at in range(0, len(rows), 2)], target)
    return target


@QUICK
@given(st.lists(st.tuples(notes(), json_values()), max_size=4))
def test_json_lines_carry_values(tmp_path: Path, rows: list[tuple[str, Any]]) -> None:
    lines = [
        json.dumps({"text": text.replace("\0", ""), "v": value}, ensure_ascii=False)
        for text, value in rows
    ]
    path = tmp_path / "x.jsonl"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    out = through(path, Columns(keep=frozenset(["v"]))).read_bytes()
    assert out == path.read_bytes()


def test_json_lines_carry_the_characters_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [
        f'{{"text": "a", "v": {number}, "o": {{"l": [1, {number}]}}}}'
        for number in [*JSON_NUMBERS, "NaN", "-Infinity", "9" * 5000]
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    out = through(path, Columns(keep=frozenset(["v", "o"]))).read_text()
    assert out.splitlines() == lines


@QUICK
@given(tables(), st.sampled_from([(".csv", ","), (".csv", ";"), (".tsv", "\t")]))
def test_separated_values_carry_cells(tmp_path: Path, table: Rows, kind: tuple[str, str]) -> None:
    suffix, delimiter = kind
    content = io.StringIO()
    # The csv module does not quote a lone CR or LF unless its own line end has both.
    csv.writer(content, delimiter=delimiter, lineterminator="\r\n").writerows(
        [table.columns, *table.rows]
    )
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content.getvalue().encode())
    keep = frozenset(table.columns) - {"text"}
    out = through(path, Columns(keep=keep)).read_bytes().decode()
    found = list(csv.reader(io.StringIO(out, newline=""), delimiter=delimiter))
    assert found == [table.columns, *table.rows]


def arrow_columns() -> dict[str, Any]:
    """Make columns of the types that Arrow has, with values that Python cannot hold."""
    pa = pytest.importorskip("pyarrow")
    numbers = pa.array([1, 2**62, None, -5], pa.int64())
    days = pa.array([1, 2**31 - 1, None, -5], pa.int32())
    return {
        "ns": numbers.cast(pa.timestamp("ns")),
        "us": numbers.cast(pa.timestamp("us")),
        "seconds": pa.array([1, 2**50, None, -5]).cast(pa.timestamp("s")),
        "zone": numbers.cast(pa.timestamp("us", tz="Europe/Madrid")),
        "duration": numbers.cast(pa.duration("ns")),
        "time": pa.array([1, 2, None, 5], pa.time64("ns")),
        "date32": days.cast(pa.date32()),
        "date64": pa.array([1, 2**50, None, -5], pa.int64()).view(pa.date64()),
        "decimal": pa.array([Decimal("1.10"), None, Decimal("-9.99")] * 2, pa.decimal128(38, 2))[
            :4
        ],
        "decimal256": pa.array([None, Decimal("-" + "9" * 30)] * 2, pa.decimal256(70, 2)),
        "dictionary": pa.array(["x", "y", None, "x"]).dictionary_encode(),
        "unsigned": pa.array([2**64 - 1, None, 0, 1], pa.uint64()),
        "half": pa.array([None, 1, 2, 3], pa.float32()).cast(pa.float16()),
        "single": pa.array([0.1, None, float("inf"), -0.0], pa.float32()),
        "bytes": pa.array([b"\xff", b"", None, b"\x00"]),
        "fixed": pa.array([b"\xff1", b"ab", None, b"az"], pa.binary(2)),
        "struct": pa.array([{"a": 1, "b": [1.5, None]}, None, {"a": None, "b": []}, {"a": 3}]),
        "map": pa.array([[("k", 1)], None, [], [("k", 2)]], pa.map_(pa.string(), pa.int64())),
        "null": pa.nulls(4),
        "list": pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int32(), 2)),
        "view": pa.array(["a", None, "b", "c"], pa.string_view()),
    }


def test_parquet_carries_every_type(tmp_path: Path) -> None:
    pa, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    columns = arrow_columns()
    text = pa.array(["a", "", "Juan\r\n", "\u0301"])
    pq.write_table(pa.table({"text": text, **columns}), tmp_path / "x.parquet")
    before = pq.read_table(tmp_path / "x.parquet")
    out = through(tmp_path / "x.parquet", Columns(keep=frozenset(columns)))
    after = pq.read_table(out)
    differ = [name for name in before.column_names if before[name] != after[name]]
    assert not differ and before.schema.types == after.schema.types


def test_parquet_without_rows(tmp_path: Path) -> None:
    pa, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "x.parquet")
    assert pq.read_table(through(tmp_path / "x.parquet", Columns())).num_rows == 0


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_two_columns_of_one_name_are_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    if suffix == ".csv":
        path.write_text("text,a,a\n1,2,3\n")
    else:
        pa, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
        pq.write_table(pa.Table.from_arrays([pa.array(["x"])] * 3, names=["text", "a", "a"]), path)
    with pytest.raises(BioclinError, match="two columns have the same name"):
        open_form(path, Columns())


def test_parquet_cut_short(tmp_path: Path) -> None:
    pa, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": [CANARY]}), path, compression="none")
    data = path.read_bytes()
    for share in range(0, 100, 10):
        path.write_bytes(data[: len(data) * share // 100])
        with pytest.raises(BioclinError, match=r"x\.parquet: cannot be read as Parquet") as caught:
            open_form(path, Columns())
        assert caught.value.__context__ is None and CANARY not in str(caught.value), share


BAD_LINES = {
    "two fields of one name": (f'{{"text": "{CANARY}", "text": "b"}}', "the same name"),
    "deep": ('{"text": "a", "v": ' + "[" * 200 + "]" * 200 + "}", "nested deeper"),
    "very deep": ('{"text": "a", "v": ' + "[" * 100_000, "not JSON"),
    "half a pair": ('{"text": "\\ud800"}', "not UTF-8"),
    "half a pair elsewhere": ('{"text": "a", "v": "\\udfff"}', "not UTF-8"),
    "NUL": ('{"text": "a\\u0000b"}', "NUL"),
    "a list": (f'["{CANARY}"]', "not a JSON object"),
    "a number of JavaScript": (f'{{"text": "{CANARY}", "v": 0x10}}', "not JSON"),
    "cut": (f'{{"text": "{CANARY}', "not JSON"),
    "long": (f'{{"text": "{"a" * 3000}"}}', "longer than 2,000 characters"),
}


def test_bad_lines_are_counted_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    for name, (line, wanted) in BAD_LINES.items():
        monkeypatch.setattr(records_module, "MAX_LINE_CHARS", 2000 if name == "long" else 10**6)
        path.write_text(f'\ufeff{{"text": "a"}}\r\n\n{line}\n{{"text": "b"}}')
        first, bad, last = open_form(path, Columns()).read()
        assert isinstance(first, Record) and isinstance(last, Record), name
        assert last.row == {"text": "b"}, name
        assert not isinstance(bad, Record) and bad.place == "line 3", name
        assert wanted in str(bad.error) and CANARY not in str(bad.error), name


def test_a_column_without_a_name_is_named_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(",id,text\n0,a,b\n")
    with pytest.raises(BioclinError, match=r"x\.csv: column 1 has no name; .* in pandas"):
        open_form(tmp_path / "x.csv", Columns())


def deid(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["deid", *map(str, arguments), "--lang", "es", "--rules-only"])
    assert done.exit_code in (0, 1) and CANARY not in done.output, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.output


def stop(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_numbers_and_times_through_deid_and_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pa, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    lines = [f'{{"text": "D. Juan {CANARY}", "v": {number}}}\n' for number in JSON_NUMBERS]
    (tmp_path / "x.jsonl").write_text("".join(lines))
    columns = {name: arrow_columns()[name] for name in ("ns", "us", "date32", "decimal")}
    pq.write_table(pa.table({"text": ["a"] * 4, **columns}), tmp_path / "x.parquet")
    for name, keep in (("x.jsonl", ["v"]), ("x.parquet", [*columns])):
        options = [option for column in keep for option in ("--keep", column)]
        paths: Sequence[Path] = (tmp_path / name, tmp_path / f"out_{name}")
        with monkeypatch.context() as patch:
            patch.setattr(Work, "finish", stop)
            assert "--resume" in deid(*paths, *options)
        deid(*paths, *options, "--resume")
    found = (tmp_path / "out_x.jsonl").read_text().splitlines()
    assert [line.partition('"v": ')[2][:-1] for line in found] == JSON_NUMBERS
    before, after = (pq.read_table(tmp_path / f"{out}x.parquet") for out in ("", "out_"))
    assert before.select([*columns]) == after.select([*columns])


@pytest.mark.parametrize("number", ["12345678.90", "1.2345678901e10"])
def test_numbers_that_are_carried_are_searched_for_phi(number: str, tmp_path: Path) -> None:
    """A known identifier is found in a number, whatever its spelling."""
    known = {"12345678.90": "1234567890", "1.2345678901e10": "12345678901"}[number]
    line = json.dumps({"text": "Ingresa hoy", "known": known})[:-1] + f', "v": {number}}}\n'
    (tmp_path / "x.jsonl").write_text(line)
    options = ("--known", "identifier=known", "--keep", "v")
    assert "PHI of this record" in deid(tmp_path / "x.jsonl", tmp_path / "out.jsonl", *options)
