"""Relations of the real corpora: as many as their authors count, and none is lost."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from spacy.tokens import Doc

from spacy_bioclin.annotations.relations import get_gold_concept_relations, get_gold_relations
from spacy_bioclin.catalog.tasks import find_task
from spacy_bioclin.corpora.convert import make_nlp, read_corpus
from spacy_bioclin.corpora.docs import make_gold_doc
from spacy_bioclin.corpora.formats import FORMATS
from spacy_bioclin.corpora.readers import cut_doc
from spacy_bioclin.corpora.report import LossReport

pytestmark = pytest.mark.corpora


def convert(
    data_dir: Path, name: str, split: str, relations: list[str] | None = None
) -> tuple[list[Doc], LossReport]:
    task, report = find_task(name), LossReport()
    nlp = make_nlp(task.lang)
    documents = read_corpus(
        task.format,
        [data_dir / path for path in task.splits[split]],
        labels=task.labels,
        keep=lambda id: task.has_document(split, id),
    )
    docs = [
        make_gold_doc(
            nlp,
            document,
            layers=task.layers,
            relations=relations or task.relations,
            level=FORMATS[task.format].level,
            report=report,
        )
        for document in documents
    ]
    return docs, report


def count_kept(docs: Iterable[Doc]) -> int:
    both = (
        (*(get_gold_relations(doc) or ()), *(get_gold_concept_relations(doc) or ())) for doc in docs
    )
    return sum(map(len, both))


@pytest.mark.parametrize(
    "name, split, counts",
    [
        # 2,427 relations of the five groups are 2,416 pairs: eleven have two types of one group.
        pytest.param(
            "chemprot", "dev", {"docs": 612, "read": 15567, "relations_read": 3558,
                                "relations_kept": 2416, "relation_duplicate": 11},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "ddi2013", "test", {"docs": 191, "read": 2512 + 528, "relations_read": 979,
                                "relations_kept": 979},
            marks=pytest.mark.slow,
        ),
        ("ddi2013", "dev", {"docs": 71, "relations_read": 371, "relations_kept": 371}),
        pytest.param(
            "bc5cdr-cid", "dev", {"docs": 500, "read": 9591, "relations_read": 1012,
                                  "relations_kept": 1012},
            marks=pytest.mark.slow,
        ),
        # With the lines "*", of which the Spanish half has four.
        ("ehealthkd-2021", "dev", {"docs": 2, "relations_read": 146 + 229 + 4,
                                   "relations_kept": 379}),
        pytest.param(
            "maccrobat2020-relations", "dev", {"docs": 20, "read": 2759, "relations_kept": 1496,
                                               "relation_duplicate": 1},
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_relations(data_dir: Path, name: str, split: str, counts: dict[str, int]) -> None:
    docs, report = convert(data_dir, name, split)
    found = report.to_dict()
    assert {key: found[key] for key in counts} == counts
    assert found["lost"] == found["relations_lost"] == 0 and not found["unused_relations"]
    report.check()
    assert count_kept(docs) == found["relations_kept"]
    is_concept = name == "bc5cdr-cid"
    assert all((get_gold_relations(doc) is None) == is_concept for doc in docs)
    assert all((get_gold_concept_relations(doc) is None) != is_concept for doc in docs)


@pytest.mark.slow
def test_all_interactions_of_ddi2013(data_dir: Path) -> None:
    docs, report = convert(data_dir, "ddi2013", "train")
    found = report.to_dict()
    # The authors count 4,021 of train, one of them without a type; 371 are in dev.
    assert found["relations_read"] == 1687 + 1319 + 826 + 188 + 1 - 371 == 3650
    assert (found["relations_kept"], found["relation_other"], found["lost"]) == (3649, 1, 0)
    assert found["discontinuous"] + 9 == 49 - 2 and found["wrong_offset"] == 4
    for doc in docs:
        sentences = doc.text.split("\n")
        assert len(sentences) > 0 and doc.user_data


def test_parts_keep_relations_within_sentences(data_dir: Path) -> None:
    docs, report = convert(data_dir, "ehealthkd-2021", "dev")
    parts = [part for doc in docs for part in cut_doc(doc, 128)]
    assert len(parts) > 10 and count_kept(parts) <= report.relations_kept
    for part in parts:
        for relation in get_gold_relations(part) or ():
            for start, end, label in (relation.head, relation.child):
                spans = part.user_data["bioclin_gold"]["layers"]["ents"]
                assert [start, end, label] in [fields[:3] for fields in spans]
