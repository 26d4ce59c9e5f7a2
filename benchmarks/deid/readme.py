"""Tables of de-identification for docs/results.md, see benchmarks/readme.py."""

from benchmarks.readme_ner import load

DEID_SYSTEMS = {
    "rules": "rules alone",
    "neural": "tagger alone",
    "together": "**both**",
    "recall": "**both**, thresholds for recall 0.99 per label on dev",
}
HARD_SYSTEMS = {
    "es_bioclin_sm": "**`es_bioclin_sm`**",
    "en_bioclin_sm": "**`en_bioclin_sm`**",
    "rules": "**spacy-bioclin, rules**",
    "presidio": "Presidio, no model of names installed",
    "presidio=es_core_news_sm": "Presidio with spaCy's `es_core_news_sm`",
}
HARD_GROUPS = ("names", "dates", "ages", "ids", "phones", "hospitals_and_centres", "places")


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
