"""Table of perplexity for docs/results.md, see benchmarks/readme.py."""

from benchmarks.readme_ner import is_there, load


def perplexity_table() -> str:
    """Tabulate perplexity and bits per character of held-out text, by source."""
    if not is_there("perplexity_sources"):
        return ""
    encoders = load("perplexity_sources")["encoders"]
    sm, compact = encoders["bioclin-sm"], encoders["bioclin-compact"]
    lines = [
        "| held-out text | words | perplexity, `bioclin-sm`: first, last "
        "| bits per character, `bioclin-sm`: first, last | `bioclin-compact`: last |",
        "|---|---|---|---|---|",
    ]
    for source, last in sm["last"].items():
        first = sm["first"][source]
        lines.append(
            f"| {source.replace('_', ' ')} | {last['words']:,} "
            f"| {first['perplexity']:,.0f}, {last['perplexity']:.1f} "
            f"| {first['bits_per_character']:.2f}, {last['bits_per_character']:.2f} "
            f"| {compact['last'][source]['bits_per_character']:.2f} |"
        )
    return "\n".join(lines)
