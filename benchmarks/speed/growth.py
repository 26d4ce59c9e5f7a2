"""Resident memory for many notes that have nothing in common: does it grow?

    python -m benchmarks.speed.growth [--before TREE] [--rules 1000000] [--linker 200000]

Every note has eleven words and numbers that no other note has. They go through rules and
bioclin_deid (`bioclin deid`, one process), and through an encoder of 2 layers of 64 with
bioclin_ner, and bioclin_linker with mentions that are new each time (`bioclin annotate`). Resident
memory is read every second from outside, beside the notes that are written by then. Both pipelines
also run as docs/speed.md says that code of one's own should (`map_docs`). Beside them run spaCy's
blank("es"), with and without its own memory zone, and the tree BEFORE, which may read fewer notes:
there `nlp.pipe` stands for `map_docs`. What counts is the median of the last tenth over that around
the 100,000th note (or the middle, if there are fewer), and bytes a note from there on. A series
that is complete is kept in .work/benchmarks/growth, and used by the next run. Load on the machine
does not matter; the seconds are therefore no measure of speed. --report writes the result of what
has been read so far, also while another process reads.
"""

import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    RESULTS,
    WORK,
    make_parser,
    read_json,
    report,
    rules_only,
    status_mb,
    thread_environment,
    write_json,
)

FOLDER = WORK / "growth"
FROM = 100_000  # notes after which memory has to be flat
AIM_PERCENT = 5
EVERY_SECONDS = 1.0
LETTERS = "abcdefghijklmnopqrstuvwxyz"
N_CONCEPTS = 2_000
Point = tuple[int, float]  # notes, megabytes
RULES, LINKER = "rules + deid", "encoder + linker"


def write_note(number: int) -> str:
    """Write a note of random words and numbers."""
    rng = random.Random(number)
    words = ["".join(rng.choices(LETTERS, k=8)) for _ in range(8)]
    ids = [f"{rng.randrange(10**9):09}" for _ in range(3)]
    return (
        f"Paciente de {rng.randrange(1, 99)} años, NHC {ids[0]}, que acude el 12/03/2020 por "
        f"{words[0]} {words[1]} de {words[2]}. Antecedentes: m{words[3]} m{words[4]}, {words[5]} y "
        f"{words[6]}. Se pauta {words[7]} (lote {ids[1]}). Tel. 6{ids[2][:8]}."
    )


def make_inputs(notes: int, kind: str, folder: Path) -> Path:
    """Write a file or folder of notes; the same for each tree."""
    path = folder / (f"notes-{notes}.jsonl" if kind == RULES else f"notes-{notes}")
    if path.exists():
        return path
    partial = path.with_suffix(".partial")
    if kind == RULES:
        with partial.open("w", encoding="utf-8") as file:
            for number in range(notes):
                file.write(json.dumps({"text": write_note(number)}, ensure_ascii=False) + "\n")
    else:
        for number in range(notes):
            one = partial / f"{number // 1000:04}" / f"{number:07}.txt"
            one.parent.mkdir(parents=True, exist_ok=True)
            one.write_text(write_note(number), encoding="utf-8")
    partial.rename(path)
    return path


def make_linker(folder: Path) -> Path:
    """Make a pipeline with a random encoder of 2 x 64, a head that finds little, and a linker."""
    import spacy
    import torch

    from spacy_bioclin.linking.kb.build import build_kb
    from spacy_bioclin.linking.kb.concepts import Concept
    from spacy_bioclin.pretraining.compact import build_compact_encoder

    path = folder / "pipeline"
    if path.exists():
        return path
    texts = [write_note(-number) for number in range(1, 1000)]
    encoder = folder / "encoder"
    build_compact_encoder(texts, encoder, layers=2, width=64, vocab_size=2_000, seed=0)
    rng = random.Random(0)
    names = [
        " ".join("m" + "".join(rng.choices(LETTERS, k=8)) for _ in range(2))
        for _ in range(N_CONCEPTS)
    ]
    build_kb([Concept(f"C{i}", name, "es") for i, name in enumerate(names)], folder / "kb")
    nlp = spacy.blank(
        "es", config={"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
    )
    nlp.batch_size = 64
    nlp.add_pipe("bioclin_sentences")
    model = {"@architectures": "spacy-bioclin.Encoder.v1", "name": str(encoder)}
    nlp.add_pipe("transformer", config={"model": model})
    ner = nlp.add_pipe("bioclin_ner", config={"spans_key": "found"})
    nlp.config["initialize"]["components"]["bioclin_ner"] = {"labels": ["PROBLEM"]}
    ruler = nlp.add_pipe("entity_ruler")
    nlp.add_pipe("bioclin_linker", config={"kb": str(folder / "kb")})
    nlp.add_pipe("bioclin_cleaner")
    nlp.initialize()
    word = {"TEXT": {"REGEX": "^m[a-z]{8}$"}}
    ruler.add_patterns([{"label": "PROBLEM", "pattern": [word, word]}])
    with torch.no_grad():
        ner.model.get_ref("head").shims[0].module.output.bias[0] += 1
    nlp.to_disk(path)
    return path


# -- in a process of its own, perhaps of another tree ---------------------------------------------


def read_all(kind: str, way: str, notes: int, pipeline: str) -> Iterator[int]:
    """Annotate notes as code of a user's own does.

    YIELDS (int): The number of notes so far.
    """
    import spacy

    texts = ((write_note(number), number) for number in range(notes))
    if kind == RULES:
        from spacy_bioclin.deid.pipeline import make_pipeline

        tokenizer = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
        nlp = make_pipeline(spacy.blank("es", config=tokenizer))
    else:
        nlp = spacy.blank("es") if kind == "spaCy" else spacy.load(pipeline)
    if way == "map_docs":
        from spacy_bioclin.runner.memory import map_docs

        yield from map_docs(nlp, texts, lambda doc, number: len(doc) and number + 1)
    elif way == "nlp.memory_zone":
        while batch := list(itertools.islice(texts, 1000)):
            with nlp.memory_zone():
                made = [number + 1 for _, number in nlp.pipe(batch, as_tuples=True)]
            yield from made
    else:
        yield from (number + 1 for _, number in nlp.pipe(texts, as_tuples=True))


def work(kind: str, way: str, notes: int, pipeline: str) -> None:
    """Annotate, and print a thousand points."""
    for n in read_all(kind, way, notes, pipeline):
        if n % max(1, notes // 1000) == 0:
            print(json.dumps([n, round(status_mb("VmRSS"), 1)]), flush=True)


# -- from outside ---------------------------------------------------------------------------------


def run_worker(tree: Path, kind: str, way: str, notes: int, pipeline: Path) -> Iterator[Point]:
    """Run `work` in a tree's environment."""
    command = [tree / ".venv/bin/python", "-W", "ignore", Path(__file__).resolve()]
    options = ["--work", kind, "--way", way, "--notes", str(notes), "--pipeline", str(pipeline)]
    child = subprocess.Popen(
        [*command, *options],
        cwd=tree,
        env={**thread_environment(), "PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("["):
            yield tuple(json.loads(line))
    if child.wait():
        sys.exit(f"{kind}, {way}: failed")


def run_command(tree: Path, kind: str, notes: int, pipeline: Path) -> Iterator[Point]:
    """Run the real command, and watch its memory and its output."""
    out = FOLDER / f"out-{os.getpid()}"
    out.mkdir(parents=True)
    source = make_inputs(notes, kind, FOLDER)
    if kind == RULES:
        options = ["--lang", "es", *rules_only(tree), "--skip-bad"]
        arguments = ["deid", source, out / "out.jsonl", *options]
    else:
        arguments = ["annotate", pipeline, source, "-o", out / "out.jsonl"]
    error = (out / "error.log").open("w+")
    child = subprocess.Popen(
        [tree / ".venv/bin/python", "-W", "ignore", "-m", "spacy_bioclin", *arguments],
        cwd=tree,
        env={**thread_environment(), "PYTHONPATH": str(tree)},
        stdout=subprocess.DEVNULL,
        stderr=error,
    )
    last = 0
    lines = LineCounter(out)
    while child.poll() is None:
        time.sleep(EVERY_SECONDS)
        n = 100 * sum(1 for _ in out.rglob("*.part")) if kind == RULES else lines.count()
        try:
            text = Path(f"/proc/{child.pid}/status").read_text()
        except OSError:
            break
        resident = [line.split()[1] for line in text.splitlines() if line.startswith("VmRSS:")]
        if resident and last + notes / 1000 <= n <= notes:
            last = n
            yield n, round(int(resident[0]) / 1024, 1)
    if child.wait():
        error.seek(0)
        sys.exit(error.read()[-3000:])
    shutil.rmtree(out)


class LineCounter:
    """Count the lines of the one file of a folder, while it is written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.at, self.lines = folder, 0, 0

    def count(self) -> int:
        files = [path for path in self.folder.rglob(".*") if path.is_file()]
        if files:
            with max(files, key=lambda path: path.stat().st_size).open("rb") as file:
                file.seek(self.at)
                while block := file.read(1 << 20):
                    self.at, self.lines = self.at + len(block), self.lines + block.count(b"\n")
        return self.lines


def summarize(points: list[Point]) -> dict[str, Any]:
    """Compare memory at the end with that after 100,000 notes, or after half of them."""
    last = points[-1][0]
    start = min(FROM, last // 2)
    begin = [mb for n, mb in points if 0.95 * start <= n <= 1.05 * start]
    begin = begin or [min(points, key=lambda point: abs(point[0] - start))[1]]
    end = [mb for n, mb in points if n >= last - (last - start) / 10]
    before, after = statistics.median(begin), statistics.median(end)
    if len(points) < 8:
        return {"notes": points[-1][0] if points else 0, "curve": points}
    slope = statistics.linear_regression(*zip(*[p for p in points if p[0] >= start], strict=True))
    return {
        "notes": last,
        "from": start,
        "mb_from": round(before, 1),
        "mb_end": round(after, 1),
        "change_percent": round(100 * (after / before - 1), 2),
        "bytes_per_note": round(slope.slope * 2**20, 1),
        "curve": thin(points, 100),
    }


def thin(points: list[Point], n: int) -> list[Point]:
    """Keep about so many points."""
    return [*points[:: max(1, len(points) // n)], points[-1]]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rules", type=int, default=1_000_000, help="notes for rules + deid")
    parser.add_argument("--linker", type=int, default=200_000, help="notes for encoder + linker")
    parser.add_argument("--peer", type=int, default=1_000_000, help="notes for spaCy's blank")
    parser.add_argument("--before", type=Path, help="tree to compare with")
    parser.add_argument("--before-share", type=float, default=0.1, help="share of the notes there")
    parser.add_argument("--only", default="", help="series to run, or part of their names")
    parser.add_argument("--report", action="store_true", help="report what has been read so far")
    parser.add_argument("--work", help="used by this script itself, as the next three")
    parser.add_argument("--way", default="")
    parser.add_argument("--notes", type=int, default=0)
    parser.add_argument("--pipeline", default="")
    options = parser.parse_args()
    if options.work:
        work(options.work, options.way, options.notes, options.pipeline)
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    pipeline = make_linker(FOLDER)
    here = Path(__file__).resolve().parents[2]
    commands = {RULES: "bioclin deid", LINKER: "bioclin annotate"}
    found: dict[str, Any] = {}
    trees = [("", here, 1.0)]
    if options.before:
        trees.append((", before", options.before.resolve(), options.before_share))
    series = []
    for label, tree, share in trees:
        for kind, n in ((RULES, options.rules), (LINKER, options.linker)):
            way = "nlp.pipe" if label else "map_docs"
            series += [(f"{kind}: {commands[kind]}{label}", tree, kind, "", int(n * share))]
            series += [(f"{kind}: {way}{label}", tree, kind, way, int(n * share))]
    for way, share in (("nlp.pipe", options.before_share), ("nlp.memory_zone", 1.0)):
        series.append((f"spaCy blank: {way}", here, "spaCy", way, int(options.peer * share)))
    exact = options.only in {name for name, *_ in series}
    for name, tree, kind, way, n in series:
        wanted = options.only == name if exact else options.only in name
        path = FOLDER / f"{''.join(c if c.isalnum() else '-' for c in name)}-{n}.json"
        so_far = path.with_suffix(".jsonl")
        if wanted and not path.exists() and not options.report:
            points = (
                run_worker(tree, kind, way, n, pipeline)
                if way
                else run_command(tree, kind, n, pipeline)
            )
            with so_far.open("w") as file:
                for point in points:
                    print(json.dumps(point), file=file, flush=True)
            write_json(path, [json.loads(line) for line in so_far.read_text().splitlines()])
        done = path.exists()
        if done or (options.report and so_far.exists()):
            points = read_json(path) if done else map(json.loads, so_far.read_text().splitlines())
            found[name] = {"complete": done, **summarize([*points])}
            print(name, {k: v for k, v in found[name].items() if k != "curve"}, flush=True)
    if options.only:  # the other series stay as they were measured
        found = {**read_json(RESULTS / "memory_growth.json")["series"], **found}
    report("memory_growth", {"aim_percent": AIM_PERCENT, "series": found})
    draw(found)


def draw(found: dict[str, Any]) -> None:
    """Draw how much memory each series needs more than after its first tenth of 100,000 notes."""
    from spacy_bioclin.pages import draw_curves

    curves = {}
    for name, summary in found.items():
        curve = summary["curve"]
        if "from" not in summary:
            continue
        first = next(mb for n, mb in curve if n >= min(FROM / 10, curve[-1][0] / 2))
        curves[name] = [(n, max(0.0, mb - first)) for n, mb in curve]
    picture = draw_curves(
        curves, title="Resident memory, MB more than after 10,000 notes", x_label="notes read"
    )
    (RESULTS / "memory_growth.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
