"""JSON lines: our own records and scispaCy's."""

import json
from pathlib import Path

from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers.jsonl import read_jsonl


def read(tmp_path: Path, *lines: str) -> tuple[list[Concept], SkipReport]:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    report = SkipReport()
    return list(read_jsonl(path, report)), report


def test_our_own_records_come_back(tmp_path: Path) -> None:
    concept = Concept(
        *("A", "dolor", "es", (Alias("pain", "en"), Alias("ache"))),
        *(("T1",), "Duele.", ("B",), ("X:1",), ("A9",)),
    )
    concepts, report = read(tmp_path, json.dumps(concept._asdict()), "")
    assert concepts == [concept]
    assert not report.counts


def test_aliases_may_be_strings_lists_or_objects(tmp_path: Path) -> None:
    aliases = ["a", ["b", "ES"], {"text": "c", "lang": "en"}, ["d", None], " "]
    concepts, _ = read(tmp_path, json.dumps({"id": "A", "aliases": aliases}))
    assert concepts == [
        Concept("A", aliases=(Alias("a"), Alias("b", "es"), Alias("c", "en"), Alias("d")))
    ]


def test_scispacy(tmp_path: Path) -> None:
    record = {
        "concept_id": "C1",
        "canonical_name": "Pain",
        "aliases": ["Ache"],
        "types": ["T184"],
        "definition": None,
        "other": 3,
    }
    concepts, _ = read(tmp_path, json.dumps(record))
    assert concepts == [Concept("C1", "Pain", aliases=(Alias("Ache"),), types=("T184",))]


def test_broken_lines_are_counted(tmp_path: Path) -> None:
    concepts, report = read(
        tmp_path,
        '{"id": "A", "name"',
        "[" * 100_000,
        "[1]",
        '{"name": "x"}',
        '{"id": "A"}',
        '{"id": 1, "name": "x"}',
        '{"id": "A", "name": "\\ud800"}',
        '{"id": "A", "aliases": "x"}',
        '{"id": "A", "aliases": [["x", "es", "more"]]}',
        '{"id": "B", "name": "b"}',
    )
    assert concepts == [Concept("B", "b")]
    assert report.counts == {
        "broken JSON": 2,
        "no JSON object": 1,
        "no id": 1,
        "no name": 1,
        "value that is no text, or no list of texts": 4,
    }
