"""The corpora of relations, pairs and whole texts, converted by `bioclin prepare`.

    python -m benchmarks.heads.data chemprot rqe

prints how many documents, relations and labels each split has. The catalogue says how texts without
official splits are divided: `bioclin tasks NAME`.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import spacy

from benchmarks.harness import WORK, data_dir, make_parser, run_python
from spacy_bioclin.annotations.relations import get_gold_concept_relations, get_gold_relations
from spacy_bioclin.catalog.tasks import find_task
from spacy_bioclin.corpora.docbin import read_docs

SPLITS = ("train", "dev", "test")
RELATIONS = ("chemprot", "ddi2013", "bc5cdr-cid", "ehealthkd-2021", "maccrobat2020-relations")
TABLES = ("rqe", "biosses", "hoc", "hoc-nodes", "gad")
NAMES = (*RELATIONS, *TABLES)
PUBLISHED = "published"  # the fold that authors gave
FOLDS = {"gad": (PUBLISHED, "0", "1", "2")}


def list_folds(task: str) -> tuple[str, ...]:
    """List the folds of a task that are measured; ("",) if it has only one split."""
    return FOLDS.get(task) or tuple(find_task(task).fold_names)


def find_lang(task: str) -> str:
    """Find the language of a task."""
    return find_task(task).lang


def prepare(task: str, fold: str = "") -> Path:
    """Convert a corpus, unless that was done before.

    fold (str): One of `list_folds`.
    RETURNS (Path): Folder with train.spacy, dev.spacy and test.spacy.
    """
    folder = WORK / "corpora" / "heads" / "-".join(filter(None, (task, fold)))
    if all((folder / f"{split}.spacy").exists() for split in SPLITS):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    os.environ["BIOCLIN_DATA"] = str(data_dir())
    run_python(
        *("-m", "spacy_bioclin", "prepare", task, folder, "--overwrite"),
        *(("--fold", fold) if fold and fold != PUBLISHED else ()),
        log=folder.with_suffix(".log"),
    )
    return folder


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
