"""Write the result tables of README.md and of pages of docs from benchmarks/results/*.json.

    python -m benchmarks.readme

Each page has one pair of markers, and the text between them is replaced. tests/test_readme.py fails
if the pages do not match the committed results.
"""

from collections.abc import Callable
from typing import Any

from benchmarks.accuracy.readme import ner_line
from benchmarks.heads.readme import (
    heads_line,
    heads_table,
    kinds_together_table,
    parity_line,
    speed_line,
)
from benchmarks.papers.readme import papers_tables
from benchmarks.pretraining.readme import perplexity_table
from benchmarks.readme_context import (
    assertion_line,
    assertion_table,
    context_growth_line,
    context_speed_table,
    measurement_table,
    nubes_table,
)
from benchmarks.readme_models import models_section
from benchmarks.readme_ner import (
    HAS_READ,
    NAMES,
    ROOT,
    ensemble_table,
    headline_row,
    highest_table,
    load,
    ner_table,
    seeds_line,
)
from benchmarks.runner.readme import (
    cost_line,
    edsnlp_line,
    engines_line,
    faults_table,
    overhead_line,
    page_line,
    rates_table,
    run_memory_line,
    service_table,
    standards_line,
    suggest_table,
    tools_table,
)
from benchmarks.speed.readme import memory_line, parity_table, shipped_line, speed_table
from benchmarks.training.readme import choices_section

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
DEID_SYSTEMS = {
    "rules": "rules alone",
    "neural": "tagger alone",
    "together": "**both**",
    "recall": "**both**, thresholds for recall 0.99 per label on dev",
}
LINKING = {
    "ncbi-disease": ("NCBI-disease → MEDIC", "0.924 BioSyn-SapBERT"),
    "bc5cdr-disease": ("BC5CDR diseases → MEDIC + MeSH", "0.935 BioSyn-SapBERT"),
    "bc5cdr-chemical": ("BC5CDR chemicals → MeSH descriptors", "0.966 BioSyn-SapBERT"),
    "cantemist": ("CANTEMIST → ICD-O-3", "0.825 end to end (ODESIA leaderboard)"),
}


def sweep_table() -> str:
    """Tabulate the scaled-down protocol of Carrino et al. beside the paper's best encoder."""
    summary = load("sweep_carrino")
    facts = summary["facts"]
    paper = {row["task"]: row for row in summary["published"] if row["model"] == "bsc-bio-ehr-es"}
    lines = [
        "| five rates × three seeds, test | F1 of all runs | chosen on dev: F1, rate, epoch "
        "| bsc-bio-ehr-es in the paper: all runs, chosen on dev |",
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
        "From `bioclin sweep configs/sweeps/carrino.yml`, which is smaller than the paper's "
        f"experiment: notes {facts['Notes']}; {facts['Epochs']} epochs instead of 20 "
        "([full report](../benchmarks/results/sweep_carrino.html))."
    )
    return "\n".join([*lines, "", note])


def stability_table() -> str:
    """Tabulate F1 of each fine-tuning strategy on few training notes, with failed runs."""
    summary = load("sweep_stability")
    tasks = list(dict.fromkeys(group["task"] for group in summary["groups"]))
    rows: dict[str, dict[str, str]] = {}
    for group in summary["groups"]:
        figures = group["test"]["f"]
        failed = f", {len(group['failed'])} failed" if group["failed"] else ""
        cell = f"{_spread(figures)} ({figures['n']}{failed})"
        rows.setdefault(group["strategy"], {})[group["task"]] = cell
    lines = [
        "| strategy, 64 training notes, 180 small updates: F1 (seeds) | "
        + " | ".join(NAMES[task] for task in tasks)
        + " |",
        "|---|" + "---|" * len(tasks),
    ]
    for strategy, cells in rows.items():
        lines.append(f"| {strategy} | {' | '.join(cells[task] for task in tasks)} |")
    return "\n".join(lines)


def trainer_table() -> str:
    """Tabulate test F1 of a recipe beside Hugging Face's Trainer, as used and decoded alike."""
    result = load("trainer_parity")
    lines = [
        f"| `{result['recipe']}` on bioclin-compact, {result['updates']} updates: test F1 (seeds) "
        "| spacy-bioclin | Hugging Face's `Trainer` | difference in points |",
        "|---|---|---|---|",
    ]
    for task, systems in result["summary"].items():
        for kind, name in (("test", "as used"), ("test_same", "decoded alike")):
            cells = [_trainer_cell(systems.get(s), kind) for s in ("bioclin", "huggingface")]
            points = systems.get("huggingface", {}).get(f"{kind}_points_below_ours")
            error = systems.get("huggingface", {}).get(f"{kind}_standard_error")
            difference = "–" if points is None else f"{points:+.1f}"
            difference += f" ± {error:.1f}" if error is not None else ""
            lines.append(f"| {NAMES[task]}, {name} | {' | '.join(cells)} | {difference} |")
    return "\n".join(lines)


def _trainer_cell(figures: dict[str, Any] | None, kind: str) -> str:
    if not figures:
        return "–"
    sd = figures[f"{kind}_f_sd"]
    spread = f" ± {sd:.3f}" if sd is not None else ""
    return f"{figures[f'{kind}_f_mean']:.3f}{spread} ({figures['seeds']})"


def trainer_line() -> str:
    """Compare test F1 with that of Hugging Face's Trainer, from the same initial weights."""
    result = load("trainer_parity_same_start")
    figures = "; ".join(
        f"{NAMES[task]} {rows['bioclin']['test_same_f_mean']:.4f} and "
        f"{rows['huggingface']['test_same_f_mean']:.4f}"
        for task, rows in result["summary"].items()
        if len(rows) > 1
    )
    return (
        "Both saw the same parts of notes in the same order; ± after a difference is the standard "
        "error of its mean over seeds. From the same weights, without dropout and clipping, tag "
        "scores agree to 1e-5 after 6 updates (a test checks this); F1 of ours and theirs after "
        f"{result['updates']} updates: {figures}."
    )


def strategy_speed_line() -> str:
    """State the speed-up of a training step for each way of freezing weights."""
    fp32 = load("strategy_speed")["precision"]["fp32"]
    names = ("half frozen", "frozen, first epoch", "frozen, later epochs", "LoRA")
    figures = ", ".join(f"{name} {fp32[name]['times_as_fast']:.1f}×" for name in names)
    return f"Speed-up per training step over full fine-tuning: {figures}."


def _spread(figures: dict[str, Any]) -> str:
    spread = f" ± {figures['sd']:.3f}" if figures["sd"] is not None else ""
    return f"{figures['mean']:.3f}{spread}"


def deid_table() -> str:
    """Tabulate official scores and coverage on the MEDDOCAN test split, per system."""
    lines = [
        "| de-identification, MEDDOCAN test | trained on | NER F1 | spans strict, merged F1 "
        "| leak | fully hidden | over-redacted |",
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
    """Tabulate the identifier suite for our rules and Presidio."""
    measured = load("phi_identifiers_test")
    systems = {
        "**spacy-bioclin, rules**": measured["rules"],
        "Presidio, default recognizers": measured["presidio"]["default_threshold"],
        "Presidio, all recognizers": measured["presidio_every_recognizer"]["default_threshold"],
    }
    every = measured["rules"]["all"]
    lines = [
        f"| {measured['kinds']} kinds of identifiers, {every['identifiers']:,} written variants "
        "| recall | recall, Presidio's kinds | precision | false alarms on look-alikes |",
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


HARD_SYSTEMS = {
    "es_bioclin_sm": "**`es_bioclin_sm`**",
    "en_bioclin_sm": "**`en_bioclin_sm`**",
    "rules": "**spacy-bioclin, rules**",
    "presidio": "Presidio, no model of names installed",
    "presidio=es_core_news_sm": "Presidio with spaCy's `es_core_news_sm`",
}
HARD_GROUPS = ("names", "dates", "ages", "ids", "phones", "hospitals_and_centres", "places")


def hard_notes_table() -> str:
    """Tabulate what is hidden of hurried notes that nothing was tuned on."""
    titles = [group.replace("_", " ") for group in HARD_GROUPS]
    lines = [
        "| hard notes, test | spans wholly hidden | letters hidden that are PHI "
        f"| {' | '.join(titles)} |",
        f"|---|---|---|{'---|' * len(titles)}",
    ]
    for lang, systems in load("hard_notes_test")["systems"].items():
        for system, row in systems.items():
            every = row["all"]
            low, high = every["span_recall_interval"]
            groups = " | ".join(
                f"{row['groups'][group]['span_recall']:.2f}" for group in HARD_GROUPS
            )
            lines.append(
                f"| {HARD_SYSTEMS.get(system, system)}, {lang} "
                f"| {every['span_recall']:.3f} ({low:.3f}–{high:.3f}) "
                f"| {every['letter_precision']:.3f} | {groups} |"
            )
    return "\n".join(lines)


def deid_speed_line() -> str:
    """State the speed of de-identification beside Presidio with the same encoder."""
    threads, measured = next(iter(load("deid_speed")["threads"].items()))
    systems, over = measured["systems"], measured["ours_over"]
    rules = load("phi_rules_speed")["median"]
    return (
        f"De-identification on {threads} thread with the same encoder as Presidio: "
        f"{systems['bioclin mask']['words_per_second']:,} words/s with masks "
        f"({over['bioclin mask']['presidio']:.1f}× Presidio's "
        f"{systems['presidio']['words_per_second']:,}), "
        f"{systems['bioclin surrogate']['words_per_second']:,} with surrogates "
        f"({over['bioclin surrogate']['presidio']:.1f}×), and "
        f"{over['bioclin mask int8']['presidio']:.1f}× with masks in int8. The rules alone read "
        f"{rules['rules']:,} words per second of processor time, {rules['pipeline']:,} with "
        "tokenization and spans."
    )


def linking_table() -> str:
    """Tabulate linking accuracy on gold test mentions, by how the linker was trained."""
    lines = [
        "| linking gold mentions, test | recall@64 | accuracy, untrained | trained on names "
        "| trained, with vectors | ids in the terminology only | end-to-end F1 | published |",
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


def linking_line() -> str:
    """State which encoder made the vectors, and which pipeline found the mentions."""
    corpora = load("linking_accuracy_test")["corpora"]
    encoders = sorted({row["encoder"] for row in corpora.values() if row.get("encoder")})
    pipelines = sorted({row["ner"] for row in corpora.values() if row.get("ner")})
    parts = []
    if encoders:
        names = ", ".join(f"`{name}`" for name in encoders)
        parts.append(f"The vectors are those of {names} (`bioclin align-encoder`).")
    if pipelines:
        names = ", ".join(f"`{name}`" for name in pipelines)
        parts.append(f"End to end, the mentions are those of our pipelines ({names}).")
    return " ".join(parts)


TOGETHER_LANGS = {"es": "Spanish", "en": "English"}
TOGETHER = {"joint": "together", "merged": "together, the same notes merged"}


def together_table() -> str:
    """Tabulate the F1 of five corpora in one pipeline and of a pipeline for each."""
    lines = [
        "| corpus, test | training documents | labels | F1 alone (seeds) | F1 together "
        "| difference in points (95 % interval) | F1 together, same notes merged | difference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for lang in TOGETHER_LANGS:
        result = load(f"together_{lang}")
        for task, corpus in result["corpora"].items():
            rows = [result["summary"].get(system, {"tasks": {}}) for system in TOGETHER]
            found = [row["tasks"].get(task) for row in rows]
            alone = next(row for row in found if row)
            cells = [f"{alone['single_f']:.3f} ({alone['seeds']})"]
            for row in found:
                low, high = row["interval_points"] if row else (0, 0)
                change = (
                    f"{row['difference_points']:+.1f} ({low:+.1f} to {high:+.1f})" if row else ""
                )
                cells += [f"{row['joint_f']:.3f}" if row else "–", change or "–"]
            lines.append(
                f"| {NAMES[task]} | {corpus['train']['documents']:,} "
                f"| {', '.join(corpus['labels'])} | {' | '.join(cells)} |"
            )
    return "\n".join(lines)


def together_line() -> str:
    """State what one pipeline for all corpora of a language costs beside a pipeline for each."""
    parts = []
    for lang, name in TOGETHER_LANGS.items():
        result = load(f"together_{lang}")
        for system, words in TOGETHER.items():
            if not (summary := result["summary"].get(system)):
                continue
            training = summary["training"]
            parts.append(
                f"{name}, {words}: {-summary['mean_loss_points']:+.2f} points on average, "
                f"{-summary['worst_loss_points']:+.2f} at worst; "
                f"{training['joint_over_single']:.2f} of the processor time of the single "
                f"trainings, {training['joint_peak_memory_mb'] / 1024:.1f} GB instead of at most "
                f"{training['single_peak_memory_mb'] / 1024:.1f} GB."
            )
    updates = load("together_es")["updates_per_task"]
    return (
        f"{updates} updates of each corpus. " + " ".join(parts) + " Together and alone, the "
        "corpora have the same training documents: for the four corpora of the SPACCC cases, the "
        "cases that are in no test set of them or of MEDDOCAN, all of which can be merged "
        "(`bioclin merge`). The difference is on the seeds that both have, and its interval is "
        "over the documents of test. " + HAS_READ
    )


def token_table() -> str:
    """Tabulate gold test spans that no sequence of tokens can represent."""
    first = {row["corpus"]: row["misaligned"] for row in load("tokenizer_held_out")["test"]}
    lines = [
        "| unrepresentable gold spans, test | spaCy blank | first rules, held out "
        "| current rules |",
        "|---|---|---|---|",
    ]
    for row in load("tokenizer")["misaligned_spans"]:
        if row["split"] == "test":
            held_out = first[row["corpus"]]
            cells = f"{row['blank']} of {row['spans']:,} | {held_out} | {row['ours']}"
            lines.append(f"| {row['corpus']} | {cells} |")
    return "\n".join(lines)


def sentence_table() -> str:
    """Tabulate F1 of sentence ends and of whole sentences, and speed."""
    lines = ["| sentences, SPACCC test | F1 of ends | F1 of sentences | sentences/s |"]
    lines.append("|---|---|---|---|")
    for name, figures in load("sentences")["splitters"].items():
        lines.append(
            f"| {name} | {figures['boundaries']['f1']:.3f} | {figures['sentences']['f1']:.3f} "
            f"| {figures['sentences_per_second']:,} |"
        )
    return "\n".join(lines)


def clean_clone_line() -> str:
    """State how long the first safe note, the demo and the tests take from a clean clone."""
    found = load("clean_clone")
    seconds = {name: step["seconds"] for name, step in found["steps"].items()}
    parts = [
        f"the first safe note {found['seconds_to_first_note']:.0f} s (installation "
        f"{seconds['install']:.0f} s, loading and annotating {seconds['note']:.0f} s)"
    ]
    parts += [
        f"{what} {seconds[name]:.0f} s"
        for name, what in (("demo", "the demo"), ("test", "the tests"))
        if name in seconds
    ]
    return f"From a clean clone on 2 cores: {', '.join(parts)}."


def _both(f1: Callable[[str], float]) -> str:
    """Format the F1 of BC5CDR and PharmaCoNER."""
    return " and ".join(f"{f1(task):.3f}" for task in ("bc5cdr", "pharmaconer"))


def summary_table() -> str:
    """Tabulate the eight headline results for README.md."""
    trainer = load("trainer_parity")
    hard = load("hard_notes_test")["systems"]
    deid = load("deid_meddocan")["runs"][0]["systems"]
    suite = load("phi_identifiers_test")
    rules, presidio = suite["rules"], suite["presidio"]["default_threshold"]
    links = load("linking_accuracy_test")["corpora"]["ncbi-disease"]["meaning"]["trained"]
    speed = load("speed_annotate_base")["notes"]["meddocan"]["systems"]
    masked = load("deid_speed")["threads"]["1"]["systems"]
    rows = [
        headline_row(),
        (
            f"The same with `bioclin-compact` by the recipe `{trainer['recipe']}`, "
            f"{trainer['updates']} updates",
            _both(lambda task: trainer["summary"][task]["bioclin"]["test_f_mean"]),
            _both(lambda task: trainer["summary"][task]["huggingface"]["test_f_mean"])
            + " Hugging Face's `Trainer`"
            if all("huggingface" in systems for systems in trainer["summary"].values())
            else "–",
        ),
        (
            "PHI of hard notes that is wholly hidden, `es_bioclin_sm` and `en_bioclin_sm`",
            " and ".join(
                f"{hard[lang][f'{lang}_bioclin_sm']['all']['span_recall']:.3f}"
                for lang in ("es", "en")
            ),
            f"{hard['es']['presidio=es_core_news_sm']['all']['span_recall']:.3f} "
            "Presidio with spaCy's `es_core_news_sm` (es)",
        ),
        (
            "PHI in MEDDOCAN (es), tagger and rules, official NER F1",
            f"{deid['together']['test']['official']['ner']['f']:.3f}",
            f"{deid['rules']['test']['official']['ner']['f']:.3f} our rules alone",
        ),
        (
            "Identifiers of the kinds that Presidio covers, recall",
            f"{rules['kinds_of_presidio']['recall']:.3f}",
            f"{presidio['kinds_of_presidio']['recall']:.3f} Presidio, default recognizers",
        ),
        (
            "Linking NCBI-disease mentions to MEDIC, accuracy",
            f"{links['without_nil']['acc']:.3f}",
            LINKING["ncbi-disease"][1] + " (published)",
        ),
        (
            "Annotation with a base-size encoder, fp32, words/s",
            f"{speed['bioclin fp32']['words_per_second']:,}",
            f"{speed['spacy']['words_per_second']:,} spacy-transformers and spaCy's `ner`",
        ),
        (
            "De-identification with masks, one thread, words/s",
            f"{masked['bioclin mask']['words_per_second']:,}",
            f"{masked['presidio']['words_per_second']:,} Presidio with the same encoder",
        ),
    ]
    head = ["| task, test data and score | spacy-bioclin | for comparison |", "|---|---|---|"]
    return "\n".join([*head, *(f"| {task} | {own} | {other} |" for task, own, other in rows)])


def results_section() -> str:
    """Collect all tables for docs/results.md, under one heading per subject."""
    parts = {
        "De-identification": (deid_table, suite_table, hard_notes_table, deid_speed_line),
        "Entity linking": (linking_table, linking_line),
        "Pretraining": (perplexity_table,),
        "Named entities": (highest_table, ensemble_table, seeds_line, ner_table, ner_line),
        "Relations, pairs and classes of texts": (
            heads_table,
            heads_line,
            parity_line,
            speed_line,
            kinds_together_table,
        ),
        "What mentions mean": (
            assertion_table,
            assertion_line,
            nubes_table,
            measurement_table,
            context_speed_table,
            context_growth_line,
        ),
        "Several corpora in one pipeline": (together_table, together_line),
        "Fine-tuning": (
            trainer_table,
            trainer_line,
            sweep_table,
            stability_table,
            strategy_speed_line,
        ),
        "Many notes": (
            rates_table,
            overhead_line,
            cost_line,
            engines_line,
            edsnlp_line,
            run_memory_line,
            faults_table,
            standards_line,
        ),
        "One note": (service_table, page_line, suggest_table, tools_table),
        "Speed": (lambda: speed_table("annotate"), lambda: speed_table("train"), shipped_line),
        "Number formats and memory": (parity_table, memory_line),
        "Tokens and sentences": (token_table, sentence_table),
        "Installation": (clean_clone_line,),
    }
    return "\n\n".join(
        "\n\n".join([f"## {title}", *filter(None, (make() for make in makers))])
        for title, makers in parts.items()
    )


PAGES = {
    "README.md": summary_table,
    "docs/models.md": models_section,
    "docs/papers.md": papers_tables,
    "docs/results.md": results_section,
    "docs/training.md": choices_section,
}


def replace_section(page: str, section: str) -> str:
    """Replace the text between the markers of a page.

    page (str): Content of the page, with one pair of markers.
    section (str): The new text.
    RETURNS (str): The new content of the page.
    """
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{section}\n{END}{after}"


def main() -> None:
    """Update every page."""
    for name, make in PAGES.items():
        path = ROOT / name
        content = path.read_text(encoding="utf-8")
        path.write_text(replace_section(content, make()), encoding="utf-8")


if __name__ == "__main__":
    main()
