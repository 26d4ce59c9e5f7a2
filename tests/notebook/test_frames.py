"""Data frames of what was found in Docs."""

import sys

import pytest
import spacy
from spacy.tokens import Doc

from spacy_bioclin.annotations.relations import Relation, set_relations
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.notebook import to_dataframe
from tests.notebook.notes import find, make_note

pytest.importorskip("pandas", reason="data frames need pandas")


@pytest.fixture
def doc() -> Doc:
    return make_note()


def test_a_row_for_each_entity(doc: Doc) -> None:
    frame = to_dataframe([spacy.blank("es")(""), doc])
    rows = frame[["doc", "start", "end", "label", "layer", "text"]].values.tolist()
    assert rows == [
        [1, 14, 22, "DISEASE", "ents", "diabetes"],
        [1, 34, 40, "SYMPTOM", "ents", "fiebre"],
    ]
    assert frame["family"].tolist() == [True, False]
    assert frame["negated"].tolist() == [False, True]
    assert frame["section"].tolist() == ["family_history", "present_illness"]
    assert frame["probability"].tolist() == [0.9, 0.6]
    assert frame["kb_id"].isna().tolist() == [False, True]


def test_layers(doc: Doc) -> None:
    [row] = to_dataframe(doc, layers=["measurements"]).to_dict("records")
    assert (row["value"], row["high"], row["unit"]) == (120, 80, "mm[Hg]")
    assert to_dataframe(doc, layers=None)["layer"].tolist() == ["ents", "ents", "measurements"]
    with pytest.raises(BioclinError, match="'phi'"):
        to_dataframe(doc, layers=["ents", "phi"])


def test_the_columns_do_not_depend_on_what_was_found(doc: Doc) -> None:
    full, empty = to_dataframe(doc), to_dataframe([])
    assert len(empty) == 0 and full.dtypes.equals(empty.dtypes)
    assert (~full["negated"]).tolist() == [True, False]
    # Where bioclin_context did not run, nothing is known about negation.
    plain = spacy.blank("es")("Fiebre")
    plain.ents = [find(plain, "Fiebre", "SYMPTOM")]
    assert to_dataframe(plain)["negated"].isna().all()


def test_relations(doc: Doc) -> None:
    head, child = doc.ents
    set_relations(doc, "relations", [Relation(head, child, "CAUSES", 0.75)])
    frame = to_dataframe(doc, rows="relations")
    [row] = frame.to_dict("records")
    assert (row["label"], row["probability"]) == ("CAUSES", 0.75)
    assert (row["head_text"], row["child_text"]) == ("diabetes", "fiebre")
    assert (row["head_start"], row["child_end"]) == (14, 40)
    assert frame.dtypes.equals(to_dataframe([], rows="relations").dtypes)
    with pytest.raises(BioclinError, match="'tokens': want entities or relations"):
        to_dataframe(doc, rows="tokens")  # type: ignore[arg-type]


def test_without_pandas(doc: Doc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    with pytest.raises(BioclinError, match=r"pip install \"spacy-bioclin\[notebook\]\""):
        to_dataframe(doc)
