"""What pipelines find in our notes (assets/notes): entities, assertions and PHI, by register.

    python -m benchmarks.accuracy.notes dev --lang es --pipelines es_bioclin_sm new=FOLDER
    python -m benchmarks.accuracy.notes dev --lang es --pipelines FOLDER --show 20
    python -m benchmarks.accuracy.notes dev --lang es --pipelines FOLDER --examples es-d-026

Entities are those of doc.ents. In a group (problems: DISEASE or SYMPTOM; drugs; procedures and
tests) the label within it does not count. "strict": offsets are equal. "overlap": of what was found
the share that touches an annotation of the group (precision), and of the annotations the share that
is touched (recall). Assertions are compared on the annotated problems that were touched, with those
of the entity that touches them most. PHI: the share of annotated spans of which each letter is
hidden, and of the hidden letters the share that is PHI. Test is read at the end only.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span

from benchmarks.deid.hard_notes import letters_of
from benchmarks.harness import RESULTS, describe_machine, make_parser, read_json, write_json
from scripts.notes import ASSERTIONS, LABELS, Mark, Note, list_files, read_notes
from spacy_bioclin.cli.loading import load_pipeline

RESULT, EXAMPLES = RESULTS / "notes.json", RESULTS / "note_examples.json"
GROUPS = {
    "problems": ("DISEASE", "SYMPTOM"),
    "drugs": ("DRUG",),
    "procedures_and_tests": ("PROCEDURE", "TEST"),
    **{label: (label,) for label in LABELS},
}
REGISTERS = {  # a word of a note's registers -> name of the register
    "capital": "capitals",
    "accent": "no accents",
    "lower": "lower case",
    "abbrev": "shorthand",
    "telegra": "shorthand",
    "glued": "glued",
    "prose": "prose",
    "dictat": "prose",
    "list": "lists",
    "table": "lists",
    "typo": "typos",
    "ocr": "typos",
}
Bounds = tuple[int, int]


def find_registers(note: Note) -> set[str]:
    """Find the registers and the variety of a note."""
    words = ", ".join(note.registers).lower()
    return {name for word, name in REGISTERS.items() if word in words} | {note.variety}


def touches(one: Bounds, other: Bounds) -> int:
    """Count the characters that two spans share; 0 if they do not touch."""
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def count_group(gold: set[Bounds], found: set[Bounds]) -> Counter[str]:
    """Count what is right in a note."""
    return Counter(
        gold=len(gold),
        found=len(found),
        strict=len(gold & found),
        touched_gold=sum(any(touches(g, f) for f in found) for g in gold),
        touched_found=sum(any(touches(g, f) for g in gold) for f in found),
    )


def count_assertions(marks: Iterable[Mark], ents: Sequence[Span]) -> Counter[str]:
    """Count the assertions of the annotated problems that were found."""
    counts: Counter[str] = Counter()
    for mark in marks:
        if mark.label not in GROUPS["problems"]:
            continue
        near = [
            (touches((mark.start, mark.end), (ent.start_char, ent.end_char)), -i)
            for i, ent in enumerate(ents)
        ]
        shared, at = max(near, default=(0, 0))
        if shared:
            for kind in ASSERTIONS:
                gold, found = kind in mark.assertions, bool(getattr(ents[-at]._, kind))
                counts[f"{kind} gold"] += gold
                counts[f"{kind} found"] += found
                counts[f"{kind} right"] += gold and found
    return counts


def count_phi(note: Note, doc: Doc) -> Counter[str]:
    """Count the PHI that is hidden, and the letters that are."""
    spans = [mark for mark in note.marks if mark.label not in LABELS]
    gold = letters_of(note.text, spans)
    hidden = letters_of(note.text, doc._.deid.spans)
    whole = sum(letters_of(note.text, [span]) <= hidden for span in spans)
    return Counter(phi=len(spans), phi_hidden=whole, letters=len(hidden), right=len(gold & hidden))


def share(part: int, whole: int) -> float | None:
    """Divide; None if there is nothing."""
    return round(part / whole, 4) if whole else None


def f1(p: float | None, r: float | None) -> float | None:
    """Compute the harmonic mean."""
    return round(2 * p * r / (p + r), 4) if p and r else None if p is None or r is None else 0.0


def score(counts: dict[str, Counter[str]]) -> dict[str, Any]:
    """Compute the scores of counts by group."""
    scores: dict[str, Any] = {}
    for group in GROUPS:
        c = counts[group]
        if c["gold"]:
            p, r = share(c["strict"], c["found"]), share(c["strict"], c["gold"])
            op, orr = share(c["touched_found"], c["found"]), share(c["touched_gold"], c["gold"])
            overlap = {"p": op, "r": orr, "f": f1(op, orr)}
            scores[group] = {"n": c["gold"], "strict": f1(p, r), "overlap": overlap}
    c = counts["assertions"]
    for kind in ASSERTIONS:
        p = share(c[f"{kind} right"], c[f"{kind} found"])
        r = share(c[f"{kind} right"], c[f"{kind} gold"])
        scores[kind] = {"n": c[f"{kind} gold"], "p": p, "r": r, "f": f1(p, r)}
    c = counts["phi"]
    scores["phi"] = {"n": c["phi"], "wholly_hidden": share(c["phi_hidden"], c["phi"])}
    scores["phi"]["hidden_letters_that_are_phi"] = share(c["right"], c["letters"])
    return scores


def measure(nlp: Language, notes: Sequence[Note]) -> dict[str, Any]:
    """Annotate the notes and score all of them, and those of each register and variety."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for note, doc in zip(notes, nlp.pipe(note.text for note in notes), strict=True):
        for part in ("all", *find_registers(note)):
            for group, labels in GROUPS.items():
                gold = {(m.start, m.end) for m in note.marks if m.label in labels}
                found = {(e.start_char, e.end_char) for e in doc.ents if e.label_ in labels}
                counts[part][group] += count_group(gold, found)
            counts[part]["assertions"] += count_assertions(note.marks, doc.ents)
            if doc.has_extension("deid") and doc._.deid:
                counts[part]["phi"] += count_phi(note, doc)
    return {part: score(found) for part, found in sorted(counts.items())}


def show(nlp: Language, notes: Sequence[Note]) -> Iterator[str]:
    """Write notes with everything that a pipeline says of them."""
    for note, doc in zip(notes, nlp.pipe(note.text for note in notes), strict=True):
        yield f"##### {note.name} {note.speciality} {note.kind}\n{note.text}"
        gold = {(m.start, m.end, m.label) for m in note.marks if m.label in LABELS}
        for ent in doc.ents:
            right = (ent.start_char, ent.end_char, ent.label_) in gold
            said = [kind for kind in ASSERTIONS if getattr(ent._, kind)]
            link = f" = {ent.kb_id_}" if ent.kb_id_ else ""
            yield f"{'  ' if right else '? '}{ent.label_:<12}{ent.text!r} {' '.join(said)}{link}"
        found = {(e.start_char, e.end_char, e.label_) for e in doc.ents}
        for start, end, label in sorted(gold - found):
            yield f"- {label:<12}{note.text[start:end]!r}"
        hidden = doc._.deid.spans if doc.has_extension("deid") and doc._.deid else ()
        yield "PHI: " + ", ".join(f"{note.text[s.start : s.end]} ({s.label})" for s in hidden)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("split", choices=("train", "dev", "test"))
    parser.add_argument("--lang", choices=("es", "en"), required=True)
    parser.add_argument(
        "--pipelines", nargs="+", required=True, help="package, FOLDER, NAME=FOLDER"
    )
    parser.add_argument("--show", type=int, default=0, help="print so many notes, measure nothing")
    parser.add_argument(
        "--examples", nargs="+", help="store what is found in these notes, for docs/models.md"
    )
    arguments = parser.parse_args()
    files = [path for _, split, path in list_files([arguments.lang]) if split == arguments.split]
    notes = [note for path in files for note in read_notes(path)]
    result = read_json(RESULT) if RESULT.exists() else {}
    for pipeline in arguments.pipelines:
        name, _, folder = pipeline.rpartition("=")
        nlp = load_pipeline(folder)
        if arguments.show:
            for line in show(nlp, notes[:: max(1, len(notes) // arguments.show)]):
                print(line)
            sys.exit()
        if arguments.examples:
            chosen = [note for note in notes if note.name in arguments.examples]
            shown = {note.name: "\n".join(show(nlp, [note])) for note in chosen}
            stored = read_json(EXAMPLES) if EXAMPLES.exists() else {}
            stored[arguments.lang] = shown
            write_json(EXAMPLES, stored, indent=1)
            sys.exit()
        name = name or f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
        scores = measure(nlp, notes)
        row = {"machine": describe_machine(), "notes": len(notes), "scores": scores}
        result.setdefault(f"{arguments.lang} {arguments.split}", {})[name] = row
        for part, of in scores.items():
            groups = [of.get(group) for group in ("problems", "drugs", "procedures_and_tests")]
            shown = [f"{g['strict']} / {g['overlap']['f']}" if g else "-" for g in groups]
            print(f"{name} {part:<12}", *shown, of["phi"], sep="  ")
        write_json(RESULT, result, indent=1)


if __name__ == "__main__":
    main()
