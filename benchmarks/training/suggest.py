"""What `bioclin suggest` is worth: F1 after annotating suggested notes beside random ones.

    python -m benchmarks.training.suggest  # three draws on PharmaCoNER with bioclin-sm

The notes of train are the pool, and their gold spans are what an annotator would say. A draw begins
with 10 notes at random. From there, 25, 50 and 100 more are annotated: at random, or as suggested
by the pipeline that was trained on what is annotated so far (25, 25 and 50 at a time). "per_word"
divides the uncertainty of a note by its words. Each pipeline is trained anew: configs/ner.cfg, 200
updates of 640 words, learning rate 2e-4, one thread. It is scored once, strictly, on the whole
documents of dev. Words are counted too, since uncertain notes are longer.

A training takes two to three minutes on one core, a draw seven of them (ten with "per_word"), and a
suggestion one minute. Finished trainings are kept in .work/benchmarks (or in
$BIOCLIN_WORK/benchmarks) and not run again. After each, benchmarks/results/suggest.json is written
anew.
"""

import os
import random
import shutil
import statistics
from pathlib import Path
from typing import Any, NamedTuple

import spacy
import torch
from spacy.tokens import Doc, DocBin

from benchmarks.corpora import LANG, encoder_folder, prepare
from benchmarks.harness import (
    WORK,
    keep,
    make_parser,
    run_python,
    thread_environment,
    to_options,
    write_result,
)
from benchmarks.training.yardstick import BASE, CONFIG, score
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.suggestions.suggest import suggest_notes

WAYS = ("random", "suggested", "per_word")
START = 10  # notes of a draw that are annotated from the beginning
UPDATES = 200


class Setup(NamedTuple):
    """What all trainings have in common.

    corpora (Path): Folder of `prepare`.
    pool (list[Doc]): Gold Docs of train.
    updates (int): Of a training.
    budgets (list[int]): Numbers of notes to annotate after the first ones.
    """

    task: str
    encoder: str
    corpora: Path
    pool: list[Doc]
    updates: int
    budgets: list[int]

    def folder(self, draw: int, way: str, budget: int) -> Path:
        """Find the folder of a training; the first one of a draw belongs to all ways."""
        name = f"{draw}-{way}-{budget}" if budget else f"{draw}-start"
        kind = f"suggest-{self.task}-{self.encoder}-{self.updates}-{len(self.pool)}"
        return WORK / "trials" / kind / name


def train(setup: Setup, folder: Path, chosen: list[int], seed: int) -> dict[str, Any]:
    """Train on some notes of the pool and score, or read what was measured before.

    chosen (list[int]): Their numbers in the pool.
    """

    def measure() -> dict[str, Any]:
        folder.mkdir(parents=True, exist_ok=True)
        docs = [setup.pool[number] for number in chosen]
        DocBin(docs=docs, store_user_data=True).to_disk(folder / "train.spacy")
        usage = run_python(
            *("-m", "spacy_bioclin", "train", CONFIG, "-o", folder / "training", "--overwrite"),
            *to_options(
                {
                    "paths.train": folder / "train.spacy",
                    "paths.dev": setup.corpora / "dev-sample.spacy",
                    "paths.encoder": encoder_folder(setup.encoder, setup.task, setup.corpora),
                    "nlp.lang": LANG[setup.task],
                    "system.seed": seed,
                    "training.max_steps": setup.updates,
                    "training.eval_frequency": setup.updates + 1,  # only before the first
                    "training.logger.progress_bar": "null",
                    **BASE,
                }
            ),
            log=folder / "training.log",
        )
        scores = score(folder / "training" / "model-last", setup.corpora)
        (folder / "training" / "model-last").rename(folder / "pipeline")
        shutil.rmtree(folder / "training")
        return {
            **scores,
            "notes": chosen,
            "words": sum(len(doc.text.split()) for doc in docs),
            "spans": sum(len(doc.ents) for doc in docs),
            "train_seconds": round(usage.seconds, 1),
        }

    if not (folder / "result.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
    result: dict[str, Any] = keep(folder / "result.json", measure)
    return result


def choose_more(setup: Setup, pipeline: Path, way: str, known: list[int], n: int) -> list[int]:
    """Choose notes to annotate with a pipeline that was trained on those that are known."""
    nlp = spacy.load(pipeline)
    notes = [(str(number), doc.text) for number, doc in enumerate(setup.pool)]
    free = [note for number, note in enumerate(notes) if number not in set(known)]
    texts = [setup.pool[number].text for number in known]
    found = suggest_notes(nlp, free, n, annotated=texts, per_word=way == "per_word")
    return [int(each.id) for each in found]


def run_draw(setup: Setup, draw: int, ways: list[str]) -> list[dict[str, Any]]:
    """Measure a draw: its first notes, and what each way adds to them.

    RETURNS (list[dict]): A row for each way and number of notes.
    """
    order = random.Random(draw).sample(range(len(setup.pool)), len(setup.pool))
    start = order[:START]
    first = train(setup, setup.folder(draw, "", 0), start, draw)
    rows = [{"draw": draw, "way": "start", "annotated": START, **first}]
    for way in ways:
        known, pipeline = list(start), setup.folder(draw, "", 0) / "pipeline"
        for budget in setup.budgets:
            folder = setup.folder(draw, way, budget)
            if (folder / "result.json").exists():
                known = train(setup, folder, [], draw)["notes"]
            elif way == "random":
                known = order[: START + budget]
            else:
                known += choose_more(setup, pipeline, way, known, START + budget - len(known))
            row = train(setup, folder, known, draw)
            pipeline = folder / "pipeline"
            rows.append({"draw": draw, "way": way, "annotated": budget, **row})
            print(f"draw {draw} {way} {budget}: dev F1 {row['dev_f']:.4f}", flush=True)
    return rows


def summarize(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compute means over draws, and the difference to random notes of the same draws."""
    by_key = {(row["way"], row["annotated"], row["draw"]): row for row in rows}
    summary = []
    for way, budget in dict.fromkeys((row["way"], row["annotated"]) for row in rows):
        group = [row for row in rows if (row["way"], row["annotated"]) == (way, budget)]
        beside = [by_key.get(("random", budget, row["draw"])) for row in group]
        points = [
            round(100 * (row["dev_f"] - other["dev_f"]), 2)
            for row, other in zip(group, beside, strict=True)
            if other is not None and way != "random"
        ]
        mean: dict[str, Any] = {
            key: round(statistics.mean(row[key] for row in group), 4)
            for key in ("dev_f", "dev_p", "dev_r", "words", "spans")
        }
        named = {"way": way, "annotated": budget, "draws": len(group)}
        summary.append({**named, **mean, "points_over_random": points})
    return summary


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__)
    parser.add_argument("--task", default="pharmaconer", choices=LANG)
    parser.add_argument("--encoder", default="sm")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--ways", nargs="+", default=list(WAYS[:2]), choices=WAYS)
    parser.add_argument("--budgets", nargs="+", type=int, default=[25, 50, 100])
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--pool", type=int, help="only so many notes of train, for a trial run")
    arguments = parser.parse_args()
    os.environ.update(thread_environment(1))
    torch.set_num_threads(1)
    corpora = prepare(arguments.task)
    vocab = spacy.blank(LANG[arguments.task]).vocab
    pool = list(read_docs(corpora / "train.spacy", vocab))[: arguments.pool]
    setup = Setup(
        arguments.task,
        arguments.encoder,
        corpora,
        pool,
        arguments.updates,
        sorted(arguments.budgets),
    )
    rows: list[dict[str, Any]] = []
    for draw in range(arguments.draws):
        rows += run_draw(setup, draw, arguments.ways)
        settings = {"config": CONFIG, "settings": BASE, "updates": setup.updates, "threads": 1}
        named = {"task": setup.task, "encoder": setup.encoder, "pool": len(pool), "start": START}
        shown = [{key: value for key, value in row.items() if key != "notes"} for row in rows]
        result = {**named, **settings, "summary": summarize(rows), "rows": shown}
        if arguments.pool is None:
            write_result("suggest", result)


if __name__ == "__main__":
    main()
