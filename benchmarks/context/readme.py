"""The tables of `bioclin_context`, `bioclin_sections` and `bioclin_measurements`, for readme.py."""

from typing import Any

from benchmarks.readme_ner import load

ATTRIBUTES = ("negated", "uncertain", "historical", "hypothetical", "family")
SYSTEMS = {
    "bioclin": "**`bioclin_context`**, rules",
    "medspacy": "medspaCy",
    "negspacy": "negspacy",
    "negspacy, default terms": "negspacy, its default (English) terms",
    "all negated": "every mention is negated",
}
SETS = {
    "assertions_en": "sentences of notes",
    "traps_en": "traps",
    "NUBes/SAMPLE-010": "NUBes 010",
    "IULA+": "IULA+",
}
LANGS = {"en": "English", "es": "Spanish"}
SOURCES = {"rules": "rules", "trained": "tagger", "both": "both"}


def _f1(row: dict[str, Any] | None) -> str:
    return f"{row['f']:.3f}" if row else "–"


def assertion_table() -> str:
    """Tabulate F1 of the attributes of given mentions, beside other systems."""
    lines = [
        f"| what mentions mean, F1 | {' | '.join(ATTRIBUTES)} |",
        "|---|" + "---|" * len(ATTRIBUTES),
    ]
    of_lang = load("context_assertions")
    for lang in LANGS:
        systems = of_lang[lang]["systems"]
        names = [name for name in SETS if name in systems["bioclin"]]
        for name in names:
            for system, title in SYSTEMS.items():
                if rows := systems.get(system, {}).get(name):
                    cells = " | ".join(_f1(rows.get(attribute)) for attribute in ATTRIBUTES)
                    lines.append(f"| {SETS[name]} ({lang}): {title} | {cells} |")
    return "\n".join(lines)


def assertion_line() -> str:
    """Say what the mentions of `assertion_table` are."""
    of_lang = load("context_assertions")
    versions: dict[str, str] = {}
    for lang in LANGS:
        for system in of_lang[lang]["systems"].values():
            versions |= system.get("versions", {})
    return (
        "Each system was given the mentions. The English sentences were annotated before the rules "
        "existed, by one reader, and read once; traps are sentences of our own. Mentions in "
        "Spanish are the entities of the corpora and, so that not nearly all are negated, every "
        "tenth long word outside of cues and scopes; sample 010 and IULA+ were read once. "
        f"medspaCy {versions['medspacy']} (with an empty module for its QuickUMLS, which does not "
        f"build) has no Spanish rules, negspacy {versions['negspacy']} finds negation alone."
    )


def nubes_table() -> str:
    """Tabulate F1 of cues and scopes on the test part of NUBes, by source."""
    parts = {
        "cues": "cues",
        "scopes": "scopes, exact",
        "tokens": "words in scopes",
        "cue_and_scope": "cue with exactly its scopes",
        "assertion": "entities",
    }
    lines = [
        f"| F1, negated and uncertain | {' | '.join(parts.values())} |",
        "|---|" + "---|" * len(parts),
    ]
    systems = load("context_nubes_test")["systems"]
    for corpus in systems["rules"]:
        for source, title in SOURCES.items():
            scores = systems[source][corpus]
            cells = [
                f"{_f1(scores[part]['negated'])}, {_f1(scores[part]['uncertain'])}"
                for part in parts
            ]
            lines.append(f"| {SETS[corpus]}: {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def measurement_table() -> str:
    """Tabulate how many measurements of the annotated sentences are found, and read right."""
    lines = [
        "| measurements, 300 sentences each | annotated | exact spans: precision, recall, F1 "
        "| overlapping, recall | of exact spans: kind, value, unit, value and unit right |",
        "|---|---|---|---|---|",
    ]
    for lang, row in load("context_measurements")["scores"].items():
        spans = ", ".join(f"{row[f'spans_{score}']:.3f}" for score in "prf")
        right = row["right_of_found"]
        parts = ", ".join(f"{right[k]:.3f}" for k in ("kind", "value", "unit", "value_and_unit"))
        lines.append(
            f"| {LANGS[lang]} | {row['annotated']} | {spans} | {row['overlapping_recall']:.3f} "
            f"| {parts} |"
        )
    return "\n".join(lines)


def orders_table() -> str:
    """Tabulate how many fields of orders are right, on the third of them that was held out."""
    scores = load("context_orders")
    read = {"before": scores["before"]["test"], "held out, read once": scores["test, read first"]}
    fields = ("all", "field dose", "field route", "field frequency", "field when", "field status")
    names = [name.removeprefix("field ") for name in fields]
    lines = [
        f"| orders of our own, fields right | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for title, by_lang in read.items():
        for lang, row in by_lang.items():
            cells = [row[field].partition(" ")[2] if field in row else "–" for field in fields]
            lines.append(f"| {LANGS[lang]}, {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def context_speed_table() -> str:
    """Tabulate words per second of each component, beside other systems."""
    words = load("context_speed")["words"]
    rows = {
        "**`bioclin_sections`**": ("bioclin", "sections"),
        "medspaCy, sections": ("medspacy", "sections"),
        "**`bioclin_context`**, rules": ("bioclin", "context"),
        "medspaCy, ConText": ("medspacy", "context"),
        "negspacy, negation only": ("negspacy", "context"),
        "**`bioclin_measurements`**": ("bioclin", "measurements"),
    }
    lines = ["| words/s of processor time, one thread | Spanish | English |", "|---|---|---|"]
    for title, (system, stage) in rows.items():
        cells = []
        for lang in ("es", "en"):
            speeds = words[lang]["systems"].get(system, {}).get("words_per_second", {})
            cells.append(f"{speeds[stage]:,}" if stage in speeds else "–")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def context_growth_line() -> str:
    """State the slowest text of 1 MB of each component."""
    slowest = max(
        seconds["1000000"]
        for seconds in load("context_speed")["growth_seconds"]["context"].values()
    )
    growth = load("context_measurements")["growth_seconds"]
    numbers = max(row[-1] for lang in LANGS for row in growth[lang].values())
    return (
        "Of texts of 1 MB that were made to be slow, the slowest takes `bioclin_context` "
        f"{slowest:.1f} seconds and `bioclin_measurements` {numbers:.1f} seconds."
    )
