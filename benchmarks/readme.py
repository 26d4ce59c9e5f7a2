"""Write the result tables of README.md and of pages of docs from benchmarks/results/*.json.

    python -m benchmarks.readme

Each page has one pair of markers, and the text between them is replaced. tests/test_readme.py fails
if the pages do not match the committed results.
"""

from collections.abc import Callable

from benchmarks.accuracy.readme import ner_line, pipelines_table, smoothing_table
from benchmarks.context.readme import (
    assertion_line,
    assertion_table,
    context_growth_line,
    context_speed_table,
    measurement_table,
    nubes_table,
    orders_table,
)
from benchmarks.deid.readme import deid_speed_line, deid_table, hard_notes_table, suite_table
from benchmarks.heads.readme import (
    heads_line,
    heads_table,
    kinds_together_table,
    parity_line,
    speed_line,
)
from benchmarks.linking.readme import LINKING, linking_line, linking_table
from benchmarks.papers.readme import papers_tables
from benchmarks.pretraining.readme import perplexity_table
from benchmarks.readme_models import models_section
from benchmarks.readme_ner import (
    ROOT,
    ensemble_table,
    headline_row,
    highest_table,
    load,
    ner_table,
    seeds_table,
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
from benchmarks.tokenization.readme import sentence_table, token_table
from benchmarks.training.readme import (
    choices_section,
    stability_table,
    strategy_speed_line,
    sweep_table,
    together_line,
    together_table,
    trainer_line,
    trainer_table,
)

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


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
        "Named entities": (
            highest_table,
            ensemble_table,
            seeds_table,
            smoothing_table,
            pipelines_table,
            ner_table,
            ner_line,
        ),
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
            orders_table,
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
