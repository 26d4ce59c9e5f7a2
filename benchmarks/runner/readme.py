"""The results of `bioclin run`, `bioclin serve` and annotation tools, for benchmarks/readme.py."""

import re
from typing import Any

from benchmarks.readme_ner import NAMES, load

SERVICES = {
    "annotate": "`/annotate`, the whole pipeline, in batches",
    "annotate, note by note": "the same, note by note",
    "deidentify": "`/deidentify`, in batches",
    "deidentify, note by note": "the same, note by note",
    "presidio": "Presidio's analyzer and anonymizer with the same encoder",
}
TOOLS = {
    "label-studio": "Label Studio",
    "doccano": "doccano",
    "prodigy": "Prodigy",
    "inception": "INCEpTION",
    "brat": "brat",
}


def standards_line() -> str:
    """Say how many rows PostgreSQL took and how many resources are valid."""
    result = load("run_standards")
    omop, fhir = result["omop"], result["fhir"]
    return (
        f"`bioclin run` wrote what `{result['pipeline']}` found in {result['notes']:,} notes "
        f"({result['words']:,} words) of PharmaCoNER. PostgreSQL, with the tables and constraints "
        f"of CDM 5.4, took {omop['rows_loaded']:,} of {omop['rows']:,} rows of NOTE_NLP and "
        f"rejected {omop['rows_rejected']}; the words of "
        f"{omop['rows_whose_words_are_at_their_offset']:,} rows are at their offset in the note. "
        f"Of the FHIR R4B resources, {fhir['resources_valid']:,} are valid by fhir.resources and "
        f"{fhir['resources_invalid']} are not. The concept ids are invented. Procedures and "
        "proteins have no resource and are counted."
    )


def faults_table() -> str:
    """Tabulate what became of notes under each fault."""
    result = load("run_faults")
    lines = [
        f"`bioclin run` on {result['notes']:,} notes, with a fault. Each run was repeated with "
        "`--resume` until it ended. Lost and twice are counts of notes, beside an undisturbed "
        "run; equal means the same bytes.",
        "",
        "| fault | engine | runs | lost | twice | equal |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        equal = "yes" if row["equal"] else "no"
        lines.append(
            f"| {row['fault']} | {row['engine']} | {row['times']} | {row['lost']} "
            f"| {row['twice']} | {equal} |"
        )
    return "\n".join(lines)


def page_line() -> str:
    """Say how quick the page is and what it asks of others."""
    result = load("page")
    times = {name: result[f"{name}_ms"]["median"] for name in ("first_paint", "result", "answer")}
    return (
        f"The page of `bioclin serve` in Chromium, medians: first paint {times['first_paint']:.0f} "
        f"ms; result of a note of {result['note_bytes']:,} bytes {times['result']:,.0f} ms, asked "
        f"for without the page {times['answer']:,.0f} ms. {result['requests_that_left']} of "
        f"{result['requests']} requests left the service's origin. axe-core finds "
        f"{sum(result['violations'].values())} violations in {len(result['violations'])} views."
    )


def rates_table() -> str:
    """Tabulate the rates of `bioclin run` beside `nlp.pipe`."""
    result = load("speed_run")
    systems = result["systems"]
    lines = [
        f"`bioclin run` with `{result['pipeline']}` on {result['notes'] - result['first']:,} short "
        "notes of random words, one thread for each process, start-up not counted.",
        "",
        "| system | notes/s | words/s | ÷ `nlp.pipe` | ÷ one process |",
        "|---|---|---|---|---|",
    ]
    for name, row in systems.items():
        one = systems.get(re.sub(r" x \d+", " x 1", name), row)
        share = row["notes_per_second"] / one["notes_per_second"]
        lines.append(
            f"| {name_system(name)} | {row['notes_per_second']:,.0f} "
            f"| {row['words_per_second']:,} | {row['times_nlp_pipe']:.2f} | {share:.2f} |"
        )
    return "\n".join(lines)


def overhead_line() -> str:
    """Say what `bioclin run` adds to `nlp.pipe`."""
    result = load("run_overhead")
    shown = [
        f"`--to {form}` takes {row['processor']['times_nlp_pipe']:.2f} × the processor time of "
        f"`nlp.pipe` ({row['clock']['times_nlp_pipe']:.2f} × the time)"
        for form, row in result["systems"].items()
        if form != "nlp.pipe"
    ]
    rounds = [row["seconds"] for row in load("speed_run")["systems"].values()]
    spread = max(max(seconds) / min(seconds) - 1 for seconds in rounds)
    return (
        f"In turns in one process, {result['blocks']} blocks of {result['notes']:,} notes each, "
        f"medians of the ratios: {', '.join(shown)}. Reading, writing and joining are included. In "
        "the table, each system had a process and a time of its own, and rounds of the same one "
        f"differ by up to {spread:.0%}."
    )


def name_system(name: str) -> str:
    """Name a system of benchmarks/speed/run.py for readers."""
    if name == "nlp.pipe":
        return "`nlp.pipe`, from memory"
    form, engine, _, processes = name.split()
    return f"`--to {form} --engine {engine} --processes {processes}`"


def engines_line() -> str:
    """Say how Ray and Spark compare with processes of the same machine, and what memory grows."""
    result = load("speed_run_engines")
    rates = {name: row["notes_per_second"] for name, row in result["systems"].items()}
    local = rates["jsonl local x 2"]
    shown = [
        f"{engine} {rates[f'jsonl {engine} x 2'] / local:.2f} ×" for engine in ("ray", "spark")
    ]
    return (
        f"With two workers on the same {result['notes'] - result['first']:,} notes, beside "
        f"`--engine local`: {', '.join(shown)}."
    )


def run_memory_line() -> str:
    """Say how the memory of `bioclin run` grows."""
    result = load("speed_run_memory")
    memory = next(iter(result["systems"].values()))["memory_mb"]
    after_tenth = memory[len(memory) // 10]
    return (
        f"Over {result['notes']:,} notes of random words, with sentences, sections, rules, context "
        "and measurements of `es_bioclin_sm` alone, one process of `bioclin run` has "
        f"{after_tenth:,.0f} MB after a tenth of the notes, {memory[len(memory) // 2]:,.0f} MB "
        f"after half and {memory[-1]:,.0f} MB at the end."
    )


def cost_line() -> str:
    """Say how long fifty million notes take."""
    result = load("run_cost")
    ((name, rows),) = result["rows"].items()
    some = [row for row in rows if row["machines"] in (1, 16, 128)]
    hours = ", ".join(f"{row['machines']}: {row['hours']:,.0f}" for row in some)
    return (
        f"At the highest rate, hours for {result['notes']:,} notes of "
        f"{result['words_per_note']:.0f} words by number of machines with "
        f"{name}: {hours}. They are computed, with "
        f"{100 * result['share']:.0f} % of the rate beside other machines "
        "([picture](../benchmarks/results/run_cost.svg))."
    )


def edsnlp_line() -> str:
    """Say how `bioclin run` compares with EDS-NLP."""
    result = load("run_edsnlp")
    rates = {name: row["notes_per_second"] for name, row in result["systems"].items()}
    shown = [
        f"{title} {rates[f'bioclin run {key}']:,.0f} and {rates[f'EDS-NLP {key}']:,.0f} "
        f"({result['times_edsnlp'][key]:.2f} ×)"
        for key, title in (("fp32", "in fp32"), ("default", "each in its default precision"))
    ]
    return (
        f"Notes/s of `bioclin run` and of EDS-NLP's multiprocessing backend, with the same encoder "
        f"({result['encoder']}), {result['processes']} processes, notes of "
        f"{result['words_per_note']} words: {'; '.join(shown)}."
    )


def service_table() -> str:
    """Tabulate services under load."""
    result = load("serving")
    lines = [
        f"{result['clients']} clients that each wait for an answer and ask again, notes of "
        f"{result['characters_per_note']:,} characters, service and clients on the same "
        f"{result['machine']['cores']} cores.",
        "",
        "| service | notes/s | p50 | p95 | p99, ms | errors | memory, MB: after a fifth, end |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in result["systems"].items():
        memory = row["memory_mb"]
        lines.append(
            f"| {SERVICES[name]} | {row['notes_per_second']:.1f} | {row['p50_ms']:,.0f} "
            f"| {row['p95_ms']:,.0f} | {row['p99_ms']:,.0f} | {row['errors']} "
            f"| {memory['after a fifth']:,.0f}, {memory['end']:,.0f} |"
        )
    faults = result["systems"]["annotate"]
    statuses = ", ".join(f"{n:,} × {status}" for status, n in sorted(faults["malformed"].items()))
    end = faults["sigterm"]
    return "\n".join(
        [
            *lines,
            "",
            f"Malformed requests were answered with {statuses}. After SIGTERM under load, "
            f"{end['lost']} accepted requests were lost, and the service ended after "
            f"{end['seconds_to_end']:.1f} s with status {end['exit_status']}. "
            "The memory of the whole pipeline in batches, by minute, is "
            "[a picture](../benchmarks/results/serving.svg).",
        ]
    )


def suggest_table() -> str:
    """Tabulate what suggested notes are worth beside random ones."""
    result = load("suggest")
    rows = {(row["way"], row["annotated"]): row for row in result["summary"]}
    start = rows["start", result["start"]]
    lines = [
        f"F1 on dev of {NAMES[result['task']]} with `bioclin-{result['encoder']}` after annotating "
        f"more notes than the first {result['start']} ({100 * start['dev_f']:.1f}): means of "
        f"{start['draws']} draws, {result['updates']} updates each.",
        "",
        "| notes | random: F1, words | suggested: F1, words | points of each draw |",
        "|---|---|---|---|",
    ]
    for budget in sorted(budget for way, budget in rows if way == "random"):
        random, suggested = rows["random", budget], rows["suggested", budget]
        points = ", ".join(f"{each:+.1f}" for each in suggested["points_over_random"])
        lines.append(
            f"| {budget} | {100 * random['dev_f']:.1f}, {random['words']:,.0f} "
            f"| {100 * suggested['dev_f']:.1f}, {suggested['words']:,.0f} | {points} |"
        )
    return "\n".join(lines)


def tools_table() -> str:
    """Tabulate the round trips through the formats of annotation tools."""
    trips: dict[str, dict[str, dict[str, Any]]] = load("annotation_tools")["round_trips"]
    plain, hard = trips.values()
    lines = [
        "Gold spans of MEDDOCAN test through the format of a tool and back. The hard notes also "
        "have an emoji, a combining accent and `\\r\\n` in every line.",
        "",
        "| format | notes | spans | lost or moved | hard notes: spans | lost or moved |",
        "|---|---|---|---|---|---|",
    ]
    for name, title in TOOLS.items():
        row, other = plain[name], hard[name]
        lines.append(
            f"| {title} | {row['notes']} | {row['spans']:,} | {row['lost_or_moved']} "
            f"| {other['spans']:,} | {other['lost_or_moved']} |"
        )
    return "\n".join(lines)
