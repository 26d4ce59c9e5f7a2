"""Table of entity linking for docs/results.md, see benchmarks/readme.py."""

from benchmarks.readme_ner import load

LINKING = {
    "ncbi-disease": ("NCBI-disease → MEDIC", "0.924 BioSyn-SapBERT"),
    "bc5cdr-disease": ("BC5CDR diseases → MEDIC + MeSH", "0.935 BioSyn-SapBERT"),
    "bc5cdr-chemical": ("BC5CDR chemicals → MeSH descriptors", "0.966 BioSyn-SapBERT"),
    "cantemist": ("CANTEMIST → ICD-O-3", "0.825 end to end (ODESIA leaderboard)"),
}
# Columns of the taggers that find the mentions end to end.
TAGGERS = ("train", "train_dev", "train_dev_joined")


def linking_table() -> str:
    """Tabulate linking accuracy on gold test mentions, by how the linker was trained."""
    lines = [
        "| linking gold mentions, test | recall@64 | accuracy, untrained | trained on names "
        "| trained, with vectors | ids in the terminology only | end-to-end F1, tagger "
        "| trained with dev | three joined | published |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for corpus, row in load("linking_accuracy_test")["corpora"].items():
        title, published = LINKING[corpus]
        lexical, best = row["lexical"], row["meaning"]
        trained = best["trained"]
        covered = trained["in_terminology"]
        ends = [best["end_to_end"].get(name) for name in TAGGERS]
        scores = " | ".join(f"{end['mentions']['f']:.3f}" if end else "–" for end in ends)
        lines.append(
            f"| {title} | {trained['all']['r64']:.3f} "
            f"| {best['untrained']['without_nil']['acc']:.3f} "
            f"| {lexical['trained']['without_nil']['acc']:.3f} "
            f"| **{trained['without_nil']['acc']:.3f}** "
            f"| {covered['acc']:.3f} (recall {covered['r64']:.3f}) "
            f"| {scores} | {published} |"
        )
    return "\n".join(lines)


def linking_line() -> str:
    """State which encoder made the vectors, and which pipeline found the mentions."""
    corpora = load("linking_accuracy_test")["corpora"]
    encoders = sorted({row["encoder"] for row in corpora.values() if row.get("encoder")})
    pipelines = sorted({name for row in corpora.values() for name in row["ner"].values()})
    parts = []
    if encoders:
        names = ", ".join(f"`{name}`" for name in encoders)
        parts.append(f"The vectors are those of {names} (`bioclin align-encoder`).")
    if pipelines:
        names = ", ".join(f"`{name}`" for name in pipelines)
        parts.append(f"End to end, the mentions are those of our pipelines ({names}).")
    return " ".join(parts)
