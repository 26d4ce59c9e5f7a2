"""Fine-tuning beside the Trainer of the transformers library: strict F1 with the same encoder,
parts of notes in the same order, recipe, seeds and number of updates.

    export OMP_NUM_THREADS=1
    python -m benchmarks.training.trainer_parity --seeds 0 1 2
    python -m benchmarks.training.trainer_parity --updates 120 --seeds 0 --same-start

The recipe is "carrino-2022" with the rate and batches below; parts are the windows that it sets.
Nothing is selected: what the last update leaves is scored, on character offsets of the whole test
split.

"test" is each system as it is used: ours annotates whole notes and decodes tags that make sense,
the other reads the same kind of parts as in training and takes the best tag of each token, read as
seqeval reads them. "test_same" gives both the same parts and the same decoding, so that only the
training differs. The system "huggingface" cuts the text into pieces, as ours does,
"huggingface-words" word by word, as run_ner does.

With --same-start nothing is left to chance, and every difference is one of the implementations:
both start from our head's weights, without dropout and without clipping, which ours does for
encoder and head apart. Tokens without a piece of their own, such as the comma of the piece "),",
have no tag for either: Trainer gives a piece one tag, ours gives each token one. The result is then
trainer_parity_same_start.json.

Both sides compute in the same format, which the result names: bf16 where the hardware has it.
What has been trained stays in .work/benchmarks/trainer_parity, and so does each score; a run goes
on where the last one stopped. After each trial, benchmarks/results/trainer_parity.json is written
anew: its trials with the same settings stay, unless this checkout has measured them again.
"""

import json
import random
import statistics
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from thinc.api import Config

from benchmarks.corpora import LANG, SHIPPED, prepare
from benchmarks.harness import (
    RESULTS,
    ROOT,
    WORK,
    describe_machine,
    keep,
    make_parser,
    read_json,
    run_python,
    write_result,
)
from benchmarks.training.trainer_huggingface import NO_DROPOUT, TokenClassifier, untag_shared_pieces
from benchmarks.training.trainer_scoring import (
    best_tags,
    cut_into_windows,
    join_parts,
    legal_tags,
    score,
    split_into_sentences,
)
from spacy_bioclin.catalog.recipes import apply_recipe, apply_settings, find_recipe, set_learn_rate
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.readers import make_corpus
from spacy_bioclin.encoders.precision import has_fast_bf16
from spacy_bioclin.ner.tags import TagSet, make_tag_sets
from spacy_bioclin.spans import get_char_spans

TRIALS = WORK / "trainer_parity"
TASKS = ("bc5cdr", "pharmaconer")
SYSTEMS = ("bioclin", "huggingface", "huggingface-words")
RECIPE = "carrino-2022"
LEARN_RATE = 3e-4  # of the included encoder, in the catalogue
PARTS_PER_UPDATE = 8
UPDATES = 900
SAME_START = "trainer_parity_same_start"
WINDOW = "components.transformer.model.window"
# Files of a trial, beside result.json.
TRAINED, WEIGHTS = "trained.json", "weights.pt"


def write_parts(task: str, seed: int, updates: int, *, same_start: bool) -> Path:
    """Write the parts of the training notes in the order in which both systems see them: every
    part once, in an order that the seed draws, then again in another one. The parts are the windows
    of the recipe.

    same_start (bool): Take the tag from tokens without a piece of their own.
    RETURNS (Path): Folder with train.spacy, and with dev.spacy, one part that fills the place.
    """
    folder = TRIALS / "parts" / f"{task}-{seed}-{updates}{'-same-start' * same_start}"
    if not (folder / "dev.spacy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        nlp = load_encoder(task)
        read = make_corpus(path=prepare(task) / "train.spacy", max_tokens="auto")
        parts = [eg.reference for eg in read(nlp)]
        if same_start:
            tokenizer = nlp.get_pipe("transformer").model.tokenizer
            parts = [part for part in parts if untag_shared_pieces(part, tokenizer)]
        draw, order = random.Random(seed), []
        while len(order) < updates * PARTS_PER_UPDATE:
            order += draw.sample(parts, len(parts))
        order = order[: updates * PARTS_PER_UPDATE]
        DocBin(docs=order, store_user_data=True).to_disk(folder / "train.spacy")
        DocBin(docs=order[:1], store_user_data=True).to_disk(folder / "dev.spacy")
    return folder


def load_encoder(task: str) -> Language:
    """Make a pipeline by the recipe, whose encoder cuts notes into windows."""
    config = spacy.util.load_config(ROOT / "configs" / "ner.cfg")
    apply_recipe(config, find_recipe(RECIPE))
    apply_settings(config, {"paths.encoder": str(SHIPPED), "nlp.lang": LANG[task]})
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    nlp.get_pipe("transformer").model.initialize()
    return nlp


def make_config(
    folder: Path, task: str, seed: int, updates: int, *, bf16: bool, same_start: bool
) -> Config:
    """Make our config by the recipe."""
    config = spacy.util.load_config(ROOT / "configs" / "ner.cfg")
    apply_recipe(config, find_recipe(RECIPE))
    changes = {
        "paths.train": str(folder / "train.spacy"),
        "paths.dev": str(folder / "dev.spacy"),
        "paths.encoder": str(SHIPPED),
        "nlp.lang": LANG[task],
        "system.seed": seed,
        "components.transformer.model.precision": "bf16" if bf16 else "fp32",
        "corpora.train.max_tokens": 0,  # the parts are cut, and in order: read as they come
        "training.max_epochs": -1,
        # From a corpus that is read as it comes, labels are collected from its first parts only.
        "initialize.components.ner": {"labels": sorted(label_sets(folder)[0].labels)},
        "training.max_steps": updates,
        "training.eval_frequency": updates + 1,
        "training.accumulate_gradient": 1,
        "training.batcher.size": PARTS_PER_UPDATE,
        "training.logger.progress_bar": None,
    }
    if same_start:
        changes |= {
            "components.transformer.model.transformer_config": NO_DROPOUT,
            "components.ner.model.dropout": 0.0,
            "training.optimizer.grad_clip": 0.0,
        }
    apply_settings(config, changes)
    set_learn_rate(config, LEARN_RATE)
    return config


def train_ours(config: Config, trial: Path) -> float:
    """Train with `bioclin train`. RETURNS (float): Seconds, start of the process included."""
    config.to_disk(trial / "config.cfg")
    command = ("-m", "spacy_bioclin", "train", trial / "config.cfg")
    return run_python(*command, "-o", trial / "training", log=trial / "training.log").seconds


def train_theirs(
    model: TokenClassifier, folder: Path, trial: Path, updates: int, *, clip: float
) -> float:
    """Train with Trainer, and keep the weights. RETURNS (float): Seconds."""
    settings = {
        "output_dir": str(trial),
        "per_device_train_batch_size": PARTS_PER_UPDATE,
        "learning_rate": LEARN_RATE,
        # Defaults of the library, which the recipe takes over; written out so that they stay.
        "lr_scheduler_type": "linear",
        "warmup_steps": 0,
        "weight_decay": 0.0,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "adam_epsilon": 1e-8,
        "max_grad_norm": clip,
    }
    started = time.perf_counter()
    parts = read_docs(folder / "train.spacy", spacy.blank("es").vocab)
    model.train(parts, updates, settings)
    model.save(trial / WEIGHTS)
    return time.perf_counter() - started


def label_sets(folder: Path) -> list[TagSet]:
    """Make the tags of the training parts as our component does."""
    docs = read_docs(folder / "train.spacy", spacy.blank("es").vocab)
    labels = {ent.label_ for doc in docs for ent in doc.ents}
    return make_tag_sets(labels, scheme="BIO", nested=False)


def trial_folder(options: dict[str, Any]) -> Path:
    """Name the folder of a trial by its options; see `run_trial`."""
    name = "{task}-{system}-{seed}-{updates}".format(**options)
    name += "-bf16" if options["bf16"] else ""
    name += "-same-start" if options["same_start"] else ""
    return TRIALS / "trials" / name


def run_trial(
    trial: Path,
    *,
    task: str,
    system: str,
    seed: int,
    updates: int,
    bf16: bool,
    same_start: bool,
    n_docs: int | None,
) -> dict[str, Any]:
    """Train a system, unless it was trained before, and score it on the test split."""
    trial.mkdir(parents=True, exist_ok=True)
    folder = write_parts(task, seed, updates, same_start=same_start)
    references = list(read_docs(prepare(task) / "test.spacy", spacy.blank(LANG[task]).vocab))
    references = references[:n_docs]
    texts = [doc.text for doc in references]
    docs = split_into_sentences(task, texts)
    encoder = load_encoder(task).get_pipe("transformer").model
    parts = [cut_into_windows(doc, encoder) for doc in docs]
    flat = [part for of_doc in parts for part in of_doc]
    config = make_config(folder, task, seed, updates, bf16=bf16, same_start=same_start)
    if system == "bioclin":
        trained = keep(trial / TRAINED, lambda: {"seconds": train_ours(config, trial)})
        nlp = spacy.load(trial / "training" / "model-last")
        as_used = [get_char_spans(doc, None) for doc in nlp.pipe(texts)]
        same = (get_char_spans(doc, None) for doc in nlp.pipe([part.text for part in flat]))
    else:
        tag_sets = label_sets(folder)
        head = None
        if same_start:
            head = init_nlp(config).get_pipe("ner").model.get_ref("head").shims[0].module.output
        words = system == "huggingface-words"
        model = TokenClassifier(SHIPPED, tag_sets[0], words=words, bf16=bf16, seed=seed, head=head)
        clip = 0.0 if same_start else 1.0
        train = partial(train_theirs, model, folder, trial, updates, clip=clip)
        trained = keep(trial / TRAINED, lambda: {"seconds": train()})
        model.load(trial / WEIGHTS)
        pairs = list(zip(flat, model.predict(flat), strict=True))
        best = (best_tags(part, of_part, tag_sets[0]) for part, of_part in pairs)
        as_used = join_parts(docs, parts, best)
        same = (set(legal_tags(part, of_part, tag_sets)) for part, of_part in pairs)
    return {
        **{"task": task, "system": system, "seed": seed, "updates": updates, "bf16": bf16},
        "docs": len(references),
        "same_start": same_start,
        "threads": torch.get_num_threads(),
        "train_seconds": round(trained["seconds"], 1),
        "test": score(as_used, references),
        "test_same": score(join_parts(docs, parts, same), references),
        "machine": describe_machine(),
    }


def measure(options: dict[str, Any], n_docs: int | None) -> dict[str, Any]:
    """Run a trial, or read what it measured before."""
    trial = trial_folder(options)
    name = f"result-{n_docs}.json" if n_docs else "result.json"
    return keep(trial / name, lambda: run_trial(trial, **options, n_docs=n_docs))


def differences(trials: list[dict[str, Any]], task: str, system: str, kind: str) -> list[float]:
    """Subtract the system's F1 from ours, in points, for each seed that both have."""
    ours, theirs = (
        {t["seed"]: t[kind]["f"] for t in trials if (t["task"], t["system"]) == (task, name)}
        for name in ("bioclin", system)
    )
    return [100 * (ours[seed] - theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]


def summarize(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Compute mean and standard deviation of F1, and points below ours, per corpus and system."""
    summary: dict[str, Any] = {}
    for task in sorted({trial["task"] for trial in trials}):
        rows: dict[str, Any] = {}
        for system in SYSTEMS:
            group = [t for t in trials if (t["task"], t["system"]) == (task, system)]
            if not group:
                continue
            seconds = statistics.median(t["train_seconds"] for t in group)
            rows[system] = {"seeds": len(group), "train_seconds_median": seconds}
            for kind in ("test", "test_same"):
                f = [trial[kind]["f"] for trial in group]
                rows[system][f"{kind}_f_mean"] = round(statistics.mean(f), 4)
                rows[system][f"{kind}_f_sd"] = round(statistics.stdev(f), 4) if f[1:] else None
        others = [system for system in rows if system != "bioclin"] if "bioclin" in rows else []
        for system in others:
            for kind in ("test", "test_same"):
                apart = differences(trials, task, system, kind)
                if apart:
                    rows[system][f"{kind}_points_below_ours"] = round(statistics.mean(apart), 2)
                if apart[1:]:
                    error = statistics.stdev(apart) / len(apart) ** 0.5
                    rows[system][f"{kind}_standard_error"] = round(error, 2)
        summary[task] = rows
    return summary


def all_trials(name: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Merge the trials of the committed result with those of this checkout, which win.

    name (str): The result.
    settings (dict[str, Any]): Those of the new result; a trial with others does not belong to it.
    """
    committed = RESULTS / f"{name}.json"
    known = read_json(committed) if committed.exists() else {"trials": []}
    same = all(known.get(key) == value for key, value in settings.items())
    found = known["trials"] if same else []
    found += [read_json(path) for path in sorted((TRIALS / "trials").glob("*/result.json"))]
    same_start = name == SAME_START
    trials = {
        (trial["task"], trial["system"], trial["seed"]): trial
        for trial in found
        if (trial["updates"], trial["bf16"]) == (settings["updates"], settings["bf16"])
        and trial["same_start"] == same_start
    }
    return [trials[key] for key in sorted(trials)]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--task", choices=TASKS, nargs="+", default=list(TASKS))
    parser.add_argument("--systems", choices=SYSTEMS, nargs="+", default=list(SYSTEMS[:2]))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--precision", choices=("fp32", "bf16", "auto"), default="auto")
    parser.add_argument("--docs", type=int, help="test documents; writes no result")
    parser.add_argument(
        "--same-start", action="store_true", help="same head, no dropout or clipping"
    )
    arguments = parser.parse_args()
    fast = has_fast_bf16(torch.device("cpu"))
    bf16 = arguments.precision == "bf16" or (arguments.precision == "auto" and fast)
    name = SAME_START if arguments.same_start else "trainer_parity"
    settings = {"recipe": RECIPE, "learn_rate": LEARN_RATE, "parts_per_update": PARTS_PER_UPDATE}
    settings |= {"max_tokens": "auto", "window": find_recipe(RECIPE).settings[WINDOW]}
    settings |= {"updates": arguments.updates, "bf16": bf16}
    for seed, task, system in product(arguments.seeds, arguments.task, arguments.systems):
        options = {"task": task, "system": system, "seed": seed, "bf16": bf16}
        options |= {"updates": arguments.updates, "same_start": arguments.same_start}
        trial = measure(options, arguments.docs)
        print(json.dumps({k: v for k, v in trial.items() if k != "machine"}), flush=True)
        if not arguments.docs:
            trials = all_trials(name, settings)
            summary = {"aim_in_points": 0.3, "summary": summarize(trials)}
            print(write_result(name, {**settings, **summary, "trials": trials}))


if __name__ == "__main__":
    main()
