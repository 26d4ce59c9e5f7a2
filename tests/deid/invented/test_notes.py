"""Invented notes: offsets under every noise, seeds, gold Docs, held-out names."""

import random
import re
from itertools import product
from pathlib import Path

import pytest

from spacy_bioclin.corpora.convert import make_nlp
from spacy_bioclin.deid.invented.fillers import Texts
from spacy_bioclin.deid.invented.layouts import (
    FOLDER,
    Slot,
    list_slots,
    parse,
    read_layouts,
    split_lines,
)
from spacy_bioclin.deid.invented.names import SHARES, is_held_out, load_names
from spacy_bioclin.deid.invented.noise import GROUPS, add_typos, make_typo
from spacy_bioclin.deid.invented.notes import (
    Patient,
    check_layouts,
    fill,
    invent_notes,
    join,
    make_gold_docs,
)
from spacy_bioclin.deid.invented.values import END, load_values
from spacy_bioclin.deid.labels import load_types, scheme_labels
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.text import fold_alnum
from spacy_bioclin.types import GOLD_KEY

NOISES = [noise for group in GROUPS for noise, _ in group]
LETTERS = {lang: [FOLDER / lang / "letter.txt"] for lang in ("es", "en")}


def inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


@pytest.mark.parametrize("lang", ["es", "en"])
def test_offsets_stay_right(lang: str) -> None:
    values = load_values(lang, "training")
    layouts = read_layouts(LETTERS[lang], lang)
    for noise, seed in product(NOISES, range(25)):
        rng = random.Random(seed)
        pieces = fill(layouts[seed % len(layouts)], values, Texts(values), rng)
        note, noisy = join(pieces, ""), join(noise(pieces, rng), "")
        assert len(noisy.spans) == len(note.spans)
        shown = [piece for piece in pieces if piece.phi_type and piece.text]
        for piece, (start, end, phi_type), (at, to, same_type) in zip(
            shown, note.spans, noisy.spans, strict=True
        ):
            value, changed = note.text[start:end], noisy.text[at:to]
            assert (value, phi_type, phi_type) == (piece.text, piece.phi_type, same_type)
            if noise is not add_typos:
                assert fold_alnum(changed) == fold_alnum(value)
            assert changed == changed.strip()
            assert inside_word(noisy.text, at) <= inside_word(note.text, start)
            assert inside_word(noisy.text, to) <= inside_word(note.text, end)


def test_some_notes_have_lines_of_several_layouts() -> None:
    layouts = read_layouts(LETTERS["es"], "es")
    notes = list(invent_notes(layouts, "es", 100))
    mixed = [note for note in notes if " + " in note.where]
    assert 0.2 < len(mixed) / len(notes) < 0.4
    assert all(note.text.strip() for note in mixed) and all(note.spans for note in mixed[:5])
    assert not [note for note in invent_notes(layouts, "es", 50, noise=False) if "+" in note.where]


def test_lines_of_a_layout() -> None:
    nodes = parse("a {patient}\n\n[b|c\nd] e\n{date}", None)
    lines = split_lines(nodes)
    assert [len(line) for line in lines] == [2, 2, 1]
    assert lines[0] == ("a ", Slot("patient", "")) and lines[1][1] == " e"


def test_a_typo_changes_a_word() -> None:
    rng = random.Random(0)
    typos = {make_typo("Neumonía", rng) for _ in range(200)}
    assert len(typos) > 20
    assert all(typo[0] == "N" and abs(len(typo) - 8) <= 1 for typo in typos)


def test_the_same_seed_gives_the_same_notes() -> None:
    layouts = read_layouts([FOLDER / "es" / "letter.txt"], "es")
    notes = list(invent_notes(layouts, "es", 20, seed=3))
    assert notes == list(invent_notes(layouts, "es", 20, seed=3))
    assert notes[:5] == list(invent_notes(layouts, "es", 5, seed=3))
    others = list(invent_notes(layouts, "es", 20, seed=4))
    assert not {note.text for note in notes} & {note.text for note in others}


@pytest.mark.parametrize("lang", ["es", "en"])
def test_gold_docs_have_every_span(lang: str) -> None:
    scheme = "meddocan" if lang == "es" else "i2b2"
    notes = list(invent_notes(read_layouts(LETTERS[lang], lang), lang, 60, seed=1))
    labels = set(scheme_labels(scheme))
    n_spans = n_exact = 0
    for note, doc in zip(notes, make_gold_docs(notes, make_nlp(lang), scheme=scheme), strict=True):
        layer = doc.user_data[GOLD_KEY]["layers"]["phi"]
        assert doc.text == note.text
        assert [tuple(item[:2]) for item in layer] == [span[:2] for span in note.spans]
        assert len(doc.spans["phi"]) == len(note.spans)
        for span, (start, end, _) in zip(doc.spans["phi"], note.spans, strict=True):
            assert span.label_ in labels
            assert span.start_char <= start and end <= span.end_char
            n_spans += 1
            n_exact += (start, end) == (span.start_char, span.end_char)
    assert n_exact >= 0.99 * n_spans


@pytest.mark.parametrize("lang", ["es", "en"])
def test_held_out_names_are_never_in_the_training_share(lang: str) -> None:
    words: dict[str, set[str]] = {}
    for share in SHARES:
        names = load_names(lang, share)
        pools = [(*o.male, *o.female, *o.surname) for o in names.origins]
        every = {name for pool in (*pools, *names.nicks.values()) for name in pool}
        every |= {*load_values(lang, share).texts("city"), *names.own_nicks.values()}
        found = (fold_alnum(w) for name in every for w in re.findall(r"[^\W\d_]{4,}", name))
        words[share] = set(found)
    assert words["training"] and words["held-out"]
    assert not words["training"] & words["held-out"]


@pytest.mark.parametrize("share", SHARES)
def test_persons_are_of_their_share(share: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("{patient.full}; {city}; {relative_name.last}", "utf-8")
    layouts = read_layouts([tmp_path], "es")
    for note in invent_notes(layouts, "es", 40, names=share, noise=False):
        for word in re.findall(r"[^\W\d_]{4,}", note.text):
            assert is_held_out(word) == (share == "held-out")
    with pytest.raises(BioclinError, match="names = 'all': want one of"):
        next(invent_notes(layouts, "es", 1, names="all"))


@pytest.mark.parametrize("lang", ["es", "en"])
def test_every_slot_and_rule_can_be_written(lang: str) -> None:
    for share in SHARES:
        values = load_values(lang, share)
        rng = random.Random(0)
        for slot, forms in list_slots(lang).items():
            for form in ("", *forms):
                if slot == "text":
                    continue
                for _ in range(15):
                    assert Patient(values, rng).write(Slot(slot, form)).strip(f" {END}")


def test_types_are_those_of_the_labels() -> None:
    for lang in ("es", "en"):
        notes = check_layouts(LETTERS[lang], lang)
        assert {phi_type for note in notes for *_, phi_type in note.spans} <= set(load_types())


def test_values_are_diverse() -> None:
    values = load_values("es", "training")
    rng = random.Random(0)
    hospitals = {values.write("hospital", rng) for _ in range(500)}
    names = {Patient(values, rng).write(Slot("patient", "full")) for _ in range(500)}
    assert len(hospitals) > 450
    assert len(names) > 495


def test_one_person_in_a_note(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("{patient.full}|{patient.formal}|{record_id}|{record_id}")
    for note in invent_notes(read_layouts([tmp_path], "es"), "es", 50, noise=False):
        full, formal, number, again = note.text.split("|")
        assert sorted(map(fold_alnum, full.split())) == sorted(
            map(fold_alnum, formal.replace(",", " ").split())
        )
        assert number == again
