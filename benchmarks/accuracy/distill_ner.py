"""Distillation on BC5CDR: strict F1 of a small student with and without a teacher.

    python -m benchmarks.accuracy.ner minilm --task bc5cdr --seeds 0  # trains the teacher
    python -m benchmarks.accuracy.distill_ner ENCODER --texts abstracts.txt.xz --seeds 0 1 2

ENCODER is the folder of a small encoder. Both students have the same encoder, config, seed and
number of updates of 1,024 tokens; one learns from the gold notes of train, the other besides from
what the teacher says of them and of TEXTS (by default the abstracts under pretraining/ of the
data). Texts of train, dev and test are taken out of TEXTS first. No setting was tuned for either
student. The teacher is scored too. Everything is kept in .work/benchmarks/distill; the summary goes
to benchmarks/results/distill_ner_NAME.json.
"""

import argparse
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import spacy
import torch

from benchmarks.accuracy.ner import TrialName, score
from benchmarks.corpora import LANG, prepare
from benchmarks.harness import (
    WORK,
    Usage,
    data_dir,
    keep,
    make_parser,
    read_json,
    run_python,
    to_options,
    write_json,
    write_result,
)
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.ner.distill.teacher import hash_files, read_texts

TASK = "bc5cdr"
TEACHER = TrialName("minilm", TASK).pipeline
TEXTS = "pretraining/en/abstracts_from_train_dev.txt.xz"
TOKENS_PER_UPDATE = 1024
SYSTEMS = ("gold", "distilled")


def unseen_texts(source: Path, corpora: Path, limit: int | None) -> Path:
    """Leave out the texts of the corpus, whatever their blanks, so that dev and test stay unseen.

    RETURNS (Path): A file of the others, at most `limit`.
    """
    vocab = spacy.blank(LANG[TASK]).vocab
    splits = [corpora / f"{split}.spacy" for split in ("train", "dev", "test")]
    known = {squeeze(doc.text) for split in splits for doc in read_docs(split, vocab)}
    texts = [text for text in read_texts(source) if squeeze(text) not in known][:limit]
    out = corpora / f"unlabelled-{limit or 'all'}.txt"
    out.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return out


def squeeze(text: str) -> str:
    return "".join(text.split())


def make_trials(
    arguments: argparse.Namespace, corpora: Path, texts: Path, folder: Path
) -> Iterator[dict[str, Any]]:
    """Train the students in turn, unless they were trained before; yield what each measured."""
    for seed in arguments.seeds:
        for system in SYSTEMS:
            trial = folder / f"{system}-{seed}"

            def measure(system: str = system, seed: int = seed, trial: Path = trial) -> Any:
                usage = train(arguments, system, seed, corpora, texts, trial)
                return {
                    "system": system,
                    "seed": seed,
                    "train_seconds": round(usage.seconds, 1),
                    "train_cpu_seconds": round(usage.cpu_seconds, 1),
                    "train_peak_memory_mb": round(usage.peak_memory_mb),
                    **score(trial / "training" / "model-last", corpora),
                }

            yield keep(trial / "result.json", measure)


def train(
    arguments: argparse.Namespace, system: str, seed: int, corpora: Path, texts: Path, trial: Path
) -> Usage:
    """Train a student; only the first seed annotates the texts too."""
    trial.mkdir(parents=True, exist_ok=True)
    settings = {
        "paths.train": corpora / "train.spacy",
        "paths.dev": corpora / "dev-sample.spacy",
        "paths.encoder": arguments.encoder,
        "nlp.lang": LANG[TASK],
        "system.seed": seed,
        "training.max_steps": arguments.updates,
        "training.eval_frequency": max(1, arguments.updates // 2),
        "training.logger.progress_bar": "null",
        "training.batcher.size": TOKENS_PER_UPDATE,
        "training.optimizer.learn_rate.initial_rate": arguments.learn_rate,
    }
    if system == "gold":
        command = ["train", "configs/ner.cfg"]
    else:
        settings["components.ner.teacher_weight"] = arguments.teacher_weight
        command = ["distill-ner", str(arguments.teacher), "configs/ner.cfg", "--texts", str(texts)]
        command += ["--temperature", str(arguments.temperature)]
        annotated = trial.with_name(f"{system}-{arguments.seeds[0]}") / "training" / "corpus"
        if annotated.exists():
            shutil.copytree(annotated, trial / "training" / "corpus", dirs_exist_ok=True)
    command += ["-o", str(trial / "training"), *to_options(settings)]
    return run_python("-m", "spacy_bioclin", *command, log=trial / "training.log")


def summarize(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Compute mean and standard deviation over seeds, per system."""
    summary: dict[str, Any] = {}
    for system in SYSTEMS:
        mine = [trial for trial in trials if trial["system"] == system]
        summary[system] = {"seeds": len(mine)}
        for key in ("dev_f", "test_f"):
            values = [trial[key] for trial in mine]
            summary[system][f"{key}_mean"] = round(statistics.mean(values), 4)
            if len(values) > 1:
                summary[system][f"{key}_sd"] = round(statistics.stdev(values), 4)
    return summary


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("encoder", type=lambda path: Path(path).resolve())
    parser.add_argument("--name", help="of the result; default: that of the encoder's folder")
    parser.add_argument("--teacher", type=lambda path: Path(path).resolve(), default=TEACHER)
    parser.add_argument("--texts", type=Path, default=data_dir() / TEXTS)
    parser.add_argument("--limit", type=int, help="largest number of texts")
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--learn-rate", type=float, default=5e-4)
    parser.add_argument("--teacher-weight", type=float, default=0.5)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    arguments = parser.parse_args()
    if not arguments.teacher.is_dir():
        parser.error(f"{arguments.teacher}: no teacher; train it with accuracy/ner.py (see above)")
    name = arguments.name or arguments.encoder.name
    folder = WORK / "distill" / name
    corpora = prepare(TASK)
    texts = unseen_texts(arguments.texts, corpora, arguments.limit)
    settings = {
        "updates": arguments.updates,
        "tokens_per_update": TOKENS_PER_UPDATE,
        "learn_rate": arguments.learn_rate,
        "teacher_weight": arguments.teacher_weight,
        "temperature": arguments.temperature,
        "texts": sum(1 for _ in read_texts(texts)),
        "teacher_sha256": hash_files(arguments.teacher),
        "encoder_sha256": hash_files(arguments.encoder),
        "threads": torch.get_num_threads(),
    }
    kept = folder / "settings.json"
    if kept.exists() and read_json(kept) != settings:
        shutil.rmtree(folder)
    write_json(kept, settings, indent=2)
    trials = list(make_trials(arguments, corpora, texts, folder))
    result = {
        "task": TASK,
        "encoder": name,
        "settings": settings,
        "teacher": score(arguments.teacher, corpora),
        "summary": summarize(trials),
        "trials": trials,
    }
    print(write_result(f"distill_ner_{name}", result))


if __name__ == "__main__":
    main()
