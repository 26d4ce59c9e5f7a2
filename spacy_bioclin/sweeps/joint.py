"""The config of a pipeline that learns several tasks, of any kinds, with a head for each."""

from pathlib import Path
from typing import Any

from spacy.util import load_config
from thinc.api import Config

from ..catalog.overrides import apply_settings
from ..corpora.task_corpora import NAME as READER
from ..corpora.task_corpora import TASK_NAME
from ..errors import BioclinError
from ..evaluation.metrics import ENTS
from ..training.batches import NAME as BATCHER
from .plan import Plan
from .tasks import HEADS, TaskSetup, make_task_settings


def find_inner_setups(plan: Plan, setup: TaskSetup) -> dict[str, TaskSetup]:
    """Find what each of the tasks that are trained together learns: entities are in layers with
    the names of the tasks.

    RAISES (BioclinError): A name cannot be that of a component.
    """
    setups = {}
    for name in setup.joint:
        if not TASK_NAME.fullmatch(name):
            raise BioclinError(
                f"tasks.{setup.name}: joint has {name!r}, which cannot be the name of a component: "
                "want letters, digits, _ and -"
            )
        inner = plan.find_setup(name)
        setups[name] = inner._replace(layer=name) if inner.kind == "entities" else inner
    return setups


def make_joint_config(plan: Plan, setup: TaskSetup, corpora: Path) -> Config:
    """Make a config with the head of each task on one encoder, whose updates are of each task in
    turn (Mulyar and McInnes, 2020, algorithm 1). The rest is that of the config for entities.

    setup (TaskSetup): The tasks that are trained together.
    corpora (Path): Folder with a folder for each task, see `prepare_corpora`.
    RETURNS (Config): Not interpolated, without encoder, language and seed.
    """
    setups = find_inner_setups(plan, setup)
    config = load_config(plan.find_config("entities"), interpolate=False)
    shown = plan.find_config("entities")
    if HEADS["entities"] not in config["components"]:
        raise BioclinError(f"{shown} has no component {HEADS['entities']}, which joint tasks need")
    del config["components"][HEADS["entities"]]
    pipeline = config["nlp"]["pipeline"]
    at = pipeline.index(HEADS["entities"])
    pipeline[at : at + 1] = list(setups)
    config["components"].update({n: _make_head(plan, n, one) for n, one in setups.items()})
    for split, max_tokens in (("train", "auto"), ("dev", 0)):
        config["corpora"][split] = {
            "@readers": READER,
            "max_tokens": max_tokens,
            "balance": "none",
            "leave_out": None,
            "held_out": [],
            "allow_overlap": False,
            "tasks": {
                name: _make_task(name, inner, corpora / name / f"{split}.spacy")
                for name, inner in setups.items()
            },
        }
    config["training"]["batcher"] = {
        "@batchers": BATCHER,
        "draw": "round_robin",
        "temperature": 2.0,
        "step": "batch",
        "turns": None,
        "batcher": config["training"]["batcher"],
    }
    config["training"]["score_weights"] = {"tasks_mean": 1.0}
    return config


def _make_task(name: str, setup: TaskSetup, path: Path) -> dict[str, Any]:
    """Make the section of a task in the section of a corpus."""
    graded = setup.kind == "pairs" and setup.graded
    return {
        "path": str(path),
        "heads": [name],
        "weight": 1.0,
        "metric": "pairs_pearson" if graded else None,
        "use_gold_ents": setup.kind == "relations",
    }


def _make_head(plan: Plan, name: str, setup: TaskSetup) -> dict[str, Any]:
    """Make the section of the component that learns a task: that of the config for its kind."""
    own = HEADS[setup.kind]
    config = load_config(plan.find_config(setup.kind), interpolate=False)
    settings = {
        path: value
        for path, value in make_task_settings(setup).items()
        if path.startswith(f"components.{own}.")
    }
    apply_settings(config, settings)
    head: dict[str, Any] = config["components"][own]
    if setup.kind == "relations":
        head["scorer"]["relations_key"] = head["relations_key"]  # not by the component's old name
    if setup.kind == "pairs":
        head["require_pairs"] = False  # texts of other tasks are none
    if setup.kind == "entities":
        head["spans_key"] = None if setup.layer == ENTS else setup.layer
    return head
