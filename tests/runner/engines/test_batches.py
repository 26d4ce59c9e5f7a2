"""`BatchAnnotator`: rows in, rows out."""

import pickle

import pytest
import spacy

from spacy_bioclin.errors import BioclinError

pa = pytest.importorskip("pyarrow", reason="needs pyarrow")

from spacy_bioclin.runner.engines import BatchAnnotator  # noqa: E402

pytestmark = pytest.mark.usefixtures("loaded_once")
NOTES = ["No tos. Fiebre de 38 ºC.", None, "", "Tos\0", "Tos y tos."]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "SIGN", "pattern": [{"LOWER": "tos"}]}])
    nlp.add_pipe("bioclin_context")
    folder = tmp_path_factory.mktemp("pipeline") / "model"
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def batch():
    return pa.RecordBatch.from_pydict({"id": list(range(5)), "note": NOTES})


def find(rows):
    return [
        row["entities"]
        and [(e["start"], e["end"], e["label"], e["negated"]) for e in row["entities"]]
        for row in rows
    ]


WANTED = [[(3, 6, "SIGN", True)], None, [], None, [(0, 3, "SIGN", False), (6, 9, "SIGN", False)]]


def test_a_row_for_each_row_in_order(pipeline, batch):
    annotator = BatchAnnotator(pipeline, text_column="note", keep=["id"], entity_text=True)
    made = annotator(batch)
    assert made.schema == annotator.schema(batch.schema)
    assert made.schema.names[:4] == ["id", "entities", "relations", "categories"]
    rows = made.to_pylist()
    assert find(rows) == WANTED
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[0]["entities"][0]["text"] == "tos"
    errors = [row["error"] for row in rows]
    assert errors[1] == "row 2: no 'note' (null)" and errors[3].startswith("row 4: ")
    assert [error for error in errors if error is None] == [None] * 3


def test_tables_iterators_and_pickles(pipeline, batch):
    annotator = BatchAnnotator(pipeline, text_column="note")
    annotator(batch)
    again = pickle.loads(pickle.dumps(annotator))
    assert len(pickle.dumps(annotator)) < 20_000  # without the pipeline
    table = again(pa.Table.from_batches([batch, batch]))
    assert isinstance(table, pa.Table) and find(table.to_pylist()) == WANTED * 2
    assert [find(one.to_pylist()) for one in again.map(iter([batch, batch]))] == [WANTED] * 2
    assert again(batch.slice(0, 0)).num_rows == 0


def test_an_iterator_of_texts(pipeline):
    annotator = BatchAnnotator(pipeline, text_column="note", keep=["id"])
    read = []

    def texts():
        for number in range(600):
            read.append(number)
            yield "Tos." if number % 2 else ""

    rows = annotator.notes(texts())
    assert find([next(rows)]) == [[]]
    assert len(read) == 500  # one batch, not all
    assert sum(len(row["entities"]) for row in rows) == 300


def test_what_cannot_be_done_is_said(pipeline, batch):
    with pytest.raises(BioclinError, match="no column 'text' in the batch; it has id, note"):
        BatchAnnotator(pipeline)(batch)
    with pytest.raises(BioclinError, match="no column 'ward'"):
        BatchAnnotator(pipeline, text_column="note", keep=["ward"])(batch)
    with pytest.raises(BioclinError, match="keep='entities'"):
        BatchAnnotator(pipeline, keep=["entities"])
    with pytest.raises(BioclinError, match="cannot load the pipeline"):
        BatchAnnotator("no_such_pipeline", text_column="note")(batch)
