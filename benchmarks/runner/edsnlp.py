"""`bioclin run` compared with EDS-NLP's multiprocessing backend, with the same encoder.

    python -m venv PEERS && PEERS/bin/pip install "edsnlp[ml]==0.23.0" pyarrow
    python -m benchmarks.runner.edsnlp --peers PEERS/bin/python

Both read parts of 40 words of the notes of MEDDOCAN dev from a Parquet file, find entities with a
CRF on the encoder, and write Parquet, in the same number of processes with one thread each. Both
heads have random weights, which take as long as trained ones, and a bias that leaves few entities.
Each system is run in fp32 and in the precision that is its default. The time is that of all notes
less that of some: start-up cancels out, as long as all processes have work, 500 notes at a time.
Writes benchmarks/results/run_edsnlp.json.
"""

import argparse
import itertools
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, make_parser, report, take_turns, thread_environment

SYSTEMS = ("bioclin run", "EDS-NLP")
PRECISIONS = ("default", "fp32")
NOTE_WORDS = 40
OUTSIDE_BIAS = 5.0  # random scores would make every other token an entity

PEER = """
import json, sys, time
import edsnlp, edsnlp.pipes as eds
import torch
from spacy.tokens import Span

encoder, source, out, processes, labels, bias, precision = json.loads(sys.argv[1])

def make():
    nlp = edsnlp.blank("eds")
    embedding = eds.transformer(model=encoder, window=128, stride=96)
    head = eds.ner_crf(embedding=embedding, mode="joint", target_span_getter={"ents": labels},
                       labels=labels, span_setter={"ents": True}, window=20)
    nlp.add_pipe(head, name="ner")
    gold = nlp.make_doc("x " * len(labels))
    gold.ents = [Span(gold, i, i + 1, label) for i, label in enumerate(labels)]
    torch.manual_seed(0)
    nlp.post_init([gold])
    with torch.no_grad():
        nlp.pipes.ner.linear.bias.view(len(labels), -1)[:, 0] += bias
    return nlp

if __name__ == "__main__":
    torch.set_num_threads(1)
    nlp = make()
    def write(doc):
        return [{"note": doc._.note_id, "start": e.start_char, "end": e.end_char, "label": e.label_}
                for e in doc.ents]
    stream = edsnlp.data.read_parquet(source, converter="omop").map_pipeline(nlp)
    stream = stream.set_processing(backend="multiprocessing", num_cpu_workers=processes,
                                   num_gpu_workers=0, autocast=precision != "fp32")
    before = time.perf_counter()
    stream.write_parquet(out, converter=write)
    print(json.dumps({"seconds": time.perf_counter() - before}))
"""


def cut_texts(notes: Iterable[str]) -> Iterator[str]:
    """Cut notes into parts of NOTE_WORDS words."""
    for note in notes:
        words = list(re.finditer(r"\S+", note))
        for first in range(0, len(words), NOTE_WORDS):
            some = words[first : first + NOTE_WORDS]
            yield note[some[0].start() : some[-1].end()]


def write_notes(path: Path, texts: list[str], n: int) -> None:
    """Write texts as Parquet, again and again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    some = list(itertools.islice(itertools.cycle(texts), n))
    ids = [str(i) for i in range(n)]
    pq.write_table(pa.table({"note_id": ids, "note_text": some}), path)


def write_pipeline(folder: Path, encoder: Path, labels: list[str]) -> None:
    """Write a pipeline with an untrained head."""
    import spacy
    import torch

    overrides = {"paths.encoder": str(encoder), "nlp.lang": "es"}
    config = spacy.util.load_config(ROOT / "configs/ner.cfg", overrides, interpolate=True)
    config["initialize"]["components"] = {"ner": {"labels": labels}}
    torch.manual_seed(0)
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    nlp.initialize()
    with torch.no_grad():
        nlp.get_pipe("ner").model.get_ref("head").shims[0].module.output.bias[0] += OUTSIDE_BIAS
    nlp.to_disk(folder)


def time_peer(options: argparse.Namespace, folder: Path, source: Path, precision: str) -> float:
    """Time EDS-NLP on a file."""
    script = folder / "peer.py"
    script.write_text(PEER, encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        given = [str(options.encoder.resolve()), str(source), str(Path(name) / "out")]
        more = [options.processes, options.labels, OUTSIDE_BIAS, precision]
        command = [options.peers, "-W", "ignore", str(script), json.dumps([*given, *more])]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, env=thread_environment()
        )
        return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def time_ours(options: argparse.Namespace, folder: Path, source: Path, precision: str) -> float:
    """Time `bioclin run` on a file."""
    with tempfile.TemporaryDirectory() as name:
        arguments = [folder / "pipeline", source, Path(name) / "out", "--to", "parquet"]
        arguments += ["--id-column", "note_id", "--text-column", "note_text"]
        arguments += ["--processes", options.processes]
        if precision == "fp32":
            arguments += ["--precision", precision]
        before = time.perf_counter()
        subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "spacy_bioclin", "run", *map(str, arguments)],
            check=True,
            env=thread_environment(),
        )
        return time.perf_counter() - before


def summarize(answers: dict[str, list[float]], options: argparse.Namespace) -> dict[str, Any]:
    """Compute rates without the time to start."""
    sizes = (options.notes, options.first)
    found: dict[str, Any] = {}
    for system, precision in itertools.product(SYSTEMS, PRECISIONS):
        times = {n: answers[f"{system} {precision} {n}"] for n in sizes}
        seconds = statistics.median(times[options.notes]) - statistics.median(times[options.first])
        found[f"{system} {precision}"] = {
            "notes_per_second": round((options.notes - options.first) / seconds, 1),
            "seconds": {str(n): [round(each, 1) for each in some] for n, some in times.items()},
        }
    return found


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--encoder", type=Path, default=ROOT / "assets/encoders/bioclin-sm")
    parser.add_argument("--peers", required=True, help="Python with edsnlp")
    parser.add_argument("--labels", nargs="+", default=["DISEASE", "SYMPTOM", "DRUG", "PROCEDURE"])
    parser.add_argument("--notes", type=int, default=6_000)
    parser.add_argument("--first", type=int, default=2_000, help="notes whose time is subtracted")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    from benchmarks.corpora import read_notes
    from spacy_bioclin.runner.notes.job import PART_RECORDS

    at_once = PART_RECORDS * options.processes
    if options.first % at_once or options.notes % at_once:
        parser.error(f"--notes and --first: want multiples of {PART_RECORDS} x --processes")
    texts = list(cut_texts(read_notes("meddocan/dev/brat", 250)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pipeline(folder / "pipeline", options.encoder, options.labels)
        files = {n: folder / f"{n}.parquet" for n in (options.first, options.notes)}
        for n, path in files.items():
            write_notes(path, texts, n)
        systems = {
            f"{system} {precision} {n}": partial(time_one, options, folder, path, precision)
            for system, time_one in zip(SYSTEMS, (time_ours, time_peer), strict=True)
            for precision in PRECISIONS
            for n, path in files.items()
        }
        answers = take_turns(systems, options.rounds, title="bioclin run and EDS-NLP")
    found = summarize(answers, options)
    ratios = {
        precision: round(
            found[f"bioclin run {precision}"]["notes_per_second"]
            / found[f"EDS-NLP {precision}"]["notes_per_second"],
            2,
        )
        for precision in PRECISIONS
    }
    settings = {name: getattr(options, name) for name in ("notes", "first", "processes", "labels")}
    words = round(statistics.mean(len(text.split()) for text in texts), 1)
    named = {"encoder": options.encoder.name, "words_per_note": words, **settings}
    report("run_edsnlp", {**named, "systems": found, "times_edsnlp": ratios})


if __name__ == "__main__":
    main()
