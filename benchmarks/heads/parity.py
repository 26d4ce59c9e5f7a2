"""Heads for relations and pairs beside scripts with the Trainer of the transformers library: the
same encoder, head, training texts, order, seeds, number of updates and learning rates.

    export OMP_NUM_THREADS=1
    python -m benchmarks.heads.parity --task relations --seeds 0 1 2
    python -m benchmarks.heads.parity --same-start

relations: candidates of ChemProt in texts with markers, as `bioclin_relations` with input =
"markers" makes them. A text is one sentence with one chemical and one gene. The other side gets the
marked texts and the places of both markers, and has the same head in plain torch. pairs: RQE, and
on the other side `AutoModelForSequenceClassification`.

Texts of more than 96 pieces are left out of both sides. What is scored is a fixed sample of dev:
micro F1 of the relations, and accuracy of the pairs. The seed draws the order of the training texts
and the weights of the head, and both sides compute in the same format. The learning rate is that of
the catalogue for the encoder, for encoder and head alike, with 10 % warm-up and no weight decay.
Ours clips the gradients of encoder and head apart, the other side clips all together.

--same-start: from the same weights of the head, without dropout, clipping and warm-up, in fp32, the
losses of the first 20 updates are compared; "largest_difference" is that of them.

A finished trial is kept in .work/benchmarks and not run again. After each, the result
benchmarks/results/heads_parity.json is written anew.
"""

import json
import random
import statistics
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import registry
from thinc.api import Config
from transformers import AutoTokenizer

from benchmarks.corpora import make_blank
from benchmarks.harness import (
    ROOT,
    WORK,
    describe_machine,
    keep,
    make_parser,
    read_json,
    run_python,
    write_json,
    write_result,
)
from benchmarks.heads.data import prepare
from benchmarks.heads.parity_huggingface import Text, TextClassifier
from benchmarks.training.trainer_huggingface import NO_DROPOUT
from spacy_bioclin.annotations.pairs import split_pair
from spacy_bioclin.annotations.relations import get_gold_relations
from spacy_bioclin.catalog.choices import choose_settings
from spacy_bioclin.catalog.recipes import apply_settings
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.readers import make_corpus
from spacy_bioclin.encoders.precision import has_fast_bf16
from spacy_bioclin.relations.candidates import Mention
from spacy_bioclin.relations.marking import mark_pair
from spacy_bioclin.types import GOLD_KEY

ENCODER = ROOT / "assets" / "encoders" / "bioclin-sm"
FOLDER = WORK / "heads-parity"
TASKS = {"relations": "chemprot", "pairs": "rqe"}
SYSTEMS = ("bioclin", "huggingface")
HEAD, CHILD, NONE = "CHEMICAL", "GENE", "none"
LANG = "en"
MAX_PIECES = 96
N_TRAIN, N_DEV = 4800, 600
BATCH, UPDATES, WARMUP = 16, 300, 0.1
N_FIRST = 100  # what spaCy reads of such a corpus
SAME_START_UPDATES, AIM = 20, 1e-3
CONFIG = {"attention_probs_dropout_prob": 0.0}
ENCODER_SECTION = {
    "relations": "components.relations.model.tok2vec",
    "pairs": "components.transformer.model",
}


def choose_docs(task: str, split: str) -> Path:
    """Choose the texts of a task at random, always the same, and write a Doc for each.

    RETURNS (Path): The .spacy file.
    """
    path = FOLDER / "texts" / f"{task}-{split}.spacy"
    if not path.exists():
        nlp = make_blank(LANG, "bioclin_sentences")
        tokenizer = AutoTokenizer.from_pretrained(ENCODER, trust_remote_code=False)
        docs = list(read_docs(prepare(TASKS[task]) / f"{split}.spacy", nlp.vocab))
        random.Random(0).shuffle(docs)
        found = iter(docs) if task == "pairs" else make_candidates(nlp, task, docs)
        short = (doc for doc in found if fits(tokenizer, task, doc))
        chosen = list(islice(short, N_TRAIN if split == "train" else N_DEV))
        path.parent.mkdir(parents=True, exist_ok=True)
        DocBin(docs=chosen, store_user_data=True).to_disk(path)
    return path


def fits(tokenizer: Any, task: str, doc: Doc) -> bool:
    """Check whether a text is short enough."""
    text = to_text(task, doc)
    return len(tokenizer(text.text, text.second)["input_ids"]) <= MAX_PIECES


def make_candidates(nlp: Language, task: str, docs: list[Doc]) -> Iterator[Doc]:
    """Make a Doc of each candidate: its sentence, with the two entities and no other.

    YIELDS (Doc): In random order.
    """
    drawn = random.Random(0)
    found = []
    for doc in docs:
        own: dict[tuple[Any, Any], set[str]] = {}
        for relation in get_gold_relations(doc) or ():
            ends = relation.head[:2], relation.child[:2]
            own.setdefault(ends, set()).add(relation.label)
        spans = [(span.start_char, span.end_char, span.label_) for span in doc.spans["ents"]]
        for sent in nlp(doc.text).sents:
            inside = [s for s in spans if sent.start_char <= s[0] and s[1] <= sent.end_char]
            for head, child in product(inside, inside):
                if (head[2], child[2]) == (HEAD, CHILD):
                    labels = own.get((head[:2], child[:2]), {NONE})
                    found.append((sent.text, sent.start_char, head, child, labels))
    drawn.shuffle(found)
    for n, (text, offset, head, child, labels) in enumerate(found):
        doc = nlp(text)
        spans = [(start - offset, end - offset, label) for start, end, label in (head, child)]
        ents = [doc.char_span(*span) for span in spans]
        apart = head[1] <= child[0] or child[1] <= head[0]
        if None in ents or not apart or len(labels) > 1 or len(list(doc.sents)) > 1:
            continue
        doc.ents = [ent for ent in ents if ent is not None]
        relations = [[label, *map(list, spans)] for label in labels - {NONE}]
        gold: dict[str, Any] = {"id": str(n), "task": task, "layers": {}}
        doc.user_data[GOLD_KEY] = {**gold, "relations": relations}
        yield doc


def to_text(task: str, doc: Doc) -> Text:
    """Make of a Doc what the other side reads."""
    if task == "pairs":
        first, second = split_pair(doc)
        label = max(doc.cats, key=doc.cats.__getitem__)
        return Text(first.text, second.text, None, label)
    mentions = {ent.label_: Mention(ent.start, ent.end, ent.label_) for ent in doc.ents}
    marked = mark_pair(doc, ([mentions[HEAD]], [mentions[CHILD]]), (0, len(doc)))
    marks = marked.doc[marked.head[0]].idx, marked.doc[marked.child[0]].idx
    labels = [relation.label for relation in get_gold_relations(doc) or ()]
    return Text(marked.doc.text, None, marks, labels[0] if labels else NONE)


def read_chosen(task: str, split: str) -> list[Doc]:
    """Read the chosen texts."""
    return list(read_docs(choose_docs(task, split), spacy.blank(LANG).vocab))


def write_order(task: str, seed: int, updates: int) -> Path:
    """Write the training texts in the order in which both sides see them."""
    path = FOLDER / "orders" / f"{task}-{seed}-{updates}.spacy"
    if not path.exists():
        docs, draw = read_chosen(task, "train"), random.Random(seed)
        order: list[Doc] = []
        while len(order) < updates * BATCH:
            order += draw.sample(docs, len(docs))
        show_labels(order, [to_text(task, doc).label for doc in order])
        path.parent.mkdir(parents=True, exist_ok=True)
        DocBin(docs=order[: updates * BATCH], store_user_data=True).to_disk(path)
    return path


def show_labels(order: list[Doc], labels: list[str]) -> None:
    """Exchange texts, in place, so that the first have all labels: our component is initialized
    with the first ones of a corpus that is read as it comes."""
    missing = sorted(set(labels) - set(labels[:N_FIRST]))
    for place, label in enumerate(missing):
        other = labels.index(label)
        order[place], order[other] = order[other], order[place]


def list_labels(task: str) -> list[str]:
    """List the classes as our component orders them."""
    found = {to_text(task, doc).label for doc in read_chosen(task, "train")}
    return [NONE, *sorted(found - {NONE})] if task == "relations" else sorted(found)


def make_config(
    task: str, seed: int, updates: int, *, bf16: bool, same_start: bool = False
) -> Config:
    """Make our config."""
    name = "relations-markers.cfg" if task == "relations" else "pairs.cfg"
    config = spacy.util.load_config(ROOT / "configs" / name)
    labels = list_labels(task)
    given = {label: [[HEAD, CHILD]] for label in labels[1:]} if task == "relations" else labels
    path = FOLDER / "texts" / f"{task}-labels.json"
    write_json(path, given)  # a config cannot have sections with keys such as "CPR:3"
    batcher = {"@batchers": "spacy.batch_by_sequence.v1", "size": BATCH, "get_length": None}
    changes: dict[str, Any] = {
        "paths.train": str(write_order(task, seed, updates)),
        "paths.dev": str(choose_docs(task, "dev")),
        "paths.encoder": str(ENCODER),
        "nlp.lang": LANG,
        "system.seed": seed,
        "corpora.train.max_tokens": 0,  # in order: read as they come
        f"{ENCODER_SECTION[task]}.precision": "bf16" if bf16 else "fp32",
        f"{ENCODER_SECTION[task]}.transformer_config": NO_DROPOUT if same_start else CONFIG,
        f"components.{task}.model.learn_rate_scale": 1.0,
        # From a corpus that is read as it comes, labels are collected from its first texts only.
        "initialize.components": {
            task: {"labels": {"@readers": "spacy.read_labels.v1", "path": str(path)}}
        },
        "training.max_epochs": -1,
        "training.max_steps": updates,
        "training.eval_frequency": updates + 1,
        "training.accumulate_gradient": 1,
        "training.batcher": batcher,
        "training.optimizer.L2": 0.0,
        "training.optimizer.learn_rate.initial_rate": choose_settings(str(ENCODER)).learn_rate,
        "training.optimizer.learn_rate.warmup": 0.0 if same_start else WARMUP,
        "training.logger.progress_bar": None,
    }
    if task == "relations":
        changes["components.relations.spans_key"] = None
    else:
        changes["components.pairs.model.compare_texts"] = False
    if same_start:
        changes |= {f"components.{task}.model.dropout": 0.0, "training.optimizer.grad_clip": 0.0}
    apply_settings(config, changes)
    return config


def make_settings(folder: Path, updates: int, *, same_start: bool = False) -> dict[str, Any]:
    """Make the same settings for Trainer."""
    return {
        "output_dir": str(folder),
        "per_device_train_batch_size": BATCH,
        "learning_rate": choose_settings(str(ENCODER)).learn_rate,
        "lr_scheduler_type": "linear",
        "warmup_steps": 0 if same_start else round(WARMUP * updates),
        "weight_decay": 0.0,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "adam_epsilon": 1e-8,
        "max_grad_norm": 0.0 if same_start else 1.0,
    }


def read_dev(nlp: Language, task: str) -> list[Example]:
    """Read the texts to score with the entities given."""
    return list(make_corpus(choose_docs(task, "dev"), use_gold_ents=True)(nlp))


def train_ours(task: str, trial: Path, config: Config) -> tuple[list[str], float]:
    """Train with `bioclin train`. RETURNS (tuple): The class of each text of dev, and seconds."""
    config.to_disk(trial / "config.cfg")
    command = ("-m", "spacy_bioclin", "train", trial / "config.cfg", "--overwrite")
    usage = run_python(*command, "-o", trial / "training", log=trial / "training.log")
    nlp = spacy.load(trial / "training" / "model-last")
    predicted = nlp.pipe([eg.predicted for eg in read_dev(nlp, task)])
    if task == "pairs":
        return [doc._.pair.label for doc in predicted], usage.cpu_seconds
    found = [[relation.label for relation in doc._.relations] for doc in predicted]
    return [labels[0] if labels else NONE for labels in found], usage.cpu_seconds


def train_theirs(
    task: str, trial: Path, seed: int, updates: int, *, bf16: bool
) -> tuple[list[str], float]:
    """Train with Trainer. RETURNS (tuple): The class of each text of dev, and seconds."""
    started = time.process_time()
    model = TextClassifier(
        ENCODER,
        list_labels(task),
        markers=task == "relations",
        config=CONFIG,
        bf16=bf16,
        seed=seed,
    )
    docs = read_docs(write_order(task, seed, updates), spacy.blank(LANG).vocab)
    model.train((to_text(task, doc) for doc in docs), updates, make_settings(trial, updates))
    seconds = time.process_time() - started
    return model.predict([to_text(task, doc) for doc in read_chosen(task, "dev")]), seconds


def score(task: str, gold: list[str], found: list[str]) -> float:
    """Compute the micro F1 of relations, or the accuracy of pairs."""
    pairs = list(zip(gold, found, strict=True))
    if task == "pairs":
        return sum(one == other for one, other in pairs) / len(pairs)
    right = sum(one == other != NONE for one, other in pairs)
    counted = sum(one != NONE for pair in pairs for one in pair)
    return 2 * right / max(1, counted)


def run_trial(
    trial: Path, *, task: str, system: str, seed: int, updates: int, bf16: bool
) -> dict[str, Any]:
    """Train a system and score it."""
    trial.mkdir(parents=True, exist_ok=True)
    if system == "bioclin":
        config = make_config(task, seed, updates, bf16=bf16)
        found, seconds = train_ours(task, trial, config)
    else:
        found, seconds = train_theirs(task, trial, seed, updates, bf16=bf16)
    gold = [to_text(task, doc).label for doc in read_chosen(task, "dev")]
    return {
        **{"task": task, "system": system, "seed": seed, "updates": updates, "bf16": bf16},
        "dev": round(score(task, gold, found), 4),
        "train_cpu_seconds": round(seconds, 1),
        "threads": torch.get_num_threads(),
        "machine": describe_machine(),
    }


def compare_losses(task: str) -> dict[str, Any]:
    """Compare the losses of updates from the same weights."""
    config = make_config(task, 0, SAME_START_UPDATES, bf16=False, same_start=True)
    nlp = init_nlp(config)
    module = nlp.get_pipe(task).model.get_ref("head").shims[0].module  # type: ignore[attr-defined]
    docs = list(read_docs(write_order(task, 0, SAME_START_UPDATES), nlp.vocab))
    model = TextClassifier(
        ENCODER,
        list_labels(task),
        markers=task == "relations",
        config=CONFIG,
        bf16=False,
        seed=0,
        head=module,
    )
    texts = [to_text(task, doc) for doc in docs]
    settings = make_settings(FOLDER / "same-start", SAME_START_UPDATES, same_start=True)
    theirs = model.train(texts, SAME_START_UPDATES, settings)
    optimizer = registry.resolve(config.interpolate()["training"])["optimizer"]
    path = write_order(task, 0, SAME_START_UPDATES)
    examples = list(make_corpus(path, use_gold_ents=True)(nlp))
    ours = []
    for start in range(0, len(examples), BATCH):
        losses: dict[str, float] = {}
        batch = examples[start : start + BATCH]
        nlp.update(batch, sgd=optimizer, losses=losses, annotates=["sentences"])
        optimizer.step_schedules()
        ours.append(round(losses[task], 4))
    largest = max(abs(one - other) for one, other in zip(ours, theirs, strict=True))
    result = {"updates": SAME_START_UPDATES, "largest_difference": round(largest, 4), "aim": AIM}
    return {**result, "bioclin": ours, "huggingface": theirs}


def summarize(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Compute mean and deviation of each system, and the difference of the means, over the seeds
    that both have."""
    summary: dict[str, Any] = {}
    known = {(one["task"], one["system"], one["seed"]) for one in trials}
    paired = [
        one
        for one in trials
        if all((one["task"], system, one["seed"]) in known for system in SYSTEMS)
    ]
    for task in sorted({trial["task"] for trial in trials}):
        rows: dict[str, Any] = {"metric": "micro F1" if task == "relations" else "accuracy"}
        for system in SYSTEMS:
            group = [one for one in paired if (one["task"], one["system"]) == (task, system)]
            values = [100 * one["dev"] for one in group]
            if values:
                rows[system] = {
                    "seeds": len(values),
                    "mean": round(statistics.mean(values), 2),
                    "sd": round(statistics.stdev(values), 2) if values[1:] else None,
                    "range": [round(min(values), 2), round(max(values), 2)],
                    "train_cpu_seconds_median": statistics.median(
                        one["train_cpu_seconds"] for one in group
                    ),
                }
        if all(system in rows for system in SYSTEMS):
            difference = rows["bioclin"]["mean"] - rows["huggingface"]["mean"]
            widest = max(high - low for high, low in (rows[s]["range"][::-1] for s in SYSTEMS))
            rows["points_above_huggingface"] = round(difference, 2)
            if all(rows[system]["seeds"] > 1 for system in SYSTEMS):  # one has no range
                rows["widest_range_of_seeds"] = round(widest, 2)
                rows["within_range_of_seeds"] = abs(difference) <= widest
        summary[task] = rows
    return summary


def write_results(settings: dict[str, Any]) -> Path:
    """Write benchmarks/results/heads_parity.json from what was measured with these settings."""
    trials = [read_json(path) for path in sorted((FOLDER / "trials").glob("*/result.json"))]
    same = [one for one in trials if all(one[key] == settings[key] for key in ("updates", "bf16"))]
    starts = {task: FOLDER / "same-start" / f"{task}.json" for task in TASKS}
    result = {
        **settings,
        "corpora": TASKS,
        "summary": summarize(same),
        "same_start": {task: read_json(path) for task, path in starts.items() if path.exists()},
        "trials": same,
    }
    return write_result("heads_parity", result)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--task", choices=TASKS, nargs="+", default=list(TASKS))
    parser.add_argument("--systems", choices=SYSTEMS, nargs="+", default=list(SYSTEMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--precision", choices=("fp32", "bf16", "auto"), default="auto")
    parser.add_argument("--same-start", action="store_true", help="compare losses; no training")
    arguments = parser.parse_args()
    fast = has_fast_bf16(torch.device("cpu"))
    bf16 = arguments.precision == "bf16" or (arguments.precision == "auto" and fast)
    settings = {
        "encoder": ENCODER.name,
        "updates": arguments.updates,
        "bf16": bf16,
        "texts_per_update": BATCH,
        "learn_rate": choose_settings(str(ENCODER)).learn_rate,
        "warmup": WARMUP,
        "max_pieces": MAX_PIECES,
        "train_texts": N_TRAIN,
        "dev_texts": N_DEV,
    }
    if arguments.same_start:
        for task in arguments.task:
            path = FOLDER / "same-start" / f"{task}.json"
            found = keep(path, partial(compare_losses, task))
            print(task, json.dumps(found), write_results(settings), flush=True)
        return
    for task, seed, system in product(arguments.task, arguments.seeds, arguments.systems):
        options = {"task": task, "system": system, "seed": seed}
        options |= {"updates": arguments.updates, "bf16": bf16}
        name = "-".join(map(str, options.values()))
        trial = FOLDER / "trials" / name
        found = keep(trial / "result.json", partial(run_trial, trial, **options))
        shown = {key: value for key, value in found.items() if key != "machine"}
        print(json.dumps(shown), write_results(settings), flush=True)


if __name__ == "__main__":
    main()
