"""What `bioclin run` adds to `nlp.pipe`: both annotate the same blocks of notes, in turns.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 python -m benchmarks.speed.run_overhead

In one process, each has a pipeline of its own and annotates one block of notes after another, first
the one and then the other: what else runs on the machine, and how its clock changes, meets both.
`nlp.pipe` gets the texts from memory, and its Docs are thrown away. The runner reads a file, writes
every part to the disk, joins them and writes the record of the run, for each block anew. Times are
those of the processor, in all threads of the process, and those of the clock. Compare the ratios.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import make_parser, report
from benchmarks.speed.growth import write_note
from benchmarks.speed.run import FORMS, annotate, write_texts
from spacy_bioclin.cli.loading import load_pipeline
from spacy_bioclin.cli.run.targets import Choices, make_target
from spacy_bioclin.runner.columns import Columns
from spacy_bioclin.runner.engines.local import LocalEngine
from spacy_bioclin.runner.notes.job import PART_RECORDS, AnnotateJob
from spacy_bioclin.runner.parts import Portion, make_output
from spacy_bioclin.runner.sources.opening import open_notes
from spacy_bioclin.runner.work import Work

Annotate = Callable[[list[str]], None]


def make_run(pipeline: str, form: str, folder: Path) -> Annotate:
    """Load a pipeline, and make a function that annotates texts as `bioclin run` does."""
    source, out = folder / "notes.jsonl", folder / "out"
    write_texts(source, ["x"])
    opened = open_notes(source, Columns())
    target = make_target(opened, form, out, pipeline, Choices(False, False))
    job = AnnotateJob(lambda: load_pipeline(pipeline), opened.columns, opened.id_column, target)
    make_part = job.start()

    def run(texts: list[str]) -> None:
        write_texts(source, texts)
        counts = make_output(
            open_notes(source, Columns()),
            Work(out, {}, resume=False, overwrite=True),
            lambda: make_part,
            folder / "run.json",
            dict,
            engine=LocalEngine(1),
            skip_bad=False,
            on_progress=lambda share, n: None,
            portion=Portion(None, PART_RECORDS),
            target=job.target,
        )
        assert counts["written"] == len(texts)

    return run


def time_block(system: Annotate, texts: list[str]) -> dict[str, float]:
    """Time a block.

    RETURNS (dict[str, float]): Seconds of the processor, and of the clock.
    """
    started, clock = time.process_time(), time.perf_counter()
    system(texts)
    return {"processor": time.process_time() - started, "clock": time.perf_counter() - clock}


def compare(
    systems: dict[str, Annotate], *, first: int, blocks: int, notes: int
) -> dict[str, list[dict[str, float]]]:
    """Time the systems in turns, each beginning as often as the others.

    first (int): Notes that are not timed.
    notes (int): Size of a block.
    RETURNS (dict): System -> see `time_block`, for each block.
    """
    for system in systems.values():
        system([write_note(number) for number in range(first)])
    times: dict[str, list[dict[str, float]]] = {name: [] for name in systems}
    names = list(systems)
    for block in range(blocks):
        start = first + block * notes
        texts = [write_note(number) for number in range(start, start + notes)]
        turn = block % len(names)
        for name in names[turn:] + names[:turn]:
            times[name].append(time_block(systems[name], texts))
    return times


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pipeline", default="es_bioclin_sm")
    parser.add_argument("--first", type=int, default=1_000, help="notes that are not timed")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--notes", type=int, default=500, help="of a block")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        systems: dict[str, Annotate] = {
            "nlp.pipe": partial(annotate, load_pipeline(options.pipeline))
        }
        for form in FORMS:
            (folder := Path(name) / form).mkdir()
            systems[form] = make_run(options.pipeline, form, folder)
        sizes = {"first": options.first, "blocks": options.blocks, "notes": options.notes}
        times = compare(systems, **sizes)
    found: dict[str, Any] = {}
    for form, blocks in times.items():
        found[form] = {
            kind: {
                "ms_per_note": round(
                    statistics.median(one[kind] for one in blocks) / options.notes * 1e3, 2
                ),
                "times_nlp_pipe": round(
                    statistics.median(
                        one[kind] / other[kind]
                        for one, other in zip(blocks, times["nlp.pipe"], strict=True)
                    ),
                    3,
                ),
                "seconds": [round(one[kind], 2) for one in blocks],
            }
            for kind in ("processor", "clock")
        }
    names = {"pipeline": Path(options.pipeline).name, "threads": torch.get_num_threads()}
    report("run_overhead", {**names, **sizes, "systems": found})


if __name__ == "__main__":
    main()
