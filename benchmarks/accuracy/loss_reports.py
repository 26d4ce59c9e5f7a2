"""Loss reports of five corpora, every split, with spaCy's blank tokenizer and with ours.

"snapped" spans are those that no model could ever find exactly with that tokenizer.

    python -m benchmarks.accuracy.loss_reports  # corpora from $BIOCLIN_DATA or ../shared/data
"""

from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language

from benchmarks.corpora import TASKS
from benchmarks.harness import data_dir, make_parser, write_result
from spacy_bioclin.catalog.tasks import Task
from spacy_bioclin.corpora.docs import make_gold_doc
from spacy_bioclin.corpora.files import raise_error
from spacy_bioclin.corpora.formats import FORMATS, find_files, relabel
from spacy_bioclin.corpora.report import LossReport

TOKENIZERS = {"blank": "spacy.Tokenizer.v1", "bioclin": "spacy-bioclin.Tokenizer.v1"}


def loss_report(nlp: Language, task: Task, paths: list[Path]) -> LossReport:
    """Report what happens to the spans of one split."""
    report = LossReport()
    for file in find_files(task.format, paths):
        for document in FORMATS[task.format].read(file, raise_error):
            document = relabel(document, task.labels)
            make_gold_doc(nlp, document, layers=task.layers, report=report)
    return report


def main() -> None:
    make_parser(__doc__).parse_args()
    data = data_dir()
    corpora: dict[str, Any] = {}
    for name, task in TASKS.items():
        for split, paths in task.splits.items():
            for tokenizer, registered in TOKENIZERS.items():
                config = {"nlp": {"tokenizer": {"@tokenizers": registered}}}
                nlp = spacy.blank(task.lang, config=config)
                report = loss_report(nlp, task, [data / path for path in paths])
                snapped = report.count("snapped")
                result = {**report.to_dict(), "snapped_percent": 100 * snapped / report.read}
                corpora.setdefault(name, {}).setdefault(split, {})[tokenizer] = result
                print(
                    f"{name:13} {split:6} {tokenizer:8} {report.read:6,} read {report.lost:3} lost"
                    f" {snapped:5} snapped ({result['snapped_percent']:.3f} %)",
                    flush=True,
                )
    print(write_result("loss_reports", {"corpora": corpora}))


if __name__ == "__main__":
    main()
