"""One trial of a sweep, from the config to its scores."""

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

from ..catalog.overrides import apply_settings
from ..catalog.recipes import apply_recipe, find_recipe, set_learn_rate
from ..errors import BioclinError
from ..evaluation.metrics import ENTS
from ..machine import choose_device, describe_cpu, find_commit, find_gpus, find_versions
from ..training.epochs import count_updates, set_updates
from ..training.initialize import init_pipeline
from ..training.loop import BEST, LAST, Diverged, train
from ..training.state import NotResumable, find_state
from .corpora import list_inner_tasks
from .corpora import prepare_corpora as prepare_corpora  # its documented place
from .joint import find_inner_setups, make_joint_config
from .plan import Plan, Trial
from .results import CRASHED, DIVERGED, Result, get_folder, make_result, write_result
from .scoring import Scores, score_split, score_together, sum_counts
from .tasks import TaskSetup, make_task_settings

BATCHER = "training.batcher."


def make_config(plan: Plan, trial: Trial, corpora: Path) -> Config:
    """Make the config of a trial, not interpolated.

    corpora (Path): See `prepare_corpora`.
    """
    setup, settings = plan.find_setup(trial.task), plan.get_settings(trial)
    if setup.joint:
        config = make_joint_config(plan, setup, corpora)
        own = dict(setup.settings)
    else:
        config = load_config(settings["config"], interpolate=False)
        inner = list_inner_tasks(config)
        own = _find_inner_paths(config, corpora) if inner else _make_one(setup, corpora)
    apply_settings(config, own)  # what a recipe sets depends on the heads
    if settings["recipe"]:
        apply_recipe(config, find_recipe(settings["recipe"]))
    fixed = {
        "paths.encoder": settings["encoder"],
        "nlp.lang": setup.lang,
        "system.seed": trial.seed,
        "training.logger.progress_bar": None,
    }
    more = settings["settings"]
    if setup.joint:
        more = {_move_batcher(path): value for path, value in more.items()}
    apply_settings(config, {**fixed, **own, **more})
    if settings["epochs"]:
        config["training"]["max_epochs"] = settings["epochs"]
    set_learn_rate(config, settings["learn_rate"])
    return config


def _move_batcher(path: str) -> str:
    """Let a setting of the batcher reach the one that cuts the batches of each task."""
    is_outside = path.startswith(BATCHER) and not path.startswith(f"{BATCHER}batcher")
    return f"{BATCHER}batcher.{path.removeprefix(BATCHER)}" if is_outside else path


def _find_inner_paths(config: Config, corpora: Path) -> dict[str, Any]:
    """Find the corpora of the tasks that are trained together: setting -> path."""
    return {
        f"corpora.{split}.tasks.{name}.path": str(corpora / name / f"{split}.spacy")
        for split in ("train", "dev")
        for name in config["corpora"][split]["tasks"]
    }


def _make_one(setup: TaskSetup, corpora: Path) -> dict[str, Any]:
    """Make the settings for a task that is trained alone."""
    return {
        "paths.train": str(corpora / "train.spacy"),
        "paths.dev": str(corpora / "dev.spacy"),
        **make_task_settings(setup),
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
    corpora = prepare_corpora(plan, trial.task, out, trial.fold)
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
    name = plan.get_settings(trial)["recipe"]
    keeps_last = name is not None and find_recipe(name).keep == "last"  # the paper has no dev
    kept = curve[-1][0] if keeps_last else max(curve, key=lambda point: point[1])[0]
    result |= {"curve": curve, "best_step": kept, "best_epoch": kept / per_epoch}
    kept_nlp = spacy.load(training / (LAST if keeps_last else BEST))
    for split in ("dev", "test"):
        result[split] = _score(plan, trial, kept_nlp, corpora, split)


def _score(plan: Plan, trial: Trial, nlp: Language, corpora: Path, split: str) -> Scores:
    """Score a trained pipeline on a split."""
    setup = plan.find_setup(trial.task)
    if setup.joint:
        return score_together(nlp, find_inner_setups(plan, setup), corpora, split)
    tasks = nlp.config["corpora"]["train"].get("tasks", {})
    if not tasks:
        return score_split(nlp, setup, corpora / f"{split}.spacy")
    return sum_counts(
        counts
        for name, task in tasks.items()
        for layer in _find_layers(nlp, task.get("heads"))
        for counts in score_split(
            nlp, setup._replace(layer=layer), corpora / name / f"{split}.spacy"
        )["per_doc"]
    )


def _find_layers(nlp: Language, heads: list[str] | None) -> list[str]:
    """Find the layers of spans that components of a trained pipeline write."""
    components: list[Any] = [nlp.get_pipe(name) for name in heads or nlp.pipe_names]
    settings = [getattr(component, "cfg", None) or {} for component in components]
    return sorted({cfg["spans_key"] or ENTS for cfg in settings if "spans_key" in cfg})
