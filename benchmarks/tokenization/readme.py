"""Tables of tokens and sentences for docs/results.md, see benchmarks/readme.py."""

from benchmarks.readme_ner import load


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
