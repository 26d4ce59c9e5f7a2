"""Find everything that is wrong with a knowledge base: `bioclin kb check`."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BioclinError
from ..names.columns import Strings
from .checks import AGAIN, count_rows, find_wrong_number, find_wrong_size
from .concepts import wrong_id
from .storage import (
    ARRAYS,
    FILES,
    META,
    array_hash,
    complete,
    load_array,
    meta_hash,
    read_meta,
    stored,
)

VECTORS = "vectors.f16"  # in a folder of `bioclin embed-kb`, which may be inside
COLUMNS = ("ids", "names", "definitions", "xrefs", "other_ids")
# Bytes of UTF-8 that continue a character: 10xxxxxx.
CONTINUES, MASK = 0b1000_0000, 0b1100_0000


def check_folder(path: Path) -> tuple[list[str], dict[str, Any]]:
    """Find what is wrong with the folder of a knowledge base.

    path (Path): The folder.
    RETURNS (tuple[list[str], dict[str, Any]]): What is wrong, one line for each fault, which begins
        with the name of the file; and the description.
    RAISES (BioclinError): It is not a knowledge base, or its description cannot be read.
    """
    meta = read_meta(path)
    faults: list[str] = []
    arrays = {}
    for name in sorted(stored(meta)):
        try:
            arrays[name] = load_array(path, name, meta)
        except BioclinError as error:
            faults.append(str(error).removeprefix(f"{path}/"))
    foreign = (file.name for file in sorted(path.iterdir()) if not (file / VECTORS).is_file())
    faults += [
        f"{name}: does not belong to a knowledge base: move it to another folder"
        for name in foreign
        if not re.fullmatch(FILES, name)
    ]
    if not faults:
        try:
            arrays = complete(arrays, meta, str(path))
        except BioclinError as error:
            faults.append(str(error).removeprefix(f"{path}, "))
    return [*faults, *find_faults(arrays, meta)], meta


def find_faults(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Iterator[str]:
    """Find what is wrong with arrays and their description: hashes, then sizes, numbers and texts.

    arrays (Mapping[str, np.ndarray]): All that could be read. Sizes and what follows are checked
        if these are all.
    YIELDS (str): One line for each fault, which begins with the name of the file.
    """
    for name, array in arrays.items():
        wanted = meta["arrays"].get(name, {}).get("sha256")
        if wanted is not None and array_hash(array) != wanted:
            yield f"{name}.npy: its SHA-256 is not the one in {META}: it was changed; {AGAIN}"
    if meta_hash(meta) != meta["hash"]:
        yield f"{META}: its hash is not that of its content: it was changed; {AGAIN}"
    if set(arrays) != ARRAYS:
        return
    plain = dict(arrays.items())  # not checked when they are used
    wrong = find_wrong_size(plain, meta)
    if not wrong:
        counts = count_rows(plain, meta)
        found = ((name, find_wrong_number(name, array, counts)) for name, array in plain.items())
        wrong = {name: what for name, what in found if what}
    yield from (f"{name}.npy: {what}; {AGAIN}" for name, what in wrong.items())
    if not wrong:
        yield from _find_wrong_content(plain)


def _find_wrong_content(arrays: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Find wrong strings, and names that belong to other concepts than their lists say."""
    is_text = {name: _is_utf8(arrays[name], arrays[f"{name}_at"]) for name in COLUMNS}
    yield from (f"{name}.npy: is not UTF-8; {AGAIN}" for name, good in is_text.items() if not good)
    for name in ("ids", "other_ids"):
        if not is_text[name]:
            continue
        texts = list(Strings(arrays[name], arrays[f"{name}_at"]))
        wrong = [(text, why) for text in texts if (why := wrong_id(text))]
        if wrong:
            text, why = wrong[0]
            more = f", and {len(wrong) - 1:,} more wrong ids" if len(wrong) > 1 else ""
            yield f"{name}.npy: {why}: {text[:50]!r}{more}; correct the source and build it again"
        if any(a >= b for a, b in pairwise(texts)):
            yield f"{name}.npy: the ids are not sorted, or one is there twice; {AGAIN}"
    n_names = np.diff(arrays["first_name"])
    if not np.array_equal(arrays["name_concept"], np.repeat(np.arange(len(n_names)), n_names)):
        yield f"name_concept.npy: does not fit first_name.npy; {AGAIN}"


def _is_utf8(data: np.ndarray, start: np.ndarray) -> bool:
    try:
        bytes(data).decode("utf-8")
    except UnicodeDecodeError:
        return False
    begins = start[start < len(data)]
    return not ((data[begins] & MASK) == CONTINUES).any()
