"""One trial of a sweep, from the config to its scores."""

import random
import shutil
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from thinc.api import Config

from ..catalog.recipes import apply_recipe, apply_settings, find_recipe, set_learn_rate
from ..catalog.tasks import SPLITS, find_task
from ..corpora.docbin import read_docs, write_docs
from ..errors import BioclinError
from ..evaluation.metrics import ENTS, run_pipeline
from ..evaluation.spans import Counts, score_spans
from ..machine import choose_device, describe_cpu, find_commit, find_gpus, find_versions
from ..training.corpora import convert_task
from ..training.epochs import count_updates, set_updates
from ..training.loop import BEST, Diverged, train
from ..training.state import STATE
from .sweep import CRASHED, DIVERGED, DONE, Corpus, Plan, Trial, trial_folder, write_result

# So that a sweep's small training sets are the same for every seed.
SUBSET_SEED = 0


def prepare_corpora(plan: Plan, task: str, out: Path) -> Path:
    """Bring the corpora of a task to where its trials look for them.

    RETURNS (Path): Folder with train.spacy, dev.spacy and test.spacy.
    RAISES (BioclinError): One is not there and cannot be made.
    """
    folder = out / "corpora" / task
    corpus = find_corpus(plan, task)
    for split in SPLITS:
        if (folder / f"{split}.spacy").exists():
            continue
        source = Path(corpus.path) if corpus.path else out / "corpora" / "whole" / task
        if not corpus.path and not (source / f"{split}.spacy").exists():
            convert_task(task, find_task(task, corpus.lang or None), source)
        if not (source / f"{split}.spacy").exists():
            raise BioclinError(f"tasks.{task}: {source} holds no {split}.spacy")
        n_notes = plan.notes_of(task, split)
        docs = list(read_docs(source / f"{split}.spacy", spacy.blank(corpus.lang).vocab))
        if n_notes and n_notes < len(docs):
            docs = random.Random(SUBSET_SEED).sample(docs, n_notes)
        write_docs(docs, folder / f"{split}.spacy")
    return folder


def find_corpus(plan: Plan, task: str) -> Corpus:
    """RETURNS (Corpus): With the language and the layer, from the catalogue where it knows them."""
    corpus = plan.tasks[task]
    if corpus.path is None:
        known = find_task(task, corpus.lang or None)
        layers = sorted(set(known.layers.values()))
        layer = corpus.layer or (layers[0] if len(layers) == 1 else ENTS)
        return corpus._replace(lang=known.lang, layer=layer)
    if not corpus.lang:
        raise BioclinError(f"tasks.{task} has no lang: say which language its notes are in")
    return corpus._replace(layer=corpus.layer or ENTS)


def make_config(plan: Plan, trial: Trial, corpora: Path) -> Config:
    """RETURNS (Config): Of this trial, not interpolated."""
    config = load_config(plan.config, interpolate=False)
    if plan.recipe:
        apply_recipe(config, find_recipe(plan.recipe))
    said = plan.settings_of(trial)
    corpus = find_corpus(plan, trial.task)
    layer = corpus.layer
    fixed = {
        "paths.train": str(corpora / "train.spacy"),
        "paths.dev": str(corpora / "dev.spacy"),
        "paths.encoder": said["encoder"],
        "nlp.lang": corpus.lang,
        "system.seed": trial.seed,
        "components.ner.spans_key": None if layer == ENTS else layer,
        # spaCy adds the weights of the component's defaults to what is not set here.
        "training.score_weights": {
            **dict.fromkeys(("ents_f", "ents_p", "ents_r")),
            "ents_f" if layer == ENTS else f"spans_{layer}_f": 1.0,
        },
        "training.logger.progress_bar": None,
    }
    apply_settings(config, {**fixed, **said["settings"]})
    if plan.epochs:
        config["training"]["max_epochs"] = plan.epochs
    set_learn_rate(config, said["learn_rate"])
    return config


def run_trial(plan: Plan, out: Path, gpu_id: int, threads: int, trial: Trial) -> None:
    """Train and score; the result is a file in the trial's folder, what training said another.

    A run that was killed goes on where it last evaluated. The pipeline itself is thrown away.
    """
    torch.set_num_threads(threads)
    choose_device(gpu_id)
    folder = trial_folder(out, trial)
    folder.mkdir(parents=True, exist_ok=True)
    training = folder / "training"
    started, cpu_started = time.perf_counter(), time.process_time()
    result: dict[str, Any] = {
        "trial": trial._asdict(),
        "status": DONE,
        "error": None,
        "dev": None,
        "test": None,
        "curve": [],
        "settings": plan.settings_of(trial),
        "commit": find_commit(),
        "versions": find_versions(),
        "machine": {"cpu": describe_cpu(), "gpus": find_gpus() if gpu_id >= 0 else []},
    }
    corpora = prepare_corpora(plan, trial.task, out)
    try:
        nlp = init_nlp(make_config(plan, trial, corpora), use_gpu=gpu_id)
        per_epoch = set_updates(nlp) or count_updates(nlp)
        result["steps"], result["steps_per_epoch"] = nlp.config["training"]["max_steps"], per_epoch
        with open(folder / "training.log", "a", encoding="utf-8") as log:
            resume = (training / STATE).exists()
            curve = train(nlp, training, resume=resume, use_gpu=gpu_id, stdout=log, stderr=log)
        best = max(curve, key=lambda point: point[1])[0]
        result |= {"curve": curve, "best_step": best, "best_epoch": best / per_epoch}
        best_nlp = spacy.load(training / BEST)
        for split in ("dev", "test"):
            result[split] = score(
                best_nlp, corpora / f"{split}.spacy", find_corpus(plan, trial.task)
            )
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


def score(nlp: Language, path: Path, corpus: Corpus) -> dict[str, Any]:
    """RETURNS (dict): Strict precision, recall and F1 on character offsets of whole notes, and the
    counts of each note, for the paired bootstrap."""
    run = run_pipeline(nlp, list(read_docs(path, nlp.vocab)), lambda doc: None)
    docs = run.layers[corpus.layer]
    per_doc: Sequence[Counts] = score_spans([(d.reference, d.predicted) for d in docs]).of_docs()
    return {**Counts.total(per_doc).prf(), "per_doc": [list(counts) for counts in per_doc]}
