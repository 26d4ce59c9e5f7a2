"""Measurements on the annotated sentences: F1, values and units; words/s; growth. Orders of drugs.

    python -m benchmarks.context.measurements              # $BIOCLIN_DATA or ../shared/data
    python -m benchmarks.context.measurements --speed      # without reading the annotated sets
    python -m benchmarks.context.measurements --orders dev --show

A measurement is found if its characters are exactly those of the annotation; its kind, value and
unit are then compared. Numbers may differ by 1 %, since annotators round. The sets are read once,
when the rules are finished. Writes benchmarks/results/context_measurements.json.

sets/orders_es.jsonl and orders_en.jsonl are orders of our own with the drugs marked, by kind. Of
three of a kind the last is test, which is read once. A field is right if `ent._.medication` has
what the annotation has; fields that are empty in both do not count. With --orders only they are
read, and written to benchmarks/results/context_orders.json.
"""

import json
import time
from collections import Counter
from typing import Any

from spacy.tokens import Doc

from benchmarks.context.texts import SETS, read_lines, read_set
from benchmarks.corpora import make_blank
from benchmarks.harness import RESULTS, make_parser, read_json, report
from spacy_bioclin.context.measurements.measurement import Measurement
from spacy_bioclin.context.measurements.rules.find import find_measurements

LANGS = ("es", "en")
MEASURED = ("dose", "amount", "frequency", "duration")
FIELDS = (*MEASURED, "form", "route", "when", "as_needed", "reason", "taper", "status", "action")
TOLERANCE = 0.01
SPEED_FILES = {
    "es": ["es/nubes_samples_001-009.txt.xz", "es/spaccc.txt.xz"],
    "en": ["en/clinical_notes_and_dialogues.txt.xz", "en/e3c_case_reports.txt.xz"],
}
N_LINES = 500  # of each file
HOSTILE = ["7", "1/", "mg ", ", ", "1, ", "1-", "cada ", "Hb 1 "]
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def same_number(one: Any, other: Any) -> bool:
    """Compare two values; of numbers a hundredth may differ."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_number, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= TOLERANCE * max(abs(one), abs(other))
    return bool(one == other)


def compare(gold: dict[str, Any], found: Measurement) -> dict[str, bool]:
    """Compare an annotation with the measurement of the same characters."""
    value = same_number(gold.get("value"), found.value)
    unit = gold.get("unit") == found.unit
    return {
        "kind": gold["kind"] == found.kind,
        "value": value,
        "unit": unit,
        "value_and_unit": value and unit,
        "high": same_number(gold.get("high"), found.high),
        "comparator": gold.get("comparator") == found.comparator,
    }


def score(lang: str, show: bool) -> dict[str, Any]:
    """Score the sentences of a set.

    show (bool): Print what is missed, spurious or different, for the person who annotated it.
    """
    sents = list(read_set(SETS / f"measurements_{lang}.jsonl"))
    counts: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    for text, sent in sents:
        gold = {(each["start"], each["end"]): each for each in sent["measurements"]}
        found = {(one.start_char, one.end_char): one for one in find_measurements(text, lang)}
        counts.update(gold=len(gold), predicted=len(found), exact=len(gold.keys() & found.keys()))
        overlapping = [at for at in gold if any(a < at[1] and at[0] < b for a, b in found)]
        counts.update(overlapping=len(overlapping))
        for at, each in gold.items():
            kinds.setdefault(each["kind"], Counter()).update(gold=1, exact=at in found)
        for at in gold.keys() & found.keys():
            checks = compare(gold[at], found[at])
            counts.update({name: int(right) for name, right in checks.items()})
            counts.update(exact_and_kind=int(checks["kind"]))
            if show and not all(checks.values()):
                print(lang, "differs", gold[at], tuple(found[at]), text[at[0] : at[1]])
        if show:
            for at in gold.keys() ^ found.keys():
                what = "missed" if at in gold else "spurious"
                print(lang, what, text[at[0] : at[1]], "|", gold.get(at) or tuple(found[at])[:5])
    n_exact = max(counts["exact"], 1)
    right = ("kind", "value", "unit", "value_and_unit", "high", "comparator")
    return {
        "sentences": len(sents),
        "annotated": counts["gold"],
        "found": counts["predicted"],
        **_f1(counts["exact"], counts["predicted"], counts["gold"], "spans"),
        **_f1(counts["exact_and_kind"], counts["predicted"], counts["gold"], "spans_and_kind"),
        "overlapping_recall": round(counts["overlapping"] / max(counts["gold"], 1), 4),
        "right_of_found": {name: round(counts[name] / n_exact, 4) for name in right},
        "recall_by_kind": {
            kind: f"{each['exact']}/{each['gold']}" for kind, each in sorted(kinds.items())
        },
    }


def _f1(n_right: int, n_found: int, n_gold: int, name: str) -> dict[str, float]:
    precision, recall = n_right / max(n_found, 1), n_right / max(n_gold, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    rounded = (round(each, 4) for each in (precision, recall, f1))
    return dict(zip((f"{name}_p", f"{name}_r", f"{name}_f"), rounded, strict=True))


def measure_speed(lang: str) -> dict[str, float]:
    """Measure words per second of processor time: of the rules, and of the component alone."""
    texts = [line for file in SPEED_FILES[lang] for line in read_lines(file)[:N_LINES]]
    n_words = sum(len(text.split()) for text in texts)
    nlp = make_blank(lang)
    nlp.add_pipe("bioclin_measurements")
    component = nlp.get_pipe("bioclin_measurements")
    docs = [nlp.make_doc(text) for text in texts]
    find_measurements(texts[0], lang)
    started = time.process_time()
    n_found = sum(len(find_measurements(text, lang)) for text in texts)
    rules = time.process_time() - started
    started = time.process_time()
    for doc in docs:
        component(doc)
    whole = time.process_time() - started
    return {
        "words": n_words,
        "measurements": n_found,
        "rules_words_per_second": round(n_words / rules),
        "component_words_per_second": round(n_words / whole),
    }


def measure_growth(lang: str) -> dict[str, list[float]]:
    """Measure seconds of processor time on hostile texts of 1 KB to 1 MB."""
    seconds: dict[str, list[float]] = {}
    for unit in HOSTILE:
        seconds[unit] = []
        for size in SIZES:
            text = unit * (size // len(unit))
            started = time.process_time()
            find_measurements(text, lang)
            seconds[unit].append(round(time.process_time() - started, 4))
    return seconds


def describe_order(found: Any) -> dict[str, Any]:
    """Write `ent._.medication` as the annotations are written; without what it does not have."""
    if found is None:
        return {}
    row = found._asdict()
    for name in MEASURED:
        if (one := row.get(name)) is not None:
            numbers = "-".join(
                f"{round(n, 4):.10g}" for n in (one.value, one.high) if n is not None
            )
            sign = "/" if name == "frequency" else " "
            row[name] = f"{numbers}{sign}{one.unit}" if one.unit else numbers
            if name == "frequency" and not one.unit:
                row[name] = "once"
    row["when"] = ", ".join(
        each.code if each.amount is None else f"{each.code} {each.amount:g}"
        for each in row.get("when", ())
    )
    return {name: value for name, value in row.items() if value}


def score_orders(lang: str, split: str, show: bool) -> dict[str, Any]:
    """Score the fields of `ent._.medication` on the orders of a split.

    show (bool): Print what differs.
    """
    nlp = make_blank(lang)
    for name in ("bioclin_sentences", "bioclin_sections", "bioclin_context"):
        nlp.add_pipe(name)
    nlp.add_pipe("bioclin_measurements", config={"drug_labels": ["drug"]})
    right: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for text, order in read_set(SETS / f"orders_{lang}.jsonl"):
        numbers[order["kind"]] += 1
        if (numbers[order["kind"]] % 3 == 0) != (split == "test"):
            continue
        doc: Doc = nlp(text)
        places = [(each["start"], each["end"]) for each in order["medications"]]
        spans = [doc.char_span(*at, label="DRUG", alignment_mode="expand") for at in places]
        doc.set_ents([span for span in spans if span is not None])
        for ent, gold in zip(doc.ents, order["medications"], strict=True):
            found = describe_order(ent._.medication)
            for name in FIELDS:
                if (want := gold.get(name)) is None and name not in found:
                    continue
                is_right = want == found.get(name)
                for key in ("all", f"field {name}", f"kind {order['kind']}"):
                    counted[key] += 1
                    right[key] += is_right
                if show and not is_right:
                    print(lang, order["kind"], name, found.get(name), "want", want, "|", text)
    return {key: f"{right[key]}/{n} {right[key] / n:.3f}" for key, n in sorted(counted.items())}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--orders", choices=("dev", "test"), help="orders of drugs alone")
    parser.add_argument("--speed", action="store_true", help="do not read the annotated sets")
    parser.add_argument("--show", action="store_true", help="print every difference")
    args = parser.parse_args()
    if args.orders:
        scores = {lang: score_orders(lang, args.orders, args.show) for lang in LANGS}
        path = RESULTS / "context_orders.json"
        known = read_json(path) if path.exists() else {}
        report("context_orders", {**known, args.orders: scores})
        return
    result: dict[str, Any] = {
        "speed": {lang: measure_speed(lang) for lang in LANGS},
        "growth_seconds": {"sizes": SIZES, **{lang: measure_growth(lang) for lang in LANGS}},
    }
    if args.speed:
        print(json.dumps(result, indent=2, ensure_ascii=False))
        return
    report(
        "context_measurements",
        {"scores": {lang: score(lang, args.show) for lang in LANGS}, **result},
    )


if __name__ == "__main__":
    main()
