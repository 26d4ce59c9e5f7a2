"""The texts that the context benchmarks read: notes, lines of raw text, annotated sentences."""

import json
import lzma
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.harness import data_dir

SETS = Path(__file__).with_name("sets")
TARGET = re.compile(r"[^\W\d_]{5,}")
ENGLISH = "en/clinical_notes_and_dialogues.txt.xz"


@cache
def read_lines(file: str) -> list[str]:
    """Read the lines between line feeds of a file of raw text."""
    return lzma.decompress((data_dir() / "pretraining" / file).read_bytes()).decode().split("\n")


def read_english() -> list[str]:
    """Read the English notes, without the dialogues."""
    lines = read_lines(ENGLISH)
    return [line for line in lines if line and not ("Patient:" in line or "Doctor:" in line)]


def find_targets(text: str) -> list[tuple[int, int]]:
    """Find every tenth word of at least five letters."""
    return [match.span() for match in TARGET.finditer(text)][::10]


def read_set(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the annotated sentences of a file of sets/, each with its text."""
    for row in path.read_text("utf-8").splitlines():
        sent = json.loads(row)
        if "text" in sent:
            yield sent["text"], sent
        else:
            yield read_lines(sent["file"])[sent["line"]][sent["start"] : sent["end"]], sent
