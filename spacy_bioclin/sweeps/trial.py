"""One trial of a sweep, from the config to its scores."""

import json
import random
import re
import shutil
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.util import load_config
from thinc.api import Config

from ..catalog.recipes import apply_recipe, apply_settings, find_recipe, set_learn_rate
from ..catalog.tasks import SPLITS, find_task
from ..corpora.docbin import read_docs, write_docs
from ..errors import BioclinError
from ..evaluation.metrics import ENTS, run_pipeline
from ..evaluation.spans import Counts, score_spans
from ..files import hash_files
from ..machine import choose_device, describe_cpu, find_commit, find_gpus, find_versions
from ..outputs import write_atomic
from ..runs import RUN, check_made_from, read_object
from ..training.corpora import convert_task
from ..training.epochs import count_updates, set_updates
from ..training.initialize import init_pipeline
from ..training.loop import BEST, Diverged, train
from ..training.state import NotResumable, find_state
from .plan import WHOLE, Corpus, Plan, Trial, as_name
from .results import CRASHED, DIVERGED, Result, get_folder, make_result, write_result

LANG = re.compile("[a-z]{2,3}")
SUBSET_SEED = 0  # the same small training set for every seed of a sweep


def prepare_corpora(plan: Plan, task: str, out: Path) -> Path:
    """Convert or copy the corpora of a task into the folder of the sweep, cut to size.

    RETURNS (Path): Folder with train.spacy, dev.spacy and test.spacy; with a config for several
        tasks, a folder with such a folder for each of them.
    RAISES (BioclinError): A corpus is missing and cannot be converted, or it is not the one that
        this sweep has used so far.
    """
    folder = out / "corpora" / as_name(task)
    corpus = find_corpus(plan, task)
    inner = list_inner_tasks(load_config(plan.config, interpolate=False))
    for name in inner:
        if not corpus.path:
            raise BioclinError(
                f"tasks.{task}: {plan.config} trains several tasks, so set path to a folder with "
                f"a folder for each of them: {', '.join(inner)}"
            )
        _prepare(plan, task, Path(corpus.path) / name, folder / name, corpus)
    if not inner:
        _prepare_one(plan, task, folder, corpus, out)
    return folder


def list_inner_tasks(config: Config) -> list[str]:
    """List the tasks that a config trains together; none if it trains one."""
    return list(config["corpora"].get("train", {}).get("tasks", ()))


def _prepare_one(plan: Plan, task: str, folder: Path, corpus: Corpus, out: Path) -> None:
    """Prepare the corpus of a task that is trained alone."""
    source = Path(corpus.path) if corpus.path else out / "corpora" / WHOLE / as_name(task)
    paths = {split: source / f"{split}.spacy" for split in SPLITS}
    if not corpus.path and not all(path.exists() for path in paths.values()):
        convert_task(task, find_task(task, corpus.lang), source)
    _prepare(plan, task, source, folder, corpus)


def _prepare(plan: Plan, task: str, source: Path, folder: Path, corpus: Corpus) -> None:
    """Copy the three splits of a folder, cut to size."""
    paths = {split: source / f"{split}.spacy" for split in SPLITS}
    for path in paths.values():
        if not path.exists():
            raise BioclinError(f"tasks.{task}: {source} has no {path.name}")
    notes = {split: plan.count_notes(task, split) for split in SPLITS}
    hashes = {split: hash_files(path) for split, path in paths.items()}
    made_from = {"notes": notes, "corpora": hashes, "seed": SUBSET_SEED}
    if (folder / RUN).exists():
        check_made_from(folder, read_object(folder / RUN), made_from)
    elif not folder.exists():  # else of an earlier version, which did not say
        write_atomic(folder / RUN, json.dumps(made_from, indent=2) + "\n")
    for split, path in paths.items():
        if (folder / path.name).exists():
            continue
        docs = list(read_docs(path, spacy.blank(corpus.lang).vocab))
        n_notes = notes[split]
        if n_notes and n_notes < len(docs):
            docs = random.Random(SUBSET_SEED).sample(docs, n_notes)
        write_docs(docs, folder / path.name)


def find_corpus(plan: Plan, task: str) -> Corpus:
    """Complete the corpus of a task with the catalogue's language and layer.

    RAISES (BioclinError): The language is unknown.
    """
    corpus = plan.tasks[task]
    if corpus.path is None:
        known = find_task(task, corpus.lang or None)
        layers = known.layer_names
        layer = corpus.layer or (layers[0] if len(layers) == 1 else ENTS)
        return corpus.model_copy(update={"lang": known.lang, "layer": layer})
    if corpus.lang and not LANG.fullmatch(corpus.lang):
        raise BioclinError(f"tasks.{task}: lang = {corpus.lang!r}: want a code such as es or en")
    if not corpus.lang:
        raise BioclinError(f"tasks.{task} has no lang: set the language of its notes")
    return corpus.model_copy(update={"layer": corpus.layer or ENTS})


def make_config(plan: Plan, trial: Trial, corpora: Path) -> Config:
    """Make the config of a trial, not interpolated.

    corpora (Path): See `prepare_corpora`.
    """
    config = load_config(plan.config, interpolate=False)
    if plan.recipe:
        apply_recipe(config, find_recipe(plan.recipe))
    settings = plan.get_settings(trial)
    corpus = find_corpus(plan, trial.task)
    fixed = {
        "paths.encoder": settings["encoder"],
        "nlp.lang": corpus.lang,
        "system.seed": trial.seed,
        "training.logger.progress_bar": None,
    }
    inner = list_inner_tasks(config)
    own = _find_inner_paths(config, corpora) if inner else _make_one(trial, corpus, corpora)
    apply_settings(config, {**fixed, **own, **settings["settings"]})
    if plan.epochs:
        config["training"]["max_epochs"] = plan.epochs
    set_learn_rate(config, settings["learn_rate"])
    return config


def _find_inner_paths(config: Config, corpora: Path) -> dict[str, Any]:
    """Find the corpora of the tasks that are trained together: setting -> path."""
    return {
        f"corpora.{split}.tasks.{name}.path": str(corpora / name / f"{split}.spacy")
        for split in ("train", "dev")
        for name in config["corpora"][split]["tasks"]
    }


def _make_one(trial: Trial, corpus: Corpus, corpora: Path) -> dict[str, Any]:
    """Make the settings for the corpus of a task that is trained alone."""
    in_ents = corpus.layer == ENTS
    return {
        "paths.train": str(corpora / "train.spacy"),
        "paths.dev": str(corpora / "dev.spacy"),
        "components.ner.spans_key": None if in_ents else corpus.layer,
        "components.ner.nested": corpus.path is None and find_task(trial.task).nested,
        # spaCy adds the weights of the component's defaults to what is not set here.
        "training.score_weights": {
            "ents_f": None,
            "ents_p": None,
            "ents_r": None,
            "ents_f" if in_ents else f"spans_{corpus.layer}_f": 1.0,
        },
    }


def run_trial(plan: Plan, out: Path, gpu_id: int, threads: int, trial: Trial) -> None:
    """Train and score a pipeline, and write the result and the log into the trial's folder.

    An interrupted trial resumes at its last evaluation. The pipeline itself is deleted.

    out (Path): Folder of the sweep.
    gpu_id (int): GPU; -1 for the CPU.
    threads (int): Threads of torch.
    """
    torch.set_num_threads(threads)
    choose_device(gpu_id)
    training = get_folder(out, trial) / "training"
    training.mkdir(parents=True, exist_ok=True)
    started, cpu_started = time.perf_counter(), time.process_time()
    result = make_result(plan, trial) | {
        "commit": find_commit(),
        "versions": find_versions(),
        "machine": {"cpu": describe_cpu(), "gpus": find_gpus() if gpu_id >= 0 else []},
    }
    corpora = prepare_corpora(plan, trial.task, out)
    try:
        _train_and_score(plan, trial, corpora, training, gpu_id, result)
    except Diverged as error:
        result |= {"status": DIVERGED, "error": str(error)}
    except BioclinError as error:
        result |= {"status": CRASHED, "error": str(error)}
    except Exception as error:  # its message may hold note text
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        result |= {"status": CRASHED, "error": f"{type(error).__name__} in {where}"}
    result["seconds"] = round(time.perf_counter() - started, 1)
    result["cpu_seconds"] = round(time.process_time() - cpu_started, 1)
    write_result(out, result)
    shutil.rmtree(training, ignore_errors=True)


def _train_and_score(
    plan: Plan, trial: Trial, corpora: Path, training: Path, gpu_id: int, result: Result
) -> None:
    """Train and score a pipeline, and put everything known so far into the result."""
    nlp = init_pipeline(make_config(plan, trial, corpora), use_gpu=gpu_id)
    per_epoch = set_updates(nlp) or count_updates(nlp)
    result |= {"steps": nlp.config["training"]["max_steps"], "steps_per_epoch": per_epoch}
    with open(training.parent / "training.log", "a", encoding="utf-8") as log:
        run = partial(train, output=training, use_gpu=gpu_id, stdout=log, stderr=log)
        try:
            curve = run(nlp, resume=find_state(training) is not None)
        except NotResumable as error:
            log.write(f"started again: {error}\n")
            nlp = init_pipeline(make_config(plan, trial, corpora), use_gpu=gpu_id)
            set_updates(nlp)
            curve = run(nlp)
    best = max(curve, key=lambda point: point[1])[0]
    result |= {"curve": curve, "best_step": best, "best_epoch": best / per_epoch}
    best_nlp = spacy.load(training / BEST)
    tasks = nlp.config["corpora"]["train"].get("tasks", {})
    layers = {f"{name}/": _find_layers(nlp, task.get("heads")) for name, task in tasks.items()}
    for split in ("dev", "test"):
        per_doc = [
            counts
            for folder, keys in (layers or {"": [find_corpus(plan, trial.task).layer]}).items()
            for layer in keys
            for counts in score(best_nlp, corpora / f"{folder}{split}.spacy", layer)["per_doc"]
        ]
        total = Counts.total([Counts(*counts) for counts in per_doc])
        result[split] = {**total.prf(), "per_doc": per_doc}


def _find_layers(nlp: Language, heads: list[str] | None) -> list[str]:
    """Find the layers of spans that components of a trained pipeline write."""
    components: list[Any] = [nlp.get_pipe(name) for name in heads or nlp.pipe_names]
    settings = [getattr(component, "cfg", None) or {} for component in components]
    return sorted({cfg["spans_key"] or ENTS for cfg in settings if "spans_key" in cfg})


def score(nlp: Language, path: Path, layer: str) -> dict[str, Any]:
    """Score a pipeline on a layer of a corpus, strictly, on character offsets of whole notes.

    RETURNS (dict[str, Any]): "p", "r" and "f" between 0 and 1, and "per_doc": the counts of each
        note, for the paired bootstrap.
    """
    run = run_pipeline(nlp, list(read_docs(path, nlp.vocab)), lambda doc: None)
    pairs = [(doc.reference, doc.predicted) for doc in run.layers[layer]]
    per_doc = score_spans(pairs).of_docs()
    return {**Counts.total(per_doc).prf(), "per_doc": [list(counts) for counts in per_doc]}
