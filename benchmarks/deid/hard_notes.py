"""De-identification of hard invented notes: recall of spans and letters, precision, whole notes.

    python -m benchmarks.deid.hard_notes dev --lang en --systems rules presidio
    python -m benchmarks.deid.hard_notes test --lang es --systems rules sm=packages/es_deid

The notes (hard_notes/LANG_SPLIT.txt) were written by hand, without sight of the rules or
the layouts of the training notes. Rules and models may be improved with dev, never with test.

Systems are "rules" (the rules alone), "presidio" (its default recognizers, without a model
for names), "presidio=es_core_news_sm" (the same with a package that spaCy can load), or a pipeline:
its package, its folder, or NAME=FOLDER. A pipeline is used as it is: one without
`bioclin_phi_rules` is measured without the rules.

A note begins with a line "##### KIND", and PHI is marked as [[text|phi_type]]. In English
notes, only the number of an age is marked; weekdays that mean one day, wards by name or number, and
whole timestamps of HL7-like lines are marked; titles, kinship, sex, times of day, durations,
gestational ages, beds, rooms, lot numbers and units such as "ICU" are not.

Only letters and digits count. "span_recall" is the share of marked spans that are hidden
completely, whatever the label. "letter_precision" is the share of hidden letters that are PHI of
any type; by group, the group is that of the label under which they were hidden. Intervals are of
95 %, by resampling notes.
"""

import datetime
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.deid.identifiers import PRESIDIO_TYPES, load_presidio
from benchmarks.deid.phi_suite.generate import LANGS, Gold, read_marks
from benchmarks.harness import RESULTS, describe_machine, make_parser, read_json, write_result
from spacy_bioclin.corpora.convert import make_nlp
from spacy_bioclin.corpora.docs import make_gold_doc
from spacy_bioclin.deid import make_pipeline
from spacy_bioclin.deid.labels import load_types, phi_type_of
from spacy_bioclin.deid.spans import PhiSpan
from spacy_bioclin.types import AnnotatedText, SpanAnnotation

Finder = Callable[[str], Sequence[PhiSpan]]
FOLDER = Path(__file__).with_name("hard_notes")
HEAD = re.compile(r"^##### ?(.*)\n", re.MULTILINE)
GROUPS = {
    "names": ("patient_name", "staff_name"),
    "dates": ("date",),
    "ages": ("age",),
    "ids": (
        *("record_id", "national_id", "contact_id", "insurance_id", "health_plan_id", "licence_id"),
        *("staff_id", "account", "vehicle", "device", "biometric", "cadastre", "other_id"),
    ),
    "phones": ("phone", "fax"),
    "hospitals_and_centres": ("hospital", "health_centre"),
    "places": ("street", "city", "state", "postcode", "country", "other_place"),
    "organizations": ("organization",),
    "professions": ("profession",),
    "sex_and_relatives": ("sex", "relative"),
    "online": ("email", "url", "ip_address", "user_name"),
    "other": ("photo", "other"),
}
GROUP_OF = {phi_type: group for group, types in GROUPS.items() for phi_type in types}
MEASURES = {  # name -> what is counted, and out of what
    "span_recall": ("spans_hidden", "spans"),
    "letter_recall": ("letters_hidden", "letters"),
    "letter_precision": ("right", "hidden"),
    "notes_wholly_hidden": ("notes_hidden", "notes_with_phi"),
}
N_RESAMPLES = 2000


class Note(NamedTuple):
    kind: str
    text: str
    gold: tuple[Gold, ...]


def read_notes(path: Path) -> list[Note]:
    """Read a file of marked notes.

    RAISES (SystemExit): The file is missing, or a mark in it is wrong.
    """
    if not path.exists():
        there = ", ".join(sorted(one.name for one in path.parent.glob("*_*.txt"))) or "none"
        sys.exit(f"{path.name} is missing in {path.parent.name}/ (there: {there})")
    before, *parts = HEAD.split(path.read_text(encoding="utf-8"))
    if before.strip() or not parts:
        sys.exit(f"{path.name}: the first line must be '##### KIND'")
    notes = []
    for number, (kind, marked) in enumerate(zip(parts[::2], parts[1::2], strict=True), start=1):
        marked = marked.strip("\n")
        text, gold = read_marks(marked)
        unknown = sorted({one.phi_type for one in gold} - set(load_types()))
        if unknown or "[[" in text or "]]" in text or not re.fullmatch(r"[a-z0-9_]+", kind):
            why = f"unknown PHI types {unknown}" if unknown else "a mark or the kind is malformed"
            sys.exit(f"{path.name}, note {number} ({kind}): {why}; want [[text|phi_type]]")
        notes.append(Note(kind, text, gold))
    return notes


def make_phi_docs(notes: Sequence[Note], lang: str) -> list[Doc]:
    """Make gold Docs with the PHI of notes in doc.spans["phi"]; the labels are types of PHI."""
    nlp, docs = make_nlp(lang), []
    for number, note in enumerate(notes, start=1):
        marked = tuple(
            SpanAnnotation(f"T{n}", one.phi_type, (one[:2],), note.text[one.start : one.end])
            for n, one in enumerate(note.gold, start=1)
        )
        text = AnnotatedText(f"{lang}-{number}", note.text, marked)
        docs.append(make_gold_doc(nlp, text, layers={"*": "phi"}))
    return docs


def load_system(system: str, lang: str) -> tuple[Finder, dict[str, Any]]:
    """Load a system.

    RETURNS (tuple): What finds PHI in a text, and what the result says about the system.
    RAISES (SystemExit): A pipeline is of another language.
    """
    name, _, model = system.partition("=")
    if name == "presidio":
        from importlib.metadata import version

        find, recognizers = load_presidio(models={lang: model} if model else None)
        used = f"{model} {version(model)}" if model else "none"
        about = {"version": version("presidio-analyzer"), "model": used, "threshold": 0}
        names = [name.split(":")[1] for name in recognizers if name.startswith(f"{lang}:")]
        return lambda text: find(text, lang), {**about, "recognizers": names}
    nlp = make_pipeline(lang, rules_only=True) if system == "rules" else spacy.load(system)
    if nlp.lang != lang:
        sys.exit(f"{Path(system).name} is a pipeline of {nlp.lang!r}, the notes are of {lang!r}")
    about = {"components": nlp.pipe_names, "version": nlp.meta["version"]}
    return lambda text: find_phi(nlp, text), about if system != "rules" else {}


def find_phi(nlp: Language, text: str) -> Sequence[PhiSpan]:
    """Find what `bioclin_deid` hides, or what is in doc.spans["phi"] without that component."""
    doc = nlp(text)
    if doc.has_extension("deid") and doc._.deid:
        return doc._.deid.spans
    return [PhiSpan(s.start_char, s.end_char, s.label_, 1.0, s.id_) for s in doc.spans["phi"]]


def group_of(label: str) -> str:
    """Find the group of any system's label; "other" for those of no PHI type."""
    phi_type = PRESIDIO_TYPES.get(label) or phi_type_of(label)
    return GROUP_OF.get(phi_type or "other", "other")


def letters_of(text: str, spans: Iterable[Any]) -> set[int]:
    """Collect where the letters and digits of spans are."""
    return {i for one in spans for i in range(one.start, one.end) if text[i].isalnum()}


def score_note(note: Note, found: Sequence[PhiSpan]) -> dict[str, Counter[str]]:
    """Count for one note: group, or "all" -> "spans", "letters", "hidden" … (see MEASURES)."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("all", *GROUPS)}
    phi, hidden = letters_of(note.text, note.gold), letters_of(note.text, found)
    for one in note.gold:
        letters = letters_of(note.text, [one])
        for part in ("all", GROUP_OF[one.phi_type]):
            counts[part]["spans"] += 1
            counts[part]["spans_hidden"] += letters <= hidden
            counts[part]["letters"] += len(letters)
            counts[part]["letters_hidden"] += len(letters & hidden)
    counts["all"].update(hidden=len(hidden), right=len(hidden & phi))
    for group in GROUPS:
        under = letters_of(note.text, [one for one in found if group_of(one.label) == group])
        counts[group].update(hidden=len(under), right=len(under & phi))
    whole = bool(phi) and phi <= hidden
    counts["all"].update(notes=1, notes_with_phi=bool(phi), notes_hidden=whole)
    return counts


def find_interval(parts: Sequence[int], wholes: Sequence[int]) -> list[float]:
    """Compute the 95 % interval of sum(parts) / sum(wholes), by resampling notes."""
    n = len(parts)
    draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
    shares = (draws @ np.asarray(parts)) / np.maximum(draws @ np.asarray(wholes), 1)
    return [round(float(one), 4) for one in np.quantile(shares, [0.025, 0.975])]


def summarize(counts: Sequence[Counter[str]], *, intervals: bool = False) -> dict[str, Any]:
    """Turn counts of notes into shares; None where there is nothing to divide by."""
    total = sum(counts, Counter())
    result: dict[str, Any] = {
        name: total[name] for name in ("notes", "spans", "letters", "hidden") if total[name]
    }
    for name, (part, whole) in MEASURES.items():
        if whole == "notes_with_phi" and not total["notes"]:
            continue  # a group has no notes of its own
        result[name] = round(total[part] / total[whole], 4) if total[whole] else None
        if intervals and total[whole]:
            pairs = [(one[part], one[whole]) for one in counts]
            result[f"{name}_interval"] = find_interval(*zip(*pairs, strict=True))
    return result


def score(notes: Sequence[Note], found: Sequence[Sequence[PhiSpan]]) -> dict[str, Any]:
    """Score all notes, and by group and kind."""
    counts = [score_note(note, spans) for note, spans in zip(notes, found, strict=True)]
    kinds = sorted({note.kind for note in notes})
    groups = {group: summarize([one[group] for one in counts]) for group in GROUPS}
    return {
        "all": summarize([one["all"] for one in counts], intervals=True),
        "groups": {name: one for name, one in groups.items() if "spans" in one or "hidden" in one},
        "kinds": {
            kind: summarize(
                [one["all"] for one, note in zip(counts, notes, strict=True) if note.kind == kind]
            )
            for kind in kinds
        },
    }


def write_missed(path: Path, notes: Sequence[Note], found: Sequence[Sequence[PhiSpan]]) -> None:
    """Write what was missed and what was hidden in vain, note by note."""
    lines = []
    for number, (note, spans) in enumerate(zip(notes, found, strict=True), start=1):
        phi, hidden = letters_of(note.text, note.gold), letters_of(note.text, spans)
        lines.append(f"##### {number} {note.kind}")
        for verdict, ours, others in (("MISSED", note.gold, hidden), ("FALSE", spans, phi)):
            for one in ours:
                if letters_of(note.text, [one]) - others:
                    label = one.phi_type if isinstance(one, Gold) else f"{one.label} {one.detector}"
                    around = note.text[max(0, one.start - 30) : one.end + 20]
                    lines.append(f"{verdict} {note.text[one.start : one.end]!r} {label} {around!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def print_table(scores: dict[str, Any]) -> None:
    """Print the shares of a system."""
    print(f"  {'':24}{'spans':>7}{'recall':>8}{'letters':>9}{'precision':>11}{'notes':>8}")
    rows = {"all": scores["all"], **scores["groups"], **scores["kinds"]}
    for name, row in rows.items():
        shares = [row.get(measure) for measure in MEASURES]
        cells = ["-" if one is None else f"{one:.3f}" for one in shares]
        print(f"  {name:24}{row.get('spans', 0):7}", end="")
        print(f"{cells[0]:>8}{cells[1]:>9}{cells[2]:>11}{cells[3]:>8}")
    intervals = {name: scores["all"].get(f"{name}_interval") for name in MEASURES}
    print("  95 %:", *(f"{name} {low_high}" for name, low_high in intervals.items()))


def merge(split: str, lang: str, notes: dict[str, Any], scores: dict[str, Any]) -> Path:
    """Write the results of some systems beside those of the others."""
    path = RESULTS / f"hard_notes_{split}.json"
    old = read_json(path) if path.exists() else {}
    systems: dict[str, Any] = old.get("systems", {})
    for name, result in scores.items():
        systems.setdefault(lang, {})[name] = result
    result = {"split": split, "notes": {**old.get("notes", {}), lang: notes}, "systems": systems}
    return write_result(path.stem, result)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("split", choices=("dev", "test"))
    parser.add_argument("--lang", choices=LANGS, required=True)
    parser.add_argument("--systems", nargs="+", default=["rules"], metavar="SYSTEM")
    parser.add_argument("--missed", type=Path, help="folder for what was missed (dev only)")
    arguments = parser.parse_args()
    if arguments.missed and arguments.split != "dev":
        parser.error("--missed is for dev only")
    path = FOLDER / f"{arguments.lang}_{arguments.split}.txt"
    notes = read_notes(path)
    about_notes = {
        "notes": len(notes),
        "spans": sum(len(note.gold) for note in notes),
        "spans_by_type": dict(Counter(o.phi_type for n in notes for o in n.gold).most_common()),
        "words": sum(len(note.text.split()) for note in notes),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    scores: dict[str, Any] = {}
    for given in arguments.systems:
        name, _, source = given.rpartition("=")
        if given.partition("=")[0] == "presidio":
            name = source = given
            if not find_spec("presidio_analyzer"):
                print("presidio is left out: presidio-analyzer is not installed", file=sys.stderr)
                continue
        find, about = load_system(source, arguments.lang)
        found = [find(note.text) for note in notes]
        name = name or Path(source).name
        measured = {
            "date": datetime.date.today().isoformat(),
            "commit": describe_machine()["commit"],
            "notes_sha256": about_notes["sha256"],
        }
        scores[name] = {"measured": measured, **about, **score(notes, found)}
        print(f"{name}, {path.name}")
        print_table(scores[name])
        if arguments.missed:
            write_missed(arguments.missed / f"{path.stem}_{name}.txt", notes, found)
    if scores:
        print(merge(arguments.split, arguments.lang, about_notes, scores))


if __name__ == "__main__":
    main()
