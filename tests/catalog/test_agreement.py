"""Tasks of corpora that need an agreement, converted from files invented in their layout."""

import hashlib
import json
from pathlib import Path

import pytest
from spacy.vocab import Vocab

from spacy_bioclin.annotations.pairs import SCORE
from spacy_bioclin.annotations.relations import get_gold_relations
from spacy_bioclin.catalog.tasks import SPLITS, find_task, load_tasks
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.settings import read_settings
from spacy_bioclin.training.corpora import convert_task

TEXT = "Given aspirin for fever ."
N_NOTES = 24


def make_i2b2_2010(train: str, test: str) -> dict[str, str]:
    files = {}
    con = 'c="aspirin" 1:1 1:1||t="treatment"\nc="fever" 1:3 1:3||t="problem"\n'
    rel = 'c="aspirin" 1:1 1:1||r="TrAP"||c="fever" 1:3 1:3\n'
    for n in range(N_NOTES):
        folder = f"{train}/{('beth', 'partners')[n % 2]}"
        files |= {
            f"{folder}/txt/record-{n}.txt": TEXT,
            f"{folder}/concept/record-{n}.con": con,
            f"{folder}/rel/record-{n}.rel": rel,
        }
    return {
        **files,
        f"{test}/concepts/0001.con": con,
        f"{test}/rel/0001.rel": rel,
        "i2b2-2010/test_data/0001.txt": TEXT,
    }


def make_i2b2_2012(train: str, test: str) -> dict[str, str]:
    content = (
        f"<X><TEXT><![CDATA[\n{TEXT}\n]]></TEXT>\n<TAGS>\n"
        '<EVENT id="E0" start="7" end="14" text="aspirin" type="TREATMENT" />\n'
        '<TIMEX3 id="T0" start="1" end="6" text="Given" type="DATE" val="2000" mod="NA" />\n'
        "</TAGS></X>\n"
    )
    names = [*(f"{train}/{n}.xml" for n in range(N_NOTES)), f"{test}/900.xml"]
    return dict.fromkeys(names, content)


def make_i2b2_2014(train: str, test: str) -> dict[str, str]:
    content = (
        f"<deIdi2b2><TEXT><![CDATA[{TEXT}]]></TEXT>\n<TAGS>"
        '<NAME id="P0" start="6" end="13" text="aspirin" TYPE="PATIENT" comment=""/></TAGS>'
        "</deIdi2b2>"
    )
    second = train.replace("Set1", "Set2")
    names = [f"{(train, second)[n % 2]}/{n}-01.xml" for n in range(N_NOTES)]
    return dict.fromkeys([*names, f"{test}/900-01.xml"], content)


def make_brat(train: str, test: str) -> dict[str, str]:
    names = [*(f"{train}/{n}" for n in range(N_NOTES)), f"{test}/900"]
    ann = "T1\tDrug 6 13\taspirin\n"
    return {f"{name}{end}": c for name in names for end, c in ((".txt", TEXT), (".ann", ann))}


def make_share_clef(train: str, test: str) -> dict[str, str]:
    files = {}
    for text in [*(f"{train}/{n}.txt" for n in range(N_NOTES)), f"{test}/900.txt"]:
        name = text.rpartition("/")[2]
        pipe = text.replace("/text/", "/pipe/")
        files |= {text: TEXT, pipe: f"{name}||Disease_Disorder||C0015967||18||23\n"}
    return files


def make_sts(train: str, test: str) -> dict[str, str]:
    pairs = "".join(f"Takes {n} pills.\tTakes pills.\t{n % 6}\n" for n in range(N_NOTES))
    test_pairs = "Has fever.\tNo fever.\n"
    return {train: pairs, test: test_pairs, test.replace(".txt", ".gs.sim.txt"): "1.5\n"}


def make_mednli(train: str, test: str) -> dict[str, str]:
    files = {}
    for split in ("train", "dev", "test"):
        rows = [
            {"pairID": f"{split}{label}", "sentence1": "a", "sentence2": "b", "gold_label": label}
            for label in ("entailment", "neutral", "contradiction")
        ]
        content = "".join(json.dumps(row) + "\n" for row in rows)
        files[train.replace("train", split)] = content
    return files


MAKERS = {
    "i2b2-2010": make_i2b2_2010,
    "i2b2-2010-relations": make_i2b2_2010,
    "i2b2-2012": make_i2b2_2012,
    "i2b2-2014": make_i2b2_2014,
    "n2c2-2018": make_brat,
    "n2c2-2019-sts": make_sts,
    "medsts": make_sts,
    "mednli": make_mednli,
    "share-clef-2013": make_share_clef,
    "ictusnet": None,  # nothing is known of its files
}


def test_every_such_task_is_tested() -> None:
    agreement = {name for name, task in load_tasks().items() if task.access != "open"}
    assert set(MAKERS) == agreement
    assert all(load_tasks()[name].untested for name in agreement)


@pytest.mark.parametrize("name", [name for name, make in MAKERS.items() if make])
def test_convert(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, make = find_task(name), MAKERS[name]
    assert make is not None
    files = make(task.splits["train"][0], task.splits["test"][0])
    for file, content in files.items():
        path = tmp_path / "data" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    monkeypatch.setenv("BIOCLIN_DATA", str(tmp_path / "data"))
    out = tmp_path / "out"
    out.mkdir()
    convert_task(name, task, out)
    vocab = Vocab()
    docs = {split: list(read_docs(out / f"{split}.spacy", vocab)) for split in SPLITS}
    assert all(docs.values())
    if name != "mednli":
        assert len(docs["train"]) + len(docs["dev"]) == N_NOTES and len(docs["test"]) == 1
    for split in SPLITS:
        for doc in docs[split]:
            if task.is_table:
                assert set(doc.cats) == ({SCORE} if task.graded else set(task.classes))
                continue
            [layer] = task.layer_names
            wanted = {"share-clef-2013": ["fever"]}.get(name, ["aspirin"])
            wanted = ["aspirin", "fever"] if task.format == "i2b2-2010" else wanted
            assert [span.text for span in doc.spans[layer]] == wanted
            assert len(get_gold_relations(doc) or ()) == bool(task.relations)


def test_notes_are_divided_by_the_hash_of_their_id() -> None:
    task = find_task("i2b2-2010")
    ids = [f"record-{n}" for n in range(200)]
    dev = [id for id in ids if task.has_document("dev", id)]
    assert dev == [id for id in ids if int(hashlib.sha256(id.encode()).hexdigest(), 16) % 10 == 0]
    assert 10 < len(dev) < 40
    assert [id for id in ids if task.has_document("train", id)] == [
        id for id in ids if id not in dev
    ]
    assert all(task.has_document("test", id) for id in ids)


def test_other_divisions_are_not_for_notes() -> None:
    fields = load_tasks()["i2b2-2010"].model_dump(exclude_unset=True)
    for division in ({"by": "text", "dev_tenth": 0}, {"by": "id", "shares": [0.8, 0.1]}):
        with pytest.raises(BioclinError, match="want division by id, with a dev_tenth, for notes"):
            read_settings(type(find_task("demo")), {**fields, "division": division}, where="tasks")


def test_files_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIOCLIN_DATA", str(tmp_path))
    with pytest.raises(BioclinError, match="sign the data use agreement of the n2c2 data portal"):
        convert_task("i2b2-2012", find_task("i2b2-2012"), tmp_path / "out")
