"""Pieces per word of vocabularies learnt from the cleaned text, beside the pretrained MiniLM's.

    RAYON_NUM_THREADS=1 python -m benchmarks.pretraining.vocabulary
    python -m benchmarks.pretraining.vocabulary --included    # learns none

Words are separated by blanks. Every vocabulary is learnt with equal shares of Spanish and
English words. Held-out text was not learnt from; much of the corpora's dev splits (never a test
split) was, so they flatter ours. A vocabulary that is learnt is kept, with its seconds, in
.work/benchmarks/vocabulary and not learnt again. --included measures the vocabularies of the
included encoders only. Text from Latin America is in latin_american.txt: 300 invented sentences
with regional words.
"""

import itertools
import os
import time
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from benchmarks.corpora import LANG, SHIPPED, SPLITS, encoder_folder, read_annotated
from benchmarks.harness import WORK, keep, make_parser, read_json, write_result
from benchmarks.pretraining import REBUILT
from spacy_bioclin.pretraining.text.corpus import find_files, read_in_shares, read_sentences
from spacy_bioclin.pretraining.vocabulary import KINDS, learn_vocabulary, pieces_per_word

SIZES = (16384, 8192, 32768, 24576)
REGIONAL = Path(__file__).with_name("latin_american.txt")


def read_regional() -> dict[str, list[str]]:
    """Read the invented sentences of each country, after the licence at the top."""
    countries: dict[str, list[str]] = {}
    for part in REGIONAL.read_text("utf-8").split("\n# ")[2:]:
        country, *sentences = part.splitlines()
        countries[country] = sentences
    return countries


def read_texts(corpus: Path) -> dict[str, list[str]]:
    """Read held-out sentences, documents of dev splits and regional sentences, by name."""
    held_out = find_files(corpus, "held-out").items()
    texts = {f"{lang}, held out": list(read_sentences(path)) for lang, path in held_out}
    for task, lang in LANG.items():
        documents = read_annotated(task, *SPLITS[task]["dev"])
        texts[f"{lang}, {task} dev"] = [document.text for document in documents]
    countries = read_regional()
    texts["es, Latin America"] = list(itertools.chain.from_iterable(countries.values()))
    return texts | {f"es, {country}": sentences for country, sentences in countries.items()}


def learn(training: list[str], kind: str, size: int) -> dict[str, Any]:
    """Learn a vocabulary, or read what was measured when it was learnt before."""
    folder = WORK / "vocabulary" / f"{kind}-{size}"

    def measure() -> dict[str, Any]:
        started = time.perf_counter()
        tokenizer = learn_vocabulary(training, size=size, kind=kind)
        seconds = round(time.perf_counter() - started, 1)
        tokenizer.save_pretrained(folder)
        return {"name": folder.name, "kind": kind, "size": len(tokenizer), "seconds": seconds}

    return keep(folder / "learnt.json", measure)


def measure(row: dict[str, Any], texts: dict[str, list[str]]) -> dict[str, Any]:
    """Replace the row's folder by pieces per word and share of unknown pieces for each text."""
    tokenizer = AutoTokenizer.from_pretrained(row.pop("folder"), trust_remote_code=False)
    counts = {name: pieces_per_word(tokenizer, text) for name, text in texts.items()}
    per_word = {name: round(count.per_word, 4) for name, count in counts.items()}
    unknown = {name: round(count.unknown, 6) for name, count in counts.items()}
    return {**row, "size": len(tokenizer), "pieces_per_word": per_word, "unknown_share": unknown}


def show(rows: list[dict[str, Any]], names: list[str]) -> None:
    print("| vocabulary | pieces | s to learn | " + " | ".join(names) + " |")
    print("|---|" + "--:|" * (len(names) + 2))
    for row in rows:
        cells = []
        for name in names:
            unknown = row["unknown_share"][name]
            cells.append(
                f"{row['pieces_per_word'][name]:.3f}" + f" ({unknown:.2%})" * (unknown > 0)
            )
        seconds = row.get("seconds", "")
        print(f"| {row['name']} | {row['size']} | {seconds} | " + " | ".join(cells) + " |")
    print("\nPieces per word; in brackets the share of unknown pieces where there are any.")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--corpus", type=Path, default=REBUILT / "clean")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--included", action="store_true", help="only those of included encoders")
    arguments = parser.parse_args()
    files = find_files(arguments.corpus, "train")
    texts = read_texts(arguments.corpus)
    vocabularies: list[dict[str, Any]] = []
    if not arguments.included:
        training = list(read_in_shares(files, {}))
        for size in arguments.sizes:
            for kind in arguments.kinds:
                print(learn(training, kind, size), flush=True)
        # Those of earlier calls too.
        known = (WORK / "vocabulary").glob("*/learnt.json")
        vocabularies = [{**read_json(path), "folder": path.parent} for path in known]
        vocabularies.sort(key=lambda row: (KINDS.index(row["kind"]), row["size"]))
    included = sorted(SHIPPED.parent.iterdir())
    vocabularies += [{"name": path.name, "folder": path} for path in included]
    vocabularies.append({"name": "MiniLM", "folder": encoder_folder("minilm", "", Path())})
    rows = [measure(row, texts) for row in vocabularies]
    n_words = {
        "learnt from, once": {
            lang: sum(len(sentence.split()) for sentence in read_sentences(path))
            for lang, path in files.items()
        },
        "measured on": {name: sum(len(t.split()) for t in text) for name, text in texts.items()},
    }
    threads = os.environ.get("RAYON_NUM_THREADS", "all")
    result = {"threads": threads, "words": n_words, "vocabularies": rows}
    name = "vocabulary_included" if arguments.included else "vocabulary"
    print(write_result(name, result))
    show(rows, list(texts))


if __name__ == "__main__":
    main()
