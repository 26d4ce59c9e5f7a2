"""Tables of named entities for README.md and the pages of docs, see benchmarks/readme.py."""

import json
import statistics
from pathlib import Path
from typing import Any

ROOT = next(path for path in Path(__file__).resolve().parents if (path / "setup.cfg").is_file())
RESULTS = ROOT / "benchmarks" / "results"
NAMES = {
    "bc5cdr": "BC5CDR (en)",
    "bc5cdr-chemical": "BC5CDR, chemicals alone (en)",
    "bc5cdr-disease": "BC5CDR, diseases alone (en)",
    "jnlpba": "JNLPBA (en)",
    "ncbi-disease": "NCBI-disease (en)",
    "meddocan": "MEDDOCAN (es)",
    "pharmaconer": "PharmaCoNER (es)",
    "cantemist": "CANTEMIST (es)",
    "distemist": "DisTEMIST (es)",
    "symptemist": "SympTEMIST (es)",
    "medprocner": "MedProcNER (es)",
    "maccrobat2020": "MACCROBAT2020 (en)",
    "bc2gm": "BC2GM (en)",
    "linnaeus": "LINNAEUS (en)",
}
TEMIST = ("distemist", "symptemist", "medprocner")
ENCODERS = {
    ("sm", "bioclin"): "**bioclin-sm** (included); `lexical`: `configs/ner-lexical.cfg`",
    ("compact", "bioclin"): "**bioclin-compact** (included); `configs/ner.cfg`",
    ("warm-start", "bioclin"): "bioclin-compact before its pretraining; `configs/ner.cfg`",
    ("minilm", "bioclin"): "MiniLM, 22 M weights, uncased English; `configs/ner-lexical.cfg`",
    ("random", "bioclin"): "random weights, 4 layers of width 256; `configs/ner.cfg`",
    ("random", "spacy"): "the same encoder, spacy-transformers and spaCy's `ner`",
}
# Highest published strict F1 on test. The cards of the models are on the Hugging Face hub.
HIGHEST = {
    "meddocan": "0.980 ensemble, 0.971 one model: CLIN-X-ES (Lange et al., 2022)",
    "pharmaconer": "0.923 ensemble, 0.901 one model: CLIN-X-ES; 0.924 XLM-R-large (IIC)",
    "cantemist": "0.882 ensemble: CLIN-X-ES; 0.845 one model: bsc-bio-ehr-es (Carrino, 2022)",
    "bc5cdr": "chemicals 0.961, diseases 0.912: OpenMed; 0.937, 0.852: Bio-LM large",
    "ncbi-disease": "0.897 BioBERT, run again; 0.890 Bio-LM large (Lewis et al., 2020)",
    "distemist": "0.797, ensembles of 10 and the official scorer (task paper)",
    "symptemist": "0.748, ensembles of 10 and the official scorer (task paper)",
    "medprocner": "0.809, ensembles of 10 and the official scorer (task paper)",
    "maccrobat2020": "none on these nine labels and this split",
}
# Entries of leaderboard.json that have seen no document of the official test split under any label.
HELD_OUT = {
    "es_bioclin_sm": ("cantemist", "distemist", "symptemist", "medprocner"),
    "es_bioclin_sm, MEDDOCAN and PharmaCoNER held out": ("meddocan", "pharmaconer"),
    "en_bioclin_sm": ("bc5cdr", "ncbi-disease", "maccrobat2020"),
}
# Systems of ensemble.json.
ENSEMBLES = {
    "single": "one model",
    "ensemble": "[ensemble](ensembles.md) of five folds",
    "distilled": "student of the ensemble",
    "self-distilled": "student of the one model",
}
# What makes trainings comparable in seeds.json.
TRAINING = ("encoder", "task", "with_dev", "choice")
HAS_READ = (
    "The text that `bioclin-compact` was pretrained on contains 130 of the 250 test cases of "
    "DisTEMIST, SympTEMIST and MedProcNER, without their annotations."
)


def load(name: str) -> Any:
    """Read one result file.

    name (str): File name in benchmarks/results, without `.json`.
    RETURNS (Any): The parsed JSON.
    RAISES (SystemExit): If the file does not exist.
    """
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise SystemExit(f"{path} does not exist: run the benchmark that writes it, or restore it")
    return json.loads(path.read_text(encoding="utf-8"))


def load_encoders() -> dict[str, dict[str, Any]]:
    """Read the results of benchmarks/accuracy/ner.py that there are.

    RETURNS (dict): Encoder -> the result file.
    """
    encoders = dict.fromkeys(encoder for encoder, _ in ENCODERS)
    return {name: load(f"ner_{name}") for name in encoders if is_there(f"ner_{name}")}


def is_there(name: str) -> bool:
    return (RESULTS / f"{name}.json").is_file()


def _f1(group: dict[str, Any]) -> str:
    """Format mean, standard deviation and number of seeds."""
    spread = f" ± {group['test_f_sd']:.3f}" if group["test_f_sd"] is not None else ""
    return f"{group['test_f_mean']:.3f}{spread} ({group['seeds']})"


def ner_table() -> str:
    """Tabulate strict F1, time, memory and speed per corpus, encoder and system."""
    lines = [
        "| corpus | encoder and system | test F1 (seeds) | updates | training time, one core "
        "| memory | annotation |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = [
        (name.split()[0], encoder, name.split()[1], group, _count_updates(result, name))
        for encoder, result in load_encoders().items()
        for name, group in result["summary"].items()
    ]
    for task, encoder, system, group, updates in sorted(rows, key=lambda row: row[0]):
        seconds, memory = group["train_cpu_seconds_median"], group["train_peak_memory_mb"]
        lines.append(
            f"| {NAMES[task]} | {ENCODERS[encoder, system]} | {_f1(group)} | {updates} "
            f"| {'–' if seconds is None else f'{seconds / 60:.0f} min'} "
            f"| {'–' if memory is None else f'{memory / 1024:.1f} GB'} "
            f"| {group['annotate_words_per_second_median']:,.0f} words/s |"
        )
    return "\n".join(lines)


def _count_updates(result: dict[str, Any], name: str) -> str:
    """State the number of updates of a row, and the choice of settings if it is not the base."""
    group = result["summary"][name]
    if "updates" in group:
        choice = f", `{group['choice']}`" if group["choice"] != "base" else ""
        after = f", after {NAMES[group['after']]}" if group.get("after") else ""
        return f"{group['updates']:,}{choice}{after}"
    task, system = name.split()
    found = {
        trial["updates"]
        for trial in result["trials"]
        if (trial["task"], trial["system"]) == (task, system)
    }
    return ", ".join(f"{n:,}" for n in sorted(found))


def highest_table() -> str:
    """Tabulate test F1 of the encoders that ship beside the highest published: of a pipeline for
    one task, trained on train or on train and dev, and of those that learn all tasks together."""
    columns = {
        f"bioclin-{name}{also}": load(file)["summary"]
        for name in ("sm", "compact")
        for file, also in ((f"ner_{name}", ""), (f"ner_{name}_with_dev", ", train + dev"))
        if is_there(file)
    }
    together = together_scores()
    lines = [
        f"| test F1 (seeds) | {' | '.join(columns)} "
        "| bioclin-sm, [all tasks together](models.md) | highest published |",
        "|---" * (3 + len(columns)) + "|",
    ]
    for task, highest in HIGHEST.items():
        groups = [summary.get(f"{task} bioclin") for summary in columns.values()]
        if any(groups) or task in together:
            cells = [_f1(group) if group else "–" for group in groups]
            cells.append(f"{together[task]:.3f} (1)" if task in together else "–")
            lines.append(f"| {NAMES[task]} | {' | '.join(cells)} | {highest} |")
    return "\n".join(lines)


def together_scores() -> dict[str, float]:
    """Read the test F1 of each task from the pipelines that have not seen its test split."""
    entries = load("leaderboard")["entries"]
    return {
        task: next(iter(entries[name]["corpora"][task]["layers"].values()))["micro"]["f"]
        for name, tasks in HELD_OUT.items()
        if name in entries
        for task in tasks
    }


def default_encoder() -> str:
    """Find the newest encoder that ships with results on BC5CDR and PharmaCoNER."""
    for name in ("sm", "compact"):
        found = load_encoders().get(name, {"summary": {}})["summary"]
        if all(f"{task} bioclin" in found for task in ("bc5cdr", "pharmaconer")):
            return name
    raise SystemExit("no encoder has results on BC5CDR and PharmaCoNER")


def headline_row() -> tuple[str, str, str]:
    """Make the row of README.md for the encoder that ships."""
    encoder = default_encoder()
    rows = load(f"ner_{encoder}")["summary"]
    groups = [rows[f"{task} bioclin"] for task in ("bc5cdr", "pharmaconer")]
    return (
        f"NER with `bioclin-{encoder}`, BC5CDR (en) and PharmaCoNER (es), strict "
        f"F1, {_count_seeds(groups)}",
        " and ".join(f"{group['test_f_mean']:.3f}" for group in groups) + _with_dev(encoder),
        "PharmaCoNER 0.924, XLM-R-large (published)",
    )


def _with_dev(encoder: str) -> str:
    """Say what the corpora of `headline_row` reach if dev is learned, too."""
    if not is_there(name := f"ner_{encoder}_with_dev"):
        return ""
    groups = [load(name)["summary"][f"{task} bioclin"] for task in ("bc5cdr", "pharmaconer")]
    f1 = " and ".join(f"{group['test_f_mean']:.3f}" for group in groups)
    return f"; trained on dev, too, {f1} ({_count_seeds(groups)})"


def _count_seeds(groups: list[dict[str, Any]]) -> str:
    seeds = " and ".join(dict.fromkeys(str(group["seeds"]) for group in groups))
    return f"{seeds} {'seed' if seeds == '1' else 'seeds'}"


def ensemble_table() -> str:
    """Compare one model, an ensemble over folds, and students of either."""
    if not is_there("ensemble"):
        return ""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for group in load("ensemble")["summary"]:
        scores = _f1({**group, "seeds": len(group["seeds"])})
        rows.setdefault((group["encoder"], group["task"]), {})[group["system"]] = scores
    lines = [
        f"| {NAMES[task]}, bioclin-{encoder} "
        + "".join(f"| {systems.get(name, '–')} " for name in ENSEMBLES)
        + "|"
        for (encoder, task), systems in sorted(rows.items())
    ]
    head = f"| test F1 (seeds) | {' | '.join(ENSEMBLES.values())} |\n|---|{'---|' * len(ENSEMBLES)}"
    return "\n".join([head, *lines])


def seeds_table() -> str:
    """Compare single trainings with several seeds, the pipeline that joins them, its students."""
    if not is_there("seeds"):
        return ""
    # Of the same training, that with the most seeds.
    rows = sorted(load("seeds")["rows"], key=lambda row: len(row["seeds"]))
    kept = {tuple(row[key] for key in TRAINING): row for row in rows}
    lines = [
        "| test F1 (seeds) | trained on | one model | all seeds "
        "[joined](ensembles.md#join-pipelines-that-you-have) | one model that "
        "[learned from these](distillation.md#learn-from-an-ensemble) and from more texts |",
        "|---|---|---|---|---|",
    ]
    students = load("seeds").get("students", [])
    for training, row in sorted(kept.items()):
        encoder, task, with_dev, choice = training
        mine = [one for one in students if tuple(one[key] for key in TRAINING) == training]
        lines.append(
            f"| {NAMES[task]}, bioclin-{encoder}, `{choice}` "
            f"| train{' + dev' if with_dev else ''} "
            f"| {_mean_f1(row['single_test_f'])} | {row['test_f']:.3f} ({len(row['seeds'])}) "
            f"| {_student_f1(mine)} |"
        )
    return "\n".join(lines)


def _student_f1(students: list[dict[str, Any]]) -> str:
    if not students:
        return "–"
    texts = " or ".join(dict.fromkeys(f"{one['texts']:,}" for one in students))
    return f"{_mean_f1([one['test_f'] for one in students])}, {texts} texts"


def _mean_f1(scores: list[float]) -> str:
    return _f1(
        {
            "test_f_mean": statistics.mean(scores),
            "test_f_sd": statistics.stdev(scores) if len(scores) > 1 else None,
            "seeds": len(scores),
        }
    )
