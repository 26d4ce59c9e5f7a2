"""Read, check and count the corpus of notes in assets/notes.

    python -m scripts.notes check assets/notes/es/train/a-01.txt …
    python -m scripts.notes count
    python -m scripts.notes inconsistencies es
    python -m scripts.notes agreement SECOND/train/*.txt -o RESULT.json

assets/notes/GUIDELINES.md describes labels, assertions and the form of a file.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spacy_bioclin.deid.labels import load_types
from spacy_bioclin.tokenization.short_forms import load_short_forms

ROOT = Path(__file__).resolve().parents[1]
NOTES = ROOT / "assets" / "notes"
HEAD = re.compile(r"^##### ?(.*)\n", re.MULTILINE)
MARK = re.compile(r"\[\[|\|([A-Za-z_!]+)\]\]")
LABELS = (
    *("DISEASE", "SYMPTOM", "PROCEDURE", "TEST", "TEST_VALUE", "DRUG", "DOSE", "ROUTE"),
    *("FREQUENCY", "DURATION", "ANATOMY", "DEVICE", "GENE", "SPECIES"),
)
ASSERTIONS = ("negated", "uncertain", "historical", "family", "hypothetical")
ASSERTED = ("DISEASE", "SYMPTOM", "PROCEDURE", "TEST", "DRUG", "DEVICE")
# Tests that the corpora of procedures call procedures: imaging, recordings, cultures, panels.
IS_PROCEDURE = re.compile(
    r"\b(?:(?:angio)?TA?C|R[MX]N?|Rx|radio\w*|eco\w*|ultras\w*|US|USG|[ET]CG|EKG|EEG|EMG|electro\w*|"
    r"esp[ií]ro\w*|spiro\w*|gamma\w*|PET|mamm?o\w*|angio\w*|arterio\w*|corona\w*|doppler|holter|"
    r"MAPA|ergo\w*|densi\w*|scan\w*|scintig\w*|CT|CTPA|MR[IA]|MRCP|X-?rays?|CXR|AXR|KUB|echo\w*|"
    r"TTE|TEE|DEXA|bone scan|\w*cultiv\w*|\w*cult\w*|cx|serolog\w*|anal[ií]t\w*|hemogram\w*|"
    r"bioqu[ií]m\w*|gasomet\w*|ABG|VBG|UA|CBC|BMP|CMP|FBC|LFTs?|U&Es?|labs|panel|test|prueba|audio\w*|"
    r"polisomno\w*|polysomn\w*|campimetr\w*|OCT|fondo de ojo|histolog\w*|citolog\w*|cytolog\w*|"
    r"PAP)\b",
    re.IGNORECASE,
)
VARIETIES = {"es": ("ES", "MX", "AR", "CL", "CO", "PE"), "en": ("US", "UK", "AU", "NN")}


class Mark(NamedTuple):
    """A marked span: offsets in the text without marks, its label, its assertions."""

    start: int
    end: int
    label: str
    assertions: tuple[str, ...] = ()


class Note(NamedTuple):
    """A note of the corpus; `marks` are in order of their ends, inner ones first."""

    name: str
    speciality: str
    kind: str
    variety: str
    registers: tuple[str, ...]
    text: str
    marks: tuple[Mark, ...]


class NoteError(ValueError):
    """A note or mark is malformed."""


def read_marks(marked: str) -> tuple[str, tuple[Mark, ...]]:
    """Take the marks out of a text.

    RETURNS (tuple): The text without them, and what they mark.
    RAISES (NoteError): A mark is not closed, not opened, or has an unknown label or assertion.
    """
    text, marks, opened, end = "", [], [], 0
    for found in MARK.finditer(marked):
        text += marked[end : found.start()]
        end = found.end()
        if found[1] is None:
            opened.append(len(text))
            continue
        if not opened:
            raise NoteError(f"{marked[max(0, found.start() - 30) : end]!r} closes what is not open")
        label, *assertions = found[1].split("!")
        start = opened.pop()
        piece = text[start:]
        unknown = [one for one in assertions if one not in ASSERTIONS]
        if label not in LABELS and label not in load_types():
            raise NoteError(f"unknown label {label!r} of {piece!r}")
        if unknown or (assertions and label not in ASSERTED):
            raise NoteError(f"{label} of {piece!r} cannot be {unknown or assertions}")
        if not piece or piece != piece.strip(" \t\n,;:") or "\n" in piece:
            raise NoteError(f"{piece!r} ({label}) begins or ends with a blank, or has two lines")
        marks.append(Mark(start, len(text), label, tuple(assertions)))
    text += marked[end:]
    if opened or "[[" in text or "]]" in text:
        where = text[opened[-1] : opened[-1] + 40] if opened else "[[ or ]]"
        raise NoteError(f"not closed: {where!r}")
    return text, tuple(marks)


def read_notes(path: Path) -> list[Note]:
    """Read a file of notes.

    RAISES (NoteError): A head or mark is malformed; it names the file and the note.
    """
    before, *parts = HEAD.split(path.read_text("utf-8"))
    if before.strip() or not parts:
        raise NoteError(f"{path.name}: the first line must begin with '#####'")
    notes = []
    for head, marked in zip(parts[::2], parts[1::2], strict=True):
        fields = [field.strip() for field in head.split("|")]
        lang = path.parts[-3]
        if len(fields) != 5 or fields[3] not in VARIETIES.get(lang, ()):
            raise NoteError(
                f"{path.name}: head {head!r} is not name|speciality|kind|variety|registers"
            )
        try:
            text, marks = read_marks(marked.strip("\n"))
        except NoteError as error:
            raise NoteError(f"{path.name}, {fields[0]}: {error}") from None
        registers = tuple(one.strip() for one in fields[4].split(","))
        notes.append(Note(*fields[:4], registers, text, marks))
    return notes


def list_files(langs: Iterable[str] = ("es", "en")) -> Iterator[tuple[str, str, Path]]:
    """List language, split and path of each file of the corpus."""
    for lang in langs:
        for split in ("train", "dev", "test"):
            for path in sorted((NOTES / lang / split).glob("*.txt")):
                yield lang, split, path


def check(paths: Iterable[Path]) -> int:
    """Print what is wrong or doubtful. RETURNS (int): How many files are malformed."""
    wrong = 0
    for path in paths:
        try:
            notes = read_notes(path)
        except NoteError as error:
            print(error)
            wrong += 1
            continue
        words = sum(len(note.text.split()) for note in notes)
        print(f"{path.name}: {len(notes)} notes, {words} words")
        for note in notes:
            for line in doubts(note):
                print(f"  {note.name}: {line}")
    return wrong


def doubts(note: Note) -> Iterator[str]:
    """List words that are marked in one place of a note and not in another."""
    covered = {i for mark in note.marks for i in range(mark.start, mark.end)}
    labels: dict[str, set[str]] = {}
    for mark in note.marks:
        labels.setdefault(note.text[mark.start : mark.end].casefold(), set()).add(mark.label)
    for piece, kinds in labels.items():
        if len(kinds) > 1:
            yield f"{piece!r} is {' and '.join(sorted(kinds))}"
        if len(piece) < 3 or piece.isdigit():
            continue
        for found in re.finditer(rf"\b{re.escape(piece)}\b", note.text.casefold()):
            if found.start() < len(note.text) and found.start() not in covered:
                yield f"{piece!r} ({min(kinds)}) is not marked in another place"
                break


def agree(paths: Iterable[Path]) -> dict[str, dict[str, float]]:
    """Compare a second annotation of notes with that of the corpus.

    paths (Iterable[Path]): Files with the same notes under the same names.
    RETURNS (dict[str, dict[str, float]]): Label, "PHI", "all" or "assertions" -> number of spans in
        the corpus, strict F1 (offsets and label are equal) and overlap F1.
    RAISES (NoteError): The text of a note differs.
    """
    first = {note.name: note for _, _, path in list_files() for note in read_notes(path)}
    counts: dict[str, Counter[str]] = {}
    for path in paths:
        for note in read_notes(path):
            other = first[note.name]
            if note.text != other.text:
                raise NoteError(f"{path.name}, {note.name}: another text than in the corpus")
            for group in (*LABELS, "PHI", "all"):
                ours, theirs = (
                    {(m.start, m.end, m.label) for m in one.marks if _is_of(m, group)}
                    for one in (other, note)
                )
                counts.setdefault(group, Counter()).update(_compare(ours, theirs))
            ours, theirs = (
                {(m.start, m.end, kind) for m in one.marks for kind in m.assertions}
                for one in (other, note)
            )
            both = {(m.start, m.end, m.label) for m in other.marks}
            both &= {(m.start, m.end, m.label) for m in note.marks}
            bounds = {(start, end) for start, end, _ in both}
            ours, theirs = ({m for m in marks if m[:2] in bounds} for marks in (ours, theirs))
            counts.setdefault("assertions", Counter()).update(_compare(ours, theirs))
    return {
        group: {
            "n": c["ours"],
            "strict": round(2 * c["same"] / max(1, c["ours"] + c["theirs"]), 4),
            "overlap": round((c["touched"] + c["touching"]) / max(1, c["ours"] + c["theirs"]), 4),
        }
        for group, c in counts.items()
        if c["ours"] or c["theirs"]
    }


def _is_of(mark: Mark, group: str) -> bool:
    return group in ("all", mark.label) or (group == "PHI" and mark.label not in LABELS)


def _compare(ours: set[tuple[int, int, str]], theirs: set[tuple[int, int, str]]) -> Counter[str]:
    """Count equal spans, and those that touch one of the same label."""

    def touch(some: set[tuple[int, int, str]], others: set[tuple[int, int, str]]) -> int:
        return sum(
            any(start < b and a < end and label == c for a, b, c in others)
            for start, end, label in some
        )

    return Counter(
        ours=len(ours),
        theirs=len(theirs),
        same=len(ours & theirs),
        touched=touch(ours, theirs),
        touching=touch(theirs, ours),
    )


def inconsistencies(lang: str) -> Iterator[str]:
    """List strings that train and dev have under several labels, and known ones without a mark.

    YIELDS (str): A line for each string, the most frequent first; then one for each place where a
        disease, drug, device or short form that is marked five times elsewhere is not marked.
    """
    files = [path for _, split, path in list_files([lang]) if split != "test"]
    notes = [note for path in files for note in read_notes(path)]
    labels: dict[str, Counter[str]] = {}
    for note in notes:
        for mark in note.marks:
            piece = note.text[mark.start : mark.end].casefold()
            labels.setdefault(piece, Counter())[mark.label] += 1
    for piece, of in sorted(labels.items(), key=lambda row: -row[1].total()):
        if of.total() >= 10 and of.most_common(1)[0][1] < 0.85 * of.total():
            yield f"{piece}: " + ", ".join(f"{label} {n}" for label, n in of.most_common())
    wanted = ("DISEASE", "DRUG", "DEVICE")
    short = {form.short.casefold() for of in load_short_forms(lang).values() for form in of}
    known = {
        piece
        for piece, of in labels.items()
        if of.total() >= 5 and (of.most_common(1)[0][0] in wanted or piece in short)
    }
    for note in notes:
        covered = {i for mark in note.marks for i in range(mark.start, mark.end)}
        for word in re.finditer(r"[^\W\d_]{3,}", note.text):
            if word[0].casefold() in known and word.start() not in covered:
                yield f"{note.name}: {word[0]} is not marked"


def count() -> None:
    """Print notes, words and marks of each language and split."""
    for lang in ("es", "en"):
        for split in ("train", "dev", "test"):
            notes = [n for _, s, path in list_files([lang]) if s == split for n in read_notes(path)]
            words = sum(len(note.text.split()) for note in notes)
            marks = Counter(mark.label for note in notes for mark in note.marks)
            total = f"{words:,} words, {sum(marks.values()):,} marks"
            print(f"{lang} {split}: {len(notes)} notes, {total}")
            print("  " + ", ".join(f"{label} {n}" for label, n in marks.most_common(16)))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["check", *paths] if paths:
            sys.exit(min(check(map(Path, paths)), 1))
        case ["count"]:
            count()
        case ["inconsistencies", lang] if lang in VARIETIES:
            print(*inconsistencies(lang), sep="\n")
        case ["agreement", *paths, "-o", out] if paths:
            Path(out).write_text(json.dumps(agree(map(Path, paths)), indent=1) + "\n", "utf-8")
        case _:
            sys.exit(__doc__)
