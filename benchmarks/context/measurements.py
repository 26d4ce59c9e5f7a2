"""Measurements on the annotated sentences: F1, values and units; words/s; growth. Orders of drugs.

    python -m benchmarks.context.measurements              # $BIOCLIN_DATA or ../shared/data
    python -m benchmarks.context.measurements --speed      # without reading the annotated sets
    python -m benchmarks.context.measurements --orders dev --show
    python -m benchmarks.context.measurements --results dev --show

A measurement is found if its characters are exactly those of the annotation; its kind, value and
unit are then compared. Numbers may differ by 1 %, since annotators round. The sets are read once,
when the rules are finished. Writes benchmarks/results/context_measurements.json.

sets/orders_es.jsonl and orders_en.jsonl are orders of our own with the drugs marked, by kind. Of
three of a kind the last is test, which is read once. A field is right if `ent._.medication` has
what the annotation has; fields that are empty in both do not count. With --orders only they are
read, and written to benchmarks/results/context_orders.json.

sets/results_es.txt and results_en.txt have a piece of a note on each line, and after "=>" its
results: name := value | unit | reference | flag | date. A third of the pieces ("test") was not read
while the rules were made. "before" is what could be had without `doc._.results`: each measurement
with the name before it.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from spacy.tokens import Doc

from benchmarks.context.texts import SETS, read_lines, read_set
from benchmarks.corpora import make_blank
from benchmarks.harness import RESULTS, make_parser, read_json, report, write_json
from spacy_bioclin.context.measurements.measurement import Measurement
from spacy_bioclin.context.measurements.rules.around import find_name
from spacy_bioclin.context.measurements.rules.find import find_measurements
from spacy_bioclin.context.measurements.rules.lexicon import get_lexicon

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


def read_results(lang: str, split: str) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Read the pieces of a split: kind, text and results. Every third piece is "test"."""
    kind = ""
    number = 0
    for line in (SETS / f"results_{lang}.txt").read_text("utf-8").splitlines():
        if line.startswith("## "):
            kind = line.removeprefix("## ")
        elif line:
            number += 1
            text, _, gold = line.partition(" =>")
            if (number % 3 == 0) == (split == "test"):
                records = [_read_record(each) for each in gold.split(" ;; ") if each.strip()]
                yield kind, text.replace("\\n", "\n").replace("\\t", "\t"), records


def _read_record(written: str) -> dict[str, Any]:
    name, _, rest = written.partition(":=")
    value, unit, limits, flag, date = (*(each.strip() for each in rest.split("|")), *[""] * 4)[:5]
    record: dict[str, Any] = {"name": name.strip(), "unit": unit or None}
    record |= {"flag": flag or None, "date": date or None}
    low, _, high = limits.partition("..")
    record["reference"] = (float(low) if low else None, float(high) if high else None)
    record |= {"high": None, "comparator": None, "out_of": None}
    if value.startswith('"'):
        return {**record, "value": value.strip('"')}
    if value[0] in "<>":
        record["comparator"], value = value[0], value[1:]
    if " of " in value:
        value, _, whole = value.partition(" of ")
        record["out_of"] = float(whole)
    elif "," in value:
        return {**record, "value": tuple(map(float, value.split(",")))}
    for mark in ("/", ".."):
        if mark in value:
            value, _, second = value.partition(mark)
            record["high"] = float(second)
    return {**record, "value": float(value)}


RESULT_FIELDS = ("name", "value", "unit", "reference", "flag", "date", "out_of", "comparator")


def find_results(nlp: Any, text: str) -> list[dict[str, Any]]:
    """Find results as records of the set."""
    return [
        {**one._asdict(), "reference": (one.low_limit, one.high_limit)}
        for one in nlp(text)._.results
    ]


def find_before(lang: str, text: str) -> list[dict[str, Any]]:
    """Find measurements with the name before each, and nothing else."""
    found = []
    for one in find_measurements(text, lang):
        name = find_name(text, one.start_char, get_lexicon(lang))
        if one.kind in ("quantity", "range", "blood_pressure") and name:
            record = {**dict.fromkeys(RESULT_FIELDS), **one._asdict(), "name": name}
            found.append({**record, "reference": (None, None)})
    return found


def same_result(gold: dict[str, Any], found: dict[str, Any]) -> dict[str, bool]:
    """Compare the fields of two results; one name may be a part of the other."""
    names = gold["name"].lower(), found["name"].lower()
    checks = {name: same_number(gold[name], found[name]) for name in RESULT_FIELDS[2:]}
    is_value = same_number(gold["value"], found["value"])
    checks["value"] = is_value and same_number(gold["high"], found["high"])
    checks["name"] = names[0] in names[1] or names[1] in names[0]
    return checks


def score_results(lang: str, split: str, system: Any, show: bool) -> dict[str, Any]:
    """Score results: which have name and value right, and which fields are right of all."""
    counts: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    for kind, text, gold in read_results(lang, split):
        found = system(text)
        counts.update(gold=len(gold), found=len(found), pieces=1)
        wrong = []
        for each in gold:
            best = max(
                ((same_result(each, one), at) for at, one in enumerate(found)),
                key=lambda pair: (pair[0]["name"] + pair[0]["value"], sum(pair[0].values())),
                default=({}, -1),
            )
            checks = best[0]
            if checks.get("name") and checks["value"]:
                found.pop(best[1])
                counts["named"] += 1
                counts.update({name: int(right) for name, right in checks.items()})
            whole = bool(checks) and all(checks.values())
            counts["whole"] += whole
            kinds.setdefault(kind, Counter()).update(gold=1, whole=whole)
            if not whole:
                wrong.append(each)
        counts["spurious"] += len(found)
        kinds.setdefault(kind, Counter())["spurious"] += len(found)
        if show and (wrong or found):
            print(f"{lang} {kind}: {text!r}\n    want {wrong}\n    more {found}")
    n_gold = max(counts["gold"], 1)
    return {
        "pieces": counts["pieces"],
        "results": counts["gold"],
        **_f1(counts["named"], counts["found"], counts["gold"], "name_and_value"),
        **_f1(counts["whole"], counts["found"], counts["gold"], "whole_record"),
        "right_of_all": {name: round(counts[name] / n_gold, 4) for name in RESULT_FIELDS},
        "whole_by_kind": {
            kind: f"{each['whole']}/{each['gold']}, {each['spurious']} spurious"
            for kind, each in kinds.items()
        },
    }


def measure_results(split: str, show: bool) -> dict[str, Any]:
    """Measure both systems in both languages."""
    measured: dict[str, Any] = {}
    for lang in LANGS:
        nlp = make_blank(lang)
        for name in ("sentences", "sections", "context", "measurements"):
            nlp.add_pipe(f"bioclin_{name}")
        measured[lang] = {
            "before": score_results(
                lang, split, lambda text, lang=lang: find_before(lang, text), False
            ),
            "after": score_results(
                lang, split, lambda text, nlp=nlp: find_results(nlp, text), show
            ),
        }
    return measured


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
    parser.add_argument("--results", choices=("dev", "test"), help="only the results of tests")
    args = parser.parse_args()
    if args.orders:
        scores = {lang: score_orders(lang, args.orders, args.show) for lang in LANGS}
        path = RESULTS / "context_orders.json"
        known = read_json(path) if path.exists() else {}
        report("context_orders", {**known, args.orders: scores})
        return
    if args.results:
        measured = measure_results(args.results, args.show)
        print(json.dumps(measured, indent=2, ensure_ascii=False))
        path = RESULTS / "context_results.json"
        write_json(path, {**(read_json(path) if path.is_file() else {}), args.results: measured})
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
