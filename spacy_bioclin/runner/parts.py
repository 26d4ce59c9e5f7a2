"""Process an input part by part, so that a resumed run does not repeat finished parts."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..errors import BioclinError
from .records import Form, Record, Unreadable
from .work import Counts, Done, Joins, Work

PART_RECORDS = 100
MAX_PLACES = 1000  # of skipped records that the audit lists


class Part(NamedTuple):
    """The records from position `number` times the size of a part on, counted from 0.

    records (list[Record]): Those that can be read.
    unreadable (list[Unreadable]): Those that cannot.
    deadly (Sequence[Record]): Those that end the process that works on them; it must not.
    """

    number: int
    records: list[Record]
    unreadable: list[Unreadable]
    deadly: Sequence[Record] = ()


class Engine(Protocol):
    """What makes parts, in processes of this machine or of others.

    name (str): Name for the user.
    """

    name: str

    def describe(self) -> dict[str, Any]:
        """Describe the engine for the record of a run."""

    def map(
        self, start: Callable[[], Callable[[Part], Done]], parts: Iterable[Part]
    ) -> Iterator[tuple[Part, Done]]:
        """Make parts.

        start (Callable): Called once in each process; gives the function that makes a part.
        YIELDS (tuple[Part, Done]): Each part and what became of it, in order.
        """


class Portion(NamedTuple):
    """How much of the input is read, and how it is cut.

    limit (int | None): Records that are read, the first ones; None for all.
    part_records (int): Records of a part.
    """

    limit: int | None = None
    part_records: int = PART_RECORDS


ALL = Portion()


def cut(records: Iterable[Record | Unreadable], part_records: int = PART_RECORDS) -> Iterator[Part]:
    """Cut the input into parts by position, so that skipped records do not shift them."""
    part = Part(0, [], [])
    for position, record in enumerate(records):
        number = position // part_records
        if number != part.number:
            yield part
            part = Part(number, [], [])
        if isinstance(record, Record):
            part.records.append(record)
        else:
            part.unreadable.append(record)
    yield part


def add_counts(total: Counts, counts: Counts) -> None:
    """Add the numbers of nested tables to `total`; other values are left out."""
    for name, value in counts.items():
        if isinstance(value, dict):
            add_counts(total.setdefault(name, {}), value)
            if not total[name]:
                del total[name]
        elif isinstance(value, int):
            total[name] = total.get(name, 0) + value


def run_parts(
    form: Form,
    work: Work,
    start: Callable[[], Callable[[Part], Done]],
    *,
    engine: Engine,
    skip_bad: bool,
    on_progress: Callable[[float, int], None],
    on_done: Callable[[Done], None] = lambda done: None,
    portion: Portion = ALL,
) -> tuple[int, Counts]:
    """Process every part that is not finished yet.

    form (Form): The input.
    work (Work): Where the parts go.
    start (Callable): Called once in each process; gives the function that
        processes a part.
    engine (Engine): Makes the parts.
    skip_bad (bool): Leave unreadable records out, and count them.
    on_progress (Callable): Called with the share of the input that is done, from 0 to 1, and the
        number of records that this run has processed.
    on_done (Callable): Called before it with each part that this run has made.
    portion (Portion): How the input is cut.
    RETURNS (tuple[int, Counts]): Number of parts, and the sum of their counts with "read",
        "skipped", the `places` of those that cannot be read, and the `refused` ones.
    RAISES (BioclinError): A record cannot be read, or was refused, and `skip_bad` is off; or all
        records are refused so far.
    """
    total: Counts = {"read": 0, "skipped": 0, "written": 0}
    places: list[str] = []
    refused: list[dict[str, str]] = []
    n_parts = n_made = 0

    def stop(reason: str) -> BioclinError:
        return BioclinError(f"{reason} (--skip-bad leaves such records out)")

    def add(done: Done) -> None:
        add_counts(total, {**done.counts, "skipped": len(done.refused)})
        refused.extend(done.refused)
        del refused[MAX_PLACES:]

    def unfinished() -> Iterator[Part]:
        nonlocal n_parts
        records = islice(form.read(), portion.limit)
        for part in cut(records, portion.part_records):
            if part.unreadable and not skip_bad:
                raise stop(str(part.unreadable[0].error))
            places.extend(bad.place for bad in part.unreadable)
            del places[MAX_PLACES:]
            counts = {"skipped": len(part.unreadable)}
            counts["read"] = len(part.records) + len(part.unreadable)
            add_counts(total, counts)
            n_parts = part.number + 1
            made = work.read(part.number, form.identify([*part.records, *part.unreadable]))
            if made is None:
                yield part
            else:
                add(made)

    for part, done in engine.map(start, unfinished()):
        if done.refused and not skip_bad:
            raise stop(done.refused[0]["reason"])
        if done.refused and not (done.counts["written"] or total["written"]):
            # It is not the records that are bad.
            reason = done.refused[0]["reason"]
            raise BioclinError(f"no record can be written; the first: {reason}")
        work.write(part.number, done, form.identify([*part.records, *part.unreadable]))
        add(done)
        n_made += len(part.records)
        on_done(done)
        share = form.done / form.total if form.total else 1.0
        on_progress(max(share, total["read"] / portion.limit) if portion.limit else share, n_made)
    return n_parts, {**total, "places": places, "refused": refused}


def make_output(
    form: Form,
    work: Work,
    start: Callable[[], Callable[[Part], Done]],
    audit: Path,
    make_audit: Callable[[Counts], dict[str, Any]],
    *,
    engine: Engine,
    skip_bad: bool,
    on_progress: Callable[[float, int], None],
    on_done: Callable[[Done], None] = lambda done: None,
    portion: Portion = ALL,
    target: Joins | None = None,
    quarantine: Path | None = None,
) -> Counts:
    """Process the parts, join them, and move the result into place. See also `run_parts`.

    audit (Path): File for what `make_audit` makes of the counts and a hash of the settings, as
        JSON.
    target (Joins | None): Makes the output; None for the form of the input.
    quarantine (Path | None): File for the records that are not in the output.
    RETURNS (Counts): The counts of all parts.
    RAISES (BioclinError): Something went wrong. The output is then as it was before.
    """
    try:
        n_parts, counts = run_parts(
            form,
            work,
            start,
            engine=engine,
            skip_bad=skip_bad,
            on_progress=on_progress,
            on_done=on_done,
            portion=portion,
        )
        about = {**make_audit(counts), "settings": work.hash}
        content = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
        work.finish(target or form, n_parts, audit, content.encode("utf-8"), quarantine)
    except (OSError, BioclinError) as error:
        raise work.give_up(error) from None
    except BaseException:
        work.clean()
        raise
    return counts
