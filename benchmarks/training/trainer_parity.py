"""Fine-tuning beside the Trainer of the transformers library: strict F1 with the same encoder,
parts of notes in the same order, recipe, seeds and number of updates.

    OMP_NUM_THREADS=1 python -m benchmarks.training.trainer_parity --task bc5cdr --seeds 0 1 2
    OMP_NUM_THREADS=1 python -m benchmarks.training.trainer_parity --task pharmaconer --seeds 0 1 2

The recipe is "carrino-2022" with the rate and batches below. Nothing is selected: what the last
update leaves is scored, on character offsets of the whole test split.

"test" is each system as it is used: ours annotates whole notes and decodes tags that make sense,
the other reads the same kind of parts as in training and takes the best tag of each token, read as
seqeval reads them. "test_same" gives both the same parts and the same decoding, so that only the
training differs. The system "huggingface" cuts the text into pieces, as ours does,
"huggingface-words" word by word, as run_ner does.

With --same-start both start from our head's weights, without dropout and without clipping, which
ours does for encoder and head apart: nothing is left to chance, and every difference is one of the
implementations. The result is then trainer_parity_same_start.json.

A finished trial is kept in .work/benchmarks/trainer_parity and not run again; the summary goes to
benchmarks/results/trainer_parity.json.
"""

import json
import random
import statistics
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from thinc.api import Config

from benchmarks.corpora import LANG, SHIPPED, make_blank, prepare
from benchmarks.harness import (
    ROOT,
    WORK,
    describe_machine,
    keep,
    make_parser,
    read_json,
    run_python,
    write_result,
)
from benchmarks.training.trainer_huggingface import NO_DROPOUT, TokenClassifier
from spacy_bioclin.catalog.recipes import apply_recipe, apply_settings, find_recipe, set_learn_rate
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.readers import cut_doc, make_corpus
from spacy_bioclin.encoders.precision import has_fast_bf16
from spacy_bioclin.evaluation.conll import chunks
from spacy_bioclin.evaluation.spans import reference_spans, score_spans
from spacy_bioclin.ner.inference import find_entities, make_grammar
from spacy_bioclin.ner.model import TagScores
from spacy_bioclin.ner.tags import TagSet, make_tag_sets
from spacy_bioclin.spans import get_char_spans
from spacy_bioclin.types import CharSpan

TRIALS = WORK / "trainer_parity"
TASKS = ("bc5cdr", "pharmaconer")
SYSTEMS = ("bioclin", "huggingface", "huggingface-words")
RECIPE = "carrino-2022"
LEARN_RATE = 3e-4  # for a small encoder
PARTS_PER_UPDATE = 8
MAX_TOKENS = 96
UPDATES = 170  # about two minutes of one core


def write_parts(task: str, seed: int, updates: int) -> Path:
    """Write the parts of the training notes in the order in which both systems see them: every
    part once, in an order that the seed draws, then again in another one.

    RETURNS (Path): Folder with train.spacy, and with dev.spacy, one part that fills the place.
    """
    folder = TRIALS / "parts" / f"{task}-{seed}-{updates}"
    if not (folder / "dev.spacy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        read = make_corpus(path=prepare(task) / "train.spacy", max_tokens=MAX_TOKENS)
        parts = [eg.reference for eg in read(spacy.blank(LANG[task]))]
        draw, order = random.Random(seed), []
        while len(order) < updates * PARTS_PER_UPDATE:
            order += draw.sample(parts, len(parts))
        order = order[: updates * PARTS_PER_UPDATE]
        DocBin(docs=order, store_user_data=True).to_disk(folder / "train.spacy")
        DocBin(docs=order[:1], store_user_data=True).to_disk(folder / "dev.spacy")
    return folder


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
    folder: Path,
    trial: Path,
    tag_set: TagSet,
    system: str,
    seed: int,
    updates: int,
    *,
    bf16: bool,
    ours: Config | None,
) -> tuple[TokenClassifier, float]:
    """
    ours (Config | None): Of our side, to start from the same head.
    RETURNS (tuple): The trained model, and the seconds that it took.
    """
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
        "max_grad_norm": 0.0 if ours else 1.0,
    }
    words = system == "huggingface-words"
    started = time.perf_counter()
    head = None
    if ours is not None:
        head = init_nlp(ours).get_pipe("ner").model.get_ref("head").shims[0].module.output
    model = TokenClassifier(SHIPPED, tag_set, words=words, bf16=bf16, seed=seed, head=head)
    parts = read_docs(folder / "train.spacy", spacy.blank("es").vocab)
    model.train(parts, updates, settings)
    return model, time.perf_counter() - started


def label_sets(folder: Path) -> list[TagSet]:
    """Make the tags of the training parts as our component does."""
    docs = read_docs(folder / "train.spacy", spacy.blank("es").vocab)
    labels = {ent.label_ for doc in docs for ent in doc.ents}
    return make_tag_sets(labels, scheme="BIO", nested=False)


def split_into_sentences(task: str, texts: list[str]) -> list[Doc]:
    """Make Docs with our tokens and sentences, without annotation."""
    return list(make_blank(LANG[task], "bioclin_sentences").pipe(texts))


def join_parts(
    docs: list[Doc], parts: list[list[Doc]], found: Iterator[Iterable[CharSpan]]
) -> list[set[CharSpan]]:
    """Move the spans found in the parts of each Doc to the Doc's own offsets."""
    joined = []
    for doc, of_doc in zip(docs, parts, strict=True):
        begin, spans = 0, set()
        for part in of_doc:
            spans |= {(begin + s, begin + e, label) for s, e, label in next(found)}
            begin += len(part.text)
        assert begin == len(doc.text), "parts of a text must be the text together"
        joined.append(spans)
    return joined


def best_tags(part: Doc, scores: np.ndarray, tag_set: TagSet) -> list[CharSpan]:
    """Read the best tag of each token as conlleval and seqeval do."""
    tags = [tag_set.tags[i] for i in scores.argmax(1)]
    return [(part[s:e].start_char, part[s:e].end_char, label) for s, e, label in chunks(tags)]


def legal_tags(part: Doc, scores: np.ndarray, tag_sets: list[TagSet]) -> list[CharSpan]:
    """Decode the best legal tags as our component does."""
    emissions = torch.from_numpy(scores)[:, None]
    n_tags = tag_sets[0].n_tags
    edges = torch.zeros(1, n_tags)
    tag_scores = TagScores(emissions, torch.zeros(1, n_tags, n_tags), edges, edges, [len(part)])
    [entities] = find_entities(tag_scores, tag_sets, make_grammar(tag_sets, torch.device("cpu")))
    spans = [(part[e.start : e.end], e.label) for e in entities]
    return [(span.start_char, span.end_char, label) for span, label in spans]


def score(found: list[set[CharSpan]], references: list[Doc]) -> dict[str, float]:
    gold = [reference_spans(doc, None) or set() for doc in references]
    micro = score_spans(zip(gold, found, strict=True)).micro.prf()
    return {key: round(value, 4) for key, value in micro.items()}


def trial_folder(options: dict[str, Any]) -> Path:
    """Name the folder of a trial by its options; see `run_trial`."""
    name = "{task}-{system}-{seed}-{updates}".format(**options)
    name += "-bf16" if options["bf16"] else ""
    name += "-same-start" if options["same_start"] else ""
    name += f"-{options['n_docs']}-docs" if options["n_docs"] else ""
    return TRIALS / "trials" / name


def run_trial(
    trial: Path,
    *,
    task: str,
    system: str,
    seed: int,
    updates: int,
    bf16: bool,
    n_docs: int | None,
    same_start: bool,
) -> dict[str, Any]:
    """Train a system and score it on the test split."""
    trial.mkdir(parents=True, exist_ok=True)
    folder = write_parts(task, seed, updates)
    references = list(read_docs(prepare(task) / "test.spacy", spacy.blank(LANG[task]).vocab))
    references = references[:n_docs]
    texts = [doc.text for doc in references]
    docs = split_into_sentences(task, texts)
    parts = [cut_doc(doc, MAX_TOKENS) for doc in docs]
    flat = [part for of_doc in parts for part in of_doc]
    config = make_config(folder, task, seed, updates, bf16=bf16, same_start=same_start)
    if system == "bioclin":
        seconds = train_ours(config, trial)
        nlp = spacy.load(trial / "training" / "model-last")
        as_used = [get_char_spans(doc, None) for doc in nlp.pipe(texts)]
        same = (get_char_spans(doc, None) for doc in nlp.pipe([part.text for part in flat]))
    else:
        tag_sets = label_sets(folder)
        model, seconds = train_theirs(
            folder,
            trial,
            tag_sets[0],
            system,
            seed,
            updates,
            bf16=bf16,
            ours=config if same_start else None,
        )
        scores = list(model.predict(flat))
        pairs = list(zip(flat, scores, strict=True))
        best = (best_tags(part, of_part, tag_sets[0]) for part, of_part in pairs)
        as_used = join_parts(docs, parts, best)
        same = (set(legal_tags(part, of_part, tag_sets)) for part, of_part in pairs)
    return {
        **{"task": task, "system": system, "seed": seed, "updates": updates, "bf16": bf16},
        "docs": len(references),
        "same_start": same_start,
        "threads": torch.get_num_threads(),
        "train_seconds": round(seconds, 1),
        "test": score(as_used, references),
        "test_same": score(join_parts(docs, parts, same), references),
        "machine": describe_machine(),
    }


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Run a trial, or read what it measured before."""
    trial = trial_folder(options)
    return keep(trial / "result.json", lambda: run_trial(trial, **options))


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


def all_trials(
    updates: int, bf16: bool, n_docs: int | None, same_start: bool
) -> list[dict[str, Any]]:
    """Read the finished trials with these settings."""
    paths = sorted((TRIALS / "trials").glob("*/result.json"))
    done = [read_json(path) for path in paths if ("-docs" in path.parts[-2]) == bool(n_docs)]
    wanted = updates, bf16, same_start
    return [t for t in done if (t["updates"], t["bf16"], t.get("same_start", False)) == wanted]


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
    same_start = arguments.same_start
    fast = has_fast_bf16(torch.device("cpu"))
    bf16 = arguments.precision == "bf16" or (arguments.precision == "auto" and fast)
    for task in arguments.task:
        for seed in arguments.seeds:
            for system in arguments.systems:
                options = {
                    **{"task": task, "system": system, "seed": seed, "bf16": bf16},
                    **{"updates": arguments.updates, "n_docs": arguments.docs},
                    "same_start": same_start,
                }
                trial = measure(options)
                print(json.dumps({k: v for k, v in trial.items() if k != "machine"}), flush=True)
    trials = all_trials(arguments.updates, bf16, arguments.docs, same_start)
    result = {"recipe": RECIPE, "learn_rate": LEARN_RATE, "parts_per_update": PARTS_PER_UPDATE}
    result |= {"max_tokens": MAX_TOKENS, "updates": arguments.updates, "bf16": bf16}
    result |= {"aim_in_points": 0.3, "summary": summarize(trials), "trials": trials}
    if arguments.docs:
        print(json.dumps(result["summary"], indent=2))
    else:
        print(write_result(f"trainer_parity{'_same_start' if same_start else ''}", result))


if __name__ == "__main__":
    main()
