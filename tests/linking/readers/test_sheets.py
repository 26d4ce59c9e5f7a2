"""Workbooks: which sheets and rows are read, and what a spreadsheet does to codes."""

import sys
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers import read_concepts

from .sheets import Row, write_workbook

HEADER: list[str | int | float | None] = ["Tipo código", "Código", "Descripción", "Sinónimos"]
SHEETS: dict[str, list[Row]] = {
    "Portada": [["Tabla de referencia 2031"], ["Instrucciones"]],
    "Completa": [["Tabla de diagnósticos"], [], HEADER, ["D", "A10.0", "Fiebre azul", "azulina"]],
    "Capítulo 2": [HEADER, ["D", 250, "Tos verde", "tos\nverdosa"], [None, None, None, None]],
    "Bajas": [HEADER, ["D", "Z99", "Mal antiguo", None]],
}


def read(path: Path, **options: object) -> tuple[list[Concept], SkipReport]:
    report = SkipReport()
    return list(read_concepts(path, report, **options)), report  # type: ignore[arg-type]


def test_every_sheet_with_the_header_is_read(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "x.xlsx", SHEETS)
    concepts, report = read(path)
    assert concepts == [
        Concept("A10.0", "Fiebre azul", aliases=(Alias("azulina"),)),
        Concept("250", "Tos verde", aliases=(Alias("tos"), Alias("verdosa"))),
    ]
    assert report.places["row of a sheet that is not read"] == [
        f"{path}, sheet 'Portada'",
        f"{path}, sheet 'Bajas'",
    ]
    assert report.counts["row of a sheet that is not read"] == 4
    assert report.counts["line above the header"] == 1
    assert read(path, columns={"id": "Código", "alias": "Descripción"})[0][0] == Concept(
        "A10.0", aliases=(Alias("Fiebre azul"),)
    )


def test_codes_that_a_spreadsheet_changed_are_an_error(tmp_path: Path) -> None:
    path = write_workbook(
        tmp_path / "x.xlsx", {"a": [["code", "name"], [138875005123456789, "tos"]]}
    )
    with pytest.raises(BioclinError, match=r"row 2: 1388.* of more than 15 digits"):
        read(path)
    path = tmp_path / "x.csv"
    path.write_text("code;name\n1,38875E+17;tos\n")
    with pytest.raises(
        BioclinError, match=r"'1,38875E[+]17' is a number that a spreadsheet rounded"
    ):
        read(path)
    path.write_text("code;name\n2031-03-01;tos\nA;asma\n")
    assert read(path)[1].counts == {"id that a spreadsheet made a date": 1}


def test_without_calamine_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_workbook(tmp_path / "x.xlsx", SHEETS)
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(BioclinError, match=r"pip install 'spacy-bioclin\[excel\]'"):
        read(path)
