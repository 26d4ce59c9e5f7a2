"""Write the figures of benchmarks/results/*.json into README.md, between its two markers.

    python benchmarks/readme.py            # tests/test_readme.py fails where this was forgotten
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
NAMES = {
    "bc5cdr": "BC5CDR (en)",
    "ncbi-disease": "NCBI-disease (en)",
    "meddocan": "MEDDOCAN (es)",
    "pharmaconer": "PharmaCoNER (es)",
    "cantemist": "CANTEMIST (es)",
}
SIZES = {"random": "4 layers × 256", "base": "base size"}
ENCODERS = {
    ("compact", "bioclin"): "**bioclin-compact, which ships**; `configs/ner.cfg`",
    ("minilm", "bioclin"): "MiniLM, 22 M weights, uncased English; `configs/ner-lexical.cfg`",
    ("random", "bioclin"): "random weights, 4 layers of width 256; `configs/ner.cfg`",
    ("random", "spacy"): "the same, vanilla spacy-transformers and spaCy's `ner`",
}
DEID_SYSTEMS = {
    "rules": "rules alone",
    "neural": "tagger alone",
    "together": "**both**",
    "recall": "**both**, recall 0.99 of each label on dev",
}
LINKING = {
    "ncbi-disease": ("NCBI-disease → MEDIC", "0.924 BioSyn-SapBERT"),
    "bc5cdr-disease": ("BC5CDR diseases → MEDIC + MeSH", "0.935 BioSyn-SapBERT"),
    "bc5cdr-chemical": ("BC5CDR chemicals → MeSH descriptors", "0.966 BioSyn-SapBERT"),
    "cantemist": ("CANTEMIST → ICD-O-3", "0.602 bi-encoder"),
}
NOTES = {"meddocan": "notes", "triage": "40 words"}
SYSTEMS = {
    "annotate": {
        "encoder fp32": "the encoder alone, packed: the limit",
        "encoder fp32 compiled": "the encoder alone, `torch.compile`",
        "bioclin fp32": "**spacy-bioclin**",
        "bioclin int8": "**spacy-bioclin, int8**",
        "spacy": "spacy-transformers and spaCy's `ner`",
        "huggingface": "Hugging Face `pipeline`, sorted",
        "edsnlp autocast": "EDS-NLP as it comes (autocast to bf16)",
        "edsnlp fp32": "EDS-NLP, fp32",
        "onnxruntime fp32": "onnxruntime, fused graph",
        "onnxruntime int8": "onnxruntime, int8",
    },
    "train": {
        "bioclin fp32": "**spacy-bioclin**, CRF",
        "huggingface fp32": "Hugging Face `Trainer`, linear head",
        "spacy": "spacy-transformers and spaCy's `ner`",
    },
}


def load(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def ner_table() -> str:
    """RETURNS (str): Strict F1, time, memory and speed, per corpus, encoder and system."""
    lines = [
        "| corpus | encoder and system | test F1 (seeds) | train, one core | memory | annotate |",
        "|---|---|---|---|---|---|",
    ]
    rows = [
        (name.split()[0], encoder, name.split()[1], group)
        for encoder in ("compact", "minilm", "random")
        for name, group in load(f"ner_{encoder}")["summary"].items()
    ]
    for task, encoder, system, group in sorted(rows, key=lambda row: row[0]):
        spread = f" ± {group['test_f_sd']:.3f}" if group["test_f_sd"] is not None else ""
        lines.append(
            f"| {NAMES[task]} | {ENCODERS[encoder, system]} "
            f"| {group['test_f_mean']:.3f}{spread} ({group['seeds']}) "
            f"| {group['train_cpu_seconds_median'] / 60:.0f} min "
            f"| {group['train_peak_memory_mb'] / 1024:.1f} GB "
            f"| {group['annotate_words_per_second_median']:,.0f} words/s |"
        )
    return "\n".join(lines)


def sweep_table() -> str:
    """RETURNS (str): Carrino's protocol made smaller, beside the paper's best encoder."""
    summary = load("sweep_carrino")
    facts = summary["facts"]
    paper = {row["task"]: row for row in summary["published"] if row["model"] == "bsc-bio-ehr-es"}
    lines = [
        "| five rates × three seeds, test | F1 of all runs | best on dev: F1, rate, epoch "
        "| bsc-bio-ehr-es in the paper: all, best |",
        "|---|---|---|---|",
    ]
    for group in summary["groups"]:
        best, published = group["best"]["by_run"], paper[group["task"]]
        lines.append(
            f"| {NAMES[group['task']]}, bioclin-compact | {_spread(group['test']['f'])} "
            f"| {_spread(best['test']['f'])}, {best['learn_rate_used']:.0e}, "
            f"{best['run']['epoch']:.0f} | {published['f'][0]:.3f}, {published['best'][0]:.3f} |"
        )
    note = (
        "`bioclin sweep configs/sweeps/carrino.yml`, made smaller than the paper's: notes "
        f"{facts['Notes']}; {facts['Epochs']} epochs instead of 20 "
        "([page](benchmarks/results/sweep_carrino.html))."
    )
    return "\n".join([*lines, "", note])


def stability_table() -> str:
    """RETURNS (str): F1 of each strategy on few training notes: mean, spread, failed runs."""
    summary = load("sweep_stability")
    tasks = list(dict.fromkeys(group["task"] for group in summary["groups"]))
    rows: dict[str, dict[str, str]] = {}
    for group in summary["groups"]:
        figures = group["test"]["f"]
        failed = f", {len(group['failed'])} failed" if group["failed"] else ""
        cell = f"{_spread(figures)} ({figures['n']}{failed})"
        rows.setdefault(group["strategy"], {})[group["task"]] = cell
    lines = [
        "| 64 training notes, 180 small updates: F1 (seeds) | "
        + " | ".join(NAMES[task] for task in tasks)
        + " |",
        "|---|" + "---|" * len(tasks),
    ]
    for strategy, cells in rows.items():
        lines.append(f"| {strategy} | {' | '.join(cells[task] for task in tasks)} |")
    return "\n".join(lines)


def trainer_line() -> str:
    """RETURNS (str): How far ours is from the Trainer of transformers from the same start."""
    summary = load("trainer_parity_same_start")["summary"]
    figures = "; ".join(
        f"{NAMES[task]} {rows['bioclin']['test_same_f_mean']:.4f} and "
        f"{rows['huggingface']['test_same_f_mean']:.4f}"
        for task, rows in summary.items()
    )
    return (
        "Fine-tuned as Hugging Face's `Trainer` does it, from the same weights, on the same parts, "
        "without dropout: tag scores equal to 1e-5 after 6 updates (a test); after 120, where F1 "
        "still rises steeply and roundings have spread, test F1 of ours and theirs from one seed: "
        f"{figures}."
    )


def strategy_speed_line() -> str:
    """RETURNS (str): How many times as fast a training step is with some weights frozen."""
    fp32 = load("strategy_speed")["precision"]["fp32"]
    names = ("half frozen", "frozen, first epoch", "frozen, later epochs", "LoRA")
    figures = ", ".join(f"{name} {fp32[name]['times_as_fast']:.1f}" for name in names)
    return f"A training step takes so many times less than one of all weights: {figures}."


def _spread(figures: dict[str, Any]) -> str:
    spread = f" ± {figures['sd']:.3f}" if figures["sd"] is not None else ""
    return f"{figures['mean']:.3f}{spread}"


def speed_table(what: str) -> str:
    """RETURNS (str): Words per second per system, and our speed (fp32) over it."""
    columns = {}
    for encoder in ("random", "base"):
        measured = load(f"speed_{what}_{encoder}")
        for notes, part in measured.get("notes", {"meddocan": measured}).items():
            columns[f"{SIZES[encoder]}, {NOTES[notes]}"] = part
    first = next(iter(columns.values()))["systems"]
    title = {"annotate": "annotation", "train": "training"}[what]
    lines = [
        f"| {title}, words/s (ours in fp32 ÷ it) | {' | '.join(columns)} |",
        "|---|" + "---|" * len(columns),
    ]
    for system in first:
        cells = []
        for part in columns.values():
            if system not in part["systems"]:
                cells.append("–")
                continue
            row, ours = part["systems"][system], part["systems"]["bioclin fp32"]
            ratio = row["median_seconds"] / ours["median_seconds"]
            cells.append(f"{row['words_per_second']:,} ({ratio:.2f})")
        lines.append(f"| {SYSTEMS[what].get(system, system)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parity_table() -> str:
    """RETURNS (str): Entities that a number format has in common with fp32."""
    lines = [
        "| 4 layers × 256, test | entities in common with fp32 | F1 | F1 in fp32 |",
        "|---|---|---|---|",
    ]
    for task, formats in load("parity")["tasks"].items():
        fp32 = formats["fp32"]["test_f"]
        for name, row in formats.items():
            if name != "fp32":
                cells = f"{row['share']:.2%} | {row['test_f']:.4f} | {fp32:.4f}"
                lines.append(f"| {NAMES[task]}, {name} | {cells} |")
    return "\n".join(lines)


def deid_table() -> str:
    """RETURNS (str): Official scores and coverage of MEDDOCAN's test split, per system."""
    lines = [
        "| de-identification, MEDDOCAN test | learned from | NER F1 | spans strict, merged F1 "
        "| leak | wholly hidden | hidden in vain |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in load("deid_meddocan")["runs"]:
        for system, title in DEID_SYSTEMS.items():
            if system == "rules" and run["train_on"] != ["train"]:
                continue
            row = run["systems"][system]["test"]
            official = row["official"]
            f = [official[part]["f"] for part in ("ner", "spans_strict", "spans_merged")]
            source = "–" if system == "rules" else " + ".join(run["train_on"])
            lines.append(
                f"| {title} | {source} | {f[0]:.3f} | {f[1]:.3f}, {f[2]:.3f} "
                f"| {official['ner']['leak']:.3f} | {row['covered']:.1%} "
                f"| {row['over_redaction']:.1%} |"
            )
    return "\n".join(lines)


def suite_table() -> str:
    """RETURNS (str): The identifier suite: ours beside Presidio."""
    measured = load("phi_identifiers_test")
    systems = {
        "**spacy-bioclin, rules**": measured["rules"],
        "Presidio as it comes": measured["presidio"]["default_threshold"],
        "Presidio, every recognizer": measured["presidio_every_recognizer"]["default_threshold"],
    }
    every = measured["rules"]["all"]
    lines = [
        f"| {measured['kinds']} kinds of identifiers, {every['identifiers']:,} written variants "
        "| recall | Presidio's kinds | precision | look-alikes that fired |",
        "|---|---|---|---|---|",
    ]
    for name, rows in systems.items():
        row, presidio = rows["all"], rows["kinds_of_presidio"]
        fired = f"{row['look_alikes_fired']} of {row['look_alikes']}"
        lines.append(
            f"| {name} | {row['recall']:.3f} | {presidio['recall']:.3f} "
            f"| {row['precision']:.3f} | {fired} |"
        )
    return "\n".join(lines)


def deid_speed_line() -> str:
    """RETURNS (str): The whole of de-identification beside Presidio with the same encoder."""
    threads, measured = next(iter(load("deid_speed")["threads"].items()))
    systems, over = measured["systems"], measured["ours_over"]
    rules = load("phi_rules_speed")["median"]
    return (
        f"De-identification on {threads} thread, same encoder: "
        f"{systems['bioclin mask']['words_per_second']:,} words/s masked, "
        f"{systems['bioclin surrogate']['words_per_second']:,} with surrogates, "
        f"{over['bioclin mask']['presidio']:.1f} and {over['bioclin surrogate']['presidio']:.1f} "
        f"times Presidio's {systems['presidio']['words_per_second']:,}; in int8 "
        f"{over['bioclin mask int8']['presidio']:.1f} times. Rules alone: {rules['rules']:,} "
        f"words/s of processor time, {rules['pipeline']:,} with tokens and spans."
    )


def linking_table() -> str:
    """RETURNS (str): Gold mentions of test splits, by what the linker knows."""
    lines = [
        "| linking gold mentions, test | recall@64 | accuracy, nothing trained | trained on names "
        "| trained, with vectors | of ids in the terminology | found and linked, F1 | published |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for corpus, row in load("linking_accuracy_test")["corpora"].items():
        title, published = LINKING[corpus]
        lexical, best = row["lexical"], row["meaning"]
        trained = best["trained"]
        covered = trained["in_terminology"]
        ner = best["end_to_end"]
        lines.append(
            f"| {title} | {trained['all']['r64']:.3f} "
            f"| {best['untrained']['without_nil']['acc']:.3f} "
            f"| {lexical['trained']['without_nil']['acc']:.3f} "
            f"| **{trained['without_nil']['acc']:.3f}** "
            f"| {covered['acc']:.3f} (recall {covered['r64']:.3f}) "
            f"| {ner['mentions']['f']:.3f} | {published} |"
        )
    return "\n".join(lines)


def memory_line() -> str:
    ratios, memory = load("load")["ours_over_vanilla"], load("memory")
    return (
        f"`spacy.load` of a base-size pipeline takes {ratios['load_seconds']:.2f} of vanilla "
        f"spacy-transformers' time and {ratios['load_peak_mb']:.2f} of its peak memory. Over "
        f"{memory['notes']:,} notes the resident memory of `nlp.pipe` changes by "
        f"{memory['change_percent']:+.1f} % after the first 1,000."
    )


def token_table() -> str:
    """RETURNS (str): Gold spans of test splits that no sequence of tokens can represent."""
    first = {row["corpus"]: row["misaligned"] for row in load("tokenizer_held_out")["test"]}
    lines = [
        "| spans out of reach on test | spaCy blank | first rules, held out | now |",
        "|---|---|---|---|",
    ]
    for row in load("tokenizer")["misaligned_spans"]:
        if row["split"] == "test":
            held_out = first[row["corpus"]]
            cells = f"{row['blank']} of {row['spans']:,} | {held_out} | {row['ours']}"
            lines.append(f"| {row['corpus']} | {cells} |")
    return "\n".join(lines)


def sentence_table() -> str:
    """RETURNS (str): F1 of sentence ends and of whole sentences, and speed."""
    lines = ["| sentences, SPACCC test | F1 of ends | F1 of sentences | sentences/s |"]
    lines.append("|---|---|---|---|")
    for name, figures in load("sentences")["splitters"].items():
        lines.append(
            f"| {name} | {figures['boundaries']['f1']:.3f} | {figures['sentences']['f1']:.3f} "
            f"| {figures['sentences_per_second']:,} |"
        )
    return "\n".join(lines)


def clean_clone_line() -> str:
    seconds = load("clean_clone")["seconds"]
    return (
        f"From a clean clone on 2 cores: install {seconds['install']:.0f} s, demo "
        f"{seconds['demo']:.0f} s, tests {seconds['test']:.0f} s."
    )


def results_section() -> str:
    parts = [
        deid_table(),
        suite_table(),
        deid_speed_line(),
        linking_table(),
        ner_table(),
        sweep_table(),
        stability_table(),
        trainer_line(),
        strategy_speed_line(),
        speed_table("annotate"),
        speed_table("train"),
        parity_table(),
        memory_line(),
        token_table(),
        sentence_table(),
        clean_clone_line(),
    ]
    return "\n\n".join(parts)


def replace_section(readme: str, section: str) -> str:
    """RETURNS (str): The page with the section between its markers."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{section}\n{END}{after}"


def main() -> None:
    path = ROOT / "README.md"
    path.write_text(
        replace_section(path.read_text(encoding="utf-8"), results_section()), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
