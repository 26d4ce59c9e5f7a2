"""Notes without an id of their own are named, and the others read as they are."""

from itertools import pairwise

import pytest

from spacy_bioclin.runner.columns import Columns
from spacy_bioclin.runner.records import Record
from spacy_bioclin.runner.sources import distinct
from spacy_bioclin.runner.sources.chosen import Chosen
from spacy_bioclin.runner.sources.distinct import Distinct, SeenIds
from spacy_bioclin.runner.sources.opening import open_notes
from tests.runner.fixtures import write_rows

IDS = Columns(id="id")


def test_the_first_note_of_an_id_is_read(tmp_path):
    rows = [{"id": id, "text": "Tos."} for id in ("a", "b", "a", "c", "b")]
    form = open_notes(write_rows(tmp_path / "n.csv", rows), IDS)
    one = Distinct(form)
    for _ in range(2):
        found = list(one.read())
        numbers = [each.number for each in found if isinstance(each, Record)]
        assert numbers == [1, 2, 4] and [each.number for each in found] == [1, 2, 3, 4, 5]
    assert str(found[2].error) == (
        f"{form.path}, line 4: an earlier note has the same id; ids must differ, see --id-column"
    )
    assert one.done == one.total == form.total and one.count() == 5
    assert (one.fingerprint(), one.describe()) == (form.fingerprint(), form.describe())


def test_only_chosen_notes_are_compared(tmp_path):
    earlier = write_rows(tmp_path / "old.jsonl", [{"id": "a"}])
    rows = [{"id": id, "text": "Tos."} for id in ("a", "b", "a")]
    source = write_rows(tmp_path / "n.jsonl", rows)
    form = Distinct(Chosen(open_notes(source, IDS), sample=None, seed=0, since=[earlier]))
    assert [type(each) for each in form.read()] == [Record]
    assert form.known == 2 and form.done == form.total


@pytest.mark.parametrize("recent", [1, 2, 7, 1000])
def test_ids_that_were_seen_are_known(recent, monkeypatch):
    monkeypatch.setattr(distinct, "RECENT_IDS", recent)
    seen = SeenIds()
    numbers = [n * n % 101 for n in range(300)]
    assert [seen.add(str(n)) for n in numbers] == [
        n not in numbers[:i] for i, n in enumerate(numbers)
    ]
    lengths = [len(hashes) for hashes in seen._sorted]
    assert all(first > 2 * then for first, then in pairwise(lengths))
