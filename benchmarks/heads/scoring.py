"""Scores of a pipeline with heads, with the metrics of the published figures.

    python -m benchmarks.heads.scoring PIPELINE chemprot

prints those of dev.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.training import Example

from benchmarks.harness import make_parser
from benchmarks.heads.data import NAMES, RELATIONS, list_folds, prepare
from spacy_bioclin.catalog.tasks import load_tasks
from spacy_bioclin.corpora.readers import make_corpus
from spacy_bioclin.evaluation.categories import (
    count_labels,
    example_based,
    score_categories,
)
from spacy_bioclin.evaluation.published import METRICS, TaskScoring
from spacy_bioclin.evaluation.published.texts import unite_sentences
from spacy_bioclin.evaluation.relations import relation_score

YES = TaskScoring(positive="yes")
# Published metric -> its key in the scores of a task.
KEYS = {
    "relations_micro_f": "micro_f",
    "relations_macro_f": "macro_f",
    "hoc_example_f": "example_f",
    "hoc_macro_f": "macro_f",
    "texts_positive_f": "f",
    "texts_accuracy": "accuracy",
    "pairs_accuracy": "accuracy",
    "pairs_pearson": "pearson",
}
# Metric of table 1 of Lewis et al. (2020) -> what their released script computes.
RELEASED = {"hoc_macro_f": "hoc_example_f", "relations_macro_f": "relations_micro_f"}


def score(
    pipeline: Path, task: str, corpora: Path, splits: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """Score a pipeline on the whole documents of splits.

    RETURNS (dict[str, dict]): Split -> scores, rounded.
    """
    spacy.prefer_gpu()
    nlp = spacy.load(pipeline)
    scores = {}
    for split in splits:
        read = make_corpus(corpora / f"{split}.spacy", use_gold_ents=task in RELATIONS)
        given = list(read(nlp))
        predicted = nlp.pipe([eg.predicted for eg in given])
        egs = [Example(doc, eg.reference) for doc, eg in zip(predicted, given, strict=True)]
        scores[split] = round_all(score_examples(nlp, task, egs))
    return scores


def round_all(value: Any) -> Any:
    """Round the numbers of nested dicts."""
    if isinstance(value, Mapping):
        return {key: round_all(each) for key, each in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def score_examples(nlp: Language, task: str, egs: list[Example]) -> dict[str, Any]:
    """Score predicted Docs with the metrics of a task."""
    if task in RELATIONS:
        pipe: Any = nlp.get_pipe("relations")
        settings = {"symmetric": pipe.cfg["trained"]["symmetric"], "level": pipe.cfg["level"]}
        found = relation_score(egs, relations_key="relations", **settings)
        per_type = {label: each["f"] for label, each in found["rels_per_type"].items()}
        micro = {f"micro_{key}": found[f"rels_{key}"] for key in "prf"}
        return {**micro, "macro_f": found["rels_macro_f"], "f_per_type": per_type}
    gold, predicted = [eg.reference.cats for eg in egs], [eg.predicted.cats for eg in egs]
    if task == "biosses":
        graded = METRICS["pairs_pearson"].score(egs, TaskScoring())
        return {"pearson": graded["value"], "spearman": graded["spearman"]}
    found = score_categories(gold, predicted, exclusive=not task.startswith("hoc"))
    per_type = {label: each["f"] for label, each in found["per_type"].items()}
    scores = {"accuracy": found["accuracy"], "macro_f": found["macro"]["f"], "f_per_type": per_type}
    if task == "gad":
        return {**scores, "f": METRICS["texts_positive_f"].score(egs, YES)["value"]}
    if not task.startswith("hoc"):
        return scores
    of_texts = {f"sentence_micro_{key}": found["micro"][key] for key in "prf"}
    return {**of_texts, "sentence_macro_f": found["macro"]["f"], **score_abstracts(egs)}


def score_abstracts(egs: list[Example]) -> dict[str, Any]:
    """Score the labels of abstracts, which are those of their sentences, as BLUE does."""
    gold, found = unite_sentences(egs, TaskScoring())
    by_example, counts = example_based(gold, found), count_labels(gold, found)
    return {
        **{f"example_{key}": by_example[key] for key in "prf"},
        "micro_f": counts.micro.f1,
        "macro_f": counts.macro["f"],
        "f_per_type": {label: each.f1 for label, each in counts.per_label.items()},
    }


def list_published(tasks: Iterable[str]) -> list[dict[str, Any]]:
    """List the published rows of tasks in the catalogue, with `metric` as in the scores. What
    `RELEASED` doubts is listed for both metrics."""
    rows = []
    for task, known in load_tasks().items():
        for row in known.published if task in tasks else ():
            metric = row.metric or known.score
            for name in dict.fromkeys((metric, RELEASED.get(metric, metric))):
                rows.append({"task": task, **row.model_dump(), "metric": KEYS[name]})
    return rows


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument("task", choices=sorted(NAMES))
    parser.add_argument("--fold", help="default: the first of the task")
    arguments = parser.parse_args()
    fold = arguments.fold or list_folds(arguments.task)[0]
    corpora = prepare(arguments.task, fold)
    print(json.dumps(score(arguments.pipeline, arguments.task, corpora, ("dev",))))


if __name__ == "__main__":
    main()
