"""Strict F1 on dev at each amount of word smoothing, with the weights of trials of accuracy/ner.py.

    python -m benchmarks.accuracy.smoothing sm --choice lexical
    python -m benchmarks.accuracy.smoothing es_bioclin_sm --corpora corpus/flagship-es

The trials are those of seed 0 that have the choice, train on train alone, and are finished. Each
note is encoded once, and its tags are decoded with each of `AMOUNTS`. Nothing of test is read.

With --corpora, a whole pipeline is measured on CORPORA/NAME/dev.spacy, which `python -m
scripts.flagship corpora` writes, with each of `FEWER` amounts in one of its heads.
"""

import json
import sys
from pathlib import Path
from typing import Any

import spacy
from spacy.training import Example

from benchmarks.accuracy.ner import STEPS, TrialName, trials_folder
from benchmarks.corpora import prepare
from benchmarks.harness import RESULTS, make_parser, read_json, write_result
from benchmarks.leaderboard import score_corpus
from spacy_bioclin.cli.loading import load_pipeline
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.overlap.lists import read_id_list
from spacy_bioclin.evaluation.spans import span_score
from spacy_bioclin.types import GOLD_KEY

AMOUNTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
FEWER = (0.0, 0.2, 0.3, 0.4, 0.6)
BATCH = 16
PIPELINES = "smoothing_pipelines"  # the file of results of whole pipelines


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


def measure_pipeline(pipeline: str, corpora: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Annotate dev of each corpus with each amount in each head.

    RETURNS (dict): Head -> corpus -> amount -> strict F1 of the layer that the head writes.
    """
    nlp = load_pipeline(pipeline)
    left_out = read_id_list(corpora / "dev-leave-out.txt")
    heads: dict[str, dict[str, dict[str, float]]] = {}
    for name, component in nlp.components:
        if nlp.get_pipe_meta(name).factory != "bioclin_ner":
            continue
        ner: Any = component
        before, heads[name] = ner.cfg["word_smoothing"], {}
        for path in sorted(corpora.glob("*/dev.spacy")):
            docs = read_docs(path, nlp.vocab)
            references = [doc for doc in docs if doc.user_data[GOLD_KEY]["id"] not in left_out]
            if not any(ner.cfg["spans_key"] in doc.spans for doc in references):
                continue
            scores = heads[name][path.parent.name] = {}
            for amount in FEWER:
                ner.cfg["word_smoothing"] = amount
                layers = score_corpus(nlp, references)["layers"]
                if scored := layers.get(ner.cfg["spans_key"]):
                    scores[str(amount)] = scored["micro"]["f"]
            print(name, path.parent.name, json.dumps(scores), flush=True)
        ner.cfg["word_smoothing"] = before
    return heads


def measure_trials(encoder: str, choice: str) -> dict[str, Any]:
    """Annotate dev of each task with the pipeline of its trial that has fewest updates."""
    tasks = {}
    for task in STEPS[encoder]:
        trial = TrialName(encoder, task, choice=choice)
        names = f"{encoder}-{task}-bioclin-0-{choice}-"
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
    return tasks


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", help=f"encoder ({', '.join(STEPS)}), or a pipeline with --corpora")
    parser.add_argument("--choice", default="lexical", help="of benchmarks/training/yardstick.py")
    parser.add_argument("--corpora", type=Path, help="folder with NAME/dev.spacy")
    arguments = parser.parse_args()
    if arguments.corpora:
        path = RESULTS / f"{PIPELINES}.json"
        known = read_json(path)["pipelines"] if path.exists() else {}
        known[Path(arguments.what).name] = measure_pipeline(arguments.what, arguments.corpora)
        print(write_result(PIPELINES, {"pipelines": dict(sorted(known.items()))}))
    elif arguments.what in STEPS:
        tasks = measure_trials(arguments.what, arguments.choice)
        result = {"encoder": arguments.what, "choice": arguments.choice, "tasks": tasks}
        print(write_result("smoothing", result))
    else:
        sys.exit(f"{arguments.what}: no encoder ({', '.join(STEPS)}), and no --corpora")


if __name__ == "__main__":
    main()
