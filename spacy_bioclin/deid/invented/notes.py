"""Fill layouts with invented values, and make gold Docs of them."""

import random
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ...corpora.docs import make_gold_doc
from ...corpora.report import LossReport
from ...types import AnnotatedText, CharSpan, SpanAnnotation
from ..labels import label_of
from .dates import draw_age, draw_birth_date, draw_date, write_age, write_date
from .fillers import Texts
from .layouts import Layout, Node, Slot, choose, find_type, read_layouts, split_lines
from .noise import Piece, add_noise
from .persons import Person, draw_person, write_person
from .values import END, Values, load_values

PERSONS = ("patient", "doctor", "doctor2", "nurse", "relative_name", "relative_name2")
# What a patient has one of: the same in the whole note.
STABLE = ("record_id", "national_id", "insurance_id", "health_plan_id")
OFTEN_STABLE = ("hospital", "city", "health_centre", "contact_id", "profession", "country")
REPEATED = 0.5  # share of the latter that are what the note had before
SPANS_KEY = "phi"
MIXED = 0.3  # share of notes with lines of several layouts
N_MIXED = (2, 5)  # layouts, and lines of each
N_MIXED_LINES = (1, 4)
YOUNG = 16  # age up to which a patient may be called a child


class InventedNote(NamedTuple):
    """A note with its PHI.

    spans (list[CharSpan]): Start, end and PHI type, in order, without overlaps.
    """

    text: str
    spans: list[CharSpan]
    where: str


class Patient:
    """The invented people, days and numbers of a note.

    A slot has the same person everywhere, and the patient one age, birth date and record number.
    """

    def __init__(self, values: Values, rng: random.Random) -> None:
        self.values, self.rng = values, rng
        self.age = draw_age(rng)
        self.day: date = draw_date(rng)
        self.birth_date = draw_birth_date(self.age, self.day, rng)
        self.persons: dict[str, Person] = {"patient": draw_person(values, rng)}
        self.kept: dict[str, str] = {}

    def write(self, slot: Slot) -> str:
        """Write a value of a slot that is PHI."""
        name, form = slot
        values, rng = self.values, self.rng
        if name in PERSONS:
            if name not in self.persons:
                self.persons[name] = draw_person(values, rng)
            return write_person(self.persons[name], form, values, rng)
        if name == "sex":
            key = f"sex_{self.persons['patient'].sex}"
            if not form and self.age < YOUNG and rng.random() < 0.5:
                form = "young"
            return values.write(f"{key}.{form}" if form else key, rng)
        if name == "age":
            return write_age(self.age, form, values, rng)
        if name == "birth_date":
            return write_date(self.birth_date, form, values, rng)
        if name == "date":
            # Most dates of a note are near each other.
            day = self.day if rng.random() < 0.3 else draw_date(rng)
            return write_date(day, form, values, rng)
        if name in STABLE or (name in OFTEN_STABLE and rng.random() < REPEATED):
            if name not in self.kept:
                self.kept[name] = values.write(name, rng)
            return self.kept[name]
        return values.write(f"{name}.{form}" if form else name, rng)


def fill(layout: Layout, values: Values, texts: Texts, rng: random.Random) -> list[Piece]:
    """Fill a layout.

    RETURNS (list[Piece]): The note in pieces: PHI, and what is between.
    """
    patient = Patient(values, rng)
    pieces: list[Piece] = []
    for part in choose(layout.nodes, rng):
        if isinstance(part, str):
            pieces.append(Piece(part))
        elif part.name == "text":
            n_sentences = int(part.form) if part.form else rng.randint(1, 2)
            pieces += texts.draw(n_sentences, rng)
        elif phi_type := find_type(part.name, values.lang):
            value, _, after = patient.write(part).partition(END)
            # An empty alternative of a rule may have left a blank.
            pieces += [Piece(" ".join(value.split()), phi_type), Piece(after)]
        else:
            pieces.append(Piece(values.write(part.name, rng)))
    return join_plain(pieces)


def join_plain(pieces: Iterable[Piece]) -> list[Piece]:
    """Join neighbours that are no PHI, and leave out those without text."""
    joined: list[Piece] = []
    filled = (piece for piece in pieces if piece.text)
    for is_plain, group in groupby(filled, lambda piece: piece.phi_type is None):
        found = list(group)
        joined += [Piece("".join(piece.text for piece in found))] if is_plain else found
    return joined


def mix(layouts: Sequence[Layout], rng: random.Random) -> Layout:
    """Put some lines of several layouts together, so that a line is seen in many surroundings.

    layouts (Sequence[Layout]): The layouts to choose from.
    """
    chosen = rng.sample(layouts, min(rng.randint(*N_MIXED), len(layouts)))
    nodes: list[Node] = []
    for layout in chosen:
        lines = split_lines(layout.nodes)
        first = rng.randrange(len(lines))
        for line in lines[first : first + rng.randint(*N_MIXED_LINES)]:
            nodes += [*line, "\n"]
    return Layout(" + ".join(layout.where for layout in chosen), tuple(nodes[:-1]))


def join(pieces: Iterable[Piece], where: str) -> InventedNote:
    """Join the pieces of a note."""
    parts: list[str] = []
    spans: list[CharSpan] = []
    at = 0
    for text, phi_type in pieces:
        end = at + len(text)
        if phi_type is not None and text:
            spans.append((at, end, phi_type))
        parts.append(text)
        at = end
    return InventedNote("".join(parts), spans, where)


def invent_notes(
    layouts: Sequence[Layout],
    lang: str,
    number: int,
    *,
    seed: int = 0,
    names: str = "training",
    texts: Texts | None = None,
    noise: bool = True,
) -> Iterator[InventedNote]:
    """Invent notes: every layout is filled equally often, in random order.

    With noise, some notes have lines of several layouts instead.

    layouts (Sequence[Layout]): See `read_layouts`.
    lang (str): Language of the layouts, "es" or "en".
    number (int): Number of notes.
    seed (int): Random seed; the same seed gives the same notes.
    names (str): "training", or "held-out" for names and places that the others never have.
    texts (Texts | None): Sentences for `{text}`; None for the included ones.
    noise (bool): Write some notes in lower case, without accents, with typos and so on.
    """
    values = load_values(lang, names)
    texts = texts or Texts(values)
    order: list[Layout] = []
    shuffle = random.Random(f"order {seed}")
    for i in range(number):
        if not order:
            order = list(layouts)
            shuffle.shuffle(order)
        layout = order.pop()
        rng = random.Random(f"{seed} {names} {i}")
        if noise and rng.random() < MIXED:
            layout = mix(layouts, rng)
        pieces = fill(layout, values, texts, rng)
        yield join(add_noise(pieces, rng) if noise else pieces, layout.where)


def make_gold_docs(
    notes: Iterable[InventedNote],
    nlp: Language,
    *,
    scheme: str,
    name: str = "invented",
) -> Iterator[Doc]:
    """Make gold Docs of notes, as `bioclin convert` does of a corpus.

    nlp (Language): Tokenizes, see `corpora.convert.make_nlp`.
    scheme (str): Label scheme, "meddocan", "i2b2" or "hipaa".
    name (str): Beginning of the ids of the Docs.
    """
    report = LossReport()
    for i, note in enumerate(notes):
        found = [(start, end, label_of(type, scheme)) for start, end, type in note.spans]
        spans = tuple(
            SpanAnnotation(f"T{n}", label, ((start, end),), " ".join(note.text[start:end].split()))
            for n, (start, end, label) in enumerate(found, start=1)
        )
        yield make_gold_doc(
            nlp,
            AnnotatedText(f"{name}-{i}", note.text, spans),
            layers={"*": SPANS_KEY},
            report=report,
        )


def check_layouts(paths: Iterable[Path], lang: str, *, seed: int = 0) -> list[InventedNote]:
    """Parse every layout and fill it once, without noise.

    paths (Iterable[Path]): Files and folders; none are the included layouts.
    lang (str): Language, "es" or "en".
    RETURNS (list[InventedNote]): A note of each layout, in random order.
    RAISES (BioclinError): A layout has a mistake.
    """
    layouts = read_layouts(paths, lang)
    return list(invent_notes(layouts, lang, len(layouts), seed=seed, noise=False))
