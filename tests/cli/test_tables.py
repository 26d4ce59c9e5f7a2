"""Tables and JSON of commands."""

import io
import json

import pytest
from rich.console import Console
from rich.text import Text

from spacy_bioclin.cli.tables import print_json, print_table


def print_lines(*args, width: int = 80, **kwargs) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    print_table(*args, **kwargs, console=console)
    return [line.strip() for line in console.file.getvalue().splitlines() if line.strip()]


def test_head_title_and_footer() -> None:
    head = ("Label", "F1")
    rows = [["DRUG", "9.50"], [Text("AGE", style="bold"), "100.00"]]
    lines = print_lines(rows, head, title="Scores", right=("F1",), footer=["micro", "50.00"])
    assert lines[:2] == ["Scores", "Label       F1"]
    assert [line for line in lines if line[0].isalpha()][2:] == [
        "DRUG      9.50",
        "AGE     100.00",
        "micro    50.00",
    ]


def test_names_and_values_have_no_head() -> None:
    assert print_lines([("name", "value")]) == ["name   value"]


def test_cells_are_not_markup() -> None:
    assert print_lines([("[red]", "[/nothing] :smile:")]) == ["[red]   [/nothing] :smile:"]


def test_a_row_is_a_line_in_a_pipe() -> None:
    assert print_lines([("name", "word " * 25)], width=40) == ["name   " + ("word " * 25).strip()]


def test_json_keeps_accents(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "Galén"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"name": "Galén"} and "é" in printed
