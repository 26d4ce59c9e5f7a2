"""Open the input of `bioclin run`, and choose the notes that are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import BioclinError

if TYPE_CHECKING:
    from ...runner.columns import Columns
    from ...runner.records import Form


class Choice(NamedTuple):
    """Which notes are read.

    database (str | None): URL of the database, for a query.
    key (str | None): Column by which the rows of a query are sorted.
    sample (int | None): Number of notes to choose at random.
    seed (int | None): Random seed for the sample.
    since (Sequence[Path]): Earlier outputs, whose notes are left out.
    """

    database: str | None = None
    key: str | None = None
    sample: int | None = None
    seed: int | None = None
    since: Sequence[Path] = ()


def open_source(path: Path, columns: "Columns", encoding: str, choice: Choice) -> "Form":
    """Open the input.

    RAISES (BioclinError): It cannot be read, or options do not fit together.
    """
    from ...runner.sources.chosen import Chosen
    from ...runner.sources.opening import open_notes

    if choice.seed is not None and choice.sample is None:
        raise BioclinError("--seed: only with --sample; leave it out")
    form = open_notes(path, columns, encoding, database=choice.database, key=choice.key)
    if choice.sample is None and not choice.since:
        return form
    return Chosen(form, sample=choice.sample, seed=choice.seed or 0, since=choice.since)


def check_price(price: float | None, *, dry_run: bool) -> None:
    """Refuse a price that nothing would be computed from.

    RAISES (BioclinError): It is given without --dry-run.
    """
    if price is not None and not dry_run:
        raise BioclinError("--price: only with --dry-run, which estimates the cost; leave it out")


def describe_left_out(form: "Form") -> dict[str, Any]:
    """Describe how many notes were left out because earlier outputs have them."""
    return {} if form.known is None else {"left_out": {"in_earlier_outputs": form.known}}
