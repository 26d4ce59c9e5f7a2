"""The annotated assertions are well formed, and their places are in the raw text."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

SETS = Path(__file__).parents[2] / "benchmarks" / "context" / "sets"
FLAGS = {"negated", "uncertain", "historical", "hypothetical", "family"}
PLACE = {"file", "line", "start", "end", "drawn"}


def read_set(name: str) -> list[dict[str, Any]]:
    """Read one set, a sentence for each line."""
    return [json.loads(line) for line in (SETS / name).read_text("utf-8").splitlines()]


def check_mentions(sent: dict[str, Any], length: int) -> None:
    """Check keys, order and offsets of a sentence's mentions."""
    last = 0
    assert sent["mentions"]
    for mention in sent["mentions"]:
        assert {"start", "end"} <= mention.keys() <= {"start", "end"} | FLAGS
        assert all(mention[flag] is True for flag in mention.keys() & FLAGS)
        assert last <= mention["start"] < mention["end"] <= length
        last = mention["end"]


@pytest.mark.parametrize("lang", ["es", "en"])
def test_orders_are_well_formed(lang: str):
    orders = read_set(f"orders_{lang}.jsonl")
    assert len(orders) >= 150 and len({order["text"] for order in orders}) == len(orders)
    for order in orders:
        last = 0
        for drug in order["medications"]:
            assert last <= drug["start"] < drug["end"] <= len(order["text"])
            assert order["text"][drug["start"] : drug["end"]].strip() and drug["status"]
            last = drug["end"]


def test_assertions_are_well_formed():
    sents = read_set("assertions_en.jsonl")
    assert len(sents) >= 300
    for sent in sents:
        assert sent.keys() == PLACE | {"mentions"}  # and no text
        assert sent["drawn"] in ("cue", "random")
        check_mentions(sent, sent["end"] - sent["start"])
    places = {(sent["file"], sent["line"], sent["start"]) for sent in sents}
    assert len(places) == len(sents)


def test_traps_are_well_formed():
    sents = read_set("traps_en.jsonl")
    assert len({sent["text"] for sent in sents}) == len(sents) >= 100
    for sent in sents:
        assert sent.keys() == {"text", "mentions"}
        check_mentions(sent, len(sent["text"]))
        for mention in sent["mentions"]:
            text = sent["text"][mention["start"] : mention["end"]]
            assert text == text.strip() != ""


@pytest.mark.corpora
def test_places_are_in_the_raw_text(data_dir):
    sents = read_set("assertions_en.jsonl")
    lines = {
        file: lzma.decompress((data_dir / "pretraining" / file).read_bytes()).decode().split("\n")
        for file in {sent["file"] for sent in sents}
    }
    for sent in sents:
        assert sent["line"] < len(lines[sent["file"]])
        text = lines[sent["file"]][sent["line"]][sent["start"] : sent["end"]]
        place = sent["file"], sent["line"]  # shown in place of the text if a check fails
        whole = len(text) == sent["end"] - sent["start"] and text == text.strip()
        assert whole, place
        for mention in sent["mentions"]:
            part = text[mention["start"] : mention["end"]]
            whole = part == part.strip() != ""
            assert whole, place
