"""Writes the demonstration corpus: invented Spanish and English clinical notes in brat format.

    python assets/demo/generate.py [FOLDER]     (default: the folder of this file)

Everything written is data: templates/LANG/{train,dev,test}.txt hold the sections of notes,
templates/LANG/lexicon.txt what is filled into them. Both are lists of blocks, each opened by a line
"== title". In a section or an entry

    {slot}          is an entry of that lexicon block, {Slot} and {SLOT} change its case;
    {slot+}         keeps the entry's tail, which stands after " | " (a drug's dose);
    {slot=text}     is replaced by the text: a mention that belongs to this section alone;
    [one|another]   one of the two is drawn;
    <man|woman>     follows the sex of the patient;
    # and *         are a digit and a digit other than 0 (in the lexicon only).

A slot named in SLOTS becomes an annotation when it stands in a section. Blocks "slot region" keep
the imaging, studies and findings of one section to one region of the body. The block
"slot (held out)" is drawn from in dev and test only. Same files, same bytes, on any Python.
"""

import random
import re
import sys
import unicodedata
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
LANGUAGES = ("es", "en")
NOTES = {"train": 120, "dev": 30, "test": 30}
SEED = 20
HELD_OUT_RATE = 0.2  # share of the draws in dev and test that are unseen in train, where possible
WHOLE_NOTE_RATE = 0.3
WRAPPED_RATE = 0.2  # share of notes with hard line breaks
TYPO_RATE = 0.006  # share of words outside entities with two letters swapped

# A note is either one "whole" section or these in order; "story" and "findings" may come twice.
SECTIONS = ("head", "story", "findings", "drugs", "close")
SLOTS = {
    "PROBLEM": "problem disease symptom finding sound abnormality tumour",
    "DRUG": "drug rescue antibiotic chemo",
    "PROCEDURE": "procedure imaging study lab_test operation therapy oncology",
    "NAME": "patient doctor doctora relative",
    "DATE": "date admission discharge past period next birth",
    "AGE": "age years",
    "ID": "record id licence",
    "PHONE": "phone",
    "EMAIL": "email",
    "ADDRESS": "address town",
    "HOSPITAL": "hospital clinic",
    "PROFESSION": "profession",
}
LABELS = {slot: label for label, slots in SLOTS.items() for slot in slots.split()}
# The same wherever one note says it. Days of a stay: admission before the 10th, notes up to the
# 19th, discharge after it; what is past stands in earlier years, what is next in later ones.
ONCE_PER_NOTE = {"patient", "years", "record", "hospital", "stay_mm", "stay_year"}

SLOT = re.compile(r"\{(\w+)(\+?)(?:=([^}]*))?\}")
EITHER = re.compile(r"\[([^][|]*(?:\|[^][|]*)+)\]")
BY_SEX = re.compile(r"<([^<>|]*)\|([^<>|]*)>")

Blocks = dict[str, list[str]]
Span = tuple[int, int, str]


class Note(NamedTuple):
    """text (str), and spans (list[Span]): (start, end, label) in characters, sorted, disjoint."""

    text: str
    spans: list[Span]


def read_blocks(path: Path) -> Blocks:
    """The blocks of a file by title; a title may open several blocks."""
    blocks: Blocks = {}
    for block in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, body = block.partition("\n")
        blocks.setdefault(title.strip(), []).append(body.strip("\n"))
    return blocks


def read_lexicon(path: Path) -> Blocks:
    """The entries of a lexicon file, one a line, by slot."""
    return {
        slot: [line for body in bodies for line in body.splitlines() if line]
        for slot, bodies in read_blocks(path).items()
    }


class Decks:
    """Deals the items of lists like cards, so that all are used before one comes again."""

    def __init__(self, lists: Blocks, rng: random.Random, held_out_rate: float = 0.0) -> None:
        self.lists, self.rng, self.held_out_rate = lists, rng, held_out_rate
        self.left: Blocks = {}

    def draw(self, name: str) -> str:
        held_out = f"{name} (held out)"
        if held_out in self.lists and self.rng.random() < self.held_out_rate:
            name = held_out
        if not self.left.get(name):
            self.left[name] = list(self.lists[name])
            self.rng.shuffle(self.left[name])
        return self.left[name].pop()


class Writer:
    """Fills in the sections of one note."""

    def __init__(self, lexicon: Decks, rng: random.Random) -> None:
        self.lexicon, self.rng = lexicon, rng
        self.is_woman = rng.random() < 0.5
        self.fixed: dict[str, str] = {}
        self.region = ""

    def choose(self, text: str) -> str:
        text = EITHER.sub(lambda match: self.rng.choice(match[1].split("|")), text)
        return BY_SEX.sub(lambda match: match[2] if self.is_woman else match[1], text)

    def entry(self, slot: str) -> str:
        """An entry of the lexicon with its own slots and digits filled in, tail included."""
        if slot in self.fixed:
            return self.fixed[slot]
        block = slot if slot in self.lexicon.lists else f"{slot} {self.region}"
        text = self.choose(self.lexicon.draw(block))
        text = SLOT.sub(lambda match: self.entry(match[1]), text)
        text = re.sub(r"[#*]", lambda match: str(self.rng.randrange(match[0] == "*", 10)), text)
        if slot == "email":
            text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
        if slot in ONCE_PER_NOTE:
            self.fixed[slot] = text
        return text

    def write(self, section: str) -> Note:
        text, spans, done = "", [], 0
        self.region = self.entry("region")
        section = self.choose(section)
        for match in SLOT.finditer(section):
            name, with_tail, literal = match.groups()
            slot = name.lower()
            value, _, tail = (literal or self.entry(slot)).partition(" | ")
            if name.isupper():
                value = value.upper()
            elif name[0].isupper():
                value = value[0].upper() + value[1:]
            text += section[done : match.start()]
            if slot in LABELS:
                spans.append((len(text), len(text) + len(value), LABELS[slot]))
            text += f"{value} {tail}" if with_tail else value
            done = match.end()
        return Note(text + section[done:], spans)


def join(notes: list[Note]) -> Note:
    text, spans = "", []
    for note in notes:
        text += "\n\n" if text else ""
        spans += [(start + len(text), end + len(text), label) for start, end, label in note.spans]
        text += note.text
    return Note(text + "\n", spans)


def swap_letters(note: Note, rng: random.Random) -> Note:
    """Typing errors outside entities. The length of the text stays the same."""
    inside = {i for start, end, _ in note.spans for i in range(start, end)}
    letters = list(note.text)
    for match in re.finditer(r"[^\W\d_]{5,}", note.text):
        at = rng.randrange(match.start() + 1, match.end() - 1)
        if rng.random() < TYPO_RATE and inside.isdisjoint(range(*match.span())):
            letters[at], letters[at + 1] = letters[at + 1], letters[at]
    return Note("".join(letters), note.spans)


def wrap(note: Note, width: int) -> Note:
    """Hard line breaks instead of blanks, never inside an entity. The length stays the same."""
    inside = {i for start, end, _ in note.spans for i in range(start, end)}
    letters, line_start, blank = list(note.text), 0, -1
    for i, letter in enumerate(note.text):
        if letter == "\n":
            line_start, blank = i + 1, -1
        elif letter == " " and i not in inside:
            blank = i
        if i - line_start >= width and blank > 0:
            letters[blank] = "\n"
            line_start, blank = blank + 1, -1
    return Note("".join(letters), note.spans)


def make_split(templates: Blocks, lexicon: Blocks, split: str, rng: random.Random) -> list[Note]:
    """The notes of one split.

    templates (Blocks): Sections of this split by kind ("whole", "head", "story", ...).
    lexicon (Blocks): Entries by slot.
    """
    sections = Decks(templates, rng)
    entries = Decks(lexicon, rng, 0.0 if split == "train" else HELD_OUT_RATE)
    notes = []
    for _ in range(NOTES[split]):
        writer = Writer(entries, rng)
        kinds = ["whole"] if rng.random() < WHOLE_NOTE_RATE else list(SECTIONS)
        if kinds != ["whole"] and rng.random() < 0.4:
            again = rng.choice(("story", "findings"))
            kinds.insert(kinds.index(again), again)
        note = swap_letters(join([writer.write(sections.draw(kind)) for kind in kinds]), rng)
        if rng.random() < WRAPPED_RATE:
            note = wrap(note, rng.randrange(55, 85))
        notes.append(note)
    return notes


def to_brat(note: Note) -> str:
    return "".join(
        f"T{i}\t{label} {start} {end}\t{note.text[start:end]}\n"
        for i, (start, end, label) in enumerate(note.spans, 1)
    )


def make_corpus() -> dict[str, str]:
    """Contents of every file of the corpus, by path relative to the corpus folder."""
    files = {}
    for lang in LANGUAGES:
        lexicon = read_lexicon(HERE / "templates" / lang / "lexicon.txt")
        for split in NOTES:
            templates = read_blocks(HERE / "templates" / lang / f"{split}.txt")
            notes = make_split(templates, lexicon, split, random.Random(f"{SEED} {lang} {split}"))
            for i, note in enumerate(notes, 1):
                files[f"{lang}/{split}/{lang}-{split}-{i:03}.txt"] = note.text
                files[f"{lang}/{split}/{lang}-{split}-{i:03}.ann"] = to_brat(note)
    return files


def main(folder: Path) -> None:
    for lang in LANGUAGES:
        for split in NOTES:
            (folder / lang / split).mkdir(parents=True, exist_ok=True)
            for old in (folder / lang / split).glob(f"{lang}-{split}-*"):
                old.unlink()
    for path, content in make_corpus().items():
        (folder / path).write_text(content, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
