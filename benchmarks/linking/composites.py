"""Composite names and abbreviations against their gold, beside scispaCy's AbbreviationDetector.

python -m benchmarks.linking.composites  # reads train and dev only

scispaCy is measured where it is installed: pip install --no-deps scispacy==0.6.2

Gold of the abbreviations is abbreviations_gold.tsv: 30 texts of each corpus, drawn by chance, read
by the hand that wrote the rules and with their output in sight. A definition counts if a bracket
holds it, also where the letters do not follow from the words.
"""

import re
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import spacy

from benchmarks.corpora import SPLITS, read_annotated
from benchmarks.harness import make_parser, median_cpu_seconds, write_result
from spacy_bioclin.corpora.pubtator import PARTS
from spacy_bioclin.linking.names.composites import split_composite
from spacy_bioclin.tokenization.defined_abbreviations import find_abbreviations
from spacy_bioclin.types import AnnotatedText, NoteAnnotation, SpanAnnotation

ROUNDS = 5
COORDINATED = re.compile(r"\b(?:and|or)\b|/|, ")
COORDINATED_SPANISH = re.compile(r"\s(?:y|e|o|u|ni)\s|/")
GOLD = Path(__file__).with_name("abbreviations_gold.tsv")
N_CHARACTERS = 100_000
ADVERSARIAL = {
    "opening brackets": "(",
    "letters": "a",
    "short forms": "(AB) ",
    "short forms, words": "a b (AB)",
    "long forms": "VI (virus imp) ",
    "conjunctions": "a and ",
    "slashes": "abc/",
}
Definitions = set[tuple[str, str]]


def read_train_dev(task: str) -> list[AnnotatedText]:
    """Read the train and dev splits of a corpus."""
    return read_annotated(task, *SPLITS[task]["train"], *SPLITS[task]["dev"])


def spans(documents: list[AnnotatedText]) -> list[SpanAnnotation]:
    return [a for document in documents for a in document.annotations if hasattr(a, "surface")]


def seconds(function: Callable[[], Any]) -> float:
    """Find the median processor time."""
    return median_cpu_seconds(function, ROUNDS)


def share(n: int, of: int) -> dict[str, float]:
    return {"n": n, "of": of, "share": round(n / of, 4) if of else 0.0}


def measure_ncbi() -> dict[str, Any]:
    """Parts against ids. Of the other mentions, those with several ids are composites as well."""
    mentions = spans(read_train_dev("ncbi-disease"))
    composites = [m for m in mentions if m.label == "CompositeMention"]
    several = [m for m in composites if len(m.concept_ids) > 1]
    singles = [m for m in mentions if m.label != "CompositeMention"]
    one = [m for m in singles if len(m.concept_ids) == 1]

    def n_parts(mention: SpanAnnotation) -> int:
        return len(split_composite(mention.surface, "en"))

    return {
        "composites_split": share(sum(n_parts(m) > 1 for m in composites), len(composites)),
        "composites_with_several_ids_as_many_parts": share(
            sum(n_parts(m) == len(m.concept_ids) for m in several), len(several)
        ),
        "others_split": share(sum(n_parts(m) > 1 for m in singles), len(singles)),
        "others_with_one_id_split": share(sum(n_parts(m) > 1 for m in one), len(one)),
    }


def measure_bc5cdr() -> dict[str, Any]:
    """Exact parts, as the column IndividualMentions has them."""
    documents = read_train_dev("bc5cdr")
    counts: Counter[str] = Counter()
    for document in documents:
        parts = {
            note.target: tuple(note.text.split("|"))
            for note in document.annotations
            if isinstance(note, NoteAnnotation) and note.kind == PARTS and note.text
        }
        for mention in spans([document]):
            found = split_composite(mention.surface, "en")
            gold = parts.get(mention.id, ())
            if len(gold) < 2:
                counts["single"] += 1
                counts["single split"] += len(found) > 1
            elif COORDINATED.search(mention.surface):
                counts["composite"] += 1
                counts["composite exact"] += found == gold
                counts["parts"] += len(gold)
                counts["parts found"] += len(set(gold) & set(found))
                counts["parts made"] += len(found) if len(found) > 1 else 0
            else:
                counts["not coordinated"] += 1
                counts["not coordinated split"] += len(found) > 1
    return {
        "coordinated_exact": share(counts["composite exact"], counts["composite"]),
        "coordinated_parts_recall": share(counts["parts found"], counts["parts"]),
        "coordinated_parts_precision": share(counts["parts found"], counts["parts made"]),
        "parts_without_coordination_split": share(
            counts["not coordinated split"], counts["not coordinated"]
        ),
        "single_split": share(counts["single split"], counts["single"]),
    }


def measure_cantemist(documents: list[AnnotatedText]) -> dict[str, Any]:
    """Every mention has one code: what is split is a composite of one code, or split in vain."""
    surfaces = [span.surface for span in spans(documents)]
    coordinated = [text for text in surfaces if COORDINATED_SPANISH.search(text)]
    n_split = sum(len(split_composite(text, "es")) > 1 for text in surfaces)
    return {
        "mentions_with_a_coordinator": share(len(coordinated), len(surfaces)),
        "mentions_split": share(n_split, len(surfaces)),
    }


def measure_split_speed(surfaces: list[str], lang: str) -> dict[str, float]:
    """Microseconds for a mention, by whether it is split."""
    split_composite("a / b", lang)
    groups: dict[str, list[str]] = {"whole": [], "split": []}
    for text in surfaces:
        groups["split" if len(split_composite(text, lang)) > 1 else "whole"].append(text)
    return {
        name: round(
            seconds(lambda t=texts: [split_composite(x, lang) for x in t]) / len(texts) * 1e6, 1
        )
        for name, texts in groups.items()
    }


def our_definitions(text: str) -> Definitions:
    return {
        (text[slice(*found.short)], text[slice(*found.long)]) for found in find_abbreviations(text)
    }


def make_scispacy(lang: str) -> Callable[[str], Definitions] | None:
    """Their component behind a blank tokenizer of the language; none where it is not installed."""
    try:
        import scispacy.abbreviation  # noqa: F401
    except ImportError:
        return None
    nlp = spacy.blank(lang)
    nlp.add_pipe("abbreviation_detector")
    return lambda text: {(s.text, s._.long_form.text) for s in nlp(text)._.abbreviations}


def scores(gold: dict[str, Definitions], find: dict[str, Definitions]) -> dict[str, Any]:
    n_right = sum(len(gold[id] & find[id]) for id in gold)
    n_found, n_gold = sum(map(len, find.values())), sum(map(len, gold.values()))
    return {"precision": share(n_right, n_found), "recall": share(n_right, n_gold)}


def read_gold(documents: dict[str, AnnotatedText]) -> dict[str, Definitions]:
    """Offsets become texts: a definition that is repeated counts once."""
    gold = {}
    for line in GOLD.read_text(encoding="utf-8").splitlines():
        id, _, pairs = line.partition("\t")
        if id in documents:
            text = documents[id].text
            offsets = [tuple(map(int, re.findall(r"\d+", pair))) for pair in pairs.split()]
            gold[id] = {(text[a:b], text[c:d]) for a, b, c, d in offsets}
    return gold


def measure_abbreviations(documents: list[AnnotatedText], lang: str) -> dict[str, Any]:
    """Definitions of a whole corpus, speed, and scores on the texts that have gold."""
    by_id = {document.id: document for document in documents}
    texts = [document.text for document in documents]
    n_bytes = sum(len(text.encode("utf-8")) for text in texts)
    gold = read_gold(by_id)
    systems = {"spacy-bioclin": our_definitions}
    theirs = make_scispacy(lang)
    if theirs:
        systems["scispacy"] = theirs
    result: dict[str, Any] = {"texts": len(texts), "bytes": n_bytes, "gold_texts": len(gold)}
    found = {name: [find(text) for text in texts] for name, find in systems.items()}
    for name, find in systems.items():
        took = seconds(lambda f=find: [f(text) for text in texts])
        result[name] = {
            "definitions": sum(map(len, found[name])),
            "megabytes_per_second": round(n_bytes / took / 1e6, 3),
            **scores(gold, {id: find(by_id[id].text) for id in gold}),
        }
    if theirs:
        tokenizer = spacy.blank(lang).make_doc
        took = seconds(lambda: [tokenizer(text) for text in texts])
        result["scispacy"]["its_tokenizer_megabytes_per_second"] = round(n_bytes / took / 1e6, 3)
        pairs = zip(found["spacy-bioclin"], found["scispacy"], strict=True)
        result["in_both"] = sum(len(ours & other) for ours, other in pairs)
    return result


def measure_adversarial() -> dict[str, dict[str, float]]:
    """Seconds for 100,000 characters."""
    found = {}
    for name, piece in ADVERSARIAL.items():
        text = (piece * (N_CHARACTERS // len(piece) + 1))[:N_CHARACTERS]
        found[name] = {
            "abbreviations": round(seconds(lambda t=text: find_abbreviations(t)), 4),
            "composites": round(seconds(lambda t=text: split_composite(t, "en")), 6),
        }
    return found


def main() -> None:
    make_parser(__doc__).parse_args()
    bc5cdr = read_annotated("bc5cdr", *SPLITS["bc5cdr"]["train"])
    cantemist = read_annotated("cantemist", "cantemist/train/norm")
    result: dict[str, Any] = {
        "what": "processor time of one core, median of rounds; rules were chosen on these texts",
        "composites": {
            "ncbi_train_dev": measure_ncbi(),
            "bc5cdr_train_dev": measure_bc5cdr(),
            "cantemist_train": measure_cantemist(cantemist),
            "microseconds": {
                "en": measure_split_speed([s.surface for s in spans(bc5cdr)], "en"),
                "es": measure_split_speed([s.surface for s in spans(cantemist)], "es"),
            },
        },
        "abbreviations": {
            "bc5cdr_train": measure_abbreviations(bc5cdr, "en"),
            "cantemist_train": measure_abbreviations(cantemist, "es"),
        },
        "adversarial": {"characters": N_CHARACTERS, "seconds": measure_adversarial()},
    }
    try:
        result["scispacy"] = version("scispacy")
    except ImportError:
        result["scispacy"] = "not installed"
    print(write_result("composites", result))


if __name__ == "__main__":
    main()
