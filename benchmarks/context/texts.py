"""The texts that the context benchmarks read: notes, lines of raw text, annotated sentences."""

import json
import lzma
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.harness import data_dir

SETS = Path(__file__).with_name("sets")
ENGLISH = "en/clinical_notes_and_dialogues.txt.xz"


@cache
def read_lines(file: str) -> list[str]:
    """Read the lines between line feeds of a file of raw text."""
    return lzma.decompress((data_dir() / "pretraining" / file).read_bytes()).decode().split("\n")


def read_english() -> list[str]:
    """Read the English notes, without the dialogues."""
    lines = read_lines(ENGLISH)
    return [line for line in lines if line and not ("Patient:" in line or "Doctor:" in line)]


def read_set(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the annotated sentences of a file of sets/, each with its text."""
    for row in path.read_text("utf-8").splitlines():
        sent = json.loads(row)
        if "text" in sent:
            yield sent["text"], sent
        else:
            yield read_lines(sent["file"])[sent["line"]][sent["start"] : sent["end"]], sent
