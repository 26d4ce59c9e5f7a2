"""Cards of the pipelines that ship, for docs/models.md, see benchmarks/readme.py.

Scores come from results/leaderboard.json (benchmarks/leaderboard.py), licences from the catalogue,
and what each pipeline is for from assets/cards, which `bioclin package --note` takes too.
"""

import json
from typing import Any

from benchmarks.readme_ner import RESULTS, ROOT
from spacy_bioclin.catalog.tasks import load_tasks

PIPELINES = ("es_bioclin_sm", "en_bioclin_sm")
LANGUAGES = {"es": "Spanish", "en": "English"}
POINTS = {"default": "not calibrated", "balanced": "balanced", "high_recall": "high recall"}
PARTS = {
    "encoder": "tokens, sentences and encoder",
    "ner": "clinical entities (`ner`, `ents`)",
    "phi": "tagger of PHI",
    "rules": "rules for PHI",
    "deid": "de-identification",
}


def models_section() -> str:
    """Write the cards of all pipelines."""
    path = RESULTS / "leaderboard.json"
    entries = json.loads(path.read_text("utf-8"))["entries"] if path.is_file() else {}
    cards = [make_card(name, entries.get(name)) for name in PIPELINES]
    return "\n\n".join([*cards, *write_examples()])


def write_examples() -> list[str]:
    """Write the notes that benchmarks/accuracy/notes.py stored, with what was found in them."""
    path = RESULTS / "note_examples.json"
    if not path.is_file():
        return []
    examples = json.loads(path.read_text("utf-8"))
    head = (
        "## Four notes, and what the pipelines make of them\n\n"
        "Of dev of our notes. `?` marks an entity with other bounds or another label than the "
        "annotation, `-` an annotation that was not found as it is."
    )
    shown = [text for of_language in examples.values() for text in of_language.values()]
    return [head, *(f"```\n{text}\n```" for text in shown)]


def make_card(name: str, entry: dict[str, Any] | None) -> str:
    """Write the card of a pipeline.

    entry (dict | None): That of the leaderboard; None if the pipeline was not measured.
    """
    note = (ROOT / "assets" / "cards" / f"{name}.md").read_text("utf-8").strip()
    parts = [f"## {name}"]
    if entry is None:
        parts.append(f"`{name}` has not been measured yet: there are no scores of it.")
    else:
        parts += filter(None, (write(entry) for write in SECTIONS))
    return "\n\n".join([*parts, note])


def describe(entry: dict[str, Any]) -> str:
    """Describe the pipeline, and say when it was measured."""
    pipeline = entry["pipeline"]
    sections = (entry.get(name, {}) for name in ("corpora", "hard_notes", "speed"))
    parts = [part["measured"] for section in sections for part in section.values()]
    runs = sorted({f"{part['date']} (commit {part['commit']})" for part in parts})
    return (
        f"{LANGUAGES[pipeline['lang']]}, version {pipeline['version']}, "
        f"{pipeline['size_mb']:.0f} MB. Components: {', '.join(pipeline['components'])}. "
        f"Measured on {', '.join(runs)}."
    )


def test_corpora(entry: dict[str, Any]) -> dict[str, Any]:
    """Find the scores on test documents; rules and settings were chosen on those of dev."""
    corpora = entry.get("corpora", {})
    return {name: found for name, found in corpora.items() if not name.endswith(", dev")}


def label_table(entry: dict[str, Any]) -> str:
    """Tabulate the scores of each label on each corpus."""
    rows = []
    for corpus, found in test_corpora(entry).items():
        for layer in found["layers"].values():
            for label in layer["labels"]:
                row = layer["per_type"].get(label)
                cells = _cells(row) if row else "– | – | – | – | –"
                rows.append((label, f"| `{label}` | {corpus} | {cells} |"))
            if len(layer["labels"]) > 1:
                rows.append(("~", f"| all (micro) | {corpus} | {_cells(layer['micro'])} |"))
    if not rows:
        return ""
    # Labels of the same name are compared side by side, those of one corpus stay together.
    order = {label: n for n, (label, _) in reversed([*enumerate(rows)]) if label != "~"}
    rows = sorted(rows, key=lambda row: order.get(row[0], len(rows)))
    head = (
        "### What it finds\n\nStrict scores on test documents: offsets and label are equal. Only "
        "labels that a corpus annotates are scored on it.\n\n"
        "| label | corpus | gold | P | R | F1 | 95 % |\n|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *(row for _, row in rows)])


def _cells(row: dict[str, Any]) -> str:
    low, high = row["f_interval"]
    prf = " | ".join(f"{100 * row[key]:.1f}" for key in "prf")
    return f"{row['tp'] + row['fn']:,} | {prf} | {100 * low:.1f}–{100 * high:.1f}"


def calibration_line(entry: dict[str, Any]) -> str:
    """State the expected calibration error on each corpus."""
    errors = [
        f"{corpus} {layer['calibration_error']:.3f}"
        for corpus, found in test_corpora(entry).items()
        for layer in found["layers"].values()
        if layer["calibration_error"] is not None
    ]
    return f"Expected calibration error of the probabilities: {', '.join(errors)}." * bool(errors)


def phi_table(entry: dict[str, Any]) -> str:
    """Tabulate de-identification of corpora and hard notes at each operating point."""
    sets = {name: found.get("phi", {}) for name, found in entry.get("corpora", {}).items()}
    for split, found in entry.get("hard_notes", {}).items():
        sets[f"hard notes, {split}"] = {key: row["all"] for key, row in found["points"].items()}
    lines = [
        f"| {name} | {POINTS.get(point, point)} | {_official(row)} | {_share(row, 'span_recall')} "
        f"| {_share(row, 'letter_precision')} | {_share(row, 'notes_wholly_hidden')} |"
        for name, points in sets.items()
        for point, row in points.items()
    ]
    if not lines:
        return ""
    head = (
        "### De-identification\n\n"
        "| notes | operating point | NER F1, leak score (as MEDDOCAN) | spans wholly hidden "
        "| letters hidden that are PHI | notes wholly hidden |\n|---|---|---|---|---|---|"
    )
    return "\n".join([head, *lines])


def _official(row: dict[str, Any]) -> str:
    if "official" not in row:
        return "–"
    ner = row["official"]["ner"]
    return f"{ner['f']:.3f}, {ner['leak']:.3f}"


def _share(row: dict[str, Any], name: str) -> str:
    if row.get(name) is None:
        return "–"
    low, high = row[f"{name}_interval"]
    return f"{100 * row[name]:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def speed_table(entry: dict[str, Any]) -> str:
    """Tabulate speed, memory, and what each part costs."""
    found = entry.get("speed", {}).get("all")
    if not found:
        return ""
    speed, memory = found["words_per_second"], found["peak_memory_mb"]
    lines = [
        "### Speed",
        "",
        f"On {found['measured']['cpu']}, {found['words']:,} words of test documents.",
        "",
        "| | |",
        "|---|---|",
        f"| words/s, one thread | {speed['1']:,} |",
        f"| words/s, two threads | {speed['2']:,} |",
        f"| `spacy.load`, seconds | {found['load']['load_seconds']:.1f} |",
        f"| memory of a process that has loaded it, MB | {found['load']['process_mb']:,} |",
        f"| peak while it annotates these documents with two threads, MB | {memory['2']:,} |",
    ]
    costs = found["microseconds_per_word"]
    if len(costs) > 1:
        without = found["words_per_second_without"]
        lines += [
            "",
            "What a part costs is the processor time on one thread that is saved without it.",
            "",
            "| part | microseconds per word | words/s without it |",
            "|---|---|---|",
        ]
        lines += [
            f"| {PARTS.get(part, part)} | {cost:.0f} | {without[part]:,} |"
            if part in without
            else f"| {PARTS.get(part, part)} | {cost:.0f} | – |"
            for part, cost in costs.items()
        ]
    return "\n".join(lines)


def corpora_table(entry: dict[str, Any]) -> str:
    """Tabulate licence, source and citation of the corpora."""
    tasks = load_tasks()
    lines = []
    for name, found in test_corpora(entry).items():
        task = tasks.get(name)
        about = "– | – | –"
        if task:
            source = f"<{task.source}>" if task.source.startswith("http") else task.source
            about = f"{task.licence} | {task.cite} | {source}"
        lines.append(f"| {name} | {found['docs']:,} | {about} |")
    if not lines:
        return ""
    head = (
        "### Corpora\n\nThe scores are on the test documents; the pipeline learned from others.\n\n"
        "| corpus | test documents | licence | cite | source |\n|---|---|---|---|---|"
    )
    return "\n".join([head, *lines])


SECTIONS = (describe, label_table, calibration_line, phi_table, speed_table, corpora_table)
