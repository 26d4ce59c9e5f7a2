"""Candidates by meaning: vectors of MEDIC's names, and the search for the nearest.

python -m benchmarks.linking.dense [--encoder FOLDER]

Encodes all names once (in .work/benchmarks/dense, where an interrupted run resumes), then measures
on one thread, by processor time: names/s of the encoder, mentions/s of the exact search and of the
graph, how much of the exact top 10 the graph finds, and what one vector for each key of names would
cost in accuracy. Mentions are those of NCBI-disease's dev split. Corpora: $BIOCLIN_DATA or
../shared/data.
"""

import os
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks import harness
from benchmarks.corpora import SHIPPED
from benchmarks.harness import make_parser, median_cpu_seconds, write_result
from benchmarks.linking.data import TERMINOLOGIES, GoldMention, load_split
from spacy_bioclin.encoders.names import NameEncoder
from spacy_bioclin.linking.dense.embed import embed_names
from spacy_bioclin.linking.dense.index import GRAPH, DenseIndex
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import SkipReport
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase

WORK = harness.WORK / "dense"
N_ENCODED, ROUNDS, TOP = 1024, 3, 10
RANKS = (1, 25)
# Names that are read to find so many concepts.
N_READ = 200


def per_second(n: int, run: Callable[[], Any]) -> float:
    """Compute n per median processor second of the rounds, after one that does not count."""
    run()
    return round(n / median_cpu_seconds(run, ROUNDS), 1)


def one_for_each_key(kb: KnowledgeBase) -> list[int]:
    """Choose a name for each key, if possible in natural order ("Breast Cancer", not "Cancer,
    Breast")."""
    groups = [kb.names_of_key(key) for key in range(len(kb.arrays["key_names_start"]) - 1)]
    return [int(next((i for i in g if ", " not in kb.names[i]), g[0])) for g in groups]


def found_at(
    kb: KnowledgeBase,
    ranked: dict[str, list[list[int]]],
    mentions: list[GoldMention],
) -> dict[str, float]:
    """Compute the share of mentions with a right concept among the first 1 and 25.

    ranked (dict): Text of a mention -> for each vector, best first, its names.
    """
    hits = dict.fromkeys(RANKS, 0)
    for mention in mentions:
        names = (name for group in ranked[mention.text] for name in group)
        concepts = list(dict.fromkeys(kb.ids[kb.name_concept[name]] for name in names))
        for rank in RANKS:
            hits[rank] += bool(set(concepts[:rank]) & set(mention.ids))
    return {f"at_{rank}": round(n / len(mentions), 4) for rank, n in hits.items()}


def compare_vectors(
    index: DenseIndex, queries: np.ndarray, texts: list[str], mentions: list[GoldMention]
) -> dict[str, Any]:
    """Compare accuracy of the nearest with a vector for each name, and for each key."""
    kb = index.kb
    found, _ = index.search(queries, N_READ)
    by_name = {text: [[name] for name in row] for text, row in zip(texts, found, strict=True)}
    chosen = one_for_each_key(kb)
    cosines = queries @ index.vectors_of(chosen).T
    nearest = np.argsort(-cosines, axis=1)[:, :N_READ]
    by_key = {
        text: [kb.names_of_key(int(key)).tolist() for key in row]
        for text, row in zip(texts, nearest, strict=True)
    }
    return {
        "each_name": {"vectors": len(index), **found_at(kb, by_name, mentions)},
        "each_key": {"vectors": len(chosen), **found_at(kb, by_key, mentions)},
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--encoder", default=str(SHIPPED))
    folder = Path(parser.parse_args().encoder)
    if not (WORK / "kb").is_dir():
        build_kb(TERMINOLOGIES["medic"](), WORK / "kb", report=SkipReport())
    kb = KnowledgeBase.open(WORK / "kb")
    encoder = NameEncoder(str(folder), device="cpu")
    path = WORK / encoder.hash[:12]
    if not path.is_dir():
        embed_names(kb, encoder, path, exact_limit=0, progress=lambda _, n: print(n, flush=True))
    started = time.perf_counter()
    index = DenseIndex.open(path, kb, encoder, device="cpu")
    opened = time.perf_counter() - started
    exact = DenseIndex.open(path, kb, encoder, device="cpu")
    exact.meta["files"].pop(GRAPH)  # all vectors are compared
    mentions = [mention for mention in load_split("ncbi-disease", "dev").mentions if mention.ids]
    texts = sorted({mention.text for mention in mentions})
    queries = encoder.encode(texts)
    rows = np.random.default_rng(0).choice(len(kb.names), N_ENCODED, replace=False)
    names = [kb.names[row] for row in rows]
    right, found = exact.search(queries, TOP)[0], index.search(queries, TOP)[0]
    common = sum(len(set(a) & set(b)) for a, b in zip(right, found, strict=True))
    result = {
        "encoder": {"name": folder.name, "hash": encoder.hash, "width": encoder.width},
        "names": len(kb.names),
        "vectors": len(index),
        "bytes": index.meta["files"],
        "mentions": {"all": len(mentions), "different": len(texts)},
        "threads": int(os.environ["OMP_NUM_THREADS"]),
        "faiss": version("faiss-cpu"),
        "names_encoded_per_second": per_second(N_ENCODED, lambda: encoder.encode(names)),
        "open_seconds": round(opened, 4),
        "exact_searches_per_second": per_second(len(texts), lambda: exact.search(queries, TOP)),
        "graph_searches_per_second": per_second(len(texts), lambda: index.search(queries, TOP)),
        "graph_share_of_exact_top_10": round(common / right.size, 4),
        "nearest_on_dev": compare_vectors(exact, queries, texts, mentions),
    }
    print(write_result("dense", result))


if __name__ == "__main__":
    main()
