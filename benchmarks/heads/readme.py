"""The tables of heads for relations, pairs and texts, for benchmarks/readme.py."""

from typing import Any

from benchmarks.readme_ner import load

ENCODER = "bioclin-sm"
# Task -> title, and metric in words.
TASKS = {
    "chemprot": ("ChemProt", "micro F1 of 5 classes"),
    "ddi2013": ("DDI-2013", "micro F1 of 4 classes"),
    "bc5cdr-cid": ("BC5CDR, chemical induces disease, by concept", "F1"),
    "ehealthkd-2021": ("eHealth-KD 2021 (es)", "micro F1 of 13 relations"),
    "maccrobat2020-relations": ("MACCROBAT, MODIFY and SUB_PROCEDURE", "micro F1"),
    "rqe": ("RQE, entailment of questions", "accuracy"),
    "biosses": ("BIOSSES, similarity of sentences, 10 folds", "Pearson"),
    "hoc": ("Hallmarks of Cancer, 10 classes", "F1 by example"),
    "gad": ("GAD, published fold and three of ours", "F1"),
}
INPUTS = {"spans": "pooled spans", "markers": "markers", "pairs": "[CLS]", "texts": "mean"}
TOGETHER = {
    "rqe": "RQE",
    "biosses": "BIOSSES",
    "meddocan": "MEDDOCAN",
    "bc5cdr": "BC5CDR",
    "chemprot": "ChemProt",
}


def heads_table() -> str:
    """Tabulate test scores of each head, beside the aim and published figures."""
    result = load("heads")
    lines = [
        "| task | score | what the head reads | test | dev | general encoder of base size − 3 "
        "| published |",
        "|---|---|---|---|---|---|---|",
    ]
    for task, (title, metric) in TASKS.items():
        for input, shown in INPUTS.items():
            row = result["summary"].get(f"{ENCODER} {task} {input}")
            if row is None:
                continue
            spread = f" ± {row['test_sd']:.1f} ({row['trials']})" if row["test_sd"] else ""
            aims = [aim for key, aim in row["aim"].items() if key == row["metric"]]
            aim = f"{aims[0]['aim']:.1f}" if aims else "–"
            lines.append(
                f"| {title} | {metric} | {shown} | {row['test_mean']:.1f}{spread} "
                f"| {row['dev_mean']:.1f} | {aim} | {_published(result, task, row['metric'])} |"
            )
    return "\n".join(lines)


def _published(result: dict[str, Any], task: str, metric: str) -> str:
    rows = [
        f"{row['value']:.1f} {row['system']}"
        for row in result["published"]
        if (row["task"], row["metric"]) == (task, metric)
    ]
    return "; ".join(rows) or "–"


def heads_line() -> str:
    """Say how the scores of `heads_table` were measured."""
    result = load("heads")
    updates = ", ".join(
        f"{TASKS[task][0].partition(',')[0]} {row['updates']:,} ({INPUTS[row_input]})"
        for name, row in result["summary"].items()
        for _, task, row_input in [name.split()]
        if task in TASKS
    )
    return (
        "`bioclin-sm` has 14 million weights, the published encoders 110 million. One seed; every "
        "trial is scored once on test. The entities of relations are given, those of BC5CDR with "
        "their concept ids; relations across sentences count as missed in the sentence tasks. "
        f"Updates: {updates}. Splits that no source has are made by a hash of ids "
        "(`benchmarks/heads/data.py`), `benchmarks/heads/published.json` says how each published "
        "setting differs."
    )


def parity_table() -> str:
    """Tabulate the same training by a Hugging Face script."""
    lines = [
        "| the same encoder, texts, rate and updates; dev, mean of the seeds | spacy-bioclin "
        "| Hugging Face script | difference | widest range of seeds |",
        "|---|---|---|---|---|",
    ]
    for task, row in load("heads_parity")["summary"].items():
        if "within_range_of_seeds" not in row:
            continue
        ours, theirs = row["bioclin"], row["huggingface"]
        lines.append(
            f"| {task} ({ours['seeds']} seeds) | {ours['mean']:.1f} | {theirs['mean']:.1f} "
            f"| {row['points_above_huggingface']:+.1f} | {row['widest_range_of_seeds']:.1f} |"
        )
    return "\n".join(lines)


def cost_line() -> str:
    """Say what six heads on one encoder cost, and what they score when they train together."""
    speed, together = load("heads_speed"), load("heads_together")
    notes = speed["notes"]
    cells = ", ".join(
        f"{TOGETHER.get(task, task)} {row['joint']:.1f} ({row['single']:.1f} alone)"
        for task, row in together["summary"]["tasks"].items()
    )
    text = (
        f"Six heads of different kinds on one pass of the encoder annotate notes at "
        f"{notes['words_per_second_six_heads_over_pipelines']:.1f} × the speed of "
        f"{len(notes['pipelines'])} pipelines with one head each "
        f"(`results/heads_speed.json`). As in Mulyar and McInnes (2020), one encoder for several "
        f"tasks against an encoder for each, {together['updates_per_task']} updates of each task, "
        f"dev samples: {cells}"
    )
    cost = together["summary"].get("cost")
    if cost:
        text += (
            f"; training takes {cost['cpu_joint_over_single']:.2f} × the processor time, and the "
            "pipeline has one encoder"
        )
    return text + "."
