"""Train the tagger of cues and scopes that bioclin_context reads: NUBes, one thread.

    python -m benchmarks.context.train [--encoder FOLDER] [--updates 1200]

It is trained on samples 001 to 008 and checked on 50 notes of 009. The pipeline is in
.work/benchmarks/context (or $BIOCLIN_WORK/benchmarks/context), where benchmarks/context/nubes.py
finds it; a finished one is not trained again.
"""

import os
from pathlib import Path

from benchmarks.corpora import ENCODERS
from benchmarks.harness import (
    WORK,
    data_dir,
    make_parser,
    run_python,
    thread_environment,
    to_options,
)
from spacy_bioclin.catalog.tasks import find_task

TASK = "nubes-context"
PIPELINE = WORK / "context" / "trained"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--encoder", type=Path, default=ENCODERS / "bioclin-sm")
    parser.add_argument("--updates", type=int, default=1200)
    args = parser.parse_args()
    os.environ.update(thread_environment(1))
    folder, task = PIPELINE.parent, find_task(TASK)
    for split in ("train", "dev"):
        if not (out := folder / f"{split}.spacy").exists():
            paths = [data_dir() / path for path in task.splits[split]]
            run_python(
                *("-m", "spacy_bioclin", "convert", task.format, *paths, out),
                *("--task", TASK, "--split", split),
            )
    if (PIPELINE / "model-last").exists():
        return
    run_python(
        *("-m", "spacy_bioclin", "train", "configs/ner.cfg", "-o", PIPELINE, "--overwrite"),
        *to_options(
            {
                "paths.train": folder / "train.spacy",
                "paths.dev": folder / "dev.spacy",
                "paths.encoder": args.encoder,
                "nlp.lang": task.lang,
                "components.ner.nested": "true",
                "components.ner.spans_key": "cues",
                "training.optimizer.learn_rate.initial_rate": 5e-4,
                "training.batcher.size": 1024,
                "training.max_steps": args.updates,
                "training.eval_frequency": args.updates + 1,  # only before the first
                "training.score_weights.ents_f": "null",
                "training.score_weights.spans_cues_f": 1.0,
                "training.logger.progress_bar": "null",
            }
        ),
        log=folder / "train.log",
    )


if __name__ == "__main__":
    main()
