"""The identifier suite (phi_suite/): what the rules find of it, beside Presidio on the same texts.

    python -m benchmarks.deid.identifiers --split dev --missed .work/phi_suite_dev.txt
    python -m benchmarks.deid.identifiers --split test

Recall counts identifiers all of whose characters (blanks aside) lie in found spans; "strict" those
with exactly such a span, "typed" those covered by a span of the right HIPAA label. Precision counts
stretches of found text (overlapping spans are one) that touch PHI of the text, over items and
look-alikes together; "char_precision" counts their characters.
"""

import inspect
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.language import Language

from benchmarks.deid.phi_suite.generate import LANGS, Item, load_kinds, make_items, make_look_alikes
from benchmarks.harness import make_parser, write_result
from spacy_bioclin.deid.labels import label_of
from spacy_bioclin.deid.spans import PhiSpan

Finder = Callable[[str, str], list[PhiSpan]]  # text, lang -> spans
THRESHOLD = 0.5  # of the rules' confidence
PRESIDIO_THRESHOLDS = (0.0, 0.05, 0.1, 0.3, 0.4, 0.5, 0.6, 0.85)  # 0 is its default
PHONE_REGIONS = ("ES", "MX", "AR", "CL", "CO", "US", "GB")
# What Presidio's entities are called here; for the right HIPAA label.
PRESIDIO_TYPES = {
    **dict.fromkeys(("CREDIT_CARD", "CRYPTO", "IBAN_CODE", "US_BANK_NUMBER"), "account"),
    **{"ABA_ROUTING_NUMBER": "account", "DATE_TIME": "date", "EMAIL_ADDRESS": "email"},
    **{"IP_ADDRESS": "ip_address", "MAC_ADDRESS": "device", "PHONE_NUMBER": "phone", "URL": "url"},
    **dict.fromkeys(("ES_NIF", "ES_NIE", "ES_PASSPORT", "US_ITIN", "US_PASSPORT"), "national_id"),
    **{"UK_PASSPORT": "national_id", "US_SSN": "insurance_id", "UK_NINO": "insurance_id"},
    **{"US_DRIVER_LICENSE": "licence_id", "UK_DRIVING_LICENCE": "licence_id"},
    **{"MEDICAL_LICENSE": "licence_id", "US_NPI": "licence_id", "US_MBI": "health_plan_id"},
    **{"UK_NHS": "record_id", "UK_POSTCODE": "postcode", "UK_VEHICLE_REGISTRATION": "vehicle"},
    **{"PERSON": "patient_name", "LOCATION": "city", "ORGANIZATION": "organization"},
}
PRESIDIO_KINDS = frozenset(
    " ".join(srsly.read_yaml(Path(__file__).parent / "phi_suite" / "presidio_kinds.yml")).split()
)


def _make_engine(models: Mapping[str, str]) -> Any:
    """A spaCy pipeline for Presidio in each language, with its default settings of labels.

    models (Mapping[str, str]): Language -> package. The pipeline of other languages is blank; words
        are their own lemmas there, for Presidio's context words.
    """
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine

    if not Language.has_factory("own_lemmas"):

        @Language.component("own_lemmas")
        def own_lemmas(doc: Any) -> Any:
            for token in doc:
                token.lemma_ = token.lower_
            return doc

    engine = SpacyNlpEngine(ner_model_configuration=NerModelConfiguration(default_score=0.85))
    engine.nlp = {}
    for lang in LANGS:
        if lang in models:
            engine.nlp[lang] = spacy.load(models[lang])
        else:
            engine.nlp[lang] = spacy.blank(lang)
            engine.nlp[lang].add_pipe("own_lemmas")
    return engine


def _every_recognizer(lang: str) -> list[Any]:
    """Presidio's recognizers of Spain (es) or the US and the UK (en), and those of no country."""
    from presidio_analyzer import predefined_recognizers
    from presidio_analyzer.predefined_recognizers import PhoneRecognizer

    rooms = (".generic.", ".spain.") if lang == "es" else (".generic.", ".us.", ".uk.")
    found = {
        name: one
        for name, one in inspect.getmembers(predefined_recognizers, inspect.isclass)
        if any(room in one.__module__ for room in rooms)
    }
    phones = {"supported_regions": PHONE_REGIONS}
    return [
        one(supported_language=lang, **phones)
        if one is PhoneRecognizer
        else one(supported_language=lang)
        for one in found.values()
    ]


def load_presidio(
    every: bool = False, models: Mapping[str, str] | None = None
) -> tuple[Finder, list[str]]:
    """Load Presidio's analyzer at threshold 0, its default.

    every (bool): With the recognizers that are off by default, and our phone regions.
    models (Mapping[str, str] | None): Language -> package of a spaCy pipeline that finds names.
    RETURNS (tuple): The finder, and the names of its recognizers.
    """
    import tldextract.tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry

    # Its e-mail rule would fetch the list of top-level domains; the packed one is used instead.
    offline = tldextract.TLDExtract(suffix_list_urls=())
    tldextract.tldextract.TLD_EXTRACTOR = offline
    tldextract.extract = offline
    registry = RecognizerRegistry(supported_languages=list(LANGS))
    if every:
        for lang in LANGS:
            for one in _every_recognizer(lang):
                registry.add_recognizer(one)
    engine = _make_engine(models or {})
    if not every:
        registry.load_predefined_recognizers(languages=list(LANGS), nlp_engine=engine)
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=list(LANGS))

    def find(text: str, lang: str) -> list[PhiSpan]:
        return [
            PhiSpan(one.start, one.end, one.entity_type, one.score, one.entity_type)
            for one in analyzer.analyze(text, lang)
        ]

    return find, sorted({f"{one.supported_language}:{one.name}" for one in registry.recognizers})


def load_ours() -> Finder:
    from spacy_bioclin.deid.detect.rules import load_rules

    rules = {lang: load_rules(lang) for lang in LANGS}
    return lambda text, lang: rules[lang].find(text)


def join_spans(spans: Iterable[PhiSpan]) -> list[tuple[int, int]]:
    """Join spans that overlap into stretches of text."""
    joined: list[tuple[int, int]] = []
    for span in sorted(spans):
        if joined and span.start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], span.end)
        else:
            joined.append((span.start, span.end))
    return joined


def _is_covered(text: str, start: int, end: int, spans: Iterable[PhiSpan]) -> bool:
    stretches = join_spans(spans)
    return all(
        text[i].isspace() or any(first <= i < last for first, last in stretches)
        for i in range(start, end)
    )


def score_item(item: Item, spans: list[PhiSpan]) -> Counter[str]:
    """Count for one text.

    RETURNS (Counter[str]): "gold", "covered", "strict", "typed" of its identifiers; "found",
        "right", "found_chars", "right_chars" of what was found; "look_alikes", "fired".
    """
    counts: Counter[str] = Counter()
    kind = load_kinds().get(item.kind, {})
    types = (kind.get("type"), *kind.get("accept", ())) if kind else ()
    labels = {label_of(one, "hipaa") for one in types}
    for gold in item.gold:
        if not gold.counted:
            continue
        near = [one for one in spans if one.start < gold.end and gold.start < one.end]
        fitting = [
            one
            for one in near
            if label_of(PRESIDIO_TYPES.get(one.label, one.label), "hipaa") in labels
        ]
        counts["gold"] += 1
        counts["covered"] += _is_covered(item.text, gold.start, gold.end, near)
        counts["typed"] += _is_covered(item.text, gold.start, gold.end, fitting)
        counts["strict"] += any((one.start, one.end) == gold[:2] for one in near)
    phi = {i for gold in item.gold for i in range(gold.start, gold.end)}
    for start, end in join_spans(spans):
        chars = len(phi.intersection(range(start, end)))
        counts["found"] += 1
        counts["right"] += chars > 0
        counts["found_chars"] += end - start
        counts["right_chars"] += chars
    if not item.gold:
        counts["look_alikes"] += 1
        counts["fired"] += bool(spans)
    return counts


def summarise(counts: Counter[str]) -> dict[str, Any]:
    """Turn counts into shares with three decimals."""

    def share(part: str, whole: str) -> float | None:
        return round(counts[part] / counts[whole], 3) if counts[whole] else None

    return {
        "identifiers": counts["gold"],
        "recall": share("covered", "gold"),
        "recall_strict": share("strict", "gold"),
        "recall_typed": share("typed", "gold"),
        "found": counts["found"],
        "precision": share("right", "found"),
        "char_precision": share("right_chars", "found_chars"),
        "look_alikes": counts["look_alikes"],
        "look_alikes_fired": counts["fired"],
    }


def score(items: Sequence[Item], found: list[list[PhiSpan]], threshold: float) -> dict[str, Any]:
    """Score everything, and by language, check digit and kind."""
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for item, spans in zip(items, found, strict=True):
        counts = score_item(item, [one for one in spans if one.confidence >= threshold])
        parts = ["all", item.lang]
        if item.gold:
            parts.append("unseen_forms" if item.unseen else "seen_forms")
            if item.kind in PRESIDIO_KINDS:
                parts.append("kinds_of_presidio")
            if item.valid is not None:
                parts.append("right_check_digit" if item.valid else "wrong_check_digit")
        for part in parts:
            groups[part] += counts
        kinds[item.kind] += counts
    look_alikes = {kind: n["fired"] for kind, n in kinds.items() if n["look_alikes"]}
    identifiers = {kind: n for kind, n in kinds.items() if n["gold"]}
    return {
        "threshold": threshold,
        **{part: summarise(counts) for part, counts in groups.items()},
        "kinds_below_0.9": [k for k, n in identifiers.items() if n["covered"] < 0.9 * n["gold"]],
        "kinds": {
            kind: {
                name: n[name] for name in ("gold", "covered", "strict", "typed", "found", "right")
            }
            for kind, n in identifiers.items()
        },
        "look_alikes_fired": {kind: n for kind, n in look_alikes.items() if n},
    }


def f1(scores: dict[str, Any]) -> float:
    recall, precision = scores["all"]["recall"], scores["all"]["precision"] or 0.0
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def write_missed(
    path: Path, items: Sequence[Item], found: list[list[PhiSpan]], result: dict
) -> None:
    """Write texts of the dev split in which something was missed or found in vain."""
    lines = [f"dev split: {result['all']}", f"below 0.9: {result['kinds_below_0.9']}", ""]
    for item, spans in zip(items, found, strict=True):
        spans = [one for one in spans if one.confidence >= THRESHOLD]
        counts = score_item(item, spans)
        wrong = [
            name
            for name, is_wrong in (
                ("MISSED", counts["covered"] < counts["gold"]),
                ("TYPE", counts["typed"] < counts["covered"]),
                ("BOUNDS", counts["strict"] < counts["covered"]),
                ("FALSE", counts["right"] < counts["found"]),
            )
            if is_wrong
        ]
        if wrong:
            gold = [f"{item.text[one.start : one.end]!r} {one.phi_type}" for one in item.gold]
            got = [f"{item.text[s.start : s.end]!r} {s.label} {s.detector}" for s in spans]
            lines += [f"{'+'.join(wrong)} {item.kind} {item.text!r}", f"  {gold}", f"  {got}"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run_presidio(items: Sequence[Item], every: bool) -> dict[str, Any]:
    """Score Presidio at its default threshold and at the best of several."""
    find, recognizers = load_presidio(every)
    found = [find(item.text, item.lang) for item in items]
    scores = [score(items, found, threshold) for threshold in PRESIDIO_THRESHOLDS]
    best = max(scores, key=f1)
    return {
        "version": version("presidio-analyzer"),
        "recognizers": recognizers,
        "phone_regions": PHONE_REGIONS if every else "its own",
        "default_threshold": scores[0],
        "best_threshold": best if best is not scores[0] else "the default",
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--missed", type=Path, help="where to write missed texts (dev only)")
    parser.add_argument("--ours-only", action="store_true", help="print ours, write no result")
    arguments = parser.parse_args()
    items = make_items(arguments.split) + make_look_alikes(arguments.split)
    find = load_ours()
    found = [find(item.text, item.lang) for item in items]
    ours = score(items, found, THRESHOLD)
    if arguments.missed and arguments.split == "dev":
        write_missed(arguments.missed, items, found, ours)
    print(ours["all"], ours["kinds_below_0.9"], ours["look_alikes_fired"], sep="\n")
    if arguments.ours_only:
        return
    result = {
        "split": arguments.split,
        "kinds": len(load_kinds()),
        "identifiers": sum(one.counted for item in items for one in item.gold),
        "look_alikes": sum(not item.gold for item in items),
        "rules": ours,
        "presidio": run_presidio(items, every=False),
        "presidio_every_recognizer": run_presidio(items, every=True),
    }
    for name in ("presidio", "presidio_every_recognizer"):
        print(name, result[name]["default_threshold"]["all"])
        best = result[name]["best_threshold"]
        print(" best", best if isinstance(best, str) else (best["threshold"], best["all"]))
    print(write_result(f"phi_identifiers_{arguments.split}", result))


if __name__ == "__main__":
    sys.exit(main())
