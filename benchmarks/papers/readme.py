"""The tables of docs/papers.md for benchmarks/readme.py: published rows beside ours."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.heads.scoring import KEYS, RELEASED
from benchmarks.readme_ner import load
from spacy_bioclin.catalog.tasks import load_tasks
from spacy_bioclin.catalog.tasks.task import Task

ENCODER = "bioclin-sm"
SWEEPS = ("sweep_euadr", "sweep_quaero")


class Paper(NamedTuple):
    """A table of a paper.

    title (str): The table.
    source (str): Beginning of the source of its rows in the catalogue.
    systems (tuple[str, ...]): Its columns that are shown.
    """

    title: str
    source: str
    systems: tuple[str, ...]


PAPERS = {
    "carrino-2022": Paper(
        "Carrino et al. (2022), table 2", "Carrino 2022", ("mBERT", "BioBERT", "bsc-bio-ehr-es")
    ),
    "lewis-2020": Paper(
        "Lewis et al. (2020), table 2",
        "Lewis 2020",
        ("RoBERTa-base", "BioBERT", "Bio-LM base (PM-M3-Voc)", "Bio-LM large (PM-M3-Voc)"),
    ),
    "mulyar-2020": Paper(
        "Mulyar and McInnes (2020), table 2", "Mulyar 2020", ("Clinical BERT", "MT-Clinical BERT")
    ),
    "blue": Paper(
        "ouBioBERT's table of BLUE", "ouBioBERT", ("BlueBERT (PubMed, MIMIC-III)", "ouBioBERT")
    ),
}
# Published metric -> its name in the tables.
TITLES = {
    "entities_strict_f": "F1",
    "blue_entities_f": "F1 of positions",
    "relations_micro_f": "micro F1",
    "relations_macro_f": "macro F1",
    "hoc_example_f": "F1 by example",
    "hoc_macro_f": "macro F1",
    "texts_positive_f": "F1",
    "pairs_accuracy": "accuracy",
    "pairs_pearson": "Pearson",
}
# Sweep -> whose table it is.
SMALL = {"lewis-2020": "Lewis et al.", "mulyar-2020": "Mulyar and McInnes", "blue": "BLUE"}
# Published metric of entities -> its mean in the result of benchmarks/accuracy/ner.py.
OF_ENTITIES = {"entities_strict_f": "test_f_mean", "blue_entities_f": "test_positions_f_mean"}


def papers_tables() -> str:
    """Tabulate, for each paper, its rows beside ours."""
    tables = [_tabulate(name, paper) for name, paper in PAPERS.items()]
    return "\n\n".join([*tables, _describe_constant(), _describe_small()])


def _describe_small() -> str:
    """Say how long the small sweeps take that were timed."""
    result = load("papers_small")
    times = [
        f"{result['sweeps'][name]['cpu_minutes']:.0f} minutes for {title}"
        for name, title in SMALL.items()
        if name in result["sweeps"]
    ]
    return (
        f"Processor time of the small sweeps on one core of an {result['machine']['cpu']}: "
        f"{', '.join(times)}."
    )


def _describe_constant() -> str:
    """Say what answering "yes" to everything scores."""
    tasks = load("papers_constant")["tasks"]
    values = " and ".join(f"{100 * found['f']:.1f} on {name}" for name, found in tasks.items())
    return (
        f"A system that calls every text positive scores {values} by the F1 of these tables. A "
        "figure near it does not show that a system has learned the task."
    )


def _tabulate(name: str, paper: Paper) -> str:
    head = ["task", "metric", *paper.systems, f"{ENCODER}, 14 M"]
    lines = [f"**{paper.title}**", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for task, known in load_tasks().items():
        if name not in known.papers:
            continue
        published = {
            (row.system, row.metric or known.score): row.value
            for row in known.published
            if row.source.startswith(paper.source)
        }
        for metric in dict.fromkeys(metric for _, metric in published):
            cells = [published.get((system, metric)) for system in paper.systems]
            shown = ["–" if value is None else f"{value:.1f}" for value in cells]
            ours = _find_ours(task, known, metric)
            if metric in RELEASED and known.access == "open":
                other = RELEASED[metric]
                ours += f"; {TITLES[other]} {_find_ours(task, known, other)}"
            lines.append(f"| {task} | {TITLES[metric]} | {' | '.join(shown)} | {ours} |")
    return "\n".join(lines)


def _find_ours(task: str, known: Task, metric: str) -> str:
    """Find our score on test; that of seed 0 and all folds that there are, or the mean of seeds."""
    if known.access != "open":
        return "needs an agreement" if known.access == "agreement" else "on request"
    if known.untested:
        return "files not had"
    if known.kind == "entities":
        entities: Mapping[str, Any] = load("ner_sm")["summary"].get(f"{task} bioclin", {})
        value = entities.get(OF_ENTITIES[metric])
        return _find_in_sweeps(task, metric) if value is None else f"{100 * value:.1f}"
    heads = load("heads")
    rows = [
        (row["dev_mean"], row)
        for key, row in heads["summary"].items()
        if key.split()[:2] == [ENCODER, task]
    ]
    if not rows:
        return _find_in_sweeps(task, metric)
    best = max(rows, key=lambda pair: pair[0])[1]
    trials = [
        one["test"][KEYS[metric]]
        for one in heads["trials"]
        if (one["encoder"], one["task"]) == (ENCODER, task)
        and all(one[key] == best[key] for key in ("updates", "learn_rate"))
        and KEYS[metric] in one["test"]
    ]
    return f"{100 * sum(trials) / len(trials):.1f}" if trials else "not measured"


def _find_in_sweeps(task: str, metric: str) -> str:
    """Find the score of a sweep: of its seeds or folds, the median as Lewis et al. have it."""
    for name in SWEEPS:
        for group in load(name)["groups"]:
            if (group["task"], group["score"]) == (task, metric):
                return f"{100 * group['papers']['lewis']['value']:.1f}"
    return "not measured"
