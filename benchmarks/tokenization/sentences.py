"""Sentence splitters on the SPACCC sentence corpus: ours, spaCy's sentencizer, pySBD.

    python -m benchmarks.tokenization.sentences      # corpus: $BIOCLIN_DATA or ../shared/data

A test file is one line of unsplit text, its gold file the same text with one sentence a line. A
boundary is the character offset where a sentence ends; the last one of a file is trivial and left
out. A sentence counts as found if both its offsets are exact. Blanks around sentences are ignored.
"""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pysbd
import spacy

from benchmarks.corpora import make_blank
from benchmarks.harness import data_dir, make_parser, take_turns, time_call, write_result
from spacy_bioclin.tokenization.rules import RULES
from spacy_bioclin.tokenization.sentences import sentence_starts

Span = tuple[int, int]
ROUNDS = 5


def trim(text: str, start: int, end: int) -> Span:
    inside = text[start:end]
    return start + len(inside) - len(inside.lstrip()), start + len(inside.rstrip())


def spans_from_starts(text: str, starts: list[int]) -> list[Span]:
    spans = [
        trim(text, start, end) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)
    ]
    return [(start, end) for start, end in spans if start < end]


def gold_spans(text: str, sentences: list[str]) -> list[Span]:
    """Find the gold sentences in the unsplit text; blanks may differ between the two files."""
    solid = [i for i, character in enumerate(text) if not character.isspace()]
    spans, seen = [], 0
    for sentence in sentences:
        length = len("".join(sentence.split()))
        spans.append((solid[seen], solid[seen + length - 1] + 1))
        seen += length
    return spans


def ours(text: str) -> list[Span]:
    return spans_from_starts(text, sentence_starts(text, RULES["es"]))


def make_component() -> Callable[[str], list[Span]]:
    nlp = make_blank("es", "bioclin_sentences")
    return lambda text: [trim(text, s.start_char, s.end_char) for s in nlp(text).sents]


def make_sentencizer() -> Callable[[str], list[Span]]:
    nlp = spacy.blank("es")
    nlp.add_pipe("sentencizer")
    return lambda text: [trim(text, s.start_char, s.end_char) for s in nlp(text).sents]


def make_pysbd() -> Callable[[str], list[Span]]:
    segmenter = pysbd.Segmenter(language="es", clean=False, char_span=True)
    return lambda text: [trim(text, s.start, s.end) for s in segmenter.segment(text)]


SPLITTERS: dict[str, Callable[[str], list[Span]]] = {
    "spacy-bioclin rules on text": ours,
    "spacy-bioclin tokenizer + bioclin_sentences": make_component(),
    "spaCy tokenizer + sentencizer": make_sentencizer(),
    "pySBD (es, char_span)": make_pysbd(),
}


def read_test(folder: Path) -> list[tuple[str, list[Span]]]:
    pairs = []
    for gold in sorted((folder / "gold_standard").glob("*.txt")):
        text = (folder / "test_set" / gold.name).read_text(encoding="utf-8")
        sentences = [line for line in gold.read_text(encoding="utf-8").splitlines() if line.strip()]
        pairs.append((text, gold_spans(text, sentences)))
    return pairs


def prf(found: int, predicted: int, gold: int) -> dict[str, float]:
    return {
        "precision": round(found / predicted, 4),
        "recall": round(found / gold, 4),
        "f1": round(2 * found / (predicted + gold), 4),
    }


def score(golds: list[list[Span]], predictions: list[list[Span]]) -> dict[str, Any]:
    ends = [
        ({end for _, end in gold[:-1]}, {end for _, end in predicted[:-1]})
        for gold, predicted in zip(golds, predictions, strict=True)
    ]
    whole = [(set(gold), set(pred)) for gold, pred in zip(golds, predictions, strict=True)]
    return {
        name: prf(
            sum(len(gold & predicted) for gold, predicted in pairs),
            sum(len(predicted) for _, predicted in pairs),
            sum(len(gold) for gold, _ in pairs),
        )
        for name, pairs in (("boundaries", ends), ("sentences", whole))
    }


def main() -> None:
    make_parser(__doc__).parse_args()
    pairs = read_test(data_dir() / "spaccc-sentences")
    golds = [gold for _, gold in pairs]
    table = {}
    runs = {
        name: lambda split=split: time_call(lambda: [split(text) for text, _ in pairs]).wall
        for name, split in SPLITTERS.items()
    }
    seconds = take_turns(runs, ROUNDS, title="sentences")
    predictions = {name: [split(text) for text, _ in pairs] for name, split in SPLITTERS.items()}
    for name, spans in predictions.items():
        per_second = sum(map(len, spans)) / statistics.median(seconds[name])
        table[name] = {**score(golds, spans), "sentences_per_second": round(per_second)}
        print(name, table[name])
    n_gold = sum(map(len, golds))
    result = {"corpus": "spaccc-sentences test", "files": len(pairs), "gold_sentences": n_gold}
    print(write_result("sentences", {**result, "splitters": table}))


if __name__ == "__main__":
    main()
