"""Feed hostile input to every reader and to de-identification, for as long as is wanted.

    python -m benchmarks.fuzz --minutes 60 --seed 0

Each target runs in a process of its own with little memory, for a slice of the time, with seeds
that go on where the last run stopped. A finding is an error that is not a `BioclinError` of one
line, an error that holds text of the note, a broken promise (see the targets), or a process that
died. It is kept with its seed and place in the code, without any text of a note; to see it again:
python -m benchmarks.fuzz --target NAME --seed SEED --seeds 1
"""

import json
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from benchmarks.harness import RESULTS, ROOT, describe_machine, make_parser, read_json, write_result
from spacy_bioclin.text import MIN_CHARS
from tests.hostile.inputs import files
from tests.hostile.strategies import (
    DATES,
    IDENTIFIERS,
    LAYOUTS,
    NAMES,
    column_names,
    json_values,
    notes,
    odd_texts,
    tables,
)

EXAMPLES = 100  # a seed
SLICE_SECONDS = 10  # of processor time
CPU_SECONDS = 300
MEMORY_BYTES = 6 * 2**30
KEY = b"0123456789abcdef-fuzz"
READERS = ("brat.ann", "pubtator.txt", "i2b2.xml", "bioc.xml", "bioc.json", "columns.conll")
READERS += ("spacy.spacy",)
Try = Callable[[], None]


class Broken(AssertionError):
    """A promise that does not hold; the message names it, without text of a note."""


def check(holds: bool, promise: str) -> None:
    if not holds:
        raise Broken(promise)


def fuzz_reader(kind: str, folder: Path) -> Callable[[int, Try], None]:
    """A damaged file gives documents, or one error that names the file and quotes nothing."""
    whole = files.make_files(folder)[kind]
    format, _, suffix = kind.partition(".")
    path = folder / f"x.{suffix}"

    def run(seed: int, count: Try) -> None:
        rng = random.Random(seed)
        for _ in range(EXAMPLES):
            count()
            path.write_bytes(files.mutated(whole, rng))
            if format == "brat":
                (folder / "x.txt").write_text(files.TEXT, "utf-8")
            try:
                files.read_as_users_do(format, path)
            except Exception as error:
                files.check_message(error, "x.")

    return run


def fuzz_any_text(name: str, folder: Path) -> Callable[[int, Try], None]:
    """A note in place of a corpus, table or settings file gives an error that quotes nothing."""
    from spacy_bioclin.corpora.formats import FORMATS
    from spacy_bioclin.errors import BioclinError
    from spacy_bioclin.runner.columns import Columns
    from spacy_bioclin.runner.forms import open_form
    from spacy_bioclin.runner.records import Record
    from spacy_bioclin.settings import read_json, read_yaml

    def read(path: Path) -> None:
        if path.suffix in (".yml", ".json"):
            (read_yaml if path.suffix == ".yml" else read_json)(path)
        elif path.suffix in (".jsonl", ".csv", ".tsv", ".parquet"):
            for record in open_form(path, Columns()).read():
                if not isinstance(record, Record):
                    files.check_message(record.error)
        else:
            for form in FORMATS.values():
                if path.suffix in form.suffixes:
                    form.read(path)  # type: ignore[call-arg]

    suffixes = [".yml", ".json", ".jsonl", ".csv", ".tsv", ".parquet", ".ann", ".xml", ".conll"]

    def attempt(before: str, after: str, suffix: str) -> None:
        path = folder / f"x{suffix}"
        # In a file without a header, a note in its first line may look like the name of a column.
        header = "text\n" if suffix in (".csv", ".tsv") else ""
        path.write_text(f"{header}{before}{files.CANARY}{after}", "utf-8")
        (folder / "x.txt").write_text(f"{before}{files.CANARY}{after}", "utf-8")
        try:
            read(path)
        except BioclinError as error:
            files.check_message(error)

    return with_hypothesis(attempt, notes(), notes(), st.sampled_from(suffixes))


def fuzz_table(suffix: str, folder: Path) -> Callable[[int, Try], None]:
    """What is only carried comes out as it went in."""
    import csv
    import io

    from spacy_bioclin.runner.columns import Columns
    from spacy_bioclin.runner.forms import open_form
    from spacy_bioclin.runner.records import Record

    def through(path: Path, keep: set[str]) -> bytes:
        form = open_form(path, Columns(keep=frozenset(keep)))
        rows = []
        for record in form.read():
            check(isinstance(record, Record), "a whole record can be read")
            assert isinstance(record, Record)
            rows.append(record.row)
        target = path.with_name(f"out{path.suffix}")
        target.unlink(missing_ok=True)
        form.join([form.encode(rows[at : at + 2]) for at in range(0, len(rows), 2)], target)
        return target.read_bytes()

    def attempt(table: Any) -> None:
        path = folder / f"x{suffix}"
        if suffix == ".jsonl":
            lines = [
                json.dumps({"text": text.replace("\0", ""), **values}, ensure_ascii=False)
                for text, values in table
            ]
            path.write_bytes("".join(f"{line}\n" for line in lines).encode())
            keep = {name for _, values in table for name in values}
            check(through(path, keep) == path.read_bytes(), "lines of JSON are carried")
            return
        content = io.StringIO()
        delimiter = "\t" if suffix == ".tsv" else ","
        writer = csv.writer(content, delimiter=delimiter, lineterminator="\r\n")
        writer.writerows([table.columns, *table.rows])
        path.write_bytes(content.getvalue().encode())
        out = through(path, {*table.columns} - {"text"}).decode()
        found = list(csv.reader(io.StringIO(out, newline=""), delimiter=delimiter))
        check(found == [table.columns, *table.rows], "cells are carried")

    values = st.dictionaries(column_names(), json_values(), max_size=3)
    rows = st.lists(st.tuples(notes(), values), max_size=4)
    return with_hypothesis(attempt, rows if suffix == ".jsonl" else tables())


def fuzz_deid(name: str, folder: Path) -> Callable[[int, Try], None]:
    """Offsets map what was not changed, restore gives the note, and no known value is left."""
    from spacy_bioclin.deid import make_pipeline
    from spacy_bioclin.deid.vault import restore, seal_originals

    lang, _, default = name.partition("-")
    nlp = make_pipeline(lang, rules_only=True, policy={"default": default}, key=KEY)

    def attempt(layout: str, person: str, id: str, day: str, text: str, tail: str) -> None:
        note = layout.format(name=person, id=id, date=day, text=text) + tail
        doc = nlp.make_doc(note)
        doc._.patient = {"names": [person], "identifiers": [id]}
        result = nlp(doc)._.deid
        check(doc.text == note, "the note is not changed")
        safe, at, safe_at = result.text, 0, 0
        for edit in result.offsets.edits:
            check(at <= edit.start <= edit.end <= len(note), "edits are in order and inside")
            check(note[at : edit.start] == safe[safe_at : edit.safe_start], "the rest is kept")
            at, safe_at = edit.end, edit.safe_end
        check(note[at:] == safe[safe_at:], "the rest is kept")
        check(restore(safe, seal_originals(result, note, KEY), KEY) == note, "restore is exact")
        for value in (person, id):
            if sum(map(str.isalnum, value)) < MIN_CHARS:
                continue
            left = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", safe)
            check(left is None, f"no known value is left: {type_of(value)} in layout")

    odd = odd_texts(6)
    parts = (st.sampled_from(NAMES), st.sampled_from(IDENTIFIERS), DATES, odd, odd)
    return with_hypothesis(attempt, st.sampled_from(LAYOUTS), *parts)


def type_of(value: str) -> str:
    """Name a value of the strategies without showing it."""
    place = NAMES.index(value) if value in NAMES else IDENTIFIERS.index(value)
    return f"{'name' if value in NAMES else 'identifier'} {place}"


def with_hypothesis(
    attempt: Callable[..., None], *strategies: st.SearchStrategy[Any]
) -> Callable[[int, Try], None]:
    """Make what tries examples of strategies from a seed."""

    def run(seed: int, count: Try) -> None:
        @hypothesis.seed(seed)
        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            report_multiple_bugs=False,
        )
        @hypothesis.given(st.tuples(*strategies))
        def test(values: tuple[Any, ...]) -> None:
            count()
            attempt(*values)

        test()

    return run


TARGETS: dict[str, tuple[Callable[[str, Path], Callable[[int, Try], None]], str]] = {
    **{f"reader {kind}": (fuzz_reader, kind) for kind in READERS},
    "any text": (fuzz_any_text, ""),
    **{f"table {suffix}": (fuzz_table, suffix) for suffix in (".jsonl", ".csv", ".tsv")},
    **{
        f"deid {lang}-{default}": (fuzz_deid, f"{lang}-{default}")
        for lang in ("es", "en")
        for default in ("mask", "surrogate")
    },
}


def work(target: str, seed: int, n_seeds: int) -> None:
    """Try seeds until the slice is over; print a line of JSON for each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    # Of processor time, for on a busy machine an hour may go by without a hang.
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(1000)
    make, name = TARGETS[target]
    with tempfile.TemporaryDirectory() as folder:
        run = make(name, Path(folder))
        started = time.process_time()
        while n_seeds > 0 and (n_seeds < 10**6 or time.process_time() - started < SLICE_SECONDS):
            print(json.dumps({"start": seed}), flush=True)
            tried = [0]

            def count(tried: list[int] = tried) -> None:
                tried[0] += 1

            finding = None
            try:
                run(seed, count)
            except BaseException as error:
                finding = describe(error)
            print(json.dumps({"seed": seed, "tried": tried[0], "finding": finding}), flush=True)
            seed, n_seeds = seed + 1, n_seeds - 1


def describe(error: BaseException) -> dict[str, str]:
    """Describe a finding by its type and place; only our own promises have a message."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "spacy_bioclin" in frame.filename] or frames
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno} {own[-1].name}"
    message = str(error) if isinstance(error, Broken) else ""
    return {"type": type(error).__name__, "place": place, "promise": message}


def run_slice(target: str, seed: int) -> tuple[int, int, list[dict[str, Any]]]:
    """Run a target in a process of its own.

    RETURNS (tuple): The next seed, the number of examples, the findings.
    """
    command = [sys.executable, "-m", "benchmarks.fuzz", "--target", target, "--seed", str(seed)]
    found: list[dict[str, Any]] = []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    out, code = done.stdout, done.returncode
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    tried = sum(row.get("tried", 0) for row in rows)
    found += [{"seed": r["seed"], **r["finding"]} for r in rows if r.get("finding")]
    last = max([seed, *(row.get("start", seed) for row in rows)])
    if code:
        kind = "took too long" if code == -signal.SIGXCPU else "process died"
        found.append({"seed": last, "type": kind, "place": f"exit code {code}", "promise": ""})
    return last + 1, tried, [{"target": target, **finding} for finding in found]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the first seed of a target")
    parser.add_argument("--target", choices=sorted(TARGETS), help="one target, in this process")
    parser.add_argument("--seeds", type=int, default=10**6, help="how many, with --target")
    arguments = parser.parse_args()
    if arguments.target:
        work(arguments.target, arguments.seed, arguments.seeds)
        return
    path = RESULTS / "fuzz.json"
    kept = read_json(path) if path.exists() else {"runs": [], "targets": {}, "findings": []}
    result = {name: kept[name] for name in ("runs", "targets", "findings")}
    commit = describe_machine()["commit"]
    run = {"commit": commit, "minutes": 0.0, "examples": 0, "findings": 0}
    result["runs"].append(run)
    started = time.monotonic()
    while (minutes := (time.monotonic() - started) / 60) < arguments.minutes:
        # The target that has had the least time is next, in this run and in those before.
        target = min(TARGETS, key=lambda name: result["targets"].get(name, {}).get("seconds", 0))
        state = result["targets"].setdefault(
            target, {"next_seed": arguments.seed, "examples": 0, "seconds": 0.0}
        )
        began = time.monotonic()
        state["next_seed"], tried, found = run_slice(target, state["next_seed"])
        state["seconds"] = round(state["seconds"] + time.monotonic() - began, 1)
        state["examples"] += tried
        result["findings"] += [{**finding, "commit": commit, "done": ""} for finding in found]
        run["examples"] += tried
        run["findings"] += len(found)
        run["minutes"] = round((time.monotonic() - started) / 60, 1)
        write_result("fuzz", result)
        print(f"{minutes:5.1f} min  {target:24} {tried:7,} examples, {len(found)} findings")


if __name__ == "__main__":
    main()
