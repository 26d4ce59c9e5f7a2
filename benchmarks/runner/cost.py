"""A model of what it costs to annotate fifty million notes, from measured rates.

    python -m benchmarks.speed.run --pipeline es_bioclin_sm    # measures the rates
    python -m benchmarks.runner.cost --notes 50000000 --price "2 cores"=0.10

Time = start + notes / (rate × machines × share), where the rate is that of one machine with all its
cores at work, and the share is what is kept of it with more processes. Writes
benchmarks/results/run_cost.json and .svg. The GPU is left out unless --gpu gives a rate that was
measured on one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.harness import RESULTS, make_parser, read_json, report

MACHINES = (1, 2, 4, 8, 16, 32, 64, 128)
START_SECONDS = 60.0  # until all processes have loaded the pipeline


class Rate(NamedTuple):
    """A rate that was measured.

    name (str): The machine.
    notes_per_second (float): With all its processes.
    words_per_note (float): Mean of the notes that were measured.
    price (float | None): Of an hour.
    """

    name: str
    notes_per_second: float
    words_per_note: float
    price: float | None = None


def make_rows(
    rate: Rate, notes: int, words_per_note: float, machines: Sequence[int], share: float
) -> list[dict[str, Any]]:
    """Compute hours and price for each number of machines.

    words_per_note (float): Mean of the notes of the task: time grows with words, not with notes.
    share (float): What each machine keeps of its rate beside others: the command that reads and
        writes for them is one.
    """
    rows = []
    for n in machines:
        kept = 1.0 if n == 1 else share
        per_second = rate.notes_per_second * rate.words_per_note / words_per_note * n * kept
        hours = (START_SECONDS + notes / per_second) / 3600
        row = {"machines": n, "hours": round(hours, 2), "machine_hours": round(n * hours, 1)}
        if rate.price is not None:
            row["price"] = round(n * hours * rate.price, 2)
        rows.append(row)
    return rows


def read_rates(prices: Mapping[str, float]) -> list[Rate]:
    """Read the rates of benchmarks/results/speed_run.json.

    RAISES (SystemExit): They were not measured.
    """
    path = RESULTS / "speed_run.json"
    if not path.exists():
        raise SystemExit(f"{path.name}: measure it first with python -m benchmarks.speed.run")
    result = read_json(path)
    name = f"{result['machine']['cores']} cores"
    best = max(
        (each for system, each in result["systems"].items() if " x " in system),
        key=lambda each: each["notes_per_second"],
    )
    words = best["words_per_second"] / best["notes_per_second"]
    return [Rate(name, best["notes_per_second"], words, prices.get(name))]


def draw(rows: Mapping[str, Sequence[Mapping[str, Any]]], notes: int) -> None:
    """Draw hours by number of machines."""
    from spacy_bioclin.pages import draw_curves

    curves = {name: [(r["machines"], r["hours"]) for r in some] for name, some in rows.items()}
    title = f"Hours for {notes:,} notes"
    picture = draw_curves(curves, title=title, x_label="machines", logarithmic=True)
    (RESULTS / "run_cost.svg").write_text(picture, encoding="utf-8")


def read_pair(text: str) -> tuple[str, float]:
    """Read NAME=NUMBER."""
    name, _, number = text.rpartition("=")
    return name, float(number)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--notes", type=int, default=50_000_000)
    parser.add_argument("--words", type=float, default=300, help="mean words of a note")
    parser.add_argument("--share", type=float, default=0.9, help="of the rate, beside others")
    parser.add_argument("--price", type=read_pair, action="append", default=[], help="NAME=PRICE")
    parser.add_argument("--gpu", type=read_pair, help="NAME=NOTES_PER_SECOND, of --words each")
    options = parser.parse_args()
    prices = dict(options.price)
    rates = read_rates(prices)
    if options.gpu:
        name, per_second = options.gpu
        rates.append(Rate(name, per_second, options.words, prices.get(name)))
    rows = {
        rate.name: make_rows(rate, options.notes, options.words, MACHINES, options.share)
        for rate in rates
    }
    draw(rows, options.notes)
    settings = {"notes": options.notes, "words_per_note": options.words, "share": options.share}
    measured = [rate._asdict() for rate in rates]
    report(
        "run_cost", {**settings, "start_seconds": START_SECONDS, "rates": measured, "rows": rows}
    )


if __name__ == "__main__":
    main()
