"""The same notes in every form."""

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

ROWS: list[dict[str, Any]] = [
    {"id": "a1", "text": "Paciente con neumonía.\r\nAlta.", "ward": "3, norte", "n": 1},
    {"id": "a2", "text": "", "ward": 'dice "hola"', "n": 2},
    {"id": "a3", "text": "Línea\nsegunda\ttercera\rcuarta", "ward": "", "n": 3},
]


def write_table(path: Path, rows: list[dict[str, Any]], delimiter: str, end: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
        writer.writerow(rows[0])
        writer.writerows(row.values() for row in rows)


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows in the form that the ending says; without one, a folder."""
    if path.suffix == ".jsonl":
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_bytes("".join(lines).encode())
    elif path.suffix in (".csv", ".tsv"):
        write_table(path, rows, "," if path.suffix == ".csv" else "\t", "\n")
    elif path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        for row in rows:
            file = path / f"{row['id']}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(row["text"].encode())
    return path


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read them with other code than the package's."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_bytes().splitlines()]
    if path.suffix in (".csv", ".tsv"):
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="," if path.suffix == ".csv" else "\t"))
    if path.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return [
        {
            "id": file.relative_to(path).with_suffix("").as_posix(),
            "text": file.read_bytes().decode(),
        }
        for file in files
    ]


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return [dict(row) for row in ROWS]


@pytest.fixture
def write() -> Callable[[Path, list[dict[str, Any]]], Path]:
    return write_rows


@pytest.fixture
def read() -> Callable[[Path], list[dict[str, Any]]]:
    return read_rows


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine of this machine work as it does, without starting processes."""
    from spacy_bioclin.runner.engines.local import LocalEngine
    from tests.runner.light import Inside

    module = "spacy_bioclin.runner.engines.local"
    monkeypatch.setattr(f"{module}.ChildProcess", Inside)
    monkeypatch.setattr(f"{module}.LocalEngine", lambda *_, **__: LocalEngine(1, apart=True))


@pytest.fixture
def loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands load each pipeline once: a test runs many, and none changes it."""
    import spacy

    load = spacy.load

    def load_once(name: str | Path, *, exclude: Iterable[str] = ()) -> Any:
        key = str(name), tuple(exclude)
        if key not in _LOADED:
            _LOADED[key] = load(name, exclude=exclude)
        return _LOADED[key]

    monkeypatch.setattr(spacy, "load", load_once)


_LOADED: dict[tuple[str, tuple[str, ...]], Any] = {}
