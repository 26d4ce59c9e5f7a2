"""What is found as PHI in published case reports, notes without headers: spans a thousand words.

    python -m benchmarks.deid.false_alarms --split dev
    python -m benchmarks.deid.false_alarms --split test --pipeline packages/es_deid

Nobody has annotated PHI in CANTEMIST, and many of its notes do hold dates, ages and places: what is
counted there is what was found, true or not. PharmaCoNER's cases are MEDDOCAN's as well: in lines
and sentences that both have alike, gold PHI of MEDDOCAN (train and dev; its test split is not read)
tells true spans from false alarms. Results hold counts only, no text.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import spacy

from benchmarks.harness import data_dir, make_parser, write_result
from spacy_bioclin.corpora.brat import read_brat_file
from spacy_bioclin.deid.labels import type_of
from spacy_bioclin.deid.spans import PhiSpan
from spacy_bioclin.types import SpanAnnotation

Finder = Callable[[str], list[PhiSpan]]
THRESHOLD = 0.5
FOLDERS = {
    "dev": {"pharmaconer": "pharmaconer/dev/brat", "cantemist": "cantemist/dev1/norm"},
    "test": {"pharmaconer": "pharmaconer/test/brat", "cantemist": "cantemist/test/norm"},
}
MEDDOCAN_SPLITS = ("train", "dev")  # never test
COUNTED = {
    "found": "spans of confidence 0.5 or more, true or not",
    "words": "stretches without white space",
    "compared_words": "words in lines and sentences that MEDDOCAN (train or dev) has alike, once",
    "true": "spans there that overlap gold PHI of MEDDOCAN, of any label",
    "false": "the other spans there; some are PHI that its annotators passed over",
    "gold": "gold spans of MEDDOCAN there",
}


def read_notes(folder: str) -> dict[str, str]:
    """Read the texts of notes by name."""
    paths = sorted((data_dir() / folder).glob("*.txt"))
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


def find_shared(text: str, other: str) -> Iterator[tuple[int, int, int]]:
    """Find the lines, or else the sentences, of a text that stand once in another one.

    YIELDS (tuple[int, int, int]): Start and end in the text, start in the other.
    """
    for line in re.finditer(r"[^\n]*\S[^\n]*", text):
        pieces = [line.span()]
        if other.count(line[0]) != 1:
            sentences = re.finditer(r"\S.*?(?:\.(?= )|$)", line[0])
            pieces = [(line.start() + one.start(), line.start() + one.end()) for one in sentences]
        for start, end in pieces:
            if other.count(text[start:end]) == 1:
                yield start, end, other.index(text[start:end])


def read_gold() -> dict[str, tuple[str, list[tuple[int, int]]]]:
    """Read text and gold spans of each case of MEDDOCAN (train and dev)."""
    with (data_dir() / "spaccc-case-splits.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    gold = {}
    for row in rows:
        if row["meddocan_split"] in MEDDOCAN_SPLITS:
            folder = data_dir() / "meddocan" / row["meddocan_split"] / "brat"
            txt = folder / f"{row['case_id']}.txt"
            note = read_brat_file(txt, txt.with_suffix(".ann"))
            spans = [one for one in note.annotations if isinstance(one, SpanAnnotation)]
            gold[row["case_id"]] = note.text, [one.fragments[0] for one in spans]
    return gold


def compare(text: str, found: list[PhiSpan], other: str, gold: list[tuple[int, int]]) -> Counter:
    """Tell true spans from false alarms where a note shares its text with an annotated one.

    RETURNS (Counter): "words" and "gold" compared, and ("true" or "false", PHI type, detector).
    """
    counts: Counter = Counter()
    for start, end, other_start in find_shared(text, other):
        shift = start - other_start
        there = [
            (a + shift, b + shift) for a, b in gold if other_start <= a < other_start + end - start
        ]
        counts["words"] += len(text[start:end].split())
        counts["gold"] += len(there)
        for one in found:
            if start <= one.start < end:
                true = any(one.start < b and a < one.end for a, b in there)
                counts["true" if true else "false", one.label, one.detector] += 1
    return counts


def _by_type(counts: Counter, verdict: str) -> dict[str, dict[str, int]]:
    """Count spans by PHI type and detector, the most frequent first."""
    types: dict[str, dict[str, int]] = {}
    for key, number in counts.most_common():
        if isinstance(key, tuple) and key[0] == verdict:
            types.setdefault(key[1], {})[key[2]] = number
    return types


def count_corpus(notes: dict[str, str], find: Finder, gold: dict | None) -> dict[str, Any]:
    """Count the spans found in a corpus, in total and per thousand words."""
    counts: Counter = Counter()
    compared: Counter = Counter()
    for name, text in notes.items():
        found = [one for one in find(text) if one.confidence >= THRESHOLD]
        counts["words"] += len(text.split())
        counts.update(("found", one.label, one.detector) for one in found)
        if gold and name in gold:
            compared["notes"] += 1
            compared += compare(text, found, *gold[name])
    found_in_all = sum(n for key, n in counts.items() if isinstance(key, tuple))
    result = {
        "notes": len(notes),
        "words": counts["words"],
        "found": found_in_all,
        "found_per_1000_words": round(1000 * found_in_all / counts["words"], 3),
        "found_by_type": _by_type(counts, "found"),
    }
    if gold:
        true, false = (
            sum(n for key, n in compared.items() if isinstance(key, tuple) and key[0] == verdict)
            for verdict in ("true", "false")
        )
        result["with_gold"] = {
            "notes": compared["notes"],
            "compared_words": compared["words"],
            "gold": compared["gold"],
            "true": true,
            "false": false,
            "false_per_1000_words": round(1000 * false / compared["words"], 3),
            "false_by_type": _by_type(compared, "false"),
            "true_by_type": _by_type(compared, "true"),
        }
    return result


def load_rules_finder() -> Finder:
    from spacy_bioclin.deid.detect.rules import load_rules

    return load_rules("es").find


def load_pipeline_finder(folder: Path) -> Finder:
    """Load a pipeline that writes doc.spans["phi"]; labels become PHI types."""
    nlp = spacy.load(folder)

    def find(text: str) -> list[PhiSpan]:
        group = nlp(text).spans.get("phi", [])
        scores = getattr(group, "attrs", {}).get("scores", [1.0] * len(group))
        return [
            PhiSpan(
                one.start_char,
                one.end_char,
                type_of(one.label_) or one.label_,
                float(p),
                one.id_ or "ner",
            )
            for one, p in zip(group, scores, strict=True)
        ]

    return find


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--pipeline", type=Path, help="folder of a pipeline with doc.spans['phi']")
    arguments = parser.parse_args()
    finders = {"rules": load_rules_finder()}
    if arguments.pipeline:
        finders["pipeline"] = load_pipeline_finder(arguments.pipeline)
    gold = read_gold()
    result: dict[str, Any] = {"split": arguments.split, "counted": COUNTED}
    for name, find in finders.items():
        result[name] = {
            corpus: count_corpus(
                read_notes(folder), find, gold if corpus == "pharmaconer" else None
            )
            for corpus, folder in FOLDERS[arguments.split].items()
        }
        for corpus, counts in result[name].items():
            print(name, corpus, counts["found_per_1000_words"], counts["found_by_type"])
            print("  with gold:", counts.get("with_gold"))
    print(write_result(f"phi_false_alarms_{arguments.split}", result))


if __name__ == "__main__":
    main()
