"""The demonstration corpus is what its README says: reproducible, exact and fairly split."""

import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "assets" / "demo"
LANGUAGES = ("es", "en")
SPLITS = ("train", "dev", "test")
CLINICAL = {"PROBLEM", "DRUG", "PROCEDURE"}
PHI = {"NAME", "DATE", "AGE", "ID", "PHONE", "EMAIL", "ADDRESS", "HOSPITAL", "PROFESSION"}
ANN_LINE = re.compile(r"T\d+\t([A-Z]+) (\d+) (\d+)\t(.+)")

Span = tuple[str, int, int, str]


def read_note(ann: Path) -> tuple[str, list[Span]]:
    matches = [ANN_LINE.fullmatch(line) for line in ann.read_text("utf-8").splitlines()]
    spans = [(m[1], int(m[2]), int(m[3]), m[4]) for m in matches if m]
    assert len(spans) == len(matches)
    return ann.with_suffix(".txt").read_bytes().decode("utf-8"), spans


@cache
def read_split(lang: str, split: str) -> dict[str, tuple[str, list[Span]]]:
    return {path.stem: read_note(path) for path in sorted((DEMO / lang / split).glob("*.ann"))}


def template_blocks(path: Path) -> list[str]:
    """Titles and bodies of the blocks of a template file."""
    return re.split(r"^== ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]


def test_generator_recreates_the_committed_bytes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-I", str(DEMO / "generate.py"), str(tmp_path)], check=True)
    made = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*.*")}
    committed = {
        p.relative_to(DEMO): p.read_bytes()
        for lang in LANGUAGES
        for split in SPLITS
        for p in (DEMO / lang / split).iterdir()
    }
    assert made == committed


@pytest.mark.parametrize("lang", LANGUAGES)
def test_size(lang: str) -> None:
    counts = {split: len(read_split(lang, split)) for split in SPLITS}
    assert counts == {"train": 120, "dev": 30, "test": 30}
    texts = [text for split in SPLITS for text, _ in read_split(lang, split).values()]
    assert len(set(texts)) == len(texts)
    assert 120 <= sum(len(text.split()) for text in texts) / len(texts) <= 250


@pytest.mark.parametrize("lang", LANGUAGES)
def test_offsets_are_exact_and_every_label_occurs(lang: str) -> None:
    for split in SPLITS:
        counts: Counter[str] = Counter()
        for name, (text, spans) in read_split(lang, split).items():
            last_end = 0
            for label, start, end, surface in spans:
                assert text[start:end] == surface, (name, label, start)
                assert surface.strip() == surface and "\n" not in surface, (name, start)
                assert start >= last_end, (name, start)
                last_end = end
                counts[label] += 1
        assert set(counts) == CLINICAL | PHI, split
        assert min(counts.values()) >= 5, split


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_template_stands_in_two_splits(lang: str) -> None:
    owner: dict[str, str] = {}
    for split in SPLITS:
        blocks = template_blocks(DEMO / "templates" / lang / f"{split}.txt")
        assert len(blocks) >= (24 if split == "train" else 8)
        for block in blocks:
            for line in block.splitlines()[1:]:
                words = re.findall(r"\w+", re.sub(r"{\w+\+?(=[^}]*)?}", "", line).lower())
                if len(words) >= 3:
                    assert owner.setdefault(" ".join(words), split) == split, line


@pytest.mark.parametrize("lang", LANGUAGES)
def test_dev_and_test_have_clinical_entities_unseen_in_train(lang: str) -> None:
    def mentions(split: str) -> list[tuple[str, str]]:
        notes = read_split(lang, split).values()
        return [(s[0], s[3].lower()) for _, spans in notes for s in spans if s[0] in CLINICAL]

    seen = set(mentions("train"))
    for split in ("dev", "test"):
        unseen = [mention for mention in mentions(split) if mention not in seen]
        assert 0.1 < len(unseen) / len(mentions(split)) < 0.4


@pytest.mark.slow
@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_to_annotate_was_left_unannotated(lang: str) -> None:
    """A mention that is an entity somewhere is never plain text elsewhere."""
    notes = {name: note for split in SPLITS for name, note in read_split(lang, split).items()}
    known = {s[3].lower() for _, spans in notes.values() for s in spans if s[0] in CLINICAL}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(known, key=len)[::-1]))})\b", re.I)
    missed = []
    for name, (text, spans) in notes.items():
        inside = {i for _, start, end, _ in spans for i in range(start, end)}
        for match in pattern.finditer(text):
            if inside.isdisjoint(range(*match.span())):
                missed.append((name, match.start(), match[0]))
    assert missed == []


def test_identifiers_are_invented() -> None:
    for lang in LANGUAGES:
        for split in SPLITS:
            for _, spans in read_split(lang, split).values():
                for label, _, _, surface in spans:
                    digits = re.sub(r"\D", "", surface)
                    if label == "PHONE":
                        assert re.match(r"(34)?600000|9100000|(\d{3})?55501", digits), surface
                    if label == "EMAIL":
                        assert surface.endswith("@example.org")
                    if match := re.fullmatch(r"(\d{8})-?([A-Z])", surface):
                        assert match[2] != "TRWAGMYFPDXBNJZSQVHLCKE"[int(match[1]) % 23]


def test_notes_without_annotations() -> None:
    paths = [path.relative_to(DEMO / "notes") for path in (DEMO / "notes").rglob("*.*")]
    assert {path.parts[0] for path in paths} == set(LANGUAGES)
    assert {path.suffix for path in paths} == {".txt"}


def test_corpus_is_small() -> None:
    assert sum(p.stat().st_size for p in DEMO.rglob("*") if p.is_file()) < 1_500_000


def test_terminology_has_names_in_both_languages_for_what_the_notes_say() -> None:
    lines = (DEMO / "terminology.tsv").read_text("utf-8").splitlines()
    assert lines[0] == "id\tlang\tname\ttype\tparent"
    rows = [line.split("\t") for line in lines[1:]]
    ids = [row[0] for row in rows]
    assert ids == [f"DEMO:{i // 2 + 1:04}" for i in range(len(rows))]
    assert [row[1] for row in rows] == ["en", "es"] * (len(rows) // 2)
    assert {row[3] for row in rows} == {"problem", "drug", "procedure"}
    assert {row[4] for row in rows} - {""} <= set(ids)
    texts = {
        lang: " ".join(text for split in SPLITS for text, _ in read_split(lang, split).values())
        for lang in LANGUAGES
    }
    found = [any(name in texts[row[1]] for name in row[2].split("|")) for row in rows]
    assert sum(found) > 0.8 * len(found)
