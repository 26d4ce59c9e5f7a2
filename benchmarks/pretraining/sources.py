"""Perplexity of encoders on the held-out text of each source, and bits per character.

    bash scripts/build_encoder.sh && python -m benchmarks.pretraining.sources

Perplexity is that of masked pieces, so it depends on the vocabulary: an encoder with longer pieces
has fewer and harder ones. Bits per character (mean bits of a predicted piece times pieces per
character) can be compared. --start measures what a training started from, with the vocabulary of
its result: the first point of its curve. No included encoder has read this text: documents are held
out by a hash of their words, whatever text they are in.
"""

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer

from benchmarks.corpora import SHIPPED, encoder_folder
from benchmarks.harness import WORK, keep, make_parser, read_json, write_result
from benchmarks.pretraining import REBUILT
from spacy_bioclin.files import hash_files
from spacy_bioclin.pretraining.blocks import MaskedBlocks, make_blocks
from spacy_bioclin.pretraining.masked_lm import MaskedLM, open_model
from spacy_bioclin.pretraining.masking import NO_LOSS, Masking, describe_vocabulary
from spacy_bioclin.pretraining.text.corpus import find_files, read_documents

LENGTH, RATE, BATCH = 256, 0.2, 8
ROUNDS = 2  # with different masks


def read_sources(clean: Path) -> dict[str, list[list[str]]]:
    """Read the held-out documents of each source.

    The cleaned text has its documents in the order of the files it was made from; the report says
    how many are of which.

    RETURNS (dict[str, list[list[str]]]): "LANG, SOURCE" -> sentences of each document.
    """
    report = read_json(clean / "report.json")
    sources = {}
    for lang, path in find_files(clean, "held-out").items():
        documents = read_documents(path)
        for name, counts in report["files"].items():
            n = counts["kept"].get(f"{lang}.held-out", {}).get("documents", 0)
            source = Path(name).name.removesuffix(".txt.xz")
            if n:
                sources[f"{lang}, {source}"] = list(itertools.islice(documents, n))
        if next(documents, None) is not None:
            raise SystemExit(f"{path} has more documents than its report says")
    return sources


def measure(model: MaskedLM, tokenizer: Any, documents: list[list[str]]) -> Counter[str]:
    """Predict masked pieces of the documents of one source.

    RETURNS (Counter[str]): Sums, which can be added to those of other sources.
    """
    blocks = np.stack(list(make_blocks(iter(documents), tokenizer, length=LENGTH)))
    sums: Counter[str] = Counter(
        documents=len(documents),
        words=sum(len(sentence.split()) for document in documents for sentence in document),
        characters=sum(len(sentence) + 1 for document in documents for sentence in document),
        pieces=int((~np.isin(blocks, tokenizer.all_special_ids)).sum()),
    )
    vocabulary = describe_vocabulary(tokenizer)
    for seed in range(ROUNDS):
        masking = Masking(rate=RATE, whole_words=False, seed=seed)
        masked = MaskedBlocks({"": blocks}, {"": 1.0}, len(blocks), vocabulary, masking)
        for i in range(0, len(masked), BATCH):
            rows = [masked[j] for j in range(i, min(i + BATCH, len(masked)))]
            batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
            n = int((batch["labels"] != NO_LOSS).sum())
            with torch.inference_mode():
                sums["nats"] += n * model(**batch)["loss"].item()
            sums["predicted"] += n
    return sums


def summarize(sums: Counter[str]) -> dict[str, Any]:
    """Compute perplexity and bits per character."""
    loss = sums.pop("nats") / sums["predicted"]
    return {
        **sums,
        "nats_per_piece": round(loss, 4),
        "perplexity": round(math.exp(loss), 2),
        "bits_per_character": round(loss / math.log(2) * sums["pieces"] / sums["characters"], 4),
    }


def measure_all(
    name: str, start: Path, tokenizer: Path | None, layers: int | None, clean: Path
) -> dict[str, Any]:
    """Measure one encoder on every source, or read what was measured before."""
    pieces = AutoTokenizer.from_pretrained(tokenizer or start, trust_remote_code=False)
    key = f"{hash_files(start)[:12]}-{hash_files(tokenizer)[:12] if tokenizer else ''}-{layers}"

    def run() -> dict[str, Any]:
        torch.manual_seed(0)
        network = open_model(str(start), pieces if tokenizer else None, layers, 0.0)
        model = MaskedLM(network).eval()
        found = {
            source: measure(model, pieces, documents)
            for source, documents in read_sources(clean).items()
        }
        for lang in sorted({source.partition(",")[0] for source in found}):
            parts = [sums for source, sums in found.items() if source.startswith(f"{lang},")]
            found[f"{lang}, all"] = sum(parts, Counter[str]())
        return {source: summarize(sums) for source, sums in found.items()}

    clean_hash = hash_files(clean)[:12]
    found: dict[str, Any] = keep(WORK / "perplexity" / clean_hash / f"{key}.json", run)
    print(f"{name}: " + ", ".join(f"{k} {row['perplexity']}" for k, row in found.items()))
    return found


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "encoders", nargs="*", metavar="NAME=FOLDER", help="default: those in assets/encoders"
    )
    parser.add_argument(
        "--start",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="what the encoder NAME started from; default: those of bioclin-compact and bioclin-sm",
    )
    parser.add_argument("--clean", type=Path, default=REBUILT / "clean", help="cleaned text")
    arguments = parser.parse_args()
    folders = dict(pair.split("=", 1) for pair in arguments.encoders) or {
        path.name: str(path) for path in sorted(SHIPPED.parent.iterdir())
    }
    starts = dict(pair.split("=", 1) for pair in arguments.start)
    if not arguments.encoders:
        starts = {
            "bioclin-compact": str(encoder_folder("minilm", "", Path())),
            "bioclin-sm": str(REBUILT / "start"),
            **starts,
        }
    encoders: dict[str, Any] = {}
    for name, folder in folders.items():
        path = Path(folder)
        layers = read_json(path / "config.json")["num_hidden_layers"]
        rows = {"last": measure_all(f"{name}, last", path, None, None, arguments.clean)}
        if name in starts:
            first = measure_all(f"{name}, first", Path(starts[name]), path, layers, arguments.clean)
            rows = {"first": first, **rows}
        encoders[name] = rows
    result = {"length": LENGTH, "mask_rate": RATE, "rounds": ROUNDS, "encoders": encoders}
    print(write_result("perplexity_sources", result))


if __name__ == "__main__":
    main()
