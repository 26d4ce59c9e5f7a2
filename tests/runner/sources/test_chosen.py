"""A sample is exact and the same each time; notes of earlier outputs are left out."""

import json
from collections import Counter

import numpy as np
import pytest
import spacy

from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner.columns import Columns
from spacy_bioclin.runner.parts import cut
from spacy_bioclin.runner.records import Record, Unreadable
from spacy_bioclin.runner.sources.chosen import Chosen, read_earlier_ids
from spacy_bioclin.runner.sources.opening import open_notes
from tests.runner.fixtures import write_rows

IDS = Columns(id="id")
ALL = {"sample": None, "seed": 0}


def make_rows(*numbers):
    return [{"id": f"a{n}", "text": f"Nota {n}.", "n": n} for n in numbers]


@pytest.fixture
def open_rows(tmp_path):
    def open_them(numbers, name="notes.jsonl", columns=IDS):
        return open_notes(write_rows(tmp_path / name, make_rows(*numbers)), columns)

    return open_them


def read_numbers(form):
    return [record.number for record in form.read()]


def test_a_sample_has_exactly_so_many(open_rows):
    names = ("notes.jsonl", "notes.csv", "notes.parquet", "notes")
    for name, n in (*((name, 7) for name in names), *((names[0], n) for n in (1, 50, 100, 101))):
        columns = IDS if "." in name else Columns()
        form = Chosen(open_rows(range(100), name, columns), sample=n, seed=0)
        numbers = read_numbers(form)
        assert len(numbers) == form.total == form.count() == min(n, 100)
        assert numbers == sorted(set(numbers)) and form.done == form.total
        assert read_numbers(form) == numbers
        again = Chosen(open_rows(range(100), name, columns), sample=n, seed=0)
        assert read_numbers(again) == numbers
        if n in (7, 50):
            other = Chosen(open_rows(range(100), name, columns), sample=n, seed=1)
            assert read_numbers(other) != numbers


def test_a_sample_is_cut_into_whole_parts(open_rows):
    """By its own positions: the numbers of its notes are far apart."""
    form = Chosen(open_rows(range(1000)), sample=5, seed=0)
    parts = list(cut(form.read(), 2))
    assert [part.number for part in parts] == [0, 1, 2]
    assert [len(part.records) for part in parts] == [2, 2, 1]
    assert [record.number for part in parts for record in part.records] == read_numbers(form)


def test_every_note_has_the_same_chance(open_rows):
    """In 400 samples of 5 of 20, each note is in 100, give or take 4 standard deviations."""
    form = open_rows(range(20))
    counts = Counter(
        number for seed in range(400) for number in read_numbers(Chosen(form, sample=5, seed=seed))
    )
    assert sorted(counts) == list(range(1, 21))
    deviation = (400 * 0.25 * 0.75) ** 0.5
    assert all(abs(n - 100) < 4 * deviation for n in counts.values())


def test_records_that_cannot_be_read_are_among_the_sample(open_rows, tmp_path):
    path = write_rows(tmp_path / "bad.jsonl", make_rows(*range(10)))
    with path.open("a") as file:
        file.write("not JSON\n" * 10)
    form = Chosen(open_notes(path, IDS), sample=20, seed=0)
    assert [type(each) for each in form.read()] == [Record] * 10 + [Unreadable] * 10


def write_output(path, ids):
    """Write an earlier output, as far as it is read."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"record": 1, "id": id}) + "\n" for id in ids))
    elif path.suffix == ".csv":
        path.write_text("".join(f'"{id}","a, b"\n' for id in ["note_id", *ids]))
    elif path.suffix == ".parquet":
        write_rows(path, [{"note_nlp_id": 1, "note_id": id} for id in ids])
    else:
        (path / "notes").mkdir(parents=True)
        for n, id in enumerate(ids):
            write_rows(path / "notes" / f"{n:05}.parquet", [{"record": 1, "id": id}])
    return path


@pytest.mark.parametrize("name", ["out.jsonl", "out", "out.csv", "out.parquet"])
def test_notes_of_earlier_outputs_are_left_out(name, open_rows, tmp_path):
    first = write_output(tmp_path / name, ["a0", "a5", "a50", "gone"])
    second = write_output(tmp_path / f"second.{name}", ["a7", "a5"])
    form = Chosen(open_rows(range(10)), sample=None, seed=0, since=[first, second])
    assert [record.row["n"] for record in form.read()] == [1, 2, 3, 4, 6, 8, 9]
    assert form.known == 3
    assert read_numbers(form) == [2, 3, 4, 5, 7, 9, 10] and form.known == 3  # numbers of the input
    sample = Chosen(open_rows(range(10)), sample=4, seed=0, since=[first, second])
    numbers = read_numbers(sample)
    assert len(numbers) == 4 and set(numbers) <= {2, 3, 4, 5, 7, 9, 10} and sample.known == 3
    about = form.describe()
    write_output(tmp_path / "third.jsonl", ["a9"])
    third = Chosen(open_rows(range(10)), sample=None, seed=0, since=[tmp_path / "third.jsonl"])
    assert third.describe()["since"] != about["since"]
    assert str(tmp_path) not in json.dumps(about)


def test_an_earlier_output_may_be_empty(open_rows, tmp_path):
    form = Chosen(
        open_rows(range(3)), sample=None, seed=0, since=[write_output(tmp_path / "o.jsonl", [])]
    )
    assert read_numbers(form) == [1, 2, 3] and form.known == 0


def test_names_of_files_and_keys_are_ids_too(open_rows, tmp_path):
    earlier = write_output(tmp_path / "out.jsonl", ["a1"])
    form = Chosen(open_rows(range(3), "notes", Columns()), sample=None, seed=0, since=[earlier])
    assert [record.row["file"] for record in form.read()] == ["a0.txt", "a2.txt"]


def test_ids_are_needed(open_rows, tmp_path):
    earlier = write_output(tmp_path / "out.jsonl", ["1"])
    with pytest.raises(BioclinError, match="--since tells notes by their ids: give --id-column"):
        Chosen(open_rows(range(3), columns=Columns()), sample=None, seed=0, since=[earlier])
    path = write_rows(tmp_path / "no.jsonl", [{"id": "", "text": "x"}, *make_rows(1)])
    first, second = Chosen(open_notes(path, IDS), sample=None, seed=0, since=[earlier]).read()
    assert "no.jsonl, line 1: no 'id' (empty)" in str(first.error) and second.row["n"] == 1
    write_docs([spacy.blank("es")("Tos.")], tmp_path / "no.spacy")
    [first] = Chosen(open_notes(tmp_path / "no.spacy", Columns()), since=[earlier], **ALL).read()
    assert "no.spacy, Doc 1: has no id" in str(first.error)


def test_what_is_no_output_is_refused(open_rows, tmp_path):
    (tmp_path / "out.jsonl").write_text('{"id": "Prado\n')
    (tmp_path / "other.jsonl").write_text('{"text": "Prado"}\n')
    (tmp_path / "folder").mkdir()
    (tmp_path / "table.csv").write_text("Prado\n1\n")
    (tmp_path / "out.spacy").mkdir()
    for name, fault in (
        ("out.jsonl", "cannot be read (JSONDecodeError)"),
        ("other.jsonl", "cannot be read (KeyError)"),
        ("folder", "is none"),
        ("table.csv", "cannot be read (KeyError)"),
        ("out.spacy", "is none"),
        ("none.jsonl", "no such file or folder"),
    ):
        with pytest.raises(BioclinError) as error:
            Chosen(open_rows(range(3)), sample=None, seed=0, since=[tmp_path / name])
        assert fault in str(error.value) and "want an output of `bioclin run`" in str(error.value)
        assert "Prado" not in str(error.value) and error.value.__context__ is None


def test_many_ids_are_found_by_their_hashes(tmp_path):
    """Hashes may end in zeros, which numpy leaves out of a string."""
    path = write_output(tmp_path / "out.jsonl", [f"n{i}" for i in range(2_000)])
    hashes = read_earlier_ids([path])
    assert hashes.dtype == np.dtype("S16") and hashes.nbytes == 16 * 2_000
    rows = [{"id": f"n{i}", "text": ""} for i in range(1_500, 2_500)]
    source = write_rows(tmp_path / "notes.jsonl", rows)
    form = Chosen(open_notes(source, IDS), sample=None, seed=0, since=[path])
    assert [record.row["id"] for record in form.read()] == [f"n{i}" for i in range(2_000, 2_500)]
    assert any(len(each) < 16 for each in hashes)
