"""F1 of a system that calls every text positive, on the tasks that are scored by F1 of that class.

    python -m benchmarks.papers.constant

What a trained system scores beside it says whether it has learned anything. Nothing is trained: the
labels of the test split of each fold are counted. Folds are those of the catalogue; as Lewis et al.
(2020) have it, the value is the median of all folds but the first.
"""

from benchmarks.harness import make_parser, report
from spacy_bioclin.catalog.tasks import find_data, load_tasks
from spacy_bioclin.evaluation.protocols.folds import folds_median
from spacy_bioclin.training.corpora import divide_texts

METRIC = "texts_positive_f"


def main() -> None:
    make_parser(__doc__).parse_args()
    found = {}
    for name, task in load_tasks().items():
        if task.score != METRIC or task.access != "open":
            continue
        texts, scores = {}, {}
        for fold in task.fold_names:
            test = divide_texts(name, task, find_data(name), fold)[0]["test"]
            n_positive = sum(task.positive in row.labels for row in test)
            texts[fold] = {"texts": len(test), "positive": n_positive}
            scores[fold] = 2 * n_positive / (len(test) + n_positive)  # recall is 1
        value = folds_median({"positive": scores}).folds.value
        found[name] = {"f": value, "folds": texts}
    report("papers_constant", {"tasks": found})


if __name__ == "__main__":
    main()
