"""The fields of tasks: what fits together, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from spacy_bioclin.catalog.tasks import (
    PAPERS,
    SCORES,
    Task,
    check_fold,
    find_task,
    load_tasks,
    read_tasks,
)
from spacy_bioclin.corpora.formats import FORMATS
from spacy_bioclin.corpora.tables.formats import TABLE_FORMATS
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.published import METRICS
from spacy_bioclin.settings import read_settings

TASKS = load_tasks()
# Rows of table 2 of Lewis et al. (2020) -> task of the catalogue.
LEWIS = {
    *("bc5cdr-chemical", "bc5cdr-disease", "jnlpba", "ncbi-disease", "bc4chemd", "bc2gm"),
    *("linnaeus", "species-800", "i2b2-2010", "i2b2-2012", "i2b2-2014", "hoc", "chemprot", "gad"),
    *("euadr", "ddi2013", "i2b2-2010-relations", "mednli"),
}
MULYAR = {
    *("n2c2-2019-sts", "mednli", "rqe", "n2c2-2018", "i2b2-2014", "i2b2-2012", "i2b2-2010"),
    "quaero-emea",
}
BLUE = {
    *("medsts", "biosses", "bc5cdr-disease", "bc5cdr-chemical", "share-clef-2013", "ddi2013"),
    *("chemprot", "i2b2-2010-relations", "hoc", "mednli"),
}


def read(name: str, **changes: Any) -> Task:
    fields = TASKS[name].model_dump(exclude_unset=True)
    return read_settings(Task, {**fields, **changes}, where="tasks")


def list_tasks(paper: str) -> set[str]:
    return {name for name, task in TASKS.items() if paper in task.papers}


def test_metrics_are_those_of_the_evaluation() -> None:
    assert {score for scores in SCORES.values() for score in scores} == set(METRICS)


def test_formats_have_readers() -> None:
    for name, task in TASKS.items():
        assert task.format in (TABLE_FORMATS if task.is_table else FORMATS), name


def test_papers_have_their_tasks_and_rows() -> None:
    assert list_tasks("lewis-2020") == LEWIS
    assert list_tasks("mulyar-2020") == MULYAR
    assert list_tasks("blue") == BLUE
    assert list_tasks("carrino-2022") == {"pharmaconer", "cantemist", "ictusnet"}
    for paper, source, n_rows in (
        ("lewis-2020", "Lewis 2020, table 2", 8),
        ("carrino-2022", "Carrino 2022, table 2", 16),
        ("blue", "ouBioBERT, BLUE", 1),
        ("mulyar-2020", "Mulyar 2020, table 2", 2),
    ):
        for name in list_tasks(paper):
            rows = [row for row in TASKS[name].published if row.source == source]
            assert len(rows) >= n_rows, name


def test_published_results_are_in_percent() -> None:
    values = [row.value for task in TASKS.values() for row in task.published]
    assert all(40 < value < 100 for value in values)


def test_closed_corpora_say_how_to_get_them() -> None:
    for name, task in TASKS.items():
        assert task.access == "open" or len(task.obtain) > 40, name
        assert not task.untested or task.obtain, name


CONTRADICTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("gad", {"papers": ["lewis-2021"]}, r"papers\[0\] = 'lewis-2021': did you mean lewis-2020"),
    ("gad", {"score": "entities_strict_f"}, "score is 'entities_strict_f', want one of hoc_"),
    ("gad", {"positive": "maybe"}, "want one of the classes as positive"),
    ("gad", {"classes": []}, "want classes, or graded: true"),
    ("gad", {"layers": {"*": "ents"}}, "layers is not for a task of texts"),
    ("gad", {"division": None}, "folds need division"),
    ("gad", {"division": {"by": "text"}}, "want either dev_tenth or shares"),
    ("gad", {"division": {"by": "text", "shares": [0.9, 0.2]}}, "together at most 1"),
    ("gad", {"division": {"by": "text", "shares": [0.8, 0.1]}}, "test needs the files of"),
    ("gad", {"kind": "text"}, "kind = 'text': did you mean texts"),
    ("gad", {"access": "closed"}, "access = 'closed': .*want one of open, agreement"),
    ("gad", {"checksum": "12"}, "checksum"),
    ("biosses", {"graded": False}, "want classes, or graded: true"),
    ("biosses", {"folds": -1}, "folds"),
    ("rqe", {"classes": ["true", "true"]}, "classes has a label twice"),
    ("bc2gm", {"relations": ["A"]}, "want relations for the kind relations"),
    ("chemprot", {"relations": []}, "want relations for the kind relations"),
    ("bc2gm", {"layers": {}}, "layers is missing"),
    ("bc2gm", {"folds": 10}, "folds is not for a task of entities"),
    ("bc2gm", {"published": [{"system": "X", "value": 180.0, "source": "Y"}]}, "value"),
    ("bc2gm", {"published": [{"system": "X", "value": 80.0, "source": ""}]}, "source"),
    (
        "bc2gm",
        {"published": [{"system": "X", "value": 80.0, "source": "Y", "metric": "f"}]},
        "metric is 'f', want one of entities_strict_f, blue_entities_f",
    ),
    (
        "bc2gm",
        {"published": [{"system": "X", "value": value, "source": "Y"} for value in (8.0, 9.0)]},
        "'X' of 'Y' is there twice",
    ),
]


def test_fields_that_contradict_each_other() -> None:
    for name, changes, message in CONTRADICTIONS:
        with pytest.raises(BioclinError, match=message):
            read(name, **changes)


def test_old_entries_need_only_kind_and_score() -> None:
    task = read_settings(
        Task,
        {
            **{"kind": "entities", "lang": "en", "format": "brat", "metric": "ents_f"},
            **{"splits": {"train": ["x/a"], "dev": ["x/b"], "test": ["x/c"]}},
            **{"layers": {"*": "ents"}, "score": "entities_strict_f"},
            **{"licence": "MIT", "source": "", "commit": "", "cite": ""},
        },
        where="tasks",
    )
    assert (task.access, task.folds, task.papers, task.untested) == ("open", 0, [], False)
    assert task.fold_names == [""] and not task.is_table and task.has_own_test


def test_every_file_of_the_folder_is_read(tmp_path: Path) -> None:
    entry = (
        "one:\n  kind: entities\n  lang: en\n  format: brat\n  splits: {train: [x]}\n"
        '  layers: {"*": ents}\n  metric: ents_f\n  score: entities_strict_f\n  licence: ""\n'
        '  source: ""\n  commit: ""\n  cite: ""\n'
    )
    (tmp_path / "a.yml").write_text(entry)
    (tmp_path / "b.yml").write_text(entry.replace("one:", "two:"))
    (tmp_path / "c.yml").write_text("# No tasks yet.\n")
    assert list(read_tasks(tmp_path)) == ["one", "two"]
    (tmp_path / "d").mkdir()
    for name in ("a.yml", "b.yml"):
        (tmp_path / "d" / name).write_text(entry)
    with pytest.raises(BioclinError, match=r"b\.yml, one: another file has a task of this name"):
        read_tasks(tmp_path / "d")


def test_unknown_task_has_a_hint() -> None:
    with pytest.raises(BioclinError, match="'eu-adr' is unknown; did you mean euadr"):
        find_task("eu-adr")


def test_folds() -> None:
    gad, biosses, rqe = TASKS["gad"], TASKS["biosses"], TASKS["rqe"]
    assert gad.fold_names == [str(fold) for fold in range(10)] and gad.has_own_test
    check_fold("gad", gad, "")
    check_fold("gad", gad, "9")
    with pytest.raises(BioclinError, match="gad has no fold '10'; it has folds 0 to 9"):
        check_fold("gad", gad, "10")
    with pytest.raises(BioclinError, match="biosses has no split of its own"):
        check_fold("biosses", biosses, "")
    with pytest.raises(BioclinError, match="rqe has no fold '0'; it has one split"):
        check_fold("rqe", rqe, "0")


def test_papers_are_all_used() -> None:
    assert {paper for task in TASKS.values() for paper in task.papers} == set(PAPERS)
