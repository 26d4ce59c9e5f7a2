"""Tables of speed, number formats and memory for docs/results.md, see benchmarks/readme.py."""

from benchmarks.readme_ner import NAMES, is_there, load

SIZES = {"random": "4 layers × 256", "base": "base size"}
NOTES = {"meddocan": "notes", "triage": "40 words"}
SYSTEMS = {
    "annotate": {
        "encoder fp32": "encoder alone, packed (upper bound)",
        "encoder fp32 compiled": "encoder alone, `torch.compile`",
        "bioclin fp32": "**spacy-bioclin**",
        "bioclin int8": "**spacy-bioclin, int8**",
        "spacy": "spacy-transformers and spaCy's `ner`",
        "huggingface": "Hugging Face `pipeline`, sorted",
        "edsnlp autocast": "EDS-NLP, default (autocast to bf16)",
        "edsnlp fp32": "EDS-NLP, fp32",
        "onnxruntime fp32": "onnxruntime, fused graph",
        "onnxruntime int8": "onnxruntime, int8",
    },
    "train": {
        "bioclin fp32": "**spacy-bioclin**, CRF",
        "huggingface fp32": "Hugging Face `Trainer`, linear head",
        "spacy": "spacy-transformers and spaCy's `ner`",
    },
}
PARITY = {"parity": SIZES["random"], "parity_sm": "`bioclin-sm`"}


def speed_table(what: str) -> str:
    """Tabulate words per second per system, and our fp32 speed divided by it."""
    columns = {}
    for encoder in ("random", "base"):
        measured = load(f"speed_{what}_{encoder}")
        for notes, part in measured.get("notes", {"meddocan": measured}).items():
            columns[f"{SIZES[encoder]}, {NOTES[notes]}"] = part
    first = next(iter(columns.values()))["systems"]
    title = {"annotate": "annotation", "train": "training"}[what]
    lines = [
        f"| {title}, words/s (our fp32 speed ÷ it) | {' | '.join(columns)} |",
        "|---|" + "---|" * len(columns),
    ]
    for system in first:
        cells = []
        for part in columns.values():
            if system not in part["systems"]:
                cells.append("–")
                continue
            row, ours = part["systems"][system], part["systems"]["bioclin fp32"]
            ratio = row["median_seconds"] / ours["median_seconds"]
            cells.append(f"{row['words_per_second']:,} ({ratio:.2f})")
        lines.append(f"| {SYSTEMS[what].get(system, system)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parity_table() -> str:
    """Tabulate the share of entities that each number format has in common with fp32."""
    lines = [
        "| test split, number format, encoder | entities in common with fp32 | F1 | F1 in fp32 |",
        "|---|---|---|---|",
    ]
    for result, encoder in PARITY.items():
        for task, formats in load(result)["tasks"].items() if is_there(result) else ():
            fp32 = formats["fp32"]["test_f"]
            for name, row in formats.items():
                if name != "fp32":
                    cells = f"{row['share']:.2%} | {row['test_f']:.4f} | {fp32:.4f}"
                    lines.append(f"| {NAMES[task]}, {name}, {encoder} | {cells} |")
    return "\n".join(lines)


def shipped_line() -> str:
    """Compare the encoders that ship."""
    if not is_there("speed_shipped"):
        return ""
    result = load("speed_shipped")
    ratios = ", ".join(
        f"{values['sm']:.2f} in {precision}"
        for precision, values in result["words_per_second_ratio"].items()
    )
    loads = {key: values["sm"] for key, values in result["load_ratio"].items()}
    memory = result["load"]["sm"]["median"]["after_first_note_mb"]
    return (
        f"`bioclin-sm` annotates {ratios} times as many words per second as `bioclin-compact`, and "
        f"its pipeline takes {loads['load_seconds']:.2f} times as long to load and "
        f"{loads['after_first_note_mb']:.2f} times the memory ({memory:.0f} MB beside the "
        f"libraries), on {result['notes']} notes of MEDDOCAN test."
    )


def memory_line() -> str:
    """State load time and memory beside spacy-transformers."""
    ratios, memory = load("load")["ours_over_vanilla"], load("memory")
    return (
        f"`spacy.load` of a base-size pipeline takes {ratios['load_seconds']:.2f} of the time and "
        f"{ratios['load_peak_mb']:.2f} of the peak memory of spacy-transformers. Over "
        f"{memory['notes']:,} notes the resident memory of `nlp.pipe` changes by "
        f"{memory['change_percent']:+.1f} % after the first 1,000."
    )
