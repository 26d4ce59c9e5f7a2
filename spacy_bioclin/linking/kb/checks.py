"""Check the arrays of a knowledge base before their numbers are used: compiled code follows them
without looking, and a wrong one reads foreign memory or links to another concept.

What must hold of each array is in arrays.yml. Their sizes are compared when a knowledge base is
opened, their numbers when an array is first used, in one pass over it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import srsly

from ...errors import BioclinError

RULES: dict[str, dict[str, Any]] = srsly.read_yaml(Path(__file__).with_name("arrays.yml"))
# What is counted -> the array of where their lists begin.
COUNTED = {
    "concepts": "ids_at",
    "names": "names_at",
    "references": "xrefs_at",
    "alternatives": "other_ids_at",
    "grams": "ngram.gram_start",
    "words": "ngram.word_start",
    "keys": "ngram.name_start",
}
# Numbers that are compared at once, so that few are in memory.
BLOCK = 2**16
AGAIN = "copy the folder again, or build it again"


def count_rows(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> dict[str, int]:
    """Count the concepts, names, … of a knowledge base, and the numbers of each array."""
    lists = {"types": len(meta["types"]), "langs": len(meta["lang_codes"])}
    sizes = {name: len(array) for name, array in arrays.items()}
    # "types" is a list of the description and an array: nothing points to rows of the array.
    return {**sizes, **{what: sizes[name] - 1 for what, name in COUNTED.items()}, **lists}


def find_wrong_size(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> dict[str, str]:
    """Find arrays whose type or size does not fit the others, without reading them.

    RETURNS (dict[str, str]): Name of the array -> what is wrong.
    """
    wrong = {
        name: f"has the type {array.dtype.str} and the shape {list(array.shape)}"
        for name, array in arrays.items()
        if array.ndim != 1 or array.dtype.str[1:] != RULES[name]["dtype"]
    }
    if wrong:
        return wrong
    counts = count_rows(arrays, meta)
    for name, rule in RULES.items():
        size, starts_of, per = len(arrays[name]), rule.get("starts_of"), rule.get("per")
        n_lists = size - (1 if starts_of else 0)
        if per and n_lists != counts[per]:
            wrong[name] = f"has {n_lists:,} numbers for {counts[per]:,} {per}"
        elif starts_of and n_lists < 0:
            wrong[name] = "is empty"
        elif starts_of and (arrays[name][0] != 0 or arrays[name][-1] != _end(arrays, counts, rule)):
            wrong[name] = f"does not begin and end where {starts_of} do"
    for what in ("concepts", "names"):
        if meta[f"n_{what}"] != counts[what]:
            wrong[COUNTED[what]] = f"has {counts[what]:,} {what}, not {meta[f'n_{what}']:,}"
    return wrong


def find_wrong_number(name: str, array: np.ndarray, counts: Mapping[str, int]) -> str:
    """Find numbers of an array that point nowhere, or are not in order.

    counts (Mapping[str, int]): See `count_rows`.
    RETURNS (str): What is wrong, or "".
    """
    rule = RULES[name]
    if rule.get("starts_of"):
        if not _increases(array, strictly=rule.get("filled", False)):
            return "is not increasing"
    elif rule.get("order") and not _increases(array, strictly=False):
        return "is not sorted"
    elif len(array) == 0:
        return ""
    elif rows := rule.get("rows"):
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= counts[rows]:
            return f"has row {low if low < 0 else high:,} of {counts[rows]:,} {rows}"
    elif rule.get("positive") and not (array.min() > 0 and array.max() < np.inf):
        return "has a weight that is not a positive number"
    return ""


def _end(arrays: Mapping[str, np.ndarray], counts: Mapping[str, int], rule: dict[str, Any]) -> int:
    target = rule["starts_of"]
    return len(arrays[target]) if target in arrays else counts[target]


def _increases(array: np.ndarray, *, strictly: bool) -> bool:
    wrong = np.less_equal if strictly else np.less
    for i in range(0, len(array), BLOCK):
        block = array[i : i + BLOCK + 1]
        if wrong(block[1:], block[:-1]).any():
            return False
    return True


class CheckedArrays(Mapping[str, np.ndarray]):
    """The arrays of a knowledge base by name, each checked when it is first used.

    arrays (Mapping[str, np.ndarray]): All of them.
    meta (Mapping): Description of the knowledge base.
    where (str): Its folder, for errors.
    RAISES (BioclinError): Their types or sizes are not those of one knowledge base.
    """

    def __init__(
        self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], where: str
    ) -> None:
        self._arrays, self._where = dict(arrays), where
        for name, what in find_wrong_size(arrays, meta).items():
            raise self._error(name, what)
        self._counts = count_rows(arrays, meta)
        self._checked: set[str] = set()

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._arrays[name]
        if name not in self._checked:
            if what := find_wrong_number(name, array, self._counts):
                raise self._error(name, what)
            self._checked.add(name)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def check(self) -> None:
        """Check all arrays.

        RAISES (BioclinError): One is damaged.
        """
        for name in self:
            _ = self[name]

    def _error(self, name: str, what: str) -> BioclinError:
        return BioclinError(f"{self._where}, {name}.npy {what}: it is damaged; {AGAIN}")
