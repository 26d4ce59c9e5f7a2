"""Gold spans that no token sequence can represent, and words/s: spaCy's blank tokenizer and ours.

python -m benchmarks.tokenization.tokenizer      # corpora: $BIOCLIN_DATA or ../shared/data
python -m benchmarks.tokenization.tokenizer --french    # only quaero, without speed
"""

import statistics
from typing import Any

import spacy
from spacy.tokenizer import Tokenizer

from benchmarks.corpora import OURS, TASKS, read_annotated
from benchmarks.harness import data_dir, make_parser, take_turns, time_call, write_result
from spacy_bioclin.catalog.tasks import load_tasks
from spacy_bioclin.corpora.convert import read_corpus
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.types import AnnotatedText

CONFIGS: dict[str, dict[str, Any]] = {"blank": {}, "ours": OURS}
ROUNDS = 7


def splits_of(corpus: str) -> dict[str, list[str]]:
    """List the files of each split; CANTEMIST's two dev sets are counted apart."""
    splits = dict(TASKS[corpus].splits)
    if corpus == "cantemist":
        splits = {s: [f"cantemist/{s}/norm"] for s in ("train", "dev1", "dev2", "test")}
    return splits


def make_tokenizer(lang: str, name: str) -> Tokenizer:
    return spacy.blank(lang, config=CONFIGS[name]).tokenizer


def count_misaligned(tokenizer: Tokenizer, documents: list[AnnotatedText]) -> tuple[int, int]:
    """Count gold spans, and those with a boundary inside a token."""
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
    """Count gold spans that begin or end between two letters: slips, or words typed together."""
    n_spans = 0
    for document in documents:
        for span in spans_of(document):
            edges = (span.fragments[0][0], span.fragments[-1][1])
            n_spans += any(is_between_letters(document.text, at) for at in edges)
    return n_spans


def words_per_second(lang: str, texts: list[str]) -> dict[str, Any]:
    """Measure words/s in alternating rounds, each with a fresh tokenizer (empty cache)."""
    n_words = sum(len(text.split()) for text in texts)

    def measure(name: str) -> float:
        tokenizer = make_tokenizer(lang, name)
        return n_words / time_call(lambda: [tokenizer(text) for text in texts]).wall

    speeds = take_turns({name: lambda n=name: measure(n) for name in CONFIGS}, ROUNDS)
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    return {
        "words": n_words,
        "words_per_second": {name: [round(value) for value in speeds[name]] for name in speeds},
        "median": {name: round(value) for name, value in medians.items()},
        "ratio": round(medians["ours"] / medians["blank"], 2),
    }


def measure_french() -> list[dict[str, Any]]:
    """Count the gold spans of each part of quaero, and those with a boundary inside a token.

    RETURNS (list[dict[str, Any]]): A row for each part. "slips" are those of "ours" that begin with
        a blank or have a boundary between two letters.
    """
    task, rows = load_tasks()["quaero"], []
    for split, paths in task.splits.items():
        for path in paths:
            documents = list(read_corpus(task.format, [data_dir() / path]))
            row: dict[str, Any] = {"split": split, "part": path.rpartition("/")[2]}
            for name in CONFIGS:
                row["spans"], row[name] = count_misaligned(make_tokenizer("fr", name), documents)
            row["slips"] = count_between_letters(documents) + sum(
                document.text[span.fragments[0][0]].isspace()
                for document in documents
                for span in spans_of(document)
            )
            rows.append(row)
            print(row)
    return rows


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--french", action="store_true")
    if parser.parse_args().french:
        print(write_result("tokenizer_french", {"misaligned_spans": measure_french()}))
        return
    misaligned, speed = [], {}
    for corpus, task in TASKS.items():
        lang, texts = task.lang, []
        for split, paths in splits_of(corpus).items():
            documents = read_annotated(corpus, *paths)
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
