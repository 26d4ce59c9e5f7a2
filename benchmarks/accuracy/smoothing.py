"""Strict F1 on dev at each amount of word smoothing, with the weights of trials of accuracy/ner.py.

    python -m benchmarks.accuracy.smoothing sm --choice lexical

The trials are those of seed 0 that have the choice, train on train alone, and are finished. Each
note is encoded once, and its tags are decoded with each of `AMOUNTS`. Nothing of test is read.
"""

import json
from pathlib import Path
from typing import Any

import spacy
from spacy.training import Example

from benchmarks.accuracy.ner import STEPS, TrialName, trials_folder
from benchmarks.corpora import prepare
from benchmarks.harness import make_parser, read_json, write_result
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.evaluation.spans import span_score

AMOUNTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
BATCH = 16


def measure(pipeline: Path, task: str) -> dict[str, float]:
    """Annotate dev, and compute strict F1 at each amount."""
    nlp = spacy.load(pipeline, exclude=["cleaner"])
    ner: Any = nlp.get_pipe("ner")
    references = list(read_docs(prepare(task) / "dev.spacy", nlp.vocab))
    egs: dict[float, list[Example]] = {amount: [] for amount in AMOUNTS}
    for start in range(0, len(references), BATCH):
        batch = references[start : start + BATCH]
        docs = list(nlp.pipe([doc.text for doc in batch], batch_size=BATCH))
        for amount in AMOUNTS:
            ner.cfg["word_smoothing"] = amount
            found = ner.predict(docs)
            copies = [nlp.make_doc(doc.text) for doc in docs]
            ner.set_annotations(copies, found)
            egs[amount] += [Example(*pair) for pair in zip(copies, batch, strict=True)]
    return {
        str(amount): round(span_score(some, spans_key=None)["ents_f"], 4)
        for amount, some in egs.items()
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("encoder", choices=sorted(STEPS))
    parser.add_argument("--choice", default="lexical", help="of benchmarks/training/yardstick.py")
    arguments = parser.parse_args()
    tasks = {}
    for task in STEPS[arguments.encoder]:
        trial = TrialName(arguments.encoder, task, choice=arguments.choice)
        names = f"{arguments.encoder}-{task}-bioclin-0-{arguments.choice}-"
        folders = trials_folder(with_dev=False).glob(f"{names}*")
        numbers = [folder.name.removeprefix(names) for folder in folders]
        for updates in sorted(int(number) for number in numbers if number.isdigit()):
            trial = trial._replace(updates=updates)
            if not trial.pipeline.is_dir():
                continue
            trained = read_json(trial.folder / "result.json")
            scores = measure(trial.pipeline, task)
            tasks[task] = {"updates": updates, "dev_f": trained["dev_f"], "amounts": scores}
            print(task, json.dumps(tasks[task]), flush=True)
            break
    result = {"encoder": arguments.encoder, "choice": arguments.choice, "tasks": tasks}
    print(write_result("smoothing", result))


if __name__ == "__main__":
    main()
