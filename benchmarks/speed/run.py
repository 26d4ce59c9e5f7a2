"""`bioclin run` compared with `nlp.pipe` on the same notes, and two processes with one.

    python -m benchmarks.speed.run --notes 3000
    python -m benchmarks.speed.run --notes 16000 --first 8000 --result speed_run_engines \\
        --systems "jsonl local x 2" "jsonl ray x 2" "jsonl spark x 2"
    python -m benchmarks.speed.run --pipeline es_bioclin_sm_rules --notes 200000 --rounds 1 \\
        --result speed_run_memory --systems "jsonl local x 1"

Each system runs in a process of its own, with one thread for each of its processes, in turns.
Rates are of the steady state: neither loading the pipeline nor the first part of 500 notes counts.
`nlp.pipe` gets the texts from memory, and its Docs are thrown away. The runner reads a file, writes
every part to the disk, and joins them; the time for that is part of its rate. With Spark, --first
must be at least two of its jobs, 8,000 notes, which come back at once. es_bioclin_sm_rules is a
folder with es_bioclin_sm without transformer, ner, phi, ents, linker, deid and cleaner.
"""

import json
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from spacy.language import Language

from benchmarks.harness import (
    ask_module,
    make_parser,
    report,
    status_mb,
    take_turns,
    thread_environment,
)
from benchmarks.speed.growth import write_note

FORMS = ("jsonl", "parquet")
PIPE = "nlp.pipe"
ENGINES = ("ray", "spark")


def time_pipe(pipeline: str, texts: list[str], n_first: int) -> dict[str, Any]:
    """Time `nlp.pipe`.

    n_first (int): Notes that are not timed.
    """
    from spacy_bioclin.cli.loading import load_pipeline

    nlp = load_pipeline(pipeline)
    annotate(nlp, texts[:n_first])
    started = time.perf_counter()
    annotate(nlp, texts[n_first:])
    return {"seconds": time.perf_counter() - started}


def annotate(nlp: Language, texts: list[str]) -> None:
    """Annotate texts and throw the Docs away.

    `nlp.pipe` works ahead of the Docs that it yields, so notes that are not timed need a call of
    their own.
    """
    for _ in nlp.pipe(texts):
        pass


def time_run(
    pipeline: str, texts: list[str], n_first: int, form: str, engine: str, processes: int
) -> Any:
    """Time what `bioclin run` does, from the end of the first parts to the finished output.

    n_first (int): Notes of the first parts.
    """
    from spacy_bioclin.cli.loading import load_pipeline
    from spacy_bioclin.cli.run.engines import choose_engine
    from spacy_bioclin.cli.run.targets import Choices, make_target
    from spacy_bioclin.runner.columns import Columns
    from spacy_bioclin.runner.notes.job import PART_RECORDS, AnnotateJob
    from spacy_bioclin.runner.parts import Portion, make_output
    from spacy_bioclin.runner.sources.opening import open_notes
    from spacy_bioclin.runner.work import Work

    started = 0.0
    memory = []

    def show(share: float, n: int) -> None:
        nonlocal started
        if not started and n >= n_first:
            started = time.perf_counter()
        memory.append(round(status_mb("VmRSS"), 1))

    with tempfile.TemporaryDirectory() as name:
        source, out = Path(name) / "notes.jsonl", Path(name) / "out"
        write_texts(source, texts)
        opened = open_notes(source, Columns())
        load = partial(load_pipeline, pipeline)
        target = make_target(opened, form, out, pipeline, Choices(False, False))
        job = AnnotateJob(load, opened.columns, opened.id_column, target)
        counts = make_output(
            opened,
            Work(out, {}, resume=False, overwrite=False),
            job.start,
            Path(name) / "run.json",
            dict,
            engine=choose_engine(engine, processes, -1, skip_bad=False),
            skip_bad=False,
            on_progress=show,
            portion=Portion(None, PART_RECORDS),
            target=job.target,
        )
        assert counts["written"] == len(texts)
    return {
        "seconds": time.perf_counter() - started,
        "memory_mb": memory[:: max(1, len(memory) // 50)],
    }


def write_texts(path: Path, texts: list[str]) -> None:
    """Write texts as JSON lines, the input of `bioclin run`."""
    lines = (json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    path.write_text("".join(lines), encoding="utf-8")


def work(system: str, pipeline: str, notes: int, first: int) -> None:
    """Time a system, and print the answer."""
    texts = [write_note(number) for number in range(notes)]
    if system == PIPE:
        answer = time_pipe(pipeline, texts, first)
    else:
        form, engine, _, processes = system.split()
        answer = time_run(pipeline, texts, first, form, engine, int(processes))
    print(json.dumps(answer))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pipeline", default="es_bioclin_sm")
    parser.add_argument("--notes", type=int, default=6_000)
    parser.add_argument("--first", type=int, default=1_000, help="notes that are not timed")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", nargs="+", help="without it, all but Ray and Spark")
    parser.add_argument("--result", default="speed_run", help="name of the result")
    parser.add_argument("--work", help="used by this script itself")
    options = parser.parse_args()
    if options.work:
        work(options.work, options.pipeline, options.notes, options.first)
        return
    names = [PIPE, *(f"{form} local x {n}" for form in FORMS for n in options.processes)]
    every = [*names, *(f"jsonl {engine} x 2" for engine in ENGINES)]
    if unknown := set(options.systems or ()) - set(every):
        parser.error(f"--systems: no {', '.join(unknown)}; there are {', '.join(every)}")
    settings = [f"--{name}={getattr(options, name)}" for name in ("pipeline", "notes", "first")]
    systems = {
        name: partial(
            ask_module, "benchmarks.speed.run", *settings, "--work", name, env=thread_environment()
        )
        for name in options.systems or names
    }
    answers = take_turns(systems, options.rounds, title="bioclin run")
    n = options.notes - options.first
    n_words = sum(len(write_note(i).split()) for i in range(options.first, options.notes))
    found: dict[str, Any] = {}
    for name, given in answers.items():
        seconds = [answer["seconds"] for answer in given]
        median = statistics.median(seconds)
        found[name] = {
            "notes_per_second": round(n / median, 1),
            "words_per_second": round(n_words / median),
            "seconds": [round(value, 2) for value in seconds],
            **{key: value for key, value in given[-1].items() if key != "seconds"},
        }
    if PIPE in answers:
        pipe = statistics.median(answer["seconds"] for answer in answers[PIPE])
        for name, given in answers.items():
            median = statistics.median(answer["seconds"] for answer in given)
            found[name]["times_nlp_pipe"] = round(pipe / median, 3)
    sizes = {
        "pipeline": Path(options.pipeline).name,
        "notes": options.notes,
        "first": options.first,
    }
    name = Path(options.pipeline).name
    report(options.result, {"pipeline": name, **sizes, "systems": found})


if __name__ == "__main__":
    main()
