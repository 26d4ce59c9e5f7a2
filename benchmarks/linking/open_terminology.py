"""Linking to the open terminology that the shipped pipelines contain (scripts/terminology.py).

    python -m benchmarks.linking.open_terminology run     # builds both, writes the results
    python -m benchmarks.linking.open_terminology draw    # prints the Spanish mentions to judge

English: gold mentions of NCBI-disease and BC5CDR. A link is right if the concept, or what it
refers to, is the gold MeSH id; so a right concept that is narrower than the guidelines' counts as
wrong, and so does a drug whose supplementary id of 2016 has become a descriptor. Abbreviations are
expanded.

Spanish: no corpus has ids of these terminologies. 75 train mentions each of DisTEMIST and
SympTEMIST, and 50 chemicals of PharmaCoNER, were drawn by seed, linked, and the links with a
probability of 0.4 or more judged by hand: "right"; "near" (a broader, narrower or neighbouring
concept); "wrong". They are in open_terminology_es.tsv, with character offsets and without text. The
names in scripts/terminology_es.tsv were written before, after reading another draw.
"""

import random
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import harness
from benchmarks.corpora import TASKS, read_annotated
from benchmarks.harness import ask_module, data_dir, make_parser, run_python, write_result
from benchmarks.linking.accuracy import N_CANDIDATES, Texts
from benchmarks.linking.data import Split, load_split
from scripts.terminology import linker_settings
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.linking.candidates import CandidateGenerator
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.linker import Link, Linker, Mention
from spacy_bioclin.linking.ranking import Ranker

WORK = harness.WORK / "open_terminology"
JUDGED = Path(__file__).with_name("open_terminology_es.tsv")
HEADER = ("corpus", "document", "start", "end", "label", "concept", "judgement")
JUDGEMENTS = ("right", "near", "wrong")
ENGLISH = {"ncbi-disease": "DISEASE", "bc5cdr-disease": "DISEASE", "bc5cdr-chemical": "DRUG"}
# Corpus -> folder, labels ("" for all), label of our pipelines, number of mentions.
SPANISH = {
    "distemist": ("distemist/train/brat", (), "DISEASE", 75),
    "symptemist": ("symptemist/train/brat", (), "SYMPTOM", 75),
    "pharmaconer": ("", ("NORMALIZABLES", "NO_NORMALIZABLES"), "DRUG", 50),
}
SEED, LOWEST = 2026, 0.4
THRESHOLDS = (0.0, 0.4, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9)


class Drawn(NamedTuple):
    """A mention of a Spanish corpus: its place, our label, and its text as it is looked up."""

    corpus: str
    document: str
    start: int
    end: int
    label: str
    text: str


def build(lang: str) -> Path:
    """Build the terminology of a language."""
    path = WORK / lang
    run_python("scripts/terminology.py", "--lang", lang, "--data", data_dir(), "-o", path)
    return path


def open_linker(path: Path, lang: str) -> Linker:
    """Open a linker with the settings of the pipelines, but without a threshold."""
    generator = CandidateGenerator(KnowledgeBase.open(path), n_candidates=N_CANDIDATES, lang=lang)
    types = linker_settings(lang)["types"]
    return Linker(generator, Ranker.untrained(), lang=lang, types=types, n_shown=1, threshold=0.0)


def probability(link: Link) -> float:
    """Get the probability of a link: of a composite mention, that of its least probable part."""
    return min((c.score for c in link.candidates), default=0.0) if link.kb_id else 0.0


def find_mesh(kb: KnowledgeBase, id: str) -> set[str]:
    """List the MeSH ids of a concept and of what it refers to, as in the corpora."""
    concept = kb.concept(id)
    ids = (concept.id, *concept.xrefs) if concept else ()
    return {id.removeprefix("MESH:") for id in ids if id.startswith("MESH:")}


def score_english(linker: Linker, corpus: str, split: str) -> dict[str, Any]:
    """Score the links of gold mentions by probability."""
    gold = load_split(corpus, split)
    texts, kb = Texts(gold), linker.generator.kb
    mentions = [Mention(texts.expand(m.doc, m.text), ENGLISH[corpus]) for m in gold.mentions]
    links = linker(mentions)
    known = {id for concept in kb.ids for id in find_mesh(kb, concept)}
    scored = []
    for mention, link in zip(gold.mentions, links, strict=True):
        found = [find_mesh(kb, id) for id in link.kb_id.split("|") if id]
        right = len(found) == len(mention.ids) > 0 and all(
            any(id in ids for ids in found) for id in mention.ids
        )
        scored.append((probability(link), right))
    n = len(scored)
    covered = sum(bool(m.ids) and known.issuperset(m.ids) for m in gold.mentions)
    return {
        "mentions": n,
        "in_terminology": round(covered / n, 4),
        "by_threshold": {str(t): _score(scored, t, n) for t in THRESHOLDS},
    }


def _score(scored: Iterable[tuple[float, bool]], threshold: float, n: int) -> dict[str, float]:
    kept = [right for score, right in scored if score > 0 and score >= threshold]
    return {
        "linked": round(len(kept) / n, 4),
        "precision": round(sum(kept) / max(len(kept), 1), 4),
        "recall": round(sum(kept) / n, 4),
    }


def draw() -> Iterator[Drawn]:
    """Draw the Spanish mentions."""
    for corpus, (folder, labels, label, n) in SPANISH.items():
        paths = [folder] if folder else TASKS[corpus].splits["train"]
        documents = read_annotated("pharmaconer", *paths)
        texts = Texts(Split({document.id: document.text for document in documents}, []))
        places = sorted(
            (document.id, min(span.fragments)[0], max(end for _, end in span.fragments))
            for document in documents
            for span in spans_of(document)
            if not labels or span.label in labels
        )
        whole = {document.id: document.text for document in documents}
        for id, start, end in random.Random(SEED).sample(places, n):
            yield Drawn(corpus, id, start, end, label, texts.expand(id, whole[id][start:end]))


def score_spanish(linker: Linker) -> dict[str, Any]:
    """Count the judgements of the links that are made now."""
    rows = [line.split("\t") for line in JUDGED.read_text("utf-8").splitlines()[1:]]
    judged = {tuple(row[:-1]): row[-1] for row in rows}
    drawn = list(draw())
    links = linker([Mention(mention.text, mention.label) for mention in drawn])
    result: dict[str, Any] = {}
    for corpus in SPANISH:
        own = [
            (link, judged.get((*map(str, mention[:5]), link.kb_id), "not judged"))
            for mention, link in zip(drawn, links, strict=True)
            if mention.corpus == corpus
        ]
        result[corpus] = {
            "mentions": len(own),
            "by_threshold": {
                str(threshold): {
                    what: sum(j == what and probability(link) >= threshold for link, j in own)
                    for what in (*JUDGEMENTS, "not judged")
                }
                for threshold in THRESHOLDS
                if threshold >= LOWEST
            },
        }
    return result


def measure(path: Path, lang: str) -> dict[str, Any]:
    """Measure size, and in a process of its own opening, memory and speed."""
    return ask_module("benchmarks.linking.open_terminology", "measure", path, lang)


def measure_here(path: Path, lang: str) -> dict[str, Any]:
    """Measure in this process, which has not opened a knowledge base yet."""
    import zipfile

    packed = path.with_suffix(".zip")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.iterdir()):
            archive.write(file, file.name)
    before, started = harness.status_mb("VmRSS"), time.perf_counter()
    linker = open_linker(path, lang)
    linker.generator.kb.arrays.check()
    opened = time.perf_counter()
    label = "SYMPTOM"
    linker([Mention("zzfirst", label)])
    first = time.perf_counter()
    kb = linker.generator.kb
    texts = [kb.names[i][1:] for i in range(0, len(kb.names), len(kb.names) // 3000)]
    linked = time.perf_counter()
    linker([Mention(text, label) for text in texts])
    done = time.perf_counter()
    return {
        "concepts": len(kb),
        "names": len(kb.names),
        "folder_mb": round(sum(file.stat().st_size for file in path.iterdir()) / 1e6, 2),
        "compressed_mb": round(packed.stat().st_size / 1e6, 2),
        "open_seconds": round(opened - started, 3),
        "first_mention_seconds": round(first - opened, 4),
        "mentions_per_second": round(len(texts) / (done - linked)),
        "memory_mb": round(harness.status_mb("VmRSS") - before, 1),
    }


def run() -> None:
    """Build both terminologies and measure everything."""
    result: dict[str, Any] = {"settings": {}, "size_and_speed": {}, "english": {}}
    paths = {lang: build(lang) for lang in ("en", "es")}
    for lang, path in paths.items():
        result["settings"][lang] = linker_settings(lang)
        result["size_and_speed"][lang] = measure(path, lang)
    linker = open_linker(paths["en"], "en")
    for corpus in ENGLISH:
        splits = {split: score_english(linker, corpus, split) for split in ("dev", "test")}
        result["english"][corpus] = splits
    result["spanish"] = score_spanish(open_linker(paths["es"], "es"))
    print(write_result("open_terminology", result))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=["run", "draw", "measure"])
    parser.add_argument("of", nargs="*", help="measure: folder and language")
    args = parser.parse_args()
    if args.what == "run":
        run()
    elif args.what == "measure":
        import json

        path, lang = args.of
        print(json.dumps(measure_here(Path(path), lang)))
    else:
        linker = open_linker(WORK / "es" if (WORK / "es").is_dir() else build("es"), "es")
        drawn = list(draw())
        links = linker([Mention(mention.text, mention.label) for mention in drawn])
        print(*HEADER[:-1], "probability", "name", "text", sep="\t")
        for mention, link in zip(drawn, links, strict=True):
            if probability(link) >= LOWEST:
                names = "|".join(dict.fromkeys(c.name for c in link.candidates))
                score = f"{probability(link):.2f}"
                print(*mention[:5], link.kb_id, score, names, mention.text, sep="\t")


if __name__ == "__main__":
    main()
