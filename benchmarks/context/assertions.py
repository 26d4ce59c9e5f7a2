"""Assertion of given mentions, beside medspaCy and negspacy: English sets, Spanish NUBes.

    python -m benchmarks.context.assertions --peers PYTHON               # NUBes sample 009
    python -m benchmarks.context.assertions --peers PYTHON --sets FOLDER # your own sentences too
    python -m benchmarks.context.assertions --peers PYTHON --split test  # once

PYTHON is the interpreter of an environment with `pip install negspacy medspacy` (where QuickUMLS
cannot be built, `--no-deps medspacy` and PyRuSH with what it imports). Every system is told the
gold mentions and judges their attributes, as benchmarks/context/systems.py says. negspacy knows
negation only. medspaCy has no Spanish rules. "negspacy, default terms" is what a Spanish pipeline
gets without settings: English terms.

English: sets/assertions_en.jsonl and sets/traps_en.jsonl. Spanish: the entities of NUBes, negated
or uncertain if a gold scope of the kind covers them. NUBes annotates no others, so that "every
mention is negated" would score well; therefore every tenth long word outside of all gold cues and
scopes is a mention without attribute. The same guess is scored as "all negated". The sets, sample
010 and IULA+ are read with `--split test` only.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.context.nubes import KINDS, SPLITS, read_gold
from benchmarks.context.systems import ATTRIBUTES, MAKERS, start_worker
from benchmarks.context.texts import SETS, find_targets, read_set
from benchmarks.harness import Worker, data_dir, make_parser, report
from spacy_bioclin.evaluation.spans import Counts

KNOWN = {"negspacy": ("negated",), "negspacy, default terms": ("negated",)}


class Case(NamedTuple):
    """A text and its mentions, each with its attributes."""

    text: str
    mentions: list[tuple[int, int]]
    gold: list[set[str]]


def read_cases(path: Path) -> list[Case]:
    """Read an annotated set."""
    cases = []
    for text, sent in read_set(path):
        places = [(mention["start"], mention["end"]) for mention in sent["mentions"]]
        gold = [mention.keys() & set(ATTRIBUTES) for mention in sent["mentions"]]
        cases.append(Case(text, places, gold))
    return cases


def read_nubes(folder: str) -> list[Case]:
    """Read the entities of a folder of NUBes, and words outside of cues and scopes."""
    cases = []
    for gold in read_gold(data_dir() / "nubes" / folder):
        known = gold.cues | gold.scopes
        flags = dict(gold.ents)
        for start, end in find_targets(gold.text):
            if all(end <= a or b <= start for a, b, _ in known):
                flags.setdefault((start, end), set())
        cases.append(Case(gold.text, list(flags), list(flags.values())))
    return cases


def ask(worker: Worker, cases: Iterable[Case]) -> list[list[set[str]]]:
    """Ask a system for the attributes of each mention."""
    found = []
    for case in cases:
        answer: Any = worker.ask(json.dumps({"text": case.text, "mentions": case.mentions}))
        if len(answer) != len(case.mentions):
            raise SystemExit(f"{worker.log}: {len(answer)} of {len(case.mentions)} mentions")
        found.append([set(names) for names in answer])
    return found


def score(
    cases: list[Case], found: list[list[set[str]]], attributes: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Score the mentions by attribute."""
    scores = {}
    for name in attributes:
        gold, predicted = (
            {(i, j) for i, flags in enumerate(side) for j, each in enumerate(flags) if name in each}
            for side in ([case.gold for case in cases], found)
        )
        counts = Counts.of_sets(gold, predicted)
        scores[name] = {**counts.prf(), "n_gold": len(gold), "n_found": len(predicted)}
    return scores


def measure(lang: str, sets: Mapping[str, list[Case]], peers: str) -> dict[str, Any]:
    """Score every system on every set, and on all together."""
    kinds = ATTRIBUTES if lang == "en" else KINDS
    systems: dict[str, Any] = {}
    for system in MAKERS[lang]:
        with start_worker("assertions", system, lang, peers) as worker:
            versions = worker.read()
            found = {name: ask(worker, cases) for name, cases in sets.items()}
        known = KNOWN.get(system, kinds)
        scores = {name: score(cases, found[name], known) for name, cases in sets.items()}
        if len(sets) > 1:
            every = [case for cases in sets.values() for case in cases]
            answers = [each for name in sets for each in found[name]]
            scores["together"] = score(every, answers, known)
        systems[system] = {"versions": versions, **scores}
    systems["all negated"] = {
        name: score(cases, [[{"negated"} for _ in case.mentions] for case in cases], ("negated",))
        for name, cases in sets.items()
    }
    sizes = {
        name: {
            "texts": len(cases),
            "mentions": sum(len(case.mentions) for case in cases),
            "without attribute": sum(not flags for case in cases for flags in case.gold),
        }
        for name, cases in sets.items()
    }
    return {"sets": sizes, "systems": systems}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--peers", default=sys.executable, help="Python of the other systems")
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--sets", type=Path, help="folder of *_en.jsonl in place of our sets")
    args = parser.parse_args()
    folder = args.sets or (SETS if args.split == "test" else None)
    result: dict[str, Any] = {"about": "precision, recall and F1 over given mentions"}
    if folder:
        names = ("assertions_en", "traps_en")
        sets = {name: read_cases(folder / f"{name}.jsonl") for name in names}
        result["en"] = measure("en", sets, args.peers)
    nubes = {folder: read_nubes(folder) for folder in SPLITS[args.split]}
    result["es"] = measure("es", nubes, args.peers)
    if args.sets:
        print(json.dumps(result, indent=2))
    else:
        report("context_assertions" + ("" if args.split == "test" else "_dev"), result)


if __name__ == "__main__":
    main()
