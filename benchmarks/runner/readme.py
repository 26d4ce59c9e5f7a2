"""The results of `bioclin run` and of annotation tools, for benchmarks/readme.py."""

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
