"""Gold Docs of the real corpora: nothing is lost, and the way back is the same."""

from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin

from spacy_bioclin.catalog.tasks import load_tasks
from spacy_bioclin.corpora.docs import doc_to_annotated, make_gold_doc
from spacy_bioclin.corpora.files import raise_error
from spacy_bioclin.corpora.formats import FORMATS, find_files
from spacy_bioclin.corpora.readers import cut_doc
from spacy_bioclin.corpora.report import LossReport
from spacy_bioclin.types import GOLD_KEY, AnnotatedText

pytestmark = pytest.mark.corpora


def make_nlp(lang: str) -> Language:
    config = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
    nlp = spacy.blank(lang, config=config)
    nlp.add_pipe("bioclin_sentences")
    return nlp


def read(data_dir: Path, name: str, split: str) -> list[AnnotatedText]:
    task = load_tasks()[name]
    files = find_files(task.format, [data_dir / path for path in task.splits[split]])
    return [doc for file in files for doc in FORMATS[task.format].read(file, raise_error)]


@pytest.mark.parametrize(
    "name, split, counts",  # nested: spans; in pairs, as the data sheet counts, it is 67 + 41
    [
        ("ncbi-disease", "dev", {"docs": 100, "read": 787}),
        pytest.param("meddocan", "dev", {"docs": 250, "read": 5801}, marks=pytest.mark.slow),
        pytest.param("pharmaconer", "dev", {"docs": 250, "read": 1926}, marks=pytest.mark.slow),
        pytest.param(
            *("pharmaconer", "train", {"docs": 500, "read": 3822, "wrong_offset": 5}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("cantemist", "dev", {"docs": 500, "read": 6001, "nested": 61 + 37, "crossing": 2}),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_no_span_is_lost(data_dir: Path, name: str, split: str, counts: dict[str, int]) -> None:
    task = load_tasks()[name]
    nlp = make_nlp(task.lang)
    report = LossReport()
    documents = read(data_dir, name, split)
    docs = [make_gold_doc(nlp, doc, layers=task.layers, report=report) for doc in documents]
    found = report.to_dict()
    assert {key: found[key] for key in counts} == counts
    assert found["lost"] == found["duplicate"] == found["discontinuous"] == 0
    report.check()
    (layer,) = task.layers.values()
    assert [doc.text for doc in docs] == [document.text for document in documents]
    n_parts, some = 0, docs[:100]  # cutting is dear
    for doc in some:
        parts = cut_doc(doc, 128)
        n_parts += len(parts)
        assert "".join(part.text for part in parts) == doc.text
        assert sum(len(part.spans[layer]) for part in parts) == len(doc.spans[layer])
        gold = [item for part in parts for item in part.user_data[GOLD_KEY]["layers"][layer]]
        assert len(gold) == len(doc.user_data[GOLD_KEY]["layers"][layer])
        assert max(map(len, parts)) <= 128
    assert n_parts > len(some)


@pytest.mark.parametrize(
    "name, n_documents",
    [
        ("pharmaconer", 5),
        *(
            pytest.param(name, 25, marks=pytest.mark.slow)
            for name in ("meddocan", "cantemist", "nubes")
        ),
    ],
)
def test_brat_to_doc_to_brat(data_dir: Path, name: str, n_documents: int) -> None:
    task = load_tasks()[name]
    nlp = make_nlp(task.lang)
    documents = read(data_dir, name, "dev")[:n_documents]
    docs = [make_gold_doc(nlp, document, layers=task.layers) for document in documents]
    data = DocBin(store_user_data=True, docs=docs).to_bytes()
    for doc, source in zip(DocBin().from_bytes(data).get_docs(nlp.vocab), documents, strict=True):
        assert doc_to_annotated(doc, id="?") == source._replace(source="")


@pytest.mark.slow
def test_every_span_of_quaero_is_kept(data_dir: Path) -> None:
    # Of 10,926 spans, those that are snapped are slips of the annotation.
    task = load_tasks()["quaero"]
    nlp = make_nlp(task.lang)
    for split, counts in (
        ("train", {"read": 5689, "snapped": 1, "nested": 1173, "discontinuous": 40}),
        ("dev", {"read": 5237, "snapped": 8, "nested": 1114, "discontinuous": 36}),
    ):
        report = LossReport()
        for document in read(data_dir, "quaero", split):
            doc = make_gold_doc(nlp, document, layers=task.layers, report=report)
            assert doc.text == document.text
        found = report.to_dict()
        assert found["docs"] == 844
        assert {key: found[key] for key in counts} == counts
        assert found["kept"] == found["read"] and found["lost"] == found["wrong_offset"] == 0
        report.check()
