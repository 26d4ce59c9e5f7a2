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
    "biosses": ("BIOSSES, similarity of sentences, folds", "Pearson"),
    "hoc": ("Hallmarks of Cancer, 10 classes", "F1 by example"),
    "gad": ("GAD, published fold and three of ours", "F1"),
}
# Encoder -> layers and width.
SIZES = {ENCODER: (4, 384), "base": (12, 768)}
# Published systems that docs/papers.md has, but not the table of heads.
LEFT_OUT = (
    "SciBERT",
    "ClinicalBERT",
    "BioMed-RoBERTa",
    "RoBERTa-large",
    "Bio-LM large (PM-M3-Voc)",
)
INPUTS = {"spans": "pooled spans", "markers": "markers", "pairs": "pair", "texts": "mean"}


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
        if (row["task"], row["metric"]) == (task, metric) and row["system"] not in LEFT_OUT
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
        "`bioclin-sm` has 14 million weights, the published encoders 110 million. "
        f"{_base_size_line(result)} One seed; the trainings are short, and every trial is scored "
        "once on test. The negative pairs of RQE's train and dev are random questions, "
        "those of its test are not. The entities of relations are given, those of BC5CDR with "
        "their concept ids; relations across sentences count as missed in the sentence tasks. "
        f"Updates: {updates}. Splits that no source has are made by a hash of ids "
        "(`benchmarks/heads/data.py`); `bioclin tasks NAME` says how each published setting "
        "differs."
    )


def _base_size_line(result: dict[str, Any]) -> str:
    """Say what a base-size encoder would need, from the weights in the layers of both."""
    of_layers = {name: 12 * width**2 * layers for name, (layers, width) in SIZES.items()}
    times = round(of_layers["base"] / of_layers[ENCODER])
    seconds = [
        row["train_cpu_seconds_median"]
        for name, row in result["summary"].items()
        if name.startswith(f"{ENCODER} ")
    ]
    return (
        f"The layers of a base-size encoder have {times} times as many, so it needs about {times} "
        f"times as long: instead of {min(seconds) / 60:.0f} to {max(seconds) / 60:.0f} minutes of "
        f"one core for a training, {times * min(seconds) / 3600:.1f} to "
        f"{times * max(seconds) / 3600:.0f} hours (estimated), or a GPU."
    )


def parity_line() -> str:
    """Say how the training compares with that of a Hugging Face script."""
    result = load("heads_parity")
    starts = result["same_start"]
    difference = max(row["largest_difference"] for row in starts.values())
    differ = f"differ by at most {difference:.4f}" if difference else "are equal to four digits"
    text = (
        "From the same weights, with the same texts in the same order, fp32, the losses of the "
        f"first {starts['relations']['updates']} updates of ours and of a Hugging Face script "
        f"{differ}, for relations with markers and for pairs (`results/heads_parity.json`)."
    )
    for task, row in result["summary"].items():
        if "within_range_of_seeds" in row and row["bioclin"]["seeds"] > 1:
            ours, theirs = row["bioclin"], row["huggingface"]
            text += (
                f" After {result['updates']} updates, {ours['seeds']} seeds: {task} "
                f"{ours['mean']:.1f} and {theirs['mean']:.1f}, widest range of seeds "
                f"{row['widest_range_of_seeds']:.1f}."
            )
    return text


def speed_line() -> str:
    """Say what six heads on one encoder cost."""
    speed = load("heads_speed")
    notes, pairs = speed["notes"], speed["pairs"]
    return (
        "Six heads of different kinds on one pass of the encoder take "
        f"{1 / notes['cpu_pipelines_over_six_heads']:.2f} × the processor time of "
        f"{len(notes['pipelines'])} pipelines with one head each on notes, and "
        f"{1 / pairs['cpu_pipelines_over_six_heads']:.2f} × that of {len(pairs['pipelines'])} on "
        "pairs; on notes, the head for pairs has nothing to read (`results/heads_speed.json`)."
    )


def kinds_together_table() -> str:
    """Tabulate five tasks on one encoder beside an encoder for each, as Mulyar and McInnes do."""
    result = load("heads_together")
    rows, cost = result["summary"]["tasks"], result["summary"]["cost"]
    lines = [
        "| dev, one seed | metric | one encoder for all | an encoder for each | difference |",
        "|---|---|---|---|---|",
        *(
            f"| {task} | {row['metric']} | {row['joint']:.1f} | {row['single']:.1f} "
            f"| {row['joint_minus_single']:+.1f} |"
            for task, row in rows.items()
        ),
    ]
    note = (
        f"{result['updates_per_task']} updates of {result['words_per_update']} words for each "
        "task, in turn, and as many for a task alone: far from convergence, so the differences "
        f"say little. Training takes {cost['cpu_joint_over_single']:.2f} × the processor time and "
        f"{cost['memory_joint_over_single']:.1f} × the memory of the {len(rows)} trainings; the "
        "weights of one encoder are stored instead of those of "
        f"{len(rows)} (`results/heads_together.json`)."
    )
    return "\n".join([*lines, "", note])
