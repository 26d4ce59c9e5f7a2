"""Build regular expressions of many words that share their beginnings."""

import re
from collections.abc import Iterable
from typing import Any

BLANK = "_"  # in a form of the data: a blank that may be missing


def words_pattern(words: Iterable[str]) -> str:
    """Build a pattern that matches the longest of some words, trying each character once.

    words (Iterable[str]): "_" matches one blank or none.
    RETURNS (str): The pattern, one group that captures nothing.
    """
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for char in word:
            node = node.setdefault(char, {})
        node[""] = {}
    return _to_pattern(root)


def _to_pattern(node: dict[str, Any]) -> str:
    branches = []
    for char, inner in sorted(node.items()):
        if char:
            start = r"\s?" if char == BLANK else re.escape(char)
            branches.append(start + ("" if list(inner) == [""] else _to_pattern(inner)))
    if len(branches) == 1 and "" not in node:
        return branches[0]
    return f"(?:{'|'.join(branches)}){'?' if '' in node else ''}"
