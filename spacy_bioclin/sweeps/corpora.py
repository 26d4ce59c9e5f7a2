"""The corpora of a sweep: converted or copied into its folder, and cut to size."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import spacy
from spacy.tokens import Doc
from spacy.util import load_config
from thinc.api import Config

from ..catalog.tasks import SPLITS, find_task
from ..corpora.docbin import read_docs, write_docs
from ..errors import BioclinError
from ..evaluation.metrics import ENTS
from ..files import hash_files
from ..outputs import write_atomic
from ..runs import RUN, check_made_from, read_object
from ..spans import get_spans
from ..training.corpora import convert_task
from ..types import GOLD_KEY
from .plan import WHOLE, Plan, Trial
from .tasks import TaskSetup

SUBSET_SEED = 0  # the same small training set for every seed of a sweep


def prepare_corpora(plan: Plan, task: str, out: Path, fold: str = "") -> Path:
    """Convert or copy the corpora of a task into the folder of the sweep, cut to size.

    fold (str): Fold of the task; "" if it has one split.
    RETURNS (Path): Folder with train.spacy, dev.spacy and test.spacy; for several tasks that are
        trained together, a folder with such a folder for each of them.
    RAISES (BioclinError): A corpus is missing and cannot be converted, or it is not the one that
        this sweep has used so far.
    """
    folder, setup = get_corpora(out, task, fold), plan.find_setup(task)
    if setup.joint:
        for name in setup.joint:
            first = plan.list_folds(name)[0]
            source = prepare_corpora(plan, name, out, first)
            _copy(plan, name, source, folder / name, plan.find_setup(name), in_own_layer=True)
        return folder
    inner = list_inner_tasks(load_config(plan.find_config(setup.kind), interpolate=False))
    for name in inner:
        if not setup.path:
            raise BioclinError(
                f"tasks.{task}: {plan.find_config(setup.kind)} trains several tasks, so set path "
                f"to a folder with a folder for each of them: {', '.join(inner)}"
            )
        _copy(plan, task, Path(setup.path) / name, folder / name, setup)
    if not inner:
        source = Path(setup.path) if setup.path else out / "corpora" / WHOLE / folder.name
        whole = all((source / f"{split}.spacy").exists() for split in SPLITS)
        if not setup.path and not whole:
            convert_task(task, find_task(task, setup.lang), source, fold)
        _copy(plan, task, source, folder, setup)
    return folder


def get_corpora(out: Path, task: str, fold: str) -> Path:
    """Get the folder of the corpora of a task in the folder of a sweep."""
    return out / "corpora" / Trial(task, "", "", 0.0, 0, fold).corpora


def list_inner_tasks(config: Config) -> list[str]:
    """List the tasks that a config trains together; none if it trains one."""
    return list(config["corpora"].get("train", {}).get("tasks", ()))


def _copy(
    plan: Plan,
    task: str,
    source: Path,
    folder: Path,
    setup: TaskSetup,
    *,
    in_own_layer: bool = False,
) -> None:
    """Copy the three splits of a folder, cut to size.

    in_own_layer (bool): Move the entities that a task learns to a layer with its name.
    """
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
    move = in_own_layer and setup.kind == "entities"
    for split, path in paths.items():
        if not (folder / path.name).exists():
            change = _make_mover(setup.layer, task) if move else None
            _copy_docs(path, folder / path.name, setup.lang, notes[split], change)


def _copy_docs(
    source: Path, target: Path, lang: str, n_notes: int | None, change: Callable[[Doc], None] | None
) -> None:
    """Copy Docs, drawn once if there are too many."""
    docs = list(read_docs(source, spacy.blank(lang).vocab))
    if n_notes and n_notes < len(docs):
        docs = random.Random(SUBSET_SEED).sample(docs, n_notes)
    for doc in docs if change else ():
        assert change is not None
        change(doc)
    write_docs(docs, target)


def _make_mover(layer: str, own: str) -> Callable[[Doc], None]:
    """Make what moves the entities of a layer to another one, so that several heads can write
    their entities side by side."""

    def move(doc: Doc) -> None:
        in_group = layer in doc.spans  # also those of doc.ents that overlap
        doc.spans[own] = get_spans(doc, None if layer == ENTS and not in_group else layer)
        if in_group:
            del doc.spans[layer]
        gold = doc.user_data.get(GOLD_KEY, {})
        for key in ("layers", "annotated"):
            if key in gold:
                moved = {own if name == layer else name: each for name, each in gold[key].items()}
                gold = {**gold, key: moved}
        if gold:
            doc.user_data[GOLD_KEY] = gold

    return move
