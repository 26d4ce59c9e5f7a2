"""The corpora of the catalogue: their splits, and training on the first notes of each."""

import hashlib
import lzma
import shutil
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.vocab import Vocab
from typer.testing import CliRunner

from scripts import prepare
from spacy_bioclin.annotations.relations import get_gold_relations
from spacy_bioclin.catalog.tasks import SPLITS, Task, find_data, find_task, load_tasks
from spacy_bioclin.cli import app
from spacy_bioclin.corpora.convert import convert_to_docs, make_nlp, read_corpus
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.docs import make_gold_doc, spans_of
from spacy_bioclin.corpora.formats import find_files
from spacy_bioclin.corpora.report import LossReport
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.settings import read_settings, read_yaml

# Tasks of entities that are trained: one of each format and of each language.
TRAINED = ("nubes", "bc5cdr", "bc2gm", "quaero")
RELATIONS = ("bc5cdr-cid", "maccrobat2020-relations", "chemprot", "ddi2013", "ehealthkd-2021")
TEMIST = ("distemist", "symptemist", "medprocner")
N_DOCUMENTS = {
    "jnlpba": (1800, 200, 404),
    "maccrobat2020": (140, 20, 40),
    "distemist": (625, 125, 250),
    "symptemist": (625, 125, 250),
    "medprocner": (209, 41, 250),
}


def list_tasks() -> dict[str, Task]:
    """The open tasks of notes whose corpora are known."""
    return {
        name: task
        for name, task in load_tasks().items()
        if name != "demo" and task.access == "open" and not task.untested and not task.is_table
    }


def ids_of(data_dir: Path, task: Task, split: str) -> set[str]:
    files = find_files(task.format, [data_dir / path for path in task.splits[split]])
    return {file.stem for file in files if task.has_document(split, file.stem)}


def test_every_task_has_three_splits() -> None:
    for name, task in load_tasks().items():
        assert set(task.splits) == set(SPLITS), name
        folders = [path for paths in task.splits.values() for path in paths]
        assert len(set(folders)) == len(folders) or task.documents or task.division, name


def test_common_labels_are_spelt_in_one_way() -> None:
    tasks = load_tasks()
    shared = {label for task in tasks.values() for label in task.common_labels}
    assert {"DISEASE", "SYMPTOM", "PROCEDURE", "DRUG", "PROTEIN", "GENE", "TUMOR_MORPHOLOGY",
            "ANATOMY", "TEST", "TEST_VALUE", "DOSE", "SPECIES", "CELL"} <= shared  # fmt: skip
    assert all(label == label.upper() and label.replace("_", "").isalpha() for label in shared)
    assert tasks["bc5cdr-disease"].common_layers == {"Chemical": None, "DISEASE": "clinical"}
    for name, task in tasks.items():  # the same labels are left out
        left_out = {label for label, layer in task.layers.items() if layer is None}
        assert not task.common or all(task.common[label] is None for label in left_out), name


def test_every_common_label_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "labels.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for name, task in load_tasks().items():
        for label in task.common_labels if not name.startswith("bc5cdr-") else []:
            [row] = [row for row in rows if f"`{label}`" in row.split("|")[1]]
            assert f"`{name}`" in row


def test_common_labels_that_collide(tmp_path: Path) -> None:
    fields = load_tasks()["bc5cdr"].model_dump()
    for common, message in (
        ("{A: DRUG, B: Drug}", r"common = .*'DRUG' and 'Drug' differ only in case"),
        ("{A: LAB VALUE, B: LABVALUE}", "differ only in case or in blanks"),
        ("{A: DRUG, DRUG: null}", "'A' becomes 'DRUG', which is also a label that is left out"),
        ('{A: ""}', "the new label of 'A' is empty"),
        ("{A: 7}", "want .*(string|text)"),
        ("{A: DRUG, A: DISEASE}", "line 1: this key is given twice"),
    ):
        (tmp_path / "tasks.yml").write_text(f"common: {common}\n")
        with pytest.raises(BioclinError, match=message):
            given = read_yaml(tmp_path / "tasks.yml")["common"]
            read_settings(Task, {**fields, "common": given}, where="tasks.yml")


@pytest.mark.corpora
@pytest.mark.slow
def test_every_label_of_a_corpus_has_a_common_label(data_dir: Path) -> None:
    for name, task in list_tasks().items():
        if not task.common:
            continue
        paths = sorted({path for paths in task.splits.values() for path in paths})
        documents = read_corpus(task.format, [data_dir / path for path in paths])
        found = {span.label for document in documents for span in spans_of(document)}
        assert found == set(task.common) if "*" not in task.common else found, name


@pytest.mark.corpora
def test_lists_divide_a_folder(data_dir: Path) -> None:
    for name, n_documents in N_DOCUMENTS.items():
        ids = [ids_of(data_dir, find_task(name), split) for split in SPLITS]
        assert tuple(map(len, ids)) == n_documents
        # The original JNLPBA has ten abstracts in train and test; see tasks.yml.
        twice = 10 if name == "jnlpba" else 0
        shared = sum(map(len, ids)) - len(set.union(*ids))
        assert shared == twice and not ids[1] & (ids[0] | ids[2])


@pytest.mark.corpora
def test_the_dev_cases_of_the_three_temist_corpora_are_the_same(data_dir: Path) -> None:
    train, dev = (ids_of(data_dir, find_task("distemist"), split) for split in ("train", "dev"))
    by_hash = sorted(train | dev, key=lambda id: hashlib.sha256(id.encode()).hexdigest())
    assert dev == set(by_hash[:125])
    assert ids_of(data_dir, find_task("symptemist"), "dev") == dev
    assert ids_of(data_dir, find_task("medprocner"), "dev") < dev
    assert not any(ids_of(data_dir, find_task(name), "train") & dev for name in TEMIST)


COUNTS: list[tuple[str, str, dict[str, int], int]] = [
    ("distemist", "test", {"docs": 250, "read": 2598, "nested": 44, "crossing": 4}, 2598),
    ("symptemist", "test", {"docs": 250, "read": 3033, "nested": 6, "crossing": 12}, 2925),
    ("medprocner", "test", {"docs": 250, "read": 3618, "rounded_id": 15}, 3586),
    ("maccrobat2020", "test", {"docs": 40, "read": 5292}, 0),
    ("bc5cdr-disease", "dev", {"docs": 500, "read": 9591, "left_out": 5347}, 4228),
]


@pytest.mark.corpora
@pytest.mark.slow
@pytest.mark.parametrize(("name", "split", "counts", "n_ids"), COUNTS)
def test_every_span_is_kept_or_counted(
    data_dir: Path, name: str, split: str, counts: dict[str, int], n_ids: int
) -> None:
    task, report, found_ids = find_task(name), LossReport(), 0
    nlp = make_nlp(task.lang)
    paths = [data_dir / path for path in task.splits[split]]
    for document in read_corpus(
        task.format, paths, keep=lambda id: task.has_document(split, id), labels=task.labels
    ):
        doc = make_gold_doc(nlp, document, layers=task.layers, report=report)
        found_ids += sum(bool(span.kb_id_) for span in doc.spans["ents"])
    found = report.to_dict()
    assert {key: found[key] for key in counts} == counts and found_ids == n_ids
    assert found["kept"] == found["read"] - found["left_out"] and found["lost"] == 0
    report.check()


@pytest.mark.corpora
@pytest.mark.slow
def test_the_dev_documents_of_ddi2013_have_the_smallest_hashes(data_dir: Path) -> None:
    task = find_task("ddi2013")
    documents = [
        {
            document.id
            for document in read_corpus("ddi", [data_dir / path for path in task.splits[split]])
            if task.has_document(split, document.id)
        }
        for split in SPLITS
    ]
    assert tuple(map(len, documents)) == (714 - 71, 71, 191)
    assert len(set.union(*documents)) == 714 + 191
    by_hash = sorted(
        documents[0] | documents[1], key=lambda id: hashlib.sha256(id.encode()).hexdigest()
    )
    assert documents[1] == set(by_hash[:71])


def test_relations_of_tasks() -> None:
    tasks = load_tasks()
    known = {name for name, task in tasks.items() if task.relations}
    assert known == {"i2b2-2010-relations", *RELATIONS}
    assert tasks["ehealthkd-2021"].relations == "all" and tasks["bc5cdr"].relations == []
    assert tasks["ddi2013"].licence == "CC BY-NC 4.0"
    fields = tasks["chemprot"].model_dump()
    with pytest.raises(BioclinError, match="relations"):
        read_settings(Task, {**fields, "relations": "some"}, where="tasks.yml")


@pytest.mark.corpora
def test_composite_codes_are_several_ids(data_dir: Path, tmp_path: Path) -> None:
    folder = data_dir / "distemist" / "test" / "brat"
    source = next(
        path for path in sorted(folder.glob("*.ann")) if "COMPOSITE" in path.read_text("utf-8")
    )
    convert_to_docs("brat", [source], tmp_path / "x.spacy", lang="es")
    [doc] = read_docs(tmp_path / "x.spacy", spacy.blank("es").vocab)
    composite = [span.kb_id_ for span in doc.spans["ents"] if "|" in span.kb_id_]
    assert composite and all(id.isdigit() for ids in composite for id in ids.split("|"))


def test_a_folder_without_a_document_of_the_split(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Tos.", "utf-8")
    (tmp_path / "a.ann").write_text("", "utf-8")
    with pytest.raises(BioclinError, match=r"none of the 1 documents in .* belongs to the split"):
        list(read_corpus("brat", [tmp_path], keep=lambda id: False))


def test_a_corpus_that_nothing_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIOCLIN_DATA", str(tmp_path))
    with pytest.raises(BioclinError, match=r"get it from https://.*or set BIOCLIN_DATA"):
        find_data("distemist")
    (tmp_path / "bc5cdr").mkdir()
    assert find_data("bc5cdr-chemical") == tmp_path


def copy_first_notes(data_dir: Path, task: Task, out: Path) -> None:
    """Copy the first annotated notes of each split, in the layout of the corpus."""
    n_notes, n_abstracts, n_sentences = 2, 6, 120
    for split, paths in task.splits.items():
        for path in paths:
            if (data_dir / path).is_dir():
                files = find_files(task.format, [data_dir / path])
                chosen = [
                    file
                    for file in files
                    if task.has_document(split, file.stem)
                    and "T1\t" in file.with_suffix(".ann").read_text("utf-8")
                ]
                for file in chosen[: n_notes // len(paths) or 1]:
                    for suffix in (".txt", ".ann"):
                        target = (out / file.relative_to(data_dir)).with_suffix(suffix)
                        target.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copyfile(file.with_suffix(suffix), target)
            else:
                data, is_packed = (data_dir / path).read_bytes(), path.endswith(".xz")
                blocks = (lzma.decompress(data) if is_packed else data).decode().split("\n\n")
                n_blocks = n_abstracts if task.format == "pubtator" else n_sentences
                (out / path).parent.mkdir(parents=True, exist_ok=True)
                first = ("\n\n".join(blocks[:n_blocks]) + "\n\n").encode()
                (out / path).write_bytes(lzma.compress(first) if is_packed else first)


def prepare_first_notes(name: str, data_dir: Path, folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """RETURNS: Folder of the corpus and its config."""
    task = find_task(name)
    copy_first_notes(data_dir, task, folder / "data")
    patch.setenv("BIOCLIN_DATA", str(folder / "data"))
    prepare.main(name, task.lang, folder / "corpus")
    return folder / "corpus"


def train(corpus: Path, out: Path, encoder: Path, **settings: object) -> Language:
    fixed = {
        "paths.dev": corpus / "dev.spacy",
        "paths.encoder": encoder,
        "components.transformer.model.window": 64,
        "components.transformer.model.stride": 64,
        "training.max_steps": 2,
        "training.eval_frequency": 2,
    }
    options = [f"--{key}={value}" for key, value in {**fixed, **settings}.items()]
    done = CliRunner().invoke(app, ["train", str(corpus / "config.cfg"), "-o", str(out), *options])
    assert done.exit_code == 0, done.output
    return spacy.load(out / "model-last")


@pytest.mark.corpora
@pytest.mark.slow
def test_prepare(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each task of entities: Docs of each split, and a config for their layer."""
    for name, task in list_tasks().items():
        if task.relations:
            continue
        corpus = prepare_first_notes(name, data_dir, tmp_path / name, monkeypatch)
        [layer] = task.layer_names
        for split in SPLITS:
            docs = list(read_docs(corpus / f"{split}.spacy", Vocab()))
            assert docs and any(doc.spans[layer] for doc in docs), name
        config = spacy.util.load_config(corpus / "config.cfg")
        [head] = [key for key in config["components"] if key in ("ner", "phi")]
        assert config["components"][head]["spans_key"] == (None if layer == "ents" else layer)
        assert config["nlp"]["lang"] == task.lang
        assert config["training"]["score_weights"][task.metric] == 1.0


@pytest.mark.corpora
@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_prepare_and_train(
    data_dir: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    task = find_task(name)
    corpus = prepare_first_notes(name, data_dir, tmp_path, monkeypatch)
    settings = {
        "paths.train": corpus / "train.spacy",
        "corpora.train.max_tokens": 32,
        "training.batcher.size": 64,
    }
    nlp = train(corpus, tmp_path / "out", tiny_encoder, **settings)
    [head] = [key for key in nlp.pipe_names if key in ("ner", "phi")]
    gold = read_docs(corpus / "train.spacy", nlp.vocab)
    [layer] = task.layer_names
    labels = {span.label_ for doc in gold for span in doc.spans[layer]}
    assert set(nlp.get_pipe(head).labels) == labels  # type: ignore[attr-defined]
    assert task.metric in nlp.meta["performance"]
    predicted = nlp(next(read_docs(corpus / "test.spacy", nlp.vocab)).text)
    assert layer == "ents" or layer in predicted.spans


def keep_first(monkeypatch: pytest.MonkeyPatch, **most: int) -> None:
    """Let the splits of all tasks have only so many documents."""
    has_document = Task.has_document
    found: dict[str, set[str]] = {split: set() for split in most}

    def has_first(task: Task, split: str, id: str) -> bool:
        kept = found[split]
        if has_document(task, split, id) and len(kept) < most[split]:
            kept.add(id)
        return id in kept

    monkeypatch.setattr(Task, "has_document", has_first)


@pytest.mark.corpora
@pytest.mark.slow
@pytest.mark.parametrize("name", RELATIONS)
def test_prepare_and_train_relations(
    data_dir: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    task = find_task(name)
    monkeypatch.setenv("BIOCLIN_DATA", str(data_dir))
    keep_first(monkeypatch, train=2, dev=12, test=2)
    prepare.main(name, task.lang, tmp_path / "corpus")
    corpus = tmp_path / "corpus"
    nlp = train(corpus, tmp_path / "out", tiny_encoder, **{"paths.train": corpus / "dev.spacy"})
    assert task.metric in nlp.meta["performance"]
    labels = set(nlp.get_pipe("relations").labels)  # type: ignore[attr-defined]
    docs = read_docs(corpus / "dev.spacy", nlp.vocab)
    # Relations of concepts are kept elsewhere.
    gold = {one.label for doc in docs for one in get_gold_relations(doc) or ()}
    assert labels == (gold or set(task.relations))
    assert task.relations == "all" or labels <= set(task.relations)
