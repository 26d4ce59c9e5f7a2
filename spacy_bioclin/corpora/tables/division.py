"""Divide texts into splits by the SHA-256 of a key, which never depends on the order of a file."""

import hashlib
from collections.abc import Sequence

from ..texts import LabeledText

SPLITS = ("train", "dev", "test")


def get_rank(key: str) -> str:
    """Compute the place of a key in a split: its SHA-256."""
    return hashlib.sha256(key.encode("utf-8")).hexdigest()


def is_in_tenth(key: str, tenth: int) -> bool:
    """Tell whether a key is in a tenth, from 0 to 9, of all keys."""
    return int(get_rank(key), 16) % 10 == tenth


def get_key(row: LabeledText, by: str) -> str:
    """Get the key of a row: its first text, its id, or the id of its document.

    by (str): "text", "id" or "document", see `Division`.
    """
    if by == "text":
        return row.texts[0]
    return row.id.rpartition("-")[0] if by == "document" else row.id


def divide_tenths(
    train: Sequence[LabeledText],
    test: Sequence[LabeledText],
    *,
    by: str,
    dev_tenth: int,
    fold: str = "",
) -> dict[str, list[LabeledText]]:
    """Divide rows by the tenth that their key is in.

    train, test (Sequence[LabeledText]): Rows of the corpus' own splits; test is empty if it has
        none.
    by (str): See `get_key`.
    dev_tenth (int): Without a fold, the tenth of train that is dev.
    fold (str): "" to keep test; of "0" to "9", the tenth of all rows that is test, and dev is the
        tenth five after it.
    RETURNS (dict[str, list[LabeledText]]): Split -> rows, in the given order.
    """
    rest, held = list(train), list(test)
    if fold:
        rows = [*train, *test]
        held = [row for row in rows if is_in_tenth(get_key(row, by), int(fold))]
        rest = [row for row in rows if not is_in_tenth(get_key(row, by), int(fold))]
        dev_tenth = (int(fold) + 5) % 10
    return {
        "train": [row for row in rest if not is_in_tenth(get_key(row, by), dev_tenth)],
        "dev": [row for row in rest if is_in_tenth(get_key(row, by), dev_tenth)],
        "test": held,
    }


def divide_shares(
    rows: Sequence[LabeledText], *, by: str, shares: Sequence[float], fold: str = ""
) -> dict[str, list[LabeledText]]:
    """Divide rows by the rank of their key: the first keys are train, the next dev, the rest test.

    by (str): See `get_key`.
    shares (Sequence[float]): Shares of train and dev in all keys.
    fold (str): Each fold ranks the keys in another way; "" for one split.
    RETURNS (dict[str, list[LabeledText]]): Split -> rows, in the order of their ranks.
    """
    groups: dict[str, list[LabeledText]] = {}
    for row in rows:
        groups.setdefault(get_key(row, by), []).append(row)
    ranked = sorted(groups, key=lambda key: get_rank(f"{fold}:{key}" if fold else key))
    n_train, n_dev = (round(share * len(ranked)) for share in shares)
    parts = ranked[:n_train], ranked[n_train : n_train + n_dev], ranked[n_train + n_dev :]
    return {
        split: [row for key in keys for row in groups[key]]
        for split, keys in zip(SPLITS, parts, strict=True)
    }


def leave_out_unlabeled(rows: Sequence[LabeledText], *, by: str) -> list[LabeledText]:
    """Leave out the rows of documents that have no label at all.

    by (str): See `get_key`.
    """
    labeled = {get_key(row, by) for row in rows if row.labels}
    return [row for row in rows if get_key(row, by) in labeled]
