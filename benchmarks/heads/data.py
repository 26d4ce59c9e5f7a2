"""The corpora of relations, pairs and whole texts, converted by the package's own commands.

    python -m benchmarks.heads.data chemprot rqe

prints how many documents, relations and labels each split has.

Relations are the tasks of the catalogue. The others are made into tables here, which `bioclin
convert-table` reads. Splits of those without official ones, or without a dev split, follow the
SHA-256 of a key, so that they never depend on the order of a file:

- rqe: dev is a tenth of the official train, by the longer question (`chq`), because pairs with the
  same question follow one another. One pair of train has an empty question and is left out.
- hoc, hoc-nodes: 70 % of the abstracts are train, 10 % dev and 20 % test, as many as in BLUE, whose
  ids are not in the corpus. The abstracts without any label are left out, as BLUE does: 1,580 stay.
- biosses: ten folds, each of 64, 16 and 20 pairs as in BLUE, whose ids are not in the corpus.
- gad: the published fold, and three of the texts of its train and test together, of which a tenth
  is test and another one dev.
"""

import hashlib
import json
import xml.etree.ElementTree
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import spacy

from benchmarks.harness import WORK, data_dir, make_parser, run_python
from spacy_bioclin.annotations.relations import get_gold_concept_relations, get_gold_relations
from spacy_bioclin.catalog.tasks import find_task
from spacy_bioclin.corpora.docbin import read_docs

SPLITS = ("train", "dev", "test")
RELATIONS = ("chemprot", "ddi2013", "bc5cdr-cid", "ehealthkd-2021", "maccrobat2020-relations")
PUBLISHED = "published"  # the fold that authors gave
Row = dict[str, Any]


class Table(NamedTuple):
    """How a corpus of texts or pairs becomes tables.

    read (Callable): Fold -> split -> rows.
    options (tuple[str, ...]): Of `bioclin convert-table`.
    folds (tuple[str, ...]): The folds; ("",) if there is only one split.
    """

    read: Callable[[str], Mapping[str, list[Row]]]
    options: tuple[str, ...]
    folds: tuple[str, ...] = ("",)


def rank(key: str) -> str:
    """Give a key its place in a split: its SHA-256."""
    return hashlib.sha256(key.encode()).hexdigest()


def in_tenth(key: str, tenth: int) -> bool:
    """Check whether a key is in a tenth, from 0 to 9, of all keys."""
    return int(rank(key), 16) % 10 == tenth


def cut(keys: Iterable[str], n_train: int, n_dev: int) -> dict[str, list[str]]:
    """Split keys by their rank: the first are train, the next dev, the rest test."""
    ranked = sorted(set(keys), key=rank)
    ends = n_train, n_train + n_dev
    return {"train": ranked[: ends[0]], "dev": ranked[ends[0] : ends[1]], "test": ranked[ends[1] :]}


def read_rqe(fold: str) -> dict[str, list[Row]]:
    """Read the pairs of questions; white space is that of one line."""

    def read(split: str, name: str) -> list[Row]:
        root = xml.etree.ElementTree.parse(data_dir() / "rqe" / name).getroot()
        return [
            {
                "id": f"{split}-{pair.get('pid')}",
                "chq": " ".join((pair.findtext("chq") or "").split()),
                "faq": " ".join((pair.findtext("faq") or "").split()),
                "entails": pair.get("value"),
            }
            for pair in root.iter("pair")
            if all((pair.findtext(name) or "").strip() for name in ("chq", "faq"))
        ]

    rows = read("train", "RQE_Train_8588_AMIA2016.xml")
    return {
        "train": [row for row in rows if not in_tenth(row["chq"], 0)],
        "dev": [row for row in rows if in_tenth(row["chq"], 0)],
        "test": read("test", "RQE_Test_302_pairs_AMIA2016.xml"),
    }


def read_biosses(fold: str) -> dict[str, list[Row]]:
    """Read the pairs of sentences with the mean of five annotators, in one of ten folds."""
    lines = (data_dir() / "biosses" / "biosses.tsv").read_text("utf-8").splitlines()
    header = lines[0].split("\t")
    rows = {}
    for line in lines[1:]:
        values = dict(zip(header, line.split("\t"), strict=True))
        rows[values["pair_id"]] = {
            "id": values["pair_id"],
            "first": values["sentence1"],
            "second": values["sentence2"],
            "similarity": float(values["mean_score"]),
        }
    keys = cut((f"{fold}:{id}" for id in rows), 64, 16)
    return {split: [rows[key.split(":")[1]] for key in keys[split]] for split in SPLITS}


def list_nodes(label: str, depth: int) -> list[str]:
    """List a node of the hallmarks with its parents, down to a depth.

    label (str): "Resisting cell death--Apoptosis"; its last level may be empty.
    """
    levels = [level.strip() for level in label.split("--") if level.strip()]
    return ["--".join(levels[:n]) for n in range(1, min(depth, len(levels)) + 1)]


def read_hoc(fold: str, *, depth: int = 1) -> dict[str, list[Row]]:
    """Read the sentences of abstracts with their hallmarks of cancer.

    depth (int): How many levels of labels.
    """
    abstracts: dict[str, list[Row]] = {}
    folder = data_dir() / "hoc"
    for path in sorted((folder / "labels").glob("*.txt")):
        text = (folder / "text" / path.name).read_text("utf-8")
        sentences = [line for line in text.split("\n") if line.strip()]
        segments = path.read_text("utf-8").split("<")[1:]
        rows = [
            {
                "id": f"{path.stem}-{n}",
                "sentence": sentence.strip(),
                "hallmarks": sorted(
                    {
                        node
                        for label in segment.split(" AND")
                        if label.strip() != "NULL"
                        for node in list_nodes(label, depth)
                    }
                ),
            }
            for n, (sentence, segment) in enumerate(zip(sentences, segments, strict=True))
        ]
        if any(row["hallmarks"] for row in rows):
            abstracts[path.stem] = rows
    n_train, n_dev = (round(part * len(abstracts)) for part in (0.7, 0.1))
    ids = cut(abstracts, n_train, n_dev)
    return {split: [row for id in ids[split] for row in abstracts[id]] for split in SPLITS}


def read_gad(fold: str) -> dict[str, list[Row]]:
    """Read the sentences in which a gene and a disease are masked; a sentence twice stays twice."""
    found: dict[str, list[Row]] = {}
    for split in ("train", "test"):
        lines = (data_dir() / "gad" / f"{split}.tsv").read_text("utf-8").splitlines()
        rows = [line.split("\t")[-2:] for line in lines if not line.startswith("index\t")]
        found[split] = [
            {
                "id": f"{split}-{n}",
                "sentence": sentence,
                "associated": {"1": "yes"}.get(label, "no"),
            }
            for n, (sentence, label) in enumerate(rows)
        ]
    if fold == PUBLISHED:
        tenths = {"train": found["train"], "test": found["test"]}
        dev = 9
    else:
        rows_of_both = found["train"] + found["test"]
        test = [row for row in rows_of_both if in_tenth(row["sentence"], int(fold))]
        rest = [row for row in rows_of_both if not in_tenth(row["sentence"], int(fold))]
        tenths = {"train": rest, "test": test}
        dev = (int(fold) + 5) % 10
    return {
        "train": [row for row in tenths["train"] if not in_tenth(row["sentence"], dev)],
        "dev": [row for row in tenths["train"] if in_tenth(row["sentence"], dev)],
        "test": tenths["test"],
    }


HOC_OPTIONS = ("--text", "sentence", "--label", "hallmarks", "--separator", "|")
TABLES = {
    "rqe": Table(read_rqe, ("--text", "chq", "--second", "faq", "--label", "entails")),
    "biosses": Table(
        read_biosses,
        ("--text", "first", "--second", "second", "--score", "similarity"),
        tuple(map(str, range(10))),
    ),
    "hoc": Table(read_hoc, HOC_OPTIONS),
    "hoc-nodes": Table(lambda fold: read_hoc(fold, depth=9), HOC_OPTIONS),
    "gad": Table(
        read_gad, ("--text", "sentence", "--label", "associated"), (PUBLISHED, "0", "1", "2")
    ),
}
NAMES = (*RELATIONS, *TABLES)


def list_folds(task: str) -> tuple[str, ...]:
    """List the folds of a task; ("",) if it has only one split."""
    return TABLES[task].folds if task in TABLES else ("",)


def find_lang(task: str) -> str:
    """Find the language of a task."""
    return "en" if task in TABLES else find_task(task).lang


def prepare(task: str, fold: str = "") -> Path:
    """Convert a corpus, unless that was done before.

    fold (str): One of `list_folds`.
    RETURNS (Path): Folder with train.spacy, dev.spacy and test.spacy.
    """
    folder = WORK / "corpora" / "heads" / "-".join(filter(None, (task, fold)))
    missing = [split for split in SPLITS if not (folder / f"{split}.spacy").exists()]
    if not missing:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    if task in TABLES:
        _convert_tables(TABLES[task], task, fold, folder)
        return folder
    known = find_task(task)
    for split in missing:
        run_python(
            *("-m", "spacy_bioclin", "convert", known.format),
            *(data_dir() / path for path in known.splits[split]),
            *(folder / f"{split}.spacy", "--task", task, "--split", split, "--overwrite"),
            log=folder / f"{split}.log",
        )
    return folder


def _convert_tables(table: Table, task: str, fold: str, folder: Path) -> None:
    splits = table.read(fold)
    column = table.options[table.options.index("--label") + 1] if "--label" in table.options else ""
    values = [row.get(column, []) for rows in splits.values() for row in rows]
    labels = sorted({one for value in values for one in ([value] if type(value) is str else value)})
    for split, rows in splits.items():
        path = folder / f"{split}.jsonl"
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text(text, "utf-8")
        run_python(
            *("-m", "spacy_bioclin", "convert-table", path, folder / f"{split}.spacy"),
            *("--lang", find_lang(task), "--task", task, "--id", "id", *table.options),
            *(("--labels", ",".join(labels)) if labels else ()),
            "--overwrite",
            log=folder / f"{split}.log",
        )


def count(task: str, fold: str = "") -> dict[str, Any]:
    """Count the documents, relations and labels of each split."""
    folder = prepare(task, fold)
    vocab = spacy.blank(find_lang(task)).vocab
    found = {}
    for split in SPLITS:
        docs = list(read_docs(folder / f"{split}.spacy", vocab))
        of_doc = get_gold_concept_relations if task == "bc5cdr-cid" else get_gold_relations
        relations = Counter(one.label for doc in docs for one in of_doc(doc) or ())
        labels = Counter(key for doc in docs for key, value in doc.cats.items() if value > 0)
        words = sum(map(len, docs))
        found[split] = {"docs": len(docs), "tokens": words, **dict(relations or labels)}
    return found


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("tasks", nargs="*", default=list(NAMES), metavar="TASK")
    for task in parser.parse_args().tasks:
        for fold in list_folds(task):
            print(json.dumps({"task": task, "fold": fold, **count(task, fold)}), flush=True)


if __name__ == "__main__":
    main()
