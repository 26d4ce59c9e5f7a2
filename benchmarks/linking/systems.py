"""The systems that candidates.py measures, each in a process of its own on one core:

    python -m benchmarks.linking.systems build SYSTEM SIZE FOLDER
    python -m benchmarks.linking.systems serve SYSTEM SIZE FOLDER    # asks for rounds on stdin
    python -m benchmarks.linking.systems recall SYSTEM SIZE FOLDER

A system answers a list of mentions in one call, which is the batch that each of them likes best.
"index" is the n-gram index alone, the rows of the 10 nearest names; "generator" is what a pipeline
calls, from strings to concepts, with its own number of candidates.
"""

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Result, read_json, serve, write_json
from benchmarks.linking.names import names_path, read_names

Run = Callable[[list[str]], Any]
TOP = 10
SCISPACY_K = 30  # the default of scispaCy's EntityLinker
EF_SEARCH = 200  # the default of create_tfidf_ann_index
# A score this little under the exact tenth counts as equal to it.
TIE = 1e-4


def memory_mb() -> dict[str, float]:
    """Measure resident, private and anonymous megabytes of this process."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    kb = {name: int(value.split()[0]) for name, value in (line.split(":") for line in lines)}
    sums = {
        "rss": kb["Rss"],
        "private": kb["Private_Clean"] + kb["Private_Dirty"],
        "anonymous": kb["Anonymous"],
    }
    return {name: round(value / 1024, 1) for name, value in sums.items()}


def disk_mb(files: Iterable[Path]) -> float:
    return round(sum(file.stat().st_size for file in files if file.is_file()) / 1e6, 1)


class Clock:
    """Wall and processor seconds of the parts of some work."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, float]] = {}
        self.start = (time.perf_counter(), time.process_time())

    def part(self, name: str) -> None:
        """End a part; the next one begins."""
        now = (time.perf_counter(), time.process_time())
        spent = [round(b - a, 4) for a, b in zip(self.start, now, strict=True)]
        self.parts[name] = {"wall_s": spent[0], "cpu_s": spent[1]}
        self.start = now
        print(name, *spent, file=sys.stderr, flush=True)


class Scispacy:
    """create_tfidf_ann_index and CandidateGenerator, with their own settings.

    The build follows create_tfidf_ann_index line by line, but for two things: that function refuses
    SciPy 1.11 and later, which can write no float16 vectors (here float32 ones are written for it
    to load, and float16 ones beside them that count as its size on disk), and asks for 60 threads.
    """

    name, ef_construction = "scispacy", 2000

    def __init__(self, folder: Path, size: int) -> None:
        import scispacy.candidate_generation as generation
        from scispacy.linking_utils import KnowledgeBase

        self.generation, self.read_kb = generation, KnowledgeBase
        self.kb_path = str(names_path(folder, size))
        self.names = lambda: read_names(folder, size)
        self.folder = folder / f"{self.name}-{size}"

    def build(self) -> dict[str, Any]:
        import joblib
        import nmslib
        import scipy.sparse
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.folder.mkdir(exist_ok=True)
        paths = self.generation.LinkerPaths.from_directory(self.folder)
        names = self.names()
        clock = Clock()
        vectorizer = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(3, 3), min_df=10, dtype=np.float32
        )
        vectors = vectorizer.fit_transform(names)
        full = np.asarray(vectors.sum(axis=1) != 0).reshape(-1)
        names = [name for name, keep in zip(names, full, strict=True) if keep]
        vectors = vectors[full]
        clock.part("vectors")
        index = nmslib.init(
            method="hnsw",
            space="cosinesimil_sparse",
            data_type=nmslib.DataType.SPARSE_VECTOR,
        )
        index.addDataPointBatch(vectors)
        settings = {"M": 100, "efConstruction": self.ef_construction, "post": 0}
        index.createIndex({**settings, "indexThreadQty": 1}, print_progress=True)
        clock.part("index")
        joblib.dump(vectorizer, paths.tfidf_vectorizer)
        Path(paths.concept_aliases_list).write_text(json.dumps(names), encoding="utf-8")
        small = {"data": vectors.data.astype(np.float16), "indices": vectors.indices}
        np.savez_compressed(self.folder / "float16.npz", indptr=vectors.indptr, **small)
        index.saveIndex(paths.ann_index)
        clock.part("saved")
        scipy.sparse.save_npz(paths.tfidf_vectors, vectors)
        written = [path for path in self.folder.iterdir() if str(path) != paths.tfidf_vectors]
        return {
            "parts": clock.parts,
            "disk_mb": {"index": disk_mb(written), "concepts": disk_mb([Path(self.kb_path)])},
            "vector_size": vectors.shape[1],
            "features_per_name": round(vectors.nnz / vectors.shape[0], 2),
        }

    def _load(self, kb: Any) -> Any:
        paths = self.generation.LinkerPaths.from_directory(self.folder)
        names, vectorizer, index = paths.load(ef_search=EF_SEARCH)
        return self.generation.CandidateGenerator(index, vectorizer, names, kb)

    def index(self) -> Run:
        generator = self._load("no knowledge base")

        def run(mentions: list[str]) -> Any:
            vectors = generator.vectorizer.transform(mentions)
            return generator.nmslib_knn_with_zero_vectors(vectors, TOP)[0]

        return run

    def generator(self) -> Run:
        generator = self._load(self.read_kb(self.kb_path))
        return lambda mentions: generator(mentions, SCISPACY_K)

    def vectors(self, mentions: list[str]) -> tuple[Any, Any]:
        import scipy.sparse

        paths = self.generation.LinkerPaths.from_directory(self.folder)
        vectorizer = paths.get_tfidf_vectorizer()
        return vectorizer.transform(mentions), scipy.sparse.load_npz(paths.tfidf_vectors)


class ScispacyQuick(Scispacy):
    """The same with a tenth of its effort in building, for sizes where that takes many hours. Its
    graph is sparser and quicker to search (at 20,000 names twice as quick), so that it flatters
    scispaCy's rate."""

    name, ef_construction = "scispacy-quick", 200


class Bioclin:
    """A knowledge base, memory-mapped, its n-gram index and its candidate generator."""

    def __init__(self, folder: Path, size: int) -> None:
        from spacy_bioclin.linking.kb import knowledge_base as kb
        from spacy_bioclin.linking.names import ngrams, normalize

        self.ngrams, self.normalize = ngrams, normalize
        self.open = lambda: kb.KnowledgeBase.open(self.folder)
        self.names_path = names_path(folder, size)
        self.folder = folder / f"bioclin-{size}"

    def build(self) -> dict[str, Any]:
        """The whole knowledge base from its file; then the index alone once more, in memory."""
        from spacy_bioclin.linking.kb.build import build_kb
        from spacy_bioclin.linking.kb.concepts import SkipReport
        from spacy_bioclin.linking.readers import read_concepts

        clock, report = Clock(), SkipReport()
        kb = build_kb(read_concepts(self.names_path, report), self.folder, report=report)
        clock.part("knowledge base")
        total = dict(clock.parts)
        keys = list(dict.fromkeys(self.normalize.name_key(name) for name in kb.names))
        clock.part("keys")
        self.ngrams.build_arrays(keys)
        clock.part("index")
        written = {"index": self.folder.glob("ngram.*"), "all": self.folder.iterdir()}
        disk = {name: disk_mb(files) for name, files in written.items()}
        return {
            "parts": total,
            "index_alone": clock.parts["index"],
            "disk_mb": {"index": disk["index"], "concepts": round(disk["all"] - disk["index"], 1)},
            "keys": len(keys),
        }

    def index(self) -> Run:
        index = self.open().similar
        return lambda texts: index.search([self.normalize.name_key(text) for text in texts], TOP)[0]

    def generator(self) -> Run:
        from spacy_bioclin.linking.candidates import CandidateGenerator

        return CandidateGenerator(self.open(), n_candidates=SCISPACY_K, lang="en")

    def vectors(self, mentions: list[str]) -> tuple[Any, Any]:
        """Made from the keys by another library: the index takes the sum of a name's words, each
        the idf of its different trigrams."""
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.preprocessing import normalize

        def analyzer(key: str) -> list[str]:
            return [gram for word in key.split(" ") for gram in self.ngrams.word_grams(word)]

        kb, key = self.open(), self.normalize.name_key
        keys = list(dict.fromkeys(key(name) for name in kb.names))
        grams, idf = (kb.arrays[f"ngram.{name}"] for name in ("grams", "idf"))
        counter = CountVectorizer(analyzer=analyzer, vocabulary=grams.tolist(), dtype=np.float32)
        asked = [key(mention) for mention in mentions]
        queries, names = (counter.transform(texts).multiply(idf) for texts in (asked, keys))
        return normalize(queries.tocsr()), normalize(names.tocsr())


class Rapidfuzz:
    """process.extract with its default scorer over the list of names."""

    def __init__(self, folder: Path, size: int) -> None:
        from rapidfuzz import process

        self.process = process
        self.names = lambda: read_names(folder, size)

    def index(self) -> Run:
        names = self.names()
        return lambda mentions: [self.process.extract(text, names, limit=TOP) for text in mentions]


SYSTEMS: dict[str, Any] = {
    "bioclin": Bioclin,
    "scispacy": Scispacy,
    "scispacy-quick": ScispacyQuick,
    "rapidfuzz": Rapidfuzz,
}


def build(system: str, size: int, folder: Path) -> dict[str, Any]:
    found = SYSTEMS[system](folder, size).build()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**found, "peak_mb": round(peak, 1)}


def load(system: str, level: str, size: int, folder: Path) -> tuple[Result, Callable]:
    """Load a system until its first answer.

    RETURNS (tuple): What that took, and a function that times a JSON list of mentions.
    """
    start = time.perf_counter()
    ready = SYSTEMS[system](folder, size)
    imported = {"import_s": round(time.perf_counter() - start, 3), "imported_mb": memory_mb()}
    clock = Clock()
    run = getattr(ready, level)()
    run(["diabetes mellitus"])
    clock.part("load")
    loaded = {f"load_{unit}": value for unit, value in clock.parts["load"].items()}

    def measure(line: str) -> Result:
        mentions = json.loads(line)
        gc.collect()
        clock = Clock()
        run(mentions)
        clock.part("round")
        return {**clock.parts["round"], "memory_mb": memory_mb()}

    return {**imported, **loaded, "loaded_mb": memory_mb()}, measure


def exact_scores(queries: Any, vectors: Any) -> Any:
    """Compute the exact best cosines of each query, (n_queries, n_names)."""
    from sparse_dot_topn import sp_matmul_topn

    return sp_matmul_topn(queries, vectors.T.tocsr(), top_n=TOP, sort=True, n_threads=1)


def recall(system: str, size: int, folder: Path) -> dict[str, float]:
    """Measure the share of the exact top 10, by the system's own vectors, that its index answers.

    A name of the same score as the tenth is as good as it; queries without a single n-gram in
    common with any name are left out.
    """
    mentions = read_json(folder / "sample.json")
    ready = SYSTEMS[system](folder, size)
    answers = ready.index()(mentions)
    queries, vectors = ready.vectors(mentions)
    queries, vectors = queries.tocsr(), vectors.tocsr()
    exact = exact_scores(queries, vectors)
    shares, firsts = [], []
    for row, answer in enumerate(answers):
        best = exact[row].data
        best = best[best > 0]
        if not len(best):
            continue
        rows = [] if answer is None else [int(i) for i in answer if i >= 0][:TOP]
        own = (vectors[rows] @ queries[row].T).toarray().reshape(-1) if rows else np.zeros(0)
        shares.append(min((own >= best.min() - TIE).sum(), len(best)) / len(best))
        firsts.append(bool(len(own)) and own.max() >= best.max() - TIE)
    return {
        "queries": len(shares),
        "recall_at_10": round(float(np.mean(shares)), 4),
        "recall_at_1": round(float(np.mean(firsts)), 4),
    }


def main() -> None:
    what, system, size, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    os.sched_setaffinity(0, {int(os.environ.get("LINKING_CORE", "0"))})
    if what == "build":
        (folder / f"build-{system}-{size}.pid").write_text(str(os.getpid()), encoding="ascii")
        write_json(folder / f"build-{system}-{size}.json", build(system, size, folder))
    elif what == "recall":
        print(json.dumps(recall(system, size, folder)))
    else:
        name, _, level = system.partition(" ")
        serve(lambda: load(name, level, size, folder))


if __name__ == "__main__":
    main()
