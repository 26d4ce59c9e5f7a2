"""The tables of `bioclin run`, the page and the annotation tools, for benchmarks/readme.py."""

from typing import Any

from benchmarks.readme_ner import load

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
        f"ms; result of a note of {result['note_bytes']:,} bytes {times['result']:,.0f} ms, of "
        f"which the service takes {times['answer']:,.0f} ms. {result['requests_that_left']} of "
        f"{result['requests']} requests left the service's origin. axe-core finds "
        f"{sum(result['violations'].values())} violations in {len(result['violations'])} views."
    )


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
