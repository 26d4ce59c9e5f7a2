"""What is in a note is never in an error, its chain, the output of a command, or a log."""

import inspect
import json
import logging
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import field_validator
from typer.testing import CliRunner

from spacy_bioclin import settings as settings_module
from spacy_bioclin.cli import app
from spacy_bioclin.corpora.files import decode, read_text
from spacy_bioclin.corpora.formats import FORMATS
from spacy_bioclin.corpora.multiclin import READERS
from spacy_bioclin.corpora.tools.inception import TYPE_SYSTEM, format_type_system
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.packaging.metrics import read_metrics
from spacy_bioclin.runner.columns import Columns
from spacy_bioclin.runner.forms import open_form
from spacy_bioclin.runner.records import Record
from spacy_bioclin.settings import Settings, read_json, read_settings, read_yaml
from tests.hostile.inputs.files import CANARY, TEXT, check_message, make_files
from tests.hostile.strategies import QUICK, notes

SUFFIXES = {name: form.suffixes[0] for name, form in FORMATS.items()}
SUFFIXES |= {"jsonl": ".jsonl", "csv": ".csv", "tsv": ".tsv", "parquet": ".parquet"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    files = make_files(tmp_path_factory.mktemp("whole"))
    return {name.partition(".")[0]: data for name, data in files.items()}


def errors_of(name: str, path: Path) -> list[BioclinError]:
    """Read a file in one of the forms; list the errors, of the file and of its records."""
    try:
        if name in FORMATS:
            FORMATS[name].read(path)  # type: ignore[call-arg]
            return []
        records = open_form(path, Columns()).read()
        return [record.error for record in records if not isinstance(record, Record)]
    except BioclinError as error:
        return [error]


BREAKS: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda data: data,
    "not UTF-8": lambda data: data + b"\xff",
    "not UTF-8 in the middle": lambda data: data[: len(data) // 2] + b"\xe9" + data,
    "UTF-16": lambda data: data.decode("latin-1").encode("utf-16"),
    "cut": lambda data: data[: len(data) * 2 // 3],
    "twice": lambda data: data + data,
    "NUL": lambda data: data.replace(b" ", b"\0", 1),
    "quotes": lambda data: data.replace(b"e", b'"', 3),
    "numbers": lambda data: data.replace(b"0", "²".encode()),
}


@pytest.mark.parametrize("half", range(2))
def test_broken_files(
    half: int,
    whole: dict[str, bytes],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in [*SUFFIXES][half::2]:
        for broken, change in BREAKS.items():
            folder = tmp_path / name / broken
            folder.mkdir(parents=True)
            check_broken(name, change, whole, folder)
    output = capfd.readouterr()
    assert CANARY not in output.out + output.err + caplog.text


def check_broken(
    name: str, change: Callable[[bytes], bytes], whole: dict[str, bytes], folder: Path
) -> None:
    path = folder / f"x{SUFFIXES[name]}"
    separator = "\t" if name == "tsv" else ","
    table = f'id{separator}text\n0{separator}"{CANARY} de 80 años"\n'.encode()
    row = json.dumps({"id": 0, "text": f"{CANARY} de 80 años"}).encode() + b"\n"
    chemprot = f"0\t{CANARY}\t{CANARY} de 80 años\n".encode()
    ddi = f'<document id="0"><sentence id="0.0" text="{CANARY} de 80 años"/></document>'.encode()
    multiclin = lzma.compress(f"{CANARY}\tB-DIS\nde\tO\n".encode())
    whole = {**whole, "chemprot": chemprot, "ddi": ddi}
    whole |= {f"multiclin-{kind}": multiclin for kind in READERS}
    data = {**whole, "jsonl": row, "csv": table, "tsv": table, "parquet": b"PAR1" + row}[name]
    path.write_bytes(change(data))
    if name == "brat":
        (folder / "x.txt").write_text(f"{CANARY} Pérez")
    elif name in ("i2b2-2010", "share-clef"):
        (folder / "x.pipe").write_bytes(change(data))
        (folder / "x.txt").write_text(TEXT)
    if name == "inception":
        (folder / TYPE_SYSTEM).write_text(format_type_system())
    if name == "chemprot":
        for file in ("x_entities.tsv", "x_relations.tsv"):
            (folder / file).write_text("")
    for error in errors_of(name, path):
        check_message(error, "x." if name == "share-clef" else path.name)


# The first line of .csv and .tsv names the columns, which errors list.
@QUICK
@given(
    notes(),
    notes(),
    st.sampled_from(sorted({*SUFFIXES} - {"csv", "tsv"})),
    st.sampled_from(["utf-8", "utf-16"]),
)
def test_notes_in_place_of_files(
    tmp_path: Path, before: str, after: str, name: str, encoding: str
) -> None:
    path = tmp_path / f"x{SUFFIXES[name]}"
    path.write_bytes(f"{before}{CANARY}{after}".encode(encoding))
    for beside in ("x.txt", "x.pipe"):
        (tmp_path / beside).write_bytes(f"{before}{CANARY}{after}".encode(encoding))
    for error in errors_of(name, path):
        check_message(error)


class Known(Settings):
    """What is known about a patient."""

    name: tuple[str, ...] | list[str] = ()
    age: int = 0

    @field_validator("name")
    @classmethod
    def _check(cls, value: list[str]) -> list[str]:
        if any(map(str.isupper, value)):
            raise ValueError("want a name")
        return value


@pytest.mark.parametrize(
    "values",
    [{"name": CANARY}, {"age": CANARY}, {"name": [CANARY.upper()]}, {"name": {CANARY: CANARY}}],
)
def test_settings_that_are_patient_data(values: dict[str, object]) -> None:
    with pytest.raises(BioclinError) as caught:
        read_settings(Known, values, where="doc._.patient", private=True)
    check_message(caught.value, "doc._.patient")
    assert CANARY.upper() not in repr((caught.value.__context__, caught.value.args))


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcd", "bcde", strict=True)
)
BAD_YAML = {
    "aliases that grow": (LAUGHS, "more than 1,000 values"),
    "an alias of itself": ("a: &a [*a]\n", "nested deeper than 100"),
    "not YAML": (f"a: [{CANARY}\nb: }}", "not YAML"),
    "a key twice": (f"a: {CANARY}\na: 2\n", "given twice"),
    "not UTF-8": (b"a: " + CANARY.encode() + b"\xff", "not YAML"),
    "an object of Python": (f"a: !!python/object/apply:os.system [{CANARY}]", "not YAML"),
}


def test_bad_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_module.MAX_VALUES <= 1_000_000
    monkeypatch.setattr(settings_module, "MAX_VALUES", 1000)
    path = tmp_path / "x.yml"
    for content, wanted in BAD_YAML.values():
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(BioclinError) as caught:
            read_yaml(path)
        check_message(caught.value, "x.yml", wanted)


@pytest.mark.parametrize("command", ["deid", "sweep"])
def test_bad_yaml_through_commands(command: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(f"Acude {CANARY}")
    arguments = {
        "deid": ["x.txt", "out.txt", "--lang", "es", "--rules-only", "--policy", "x.yml"],
        "sweep": ["x.yml", "-o", "out"],
    }[command]
    paths = [str(tmp_path / a) if a[0] in "xo" else a for a in arguments]
    for content in ("a: &a {b: *a}", "- a\n- b\n", "3", f"{CANARY}: 1"):
        (tmp_path / "x.yml").write_text(content)
        done = CliRunner().invoke(app, [command, *paths])
        assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.exception
        assert "x.yml" in done.output and "Acude" not in done.output
        assert not (tmp_path / "out.txt").exists()


def test_deep_yaml(tmp_path: Path) -> None:
    """The stack is short here: the parser of YAML needs seconds to exhaust a long one."""
    (tmp_path / "x.yml").write_text("[" * 500)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 300)
    try:
        with pytest.raises(BioclinError) as caught:
            read_yaml(tmp_path / "x.yml")
    finally:
        sys.setrecursionlimit(before)
    check_message(caught.value, "x.yml", "not YAML")


def test_yaml_with_ordinary_aliases_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text("a: &a {b: 1}\nc: *a\nd: [*a, *a]\n")
    assert read_yaml(tmp_path / "x.yml") == {"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}] * 2}


def test_bad_json(tmp_path: Path) -> None:
    bad = [b"", b"[1]", b"3", b"null", b'{"a":', b"[" * 100_000, b"\xff", b'{"a": [' * 200]
    for content in bad:
        (tmp_path / "x.json").write_bytes(content)
        with pytest.raises(BioclinError) as caught:
            read_json(tmp_path / "x.json")
        check_message(caught.value, "x.json")


METRICS = {
    "corpus": {"name": "c", "docs": 1, "words": 2},
    "scores": {},
    "layers": {},
    "speed": {},
    "date": "2026-01-01",
    "versions": {},
    "commit": None,
}
FIGURES = {"tp": 1, "fp": 0, "fn": 0, "p": 1.0, "r": 1, "f": 1.0, "f_interval": [0.0, 1.0]}


def test_metrics_of_another_shape(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    layer = {"docs": 1, "strict": {"micro": FIGURES, "per_type": {"A": FIGURES}}}
    good = {**METRICS, "layers": {"ents": layer}, "pipeline": {}}
    path.write_text(json.dumps(good))
    assert read_metrics(path) == good
    bad = [
        {**good, "corpus": "c"},
        {**good, "layers": []},
        {**good, "layers": {"ents": None}},
        {**good, "layers": {"ents": {**layer, "strict": {"micro": FIGURES}}}},
        {**good, "layers": {"ents": {**layer, "strict": {"micro": {}, "per_type": {}}}}},
        {**good, "date": 3},
        {key: value for key, value in good.items() if key != "speed"},
    ]
    for content in bad:
        path.write_text(json.dumps(content))
        with pytest.raises(BioclinError) as caught:
            read_metrics(path)
        check_message(caught.value, "x.json")


def test_texts_that_cannot_be_decoded(tmp_path: Path) -> None:
    data = f"{CANARY}\n{CANARY} año".encode("latin-1")
    (tmp_path / "x.txt").write_bytes(data)
    for read in (lambda: decode(data, "utf-8", "x."), lambda: read_text(tmp_path / "x.txt")):
        with pytest.raises(BioclinError) as caught:
            read()
        check_message(caught.value, "x.", "line 2")
