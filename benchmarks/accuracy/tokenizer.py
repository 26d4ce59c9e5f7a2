"""Gold spans that no token sequence can represent, and words/s: spaCy's blank tokenizer and ours.

python -m benchmarks.accuracy.tokenizer      # corpora: $BIOCLIN_DATA or ../shared/data
"""

import statistics
import time
from pathlib import Path
from typing import Any

import spacy
from spacy.tokenizer import Tokenizer

from benchmarks.harness import data_dir, write_result
from spacy_bioclin.corpora.brat import read_brat
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.pubtator import read_pubtator
from spacy_bioclin.types import AnnotatedText

OURS = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
CONFIGS: dict[str, dict[str, Any]] = {"blank": {}, "ours": OURS}
ROUNDS = 7

CORPORA = {
    ("meddocan", "es"): {split: f"meddocan/{split}/brat" for split in ("train", "dev", "test")},
    ("pharmaconer", "es"): {s: f"pharmaconer/{s}/brat" for s in ("train", "dev", "test")},
    ("cantemist", "es"): {s: f"cantemist/{s}/norm" for s in ("train", "dev1", "dev2", "test")},
    ("bc5cdr", "en"): {
        "train": "bc5cdr/pubtator/CDR_TrainingSet.PubTator.txt",
        "dev": "bc5cdr/pubtator/CDR_DevelopmentSet.PubTator.txt",
        "test": "bc5cdr/pubtator/CDR_TestSet.PubTator.txt",
    },
    ("ncbi-disease", "en"): {
        "train": "ncbi-disease/original/NCBItrainset_corpus.txt",
        "dev": "ncbi-disease/original/NCBIdevelopset_corpus.txt",
        "test": "ncbi-disease/original/NCBItestset_corpus.txt",
    },
}


def read(path: Path) -> list[AnnotatedText]:
    if path.is_dir():
        return [document for ann in sorted(path.glob("*.ann")) for document in read_brat(ann)]
    return read_pubtator(path)


def make_tokenizer(lang: str, name: str) -> Tokenizer:
    return spacy.blank(lang, config=CONFIGS[name]).tokenizer


def count_misaligned(tokenizer: Tokenizer, documents: list[AnnotatedText]) -> tuple[int, int]:
    """RETURNS (tuple[int, int]): Gold spans, and those with a boundary inside a token."""
    n_spans = n_misaligned = 0
    for document in documents:
        doc = tokenizer(document.text)
        starts, ends = {token.idx for token in doc}, {token.idx + len(token) for token in doc}
        for span in spans_of(document):
            n_spans += 1
            start, end = span.fragments[0][0], span.fragments[-1][1]
            n_misaligned += start not in starts or end not in ends
    return n_spans, n_misaligned


def is_between_letters(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalpha() and text[at].isalpha()


def count_between_letters(documents: list[AnnotatedText]) -> int:
    """Gold spans that begin or end between two letters: slips, or words typed together."""
    n_spans = 0
    for document in documents:
        for span in spans_of(document):
            edges = (span.fragments[0][0], span.fragments[-1][1])
            n_spans += any(is_between_letters(document.text, at) for at in edges)
    return n_spans


def words_per_second(lang: str, texts: list[str]) -> dict[str, Any]:
    """Alternating rounds over the same texts, each with a fresh tokenizer (empty cache)."""
    n_words = sum(len(text.split()) for text in texts)
    speeds: dict[str, list[float]] = {name: [] for name in CONFIGS}
    for _ in range(ROUNDS):
        for name in CONFIGS:
            tokenizer = make_tokenizer(lang, name)
            began = time.perf_counter()
            for text in texts:
                tokenizer(text)
            speeds[name].append(n_words / (time.perf_counter() - began))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    return {
        "words": n_words,
        "words_per_second": {name: [round(value) for value in speeds[name]] for name in speeds},
        "median": {name: round(value) for name, value in medians.items()},
        "ratio": round(medians["ours"] / medians["blank"], 2),
    }


def main() -> None:
    misaligned, speed = [], {}
    for (corpus, lang), splits in CORPORA.items():
        texts: list[str] = []
        for split, path in splits.items():
            documents = read(data_dir() / path)
            row: dict[str, Any] = {"corpus": corpus, "split": split}
            for name in CONFIGS:
                row["spans"], row[name] = count_misaligned(make_tokenizer(lang, name), documents)
            row["between_letters"] = count_between_letters(documents)
            row["ours_percent"] = round(100 * row["ours"] / row["spans"], 4)
            misaligned.append(row)
            texts += [document.text for document in documents]
            print(row)
        speed[corpus] = words_per_second(lang, texts)
        print(corpus, speed[corpus]["median"], speed[corpus]["ratio"])
    print(write_result("tokenizer", {"misaligned_spans": misaligned, "speed": speed}))


if __name__ == "__main__":
    main()
