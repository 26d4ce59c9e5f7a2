"""Table of entity linking for docs/results.md, see benchmarks/readme.py."""

from benchmarks.readme_ner import load

LINKING = {
    "ncbi-disease": ("NCBI-disease → MEDIC", "0.924 BioSyn-SapBERT"),
    "bc5cdr-disease": ("BC5CDR diseases → MEDIC + MeSH", "0.935 BioSyn-SapBERT"),
    "bc5cdr-chemical": ("BC5CDR chemicals → MeSH descriptors", "0.966 BioSyn-SapBERT"),
    "cantemist": ("CANTEMIST → ICD-O-3", "0.825 end to end (ODESIA leaderboard)"),
}
# Columns of the taggers that find the mentions end to end.
TAGGERS = {
    "train": "End to end, the taggers are those that are best on dev",
    "train_dev": "The same trained with dev",
    "train_dev_joined": "Seeds of that, joined (three; two for CANTEMIST)",
}


def linking_table() -> str:
    """Tabulate linking accuracy on gold test mentions, by how the linker was trained."""
    lines = [
        "| linking gold mentions, test | recall@64 | accuracy, untrained | trained on names "
        "| trained, with vectors | ids in the terminology only | end-to-end F1, tagger "
        "| trained with dev | joined | published |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for corpus, row in load("linking_accuracy_test")["corpora"].items():
        title, published = LINKING[corpus]
        lexical, meaning = row["lexical"], row.get("meaning")
        best = meaning or lexical
        trained = best["trained"]
        with_vectors = f"**{trained['without_nil']['acc']:.3f}**" if meaning else "–"
        covered = trained["in_terminology"]
        ends = [best["end_to_end"].get(name) for name in TAGGERS]
        scores = " | ".join(f"{end['mentions']['f']:.3f}" if end else "–" for end in ends)
        lines.append(
            f"| {title} | {trained['all']['r64']:.3f} "
            f"| {best['untrained']['without_nil']['acc']:.3f} "
            f"| {lexical['trained']['without_nil']['acc']:.3f} "
            f"| {with_vectors} "
            f"| {covered['acc']:.3f} (recall {covered['r64']:.3f}) "
            f"| {scores} | {published} |"
        )
    return "\n".join(lines)


def linking_line() -> str:
    """State which encoder made the vectors, what was added, and which taggers found mentions."""
    corpora = load("linking_accuracy_test")["corpora"]
    encoders = sorted({row["encoder"] for row in corpora.values() if row.get("encoder")})
    added = {
        LINKING[corpus][0]: n
        for corpus, row in corpora.items()
        if (n := row["concepts_of_training_mentions_alone"])
    }
    parts = []
    if encoders:
        names = ", ".join(f"`{name}`" for name in encoders)
        parts.append(f"The vectors are those of {names} (`bioclin align-encoder`).")
    if added:
        counts = ", ".join(f"{title} {n}" for title, n in added.items())
        parts.append(
            "Trained linkers also know the concepts of training mentions that the terminology "
            f"lacks: {counts}."
        )
    for tagger, said in TAGGERS.items():
        names = sorted({row["ner"][tagger] for row in corpora.values() if tagger in row["ner"]})
        if names:
            parts.append(f"{said}: {', '.join(f'`{name}`' for name in names)}.")
    return " ".join(parts)
